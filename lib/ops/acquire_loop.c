/* SPDX-License-Identifier: MIT */
/*
 * acquire_loop: repeats an acquire, a renewal or a release until the reply is final.
 *
 * acquire.lua puts a waiter into the queue, and says how long to block. The waiter blocks by BLPOP
 * on a key of its own, to which a release pushes, and then asks again. A wake-up is only a hint,
 * and each attempt is also the heartbeat without which the scripts remove the waiter.
 */
#include "ops/acquire_loop.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "ops/replicas.h"

#include <stdio.h>

#define SILENCE_MS 1000 /* if no server answers for this long, the loop shows this as trouble */
#define POLL_LOW_MS 50
#define POLL_HIGH_MS 250
#define BACKOFF_FIRST_MS 50
/*
 * After a server has lost its data, acquire.lua grants the lock to nobody for 500 ms, so that all
 * waiters can return to their places in the queue. Each must retry within that time.
 */
#define BACKOFF_MAX_MS 250
/* Longest wait for the reply to an undo, if the caller stops the call, or if no server has ever
 * sent a byte. */
#define UNDO_SOON_MS 500
#define BLOCK_LATE_MS 200       /* Redis ends a BLPOP up to 0.1 s after its timeout */
#define NEXT_IN_TURN_MS 2       /* pause while the waiter ahead starts its command */
#define EXPIRY_GRANULARITY_MS 2 /* Redis may remove a key up to 2 ms after its PTTL has ended */

/* The state of one rlock_acquire(). */
struct acquire_loop {
    struct quorum *quorum;
    struct owner *owner;
    struct rlock_deadline caller_deadline;
    /* caller_deadline; but connect_ms after the loop's start, if the caller doesn't wait, or waits
     * for ever and no server has answered yet */
    struct rlock_deadline deadline;
    struct rlock_obstacle *obstacle;
    const struct rlock_observer *observer;
    int64_t began_ms;             /* when the last attempt began */
    int64_t refresh_at_ms;        /* when to show an unchanged obstacle again; RLOCK_NEVER: never */
    struct rlock_error block_err; /* why the last BLPOP failed; status RLOCK_OK: it succeeded */
    int64_t block_ended_ms;       /* when the last BLPOP returned or failed */
    bool had_trouble;             /* obstacle->trouble was set after the last attempt */
    int n_failures;               /* attempts in a row that did not end in RLOCK_BUSY */
    bool has_answered;            /* a server has answered, so the loop waits for outages to end */
};

static bool uses_queue(const struct acquire_loop *loop)
{
    return !loop->owner->is_single_attempt && loop->owner->queue != RLOCK_QUEUE_NONE;
}

/* ---- the observer ---- */

/* Calls on_blocked(). `obstacle` is NULL when the wait is over. */
static void show(struct acquire_loop *loop, const struct rlock_obstacle *obstacle)
{
    const struct rlock_observer *observer = loop->observer;

    if (observer->on_blocked == NULL)
        return;
    observer->on_blocked(observer->context, obstacle);
    loop->refresh_at_ms = obstacle != NULL && observer->every_ms > 0
                              ? rlock_clock_ms() + observer->every_ms
                              : RLOCK_NEVER;
}

/*
 * Shows the obstacle of the last reply again once observer->every_ms have passed. A waiter far back
 * in the queue sends an attempt only every few seconds: meanwhile the display would stand still.
 */
static void refresh(struct acquire_loop *loop)
{
    if (rlock_clock_ms() >= loop->refresh_at_ms)
        show(loop, loop->obstacle);
}

/* Notes the trouble `err`, which began at `since_ms`, or earlier if trouble is noted already. */
static void set_trouble(struct acquire_loop *loop, const struct rlock_error *err, int64_t since_ms)
{
    if (loop->obstacle->trouble.status == RLOCK_OK)
        loop->obstacle->trouble_ms = since_ms;
    loop->obstacle->trouble = *err;
    loop->obstacle->gives_up_ms = loop->has_answered ? 0 : loop->deadline.at_ms;
}

/*
 * Shows that no server answers, before the attempt has failed: a server that accepts connections
 * and says nothing, or a network that drops packets, would else look for seconds as if rlock hung.
 * Returns when to call again; RLOCK_NEVER: not at all.
 */
static int64_t note_silence(struct acquire_loop *loop)
{
    struct rlock_error err;

    if (loop->has_answered || loop->obstacle->trouble.status != RLOCK_OK)
        return RLOCK_NEVER;
    if (rlock_clock_ms() < loop->began_ms + SILENCE_MS)
        return loop->began_ms + SILENCE_MS;
    members_silence(&loop->quorum->members, &err);
    set_trouble(loop, &err, loop->began_ms);
    loop->had_trouble = true;
    show(loop, loop->obstacle);
    return RLOCK_NEVER;
}

static int64_t on_wait(void *context)
{
    struct acquire_loop *loop = context;
    int64_t silence_at_ms = note_silence(loop);

    refresh(loop);
    return silence_at_ms < loop->refresh_at_ms ? silence_at_ms : loop->refresh_at_ms;
}

/* ---- which results call for another attempt ---- */

/*
 * Can the next attempt have another result than `st`? RLOCK_E_CONFIG has two causes. If two URLs
 * name the same server, the result is final. If a member's TLS certificate is wrong,
 * members_fault() returns RLOCK_E_CONFIG: then an administrator may be replacing the certificate
 * right now, provided that a member has answered before.
 */
static bool is_transient(const struct quorum *quorum, enum rlock_status st)
{
    return st == RLOCK_E_UNREACHABLE || st == RLOCK_E_SERVER || st == RLOCK_E_NO_QUORUM ||
           st == RLOCK_BUSY || st == RLOCK_PENDING ||
           (st == RLOCK_E_CONFIG && members_fault(&quorum->members, NULL) == st &&
            quorum_has_heard(quorum, ~0U));
}

/* Does a waiter try again after `st`? Also after RLOCK_E_REPLICAS, as replicas may come back. */
static bool is_worth_waiting(const struct quorum *quorum, enum rlock_status st)
{
    return is_transient(quorum, st) || st == RLOCK_E_REPLICAS;
}

/*
 * Is `st` the final result for a caller that doesn't wait? `st` isn't final if a request got no
 * reply: the server may have granted the lock, so the next attempt asks again with the same token.
 */
static bool ends_single_attempt(const struct acquire_loop *loop, enum rlock_status st)
{
    return st == RLOCK_BUSY || st == RLOCK_E_REPLICAS ||
           (st != RLOCK_PENDING && loop->quorum->in_doubt == 0);
}

/* ---- waiting for the next attempt ---- */

/*
 * Exponential back-off with jitter: clients that lost their server at the same time don't all
 * connect at the same time when it is back.
 */
static int64_t backoff_ms(int n_failures)
{
    int64_t most = BACKOFF_FIRST_MS;

    while (n_failures-- > 1 && most < BACKOFF_MAX_MS)
        most *= 2;
    return random_between(most / 4, most < BACKOFF_MAX_MS ? most : BACKOFF_MAX_MS);
}

/*
 * The pause of a caller that isn't in the queue: no release wakes this caller, so it asks again
 * after 50 to 250 ms, or when the holder's lease has ended, if that is sooner.
 */
static int64_t poll_ms(const struct rlock_obstacle *obstacle)
{
    int64_t pause_ms = random_between(POLL_LOW_MS, POLL_HIGH_MS);
    int64_t left_ms = obstacle->left_ms;

    return left_ms >= 0 && left_ms + EXPIRY_GRANULARITY_MS < pause_ms
               ? left_ms + EXPIRY_GRANULARITY_MS
               : pause_ms;
}

/*
 * Blocks on the server until another client wakes us to ask for the lock, `block_ms` have passed,
 * or the BLPOP fails. In all three cases the caller sends the next attempt. A client may also tell
 * us in how many ms we are to ask, as our turn is near (RLOCK_PENDING). Then we block again, at
 * most until that time: if the holder and the waiters ahead are dead, nobody wakes us any more.
 */
static enum rlock_status block_in_queue(struct acquire_loop *loop, int64_t block_ms)
{
    struct rlock_deadline deadline = loop->deadline;
    struct rlock_error *err = &loop->block_err;
    int64_t ask_ms = deadline_in(loop->deadline, block_ms).at_ms;
    enum rlock_status st;

    if (deadline.at_ms != RLOCK_NEVER)
        deadline.at_ms += BLOCK_LATE_MS;
    do {
        st = quorum_block(loop->quorum, loop->owner, &block_ms, deadline, err);
        if (st != RLOCK_PENDING)
            break;
        ask_ms = clock_earlier(ask_ms, deadline_in(loop->deadline, block_ms).at_ms);
        if (!loop->obstacle->is_next) {
            (void)!clock_sleep(deadline_in(loop->deadline, NEXT_IN_TURN_MS));
            loop->obstacle->is_next = true;
            show(loop, loop->obstacle); /* so that rlock(1) forks its guard before the grant */
        }
        block_ms = ask_ms - rlock_clock_ms();
    } while (block_ms > 0);
    /* a server that has no BLPOP for this user is in no trouble: the waiter asks instead */
    if (st <= RLOCK_PENDING || st == RLOCK_E_REFUSED || st == RLOCK_E_UNSUPPORTED)
        err->status = RLOCK_OK;
    loop->block_ended_ms = rlock_clock_ms();
    return st == RLOCK_PENDING ? RLOCK_OK : st;
}

/*
 * Waits between an attempt that ended in `st` and the next: blocks in the queue, polls, or backs
 * off after a fault. RLOCK_STOPPED ends the loop.
 */
static enum rlock_status pause_after(struct acquire_loop *loop, enum rlock_status st,
                                     int64_t block_ms)
{
    struct rlock_deadline deadline = loop->deadline;

    loop->n_failures = st == RLOCK_BUSY ? 0 : loop->n_failures + 1;
    if (st != RLOCK_BUSY)
        return clock_sleep(deadline_in(deadline, backoff_ms(loop->n_failures)));
    if (!uses_queue(loop))
        return clock_sleep(deadline_in(deadline, poll_ms(loop->obstacle)));
    if (deadline.at_ms != RLOCK_NEVER && deadline.at_ms - rlock_clock_ms() < block_ms)
        block_ms = deadline.at_ms - rlock_clock_ms();
    st = block_in_queue(loop, block_ms);
    if (st != RLOCK_OK && st != RLOCK_STOPPED)
        st = clock_sleep(deadline_in(deadline, poll_ms(loop->obstacle)));
    return st;
}

/* ---- making one attempt ---- */

/*
 * Sends one acquire. If the lock was granted, asks whether enough replicas have the grant. If too
 * few do, a caller that waits releases the lock, and returns to its place in the queue, by its
 * ticket. A grant to the first attempt came without a ticket: its fence serves as one, as both
 * numbers are the server's time in microseconds.
 */
static enum rlock_status attempt(struct acquire_loop *loop, struct rlock_grant *grant,
                                 int64_t *block_ms, struct rlock_error *err)
{
    struct quorum *quorum = loop->quorum;
    enum rlock_status st =
        quorum_acquire(quorum, loop->owner, loop->deadline, grant, loop->obstacle, block_ms, err);

    if (st == RLOCK_OK) {
        st = replicas_have(quorum, loop->deadline, err);
        if (st != RLOCK_OK)
            quorum_doubt(quorum);
    }
    if (st == RLOCK_E_REPLICAS && !loop->owner->is_single_attempt) {
        if (uses_queue(loop) && loop->owner->ticket == 0)
            owner_set_ticket(loop->owner, (int64_t)grant->fence);
        quorum_requeue(quorum, loop->owner);
    }
    return st;
}

/* ---- trouble: no server answers, or too few replicas have the grant ---- */

/* Is the trouble of an attempt that ended in `st` to be shown? Not if it was the last attempt. */
static bool is_trouble_shown(const struct acquire_loop *loop, enum rlock_status st)
{
    return !deadline_has_passed(loop->deadline) &&
           !(loop->owner->is_single_attempt && ends_single_attempt(loop, st));
}

/*
 * Notes and shows that trouble has begun, goes on, or has ended, after an attempt that ended in
 * `st`. If the BLPOP before the attempt had failed, the trouble began at that failure. Members
 * whose votes don't count yet after a restart are an obstacle, not trouble.
 */
static void note_trouble(struct acquire_loop *loop, enum rlock_status st,
                         const struct rlock_error *err)
{
    struct rlock_obstacle *obstacle = loop->obstacle;
    bool is_restart = loop->quorum->recently_restarted;
    bool has_block_failed = loop->block_err.status != RLOCK_OK;

    if (st >= RLOCK_E_USAGE && is_worth_waiting(loop->quorum, st) && !is_restart) {
        set_trouble(loop, err, has_block_failed ? loop->block_ended_ms : loop->began_ms);
        if (is_trouble_shown(loop, st))
            show(loop, obstacle);
    } else if (loop->had_trouble && st != RLOCK_STOPPED) {
        obstacle->trouble.status = RLOCK_OK;
        obstacle->gives_up_ms = 0;
        obstacle->is_next = st == RLOCK_OK;
        if (st != RLOCK_BUSY && !is_restart) /* attempt_until_final() shows RLOCK_BUSY */
            show(loop, obstacle);
    }
    loop->had_trouble = obstacle->trouble.status != RLOCK_OK;
    loop->block_err.status = RLOCK_OK;
}

/*
 * Returns the result at the deadline: RLOCK_TIMEOUT, with the holder that was seen last. But if no
 * server has answered, if votes of members don't count yet after a restart, or if replicas are
 * missing, then no holder is in the way, and the result is the fault `st`.
 */
static enum rlock_status end_at_deadline(struct acquire_loop *loop, enum rlock_status st)
{
    if (loop->block_err.status != RLOCK_OK)
        set_trouble(loop, &loop->block_err, loop->block_ended_ms);
    return loop->has_answered && !loop->quorum->recently_restarted && st != RLOCK_E_REPLICAS
               ? RLOCK_TIMEOUT
               : st;
}

/* ---- repeating attempts until the result is final ---- */

static void warn_of_password(struct members *members, const struct rlock_error *err)
{
    char text[sizeof err->text + 80];

    snprintf(text, sizeof text, "%s; rlock looks the password up again until the wait is over",
             err->text);
    members_warn(members, text);
}

static enum rlock_status attempt_until_final(struct acquire_loop *loop, struct rlock_grant *grant,
                                             struct rlock_error *err)
{
    struct quorum *quorum = loop->quorum;
    bool is_single = loop->owner->is_single_attempt;
    enum rlock_status st;
    int64_t block_ms = 0;

    for (;;) {
        loop->began_ms = rlock_clock_ms();
        st = attempt(loop, grant, &block_ms, err);
        note_trouble(loop, st, err);
        if (!is_worth_waiting(quorum, st) && !quorum_may_retry_password(quorum, st))
            return st;
        if (is_single && ends_single_attempt(loop, st))
            return st;
        if (!is_worth_waiting(quorum, st))
            warn_of_password(&quorum->members, err);
        if (st == RLOCK_E_UNREACHABLE && loop->observer->on_unreachable != NULL)
            loop->observer->on_unreachable(loop->observer->context);
        loop->has_answered = loop->has_answered || quorum->recently_restarted || st == RLOCK_BUSY ||
                             st == RLOCK_PENDING;
        if (loop->has_answered && !is_single)
            loop->deadline = loop->caller_deadline;
        if (st == RLOCK_BUSY || quorum->recently_restarted)
            show(loop, loop->obstacle);
        refresh(loop);
        if (pause_after(loop, st, block_ms) == RLOCK_STOPPED)
            return RLOCK_STOPPED;
        if (deadline_has_passed(loop->deadline))
            return end_at_deadline(loop, st);
    }
}

/*
 * Ends the use of the token on the server: removes the waiter from the queue, and releases the
 * lock, which the server may have granted, or may still grant, to a request without a reply. A
 * server that has never sent a byte will hardly send one now, and may be no Redis server at all: it
 * gets UNDO_SOON_MS, and the error doesn't say that the lock may stay taken.
 */
static void leave(struct acquire_loop *loop, enum rlock_status st, struct rlock_error *err)
{
    struct quorum *quorum = loop->quorum;
    struct rlock_deadline deadline = deadline_never;

    if (st == RLOCK_STOPPED || !quorum_has_heard(quorum, ~0U))
        deadline = deadline_in(deadline, UNDO_SOON_MS);
    if (quorum_leave(quorum, loop->owner, deadline, NULL) < RLOCK_E_USAGE) {
        if (st == RLOCK_E_REPLICAS)
            err_suffix(err, "the lock was released again");
        return;
    }
    loop->obstacle->in_doubt = st >= RLOCK_E_USAGE && quorum_may_be_held(quorum);
    if (loop->obstacle->in_doubt && quorum_has_heard(quorum, quorum->in_doubt))
        err_suffix(err, "the lock may stay taken until its ttl ends");
}

enum rlock_status acquire_loop_run(struct quorum *quorum, struct owner *owner,
                                   struct rlock_deadline deadline, struct rlock_grant *grant,
                                   struct rlock_obstacle *obstacle,
                                   const struct rlock_observer *observer, struct rlock_error *err)
{
    struct acquire_loop loop = {.quorum = quorum,
                                .owner = owner,
                                .caller_deadline = deadline,
                                .deadline = deadline,
                                .obstacle = obstacle,
                                .observer = observer,
                                .refresh_at_ms = RLOCK_NEVER};
    struct rlock_error own = {.status = RLOCK_OK};
    enum rlock_status st;

    members_observe(&quorum->members, *observer, on_wait, &loop);
    owner_start_acquire(owner, deadline_has_passed(deadline));
    if (owner->is_single_attempt || deadline.at_ms == RLOCK_NEVER)
        loop.deadline.at_ms = rlock_clock_ms() + quorum->members.connect_ms;
    err = err != NULL ? err : &own;
    st = attempt_until_final(&loop, grant, err);
    show(&loop, NULL);
    members_observe(&quorum->members, (struct rlock_observer){.context = NULL}, NULL, NULL);
    if (st != RLOCK_OK && (quorum->in_doubt != 0 || owner->ticket > 0))
        leave(&loop, st, err);
    owner_set_ticket(owner, 0);
    return st;
}

/* ---- repeating a release or a renewal ---- */

enum rlock_status release_loop_run(struct quorum *quorum, const struct owner *owner,
                                   struct rlock_deadline deadline, struct rlock_error *err)
{
    unsigned released = 0; /* the members that may have executed a release, see quorum_release() */
    int n_failures = 0;
    enum rlock_status st;

    do {
        st = quorum_release(quorum, owner, deadline, &released, err);
    } while ((is_transient(quorum, st) || quorum_may_retry_password(quorum, st)) &&
             clock_sleep(deadline_in(deadline, backoff_ms(++n_failures))) != RLOCK_STOPPED &&
             !deadline_has_passed(deadline));
    if (st >= RLOCK_E_USAGE && quorum_has_lost(quorum)) /* a renewal that was stopped found this */
        return RLOCK_GONE;
    return st;
}

enum rlock_status renew_loop_run(struct quorum *quorum, const struct owner *owner,
                                 struct rlock_deadline deadline, int64_t *expires_ms,
                                 struct rlock_error *err)
{
    int n_failures = 0;
    enum rlock_status st;
    bool is_restored;

    do {
        st = quorum_renew(quorum, owner, deadline, expires_ms, &is_restored, err);
        if (st == RLOCK_OK)
            st = replicas_have(quorum, deadline, err);
    } while (is_transient(quorum, st) &&
             clock_sleep(deadline_in(deadline, backoff_ms(++n_failures))) != RLOCK_STOPPED &&
             !deadline_has_passed(deadline));
    return st;
}
