/* SPDX-License-Identifier: MIT */
/*
 * script: runs the Lua scripts that clients send, in a real Lua 5.1, on a struct store.
 *
 * Redis has Lua 5.1 built in, with a table `redis`. script.c makes those functions of this table
 * that rlock's scripts call. Source: redis/src/script_lua.c, release 7.0.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "store.h"

#define SCRIPTS_MAX 64

/* script_number: a number for a script by its text, or by its SHA1; -1: no text had this SHA1. */
int script_number(struct text source);
int script_number_of_sha1(struct text sha1);

/*
 * script_run: run a script, and append its reply.
 *
 *   word, n  numkeys, keys and arguments, as they follow the script in EVAL
 *   now_us   what the command TIME replies to the script
 */
void script_run(int script, struct store *store, const struct text *word, size_t n, int64_t now_us,
                struct buffer *reply);

/*
 * script_refuse_lists: do the servers refuse that scripts use the lists of waiters (rlock:wake:),
 * which aren't in KEYS? No script may use any other key that isn't in KEYS.
 */
void script_refuse_lists(bool refuses);

#endif
