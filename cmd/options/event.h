/* SPDX-License-Identifier: MIT */
/* event: the names of the events that messages report, such as "renewal-failed". */
#ifndef EVENT_H
#define EVENT_H

#include "options/exit_reason.h"

/* The events that are no reasons to exit, with their names: ROW(constant, name). */
#define EVENT_NAMES(ROW)                                \
    ROW(EVENT_WAITING, "waiting")                       \
    ROW(EVENT_WAITING_LONG, "waiting-long")             \
    ROW(EVENT_WARNING, "warning")                       \
    ROW(EVENT_SERVER_UNREACHABLE, "server-unreachable") \
    ROW(EVENT_SERVER_UNABLE, "server-unable")           \
    ROW(EVENT_NO_QUORUM, "no-quorum")                   \
    ROW(EVENT_TOO_FEW_REPLICAS, "too-few-replicas")     \
    ROW(EVENT_SERVER_BACK, "server-back")               \
    ROW(EVENT_RENEWED, "renewed")                       \
    ROW(EVENT_RENEWAL_FAILED, "renewal-failed")         \
    ROW(EVENT_RESTORED, "restored")                     \
    ROW(EVENT_SIGNAL, "signal")                         \
    ROW(EVENT_PAUSED, "paused")                         \
    ROW(EVENT_RESUMED, "resumed")                       \
    ROW(EVENT_CANNOT_BE_ENDED, "can't be ended")        \
    ROW(EVENT_GUARD_LOST, "guard-lost")                 \
    ROW(EVENT_NOT_RELEASED, "not-released")             \
    ROW(EVENT_RELEASED, "released")                     \
    ROW(EVENT_ENDED, "ended")                           \
    ROW(EVENT_BROKEN, "broken")                         \
    ROW(EVENT_FREE, "free")                             \
    ROW(EVENT_NO_REPORT, "no-report")

#define EVENT_CONSTANT(constant, name) constant,
/*
 * Each enum exit_reason is also an event, of the same number and name. The list repeats only the
 * reasons that other files name as events; event_of_reason() converts the others. EVENT_LAST_REASON
 * lets the numbers of EVENT_NAMES follow those of all reasons.
 */
enum event {
    EVENT_GRANTED = REASON_GRANTED,
    EVENT_DONE = REASON_DONE,
    EVENT_MAX_HOLD = REASON_MAX_HOLD,
    EVENT_BUSY = REASON_BUSY,
    EVENT_SYSTEM = REASON_SYSTEM,
    EVENT_LOST = REASON_LOST,
    EVENT_LAST_REASON = EXIT_REASONS - 1,
    EVENT_NAMES(EVENT_CONSTANT) EVENTS
};
#undef EVENT_CONSTANT

/* event_of_reason: the event "rlock ends for this reason". */
enum event event_of_reason(enum exit_reason reason);

/* event_name: the word for the event in messages, such as "renewal-failed". */
const char *event_name(enum event event);

#endif
