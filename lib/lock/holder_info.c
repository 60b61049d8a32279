/* SPDX-License-Identifier: MIT */
/* holder_info: writes and parses the text that tells who a holder or waiter is. */
#include "lock/holder_info.h"

#include "base/err.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 160                 /* most bytes of a word's value, with its escapes */
#define PART_BYTES 63                 /* most bytes of one value that a text for people shows */
#define NUMBER_MAX (INT64_C(1) << 53) /* Lua's numbers are exact up to here */

static bool is_plain(unsigned char c)
{
    return c > ' ' && c < 0x7f && c != '%';
}

static size_t put_escaped(char *at, const char *value)
{
    size_t used = 0;
    unsigned char c;

    while ((c = (unsigned char)*value++) != '\0' && used + (is_plain(c) ? 1 : 3) <= VALUE_MAX)
        used += (size_t)sprintf(at + used, is_plain(c) ? "%c" : "%%%02X", c);
    return used;
}

static size_t put_word(char *at, const char *name, const char *value)
{
    size_t used;

    if (value == NULL || value[0] == '\0')
        return 0;
    used = (size_t)sprintf(at, " %s=", name);
    return used + put_escaped(at + used, value);
}

void holder_info_write(char info[HOLDER_INFO_BYTES], const struct rlock_holder *holder,
                       int64_t history)
{
    char entries[24] = "";
    char pid[24] = "";
    char hold[24] = "";
    char *at = info;

    if (holder->pid != 0)
        snprintf(pid, sizeof pid, "%lld", (long long)holder->pid);
    if (history != 0)
        snprintf(entries, sizeof entries, "%lld", (long long)history);
    if (holder->hold_ms > 0)
        snprintf(hold, sizeof hold, "%lld", (long long)holder->hold_ms);
    *at = '\0';
    at += put_word(at, "history", entries);
    at += put_word(at, "host", holder->host);
    at += put_word(at, "pid", pid);
    at += put_word(at, "user", holder->user);
    at += put_word(at, "command", holder->command);
    at += put_word(at, "label", holder->label);
    at += put_word(at, "kept", holder->has_renewer ? "1" : NULL);
    put_word(at, "hold", hold);
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

void holder_info_word(const char *info, const char *name, char *out, size_t room)
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

static bool starts_with_token(const char *value)
{
    return strspn(value, "0123456789abcdef") == RLOCK_TOKEN_BYTES &&
           value[RLOCK_TOKEN_BYTES] == ' ';
}

bool holder_info_is_rlock(const char *lock)
{
    return starts_with_token(lock) && strncmp(lock + RLOCK_TOKEN_BYTES, " v1 ", 4) == 0;
}

enum rlock_seen holder_info_seen(const char *lock)
{
    static const struct {
        const char *mode;
        enum rlock_seen seen;
    } modes[] = {{"shared", RLOCK_SEEN_SHARED},
                 {"slots", RLOCK_SEEN_SLOTS},
                 {"rest", RLOCK_SEEN_REST},
                 {"done", RLOCK_SEEN_DONE}};
    static const char turn[] = " v1 try=0 "; /* the same as TURN in lib/lua/shared/constants.lua */
    size_t i;

    if (!holder_info_is_rlock(lock))
        return RLOCK_SEEN_FOREIGN;
    if (strncmp(lock + RLOCK_TOKEN_BYTES, turn, sizeof turn - 1) == 0)
        return RLOCK_SEEN_KEPT;
    for (i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (holder_info_has(lock, "mode", modes[i].mode))
            return modes[i].seen;
    if (strspn(lock, "0") < RLOCK_TOKEN_BYTES)
        return RLOCK_SEEN_EXCLUSIVE;
    return holder_info_has(lock, "slot", "") ? RLOCK_SEEN_SHARED : RLOCK_SEEN_SLOTS;
}

const char *holder_info_without_token(const char *lock)
{
    return starts_with_token(lock) ? lock + RLOCK_TOKEN_BYTES + 1 : lock;
}

bool holder_info_has(const char *info, const char *name, const char *value)
{
    char found[VALUE_MAX + 1];

    holder_info_word(info, name, found, sizeof found);
    return strcmp(found, value) == 0;
}

void holder_info_members_hash(const char *info, char *hash, size_t room)
{
    holder_info_word(info, "members", hash, room);
}

int64_t holder_info_number(const char *info, const char *name, int64_t otherwise)
{
    char text[24];
    int64_t number;
    char *end;

    holder_info_word(info, name, text, sizeof text);
    number = strtoll(text, &end, 10);
    return *text != '\0' && *end == '\0' && number >= 0 && number <= NUMBER_MAX ? number
                                                                                : otherwise;
}

/*
 * Writes a text for people about a holder or waiter: "tar of backup@web1, pid 42 (nightly)". A
 * person that holds the lock without a process is "ann on build1 (incident 42)".
 */
static void put_party(char *out, size_t room, const struct rlock_party *party)
{
    const char *parts[] = {party->command[0] ? party->command : "a program",
                           party->user[0] ? party->user : "?", party->host[0] ? party->host : "?",
                           party->label};
    char part[4][PART_BYTES + 1];
    char label[PART_BYTES + 4];
    char text[320];
    size_t i;

    for (i = 0; i < 4; i++)
        snprintf(part[i], sizeof part[i], "%.*s", (int)utf8_cut_bytes(parts[i], PART_BYTES),
                 parts[i]);
    snprintf(label, sizeof label, "%s%s%s", *part[3] ? " (" : "", part[3], *part[3] ? ")" : "");
    if (party->hold_ms > 0)
        snprintf(text, sizeof text, "%s on %s%s", part[1], part[2], label);
    else
        snprintf(text, sizeof text, "%s of %s@%s, pid %s%s", part[0], part[1], part[2],
                 party->pid[0] ? party->pid : "?", label);
    err_escape(out, room, text);
}

void holder_info_parse(const char *info, struct rlock_party *party)
{
    *party = (struct rlock_party){.renewed_ms = -1};
    holder_info_word(info, "host", party->host, sizeof party->host);
    holder_info_word(info, "user", party->user, sizeof party->user);
    holder_info_word(info, "pid", party->pid, sizeof party->pid);
    holder_info_word(info, "command", party->command, sizeof party->command);
    holder_info_word(info, "label", party->label, sizeof party->label);
    party->since_ms = holder_info_number(info, "since", 0);
    party->slot = holder_info_number(info, "slot", -1);
    party->ttl_ms = holder_info_number(info, "ttl", 0);
    party->has_renewer = holder_info_has(info, "kept", "1");
    party->hold_ms = holder_info_number(info, "hold", 0);
    if (party->hold_ms > RLOCK_TTL_MAX_MS) /* rlock writes no hold of this length */
        party->hold_ms = 0;
    put_party(party->text, sizeof party->text, party);
}

void holder_info_put_user(char *out, size_t room, const struct rlock_party *party)
{
    char text[4 * sizeof party->label];

    snprintf(text, sizeof text, "%s@%s, pid %s%s%s", party->user[0] ? party->user : "?",
             party->host[0] ? party->host : "?", party->pid[0] ? party->pid : "?",
             party->label[0] ? ": " : "", party->label);
    err_escape(out, room, text);
}

void holder_info_set_times(struct rlock_party *party, int64_t now_ms, int64_t left_ms)
{
    party->for_ms = party->since_ms > 0 && now_ms > party->since_ms ? now_ms - party->since_ms : 0;
    if (party->hold_ms > 0 && left_ms >= 0) {
        party->hold_left_ms = party->hold_ms - party->for_ms;
        if (party->hold_left_ms < left_ms)
            party->hold_left_ms = left_ms;
    }
    if (party->since_ms == 0 || party->ttl_ms == 0 || left_ms < 0 || left_ms > party->ttl_ms)
        return;
    /*
     * Of a person's lease without a renewer renewed_ms stays -1: most often the only renewal came
     * right after the grant, to make the lease as long as the hold.
     */
    if (party->hold_ms > 0 && !party->has_renewer)
        return;
    party->renewed_ms = party->ttl_ms - left_ms;
    if (party->renewed_ms > party->for_ms)
        party->renewed_ms = party->for_ms;
}

/* Is this the value of a lock of --protocol timestamp, a time in seconds or milliseconds? */
static bool is_time(const char *value)
{
    return strlen(value) >= 10 && value[strspn(value, "0123456789.")] == '\0';
}

void holder_info_parse_lock(const char *lock, struct rlock_party *holder)
{
    char text[64];

    holder_info_parse(holder_info_is_rlock(lock) ? lock : "", holder);
    if (holder_info_is_rlock(lock))
        return;
    err_escape(text, sizeof text, holder_info_without_token(lock));
    snprintf(holder->text, sizeof holder->text, "another program (\"%s\", %s)", text,
             is_time(text) ? "a time, as --protocol timestamp writes"
                           : "the key's value, not written by rlock");
}
