/* SPDX-License-Identifier: MIT */
/* environment: the environment variables that rlock inherits, hides and gives to the command. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <rlock.h>
#include <stdbool.h>

/* The tokens of the locks under which this rlock was started, that of its parent rlock first. */
struct parent {
    const char *token[RLOCK_PARENTS_MAX]; /* pointers into `text` */
    size_t n;
    char *text; /* heap */
};

/* environment_parent: read RLOCK_TOKEN and RLOCK_PARENT_TOKENS. Without memory: no tokens. */
struct parent environment_parent(char *const *inherited);
void parent_fini(struct parent *parent);

/* Does the environment say that rlock was started under a lock on a key? */
enum parent_says {
    PARENT_SAYS_NO,
    PARENT_SAYS_YES,  /* there is a token, and RLOCK_KEY has the key */
    PARENT_SAYS_TOKEN /* there is a token, but no RLOCK_KEY */
};
enum parent_says environment_says(char *const *inherited, const char *key);

/*
 * environment_hide: copy each variable that holds a password to the heap, and overwrite the
 * original with asterisks. Other processes of the user can read the original in /proc/PID/environ,
 * but not the heap. getenv(3) finds the copies.
 *
 * environment_forget: overwrite the values of the copies as well.
 */
void environment_hide(char **inherited);
void environment_forget(char *const *inherited);

/*
 * environment_plain: the environment for a helper process: without passwords, and without the
 * variables that rlock sets for its command, such as RLOCK_TOKEN. Returns a heap array of borrowed
 * strings; NULL: no memory.
 */
char **environment_plain(char *const *inherited);

/* The environment of the command. */
struct environment {
    char **all;     /* heap array for execve(2), with a NULL at the end */
    char *ours[16]; /* heap: the strings in `all` that are not borrowed from `inherited` */
    int n_ours;
    size_t n; /* how many strings are in `all` */
    char *const *inherited;
};

/*
 * environment_make: make the environment of the command from `inherited`, which is borrowed, and
 * add RLOCK_KEY with the `keys`, one on each line. Unless `keeps_secrets`, the variables that hold
 * a password are left out, and CREDENTIALS_STRIPPED lists their names. False: no memory.
 */
bool environment_make(struct environment *environment, char *const *inherited, const char *keys,
                      bool keeps_secrets);

/*
 * environment_grant: add the variables whose values come from the grant: RLOCK_TOKEN, RLOCK_FENCE,
 * RLOCK_TTL_MS, RLOCK_SLOT, and the list of the parent locks' tokens. False: no memory.
 */
bool environment_grant(struct environment *environment, const struct rlock_grant *grant,
                       bool has_slot);
void environment_fini(struct environment *environment);

#endif
