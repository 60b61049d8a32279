/* SPDX-License-Identifier: MIT */
/* inspect_commands: lists, reads and breaks locks by commands, without scripts. */
#ifndef INSPECT_COMMANDS_H
#define INSPECT_COMMANDS_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

/*
 * inspect_commands_lock() and inspect_commands_break() implement rlock_inspect() and rlock_break()
 * for a quorum of one member, without scripts. inspect_commands_list() passes the locks of one
 * server to the visitor, as rlock_list() does.
 */
enum rlock_status inspect_commands_lock(struct quorum *quorum, const char *key,
                                        struct rlock_deadline deadline,
                                        const struct rlock_visitor *visitor,
                                        struct rlock_error *err);
enum rlock_status inspect_commands_break(struct quorum *quorum, const char *key, const char *name,
                                         const char *info, struct rlock_deadline deadline,
                                         struct rlock_error *err);
enum rlock_status inspect_commands_list(struct quorum *quorum, const char *pattern,
                                        struct rlock_deadline deadline,
                                        const struct rlock_visitor *visitor,
                                        struct rlock_error *err);

#define INSPECT_NAMES_MAX 64 /* most keys that a reply to SCAN may have */

/* The names of keys in a reply to SCAN. */
struct inspect_names {
    char *name[INSPECT_NAMES_MAX];
    size_t n;
};

/* Gets the names that one SCAN has found, which it borrows. A fault ends the scan. */
typedef enum rlock_status inspect_found(const void *context, const struct inspect_names *found,
                                        struct rlock_error *err);

/*
 * inspect_commands_scan: pass the names of all keys of one server that match the glob `match` to
 * `on_found`, some at a time. Leaves out names with a NUL, and those that are too long for a lock.
 */
enum rlock_status inspect_commands_scan(struct quorum *one, const char *match,
                                        struct rlock_deadline deadline, inspect_found *on_found,
                                        const void *context, struct rlock_error *err);

#endif
