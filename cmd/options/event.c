/* SPDX-License-Identifier: MIT */
/* event: the names of the events that messages report, such as "renewal-failed". */
#include "options/event.h"

static const char *const names[EVENTS] = {
    [EVENT_WAITING] = "waiting",
    [EVENT_WAITING_LONG] = "waiting-long",
    [EVENT_WARNING] = "warning",
    [EVENT_SERVER_UNREACHABLE] = "server-unreachable",
    [EVENT_SERVER_UNABLE] = "server-unable",
    [EVENT_NO_QUORUM] = "no-quorum",
    [EVENT_TOO_FEW_REPLICAS] = "too-few-replicas",
    [EVENT_SERVER_BACK] = "server-back",
    [EVENT_RENEWED] = "renewed",
    [EVENT_RENEWAL_FAILED] = "renewal-failed",
    [EVENT_RESTORED] = "restored",
    [EVENT_SIGNAL] = "signal",
    [EVENT_PAUSED] = "paused",
    [EVENT_RESUMED] = "resumed",
    [EVENT_CANNOT_BE_ENDED] = "can't be ended",
    [EVENT_GUARD_LOST] = "guard-lost",
    [EVENT_NOT_RELEASED] = "not-released",
    [EVENT_RELEASED] = "released",
    [EVENT_ENDED] = "ended",
    [EVENT_BROKEN] = "broken",
    [EVENT_FREE] = "free",
    [EVENT_NO_REPORT] = "no-report",
};

enum event event_of_reason(enum exit_reason reason)
{
    return (enum event)reason;
}

const char *event_name(enum event event)
{
    return (int)event < EXIT_REASONS ? exit_reason_row((enum exit_reason)event)->name
                                     : names[event];
}
