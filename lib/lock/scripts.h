/* SPDX-License-Identifier: MIT */
/* scripts: the Lua scripts as requests. */
#ifndef SCRIPTS_H
#define SCRIPTS_H

#include "wire/resp.h"

enum script {
    SCRIPT_ACQUIRE,
    SCRIPT_CONFIRM,
    SCRIPT_RENEW,
    SCRIPT_RELEASE,
    SCRIPT_STAMP_ACQUIRE,
    SCRIPT_STAMP_RENEW,
    SCRIPT_STAMP_RELEASE,
    SCRIPT_INSPECT,
    SCRIPT_LIST,
    SCRIPT_BREAK,
    SCRIPT_TIME,
    SCRIPT_RIGHTS
};

/* The keys of one lock, in the order of the scripts' KEYS. */
enum script_key { KEY_LOCK, KEY_FENCE, KEY_LINE, KEY_WAITERS, KEY_HOLDERS, KEY_CARDS };

#define SCRIPT_KEYS (KEY_CARDS + 1)

/*
 * script_request: begin a script over so many keys; KEYS and ARGV are to be
 * added. One that the server is likely to know is asked for by its SHA1, which
 * saves it from reading the text again: a third of its work for a grant.
 */
void script_request(struct request *request, enum script script, size_t n_keys, bool is_known);

#endif
