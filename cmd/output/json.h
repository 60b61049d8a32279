/* SPDX-License-Identifier: MIT */
/* json: write one JSON object into a buffer. */
#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdint.h>

/* The most bytes that one byte of a string needs in JSON: \\u00XX. */
#define JSON_BYTES_EACH 6

struct json {
    char *text;  /* the buffer, borrowed; it always ends in a NUL */
    size_t room; /* bytes of the buffer */
    size_t used; /* bytes of the text, without the NUL */
};

/*
 * json_begin, then members, then json_end, which adds "}" and a newline. A member that has no room
 * is left out whole, so the line is always an object.
 */
void json_begin(struct json *json, char *text, size_t room);
void json_string(struct json *json, const char *name, const char *value);
void json_number(struct json *json, const char *name, int64_t value);
void json_unsigned(struct json *json, const char *name, uint64_t value);
void json_end(struct json *json);

#endif
