/* SPDX-License-Identifier: MIT */
/* help: the tables of options, verbs and exit statuses, as text on stdout. */
#ifndef HELP_H
#define HELP_H

#include "options/verb.h"

#include <stdbool.h>

/* help_options: of a verb, for people. False: it can't be written. */
bool help_options(enum verb verb);

/* help_dump: a table ("options", "exits", "verbs") as TSV, for tests. False: also if none. */
bool help_dump(const char *table);

#endif
