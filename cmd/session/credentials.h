/* SPDX-License-Identifier: MIT */
/* credentials: find the URLs and the passwords of the servers in all places where they may be. */
#ifndef CREDENTIALS_H
#define CREDENTIALS_H

#include "options/config.h"
#include "options/options.h"
#include "session/password_lookup.h"

#include <rlock.h>
#include <stdbool.h>

struct credentials {
    char **url; /* heap: copies, without their passwords if another source outranks them */
    size_t n_urls;
    char *password; /* heap: for URLs that have no password; NULL: none, or `place` has it */
    struct password_place place; /* file or command with the password; `name` NULL: there is none */
    const char *password_variable; /* the variable with the password; NULL: none has it */
    const char *url_variable;      /* VALKEY_URL or REDIS_URL, if the URL is its value; else NULL */
    bool has_other_url;            /* VALKEY_URL gave the URL, and REDIS_URL has another one */
    char *sentinel_password;       /* as `password`, for the Sentinels */
    struct password_place sentinel_place; /* as `place`, for the Sentinels */
};

/*
 * credentials_read: copy the URLs, and find the password. Options on the command line outrank the
 * environment, which outranks the configuration file; within one of these the password in a URL
 * outranks others. VALKEY_URL, REDIS_URL, VALKEYCLI_AUTH and REDISCLI_AUTH, which belong to other
 * programs, come last.
 *
 *   credentials  out; on RLOCK_OK the caller frees it by credentials_fini()
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, RLOCK_E_CONFIG (a file can't be read, VALKEY_URL or REDIS_URL
 *          is no URL, or a parent rlock has removed the URL from the environment) or
 *          RLOCK_E_MEMORY.
 * Blocks   while it reads a password file that is a pipe, as long as `wait` allows.
 */
enum rlock_status credentials_read(struct credentials *credentials, const struct options *options,
                                   const struct config_wait *wait, struct rlock_error *err);

/* credentials_in_urls: how many of the URLs have a password. */
size_t credentials_in_urls(const struct credentials *credentials);

/* credentials_were_stripped: has a parent rlock removed passwords from our environment? */
bool credentials_were_stripped(void);

/* credentials_fini: overwrite the passwords, and free the memory. */
void credentials_fini(struct credentials *credentials);

#endif
