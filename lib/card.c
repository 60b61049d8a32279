/* SPDX-License-Identifier: MIT */
/* card: who holds a lock, as one line of words behind the token. */
#include "card.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 160

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

void card_write(char card[CARD_BYTES], const struct rlock_holder *holder)
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
    put_word(at, "label", holder->label);
    if (card[0] == ' ')
        memmove(card, card + 1, strlen(card));
}

/* The value of one word of a card, as it was meant; "" if it isn't there. */
static void get_word(const char *card, const char *name, char *out, size_t room)
{
    char start[16];
    const char *at;

    size_t used = 0;
    unsigned byte;

    snprintf(start, sizeof start, " %s=", name);
    at = strstr(card, start);
    at = at == NULL ? "" : at + strlen(start);
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

void card_describe(char *out, size_t room, const char *value)
{
    char host[64];
    char user[64];
    char pid[24];
    char command[64];
    char label[64];
    char text[320];

    if (!is_ours(value)) {
        if (starts_with_token(value)) /* of ours, so never shown, whatever comes behind it */
            value += RLOCK_TOKEN_BYTES + 1;
        put_printable(text, 64, value);
        snprintf(out, room, "another program (\"%s\")", text);
        return;
    }
    get_word(value, "host", host, sizeof host);
    get_word(value, "user", user, sizeof user);
    get_word(value, "pid", pid, sizeof pid);
    get_word(value, "command", command, sizeof command);
    get_word(value, "label", label, sizeof label);
    snprintf(text, sizeof text, "%s of %s@%s, pid %s%s%s%s", *command ? command : "a program",
             *user ? user : "?", *host ? host : "?", *pid ? pid : "?", *label ? " (" : "", label,
             *label ? ")" : "");
    put_printable(out, room, text);
}

int64_t card_since(const char *value)
{
    char since[24];
    char *end;
    long long ms;

    if (!is_ours(value))
        return 0;
    get_word(value, "since", since, sizeof since);
    errno = 0;
    ms = strtoll(since, &end, 10);
    return errno == 0 && *end == '\0' && ms > 0 ? ms : 0;
}
