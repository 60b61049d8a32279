/* SPDX-License-Identifier: MIT */
/* exit_reason: how a run ended: its name, its exit status, its meaning. */
#ifndef VERDICT_H
#define VERDICT_H

#include <rlock.h>

enum verdict {
    VERDICT_GRANTED, /* the command ran under a proven lease and ended by itself */
    VERDICT_DONE,
    VERDICT_MAX_HOLD,
    VERDICT_NOT_EXECUTABLE,
    VERDICT_NOT_FOUND,
    VERDICT_INTERRUPTED, /* a signal came before the command was started */
    VERDICT_USAGE,
    VERDICT_UNREACHABLE,
    VERDICT_SYSTEM,
    VERDICT_BUSY,
    VERDICT_TIMEOUT,
    VERDICT_SUPERSEDED,
    VERDICT_LOST,
    VERDICT_NOT_YOURS,
    VERDICT_REFUSED,
    VERDICT_MISCONFIGURED
};

#define VERDICT_COUNT (VERDICT_MISCONFIGURED + 1)

struct verdict_row {
    const char *name;
    int status; /* -1: not rlock's to choose */
    const char *meaning;
};

/* verdict_row: what there is to know about a verdict. */
const struct verdict_row *verdict_row(enum verdict verdict);

/* verdict_of: the verdict for what the library returned instead of a grant. */
enum verdict verdict_of(enum rlock_status status);

#endif
