/* SPDX-License-Identifier: MIT */
/*
 * cmd: the functions that carry out the verbs, one for each file in cmd/verbs/.
 *
 * main() calls the function of the verb, and exits with the status that the function returns. The
 * function reports failures itself. If a signal ended the command or the wait for the lock,
 * cmd_run(), cmd_acquire() and cmd_hold() don't return: they end rlock by the same signal, so that
 * the caller's shell sees the signal.
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
