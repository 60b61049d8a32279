/* SPDX-License-Identifier: MIT */
/* renewer: a thread that renews a lease and writes an event for each renewal to a pipe. */
#ifndef RENEWER_H
#define RENEWER_H

#include "base/thread.h"
#include "quorum/quorum.h"

/* A struct renewer whose bytes are all zero is valid: its thread doesn't run. */
struct renewer {
    struct quorum *quorum;     /* borrowed; only the thread uses it while it runs */
    const struct owner *owner; /* borrowed; nobody changes it while the thread runs */
    int64_t renewed_at_ms;     /* just before the last successful renewal, or the grant, was sent */
    bool has_told_trouble;     /* RLOCK_KEPT_TROUBLE was written since the last success */
    int n_failures;            /* failed renewals in a row */
    int events[2];             /* pipe: the thread writes each struct rlock_event to events[1] */
    int stop[2];               /* pipe: renewer_stop() closes stop[1], which ends the thread */
    pthread_t thread;
    bool is_running;
};

/*
 * renewer_start: implements rlock_keep(), for a grant whose request was sent at `sent_ms`. The
 * renewer borrows `quorum` and `owner` until renewer_stop().
 */
enum rlock_status renewer_start(struct renewer *renewer, struct quorum *quorum,
                                const struct owner *owner, int64_t sent_ms, int *events,
                                struct rlock_error *err);

/* renewer_stop: implements rlock_unkeep(). Does nothing if no thread runs. */
void renewer_stop(struct renewer *renewer);

#endif
