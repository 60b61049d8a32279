/* SPDX-License-Identifier: MIT */
/*
 * json: write one JSON object into a buffer.
 *
 * A string may have any bytes, as a key does. Bytes that are not UTF-8 become U+FFFD, as JSON must
 * be UTF-8 (RFC 8259, sections 7 and 8.1). Control and format characters are escaped, so that a
 * terminal neither acts on them nor hides them; all other characters are written as they are.
 */
#include "output/json.h"

#include "base/utf8.h"
#include "output/wall_time.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Write a code point as \\uXXXX; above U+FFFF as a surrogate pair (RFC 8259, section 7). */
static bool put_escaped(struct json *json, uint32_t code)
{
    if (code < 0x10000)
        return put_format(json, "\\u%04x", (unsigned)code);
    code -= 0x10000;
    return put_format(json, "\\u%04x\\u%04x", (unsigned)(0xd800 | code >> 10),
                      (unsigned)(0xdc00 | (code & 0x3ff)));
}

/* Write the first character of `value`. Returns its length in bytes; 0: the buffer has no room. */
static size_t put_character(struct json *json, const char *value)
{
    size_t n;

    if (*value == '"' || *value == '\\')
        return put_format(json, "\\%c", *value) ? 1 : 0;
    n = utf8_bytes(value);
    if (n == 0)
        return put(json, "\\ufffd", 6) ? 1 : 0;
    if (utf8_is_hidden(utf8_code(value, n)))
        return put_escaped(json, utf8_code(value, n)) ? n : 0;
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
    const char *comma = json->text[json->used - 1] != '{' ? "," : "";

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

void json_time(struct json *json, const char *name, int64_t unix_ms)
{
    char text[WALL_TIME_BYTES];

    wall_time_utc(text, unix_ms);
    json_string(json, name, text);
}

static void string_if_known(struct json *json, const char *name, const char *value)
{
    if (*value != '\0')
        json_string(json, name, value);
}

void json_party_members(struct json *json, const struct rlock_party *party, const char *for_name)
{
    char *end;
    int64_t pid = strtoll(party->pid, &end, 10);

    string_if_known(json, "host", party->host);
    if (party->pid[0] != '\0' && *end == '\0')
        json_number(json, "pid", pid);
    string_if_known(json, "user", party->user);
    string_if_known(json, "command", party->command);
    string_if_known(json, "label", party->label);
    if (party->since_ms > 0) {
        json_time(json, "since", party->since_ms);
        if (for_name != NULL)
            json_number(json, for_name, party->for_ms);
        if (for_name != NULL && party->renewed_ms >= 0)
            json_time(json, "renewed_at", party->since_ms + party->for_ms - party->renewed_ms);
    }
    if (party->since_ms > 0 && party->hold_left_ms > 0)
        json_time(json, "until", party->since_ms + party->for_ms + party->hold_left_ms);
    if (party->left_ms > 0)
        json_number(json, "left_ms", party->left_ms);
    if (party->slot >= 0)
        json_number(json, "slot", party->slot);
}

void json_party(struct json *json, const char *name, const struct rlock_party *party,
                const char *for_name)
{
    size_t before = json->used;

    json->room--; /* for the "}" of the inner object */
    if (!put_name(json, name) || !put(json, "{", 1))
        keep_if(json, false, before);
    else
        json_party_members(json, party, for_name);
    json->room++;
    if (json->used > before)
        put(json, "}", 1);
}

void json_end(struct json *json)
{
    memcpy(json->text + json->used, "}\n", END_BYTES);
    json->used += END_BYTES - 1;
}
