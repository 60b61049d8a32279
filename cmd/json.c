/* SPDX-License-Identifier: MIT */
/*
 * json: write one object into a buffer.
 *
 * Strings come from anywhere: what is not UTF-8 becomes U+FFFD, so that the
 * line is JSON whatever bytes a key has (RFC 8259, sections 7 and 8.1).
 */
#include "json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define END_BYTES 3 /* "}\n" and the NUL */

static bool put(struct json *json, const char *bytes, size_t n)
{
    if (json->used + n + END_BYTES > json->room)
        return false;
    memcpy(json->text + json->used, bytes, n);
    json->used += n;
    json->text[json->used] = '\0';
    return true;
}

static bool put_format(struct json *json, const char *format, ...)
{
    char text[48];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return n >= 0 && (size_t)n < sizeof text && put(json, text, (size_t)n);
}

/* The length of the UTF-8 sequence at `at`, 0 if there is none (RFC 3629). */
static size_t sequence(const unsigned char *at)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t n;
    size_t i;

    if (at[0] >= 0xc2 && at[0] <= 0xdf)
        n = 2;
    else if (at[0] >= 0xe0 && at[0] <= 0xef)
        n = 3;
    else if (at[0] >= 0xf0 && at[0] <= 0xf4)
        n = 4;
    else
        return 0;
    if (at[0] == 0xe0)
        low = 0xa0; /* no overlong forms */
    if (at[0] == 0xf0)
        low = 0x90;
    if (at[0] == 0xed)
        high = 0x9f; /* no surrogates */
    if (at[0] == 0xf4)
        high = 0x8f; /* nothing above U+10FFFF */
    for (i = 1; i < n; i++) {
        if (at[i] < low || at[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return n;
}

/* One character; returns the bytes it took of the value, 0 when there is no room. */
static size_t put_character(struct json *json, const char *value)
{
    const unsigned char *at = (const unsigned char *)value;
    size_t n;

    if (*at == '"' || *at == '\\')
        return put_format(json, "\\%c", *at) ? 1 : 0;
    if (*at < ' ' || *at == 0x7f)
        return put_format(json, "\\u%04x", *at) ? 1 : 0;
    if (*at < 0x80)
        return put(json, value, 1) ? 1 : 0;
    n = sequence(at);
    if (n == 0)
        return put(json, "\\ufffd", 6) ? 1 : 0;
    return put(json, value, n) ? n : 0;
}

static bool put_string(struct json *json, const char *value)
{
    size_t n = 1;

    if (!put(json, "\"", 1))
        return false;
    while (*value != '\0' && n > 0) {
        n = put_character(json, value);
        value += n;
    }
    return n > 0 && put(json, "\"", 1);
}

static bool put_name(struct json *json, const char *name)
{
    const char *comma = json->used > 1 ? "," : "";

    return put(json, comma, strlen(comma)) && put_string(json, name) && put(json, ":", 1);
}

/* A member that didn't fit is taken back to where it began. */
static void keep_if(struct json *json, bool whole, size_t before)
{
    if (whole)
        return;
    json->used = before;
    json->text[before] = '\0';
}

void json_begin(struct json *json, char *text, size_t room)
{
    *json = (struct json){.text = text, .room = room};
    put(json, "{", 1);
}

void json_string(struct json *json, const char *name, const char *value)
{
    size_t before = json->used;

    keep_if(json, put_name(json, name) && put_string(json, value), before);
}

void json_number(struct json *json, const char *name, int64_t value)
{
    size_t before = json->used;

    keep_if(json, put_name(json, name) && put_format(json, "%" PRId64, value), before);
}

void json_unsigned(struct json *json, const char *name, uint64_t value)
{
    size_t before = json->used;

    keep_if(json, put_name(json, name) && put_format(json, "%" PRIu64, value), before);
}

void json_end(struct json *json)
{
    memcpy(json->text + json->used, "}\n", END_BYTES);
    json->used += END_BYTES - 1;
}
