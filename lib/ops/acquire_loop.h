/* SPDX-License-Identifier: MIT */
/* acquire_loop: ask again and again, until there is an answer or time is over. */
#ifndef ACQUIRE_LOOP_H
#define ACQUIRE_LOOP_H

#include "quorum/quorum.h"

/* wait_acquire: rlock_acquire(). */
enum rlock_status wait_acquire(struct quorum *quorum, struct owner *owner,
                               struct rlock_deadline deadline, struct rlock_grant *grant,
                               struct rlock_obstacle *obstacle,
                               const struct rlock_observer *observer,
                               const struct rlock_hooks *hooks, struct rlock_error *err);

/* wait_release: rlock_release(). */
enum rlock_status wait_release(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, struct rlock_error *err);

/* wait_renew: rlock_renew(); the lease says for how long. */
enum rlock_status wait_renew(struct quorum *quorum, const struct owner *owner,
                             struct rlock_deadline deadline, int64_t *expires_ms,
                             struct rlock_error *err);

#endif
