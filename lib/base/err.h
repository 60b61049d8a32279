/* SPDX-License-Identifier: MIT */
/* err: fill a struct rlock_error. */
#ifndef ERR_H
#define ERR_H

#include "rlock.h"

/*
 * Between the functions of the library: not finished yet, call again. Never returned by a call of
 * rlock.h, whose enum leaves this value out.
 */
#define RLOCK_PENDING ((enum rlock_status)1)

/*
 * err_set: fill `err` (NULL: don't) and return `status`, so that a function fails with
 * `return err_set(...)`. The reason becomes RLOCK_REASON_NONE. `sys` is an errno, whose text is
 * appended, or 0.
 */
enum rlock_status err_set(struct rlock_error *err, enum rlock_status status, int sys,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/* err_set_reason: what a program may decide by, after err_set(). `err` may be NULL. */
void err_set_reason(struct rlock_error *err, enum rlock_reason reason);

/* err_make_printable: replace all but printable ASCII by '?', in place: a server's bytes may be
 * escape sequences for a terminal. */
void err_make_printable(char *text);

/*
 * err_escape: other people's bytes as printable ASCII, with \xNN for all other bytes and for
 * backslashes. What has no place in `room` bytes is cut between two characters, and "..." added.
 */
void err_escape(char *out, size_t room, const char *bytes);

/* err_escape_text: the same, but a backslash stays: what is foreign in it was escaped before. */
void err_escape_text(char *out, size_t room, const char *text);

/* err_prefix: make the text "where: text"; err_suffix: make it "text; and". `err` may be NULL. */
void err_prefix(struct rlock_error *err, const char *where);
void err_suffix(struct rlock_error *err, const char *and);

/*
 * err_copy_masked: copy the first room - 1 bytes of a text, with asterisks in place of a secret and
 * of a beginning of it that has at least 8 bytes. With a secret of NULL or "" nothing is masked.
 */
void err_copy_masked(char *out, size_t room, const char *text, const char *secret);

#endif
