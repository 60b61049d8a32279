/* SPDX-License-Identifier: MIT */
/*
 * commands: executes the Redis commands that rlock's scripts call, on a struct store.
 *
 * Replies are bytes of RESP2, as a server sends them. When a script calls a command, script.c turns
 * these bytes into values of Lua. replay.c compares each command with that of a real server.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "store.h"

#define COMMANDS_WRONG_TYPE "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

/* commands_run: append the reply. False: this simulation has no such command; no reply. */
bool commands_run(struct store *store, const struct text *word, size_t n, struct buffer *reply);

void commands_bulk(struct buffer *reply, struct text text);

#endif
