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

/* Gets the names that one SCAN has found, which it borrows. A fault ends the scan. */
typedef enum rlock_status list_names_found(const void *context, const struct list_names *found,
                                           struct rlock_error *err);

/*
 * list_scan: pass the names of all keys of one server that match the glob `match` to `on_found`,
 * some at a time. Leaves out names with a NUL, and those that are too long for a lock.
 */
enum rlock_status list_scan(struct quorum *one, const char *match, struct rlock_deadline deadline,
                            list_names_found *on_found, const void *context,
                            struct rlock_error *err);

#endif
