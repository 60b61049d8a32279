/* SPDX-License-Identifier: MIT */
/* help: the tables of options, verbs and exit statuses, as text on stdout. */
#ifndef HELP_H
#define HELP_H

#include "options/verb.h"

/* help_text: the text that --help prints for a verb. Heap; NULL: out of memory. */
char *help_text(enum verb verb);

/*
 * help_dump: a table of the program as text: one row a line, columns separated by tabs. `table` is
 * the table's name: "options", "exits" or "verbs". Tests compare the tables with the manual and the
 * completions. Heap; NULL: out of memory, or no table has the name.
 */
char *help_dump(const char *table);

#endif
