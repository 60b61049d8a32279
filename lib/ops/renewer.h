/* SPDX-License-Identifier: MIT */
/* renewer: the thread that renews a lease and reports on it by a pipe. */
#ifndef KEEPER_H
#define KEEPER_H

#include "base/thread.h"
#include "quorum/quorum.h"

struct keeper {
    struct quorum *quorum;     /* the keeper's alone while it runs */
    const struct lease *lease; /* likewise; unchanged */
    int64_t renewed_ms;        /* when the last confirmed request was sent, at the latest */
    int events[2];
    int stop[2]; /* closing the write end ends the thread */
    pthread_t thread;
    bool is_running;
};

#define KEEPER_EMPTY        \
    {                       \
        .is_running = false \
    }

/* keeper_start: rlock_keep(); the lease was granted until `end_ms`. */
enum rlock_status keeper_start(struct keeper *keeper, struct quorum *quorum,
                               const struct lease *lease, int64_t end_ms, int *events,
                               struct rlock_error *err);

/* keeper_stop: rlock_unkeep(). */
void keeper_stop(struct keeper *keeper);

#endif
