/* SPDX-License-Identifier: MIT */
/* holder_info: who holds a lock, as one line of words behind the token. */
#include "lock/holder_info.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 160
#define NUMBER_MAX (INT64_C(1) << 53)

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

void holder_info_write(char card[HOLDER_INFO_BYTES], const struct rlock_holder *holder)
{
    char pid[24] = "";
    char *at = card;

    if (holder->pid != 0)
        snprintf(pid, sizeof pid, "%lld", (long long)holder->pid);
    *at = '\0';
    at += put_word(at, "host", holder->host);
    at += put_word(at, "pid", pid);
    at += put_word(at, "user", holder->user);
    at += put_word(at, "command", holder->command);
    at += put_word(at, "label", holder->label);
    put_word(at, "kept", holder->has_renewer ? "1" : NULL);
    if (card[0] == ' ')
        memmove(card, card + 1, strlen(card));
}

/* Where the value of a word of a holder info begins; "" if it isn't there. */
static const char *find_word(const char *card, const char *name)
{
    size_t n = strlen(name);
    const char *at = card;

    while ((at = strchr(at, ' ')) != NULL)
        if (strncmp(++at, name, n) == 0 && at[n] == '=')
            return at + n + 1;
    return "";
}

/* The same value, as it was meant. */
static void get_word(const char *card, const char *name, char *out, size_t room)
{
    const char *at = find_word(card, name);
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

/* Is it "TOKEN v1 ...", as our scripts write it? */
static bool is_ours(const char *value)
{
    return starts_with_token(value) && strncmp(value + RLOCK_TOKEN_BYTES, " v1 ", 4) == 0;
}

bool holder_info_is_ours(const char *value)
{
    return is_ours(value);
}

const char *holder_info_without_token(const char *value)
{
    return starts_with_token(value) ? value + RLOCK_TOKEN_BYTES + 1 : value;
}

bool holder_info_has(const char *value, const char *name, const char *word)
{
    char found[VALUE_BYTES];

    get_word(value, name, found, sizeof found);
    return strcmp(found, word) == 0;
}

void holder_info_list(const char *value, char *out, size_t room)
{
    get_word(value, "members", out, room);
}

/* The value of a word that is a number; `none` if it isn't, or out of all bounds. */
static int64_t number_in(const char *card, const char *name, int64_t none)
{
    char text[24];
    int64_t number;
    char *end;

    get_word(card, name, text, sizeof text);
    number = strtoll(text, &end, 10);
    return *text != '\0' && *end == '\0' && number >= 0 && number <= NUMBER_MAX ? number : none;
}

/* "tar of backup@web1, pid 42 (nightly)" */
static void put_party(char *out, size_t room, const struct rlock_party *party)
{
    char text[320];

    snprintf(text, sizeof text, "%.63s of %.63s@%.63s, pid %s%s%.63s%s",
             party->command[0] ? party->command : "a program", party->user[0] ? party->user : "?",
             party->host[0] ? party->host : "?", party->pid[0] ? party->pid : "?",
             party->label[0] ? " (" : "", party->label, party->label[0] ? ")" : "");
    put_printable(out, room, text);
}

void holder_info_read(const char *value, struct rlock_party *party)
{
    *party = (struct rlock_party){.since_ms = 0};
    get_word(value, "host", party->host, sizeof party->host);
    get_word(value, "user", party->user, sizeof party->user);
    get_word(value, "pid", party->pid, sizeof party->pid);
    get_word(value, "command", party->command, sizeof party->command);
    get_word(value, "label", party->label, sizeof party->label);
    party->since_ms = number_in(value, "since", 0);
    party->slot = number_in(value, "slot", -1);
    party->ttl_ms = number_in(value, "ttl", 0);
    put_party(party->text, sizeof party->text, party);
}

void holder_info_holder(const char *value, struct rlock_party *holder)
{
    char text[64];

    holder_info_read(is_ours(value) ? value : "", holder);
    if (is_ours(value))
        return;
    put_printable(text, sizeof text, holder_info_without_token(value));
    snprintf(holder->text, sizeof holder->text, "another program (\"%s\")", text);
}
