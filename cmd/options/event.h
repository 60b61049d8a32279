/* SPDX-License-Identifier: MIT */
/* event: the names of the events that messages report, such as "renewal-failed". */
#ifndef EVENT_H
#define EVENT_H

#include "options/exit_reason.h"

/*
 * Each enum exit_reason, which says why rlock ends, is an event with the same number and name. This
 * list repeats only the reasons that other files name as events; event_of_reason() converts the
 * others.
 */
enum event {
    EVENT_GRANTED = REASON_GRANTED,
    EVENT_DONE = REASON_DONE,
    EVENT_MAX_HOLD = REASON_MAX_HOLD,
    EVENT_BUSY = REASON_BUSY,
    EVENT_SYSTEM = REASON_SYSTEM,
    EVENT_LOST = REASON_LOST,
    EVENT_WAITING = EXIT_REASONS,
    EVENT_WAITING_LONG,
    EVENT_WARNING,
    EVENT_SERVER_UNREACHABLE,
    EVENT_SERVER_UNABLE,
    EVENT_NO_QUORUM,
    EVENT_TOO_FEW_REPLICAS,
    EVENT_SERVER_BACK,
    EVENT_RENEWED,
    EVENT_RENEWAL_FAILED,
    EVENT_RESTORED,
    EVENT_SIGNAL,
    EVENT_PAUSED,
    EVENT_RESUMED,
    EVENT_CANNOT_BE_ENDED,
    EVENT_GUARD_LOST,
    EVENT_NOT_RELEASED,
    EVENT_RELEASED,
    EVENT_ENDED,
    EVENT_BROKEN,
    EVENT_FREE,
    EVENT_NO_REPORT,
    EVENTS
};

/* event_of_reason: returns the event that tells that rlock ends for this reason. */
enum event event_of_reason(enum exit_reason reason);

/* event_name: the word for the event in messages, such as "renewal-failed". */
const char *event_name(enum event event);

#endif
