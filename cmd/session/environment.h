/* SPDX-License-Identifier: MIT */
/* environment: what the command finds in its environment. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <rlock.h>
#include <stdbool.h>

/* The locks that we are under already: their tokens, the nearest first. */
struct parent {
    const char *token[RLOCK_PARENTS_MAX];
    size_t n;
    char *text; /* that they are in */
};

/* environment_parent: as an environment tells; nothing where there is no memory. */
struct parent environment_parent(char *const *inherited);
void parent_fini(struct parent *parent);

/* Does an environment say that we are under a lock on that key already? */
enum parent_says {
    PARENT_SAYS_NO,
    PARENT_SAYS_YES,  /* RLOCK_KEY names it, and there is a token */
    PARENT_SAYS_TOKEN /* there is a token, and nothing says of which keys */
};
enum parent_says environment_says(char *const *inherited, const char *key);

/*
 * environment_hide: what holds a password is moved out of sight: everybody of
 * the same user may read the environment that a process was started with. All
 * who ask for a variable find it as before. environment_forget: it is cleared
 * there, too; which variables held a password is still to be seen.
 */
void environment_hide(char **inherited);
void environment_forget(char *const *inherited);

/*
 * environment_plain: what is not the lock's, and holds no password, for a process
 * that is to have neither. Heap, of borrowed strings; NULL: no memory.
 */
char **environment_plain(char *const *inherited);

/* The command's environment: an array of ours, of strings of ours and borrowed ones. */
struct environment {
    char **all; /* NULL at the end */
    char *ours[16];
    int n_ours;
    size_t n; /* of `all` */
    char *const *inherited;
};

/*
 * environment_make: `inherited`, which is borrowed, with the lock's keys (RLOCK_KEY,
 * each in a line of its own) and, unless `keeps_secrets`, without what holds a
 * password; CREDENTIALS_STRIPPED then names what was taken out. False: no memory.
 */
bool environment_make(struct environment *environment, char *const *inherited, const char *keys,
                      bool keeps_secrets);

/*
 * environment_grant: add what is known with the grant (RLOCK_TOKEN, RLOCK_FENCE,
 * RLOCK_TTL_MS, RLOCK_SLOT). False: no memory.
 */
bool environment_grant(struct environment *environment, const struct rlock_grant *grant,
                       bool has_slot);
void environment_fini(struct environment *environment);

#endif
