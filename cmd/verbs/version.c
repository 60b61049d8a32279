/* SPDX-License-Identifier: MIT */
/* version: print the version of rlock. */
#include "cmd.h"

#include "session/session.h"

#include <rlock_admin.h>
#include <stdio.h>

int cmd_version(const struct options *options)
{
    enum exit_reason reason;
    struct session session;

    session_init(&session, options);
    printf("rlock %s (%s)\n", RLOCK_VERSION, rlock_built_with());
    reason = report_printed(&session.report);
    session_close(&session);
    return exit_reason_status(reason);
}
