/* SPDX-License-Identifier: MIT */
/* inspect: views of one lock, or of all locks of a server. */
#ifndef INSPECT_H
#define INSPECT_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

/* inspect_lock: what rlock_inspect() does. */
enum rlock_status inspect_lock(struct quorum *quorum, const char *key,
                               struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                               struct rlock_error *err);

/*
 * inspect_mode: is the server "standalone", "sentinel" or "cluster"? "": it doesn't say, as before
 * Redis 6. Asks by HELLO, which needs no rights, and counts for no failed command in the server's
 * statistics. `room` bytes are in `mode`.
 */
enum rlock_status inspect_mode(struct quorum *quorum, struct rlock_deadline deadline, char *mode,
                               size_t room, struct rlock_error *err);

/* inspect_list: what rlock_list() does. */
enum rlock_status inspect_list(struct quorum *quorum, const char *pattern,
                               struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                               struct rlock_error *err);

/* inspect_break: what rlock_break() does. */
enum rlock_status inspect_break(struct quorum *quorum, const char *key, const char *name,
                                struct rlock_deadline deadline, struct rlock_error *err);

#endif
