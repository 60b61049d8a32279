/* SPDX-License-Identifier: MIT */
/* option_parser: fill the options from the command line, the environment and a file. */
#ifndef OPTION_PARSER_H
#define OPTION_PARSER_H

#include "options/options.h"

#include <rlock.h>

/*
 * option_parser_read: fill the options from the command line, the RLOCK_ variables, the
 * configuration file and the defaults. If several of these sources have a value, the first in this
 * order wins.
 *
 *   options  filled in any case; the caller frees them by options_fini(). They borrow strings from
 *            argv and the environment
 *   argv     of main(); a password in the URL of an argument is overwritten with asterisks
 *
 * Returns  RLOCK_OK, or with the message in `err`: RLOCK_E_CONFIG (a fault in the file, or a bad
 *          URL), RLOCK_E_MEMORY or RLOCK_E_USAGE (any other fault). For help, version and --dump
 *          only the command line is read.
 * Blocks   while the file is read, see config.h.
 */
enum rlock_status option_parser_read(struct options *options, char **argv, struct rlock_error *err);

#endif
