/* SPDX-License-Identifier: MIT */
/*
 * acquire_loop: acquire, release or renew again and again, until the answer is final.
 *
 * How a waiter in the queue gets the lock:
 * 1. An attempt finds the lock held. The script puts the waiter into the queue, and says for how
 *    long to block.
 * 2. The waiter blocks on the server, by BLPOP on a key of its own.
 * 3. Whoever releases the lock wakes the first waiter. If the wake-up is lost, or the holder died,
 *    the waiter's block ends by its time.
 * 4. In either case the waiter sends the next attempt, which is also its heartbeat: a waiter whose
 *    attempts stop is dropped from the queue.
 *
 * So a wake-up is only a hint; what counts is the reply to the next attempt. The times of the
 * queue stand in lib/lua/acquire.lua and lib/lua/shared/line.lua, none here.
 */
#include "ops/acquire_loop.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "ops/replicas.h"

#include <stdio.h>

#define POLL_LOW_MS 50
#define POLL_HIGH_MS 250
#define BACKOFF_FIRST_MS 50
#define BACKOFF_MAX_MS 250      /* shorter than a turn in the queue: no restart costs a turn */
#define UNDO_STOPPED_MS 500     /* a caller that was told to stop can't wait longer for the undo */
#define BLOCK_LATE_MS 200       /* Redis ends a block up to 0.1 s late */
#define NEXT_IN_TURN_MS 2       /* the waiter before us has the lock, and starts its command */
#define PASSED_ON_MS 1          /* the same, after our release */
#define EXPIRY_GRANULARITY_MS 2 /* a key may outlive its expiry by a tick of the server */

/* One rlock_acquire(). */
struct acquire_loop {
    struct quorum *quorum;
    struct owner *owner;
    struct rlock_deadline caller_deadline;
    struct rlock_deadline deadline; /* the caller's; until a server has answered, maybe sooner */
    struct rlock_obstacle *obstacle;
    const struct rlock_observer *observer;
    const struct rlock_hooks *hooks;
    int64_t refresh_at_ms; /* when to show the obstacle again without news; RLOCK_NEVER: not */
    bool has_warned;
    struct rlock_error block_err; /* why the last block failed; status RLOCK_OK: it didn't */
    int64_t block_failed_ms;      /* when it did */
    bool had_trouble;             /* the last attempt met trouble */
    int n_failures;               /* attempts in a row that got no answer */
    bool has_answered;            /* some server answered: from now on an outage is waited for */
};

static bool uses_queue(const struct acquire_loop *loop)
{
    return !loop->owner->is_single_attempt && loop->owner->queue != RLOCK_QUEUE_NONE;
}

/* ---- the observer and the hooks ---- */

/* NULL: the wait is over. */
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
 * Far back in the queue a waiter asks the server so seldom that a display would stand still.
 * A refresh shows what is known already, and needs no request.
 */
static void refresh(struct acquire_loop *loop)
{
    if (rlock_clock_ms() >= loop->refresh_at_ms)
        show(loop, loop->obstacle);
}

static void warn(struct acquire_loop *loop, const char *text)
{
    if (loop->observer->on_warning == NULL || loop->has_warned)
        return;
    loop->has_warned = true;
    loop->observer->on_warning(loop->observer->context, text);
}

static void on_sent(void *context)
{
    const struct acquire_loop *loop = context;

    if (loop->hooks->on_sent != NULL)
        loop->hooks->on_sent(loop->hooks->context);
}

static int64_t on_wait(void *context)
{
    struct acquire_loop *loop = context;

    refresh(loop);
    return loop->refresh_at_ms;
}

static void on_warning(void *context, const char *text)
{
    warn(context, text);
}

/* ---- what is worth another attempt ---- */

/*
 * May the next attempt end otherwise? RLOCK_E_CONFIG may pass only where it is the fault of a
 * member that has answered before: its certificate is being replaced, which takes a moment. That
 * two URLs name the same server is nobody's fault among the members, and doesn't pass.
 */
static bool is_transient(const struct quorum *quorum, enum rlock_status st)
{
    return st == RLOCK_E_UNREACHABLE || st == RLOCK_E_SERVER || st == RLOCK_E_NO_QUORUM ||
           st == RLOCK_BUSY || st == RLOCK_PENDING ||
           (st == RLOCK_E_CONFIG && members_fault(quorum, NULL) == st && quorum_has_heard(quorum));
}

/*
 * A waiter also outlasts a lack of replicas. For a renewal that is final: the primary has extended
 * the lease already.
 */
static bool is_worth_waiting(const struct quorum *quorum, enum rlock_status st)
{
    return is_transient(quorum, st) || st == RLOCK_E_REPLICAS;
}

/* A single attempt is over with any answer. Without one the lock may be ours, so ask again. */
static bool ends_single_attempt(const struct acquire_loop *loop, enum rlock_status st)
{
    return st == RLOCK_BUSY || st == RLOCK_E_REPLICAS ||
           (st != RLOCK_PENDING && !loop->quorum->in_doubt);
}

/* ---- pauses ---- */

/* Exponential back-off with jitter: clients of a server that restarts are not to ask in step. */
static int64_t backoff_ms(int n_failures)
{
    int64_t most = BACKOFF_FIRST_MS;

    while (n_failures-- > 1 && most < BACKOFF_MAX_MS)
        most *= 2;
    return random_between(most / 4, most < BACKOFF_MAX_MS ? most : BACKOFF_MAX_MS);
}

/* Outside the queue nobody wakes us: ask again soon, or when the holder's lease ends. */
static int64_t poll_ms(const struct rlock_obstacle *obstacle)
{
    int64_t pause_ms = random_between(POLL_LOW_MS, POLL_HIGH_MS);
    int64_t left_ms = obstacle->left_ms;

    return left_ms >= 0 && left_ms + EXPIRY_GRANULARITY_MS < pause_ms
               ? left_ms + EXPIRY_GRANULARITY_MS
               : pause_ms;
}

/*
 * The server woke us because our turn is the next one: it has just passed the lock to the waiter
 * before us. 1. Leave the processor to that waiter, whose command is about to start. 2. Tell the
 * observer, who prepares what a grant will need.
 */
static enum rlock_status prepare_for_turn(struct acquire_loop *loop)
{
    enum rlock_status st = clock_sleep(deadline_in(loop->deadline, NEXT_IN_TURN_MS));

    if (st == RLOCK_STOPPED)
        return st;
    loop->obstacle->is_next = true;
    show(loop, loop->obstacle);
    return RLOCK_PENDING;
}

/*
 * Block until we are woken, the block ends, or it fails: each is a reason for the next attempt, and
 * no more. A waiter that hears that its turn is next goes on blocking, but not for longer than the
 * script said at first: the holder and the waiters before us may be dead.
 */
static enum rlock_status block_in_queue(struct acquire_loop *loop, int64_t block_ms)
{
    struct rlock_deadline deadline = loop->deadline;
    struct rlock_error *err = &loop->block_err;
    enum rlock_status st;
    int64_t end_ms;

    if (deadline.at_ms != RLOCK_NEVER)
        deadline.at_ms += BLOCK_LATE_MS;
    st = quorum_block(loop->quorum, loop->owner, &block_ms, deadline, err);
    end_ms = deadline_in(loop->deadline, block_ms).at_ms;
    if (st == RLOCK_PENDING)
        st = prepare_for_turn(loop);
    while (st == RLOCK_PENDING && !loop->owner->whole_seconds && rlock_clock_ms() < end_ms) {
        block_ms = end_ms - rlock_clock_ms();
        st = quorum_block(loop->quorum, loop->owner, &block_ms, deadline, err);
    }
    if (st <= RLOCK_PENDING)
        err->status = RLOCK_OK;
    loop->block_failed_ms = rlock_clock_ms();
    return st == RLOCK_PENDING ? RLOCK_OK : st;
}

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

/* ---- one attempt ---- */

/*
 * A grant that too few replicas have doesn't count: a waiter undoes it, and is in the queue again
 * with its old ticket. A waiter that was granted the lock at once, without a ticket, takes its
 * fence for one: both are the server's time.
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

/* ---- trouble: no server can be asked, or a grant doesn't count ---- */

static void set_trouble(struct acquire_loop *loop, const struct rlock_error *err, int64_t since_ms)
{
    if (loop->obstacle->trouble.status == RLOCK_OK)
        loop->obstacle->trouble_ms = since_ms;
    loop->obstacle->trouble = *err;
}

/* A server that was never there is trouble once a caller that doesn't wait would have given up. */
static bool is_trouble_shown(const struct acquire_loop *loop)
{
    int64_t now_ms = rlock_clock_ms();

    return !deadline_has_passed(loop->deadline) &&
           (loop->has_answered || now_ms >= loop->obstacle->trouble_ms + loop->quorum->connect_ms);
}

/*
 * Trouble, or its end, after an attempt that began at `began_ms`. Where the block before it had
 * failed, the trouble began then. Members that were restarted are an obstacle, and no trouble.
 */
static void note_trouble(struct acquire_loop *loop, enum rlock_status st,
                         const struct rlock_error *err, int64_t began_ms)
{
    struct rlock_obstacle *obstacle = loop->obstacle;
    bool is_restart = loop->quorum->recently_restarted;
    bool has_block_failed = loop->block_err.status != RLOCK_OK;

    if (st >= RLOCK_E_USAGE && is_worth_waiting(loop->quorum, st) && !is_restart) {
        set_trouble(loop, err, has_block_failed ? loop->block_failed_ms : began_ms);
        if (is_trouble_shown(loop))
            show(loop, obstacle);
    } else if (loop->had_trouble) {
        obstacle->trouble.status = RLOCK_OK;
        obstacle->is_next = st == RLOCK_OK;
        if (st != RLOCK_BUSY && !is_restart) /* RLOCK_BUSY is shown in any case */
            show(loop, obstacle);
    }
    loop->had_trouble = obstacle->trouble.status != RLOCK_OK;
    loop->block_err.status = RLOCK_OK;
}

/*
 * RLOCK_TIMEOUT names the holder that was seen last. Where no server ever answered, members were
 * restarted or replicas are missing, that says nothing, and the fault is the answer.
 */
static enum rlock_status end_at_deadline(struct acquire_loop *loop, enum rlock_status st)
{
    if (loop->block_err.status != RLOCK_OK)
        set_trouble(loop, &loop->block_err, loop->block_failed_ms);
    return loop->has_answered && !loop->quorum->recently_restarted && st != RLOCK_E_REPLICAS
               ? RLOCK_TIMEOUT
               : st;
}

/* ---- the loop ---- */

static void warn_of_password(struct acquire_loop *loop)
{
    char text[512];

    snprintf(text, sizeof text, "%s; the password is looked up again until the wait is over",
             loop->quorum->member[0].err.text);
    warn(loop, text);
}

static enum rlock_status attempt_until_final(struct acquire_loop *loop, struct rlock_grant *grant,
                                             struct rlock_error *err)
{
    struct quorum *quorum = loop->quorum;
    bool is_single = loop->owner->is_single_attempt;
    enum rlock_status st;
    int64_t block_ms = 0;

    for (;;) {
        int64_t began_ms = rlock_clock_ms();

        st = attempt(loop, grant, &block_ms, err);
        note_trouble(loop, st, err, began_ms);
        if (!is_worth_waiting(quorum, st) && !quorum_may_retry_password(quorum, st))
            return st;
        if (is_single && ends_single_attempt(loop, st))
            return st;
        if (!is_worth_waiting(quorum, st))
            warn_of_password(loop);
        if (st == RLOCK_E_UNREACHABLE && loop->hooks->on_unreachable != NULL)
            loop->hooks->on_unreachable(loop->hooks->context);
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
 * The token is not used again: undo an attempt that the server may have executed or may execute
 * yet, and leave the queue.
 */
static void leave(struct quorum *quorum, const struct owner *owner, enum rlock_status st,
                  struct rlock_error *err)
{
    struct rlock_deadline deadline = {RLOCK_NEVER, -1};

    if (st == RLOCK_STOPPED)
        deadline = deadline_in(deadline, UNDO_STOPPED_MS);
    if (quorum_leave(quorum, owner, deadline, NULL) < RLOCK_E_USAGE) {
        if (st == RLOCK_E_REPLICAS)
            err_suffix(err, "it was given back");
    } else if (st >= RLOCK_E_USAGE && quorum->in_doubt) {
        err_suffix(err, "the lock may stay taken until its ttl ends");
    }
}

enum rlock_status acquire_loop_run(struct quorum *quorum, struct owner *owner,
                                   struct rlock_deadline deadline, struct rlock_grant *grant,
                                   struct rlock_obstacle *obstacle,
                                   const struct rlock_observer *observer,
                                   const struct rlock_hooks *hooks, struct rlock_error *err)
{
    struct acquire_loop loop = {.quorum = quorum,
                                .owner = owner,
                                .caller_deadline = deadline,
                                .deadline = deadline,
                                .obstacle = obstacle,
                                .observer = observer,
                                .hooks = hooks,
                                .refresh_at_ms = RLOCK_NEVER};
    struct rlock_error own = {.status = RLOCK_OK};
    enum rlock_status st;

    quorum_set_hooks(quorum, (struct quorum_hooks){.on_sent = on_sent,
                                                   .on_wait = on_wait,
                                                   .on_warning = on_warning,
                                                   .context = &loop});
    owner_start_acquire(owner, deadline_has_passed(deadline));
    if (owner->is_single_attempt || deadline.at_ms == RLOCK_NEVER)
        loop.deadline.at_ms = rlock_clock_ms() + quorum->connect_ms;
    err = err != NULL ? err : &own;
    st = attempt_until_final(&loop, grant, err);
    show(&loop, NULL);
    quorum_set_hooks(quorum, (struct quorum_hooks){.context = NULL});
    if (st != RLOCK_OK && (quorum->in_doubt || owner->ticket > 0))
        leave(quorum, owner, st, err);
    owner_set_ticket(owner, 0);
    return st;
}

/* ---- release and renew ---- */

enum rlock_status release_loop_run(struct quorum *quorum, const struct owner *owner,
                                   struct rlock_deadline deadline, struct rlock_error *err)
{
    bool may_be_released = false; /* by an earlier request whose reply was lost */
    int n_failures = 0;
    enum rlock_status st;

    do {
        st = quorum_release(quorum, owner, deadline, err);
        if ((st == RLOCK_LOST || st == RLOCK_GONE) && may_be_released)
            return RLOCK_OK;
        may_be_released = may_be_released || quorum_is_unanswered(quorum);
    } while ((is_transient(quorum, st) || quorum_may_retry_password(quorum, st)) &&
             clock_sleep(deadline_in(deadline, backoff_ms(++n_failures))) != RLOCK_STOPPED &&
             !deadline_has_passed(deadline));
    if (st == RLOCK_OK && quorum->is_passed_on) /* the next holder is to start before we go on */
        (void)!clock_sleep(deadline_in(deadline, PASSED_ON_MS));
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
