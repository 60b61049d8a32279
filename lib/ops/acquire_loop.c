/* SPDX-License-Identifier: MIT */
/*
 * acquire_loop: ask again and again, until there is an answer or time is over.
 *
 * In line, the script says for how long to block until it is asked again, and
 * whoever gives the lock up wakes the first. Being woken is only a hint: what
 * counts is what the next attempt says. So nothing depends on a wake-up that
 * is lost, and the timing of the line stands in one place, its script.
 */
#include "ops/acquire_loop.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "ops/replicas.h"
#include "ops/watch.h"
#include "quorum/broadcast.h"

#include <stdio.h>

#define POLL_LOW_MS 50
#define POLL_HIGH_MS 250
#define RETRY_FIRST_MS 50
#define RETRY_MAX_MS 250 /* less than a turn in line lasts, so that no restart costs a turn */
#define STOPPED_MS 500   /* who was told to stop can wait no longer to take a request back */
#define ANSWER_MS 200
#define READY_MS 2  /* until the turn that was just passed on has begun */
#define PASSED_MS 1 /* likewise, for who passed it on */
#define EXPIRY_MS 2 /* the server lets a key go up to a tick after its time */

/* A lock that is asked for, and how that goes. */
struct asking {
    struct quorum *quorum;
    struct watch *told;
    struct owner *owner;
    struct rlock_deadline deadline; /* as the caller wants it */
    struct rlock_deadline ends;     /* as it is while no server has answered */
    struct rlock_obstacle *obstacle;
    struct rlock_error
        cut;        /* why the last wait in line failed; its status is RLOCK_OK: it didn't */
    int64_t cut_ms; /* when it did */
    enum rlock_status trouble_status; /* of the trouble that was there after the last attempt */
    int failures;                     /* in a row */
    bool was_there;                   /* a server that never answered is a fault, not a wait */
};

static bool has_line(const struct asking *asking)
{
    return !asking->owner->is_single_attempt && asking->owner->queue != RLOCK_QUEUE_NONE;
}

static bool has_any_answered(const struct quorum *quorum)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].primary->conn.has_received ||
            quorum->member[i].redirect->conn.has_received)
            return true;
    return false;
}

/*
 * Outcomes and faults that may pass by themselves. A certificate that is wrong is one of them
 * where it was right before: it is being replaced, and that takes a moment or two. That the same
 * server is named twice is no fault of a member's, and doesn't pass.
 */
static bool may_pass(const struct quorum *quorum, enum rlock_status st)
{
    return st == RLOCK_E_UNREACHABLE || st == RLOCK_E_SERVER || st == RLOCK_E_NO_QUORUM ||
           st == RLOCK_BUSY || st == RLOCK_PENDING ||
           (st == RLOCK_E_CONFIG && members_fault(quorum, NULL) == st && has_any_answered(quorum));
}

/*
 * Is it the password that keeps us out, where a later lookup may find another,
 * as while it is being changed? A server that never accepted one is not waited for.
 */
static bool may_relog(const struct quorum *quorum, enum rlock_status st)
{
    size_t i;
    bool may = false;

    for (i = 0; i < quorum->n; i++) {
        if (quorum->member[i].state != st)
            continue;
        if (!member_may_relog(&quorum->member[i]))
            return false;
        may = true;
    }
    return may;
}

/* What a wait outlasts. Who renews has granted already what its replicas are to have. */
static bool may_pass_in_line(const struct quorum *quorum, enum rlock_status st)
{
    return may_pass(quorum, st) || st == RLOCK_E_REPLICAS;
}

/* Asking once is over with any answer; a request that got none is asked again. */
static bool is_answered(const struct asking *asking, enum rlock_status st)
{
    return st == RLOCK_BUSY || st == RLOCK_E_REPLICAS ||
           (st != RLOCK_PENDING && !asking->quorum->in_doubt);
}

/* Longer and longer, and not in step with others. */
static int64_t retry_ms(int failures)
{
    int64_t most = RETRY_FIRST_MS;

    while (failures-- > 1 && most < RETRY_MAX_MS)
        most *= 2;
    return random_between(most / 4, most < RETRY_MAX_MS ? most : RETRY_MAX_MS);
}

/* Beside the line: the next look comes soon, or when the holder's lease ends. */
static int64_t poll_ms(const struct rlock_obstacle *obstacle)
{
    int64_t pause = random_between(POLL_LOW_MS, POLL_HIGH_MS);
    int64_t left = obstacle->left_ms;

    return left >= 0 && left + EXPIRY_MS < pause ? left + EXPIRY_MS : pause;
}

/* A server ends a wait up to a tenth of a second late: that is no reason to give up on it. */
static struct rlock_deadline until_later(struct rlock_deadline deadline, int64_t ms)
{
    if (deadline.at_ms != RLOCK_NEVER)
        deadline.at_ms += ms;
    return deadline;
}

/* Whose turn it is has more need of the processor now than we have. */
static enum rlock_status get_ready(struct asking *asking)
{
    enum rlock_status st = clock_sleep(deadline_in(asking->ends, READY_MS));

    if (st == RLOCK_STOPPED)
        return st;
    asking->obstacle->is_next = true;
    watch_see(asking->told, asking->obstacle);
    return RLOCK_PENDING;
}

/*
 * Woken, cut off or neither: each is a reason to ask again, and no more than
 * that. Who hears that its turn comes near goes on waiting for it, but not for
 * longer than it was first told: those ahead may be dead.
 */
static enum rlock_status block_in_line(struct asking *asking, int64_t block_ms)
{
    struct rlock_deadline deadline = until_later(asking->ends, ANSWER_MS);
    struct rlock_error *err = &asking->cut;
    enum rlock_status st = quorum_block(asking->quorum, asking->owner, &block_ms, deadline, err);
    int64_t look_ms = deadline_in(asking->ends, block_ms).at_ms;

    if (st == RLOCK_PENDING)
        st = get_ready(asking);
    while (st == RLOCK_PENDING && !asking->owner->whole_seconds && rlock_clock_ms() < look_ms) {
        block_ms = look_ms - rlock_clock_ms();
        st = quorum_block(asking->quorum, asking->owner, &block_ms, deadline, err);
    }
    if (st <= RLOCK_PENDING)
        err->status = RLOCK_OK;
    asking->cut_ms = rlock_clock_ms();
    return st == RLOCK_PENDING ? RLOCK_OK : st;
}

static enum rlock_status pause_after(struct asking *asking, enum rlock_status st, int64_t block_ms)
{
    asking->failures = st == RLOCK_BUSY ? 0 : asking->failures + 1;
    if (st != RLOCK_BUSY)
        return clock_sleep(deadline_in(asking->ends, retry_ms(asking->failures)));
    if (!has_line(asking))
        return clock_sleep(deadline_in(asking->ends, poll_ms(asking->obstacle)));
    if (asking->ends.at_ms != RLOCK_NEVER && asking->ends.at_ms - rlock_clock_ms() < block_ms)
        block_ms = asking->ends.at_ms - rlock_clock_ms();
    st = block_in_line(asking, block_ms);
    if (st != RLOCK_OK && st != RLOCK_STOPPED)
        st = clock_sleep(deadline_in(asking->ends, poll_ms(asking->obstacle)));
    return st;
}

/*
 * One attempt. A grant that too few replicas have doesn't count: a waiter releases it, and stands
 * in line again with the same ticket. Who had no ticket takes the fence, which is the time of the
 * grant.
 */
static enum rlock_status attempt(struct asking *asking, struct rlock_grant *grant,
                                 int64_t *block_ms, struct rlock_error *err)
{
    struct quorum *quorum = asking->quorum;
    enum rlock_status st;

    st =
        quorum_acquire(quorum, asking->owner, asking->ends, grant, asking->obstacle, block_ms, err);
    if (st == RLOCK_OK) {
        st = replicas_have(quorum, asking->ends, err);
        quorum->in_doubt = st != RLOCK_OK;
    }
    if (st == RLOCK_E_REPLICAS && !asking->owner->is_single_attempt) {
        if (has_line(asking) && asking->owner->ticket == 0)
            owner_set_ticket(asking->owner, (int64_t)grant->fence);
        quorum_requeue(quorum, asking->owner);
    }
    return st;
}

/* ---- trouble ---- */

static void begin_trouble(struct asking *asking, const struct rlock_error *err, int64_t since_ms)
{
    if (asking->obstacle->trouble.status == RLOCK_OK)
        asking->obstacle->trouble_ms = since_ms;
    asking->obstacle->trouble = *err;
}

/* Longer than a server that was never there would have been tried by who doesn't wait. */
static bool is_long(const struct asking *asking)
{
    return rlock_clock_ms() >= asking->obstacle->trouble_ms + asking->quorum->connect_ms;
}

/* What the last attempt met, which began then; a wait that was cut off before shows it earlier. */
static void note_trouble(struct asking *asking, enum rlock_status st, const struct rlock_error *err,
                         int64_t began_ms)
{
    struct rlock_obstacle *obstacle = asking->obstacle;
    bool recently_restarted = asking->quorum->recently_restarted;

    if (st >= RLOCK_E_USAGE && may_pass_in_line(asking->quorum, st) && !recently_restarted) {
        begin_trouble(asking, err, asking->cut.status != RLOCK_OK ? asking->cut_ms : began_ms);
        if (!deadline_has_passed(asking->ends) && (asking->was_there || is_long(asking)))
            watch_see(asking->told, obstacle);
    } else if (asking->trouble_status != RLOCK_OK) {
        obstacle->trouble.status = RLOCK_OK;
        obstacle->is_next = st == RLOCK_OK;
        if (st != RLOCK_BUSY && !recently_restarted)
            watch_see(asking->told, obstacle);
    }
    asking->trouble_status = obstacle->trouble.status;
    asking->cut.status = RLOCK_OK;
}

/* Time is over. Whom the server told nothing in the end isn't told of a holder. */
static enum rlock_status end_in_time(struct asking *asking, enum rlock_status st)
{
    if (asking->cut.status != RLOCK_OK)
        begin_trouble(asking, &asking->cut, asking->cut_ms);
    return asking->was_there && !asking->quorum->recently_restarted && st != RLOCK_E_REPLICAS
               ? RLOCK_TIMEOUT
               : st;
}

static void warn_of_login(struct asking *asking)
{
    char text[512];

    snprintf(text, sizeof text, "%s; the password is looked up again until the wait is over",
             asking->quorum->member[0].err.text);
    watch_warn(asking->told, text);
}

static enum rlock_status ask_until(struct asking *asking, struct rlock_grant *grant,
                                   struct rlock_error *err)
{
    enum rlock_status st;
    int64_t block_ms = 0;

    for (;;) {
        int64_t began_ms = rlock_clock_ms();

        st = attempt(asking, grant, &block_ms, err);
        note_trouble(asking, st, err, began_ms);
        if ((!may_pass_in_line(asking->quorum, st) && !may_relog(asking->quorum, st)) ||
            (asking->owner->is_single_attempt && is_answered(asking, st)))
            return st;
        if (!may_pass_in_line(asking->quorum, st))
            warn_of_login(asking);
        if (st == RLOCK_E_UNREACHABLE)
            watch_unreached(asking->told);
        asking->was_there = asking->was_there || asking->quorum->recently_restarted ||
                            st == RLOCK_BUSY || st == RLOCK_PENDING;
        if (asking->was_there && !asking->owner->is_single_attempt)
            asking->ends = asking->deadline;
        if (st == RLOCK_BUSY || asking->quorum->recently_restarted)
            watch_see(asking->told, asking->obstacle);
        watch_tick(asking->told);
        if (pause_after(asking, st, block_ms) == RLOCK_STOPPED)
            return RLOCK_STOPPED;
        if (deadline_has_passed(asking->ends))
            return end_in_time(asking, st);
    }
}

/* An attempt may be executed yet, or stands in line: the token will not be used again. */
static void take_back(struct quorum *quorum, const struct owner *owner, enum rlock_status st,
                      struct rlock_error *err)
{
    struct rlock_deadline deadline = {RLOCK_NEVER, -1};

    if (st == RLOCK_STOPPED)
        deadline = deadline_in(deadline, STOPPED_MS);
    if (quorum_leave(quorum, owner, deadline, NULL) < RLOCK_E_USAGE) {
        if (st == RLOCK_E_REPLICAS)
            err_suffix(err, "it was given back");
    } else if (st >= RLOCK_E_USAGE && quorum->in_doubt) {
        err_suffix(err, "the lock may stay taken until its ttl ends");
    }
}

enum rlock_status wait_acquire(struct quorum *quorum, struct owner *owner,
                               struct rlock_deadline deadline, struct rlock_grant *grant,
                               struct rlock_obstacle *obstacle,
                               const struct rlock_observer *observer,
                               const struct rlock_hooks *hooks, struct rlock_error *err)
{
    struct watch told = {.by = *observer, .hooks = *hooks};
    struct asking asking = {.quorum = quorum,
                            .told = &told,
                            .owner = owner,
                            .deadline = deadline,
                            .ends = deadline,
                            .obstacle = obstacle};
    struct rlock_error own = {.status = RLOCK_OK};
    enum rlock_status st;

    quorum_set_hooks(quorum, watch_hooks(&told));
    owner_start_acquire(owner, deadline_has_passed(deadline));
    if (owner->is_single_attempt || deadline.at_ms == RLOCK_NEVER)
        asking.ends.at_ms = rlock_clock_ms() + quorum->connect_ms;
    err = err != NULL ? err : &own;
    st = ask_until(&asking, grant, err);
    watch_see(&told, NULL);
    quorum_set_hooks(quorum, (struct quorum_hooks){.context = NULL});
    if (st != RLOCK_OK && (quorum->in_doubt || owner->ticket > 0))
        take_back(quorum, owner, st, err);
    owner_set_ticket(owner, 0);
    return st;
}

enum rlock_status wait_release(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, struct rlock_error *err)
{
    bool may_be_done = false; /* an earlier request of ours got no answer */
    int failures = 0;
    enum rlock_status st;

    do {
        st = quorum_release(quorum, owner, deadline, err);
        if ((st == RLOCK_LOST || st == RLOCK_GONE) && may_be_done)
            return RLOCK_OK;
        may_be_done = may_be_done || broadcast_is_unanswered(quorum);
    } while ((may_pass(quorum, st) || may_relog(quorum, st)) &&
             clock_sleep(deadline_in(deadline, retry_ms(++failures))) != RLOCK_STOPPED &&
             !deadline_has_passed(deadline));
    if (st == RLOCK_OK && quorum->is_passed_on)
        (void)!clock_sleep(deadline_in(deadline, PASSED_MS));
    return st;
}

enum rlock_status wait_renew(struct quorum *quorum, const struct owner *owner,
                             struct rlock_deadline deadline, int64_t *expires_ms,
                             struct rlock_error *err)
{
    int failures = 0;
    enum rlock_status st;
    bool restored;

    do {
        st = quorum_renew(quorum, owner, deadline, expires_ms, &restored, err);
        if (st == RLOCK_OK)
            st = replicas_have(quorum, deadline, err);
    } while (may_pass(quorum, st) &&
             clock_sleep(deadline_in(deadline, retry_ms(++failures))) != RLOCK_STOPPED &&
             !deadline_has_passed(deadline));
    return st;
}
