/* SPDX-License-Identifier: MIT */
/* json: write one JSON object into a buffer. */
#ifndef JSON_H
#define JSON_H

#include <rlock_admin.h>
#include <stddef.h>

/* One byte of a string becomes at most 6 bytes of JSON: \\u00XX, for a control character. */
#define JSON_BYTES_EACH 6

struct json {
    char *text;  /* the caller's buffer; the text in it always ends in a NUL */
    size_t room; /* the size of the buffer in bytes */
    size_t used; /* the length of the text in bytes, without the NUL */
};

/*
 * To write an object, call json_begin, then json_string, json_number or another function for each
 * member, then json_end, which adds "}" and a newline. If the buffer has no room for a member, the
 * whole member is left out, so that the text is a valid object.
 */
void json_begin(struct json *json, char *text, size_t room);
void json_string(struct json *json, const char *name, const char *value);
void json_number(struct json *json, const char *name, int64_t value);
void json_unsigned(struct json *json, const char *name, uint64_t value);
void json_end(struct json *json);

/* json_time: add a time, in ms since 1970, as a string in the form of RFC 3339, in UTC. */
void json_time(struct json *json, const char *name, int64_t unix_ms);

/*
 * json_party: add an object with what is known of a holder or a waiter. `for_name` names the member
 * for the length of the hold or the wait so far; NULL: leave that member out, and "renewed_at".
 * json_party_members: only add the members, to an object that the caller has begun.
 */
void json_party(struct json *json, const char *name, const struct rlock_party *party,
                const char *for_name);
void json_party_members(struct json *json, const struct rlock_party *party, const char *for_name);

#endif
