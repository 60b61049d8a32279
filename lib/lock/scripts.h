/* SPDX-License-Identifier: MIT */
/* scripts: begins requests that run a Lua script. */
#ifndef SCRIPTS_H
#define SCRIPTS_H

#include "wire/resp.h"

/* The Lua files of lib/lua. */
enum script {
    SCRIPT_ACQUIRE,
    SCRIPT_CONFIRM,
    SCRIPT_RENEW,
    SCRIPT_RELEASE,
    SCRIPT_TIMESTAMP_LOCK_ACQUIRE,
    SCRIPT_TIMESTAMP_LOCK_RENEW,
    SCRIPT_TIMESTAMP_LOCK_RELEASE,
    SCRIPT_INSPECT,
    SCRIPT_LIST,
    SCRIPT_BREAK,
    SCRIPT_TIME,
    SCRIPT_RIGHTS
};

/*
 * script_request: begin a request that runs a script on `n_keys` keys; the caller adds KEYS, then
 * ARGV. If `is_likely_known`, the request is EVALSHA: to read the script's text again is a third of
 * the server's work for a grant. If the server doesn't know the script it answers NOSCRIPT, and
 * member.c sends the request again as EVAL, with the text.
 */
void script_request(struct request *request, enum script script, size_t n_keys,
                    bool is_likely_known);

#endif
