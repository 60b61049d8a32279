/* SPDX-License-Identifier: MIT */
/* same_server: tells an rlock in the command which server the lock is on, without passwords. */
#ifndef SAME_SERVER_H
#define SAME_SERVER_H

#include "options/options.h"
#include "session/credentials.h"

#include <stdbool.h>

/* The variable that has the names of the servers on which the nearest parent lock is. */
#define PARENT_SERVER "RLOCK_PARENT_SERVER"

/*
 * same_server_names: returns the address and database of each of these servers, at most
 * RLOCK_MEMBERS_MAX, sorted, and separated by blanks. Heap; NULL: no memory.
 */
char *same_server_names(char *const *urls, size_t n);

struct same_server {
    char *names;       /* heap: "127.0.0.1:6379/0", several separated by blanks; NULL: no memory */
    char *entries[10]; /* heap: "NAME=value" for the command's environment, and a NULL at the end */
    size_t n;
};

/*
 * same_server_init: make the entries: PARENT_SERVER, and if -u names the server, RLOCK_URL and the
 * variables for TLS and Sentinels that the environment doesn't set. If the user has set RLOCK_URL,
 * without a password, only PARENT_SERVER. If memory runs out, entries are missing.
 */
void same_server_init(struct same_server *same, const struct options *options,
                      const struct credentials *credentials);
void same_server_fini(struct same_server *same);

/*
 * same_server_differs: if rlock runs under a lock that is on other servers, return the names of
 * these servers, a string of the environment; else NULL.
 */
const char *same_server_differs(const struct same_server *same);

#endif
