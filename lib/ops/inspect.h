/* SPDX-License-Identifier: MIT */
/* inspect: reads one lock with its waiters, breaks a lock, visits the servers of a handle. */
#ifndef INSPECT_H
#define INSPECT_H

#include "lock/view.h"
#include "quorum/quorum.h"
#include "rlock_admin.h"

/* inspect_lock: implements rlock_inspect(). */
enum rlock_status inspect_lock(struct quorum *quorum, const char *key,
                               struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                               struct rlock_error *err);

/* One lock, and what its view borrows. */
struct inspected {
    struct rlock_view view;
    struct rlock_party holders[VIEW_HOLDERS_MAX];
    struct commands commands;
};

/*
 * inspect_read: read one lock without its waiters, by a script or by commands. `one` has one
 * member. The view is valid until that member is asked again.
 *
 *   stays  true: a lock that a Cluster has moved to another server is a fault, as it always is
 *          with a script
 */
enum rlock_status inspect_read(struct quorum *one, const struct lock_keys *keys, bool stays,
                               struct inspected *lock, struct rlock_deadline deadline,
                               struct rlock_error *err);

/*
 * inspect_mode: asks the server by HELLO for its mode, and writes "standalone", "sentinel" or
 * "cluster" into `mode`, which has `room` bytes. Without HELLO (a proxy), `mode` becomes "". Why
 * HELLO: every user may send it, and a standalone server would count CLUSTER NODES among its failed
 * commands, which administrators watch.
 */
enum rlock_status inspect_mode(struct quorum *quorum, struct rlock_deadline deadline, char *mode,
                               size_t room, struct rlock_error *err);

/* Asks one server; `one` is a quorum of this server alone. */
typedef enum rlock_status inspect_visit(struct quorum *one, const void *context,
                                        struct rlock_deadline deadline, struct rlock_error *err);

/*
 * inspect_each_server: calls `visit` for the server of each member, one after the other, as each
 * has its own keys. If a member is a Cluster, calls it for each of its primaries.
 *
 * Returns  RLOCK_OK if a majority of the members was visited, RLOCK_STOPPED, or a fault.
 */
enum rlock_status inspect_each_server(struct quorum *quorum, inspect_visit *visit,
                                      const void *context, struct rlock_deadline deadline,
                                      struct rlock_error *err);

/* inspect_break: implements rlock_break(). `info` tells the holders who breaks the lock. */
enum rlock_status inspect_break(struct quorum *quorum, const char *key, const char *name,
                                const char *info, struct rlock_deadline deadline,
                                struct rlock_error *err);

#endif
