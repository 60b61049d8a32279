/* SPDX-License-Identifier: MIT */
/* environment: the environment variables that rlock inherits, hides and passes to the command. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <rlock.h>
#include <stdbool.h>

/* In this variable a parent rlock lists the variables that it removed, as they have passwords. */
#define ENVIRONMENT_STRIPPED "RLOCK_STRIPPED"

/* The tokens of the locks under which this rlock was started, that of its parent rlock first. */
struct parent {
    const char *token[RLOCK_PARENTS_MAX]; /* pointers into `text` */
    size_t n;
    char *text; /* heap */
};

/* environment_value: the value of a variable; "": it isn't set. */
const char *environment_value(const char *name);

/* environment_hides: does the variable hold a password, or name a place that has one? */
bool environment_hides(const char *name);

/* environment_has_parent: does the environment say that rlock was started under a lock? */
bool environment_has_parent(void);

/* environment_parent: read RLOCK_TOKEN and RLOCK_PARENT_TOKENS; no tokens if memory runs out. */
struct parent environment_parent(void);
void parent_fini(struct parent *parent);

/* Does the environment say that rlock was started under a lock on a key? */
enum parent_says {
    PARENT_SAYS_NO,
    PARENT_SAYS_YES,  /* there is a token, and RLOCK_KEY has the key */
    PARENT_SAYS_TOKEN /* there is a token, but no RLOCK_KEY */
};
enum parent_says environment_says(const char *key);

/*
 * environment_hide: copy each variable that holds a password to the heap, and overwrite the
 * original with asterisks. Other processes of the user can read the original in /proc/PID/environ,
 * but not the heap. getenv(3) finds the copies.
 *
 * environment_forget: overwrite the values of the copies as well.
 */
void environment_hide(void);
void environment_forget(void);

/*
 * environment_shed: in a helper process, overwrite the passwords, and remove the variables that
 * have one, and those that rlock sets for its command, such as RLOCK_TOKEN. False: no memory.
 */
bool environment_shed(void);

/* The environment of the command. */
struct environment {
    char **all; /* heap array for execve(2), with a NULL at the end; most strings are borrowed */
    size_t n;   /* how many strings are in `all` */
    char *keys; /* heap: RLOCK_KEY */
    char stripped[512]; /* ENVIRONMENT_STRIPPED */
};

/*
 * environment_make: make the environment of the command from that of rlock. Add RLOCK_KEY with the
 * `keys`, one on each line, and the borrowed `entries`, which end with a NULL and replace inherited
 * variables of the same name. Unless `keeps_secrets`, leave out the variables that hold a password,
 * and list their names in ENVIRONMENT_STRIPPED. False: no memory.
 */
bool environment_make(struct environment *environment, const char *keys, char *const *entries,
                      bool keeps_secrets);

/*
 * environment_put_grant: write the variables whose values come from the grant, as strings
 * "NAME=value", and an empty string at the end: RLOCK_TOKEN, RLOCK_FENCE, RLOCK_TTL_MS, RLOCK_SLOT
 * if there are slots, and the list of the parent locks' tokens.
 *
 * environment_add_grant: add the variables in `text`, which is borrowed. Allocates nothing.
 */
#define ENVIRONMENT_GRANT_BYTES 1024
void environment_put_grant(char text[ENVIRONMENT_GRANT_BYTES], const struct rlock_grant *grant);
void environment_add_grant(struct environment *environment, char text[ENVIRONMENT_GRANT_BYTES]);
void environment_fini(struct environment *environment);

#endif
