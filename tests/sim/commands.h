/* SPDX-License-Identifier: MIT */
/*
 * commands: those commands of Redis that the scripts call, over a store.
 *
 * Replies are bytes of RESP2, as a server sends them; also to a script, for which script.c turns
 * them into values of Lua. replay.c compares each command with a real server's.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "store.h"

#define COMMANDS_WRONG_TYPE "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

/* commands_run: append the reply. False: this simulation has no such command; no reply. */
bool commands_run(struct store *store, const struct text *word, size_t n, struct buffer *reply);

void commands_bulk(struct buffer *reply, struct text text);

#endif
