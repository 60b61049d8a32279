/* SPDX-License-Identifier: MIT */
/* version: print the version of rlock. */
#include "cmd.h"

#include "output/report.h"

#include <rlock_admin.h>
#include <stdio.h>

int cmd_version(const struct options *options)
{
    struct report report = report_begin(options, REPORT_NOTICE);

    printf("rlock %s (%s)\n", RLOCK_VERSION, rlock_built_with());
    return exit_reason_status(report_printed(&report));
}
