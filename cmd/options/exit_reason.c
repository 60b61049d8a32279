/* SPDX-License-Identifier: MIT */
/* exit_reason: how a run ended: its name, its exit status, its meaning. */
#include "options/exit_reason.h"

static const struct verdict_row rows[VERDICT_COUNT] = {
    [VERDICT_GRANTED] = {"granted", -1, "the command's own status; 128 + N: signal N ended it"},
    [VERDICT_DONE] = {"done", 0, "it was done already (--once); the command did not run"},
    [VERDICT_MAX_HOLD] = {"max-hold", 124, "--max-hold ended the command"},
    [VERDICT_NOT_EXECUTABLE] = {"not-executable", 126, "the command can't be executed"},
    [VERDICT_NOT_FOUND] = {"not-found", 127, "the command isn't found"},
    [VERDICT_INTERRUPTED] = {"interrupted", -1, "ended by that signal before the command ran"},
    [VERDICT_USAGE] = {"usage", 64, "unknown option, bad value, no key, no command"},
    [VERDICT_UNREACHABLE] = {"unreachable", 69,
                             "no server: refused, unreachable, timed out, still loading"},
    [VERDICT_SYSTEM] = {"system", 71, "the system failed rlock: fork, memory, descriptors"},
    [VERDICT_BUSY] = {"busy", 75, "the lock is taken, and waiting was not wanted"},
    [VERDICT_TIMEOUT] = {"timeout", 75, "the lock was not had in time"},
    [VERDICT_SUPERSEDED] = {"superseded", 75, "a newer waiter came (--queue newest)"},
    [VERDICT_LOST] = {"lost", 76, "the lock was lost while the command ran; it was ended"},
    [VERDICT_NOT_YOURS] = {"not-yours", 76, "the lock isn't that token's (renew, release)"},
    [VERDICT_REFUSED] = {"refused", 77, "the server refused: password, permission, type of key"},
    [VERDICT_MISCONFIGURED] =
        {"misconfigured", 78, "bad URL, file, certificate, or server that can't do what was asked"},
};

const struct verdict_row *verdict_row(enum verdict verdict)
{
    return &rows[verdict];
}

enum verdict verdict_of(enum rlock_status status)
{
    switch (status) {
    case RLOCK_OK:
        return VERDICT_GRANTED;
    case RLOCK_BUSY:
        return VERDICT_BUSY;
    case RLOCK_PENDING:
    case RLOCK_TIMEOUT:
        return VERDICT_TIMEOUT;
    case RLOCK_STOPPED:
        return VERDICT_INTERRUPTED;
    case RLOCK_LOST:
    case RLOCK_GONE:
    case RLOCK_RELEASED:
        return VERDICT_LOST;
    case RLOCK_SUPERSEDED:
        return VERDICT_SUPERSEDED;
    case RLOCK_DONE:
        return VERDICT_DONE;
    case RLOCK_E_USAGE:
        return VERDICT_USAGE;
    case RLOCK_E_UNREACHABLE:
    case RLOCK_E_PROTOCOL:
    case RLOCK_E_SERVER:
    case RLOCK_E_NO_QUORUM:
    case RLOCK_E_REPLICAS:
        return VERDICT_UNREACHABLE;
    case RLOCK_E_REFUSED:
        return VERDICT_REFUSED;
    case RLOCK_E_CONFIG:
    case RLOCK_E_UNSUPPORTED:
        return VERDICT_MISCONFIGURED;
    case RLOCK_E_MEMORY:
    case RLOCK_E_SYSTEM:
        return VERDICT_SYSTEM;
    }
    return VERDICT_SYSTEM;
}
