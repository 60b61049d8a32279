/* SPDX-License-Identifier: MIT */
/* combination: features that exclude each other, and why; docs.bats compares the manual with it. */
#ifndef COMBINATION_H
#define COMBINATION_H

#include "options/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* combination_check: may the options be used together? False: `why` has which two not, and why. */
bool combination_check(const struct options *options, char *why, size_t why_bytes);

/* combination_dump: write the table, a row a line: a feature, those it excludes, the reason. */
void combination_dump(FILE *out);

#endif
