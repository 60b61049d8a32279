/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_exit_reason: which exit reason each status of the library becomes, and the names of
 * events. tests/cli/docs.bats compares the names and exit statuses of the reasons with the manual.
 */
#include "options/exit_reason.h"
#include "tap.h"

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

static void test_reasons(void)
{
    /* The statuses are 0 and 2 to RLOCK_E_SYSTEM, as rlock.h has no status 1. */
    is_int(sizeof meanings / sizeof meanings[0], RLOCK_E_SYSTEM);
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        okf(meanings[i].status == (enum rlock_status)(i > 0 ? i + 1 : 0) &&
                exit_reason_of(meanings[i].status) == meanings[i].reason,
            "the library status in row %zu gives the reason %s", i,
            exit_reason_row(meanings[i].reason)->name);
}

/* Each event has a name, and an exit reason's event has its name. */
static void test_events(void)
{
    for (int i = 0; i < EVENTS; i++)
        ok(event_name((enum event)i) != NULL && *event_name((enum event)i) != '\0');
    for (int i = 0; i < EXIT_REASONS; i++)
        is_str(event_name(event_of_reason((enum exit_reason)i)),
               exit_reason_row((enum exit_reason)i)->name);
    is_str(event_name(EVENT_LOST), "lost", "the loss of the lock is called lost");
    is_str(event_name(EVENT_NO_REPORT), "no-report", "the last event is called no-report");
}

int main(void)
{
    RUN(test_reasons());
    RUN(test_events());
    return done_testing();
}
