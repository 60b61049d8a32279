/* SPDX-License-Identifier: MIT */
/* help: print the help of rlock or of one verb. */
#include "cmd.h"

#include "options/help.h"
#include "output/terminal.h"
#include "session/session.h"

int cmd_help(const struct options *options)
{
    enum exit_reason reason;
    struct session session;

    session_init(&session, options);
    reason = report_text(&session.report,
                         help_text(options->about, terminal_columns(), options->all != 0));
    session_close(&session);
    return exit_reason_status(reason);
}
