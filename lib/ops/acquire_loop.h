/* SPDX-License-Identifier: MIT */
/* acquire_loop: acquire, release or renew again and again, until the answer is final. */
#ifndef ACQUIRE_LOOP_H
#define ACQUIRE_LOOP_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

/*
 * acquire_loop_run: what rlock_acquire() does. `obstacle` is filled in any case; its left_ms must
 * be -1 at first. The observer and the hooks are called by this thread, and not after the return.
 */
enum rlock_status acquire_loop_run(struct quorum *quorum, struct owner *owner,
                                   struct rlock_deadline deadline, struct rlock_grant *grant,
                                   struct rlock_obstacle *obstacle,
                                   const struct rlock_observer *observer,
                                   const struct rlock_hooks *hooks, struct rlock_error *err);

/* release_loop_run: what rlock_release() does; the owner says what becomes of the lock. */
enum rlock_status release_loop_run(struct quorum *quorum, const struct owner *owner,
                                   struct rlock_deadline deadline, struct rlock_error *err);

/* renew_loop_run: what rlock_renew() does; the owner says for how long. */
enum rlock_status renew_loop_run(struct quorum *quorum, const struct owner *owner,
                                 struct rlock_deadline deadline, int64_t *expires_ms,
                                 struct rlock_error *err);

#endif
