/* SPDX-License-Identifier: MIT */
/* holder_info: writes and parses the text that tells who a holder or waiter is. */
#include "lock/holder_info.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 160               /* room for a word's value, with its escapes and a NUL */
#define NUMBER_MAX (INT64_C(1) << 53) /* Lua's numbers are exact up to here */

static size_t put_escaped(char *at, size_t room, const char *value)
{
    size_t used = 0;
    unsigned char c;

    while ((c = (unsigned char)*value++) != '\0' && used + 4 < room) {
        if (c > ' ' && c < 0x7f && c != '%')
            at[used++] = (char)c;
        else
            used += (size_t)snprintf(at + used, 4, "%%%02X", c);
    }
    at[used] = '\0';
    return used;
}

static size_t put_word(char *at, const char *name, const char *value)
{
    size_t used;

    if (value == NULL || value[0] == '\0')
        return 0;
    used = (size_t)sprintf(at, " %s=", name);
    return used + put_escaped(at + used, VALUE_BYTES, value);
}

void holder_info_write(char info[HOLDER_INFO_BYTES], const struct rlock_holder *holder)
{
    char pid[24] = "";
    char *at = info;

    if (holder->pid != 0)
        snprintf(pid, sizeof pid, "%lld", (long long)holder->pid);
    *at = '\0';
    at += put_word(at, "host", holder->host);
    at += put_word(at, "pid", pid);
    at += put_word(at, "user", holder->user);
    at += put_word(at, "command", holder->command);
    at += put_word(at, "label", holder->label);
    put_word(at, "kept", holder->has_renewer ? "1" : NULL);
    if (info[0] == ' ')
        memmove(info, info + 1, strlen(info));
}

/* Returns where the value of the word `name` begins; "" if there is no such word. */
static const char *find_word(const char *info, const char *name)
{
    size_t n = strlen(name);
    const char *at = info;

    while ((at = strchr(at, ' ')) != NULL)
        if (strncmp(++at, name, n) == 0 && at[n] == '=')
            return at + n + 1;
    return "";
}

/* Copies the value of the word `name`, with each %XX decoded. */
static void get_word(const char *info, const char *name, char *out, size_t room)
{
    const char *at = find_word(info, name);
    size_t used = 0;
    unsigned byte;

    while (*at != ' ' && *at != '\0' && used + 1 < room) {
        bool is_escaped = *at == '%' && isxdigit((unsigned char)at[1]) &&
                          isxdigit((unsigned char)at[2]) && sscanf(at + 1, "%2x", &byte) == 1;

        out[used++] = is_escaped ? (char)byte : *at;
        at += is_escaped ? 3 : 1;
    }
    out[used] = '\0';
}

static void put_printable(char *out, size_t room, const char *bytes)
{
    size_t used = 0;
    unsigned char c;

    while ((c = (unsigned char)*bytes++) != '\0' && used + 5 < room) {
        if (c >= ' ' && c < 0x7f && c != '\\')
            out[used++] = (char)c;
        else
            used += (size_t)snprintf(out + used, room - used, "\\x%02x", c);
    }
    out[used] = '\0';
}

static bool starts_with_token(const char *value)
{
    return strspn(value, "0123456789abcdef") == RLOCK_TOKEN_BYTES &&
           value[RLOCK_TOKEN_BYTES] == ' ';
}

bool holder_info_is_rlock(const char *lock)
{
    return starts_with_token(lock) && strncmp(lock + RLOCK_TOKEN_BYTES, " v1 ", 4) == 0;
}

const char *holder_info_without_token(const char *lock)
{
    return starts_with_token(lock) ? lock + RLOCK_TOKEN_BYTES + 1 : lock;
}

bool holder_info_has(const char *info, const char *name, const char *value)
{
    char found[VALUE_BYTES];

    get_word(info, name, found, sizeof found);
    return strcmp(found, value) == 0;
}

void holder_info_members_hash(const char *info, char *hash, size_t room)
{
    get_word(info, "members", hash, room);
}

/* Returns the value of the word `name` if it is a number from 0 to NUMBER_MAX, else `otherwise`. */
static int64_t get_number(const char *info, const char *name, int64_t otherwise)
{
    char text[24];
    int64_t number;
    char *end;

    get_word(info, name, text, sizeof text);
    number = strtoll(text, &end, 10);
    return *text != '\0' && *end == '\0' && number >= 0 && number <= NUMBER_MAX ? number
                                                                                : otherwise;
}

/* Writes a text for people about a holder or waiter: "tar of backup@web1, pid 42 (nightly)". */
static void put_party(char *out, size_t room, const struct rlock_party *party)
{
    char text[320];

    snprintf(text, sizeof text, "%.63s of %.63s@%.63s, pid %s%s%.63s%s",
             party->command[0] ? party->command : "a program", party->user[0] ? party->user : "?",
             party->host[0] ? party->host : "?", party->pid[0] ? party->pid : "?",
             party->label[0] ? " (" : "", party->label, party->label[0] ? ")" : "");
    put_printable(out, room, text);
}

void holder_info_parse(const char *info, struct rlock_party *party)
{
    *party = (struct rlock_party){.since_ms = 0};
    get_word(info, "host", party->host, sizeof party->host);
    get_word(info, "user", party->user, sizeof party->user);
    get_word(info, "pid", party->pid, sizeof party->pid);
    get_word(info, "command", party->command, sizeof party->command);
    get_word(info, "label", party->label, sizeof party->label);
    party->since_ms = get_number(info, "since", 0);
    party->slot = get_number(info, "slot", -1);
    party->ttl_ms = get_number(info, "ttl", 0);
    put_party(party->text, sizeof party->text, party);
}

void holder_info_parse_lock(const char *lock, struct rlock_party *holder)
{
    char text[64];

    holder_info_parse(holder_info_is_rlock(lock) ? lock : "", holder);
    if (holder_info_is_rlock(lock))
        return;
    put_printable(text, sizeof text, holder_info_without_token(lock));
    snprintf(holder->text, sizeof holder->text, "another program (\"%s\")", text);
}
