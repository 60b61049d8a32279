/* SPDX-License-Identifier: MIT */
/* help: print the help of rlock or of one verb. */
#include "cmd.h"

#include "options/help.h"
#include "output/terminal.h"
#include "session/session.h"

int cmd_help(const struct options *options)
{
    const struct page page = {stdout, terminal_columns()};
    enum exit_reason reason;
    struct session session;

    session_init(&session, options);
    help_print(&page, options->about, options->all != 0);
    reason = report_printed(&session.report);
    session_close(&session);
    return exit_reason_status(reason);
}
