/* SPDX-License-Identifier: MIT */
/* dumpable: nobody may read this process's memory, as a password is in it. */
#include "process/dumpable.h"

#include <stdbool.h>
#include <sys/prctl.h>

static bool was_dumpable; /* before dumpable_forbid() */

void dumpable_forbid(void)
{
    was_dumpable = was_dumpable || prctl(PR_GET_DUMPABLE) == 1;
    prctl(PR_SET_DUMPABLE, 0);
}

void dumpable_reset(void)
{
    if (was_dumpable)
        prctl(PR_SET_DUMPABLE, 1);
    was_dumpable = false;
}
