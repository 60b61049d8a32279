/* SPDX-License-Identifier: MIT */
/* server_info: the fields of a server's INFO, and which run of which server it tells of. */
#ifndef SERVER_INFO_H
#define SERVER_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * server_info_text, server_info_number: the value of the field `name`, from lines of "NAME:VALUE".
 *
 *   info  the reply to INFO, whatever it is; NULL or "": it has no fields
 *
 * server_info_text copies it, cut to `room` bytes and made printable; false, and "": no such
 * field. server_info_number returns `none` where there is no such field, or no number in it: digits
 * only, up to INT64_MAX.
 */
bool server_info_text(const char *info, const char *name, char *out, size_t room);
int64_t server_info_number(const char *info, const char *name, int64_t none);

/* One run of a server: a server that was restarted has another one. */
struct server_identity {
    char run_id[48];    /* "": the server hasn't told it */
    int64_t started_ms; /* on rlock_clock_ms(): when the server started, at the latest */
};

/* server_identity_read: from a reply to INFO that has just come. */
void server_identity_read(struct server_identity *identity, const char *info);

#endif
