/* SPDX-License-Identifier: MIT */
/*
 * renewer: a thread that renews a lease and writes an event for each renewal to a pipe.
 *
 * The pipe's reader has a timer of its own for the end of the lease, which each event moves: so the
 * reader acts in time even if the renewer hangs. In a Cluster the thread first asks for the other
 * nodes: if the only known one died before the first renewal, nobody could name the new primary.
 */
#include "ops/renewer.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "ops/replicas.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define BACKOFF_LOW_MS 50
#define BACKOFF_HIGH_MS 500
#define WRITE_AGAIN_MS 10
/* A renewal comes up to this much of renew_ms early, at random, so that holders that started
 * together don't all renew at the same time. */
#define JITTER_PERCENT 10

/*
 * An event is shorter than PIPE_BUF, so write(2) is atomic. If the reader has let the pipe fill up,
 * write_event drops the whole event, and returns false.
 */
static bool write_event(const struct renewer *renewer, struct rlock_event event, const char *text)
{
    snprintf(event.text, sizeof event.text, "%s", text);
    return write(renewer->events[1], &event, sizeof event) == (ssize_t)sizeof event;
}

/*
 * The thread ends with its last event, and so tries to write it until write(2) succeeds or
 * renewer_stop() is called. If this event were dropped, the reader would wait for the next one
 * without end, and its command might stay frozen.
 */
static void write_last_event(const struct renewer *renewer, struct rlock_event event,
                             const char *text, struct rlock_deadline stop)
{
    while (!write_event(renewer, event, text) &&
           clock_sleep(deadline_in(stop, WRITE_AGAIN_MS)) != RLOCK_STOPPED)
        continue;
}

/*
 * Returns the pause after a failed renewal. After the first failure the pause is 0, so that one
 * lost packet costs no time. Later pauses are random, so that holders don't retry at the same time.
 */
static int64_t backoff_ms(const struct renewer *renewer)
{
    int64_t high_ms = renewer->quorum->timing.reply_ms;

    if (renewer->n_failures <= 1)
        return 0;
    if (high_ms > BACKOFF_HIGH_MS)
        high_ms = BACKOFF_HIGH_MS;
    return random_between(BACKOFF_LOW_MS < high_ms ? BACKOFF_LOW_MS : high_ms, high_ms);
}

static int64_t next_renewal_at_ms(const struct renewer *renewer)
{
    int64_t renew_ms = renewer->quorum->timing.renew_ms;

    return renewer->renewed_at_ms +
           random_between(renew_ms - renew_ms * JITTER_PERCENT / 100, renew_ms);
}

/*
 * Sends one renewal and writes its event. Returns the time of the next renewal, or RLOCK_NEVER if
 * the thread must end.
 */
static int64_t renew(struct renewer *renewer, struct rlock_deadline stop)
{
    struct rlock_error err = {.status = RLOCK_OK};
    struct rlock_event event = {.sent_ms = rlock_clock_ms()};
    bool is_restored = false;
    enum rlock_status st =
        quorum_renew(renewer->quorum, renewer->owner, stop, &event.expires_ms, &is_restored, &err);

    if (st == RLOCK_OK)
        st = replicas_have(renewer->quorum, stop, &err);
    if (st == RLOCK_STOPPED)
        return RLOCK_NEVER;
    if (st == RLOCK_LOST || st == RLOCK_GONE || st == RLOCK_RELEASED) {
        event.kind = st == RLOCK_RELEASED ? RLOCK_KEPT_RELEASED : RLOCK_KEPT_LOST;
        event.loss = renewer->quorum->loss;
        write_last_event(renewer, event, err.text, stop);
        return RLOCK_NEVER;
    }
    if (st == RLOCK_OK) {
        renewer->n_failures = 0;
        renewer->has_told_trouble = false;
        renewer->renewed_at_ms = event.sent_ms;
        event.kind = is_restored ? RLOCK_KEPT_RESTORED : RLOCK_KEPT_RENEWED;
        write_event(renewer, event, "");
        return next_renewal_at_ms(renewer);
    }
    renewer->n_failures++;
    if (st != RLOCK_PENDING && !renewer->has_told_trouble) { /* RLOCK_PENDING is no trouble yet */
        renewer->has_told_trouble = true;
        event.kind = RLOCK_KEPT_TROUBLE;
        write_event(renewer, event, err.text);
    }
    return rlock_clock_ms() + backoff_ms(renewer);
}

static void *run(void *arg)
{
    struct renewer *renewer = arg;
    struct rlock_deadline stop = {RLOCK_NEVER, renewer->stop[0]};
    int64_t next_ms;

    quorum_learn_topology(renewer->quorum, stop);
    next_ms = next_renewal_at_ms(renewer);
    while (next_ms != RLOCK_NEVER && clock_sleep(deadline_at(stop, next_ms)) != RLOCK_STOPPED)
        next_ms = renew(renewer, stop);
    return NULL;
}

/* A descriptor of -1 is none. */
static void close_pipe(const int fd[2])
{
    close(fd[0]);
    close(fd[1]);
}

enum rlock_status renewer_start(struct renewer *renewer, struct quorum *quorum,
                                const struct owner *owner, int64_t sent_ms, int *events,
                                struct rlock_error *err)
{
    int failed = 0;

    *renewer = (struct renewer){.quorum = quorum,
                                .owner = owner,
                                .renewed_at_ms = sent_ms,
                                .events = {-1, -1},
                                .stop = {-1, -1}};
    if (pipe2(renewer->events, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(renewer->stop, O_CLOEXEC) != 0)
        failed = errno;
    if (failed == 0)
        failed = thread_start(&renewer->thread, run, renewer);
    renewer->is_running = failed == 0;
    if (failed == 0) {
        *events = renewer->events[0];
        return RLOCK_OK;
    }
    close_pipe(renewer->events);
    close_pipe(renewer->stop);
    return err_set(err, RLOCK_E_SYSTEM, failed, "renewals can't be started");
}

void renewer_stop(struct renewer *renewer)
{
    if (!renewer->is_running)
        return;
    close(renewer->stop[1]);
    renewer->stop[1] = -1;
    thread_join(renewer->thread);
    close_pipe(renewer->events);
    close_pipe(renewer->stop);
    renewer->is_running = false;
}
