/* SPDX-License-Identifier: MIT */
/* exit_reason: why rlock ended, and the events that its messages report: names and statuses. */
#ifndef EXIT_REASON_H
#define EXIT_REASON_H

#include <rlock.h>

/* ROW(constant, and the fields of struct exit_reason_row). A comment is about the row below. */
#define EXIT_REASON_ROWS(ROW)                                                                    \
    /* GRANTED: the command ended by itself, under the lock; or the verb succeeded */            \
    ROW(REASON_GRANTED, "granted", -1, "the command's own status")                               \
    ROW(REASON_DONE, "done", 0, "the work is marked as done (--once); the command did not run")  \
    ROW(REASON_MAX_HOLD, "max-hold", 124, "--max-hold ended the command")                        \
    ROW(REASON_NOT_EXECUTABLE, "not-executable", 126, "the command can't be executed")           \
    ROW(REASON_NOT_FOUND, "not-found", 127, "the command was not found")                         \
    /* INTERRUPTED: a signal ended rlock before the command began, or a verb without one */      \
    ROW(REASON_INTERRUPTED, "interrupted", -1, "128 + N if signal N ended rlock or the command") \
    ROW(REASON_USAGE, "usage", 64, "unknown option, bad value, no key, no command")              \
    ROW(REASON_UNREACHABLE, "unreachable", 69,                                                   \
        "no server: connection refused, unreachable, no answer, still loading")                  \
    ROW(REASON_SYSTEM, "system", 71, "a system call failed: fork, memory, descriptors")          \
    /* BUSY also: hold, the user holds the lock already; status, taken; break, not broken */     \
    ROW(REASON_BUSY, "busy", 75, "the lock is taken, with -n")                                   \
    ROW(REASON_TIMEOUT, "timeout", 75, "not granted within -w")                                  \
    ROW(REASON_SUPERSEDED, "superseded", 75, "a newer waiter came")                              \
    ROW(REASON_LOST, "lost", 76, "the lock was lost, so the command ended")                      \
    ROW(REASON_NOT_YOURS, "not-yours", 76, "the token doesn't hold the lock")                    \
    ROW(REASON_REFUSED, "refused", 77, "the server refused: password, permission, type of key")  \
    ROW(REASON_MISCONFIGURED, "misconfigured", 78,                                               \
        "bad URL, file or certificate, or the server can't do what was asked")

#define REASON_CONSTANT(constant, ...) constant,
enum exit_reason { EXIT_REASON_ROWS(REASON_CONSTANT) EXIT_REASONS };
#undef REASON_CONSTANT

struct exit_reason_row {
    const char *name; /* as messages and reports print it: "busy" */
    /* the exit status; -1: the command's own status, or 128 + N if signal N ended the program */
    int status;
    const char *meaning; /* what --help prints beside the status */
};

/* exit_reason_row: returns the name, status and meaning of a reason; never NULL. */
const struct exit_reason_row *exit_reason_row(enum exit_reason reason);

/* exit_reason_status: the exit status if rlock ran no command. It is 0 for REASON_GRANTED. */
int exit_reason_status(enum exit_reason reason);

/* exit_reason_of: the reason to exit for a status that the library has returned. */
enum exit_reason exit_reason_of(enum rlock_status status);

/* ---- events ---- */

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
 * An exit_reason is also an event with the same number and name: event_of_reason() casts it. This
 * enum names only those that other files use as events. Because of EVENT_LAST_REASON the numbers of
 * EVENT_NAMES begin behind the last reason.
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
