/* SPDX-License-Identifier: MIT */
/* test_cmd_verdict: how a run ended is told in the same words and statuses everywhere. */
#include "options/exit_reason.h"
#include "tap.h"

/* The table of exit statuses of the manual page; -1: not rlock's to choose. */
static const struct {
    enum exit_reason reason;
    int status;
} statuses[] = {
    {REASON_GRANTED, -1},       {REASON_MAX_HOLD, 124},   {REASON_NOT_EXECUTABLE, 126},
    {REASON_NOT_FOUND, 127},    {REASON_INTERRUPTED, -1}, {REASON_USAGE, 64},
    {REASON_UNREACHABLE, 69},   {REASON_SYSTEM, 71},      {REASON_BUSY, 75},
    {REASON_TIMEOUT, 75},       {REASON_LOST, 76},        {REASON_REFUSED, 77},
    {REASON_MISCONFIGURED, 78}, {REASON_SUPERSEDED, 75},  {REASON_DONE, 0},
    {REASON_NOT_YOURS, 76},
};

/* Each way in which the library can end. */
static const struct {
    enum rlock_status status;
    enum exit_reason reason;
} meanings[] = {
    {RLOCK_OK, REASON_GRANTED},
    {RLOCK_BUSY, REASON_BUSY},
    {RLOCK_TIMEOUT, REASON_TIMEOUT},
    {RLOCK_STOPPED, REASON_INTERRUPTED},
    {RLOCK_LOST, REASON_LOST},
    {RLOCK_GONE, REASON_LOST},
    {RLOCK_RELEASED, REASON_LOST},
    {RLOCK_SUPERSEDED, REASON_SUPERSEDED},
    {RLOCK_DONE, REASON_DONE},
    {RLOCK_E_USAGE, REASON_USAGE},
    {RLOCK_E_CONFIG, REASON_MISCONFIGURED},
    {RLOCK_E_UNREACHABLE, REASON_UNREACHABLE},
    {RLOCK_E_PROTOCOL, REASON_UNREACHABLE},
    {RLOCK_E_SERVER, REASON_UNREACHABLE},
    {RLOCK_E_UNSUPPORTED, REASON_MISCONFIGURED},
    {RLOCK_E_REFUSED, REASON_REFUSED},
    {RLOCK_E_NO_QUORUM, REASON_UNREACHABLE},
    {RLOCK_E_REPLICAS, REASON_UNREACHABLE},
    {RLOCK_E_MEMORY, REASON_SYSTEM},
    {RLOCK_E_SYSTEM, REASON_SYSTEM},
};

int main(void)
{
    size_t i;
    size_t j;

    is_int(sizeof statuses / sizeof statuses[0], EXIT_REASONS, "every verdict has a status");
    for (i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        const struct exit_reason_row *row = exit_reason_row(statuses[i].reason);

        if (!okf(row->name != NULL && row->meaning != NULL, "verdict %zu has a name", i))
            continue;
        okf(row->status == statuses[i].status, "%s ends with %d", row->name, statuses[i].status);
        okf(row->name[0] != '\0' &&
                row->name[strspn(row->name, "abcdefghijklmnopqrstuvwxyz-")] == '\0',
            "%s is a word for programs", row->name);
        for (j = 0; j < i; j++)
            if (strcmp(row->name, exit_reason_row(statuses[j].reason)->name) == 0)
                okf(false, "%s is a name for one verdict alone", row->name);
    }
    /* 1 is no status of rlock.h */
    is_int(sizeof meanings / sizeof meanings[0], RLOCK_E_SYSTEM,
           "every status of the library has a verdict");
    for (i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        okf(meanings[i].status == (enum rlock_status)(i > 0 ? i + 1 : 0) &&
                exit_reason_of(meanings[i].status) == meanings[i].reason,
            "status %zu is %s", i, exit_reason_row(meanings[i].reason)->name);
    return done_testing();
}
