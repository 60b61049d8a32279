/* SPDX-License-Identifier: MIT */
/* metrics: locks as metrics in the text format of Prometheus, for alerts and graphs. */
#ifndef METRICS_H
#define METRICS_H

#include "output/outbuf.h"

#include <rlock_admin.h>

/* The metrics of a lock; metrics.c has their names and says what each of them tells. */
enum metric {
    METRIC_HELD,
    METRIC_HOLDERS,
    METRIC_HELD_SECONDS,
    METRIC_LEFT_SECONDS,
    METRIC_WAITERS,
    METRIC_LONGEST_WAIT_SECONDS,
    METRIC_LAST_END_SECONDS,
    METRIC_LAST_END_STATUS,
    METRICS
};

/* When and how a hold of a lock ended. */
struct lock_end {
    char *key;        /* heap */
    int64_t ended_ms; /* ms since 1970 */
    int status;       /* exit status of the holder; -1: not known */
    bool was_lost;    /* the server that reports this end had lost the lock before */
};

/* A struct of zeros is empty: no lock was added to the metrics yet. */
struct metrics {
    struct sorted_lines samples; /* each is the value of one metric for one lock */
    char *key;                   /* heap: the key of the lock being added; NULL: none */
    int64_t n_waiters;           /* waiters of the lock `key` that were added so far */
    int64_t longest_wait_ms;     /* the longest wait of these waiters; 0: none */
    struct lock_end *ends;       /* heap: ends of holds; only one of each lock is written */
    size_t n_ends;
    size_t ends_room;
    bool has_failed; /* memory ran out: a lock, a sample or an end is missing */
};

/*
 * metrics_lock: add a lock. metrics_waiter: add a waiter of this lock. metrics_end: the lock has no
 * more waiters. Until the next metrics_lock(), metrics_waiter() is ignored. The first two are
 * functions for a struct rlock_visitor whose context is a struct metrics.
 */
void metrics_lock(void *metrics, const struct rlock_view *view);
void metrics_waiter(void *metrics, const struct rlock_party *waiter);
void metrics_end(struct metrics *metrics);

/*
 * metrics_last_end: add the end of a hold of any lock. The last end of each lock counts. If servers
 * of a quorum disagree on whether the holder had lost the lock, that of their majority counts.
 */
void metrics_last_end(struct metrics *metrics, const char *key, int64_t ended_ms, int status,
                      bool was_lost);

/*
 * metrics_write: append all metrics, the locks in the order of their keys. If the caller has added
 * a lock twice, because SCAN returned its key twice, the metrics have the lock once.
 */
void metrics_write(struct metrics *metrics, struct outbuf *out);

void metrics_fini(struct metrics *metrics);

#endif
