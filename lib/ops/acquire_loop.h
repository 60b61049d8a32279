/* SPDX-License-Identifier: MIT */
/* acquire_loop: repeats an acquire, a renewal or a release until the reply is final. */
#ifndef ACQUIRE_LOOP_H
#define ACQUIRE_LOOP_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

/*
 * acquire_loop_run: implements rlock_acquire(). The caller sets obstacle->left_ms to -1. The loop
 * may write to `obstacle` also if it returns RLOCK_OK. The loop calls the observer in the caller's
 * thread.
 */
enum rlock_status acquire_loop_run(struct quorum *quorum, struct owner *owner,
                                   struct rlock_deadline deadline, struct rlock_grant *grant,
                                   struct rlock_obstacle *obstacle,
                                   const struct rlock_observer *observer, struct rlock_error *err);

/* release_loop_run: implements rlock_release(), after the caller called owner_set_ending(). */
enum rlock_status release_loop_run(struct quorum *quorum, const struct owner *owner,
                                   struct rlock_deadline deadline, struct rlock_error *err);

/* renew_loop_run: implements rlock_renew(), after the caller called owner_set_renewal_ttl(). */
enum rlock_status renew_loop_run(struct quorum *quorum, const struct owner *owner,
                                 struct rlock_deadline deadline, int64_t *expires_ms,
                                 struct rlock_error *err);

#endif
