/* SPDX-License-Identifier: MIT */
/* inspect_commands: reads, lists and breaks locks by commands, without scripts. */
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

/*
 * inspect_commands_pattern: a pattern for SCAN that matches the keys of the locks that `pattern`
 * matches, and the names of their helper keys, because the name of a helper key contains the key of
 * its lock. It matches other keys, too. Heap, for the caller to free; NULL: no memory.
 */
char *inspect_commands_pattern(const char *pattern);

#endif
