/* SPDX-License-Identifier: MIT */
/* help: the tables of options, verbs and exit statuses, as text on stdout. */
#ifndef HELP_H
#define HELP_H

#include "options/verb.h"

#include <stddef.h>

/*
 * help_text: the text that --help prints for a verb, in lines of at most `columns` columns; a word
 * that is longer has a line of its own. For VERB_RUN the text has the options of daily use, or, if
 * `is_whole`, all options. The caller frees the text. NULL: out of memory.
 */
char *help_text(enum verb verb, size_t columns, bool is_whole);

/*
 * help_dump: a table of the program as text: one row a line, columns separated by tabs. `table` is
 * the table's name: "options", "flock", "exits", "events" or "verbs". Tests compare the tables
 * with the manual pages and the completions. The caller frees the text. NULL: out of memory, or
 * no table has the name.
 */
char *help_dump(const char *table);

#endif
