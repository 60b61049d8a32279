/* SPDX-License-Identifier: MIT */
/* scripts: begins requests that run a Lua script, and finds the line where one failed. */
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
    SCRIPT_BREAK,
    SCRIPT_HISTORY,
    SCRIPT_RIGHTS
};

/*
 * script_request: begin a request that runs a script on `n_keys` keys; the caller adds KEYS, then
 * ARGV. The request is EVALSHA, which has the SHA1 of the script instead of its text. If the server
 * replies NOSCRIPT, as after a restart, member.c sends the request again as EVAL, with the text.
 */
void script_request(struct request *request, enum script script, size_t n_keys);

#define SCRIPT_PLACE_BYTES 64

/*
 * script_find_place: find the line at which a script failed. The line number in a server's error
 * counts lines of the text that was sent, which has no comments.
 *
 *   error  the server's error reply
 *   place  out: FILE:LINE, such as "lib/lua/acquire.lua:120"
 *
 * Returns  false if the error doesn't name one of the scripts and a line of it.
 */
bool script_find_place(const char *error, char place[SCRIPT_PLACE_BYTES]);

#endif
