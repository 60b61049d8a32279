/* SPDX-License-Identifier: MIT */
/* json: write one JSON object into a buffer. */
#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdint.h>

/*
 * The most bytes that one byte of a string becomes in JSON: that of a control character, \\u00XX.
 */
#define JSON_BYTES_EACH 6

struct json {
    char *text;  /* the caller's buffer; the text in it always ends in a NUL */
    size_t room; /* the size of the buffer in bytes */
    size_t used; /* the length of the text in bytes, without the NUL */
};

/*
 * How to use them: json_begin, then the members, then json_end, which adds "}" and a newline. If
 * the buffer has no room for a member, that member is left out as a whole; so the text is always a
 * valid object.
 */
void json_begin(struct json *json, char *text, size_t room);
void json_string(struct json *json, const char *name, const char *value);
void json_number(struct json *json, const char *name, int64_t value);
void json_unsigned(struct json *json, const char *name, uint64_t value);
void json_end(struct json *json);

#endif
