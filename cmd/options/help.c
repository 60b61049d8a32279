/* SPDX-License-Identifier: MIT */
/* help: the tables of options, verbs and exit statuses, as text. */
#include "options/help.h"

#include "options/exit_reason.h"
#include "options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *or_dash(const char *text)
{
    return text != NULL ? text : "-";
}

/* ---- the text of --help ---- */

static void put_option(FILE *out, const struct option *option)
{
    const char *argument = option->argument != NULL ? option->argument : "";
    char letter[4] = "   ";
    char left[64];

    if (option->letter != '\0')
        snprintf(letter, sizeof letter, "-%c,", option->letter);
    snprintf(left, sizeof left, "%s --%s%s%s", letter, option->name, *argument ? " " : "",
             argument);
    fprintf(out, "  %-30s %s", left, option->help);
    if (option->by_default != NULL)
        fprintf(out, " [%s]", option->by_default);
    fprintf(out, "\n");
}

static void put_options(FILE *out, enum verb verb)
{
    size_t i;

    fprintf(out, "\noptions:\n");
    for (i = 0; i < OPTION_COUNT; i++)
        if ((option_table[i].verbs & IN(verb)) != 0)
            put_option(out, &option_table[i]);
    fprintf(out, "\nA DURATION is a number of seconds, or has a unit: 500ms 30s 5m 2h 1d.\n"
                 "Most options can also be set by RLOCK_NAME in the environment and in a file: "
                 "see rlock(1).\n");
}

static void put_usage(FILE *out, enum verb verb)
{
    const struct verb_row *row = &verb_table[verb];

    if (row->name == NULL)
        fprintf(out, "usage: rlock -k KEY [OPTIONS] [--] COMMAND [ARG...]\n"
                     "       rlock -k KEY [OPTIONS] -c 'SHELL COMMAND'\n"
                     "       rlock VERB [OPTIONS]\n");
    else
        fprintf(out, "usage: rlock %s %s[OPTIONS]%s%s\n", row->name,
                row->needs_key ? "-k KEY " : "", row->words != NULL ? " " : "",
                row->words != NULL ? row->words : "");
    fprintf(out, "%c%s.\n", row->help[0] - 'a' + 'A', row->help + 1);
}

static void put_verbs(FILE *out)
{
    size_t i;

    fprintf(out, "\nverbs:\n");
    for (i = 0; i < VERB_COUNT; i++)
        if (verb_table[i].name != NULL)
            fprintf(out, "  %-30s %s\n", verb_table[i].name, verb_table[i].help);
}

static void put_exits(FILE *out)
{
    char status[16];
    int i;

    fprintf(out, "\nexit status:\n");
    for (i = 0; i < EXIT_REASONS; i++) {
        const struct exit_reason_row *row = exit_reason_row((enum exit_reason)i);

        snprintf(status, sizeof status, "%d", row->status);
        fprintf(out, "  %-4s %s\n", row->status >= 0 ? status : "", row->meaning);
    }
}

/*
 * Close a stream that open_memstream(3) made, and return its text `*text`. If a write to the stream
 * failed, a part of the text is missing: free the text and return NULL.
 */
static char *finish(FILE *out, char **text)
{
    bool is_whole = ferror(out) == 0;

    if (fclose(out) == 0 && is_whole)
        return *text;
    free(*text);
    return NULL;
}

char *help_text(enum verb verb)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    put_usage(out, verb);
    put_options(out, verb);
    if (verb == VERB_RUN) {
        put_verbs(out);
        put_exits(out);
    }
    return finish(out, &text);
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

static void dump_exits(FILE *out)
{
    int i;

    for (i = 0; i < EXIT_REASONS; i++) {
        const struct exit_reason_row *row = exit_reason_row((enum exit_reason)i);

        fprintf(out, "%d\t%s\t%s\n", row->status, row->name, row->meaning);
    }
}

/* The last column has the names of the options that the verb accepts, separated by commas. */
static void dump_verbs(FILE *out)
{
    size_t i;
    size_t j;

    for (i = 0; i < VERB_COUNT; i++) {
        const struct verb_row *row = &verb_table[i];
        const char *comma = "";

        fprintf(out, "%s\t%s\t%s\t", or_dash(row->name), or_dash(row->words), row->help);
        for (j = 0; j < OPTION_COUNT; j++) {
            if ((option_table[j].verbs & IN(i)) == 0)
                continue;
            fprintf(out, "%s%s", comma, option_table[j].name);
            comma = ",";
        }
        fprintf(out, "\n");
    }
}

char *help_dump(const char *table)
{
    static const struct {
        const char *name;
        void (*dump)(FILE *out);
    } tables[] = {{"options", dump_options}, {"exits", dump_exits}, {"verbs", dump_verbs}};
    char *text = NULL;
    size_t bytes;
    FILE *out;
    size_t i;

    for (i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (strcmp(table, tables[i].name) != 0)
            continue;
        out = open_memstream(&text, &bytes);
        if (out == NULL)
            return NULL;
        tables[i].dump(out);
        return finish(out, &text);
    }
    return NULL;
}
