/* SPDX-License-Identifier: MIT */
/* help: the tables of options, verbs and exit statuses, as text. */
#include "options/help.h"

#include "options/combination.h"
#include "options/exit_reason.h"
#include "options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *or_dash(const char *text)
{
    return text != NULL ? text : "-";
}

/* ---- breaking a text at blanks to fit a terminal ---- */

#define GAP 2
#define TEXT_COLUMNS_MIN 30 /* the right column of a table is never narrower */

static size_t start_line(const struct page *page, size_t indent)
{
    return (size_t)fprintf(page->out, "\n%*s", (int)indent, "") - 1;
}

void help_words(const struct page *page, size_t column, size_t indent, const char *text)
{
    bool is_first = true;
    size_t n;

    for (; *text != '\0'; text += n + strspn(text + n, " ")) {
        n = strcspn(text, " ");
        if (column > indent && column + !is_first + n > page->columns) {
            column = start_line(page, indent);
            is_first = true;
        }
        column += (size_t)fprintf(page->out, "%s%.*s", is_first ? "" : " ", (int)n, text);
        is_first = false;
    }
    fprintf(page->out, "\n");
}

/*
 * Write a row of a table: `left`, and `text` from column `at`. Behind a longer `left` comes `text`
 * if all of it fits there; else `text` begins in the next line.
 */
static void put_row(const struct page *page, size_t at, const char *left, const char *text)
{
    size_t column = (size_t)fprintf(page->out, "%*s%s", GAP, "", left);

    if (page->columns < at + TEXT_COLUMNS_MIN)
        at = 3 * GAP;
    if (column < at)
        column += (size_t)fprintf(page->out, "%*s", (int)(at - column), "");
    else if (column + GAP + strlen(text) <= page->columns)
        column += (size_t)fprintf(page->out, "%*s", GAP, "");
    else
        column = start_line(page, at);
    help_words(page, column, at, text);
}

/* ---- the text of --help ---- */

#define USAGE 7 /* the width of "usage: " */

/* The columns at which the descriptions of verbs, exit statuses and so on begin. */
#define AT_VERB 12
#define AT_STATUS 8
#define AT_OPTION 28
#define AT_EXAMPLE 42

static const char *const group_names[OPTION_GROUPS] = {
    [OPTION_GROUP_DAILY] = "daily",   [OPTION_GROUP_WAITING] = "waiting",
    [OPTION_GROUP_SAFETY] = "safety", [OPTION_GROUP_SERVER] = "server",
    [OPTION_GROUP_OUTPUT] = "output",
};

static const struct {
    const char *command, *what;
} examples[] = {
    {"rlock -k job -- ./backup.sh", "wait for the lock, then run"},
    {"rlock -k job -n -- ./backup.sh", "exit with 75 if the lock is taken"},
    {"rlock -k job -w 10m -- ./backup.sh", "give up after ten minutes, as in CI"},
    {"rlock -k job -c './dump && ./upload'", "two steps of a pipeline, one lock"},
    {"rlock -k job --password-file pw -- ./x", "a password in cron"},
    {"rlock -u local: -k job -- sleep 9", "try rlock without Redis"},
    {"rlock status job", "show who holds the lock"},
    {"rlock break job", "take the lock from its holder"},
};

static void put_option(const struct page *page, const struct option *option)
{
    const char *argument = option->argument != NULL ? option->argument : "";
    char letter[4] = "   ";
    char left[64];
    char text[256];

    if (option->letter != '\0')
        snprintf(letter, sizeof letter, "-%c,", option->letter);
    snprintf(left, sizeof left, "%s --%s%s%s", letter, option->name, *argument ? " " : "",
             argument);
    snprintf(text, sizeof text, "%s%s%s%s", option->help, option->by_default != NULL ? " [" : "",
             option->by_default != NULL ? option->by_default : "",
             option->by_default != NULL ? "]" : "");
    put_row(page, AT_OPTION, left, text);
}

static void put_group(const struct page *page, enum verb verb, enum option_group group)
{
    bool is_begun = false;
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++) {
        if ((option_table[i].verbs & IN(verb)) == 0 || option_table[i].group != group)
            continue;
        if (!is_begun)
            fprintf(page->out, "\n%s options:\n", group_names[group]);
        is_begun = true;
        put_option(page, &option_table[i]);
    }
}

static void put_options(const struct page *page, enum verb verb, bool is_whole)
{
    int group;

    for (group = 0; group < (is_whole ? OPTION_GROUPS : OPTION_GROUP_DAILY + 1); group++)
        put_group(page, verb, (enum option_group)group);
    if (!is_whole)
        return;
    fprintf(page->out, "\n");
    help_words(page, 0, 0,
               "A DURATION is a number of seconds, or has a unit: 500ms 30s 5m 2h 1d 1h30m. "
               "Most options can also be set by RLOCK_NAME in the environment and in a file: "
               "see rlock.conf(5).");
}

static void put_usage(const struct page *page, enum verb verb)
{
    const struct verb_row *row = &verb_table[verb];
    const char *words = verb_words(verb);
    char line[200];

    if (row->name == NULL) {
        help_words(page, 0, USAGE, "usage: rlock -k KEY [OPTIONS] [--] COMMAND [ARG...]");
        fprintf(page->out, "%*s", USAGE, "");
        help_words(page, USAGE, USAGE, "rlock -k KEY [OPTIONS] -c 'SHELL COMMAND'");
        fprintf(page->out, "%*s", USAGE, "");
        help_words(page, USAGE, USAGE, "rlock VERB [OPTIONS]");
    } else {
        snprintf(line, sizeof line, "usage: rlock %s [OPTIONS]%s%s", row->name,
                 words != NULL ? " " : "", words != NULL ? words : "");
        help_words(page, 0, USAGE, line);
    }
    snprintf(line, sizeof line, "%c%s.", row->help[0] - 'a' + 'A', row->help + 1);
    help_words(page, 0, 0, line);
}

static void put_examples(const struct page *page)
{
    size_t i;

    fprintf(page->out, "\nexamples:\n");
    for (i = 0; i < sizeof examples / sizeof examples[0]; i++)
        put_row(page, AT_EXAMPLE, examples[i].command, examples[i].what);
}

static void put_verbs(const struct page *page, bool is_whole)
{
    size_t i;

    fprintf(page->out, "\nverbs:\n");
    for (i = 0; i < VERB_COUNT; i++)
        if (verb_table[i].name != NULL && (is_whole || !verb_table[i].is_offline))
            put_row(page, AT_VERB, verb_table[i].name, verb_table[i].help);
}

/* Write a row with the exit status and the meanings of all reasons that have this status. */
static void put_exit(const struct page *page, int status)
{
    char left[16] = "other";
    char text[400];
    size_t used = 0;
    int i;

    for (i = 0; i < EXIT_REASONS; i++) {
        const struct exit_reason_row *row = exit_reason_row((enum exit_reason)i);

        if (row->status == status && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? "; " : "",
                                     row->meaning);
    }
    if (status >= 0)
        snprintf(left, sizeof left, "%d", status);
    if (used > 0)
        put_row(page, AT_STATUS, left, text);
}

static void put_exits(const struct page *page)
{
    int status;

    fprintf(page->out, "\nexit status:\n");
    for (status = 0; status <= UINT8_MAX; status++)
        put_exit(page, status);
    put_exit(page, -1);
}

void help_print(const struct page *page, enum verb verb, bool is_whole)
{
    put_usage(page, verb);
    if (verb == VERB_RUN)
        put_examples(page);
    put_options(page, verb, is_whole || verb != VERB_RUN);
    if (verb != VERB_RUN)
        return;
    put_verbs(page, is_whole);
    put_exits(page);
    fprintf(page->out, "\n");
    help_words(page, 0, 0,
               is_whole ? "The manual: man rlock."
                        : "All options: rlock help --all. One verb: rlock help VERB. The manual: "
                          "man rlock.");
}

/* ---- the tables of --dump ---- */

static void dump_options(FILE *out)
{
    char variable[64];
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &option_table[i];

        option_variable(option, variable);
        fprintf(out, "%c\t%s\t%s\t%s\t%s\t%s\n", option->letter ? option->letter : '-',
                option->name, or_dash(option->argument), option->is_everywhere ? variable : "-",
                or_dash(option->by_default), option->help);
    }
}

/* Letter and long name in flock(1), and rlock's option with this meaning; "-": there is none. */
static void dump_flock(FILE *out)
{
    size_t i;

    for (i = 0; i < FLOCK_COUNT; i++)
        fprintf(out, "%c\t%s\t%s\n", flock_table[i].letter ? flock_table[i].letter : '-',
                or_dash(flock_table[i].name), or_dash(flock_table[i].meaning));
}

static void dump_exits(FILE *out)
{
    int i;

    for (i = 0; i < EXIT_REASONS; i++) {
        const struct exit_reason_row *row = exit_reason_row((enum exit_reason)i);

        fprintf(out, "%d\t%s\t%s\n", row->status, row->name, row->meaning);
    }
}

static void dump_events(FILE *out)
{
    int i;

    for (i = 0; i < EVENTS; i++)
        fprintf(out, "%s\n", event_name((enum event)i));
}

/* The last column has the names of the options that the verb accepts, separated by commas. */
static void dump_verbs(FILE *out)
{
    size_t i;
    size_t j;

    for (i = 0; i < VERB_COUNT; i++) {
        const struct verb_row *row = &verb_table[i];
        const char *comma = "";

        fprintf(out, "%s\t%s\t%s\t", or_dash(row->name), or_dash(verb_words((enum verb)i)),
                row->help);
        for (j = 0; j < OPTION_COUNT; j++) {
            if ((option_table[j].verbs & IN(i)) == 0)
                continue;
            fprintf(out, "%s%s", comma, option_table[j].name);
            comma = ",";
        }
        fprintf(out, "\n");
    }
}

void help_dump(FILE *out, const char *table)
{
    static const struct {
        const char *name;
        void (*dump)(FILE *out);
    } tables[] = {{"options", dump_options}, {"flock", dump_flock},
                  {"exits", dump_exits},     {"events", dump_events},
                  {"verbs", dump_verbs},     {"combinations", combination_dump}};
    size_t i;

    for (i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (strcmp(table, tables[i].name) == 0)
            tables[i].dump(out);
}
