/* SPDX-License-Identifier: MIT */
/*
 * cmd: the functions that carry out the verbs, one for each file in cmd/verbs/.
 *
 * main() calls the function of the verb with the options, and exits with the status that the
 * function returns. The function reports failures on stderr itself. If a signal ended the command
 * or the wait for the lock, cmd_run() and cmd_acquire() don't return: they end the program by the
 * same signal, so that the caller's shell sees it.
 */
#ifndef CMD_H
#define CMD_H

#include "options/options.h"

#define CMD_PROTOTYPE(constant, function, ...) int function(const struct options *options);
VERBS(CMD_PROTOTYPE)
#undef CMD_PROTOTYPE

/* cmd_explain: carry out --explain, which stands for no verb. */
int cmd_explain(const struct options *options);

#endif
