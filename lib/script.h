/* SPDX-License-Identifier: MIT */
/* script: the Lua scripts as requests. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "codec.h"

enum script { SCRIPT_ACQUIRE, SCRIPT_RENEW, SCRIPT_RELEASE };

/* The keys of one lock, in the order of the scripts' KEYS. */
enum script_key { KEY_LOCK, KEY_FENCE, KEY_LINE, KEY_WAITERS };

#define SCRIPT_KEYS (KEY_WAITERS + 1)

/* script_request: begin EVAL of a script over a lock's keys; add its ARGV with request_add(). */
void script_request(struct request *request, enum script script, char *const key[SCRIPT_KEYS]);

#endif
