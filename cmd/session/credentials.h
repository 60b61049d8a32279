/* SPDX-License-Identifier: MIT */
/* credentials: which password goes with the server. */
#ifndef CREDENTIALS_H
#define CREDENTIALS_H

#include "options/options.h"
#include "session/password_lookup.h"

#include <rlock.h>
#include <stdbool.h>

/* The variable in which an parent rlock names those it took out for a password in them. */
#define CREDENTIALS_STRIPPED "RLOCK_STRIPPED"

struct credentials {
    char **url; /* each without its password, where a nearer source has another */
    size_t n_urls;
    char *password;              /* for URLs that have none; NULL: none, or one that is looked up */
    struct password_place place; /* where; `name` NULL: nowhere */
    char *sentinel_password;
    struct password_place sentinel_place;
};

/*
 * credentials_read: copy the URLs that were asked for, and find the nearest
 * password, or where it is to be looked up.
 *
 * Returns  RLOCK_OK, RLOCK_E_CONFIG (a file can't be read, or it isn't clear
 *          which server is meant) or RLOCK_E_MEMORY.
 */
enum rlock_status credentials_read(struct credentials *credentials, const struct options *options,
                                   struct rlock_error *err);

/* credentials_were_stripped: did an parent rlock take passwords out of our environment? */
bool credentials_were_stripped(void);

/* credentials_fini: clear and free. */
void credentials_fini(struct credentials *credentials);

#endif
