/* SPDX-License-Identifier: MIT */
/* test_cmd_verdict: how a run ended is told in the same words and statuses everywhere. */
#include "options/exit_reason.h"
#include "tap.h"

/* The table of exit statuses of the manual page; -1: not rlock's to choose. */
static const struct {
    enum verdict verdict;
    int status;
} statuses[] = {
    {VERDICT_GRANTED, -1},       {VERDICT_MAX_HOLD, 124},   {VERDICT_NOT_EXECUTABLE, 126},
    {VERDICT_NOT_FOUND, 127},    {VERDICT_INTERRUPTED, -1}, {VERDICT_USAGE, 64},
    {VERDICT_UNREACHABLE, 69},   {VERDICT_SYSTEM, 71},      {VERDICT_BUSY, 75},
    {VERDICT_TIMEOUT, 75},       {VERDICT_LOST, 76},        {VERDICT_REFUSED, 77},
    {VERDICT_MISCONFIGURED, 78}, {VERDICT_SUPERSEDED, 75},  {VERDICT_DONE, 0},
    {VERDICT_NOT_YOURS, 76},
};

/* Each way in which the library can end. */
static const struct {
    enum rlock_status status;
    enum verdict verdict;
} meanings[] = {
    {RLOCK_OK, VERDICT_GRANTED},
    {RLOCK_PENDING, VERDICT_TIMEOUT},
    {RLOCK_BUSY, VERDICT_BUSY},
    {RLOCK_TIMEOUT, VERDICT_TIMEOUT},
    {RLOCK_STOPPED, VERDICT_INTERRUPTED},
    {RLOCK_LOST, VERDICT_LOST},
    {RLOCK_GONE, VERDICT_LOST},
    {RLOCK_RELEASED, VERDICT_LOST},
    {RLOCK_SUPERSEDED, VERDICT_SUPERSEDED},
    {RLOCK_DONE, VERDICT_DONE},
    {RLOCK_E_USAGE, VERDICT_USAGE},
    {RLOCK_E_CONFIG, VERDICT_MISCONFIGURED},
    {RLOCK_E_UNREACHABLE, VERDICT_UNREACHABLE},
    {RLOCK_E_PROTOCOL, VERDICT_UNREACHABLE},
    {RLOCK_E_SERVER, VERDICT_UNREACHABLE},
    {RLOCK_E_UNSUPPORTED, VERDICT_MISCONFIGURED},
    {RLOCK_E_REFUSED, VERDICT_REFUSED},
    {RLOCK_E_NO_QUORUM, VERDICT_UNREACHABLE},
    {RLOCK_E_REPLICAS, VERDICT_UNREACHABLE},
    {RLOCK_E_MEMORY, VERDICT_SYSTEM},
    {RLOCK_E_SYSTEM, VERDICT_SYSTEM},
};

int main(void)
{
    size_t i;
    size_t j;

    is_int(sizeof statuses / sizeof statuses[0], VERDICT_COUNT, "every verdict has a status");
    for (i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        const struct verdict_row *row = verdict_row(statuses[i].verdict);

        if (!okf(row->name != NULL && row->meaning != NULL, "verdict %zu has a name", i))
            continue;
        okf(row->status == statuses[i].status, "%s ends with %d", row->name, statuses[i].status);
        okf(row->name[0] != '\0' &&
                row->name[strspn(row->name, "abcdefghijklmnopqrstuvwxyz-")] == '\0',
            "%s is a word for programs", row->name);
        for (j = 0; j < i; j++)
            if (strcmp(row->name, verdict_row(statuses[j].verdict)->name) == 0)
                okf(false, "%s is a name for one verdict alone", row->name);
    }
    is_int(sizeof meanings / sizeof meanings[0], RLOCK_E_SYSTEM + 1,
           "every status of the library has a verdict");
    for (i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        okf(meanings[i].status == (enum rlock_status)i &&
                verdict_of(meanings[i].status) == meanings[i].verdict,
            "status %zu is %s", i, verdict_row(meanings[i].verdict)->name);
    return done_testing();
}
