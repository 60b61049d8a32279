/* SPDX-License-Identifier: MIT */
/* redis: asks redis.lua, which has the keys of the simulated servers, in a real Lua 5.1. */
#ifndef REDIS_H
#define REDIS_H

#include "buffer.h"

#include <stdint.h>

/*
 * redis_ask: call the function `what` of redis.lua for a server, whose clock shows `now_us`, and
 * append the string that it returns. Returns false if it returns nil.
 */
bool redis_ask(const char *what, int server, int64_t now_us, const struct text *word, size_t n,
               struct buffer *out);

void redis_bulk(struct buffer *reply, struct text text);

#endif
