/* SPDX-License-Identifier: MIT */
/* json: write one object into a buffer. */
#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdint.h>

/* The longest form of one byte in a JSON string. */
#define JSON_BYTES_EACH 6

struct json {
    char *text; /* the caller's; always ends in a NUL */
    size_t room;
    size_t used;
};

/* json_begin .. json_end: an object; members that don't fit are left out whole. */
void json_begin(struct json *json, char *text, size_t room);
void json_string(struct json *json, const char *name, const char *value);
void json_number(struct json *json, const char *name, int64_t value);
void json_unsigned(struct json *json, const char *name, uint64_t value);
void json_end(struct json *json); /* "}" and a newline */

#endif
