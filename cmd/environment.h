/* SPDX-License-Identifier: MIT */
/* environment: what the command finds in its environment. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <rlock.h>
#include <stdbool.h>

/* The locks that we are under already: their tokens, the nearest first. */
struct outer {
    const char *token[RLOCK_OUTER_MAX];
    size_t n;
    char *text; /* that they are in */
};

/* environment_outer: as an environment tells; nothing where there is no memory. */
struct outer environment_outer(char *const *inherited);
void outer_fini(struct outer *outer);

/* What the command is told of its lock. */
struct environment_lock {
    const char *keys; /* each in a line of its own */
    bool has_slot;
    const struct rlock_grant *grant;
};

/* The command's environment: an array of ours, of strings of ours and borrowed ones. */
struct environment {
    char **all; /* NULL at the end */
    char *ours[16];
    int n_ours;
};

/*
 * environment_make: `inherited` with what the lock adds (RLOCK_KEY,
 * RLOCK_TOKEN, RLOCK_FENCE, RLOCK_TTL_MS, RLOCK_SLOT) and, unless
 * `keeps_secrets`, without what holds a password; CREDENTIALS_STRIPPED then
 * names what was taken out. False: no memory.
 */
bool environment_make(struct environment *environment, char *const *inherited,
                      const struct environment_lock *lock, bool keeps_secrets);
void environment_fini(struct environment *environment);

#endif
