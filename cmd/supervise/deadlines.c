/* SPDX-License-Identifier: MIT */
/* deadlines: when the processes that run under a lease get TERM, and when KILL. */
#include "supervise/deadlines.h"

struct deadlines deadlines_of_lease(int64_t expires_ms, int64_t kill_margin_ms, int64_t grace_ms)
{
    int64_t kill_ms = expires_ms - kill_margin_ms;

    return (struct deadlines){.term_ms = kill_ms - grace_ms, .kill_ms = kill_ms};
}
