/* SPDX-License-Identifier: MIT */
/* exit_reason: why rlock ended: the name, the exit status and the meaning of each reason. */
#ifndef EXIT_REASON_H
#define EXIT_REASON_H

#include <rlock.h>

enum exit_reason {
    REASON_GRANTED, /* success: the command ran under a proven lease and ended by itself */
    REASON_DONE,
    REASON_MAX_HOLD,
    REASON_NOT_EXECUTABLE,
    REASON_NOT_FOUND,
    REASON_INTERRUPTED, /* a signal came before the command was started */
    REASON_USAGE,
    REASON_UNREACHABLE,
    REASON_SYSTEM,
    REASON_BUSY,
    REASON_TIMEOUT,
    REASON_SUPERSEDED,
    REASON_LOST,
    REASON_NOT_YOURS,
    REASON_REFUSED,
    REASON_MISCONFIGURED
};

#define EXIT_REASONS (REASON_MISCONFIGURED + 1)

struct exit_reason_row {
    const char *name;    /* in messages and reports: "busy" */
    int status;          /* -1: the command's own status, or 128 + the number of a signal */
    const char *meaning; /* for --help */
};

/* exit_reason_row: the row of the table; its `status` is -1 where the table can't tell it. */
const struct exit_reason_row *exit_reason_row(enum exit_reason reason);

/* exit_reason_status: the status to exit with if no command ran: 0 for REASON_GRANTED. */
int exit_reason_status(enum exit_reason reason);

/* exit_reason_of: the exit reason for what a function of the library returned. */
enum exit_reason exit_reason_of(enum rlock_status status);

#endif
