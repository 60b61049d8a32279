/* SPDX-License-Identifier: MIT */
/* help: the tables of options, verbs and exit statuses, as text. */
#ifndef HELP_H
#define HELP_H

#include "options/verb.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Where text is written, and how many columns its lines have at most. */
struct page {
    FILE *out;
    size_t columns;
};

/*
 * help_words: write the words of a text, the first one at `column` of the line that is being
 * written. A word that doesn't fit begins a new line, at column `indent`; no word is broken. Ends
 * the line.
 */
void help_words(const struct page *page, size_t column, size_t indent, const char *text);

/*
 * help_print: write the text that --help prints for a verb. For VERB_RUN the text has the options
 * of daily use, or, if `is_whole`, all options.
 */
void help_print(const struct page *page, enum verb verb, bool is_whole);

/*
 * help_dump: write a table of the program: one row a line, columns separated by tabs. `table` is
 * "options", "flock", "exits", "events", "verbs" or "combinations"; nothing is written for any
 * other name. The completions read these tables, and tests compare them with the manual.
 */
void help_dump(FILE *out, const char *table);

#endif
