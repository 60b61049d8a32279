/* SPDX-License-Identifier: MIT */
/* help: the tables of options, verbs and exit statuses, as text on stdout. */
#ifndef HELP_H
#define HELP_H

#include "options/verb.h"

/* help_text: the text that --help prints for a verb. Heap; NULL: out of memory. */
char *help_text(enum verb verb);

/*
 * help_dump: the table of that name ("options", "exits", "verbs"), one row a line, its columns
 * separated by tabs. Tests compare it with the manual and the completions. Heap; NULL: out of
 * memory, or no such table.
 */
char *help_dump(const char *table);

#endif
