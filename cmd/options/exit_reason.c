/* SPDX-License-Identifier: MIT */
/* exit_reason: why rlock ended, and the events that its messages report: names and statuses. */
#include "options/exit_reason.h"

#define TABLE_ROW(constant, ...) [constant] = {__VA_ARGS__},

static const struct exit_reason_row rows[EXIT_REASONS] = {EXIT_REASON_ROWS(TABLE_ROW)};

const struct exit_reason_row *exit_reason_row(enum exit_reason reason)
{
    return &rows[reason];
}

int exit_reason_status(enum exit_reason reason)
{
    return reason == REASON_GRANTED ? 0 : rows[reason].status;
}

enum exit_reason exit_reason_of(enum rlock_status status)
{
    switch (status) {
    case RLOCK_OK:
        return REASON_GRANTED;
    case RLOCK_BUSY:
        return REASON_BUSY;
    case RLOCK_TIMEOUT:
        return REASON_TIMEOUT;
    case RLOCK_STOPPED:
        return REASON_INTERRUPTED;
    case RLOCK_LOST:
    case RLOCK_GONE:
    case RLOCK_RELEASED:
        return REASON_LOST;
    case RLOCK_SUPERSEDED:
        return REASON_SUPERSEDED;
    case RLOCK_DONE:
        return REASON_DONE;
    case RLOCK_E_USAGE:
        return REASON_USAGE;
    case RLOCK_E_UNREACHABLE:
    case RLOCK_E_PROTOCOL:
    case RLOCK_E_SERVER:
    case RLOCK_E_NO_QUORUM:
    case RLOCK_E_REPLICAS:
        return REASON_UNREACHABLE;
    case RLOCK_E_REFUSED:
        return REASON_REFUSED;
    case RLOCK_E_CONFIG:
    case RLOCK_E_UNSUPPORTED:
        return REASON_MISCONFIGURED;
    case RLOCK_E_MEMORY:
    case RLOCK_E_SYSTEM:
        return REASON_SYSTEM;
    }
    return REASON_SYSTEM;
}

/* ---- events ---- */

#define NAME(constant, name) [constant] = (name),

static const char *const names[EVENTS] = {EVENT_NAMES(NAME)};

enum event event_of_reason(enum exit_reason reason)
{
    return (enum event)reason;
}

const char *event_name(enum event event)
{
    return (int)event < EXIT_REASONS ? exit_reason_row((enum exit_reason)event)->name
                                     : names[event];
}
