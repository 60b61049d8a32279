/* SPDX-License-Identifier: MIT */
/* scripts: the Lua scripts as requests. */
#ifndef SCRIPTS_H
#define SCRIPTS_H

#include "wire/resp.h"

/* The Lua files of lib/lua, by their names. */
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
 * script_request: begin the request that runs a script over `n_keys` keys; the caller adds KEYS,
 * then ARGV. Where the server is likely to know the script it is called by its SHA1 (EVALSHA): to
 * read the text anew is a third of the server's work for a grant. A server that doesn't know it
 * answers NOSCRIPT, and the member sends it again with the text.
 */
void script_request(struct request *request, enum script script, size_t n_keys,
                    bool is_likely_known);

#endif
