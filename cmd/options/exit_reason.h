/* SPDX-License-Identifier: MIT */
/* exit_reason: why rlock ended: the name, the exit status and the meaning of each reason. */
#ifndef EXIT_REASON_H
#define EXIT_REASON_H

#include <rlock.h>

enum exit_reason {
    /* the command ended by itself, and rlock held the lock until then; or the verb succeeded */
    REASON_GRANTED,
    REASON_DONE,
    REASON_MAX_HOLD,
    REASON_NOT_EXECUTABLE,
    REASON_NOT_FOUND,
    REASON_INTERRUPTED, /* a signal ended rlock before the command was started */
    REASON_USAGE,
    REASON_UNREACHABLE,
    REASON_SYSTEM,
    REASON_BUSY, /* -n: the lock is not free; status: a lock is taken; break: not broken */
    REASON_TIMEOUT,
    REASON_SUPERSEDED,
    REASON_LOST,
    REASON_NOT_YOURS,
    REASON_REFUSED,
    REASON_MISCONFIGURED
};

#define EXIT_REASONS (REASON_MISCONFIGURED + 1)

struct exit_reason_row {
    const char *name; /* as messages and reports print it: "busy" */
    /* the exit status; -1: the command's own status, or 128 + N if signal N ended the program */
    int status;
    const char *meaning; /* what --help prints beside the status */
};

/* exit_reason_row: returns the name, status and meaning of a reason; never NULL. */
const struct exit_reason_row *exit_reason_row(enum exit_reason reason);

/*
 * exit_reason_status: returns the status to exit with if rlock ran no command; 0 for
 * REASON_GRANTED.
 */
int exit_reason_status(enum exit_reason reason);

/* exit_reason_of: returns the exit reason that belongs to a status which the library returned. */
enum exit_reason exit_reason_of(enum rlock_status status);

#endif
