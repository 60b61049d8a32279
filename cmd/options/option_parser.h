/* SPDX-License-Identifier: MIT */
/* option_parser: fill the options from the command line, the environment and a file. */
#ifndef OPTION_PARSER_H
#define OPTION_PARSER_H

#include "options/options.h"

#include <rlock.h>

/*
 * option_parser_read: gather every source, the nearest first.
 *
 * Returns  RLOCK_OK, or RLOCK_E_USAGE (command line, environment) or
 *          RLOCK_E_CONFIG (file) with the text in `err`.
 */
enum rlock_status option_parser_read(struct options *options, char **argv, struct rlock_error *err);

#endif
