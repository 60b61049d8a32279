/* SPDX-License-Identifier: MIT */
/* exit_reason: why rlock ended: the name, the exit status and the meaning of each reason. */
#include "options/exit_reason.h"

static const struct exit_reason_row rows[EXIT_REASONS] = {
    [REASON_GRANTED] = {"granted", -1, "the command's own status"},
    [REASON_DONE] = {"done", 0, "the work is marked as done (--once); the command did not run"},
    [REASON_MAX_HOLD] = {"max-hold", 124, "--max-hold ended the command"},
    [REASON_NOT_EXECUTABLE] = {"not-executable", 126, "the command can't be executed"},
    [REASON_NOT_FOUND] = {"not-found", 127, "the command was not found"},
    [REASON_INTERRUPTED] = {"interrupted", -1, "128 + N if signal N ended rlock or the command"},
    [REASON_USAGE] = {"usage", 64, "unknown option, bad value, no key, no command"},
    [REASON_UNREACHABLE] = {"unreachable", 69,
                            "no server: connection refused, unreachable, no answer, still loading"},
    [REASON_SYSTEM] = {"system", 71, "a system call failed: fork, memory, descriptors"},
    [REASON_BUSY] = {"busy", 75, "the lock is taken, with -n"},
    [REASON_TIMEOUT] = {"timeout", 75, "not granted within -w"},
    [REASON_SUPERSEDED] = {"superseded", 75, "a newer waiter came"},
    [REASON_LOST] = {"lost", 76, "the lock was lost, so the command ended"},
    [REASON_NOT_YOURS] = {"not-yours", 76, "the token doesn't hold the lock"},
    [REASON_REFUSED] = {"refused", 77, "the server refused: password, permission, type of key"},
    [REASON_MISCONFIGURED] =
        {"misconfigured", 78,
         "bad URL, file or certificate, or the server can't do what was asked"},
};

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
