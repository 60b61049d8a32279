/* SPDX-License-Identifier: MIT */
/* help: the tables of options, verbs and exit statuses, as text on stdout. */
#include "options/help.h"

#include "options/options.h"
#include "output/report.h"

#include <stdio.h>
#include <string.h>

static bool help_row(const struct option *option)
{
    char left[64];
    char line[256];

    snprintf(left, sizeof left, "%c%c%s --%s%s%s", option->letter != '\0' ? '-' : ' ',
             option->letter != '\0' ? option->letter : ' ', option->letter != '\0' ? "," : " ",
             option->name, option->argument != NULL ? " " : "",
             option->argument != NULL ? option->argument : "");
    snprintf(line, sizeof line, "  %-30s %s%s%s%s\n", left, option->help,
             option->by_default != NULL ? " [" : "",
             option->by_default != NULL ? option->by_default : "",
             option->by_default != NULL ? "]" : "");
    return report_text(line);
}

static bool help_usage(enum verb verb)
{
    const struct verb_row *row = &verb_table[verb];
    char line[256];

    if (row->name == NULL)
        return report_text("usage: rlock -k KEY [OPTIONS] [--] COMMAND [ARG...]\n"
                           "       rlock -k KEY [OPTIONS] -c 'SHELL COMMAND'\n"
                           "       rlock VERB [OPTIONS]\n"
                           "Run a command while holding a lock in Redis.\n");
    snprintf(line, sizeof line, "usage: rlock %s %s[OPTIONS]%s%s\n%c%s.\n", row->name,
             row->needs_key ? "-k KEY " : "", row->words != NULL ? " " : "",
             row->words != NULL ? row->words : "", row->help[0] - 'a' + 'A', row->help + 1);
    return report_text(line);
}

static bool help_verbs(void)
{
    char line[256];
    bool good = true;
    size_t i;

    for (i = 0; good && i < VERB_COUNT; i++) {
        const struct verb_row *row = &verb_table[i];

        if (row->name == NULL)
            continue;
        snprintf(line, sizeof line, "  %-30s %s\n", row->name, row->help);
        good = report_text(line);
    }
    return good;
}

static bool help_exits(void)
{
    char status[16];
    char line[160];
    bool good = true;
    size_t i;

    for (i = 0; good && i < EXIT_REASONS; i++) {
        const struct exit_reason_row *reason = exit_reason_row((enum exit_reason)i);

        if (reason->status >= 0)
            snprintf(status, sizeof status, "%d", reason->status);
        else
            status[0] = '\0';
        snprintf(line, sizeof line, "  %-4s %s\n", status, reason->meaning);
        good = report_text(line);
    }
    return good;
}

bool help_options(enum verb verb)
{
    bool good = help_usage(verb) && report_text("\noptions:\n");
    size_t i;

    for (i = 0; good && i < OPTION_COUNT; i++)
        good = (option_table[i].verbs & IN(verb)) == 0 || help_row(&option_table[i]);
    good =
        good && report_text("\nA DURATION is a number of seconds, or has a unit: 500ms 30s 5m 2h "
                            "1d.\nMost options can also be set by RLOCK_NAME in the environment "
                            "and in a file: see rlock(1).\n");
    if (verb != VERB_RUN)
        return good;
    return good && report_text("\nverbs:\n") && help_verbs() && report_text("\nexit status:\n") &&
           help_exits();
}

static bool dump_options(void)
{
    char variable[64];
    char line[512];
    bool good = true;
    size_t i;

    for (i = 0; good && i < OPTION_COUNT; i++) {
        const struct option *option = &option_table[i];

        option_variable(option, variable);
        snprintf(line, sizeof line, "%c\t%s\t%s\t%s\t%s\t%s\n",
                 option->letter ? option->letter : '-', option->name,
                 option->argument ? option->argument : "-", option->is_everywhere ? variable : "-",
                 option->by_default ? option->by_default : "-", option->help);
        good = report_text(line);
    }
    return good;
}

static bool dump_exits(void)
{
    char line[256];
    bool good = true;
    size_t i;

    for (i = 0; good && i < EXIT_REASONS; i++) {
        const struct exit_reason_row *reason = exit_reason_row((enum exit_reason)i);

        snprintf(line, sizeof line, "%d\t%s\t%s\n", reason->status, reason->name, reason->meaning);
        good = report_text(line);
    }
    return good;
}

/* Their names, with commas between them. */
static bool dump_options_of(enum verb verb)
{
    const char *comma = "";
    bool good = true;
    size_t i;

    for (i = 0; good && i < OPTION_COUNT; i++) {
        if ((option_table[i].verbs & IN(verb)) == 0)
            continue;
        good = report_text(comma) && report_text(option_table[i].name);
        comma = ",";
    }
    return good;
}

static bool dump_verbs(void)
{
    char line[256];
    bool good = true;
    size_t i;

    for (i = 0; good && i < VERB_COUNT; i++) {
        const struct verb_row *row = &verb_table[i];

        snprintf(line, sizeof line, "%s\t%s\t%s\t", row->name ? row->name : "-",
                 row->words ? row->words : "-", row->help);
        good = report_text(line) && dump_options_of((enum verb)i) && report_text("\n");
    }
    return good;
}

bool help_dump(const char *table)
{
    if (strcmp(table, "options") == 0)
        return dump_options();
    if (strcmp(table, "exits") == 0)
        return dump_exits();
    return strcmp(table, "verbs") == 0 && dump_verbs();
}
