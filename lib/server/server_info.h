/* SPDX-License-Identifier: MIT */
/* server_info: reads fields of a reply to INFO, such as the server's run_id and uptime. */
#ifndef SERVER_INFO_H
#define SERVER_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * server_info_text, server_info_number: the value of the field `name` in `info`, a reply to INFO
 * (NULL or "": without fields). The first copies it, cut to `room` bytes and made printable, or
 * sets `out` to "" and returns false. The second returns `none` if the field is missing or is no
 * decimal number from 0 to INT64_MAX.
 */
bool server_info_text(const char *info, const char *name, char *out, size_t room);
int64_t server_info_number(const char *info, const char *name, int64_t none);

/* Identifies one run of a server: after a restart both values are different. */
struct server_identity {
    char run_id[48]; /* "": the server has not sent its run_id */
    int64_t
        started_ms; /* the latest time at which the server may have started, on rlock_clock_ms() */
};

/* server_identity_read: fill `identity` from a reply to INFO that has just come. */
void server_identity_read(struct server_identity *identity, const char *info);

#endif
