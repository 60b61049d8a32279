/* SPDX-License-Identifier: MIT */
/* environment: the environment variables that rlock inherits, hides and gives to the command. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <rlock.h>
#include <stdbool.h>

/* The variable in which a parent rlock lists the variables that it removed for their passwords. */
#define ENVIRONMENT_STRIPPED "RLOCK_STRIPPED"

/* The tokens of the locks under which this rlock was started, that of its parent rlock first. */
struct parent {
    const char *token[RLOCK_PARENTS_MAX]; /* pointers into `text` */
    size_t n;
    char *text; /* heap */
};

/* environment_value: the value of a variable; "": it isn't set. */
const char *environment_value(char *const *inherited, const char *name);

/* environment_hides: is the variable set, and kept from the command, as it has a password? */
bool environment_hides(char *const *inherited, const char *name);

/* environment_parent: read RLOCK_TOKEN and RLOCK_PARENT_TOKENS; no tokens if memory runs out. */
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
 *
 * environment_shed: make that the environment of this process, and overwrite the passwords. False:
 * no memory.
 */
char **environment_plain(char *const *inherited);
bool environment_shed(void);

/* The environment of the command. */
struct environment {
    char **all;     /* heap array for execve(2), with a NULL at the end */
    char *ours[24]; /* heap: the strings in `all` that are not borrowed from `inherited` */
    int n_ours;
    size_t n; /* how many strings are in `all` */
    char *const *inherited;
};

/*
 * environment_make: make the environment of the command from `inherited`, which is borrowed, and
 * add RLOCK_KEY with the `keys`, one on each line, and the `entries`, which end with a NULL and
 * replace inherited variables of the same name. Unless `keeps_secrets`, the variables that hold
 * a password are left out, and ENVIRONMENT_STRIPPED lists their names. False: no memory.
 */
bool environment_make(struct environment *environment, char *const *inherited, const char *keys,
                      char *const *entries, bool keeps_secrets);

/*
 * environment_put_grant: write the variables whose values come from the grant, each as "NAME=value"
 * with a NUL behind it, and an empty one at the end: RLOCK_TOKEN, RLOCK_FENCE, RLOCK_TTL_MS, with
 * `has_slot` RLOCK_SLOT, and the list of the parent locks' tokens, which `inherited` has.
 *
 * environment_add_grant: add these variables. `text` is borrowed for as long as the environment is
 * used. Allocates nothing.
 */
#define ENVIRONMENT_GRANT_BYTES 1024
void environment_put_grant(char text[ENVIRONMENT_GRANT_BYTES], char *const *inherited,
                           const struct rlock_grant *grant, bool has_slot);
void environment_add_grant(struct environment *environment, char text[ENVIRONMENT_GRANT_BYTES]);
void environment_fini(struct environment *environment);

#endif
