/* SPDX-License-Identifier: MIT */
/* option_parser: fill the options from the command line, the environment and a file. */
#ifndef OPTION_PARSER_H
#define OPTION_PARSER_H

#include "options/options.h"

#include <rlock.h>

/*
 * option_parser_read: fill the options from the command line, the RLOCK_ variables, the
 * configuration file and the defaults; the first of these that has a value wins.
 *
 *   options  out, always; to be freed by options_fini(). It borrows from argv and the environment
 *   argv     of main(); a password in a URL there is overwritten with asterisks
 *
 * Returns  RLOCK_OK; RLOCK_E_USAGE (command line or environment) or RLOCK_E_CONFIG (file), with the
 *          message in `err`. After --help, --version and --dump nothing else is checked.
 * Blocks   while the file is read, see config.h.
 */
enum rlock_status option_parser_read(struct options *options, char **argv, struct rlock_error *err);

#endif
