/* SPDX-License-Identifier: MIT */
/* err: fills a struct rlock_error, and makes texts of a server fit to be shown. */
#ifndef ERR_H
#define ERR_H

#include "rlock.h"

/*
 * RLOCK_PENDING: the operation has not ended yet, and the caller has to call again. Only functions
 * inside the library return it. The calls of rlock.h never do, so enum rlock_status there has no
 * member for it.
 */
#define RLOCK_PENDING ((enum rlock_status)1)

/*
 * err_set: fill `err`, unless it is NULL, and return `status`, so that a function can fail by
 * `return err_set(...)`. Sets the reason to RLOCK_REASON_NONE. Appends the text of the errno `sys`,
 * unless `sys` is 0.
 */
enum rlock_status err_set(struct rlock_error *err, enum rlock_status status, int sys,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * err_set_reason: set the reason of a fault, which tells programs what to do about it. Call it
 * after err_set(), which resets the reason. `err` may be NULL.
 */
void err_set_reason(struct rlock_error *err, enum rlock_reason reason);

/*
 * err_make_printable: replace every byte that is not printable ASCII by '?', in place. Otherwise a
 * server could send escape sequences to the user's terminal.
 */
void err_make_printable(char *text);

/*
 * err_escape: copy a text of another program. Each byte of a backslash, of a hidden character or of
 * invalid UTF-8 becomes \xNN; other characters stay. If `out` (of `room` bytes) is too small, the
 * copy ends in "..." after a whole character or \xNN.
 */
void err_escape(char *out, size_t room, const char *bytes);

/* err_prefix: put "WHERE: " before the text. `err` may be NULL. */
void err_prefix(struct rlock_error *err, const char *where);

/*
 * err_add_said: put "; the server says: WORDS" after the text (without the "; " if the text is
 * empty). Sets err->said to where this part begins, so that a program can show its own advice
 * before the server's words.
 */
void err_add_said(struct rlock_error *err, const char *words);

/* err_suffix: put "; AND" after the text. `err` may be NULL. */
void err_suffix(struct rlock_error *err, const char *and);

/*
 * err_copy_masked: copy the first room - 1 bytes of a text, with asterisks in place of the secret
 * and of each beginning of the secret with at least 8 bytes. `secret` may be NULL or "".
 */
void err_copy_masked(char *out, size_t room, const char *text, const char *secret);

#endif
