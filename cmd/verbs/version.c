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
    char *text;

    session_init(&session, options);
    if (asprintf(&text, "rlock %s (%s)\n", RLOCK_VERSION, rlock_built_with()) < 0)
        text = NULL;
    reason = report_text(&session.report, text);
    session_close(&session);
    return exit_reason_status(reason);
}
