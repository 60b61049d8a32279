/* SPDX-License-Identifier: MIT */
/*
 * json: write one JSON object into a buffer.
 *
 * A string may have any bytes, as a key does. Bytes that are not UTF-8 become U+FFFD, as JSON must
 * be UTF-8 (RFC 8259, sections 7 and 8.1). Control and format characters are escaped, so that a
 * terminal neither acts on them nor hides them; all other characters are written as they are.
 */
#include "output/json.h"

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

/*
 * The length in bytes of the UTF-8 sequence (RFC 3629) at the start of `at`; 0: these bytes are not
 * valid UTF-8.
 */
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
        low = 0xa0; /* a smaller second byte would be an overlong form */
    if (at[0] == 0xf0)
        low = 0x90;
    if (at[0] == 0xed)
        high = 0x9f; /* a greater second byte would be a surrogate */
    if (at[0] == 0xf4)
        high = 0x8f; /* a greater second byte would be above U+10FFFF */
    for (i = 1; i < n; i++) {
        if (at[i] < low || at[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return n;
}

/*
 * The code points to escape: control characters, also those above ASCII, since a terminal takes
 * U+009B for the start of an escape sequence; format characters (category Cf of Unicode 15.1),
 * which are invisible or reverse the direction of text; and U+2028 and U+2029, which some programs
 * take for the end of a line.
 */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x600, 0x605},
    {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
    {0x8e2, 0x8e2},     {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},
    {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0001, 0xe007f},
};

static bool is_hidden(uint32_t code)
{
    size_t i;

    for (i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (code >= hidden[i].first && code <= hidden[i].last)
            return true;
    return false;
}

/* The code point that a valid sequence of n bytes encodes. */
static uint32_t code_of(const unsigned char *at, size_t n)
{
    uint32_t code = n == 1 ? at[0] : at[0] & (0x7fU >> n);
    size_t i;

    for (i = 1; i < n; i++)
        code = code << 6 | (at[i] & 0x3fU);
    return code;
}

/*
 * Write a code point as \\uXXXX; if it is above U+FFFF, as a surrogate pair (RFC 8259, section 7).
 */
static bool put_escaped(struct json *json, uint32_t code)
{
    if (code < 0x10000)
        return put_format(json, "\\u%04x", (unsigned)code);
    code -= 0x10000;
    return put_format(json, "\\u%04x\\u%04x", (unsigned)(0xd800 | code >> 10),
                      (unsigned)(0xdc00 | (code & 0x3ff)));
}

/*
 * Write the first character of `value`. Returns how many bytes of `value` that character has; 0:
 * the buffer has no room.
 */
static size_t put_character(struct json *json, const char *value)
{
    const unsigned char *at = (const unsigned char *)value;
    size_t n;

    if (*at == '"' || *at == '\\')
        return put_format(json, "\\%c", *at) ? 1 : 0;
    n = *at < 0x80 ? 1 : sequence(at);
    if (n == 0)
        return put(json, "\\ufffd", 6) ? 1 : 0;
    if (is_hidden(code_of(at, n)))
        return put_escaped(json, code_of(at, n)) ? n : 0;
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

/* If the buffer had no room for the whole member, remove the part that was written. */
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
