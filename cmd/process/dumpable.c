/* SPDX-License-Identifier: MIT */
/* dumpable: nobody may read this process's memory while a password is in it. */
#include "process/dumpable.h"

#include <stdbool.h>
#include <sys/prctl.h>

static int n_forbidden;          /* calls of dumpable_forbid() minus calls of dumpable_allow() */
static bool was_dumpable = true; /* the state before the first dumpable_forbid() */

void dumpable_forbid(void)
{
    if (n_forbidden++ > 0)
        return;
    was_dumpable = prctl(PR_GET_DUMPABLE) == 1;
    prctl(PR_SET_DUMPABLE, 0);
}

void dumpable_allow(void)
{
    if (--n_forbidden == 0 && was_dumpable)
        prctl(PR_SET_DUMPABLE, 1);
}

void dumpable_reset(void)
{
    if (n_forbidden > 0 && was_dumpable)
        prctl(PR_SET_DUMPABLE, 1);
    n_forbidden = 0;
}
