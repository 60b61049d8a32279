/* SPDX-License-Identifier: MIT */
/* help: print the help of rlock or of one verb. */
#include "cmd.h"

#include "options/help.h"
#include "output/report.h"
#include "output/terminal.h"

int cmd_help(const struct options *options)
{
    const struct page page = {stdout, terminal_columns()};
    struct report report = report_begin(options, REPORT_NOTICE);

    help_print(&page, options->about, options->all != 0);
    return exit_reason_status(report_printed(&report));
}
