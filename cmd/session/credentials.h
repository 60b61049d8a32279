/* SPDX-License-Identifier: MIT */
/* credentials: find the URLs and the passwords of the servers in all places where they may be. */
#ifndef CREDENTIALS_H
#define CREDENTIALS_H

#include "options/options.h"
#include "session/password_lookup.h"

#include <rlock.h>
#include <stdbool.h>

/* The variable in which a parent rlock lists the variables it removed, as they held a password. */
#define CREDENTIALS_STRIPPED "RLOCK_STRIPPED"

struct credentials {
    char **url; /* heap: copies, without the password if a nearer source has another one */
    size_t n_urls;
    char *password;              /* heap: for URLs that have none; NULL: none, or `place` has it */
    struct password_place place; /* looked up for each connection; `name` NULL: no such place */
    char *sentinel_password;     /* the same two for the Sentinels */
    struct password_place sentinel_place;
};

/*
 * credentials_read: copy the URLs, and find the password in the nearest of: options on the command
 * line, environment, configuration file; within one of these the password in the URL comes first.
 * REDIS_URL and REDISCLI_AUTH of other programs come last.
 *
 *   credentials  out; to be freed by credentials_fini() on RLOCK_OK
 *
 * Returns  RLOCK_OK, RLOCK_E_CONFIG (a file can't be read, or a parent rlock has removed the URL
 *          from the environment) or RLOCK_E_MEMORY.
 * Blocks   while a password file that is a pipe is read.
 */
enum rlock_status credentials_read(struct credentials *credentials, const struct options *options,
                                   struct rlock_error *err);

/* credentials_were_stripped: has a parent rlock removed passwords from our environment? */
bool credentials_were_stripped(void);

/* credentials_fini: clear and free. */
void credentials_fini(struct credentials *credentials);

#endif
