/* SPDX-License-Identifier: MIT */
/* script: the Lua scripts as requests. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "codec.h"

enum script { SCRIPT_ACQUIRE, SCRIPT_RENEW, SCRIPT_RELEASE };

/* script_request: begin EVAL of a script over two keys; add its ARGV with request_add(). */
void script_request(struct request *request, enum script script, const char *key,
                    const char *fence_key);

#endif
