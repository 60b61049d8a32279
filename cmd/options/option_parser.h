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
 *   options  out, filled in any case; the caller frees it by options_fini(). Strings are borrowed
 *            from argv and the environment
 *   argv     of main(); a password in the URL of an argument is overwritten with asterisks
 *
 * Returns  RLOCK_OK; RLOCK_E_USAGE (fault in the command line or the environment) or
 *          RLOCK_E_CONFIG (fault in the file), with the message in `err`. After --help, --version
 *          and --dump the other sources are not read.
 * Blocks   while the file is read, see config.h.
 */
enum rlock_status option_parser_read(struct options *options, char **argv, struct rlock_error *err);

#endif
