/* SPDX-License-Identifier: MIT */
/* environment: what the command finds in its environment. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <rlock.h>
#include <stdbool.h>

/* The command's environment: an array of ours, of strings of ours and borrowed ones. */
struct environment {
    char **all; /* NULL at the end */
    char *ours[8];
    int n_ours;
};

/*
 * environment_make: `inherited` with RLOCK_KEY, RLOCK_TOKEN, RLOCK_FENCE and
 * RLOCK_TTL_MS added and, unless `keeps_secrets`, without what holds a
 * password; CREDENTIALS_STRIPPED then names what was taken out. False: no memory.
 */
bool environment_make(struct environment *environment, char *const *inherited, const char *key,
                      int64_t ttl_ms, const struct rlock_grant *grant, bool keeps_secrets);
void environment_fini(struct environment *environment);

#endif
