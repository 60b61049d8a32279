/* SPDX-License-Identifier: MIT */
/*
 * cmd: the functions that carry out the verbs, one for each file in cmd/verbs/.
 *
 * Each takes what the command line, the environment and the configuration file ask for, says on
 * stderr what is to be said, and returns the exit status of the program. cmd_run() may end the
 * program by a signal instead, where the same signal ended the command or the wait.
 */
#ifndef CMD_H
#define CMD_H

#include "options/options.h"

#define CMD_PROTOTYPE(constant, function, ...) int function(const struct options *options);
VERBS(CMD_PROTOTYPE)
#undef CMD_PROTOTYPE

#endif
