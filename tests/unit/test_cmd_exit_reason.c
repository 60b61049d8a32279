/* SPDX-License-Identifier: MIT */
/* test_cmd_exit_reason: name and exit status of each reason; the reason for each library status. */
#include "options/exit_reason.h"
#include "tap.h"

/* The exit statuses of the manual page; -1: the command or a signal decides the status. */
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

/* Each status that the library returns, in the order of enum rlock_status. */
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
    is_int(sizeof statuses / sizeof statuses[0], EXIT_REASONS, "the test knows every exit reason");
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        const struct exit_reason_row *row = exit_reason_row(statuses[i].reason);

        if (!okf(row->name != NULL && row->meaning != NULL, "reason %zu has a name and a meaning",
                 i))
            continue;
        okf(row->status == statuses[i].status, "%s has the status %d", row->name,
            statuses[i].status);
        okf(row->name[0] != '\0' &&
                row->name[strspn(row->name, "abcdefghijklmnopqrstuvwxyz-")] == '\0',
            "%s has only lower-case letters and hyphens", row->name);
        for (size_t j = 0; j < i; j++)
            if (strcmp(row->name, exit_reason_row(statuses[j].reason)->name) == 0)
                okf(false, "%s is the name of one reason only", row->name);
    }
    /* The statuses are 0 and 2 to RLOCK_E_SYSTEM, as rlock.h has no status 1. */
    is_int(sizeof meanings / sizeof meanings[0], RLOCK_E_SYSTEM);
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        okf(meanings[i].status == (enum rlock_status)(i > 0 ? i + 1 : 0) &&
                exit_reason_of(meanings[i].status) == meanings[i].reason,
            "the library status in row %zu gives the reason %s", i,
            exit_reason_row(meanings[i].reason)->name);
    return done_testing();
}
