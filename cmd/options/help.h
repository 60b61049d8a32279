/* SPDX-License-Identifier: MIT */
/* help: the tables of options, verbs and exit statuses, as text on stdout. */
#ifndef HELP_H
#define HELP_H

#include "options/verb.h"

/* help_text: what --help prints, of a verb. Heap; NULL: no memory. */
char *help_text(enum verb verb);

/*
 * help_dump: a table ("options", "exits", "verbs") with tabs between its columns, for the tests
 * that compare it with the manual and the completions. Heap; NULL: no memory, or no such table.
 */
char *help_dump(const char *table);

#endif
