/* SPDX-License-Identifier: MIT */
/* inspect: views of one lock, or of all locks of a server. */
#ifndef INSPECT_H
#define INSPECT_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

/* inspect_lock: rlock_inspect(). */
enum rlock_status inspect_lock(struct quorum *quorum, const char *key,
                               struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                               struct rlock_error *err);

/*
 * inspect_mode: standalone, sentinel or cluster; "": it doesn't say, as before
 * Redis 6. HELLO needs no right, and isn't counted as an error.
 */
enum rlock_status inspect_mode(struct quorum *quorum, struct rlock_deadline deadline, char *mode,
                               size_t room, struct rlock_error *err);

/* inspect_list: rlock_list(). */
enum rlock_status inspect_list(struct quorum *quorum, const char *pattern,
                               struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                               struct rlock_error *err);

/* inspect_break: rlock_break(). */
enum rlock_status inspect_break(struct quorum *quorum, const char *key, const char *name,
                                struct rlock_deadline deadline, struct rlock_error *err);

#endif
