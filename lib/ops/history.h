/* SPDX-License-Identifier: MIT */
/* history: reads what the servers have noted about the holds of a lock. */
#ifndef HISTORY_H
#define HISTORY_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

/* history_read: implements rlock_history(). */
enum rlock_status history_read(struct quorum *quorum, const char *key, int64_t window_ms,
                               struct rlock_deadline deadline,
                               const struct rlock_history_visitor *visitor,
                               struct rlock_error *err);

/* history_keys: implements rlock_history_keys(). */
enum rlock_status history_keys(struct quorum *quorum, const char *pattern,
                               struct rlock_deadline deadline,
                               const struct rlock_history_visitor *visitor,
                               struct rlock_error *err);

#endif
