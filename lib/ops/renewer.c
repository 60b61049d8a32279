/* SPDX-License-Identifier: MIT */
/*
 * renewer: the thread that renews a lease and reports on it by a pipe.
 *
 * It decides nothing: whether the lease still stands is a matter of time, and
 * those who act on it hold its end as their own deadline. A renewer that hangs
 * therefore only fails to move that deadline.
 *
 * Before anything else it asks for the nodes of a Cluster:
 * 1. the server of the URL grants the lock, and is the only node that is known;
 * 2. it dies before the first renewal, and its replica takes its place;
 * 3. nobody is left to ask where the lock is now.
 */
#include "ops/renewer.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "lock/timing.h"
#include "ops/replicas.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define RETRY_LOW_MS 50
#define RETRY_HIGH_MS 500
#define JITTER_PERCENT 10 /* so that many holders don't renew in step */

static void tell(const struct renewer *renewer, enum rlock_kept kind, int64_t expires_ms,
                 const char *text)
{
    struct rlock_event event = {.kind = kind, .expires_ms = expires_ms};
    ssize_t written;

    snprintf(event.text, sizeof event.text, "%s", text);
    /* smaller than PIPE_BUF, so whole or not at all; a full pipe means that nobody listens */
    written = write(renewer->events[1], &event, sizeof event);
    (void)written;
}

/* The pause before the next try after `failures` in a row: none, then short, then longer. */
static int64_t pause_after(const struct renewer *renewer, int failures)
{
    int64_t high = renewer->quorum->timing.reply_ms;

    if (failures <= 1)
        return 0;
    if (high > RETRY_HIGH_MS)
        high = RETRY_HIGH_MS;
    return random_between(RETRY_LOW_MS < high ? RETRY_LOW_MS : high, high);
}

static int64_t next_renewal(const struct renewer *renewer)
{
    int64_t renew = renewer->quorum->timing.renew_ms;

    return renewer->renewed_ms + random_between(renew - renew * JITTER_PERCENT / 100, renew);
}

static void *keep(void *arg)
{
    struct rlock_deadline stop;
    struct renewer *renewer = arg;
    struct rlock_deadline next;
    int failures = 0;
    bool told = false;

    stop = (struct rlock_deadline){RLOCK_NEVER, renewer->stop[0]};
    /* the first renewal may be too late to ask this server */
    quorum_learn_topology(renewer->quorum, stop);
    next = deadline_at(stop, next_renewal(renewer));
    while (clock_sleep(next) != RLOCK_STOPPED) {
        struct rlock_error err = {.status = RLOCK_OK};
        int64_t sent_ms = rlock_clock_ms();
        bool restored = false;
        int64_t expires_ms = 0;
        enum rlock_status st =
            quorum_renew(renewer->quorum, renewer->owner, stop, &expires_ms, &restored, &err);

        if (st == RLOCK_OK)
            st = replicas_have(renewer->quorum, stop, &err);
        if (st == RLOCK_STOPPED)
            break;
        if (st == RLOCK_OK) {
            failures = 0;
            told = false;
            renewer->renewed_ms = sent_ms;
            tell(renewer, restored ? RLOCK_KEPT_RESTORED : RLOCK_KEPT_RENEWED, expires_ms, "");
            next = deadline_at(stop, next_renewal(renewer));
            continue;
        }
        if (st == RLOCK_LOST || st == RLOCK_GONE || st == RLOCK_RELEASED) {
            tell(renewer, st == RLOCK_RELEASED ? RLOCK_KEPT_RELEASED : RLOCK_KEPT_LOST, 0,
                 err.text);
            break;
        }
        if (st != RLOCK_PENDING && !told)
            tell(renewer, RLOCK_KEPT_TROUBLE, 0, err.text);
        told = told || st != RLOCK_PENDING;
        next = deadline_in(stop, pause_after(renewer, ++failures));
    }
    return NULL;
}

static void close_pipes(struct renewer *renewer)
{
    close(renewer->events[0]);
    close(renewer->events[1]);
    close(renewer->stop[0]);
}

enum rlock_status renewer_start(struct renewer *renewer, struct quorum *quorum,
                                const struct owner *owner, int64_t expires_ms, int *events,
                                struct rlock_error *err)
{
    int failed;

    renewer->quorum = quorum;
    renewer->owner = owner;
    /* the moment the grant was sent, as far as its end tells */
    renewer->renewed_ms = expires_ms - timing_end(&quorum->timing, 0);
    if (pipe2(renewer->events, O_CLOEXEC | O_NONBLOCK) != 0)
        return err_set(err, RLOCK_E_SYSTEM, errno, "pipe");
    if (pipe2(renewer->stop, O_CLOEXEC) != 0) {
        failed = errno;
        close(renewer->events[0]);
        close(renewer->events[1]);
        return err_set(err, RLOCK_E_SYSTEM, failed, "pipe");
    }
    failed = thread_start(&renewer->thread, keep, renewer);
    if (failed) {
        close_pipes(renewer);
        close(renewer->stop[1]);
        return err_set(err, RLOCK_E_SYSTEM, failed, "thread");
    }
    renewer->is_running = true;
    *events = renewer->events[0];
    return RLOCK_OK;
}

void renewer_stop(struct renewer *renewer)
{
    if (!renewer->is_running)
        return;
    close(renewer->stop[1]);
    thread_join(renewer->thread);
    close_pipes(renewer);
    renewer->is_running = false;
}
