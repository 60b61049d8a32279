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
 * err_set: write a fault where the fact is known, and return its status, so
 * that `return err_set(...)` is the whole of failing. `sys` is an errno, whose
 * text is appended, or 0. `err` may be NULL.
 */
enum rlock_status err_set(struct rlock_error *err, enum rlock_status status, int sys,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/* err_set_reason: what a program may decide by, after err_set(). `err` may be NULL. */
void err_set_reason(struct rlock_error *err, enum rlock_reason reason);

/* err_make_printable: foreign bytes in a text, made harmless in place. */
void err_make_printable(char *text);

/*
 * err_escape: other people's bytes as printable ASCII, with \xNN for all other bytes and for
 * backslashes. What has no place in `room` bytes is cut between two characters, and "..." added.
 */
void err_escape(char *out, size_t room, const char *bytes);

/* err_escape_text: the same, but a backslash stays: what is foreign in it was escaped before. */
void err_escape_text(char *out, size_t room, const char *text);

/* err_prefix: put "where: " before the text; err_suffix: put "; and" behind it. */
void err_prefix(struct rlock_error *err, const char *where);
void err_suffix(struct rlock_error *err, const char *and);

/* err_mask: asterisks for each time that a secret stands in a text; NULL: there is none. */
void err_mask(char *text, const char *secret);

#endif
