/* SPDX-License-Identifier: MIT */
/* renewer: the thread that renews a lease and reports on it by a pipe. */
#ifndef RENEWER_H
#define RENEWER_H

#include "base/thread.h"
#include "quorum/quorum.h"

struct renewer {
    struct quorum *quorum;     /* the renewer's alone while it runs */
    const struct owner *owner; /* likewise; unchanged */
    int64_t renewed_ms;        /* when the last confirmed request was sent, at the latest */
    int events[2];
    int stop[2]; /* closing the write end ends the thread */
    pthread_t thread;
    bool is_running;
};

#define RENEWER_EMPTY       \
    {                       \
        .is_running = false \
    }

/* renewer_start: rlock_keep(); the lease was granted until `expires_ms`. */
enum rlock_status renewer_start(struct renewer *renewer, struct quorum *quorum,
                                const struct owner *owner, int64_t expires_ms, int *events,
                                struct rlock_error *err);

/* renewer_stop: rlock_unkeep(). */
void renewer_stop(struct renewer *renewer);

#endif
