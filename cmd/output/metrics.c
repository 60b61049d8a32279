/* SPDX-License-Identifier: MIT */
/*
 * metrics: locks as metrics in the text format of Prometheus, for alerts and graphs.
 *
 * node_exporter ignores a file if it isn't UTF-8, if the samples of a metric don't stand together,
 * or if two samples of a metric have the same label. So err_escape() writes the keys, and escapes
 * backslashes, too: two keys never look alike. Source: "Exposition formats" in Prometheus' manual.
 */
#include "output/metrics.h"

#include "base/clock.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ESCAPED_BYTES 4 /* err_escape() makes at most 4 bytes, "\xNN", of one */
#define LOCKS_NAME "rlock_locks"
#define LOCKS_HELP "Number of locks that were listed."

static const struct {
    const char *name;
    const char *help;
} rows[METRICS] = {
    [METRIC_HELD] = {"rlock_lock_held", "1: somebody holds the lock; 0: nobody does."},
    [METRIC_HOLDERS] = {"rlock_lock_holders", "Number of holders of the lock."},
    [METRIC_HELD_SECONDS] = {"rlock_lock_held_seconds",
                             "For how long the lock's oldest holder has held it."},
    [METRIC_LEFT_SECONDS] = {"rlock_lock_left_seconds",
                             "Time until the lock expires, unless it is renewed; +Inf: never."},
    [METRIC_WAITERS] = {"rlock_lock_waiters", "Number of waiters in the lock's queue."},
    [METRIC_LONGEST_WAIT_SECONDS] = {"rlock_lock_longest_wait_seconds",
                                     "For how long the lock's oldest waiter has waited."},
    [METRIC_LAST_END_SECONDS] = {"rlock_lock_last_end_timestamp_seconds",
                                 "When the last hold of the lock ended, in seconds since 1970."},
    [METRIC_LAST_END_STATUS] = {"rlock_lock_last_end_status",
                                "Exit status of the rlock that held the lock last."},
};

/* Add a sample, by a name that sorts the samples by metric, then by the key of the lock. */
static void add(struct metrics *metrics, enum metric metric, const char *key, const char *value)
{
    char *name;

    if (asprintf(&name, "%c%s", 'a' + (int)metric, key) < 0) {
        metrics->has_failed = true;
        return;
    }
    sorted_lines_add(&metrics->samples, name, value);
    free(name);
}

static void add_number(struct metrics *metrics, enum metric metric, const char *key, int64_t number)
{
    char value[32];

    snprintf(value, sizeof value, "%" PRId64, number);
    add(metrics, metric, key, value);
}

/* A time below 0, as after the server's clock was set back, counts as 0. */
static void add_seconds(struct metrics *metrics, enum metric metric, const char *key, int64_t ms)
{
    char value[32];

    ms = clock_later(ms, 0);
    snprintf(value, sizeof value, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
    add(metrics, metric, key, value);
}

/* The longest time for which one of the holders has held the lock; -1: not known. */
static int64_t longest_hold_ms(const struct rlock_view *view)
{
    int64_t longest_ms = -1;
    size_t i;

    for (i = 0; i < view->n_holders; i++)
        if (view->holders[i].since_ms > 0 && view->holders[i].for_ms > longest_ms)
            longest_ms = view->holders[i].for_ms;
    return longest_ms;
}

void metrics_last_end(struct metrics *metrics, const char *key, int64_t ended_ms, int status,
                      bool was_lost)
{
    struct lock_end end = {
        .key = strdup(key), .ended_ms = ended_ms, .status = status, .was_lost = was_lost};
    size_t room = metrics->ends_room * 2 + 64;
    struct lock_end *grown = metrics->ends;

    if (end.key != NULL && metrics->n_ends == metrics->ends_room) {
        grown = realloc(metrics->ends, room * sizeof *grown);
        if (grown != NULL) {
            metrics->ends = grown;
            metrics->ends_room = room;
        }
    }
    if (end.key == NULL || grown == NULL) {
        metrics->has_failed = true;
        free(end.key);
        return;
    }
    metrics->ends[metrics->n_ends++] = end;
}

/*
 * Without a history the server knows when the last holder ended only while --min-hold or the mark
 * of --once keeps the lock taken. rlock leaves the mark of --once only if the command has ended
 * with status 0.
 */
static void add_mark(struct metrics *metrics, const struct rlock_view *view)
{
    bool is_done = view->seen == RLOCK_SEEN_DONE;

    if ((is_done || view->seen == RLOCK_SEEN_REST) && view->other != NULL &&
        view->other->since_ms > 0)
        metrics_last_end(metrics, view->key, view->other->since_ms, is_done ? 0 : -1, false);
}

void metrics_lock(void *context, const struct rlock_view *view)
{
    struct metrics *metrics = context;
    int64_t held_ms = longest_hold_ms(view);

    metrics_end(metrics);
    metrics->key = strdup(view->key);
    if (metrics->key == NULL) {
        metrics->has_failed = true;
        return;
    }
    add_number(metrics, METRIC_HELD, view->key, view->n_all > 0);
    add_number(metrics, METRIC_HOLDERS, view->key, (int64_t)view->n_all);
    if (held_ms >= 0)
        add_seconds(metrics, METRIC_HELD_SECONDS, view->key, held_ms);
    if (view->seen != RLOCK_SEEN_FREE && view->left_ms < 0)
        add(metrics, METRIC_LEFT_SECONDS, view->key, "+Inf");
    else if (view->seen != RLOCK_SEEN_FREE)
        add_seconds(metrics, METRIC_LEFT_SECONDS, view->key, view->left_ms);
    add_mark(metrics, view);
}

void metrics_waiter(void *context, const struct rlock_party *waiter)
{
    struct metrics *metrics = context;

    metrics->n_waiters++;
    metrics->longest_wait_ms = clock_later(metrics->longest_wait_ms, waiter->for_ms);
}

void metrics_end(struct metrics *metrics)
{
    if (metrics->key != NULL) {
        add_number(metrics, METRIC_WAITERS, metrics->key, metrics->n_waiters);
        add_seconds(metrics, METRIC_LONGEST_WAIT_SECONDS, metrics->key, metrics->longest_wait_ms);
    }
    free(metrics->key);
    metrics->key = NULL;
    metrics->n_waiters = metrics->longest_wait_ms = 0;
}

/* ---- the output ---- */

/*
 * Order ends by their keys, and the ends of one lock by their times, the latest end first. If two
 * ends of one lock have the same time, they are the end of one hold, told by the history and by the
 * mark of --min-hold. The mark has no status, so the end with a status comes first.
 */
static int compare_ends(const void *one, const void *other)
{
    const struct lock_end *a = one;
    const struct lock_end *b = other;
    int by_key = strcmp(a->key, b->key);

    if (by_key != 0)
        return by_key;
    if (a->ended_ms != b->ended_ms)
        return a->ended_ms > b->ended_ms ? -1 : 1;
    return (a->status < b->status) - (a->status > b->status);
}

/*
 * Returns the end that counts of the `n` ends of one lock, which compare_ends() has ordered. Each
 * server of a quorum reports one end. A server that has granted the lock too late for its grant to
 * count notes at the release that the holder had lost the lock, which is wrong if the other servers
 * kept the lock. So the majority of the servers decides.
 */
static const struct lock_end *last_end(const struct lock_end *ends, size_t n)
{
    size_t n_lost = 0;
    size_t i;

    for (i = 0; i < n; i++)
        n_lost += ends[i].was_lost;
    for (i = 0; i < n; i++)
        if (ends[i].was_lost == (n_lost * 2 > n))
            return &ends[i];
    return ends;
}

/* Make the samples of the last end of each lock. */
static void add_last_ends(struct metrics *metrics)
{
    size_t i;
    size_t n;

    if (metrics->n_ends > 0)
        qsort(metrics->ends, metrics->n_ends, sizeof *metrics->ends, compare_ends);
    for (i = 0; i < metrics->n_ends; i += n) {
        const struct lock_end *end = &metrics->ends[i];

        for (n = 1; i + n < metrics->n_ends && strcmp(end[n].key, end->key) == 0; n++)
            continue;
        end = last_end(end, n);
        add_seconds(metrics, METRIC_LAST_END_SECONDS, end->key, end->ended_ms);
        if (end->status >= 0)
            add_number(metrics, METRIC_LAST_END_STATUS, end->key, end->status);
    }
}

/* Append a key as the value of a label, with a backslash before each backslash and each quote. */
static void write_label(struct outbuf *out, const char *key)
{
    size_t room = strlen(key) * ESCAPED_BYTES + 16;
    char *escaped = malloc(room);
    const char *at;

    if (escaped == NULL) {
        outbuf_fail(out);
        return;
    }
    err_escape(escaped, room, key);
    for (at = escaped; *at != '\0'; at++)
        outbuf_add(out, "%s%c", *at == '\\' || *at == '"' ? "\\" : "", *at);
    free(escaped);
}

static void write_head(struct outbuf *out, const char *name, const char *help)
{
    outbuf_add(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

void metrics_write(struct metrics *metrics, struct outbuf *out)
{
    int last = METRICS;
    size_t n_locks = 0;
    size_t i;

    metrics_end(metrics);
    add_last_ends(metrics);
    sorted_lines_sort(&metrics->samples);
    if (metrics->has_failed || metrics->samples.has_failed)
        outbuf_fail(out);
    for (i = 0; i < metrics->samples.n; i++) {
        const struct sorted_line *sample = &metrics->samples.line[i];
        int metric = sample->key[0] - 'a';

        if (metric != last)
            write_head(out, rows[metric].name, rows[metric].help);
        last = metric;
        n_locks += metric == METRIC_HELD;
        outbuf_add(out, "%s{key=\"", rows[metric].name);
        write_label(out, sample->key + 1);
        outbuf_add(out, "\"} %s\n", sample->text);
    }
    write_head(out, LOCKS_NAME, LOCKS_HELP);
    outbuf_add(out, "%s %zu\n", LOCKS_NAME, n_locks);
}

void metrics_fini(struct metrics *metrics)
{
    while (metrics->n_ends > 0)
        free(metrics->ends[--metrics->n_ends].key);
    free(metrics->ends);
    free(metrics->key);
    sorted_lines_fini(&metrics->samples);
    *metrics = (struct metrics){.key = NULL};
}
