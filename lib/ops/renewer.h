/* SPDX-License-Identifier: MIT */
/* renewer: the thread that renews a lease and reports on it by a pipe. */
#ifndef RENEWER_H
#define RENEWER_H

#include "base/thread.h"
#include "quorum/quorum.h"

/* All zero: there is no thread. */
struct renewer {
    struct quorum *quorum;     /* borrowed; the thread's alone while it runs */
    const struct owner *owner; /* borrowed; unchanged while the thread runs */
    int64_t renewed_at_ms;     /* before the last renewal, or the grant, was sent */
    bool has_told_trouble;     /* since the last renewal that went well */
    int n_failures;            /* renewals in a row that failed */
    int events[2];             /* a pipe of struct rlock_event */
    int stop[2];               /* a pipe: closing the write end ends the thread */
    pthread_t thread;
    bool is_running;
};

/*
 * renewer_start: what rlock_keep() does, for a grant whose request was sent at `sent_ms`. The
 * renewer borrows `quorum` and `owner` until renewer_stop().
 */
enum rlock_status renewer_start(struct renewer *renewer, struct quorum *quorum,
                                const struct owner *owner, int64_t sent_ms, int *events,
                                struct rlock_error *err);

/* renewer_stop: what rlock_unkeep() does. Nothing, if the thread doesn't run. */
void renewer_stop(struct renewer *renewer);

#endif
