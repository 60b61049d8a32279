/* SPDX-License-Identifier: MIT */
/* list: lists all locks of a server, and finds keys by SCAN. */
#ifndef LIST_H
#define LIST_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

/* list_locks: implements rlock_list(). */
enum rlock_status list_locks(struct quorum *quorum, const char *pattern,
                             struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                             struct rlock_error *err);

#define LIST_NAMES_MAX 64 /* most keys that a reply to SCAN may have */

/* The names of keys in a reply to SCAN. */
struct list_names {
    char *name[LIST_NAMES_MAX];
    size_t n;
};

/* A search for keys on the servers of all members. */
struct list_search {
    const char *match;   /* a glob for the names of keys, for SCAN */
    const char *pattern; /* a glob for the keys of locks, see list_is_match(); NULL: all */
    struct rlock_deadline deadline;
    /* Receives the names that one SCAN has found, borrowed. A fault ends the search. */
    enum rlock_status (*on_found)(const struct list_search *search, const struct list_names *found,
                                  struct rlock_error *err);
    const void *visitor; /* for on_found */
    struct quorum *one;  /* for on_found: the server that is searched; set by list_search() */
};

/*
 * list_search: pass the names of all keys that match `match` to `on_found`, some at a time, server
 * by server. Leaves out names with a NUL, and those that are too long for a lock. Returns RLOCK_OK
 * if the servers of a majority of the members were searched, RLOCK_STOPPED, or a fault.
 */
enum rlock_status list_search(struct quorum *quorum, const struct list_search *search,
                              struct rlock_error *err);

#define LIST_ASK_MAX (REQUEST_COMMANDS - 1) /* most keys in one call of list_ask_each() */

/*
 * list_ask_each: ask about `n` keys by one command each, with the words `more`, up to a NULL, after
 * the key. Element i + 1 of the reply is that of key i, and may be an error.
 */
enum rlock_status list_ask_each(const struct list_search *search, char *const *name, size_t n,
                                const char *command, const char *const *more,
                                const struct resp_value **reply, struct rlock_error *err);

/* list_is_match: does the key of a lock match the pattern of the search? */
bool list_is_match(const struct list_search *search, const char *key);

#endif
