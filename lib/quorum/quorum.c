/* SPDX-License-Identifier: MIT */
/*
 * quorum: one operation on all members, decided by majority.
 *
 * A grant takes two rounds. The first places our token, and each member that
 * lets it gives it a number; the greatest of them is the fence. The second
 * notes the fence with each member that still has the token there and no
 * greater one. Where all have the same number already there is nothing to note:
 * so it is with one member. What was placed and doesn't come to a majority is
 * taken back from all of them.
 *
 * In line a waiter has a place only to be woken by. No turn is kept for it: the
 * members would each keep it for themselves, and one that reaches too few of
 * them would hold up all others. Whoever finds a majority free has the lock.
 *
 * Source: "Distributed Locks with Redis", the Redlock algorithm, for the first
 * broadcast; of one member it is the single-instance algorithm.
 */
#include "quorum/quorum.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "lock/timing.h"
#include "quorum/broadcast.h"

#include <stdio.h>
#include <string.h>

#define ACQUIRE_REPLY_MAX_MS 2000
#define CONFIRM_TRIES 5 /* where others are granted it at the same time, as by shared locks */
#define REPAIR_SPARE 4  /* of a lease, the part that must be left to put it back anywhere */

static bool is_reached(const struct votes *votes, const struct quorum *quorum)
{
    return votes->n_granted >= quorum->need;
}

static int64_t acquire_reply_ms(const struct rlock_timing *timing)
{
    return timing->renew_ms < ACQUIRE_REPLY_MAX_MS ? timing->renew_ms : ACQUIRE_REPLY_MAX_MS;
}

void quorum_set_hooks(struct quorum *quorum, struct quorum_hooks hooks)
{
    quorum->hooks = hooks;
}

/* ---- acquire ---- */

static enum rlock_status take_grant(struct quorum *quorum, struct owner *owner,
                                    const struct votes *votes, int64_t reply_ms,
                                    struct rlock_grant *grant)
{
    owner_take_grant(owner, &votes->granted, votes->fence);
    timing_shorten(&quorum->timing, owner_granted_ttl_ms(owner));
    *grant = (struct rlock_grant){.sent_ms = votes->sent_ms,
                                  .expires_ms = timing_end(&quorum->timing, votes->sent_ms),
                                  .fence = votes->fence,
                                  .slot = owner->slot,
                                  .is_parent = !owner_has_own_lock(owner),
                                  .has_parent = owner_has_parent_lock(owner),
                                  .parent_keys = owner_parent_keys(owner),
                                  .timing = quorum->timing};
    memcpy(grant->token, owner_held_token(owner), sizeof grant->token);
    /* were we stopped meanwhile? Then too little of the lease is left: ask again */
    return rlock_clock_ms() > votes->sent_ms + reply_ms ? RLOCK_PENDING : RLOCK_OK;
}

/* The second one. RLOCK_OK, RLOCK_STOPPED or RLOCK_PENDING: what was granted is not to be had. */
static enum rlock_status confirm(struct quorum *quorum, const struct owner *owner,
                                 struct votes *votes, struct rlock_deadline deadline)
{
    struct broadcast broadcast = {.owner = owner,
                                  .ask = requests_confirm,
                                  .read = reply_parse_confirm,
                                  .needs_memory = true,
                                  .is_quick = true};
    struct votes noted;
    enum rlock_status st;
    int tries;

    if (votes->same_fence == quorum->n || !owner_has_own_lock(owner))
        return RLOCK_OK;
    for (tries = 0; tries < CONFIRM_TRIES; tries++) {
        broadcast.fence = votes->fence;
        broadcast.reply_ms = votes->sent_ms + acquire_reply_ms(&quorum->timing) - rlock_clock_ms();
        if (broadcast.reply_ms <= 0)
            return RLOCK_PENDING;
        st = broadcast_run(quorum, &broadcast, deadline_in(deadline, broadcast.reply_ms));
        if (st != RLOCK_OK)
            return st;
        st = votes_count(&noted, quorum, reply_parse_confirm, NULL);
        if (st != RLOCK_OK || is_reached(&noted, quorum))
            return st;
        if (noted.late == 0)
            return RLOCK_PENDING;
        votes->fence = noted.fence; /* that is the greatest of those it would have to pass */
    }
    return RLOCK_PENDING;
}

static void undo(struct quorum *quorum, const struct owner *owner, unsigned granted_by,
                 requests_build *ask)
{
    struct broadcast broadcast = {.owner = owner,
                                  .ask = ask,
                                  .enough = 1,
                                  .skip = ~granted_by,
                                  .reply_ms = quorum->timing.reply_ms};

    if (granted_by != 0)
        broadcast_run(quorum, &broadcast,
                      deadline_in((struct rlock_deadline){RLOCK_NEVER, -1}, broadcast.reply_ms));
}

/* What a minority granted. Nobody hears of it, and those who lose here don't wake each other. */
static void take_back(struct quorum *quorum, const struct owner *owner, const struct broadcast *of,
                      unsigned granted_by)
{
    broadcast_abandon(quorum, of);
    undo(quorum, owner, granted_by, requests_undo);
}

/* Too few members remember for long enough who has it. */
static enum rlock_status too_young(struct quorum *quorum, const struct votes *votes,
                                   struct rlock_obstacle *obstacle, struct rlock_error *err)
{
    quorum->recently_restarted = true;
    *obstacle = (struct rlock_obstacle){.left_ms = votes->young_ms, .seen_ms = rlock_clock_ms()};
    snprintf(obstacle->holder, sizeof obstacle->holder,
             "%zu of %zu servers that were restarted, and may have forgotten who holds it",
             votes->young, quorum->n);
    return err_set(err, RLOCK_E_NO_QUORUM, 0,
                   "%zu of %zu members were restarted, and may have forgotten who holds it: they "
                   "count again in %lld.%01d s",
                   votes->young, quorum->n, (long long)(votes->young_ms / 1000),
                   (int)(votes->young_ms % 1000 / 100));
}

/* How the members are to be understood where no majority granted. */
static enum rlock_status understand(struct quorum *quorum, struct owner *owner,
                                    const struct votes *votes, struct rlock_obstacle *obstacle,
                                    int64_t *block_ms, struct rlock_error *err)
{
    size_t unknown = quorum->n - votes->n_granted - votes->held - votes->young - votes->late;

    if (votes->superseded > 0)
        return RLOCK_SUPERSEDED;
    if (votes->other_mode > 0)
        return err_set(err, RLOCK_E_USAGE, 0,
                       "an outer rlock holds it in another mode, which this one would wait for");
    if (owner->only_parents && votes->gone > quorum->n - quorum->need)
        return RLOCK_GONE;
    if (votes->done > 0) {
        *obstacle = votes->held_by.obstacle;
        return RLOCK_DONE;
    }
    if (votes->held > 0 && votes->ticket > owner->ticket)
        owner_set_ticket(owner, votes->ticket);
    if (votes->held > 0 && votes->same_owner + unknown >= quorum->need) {
        *obstacle = votes->held_by.obstacle;
        obstacle->seen_ms = rlock_clock_ms();
        *block_ms = votes->held_by.block_ms;
        return RLOCK_BUSY;
    }
    if (votes->n_granted + votes->young >= quorum->need)
        return too_young(quorum, votes, obstacle, err);
    /* others want it as well, and nobody has it */
    return votes->late + votes->held > 0 ? RLOCK_PENDING : members_fault(quorum, err);
}

static void warn_of(const struct quorum *quorum, const struct reply *stranger)
{
    const char *theirs = stranger->members_hash[0] != '\0' ? stranger->members_hash : "one server";
    const char *ours = quorum->members_hash[0] != '\0' ? quorum->members_hash : "one server";
    const struct quorum_hooks *hooks = &quorum->hooks;
    char text[512];

    if (!stranger->is_rlock || hooks->on_warning == NULL)
        return;
    snprintf(text, sizeof text,
             "%.256s names other servers for this lock (%.20s, here %.20s): nothing keeps it and "
             "us apart",
             stranger->obstacle.holder, theirs, ours);
    hooks->on_warning(hooks->context, text);
}

enum rlock_status quorum_acquire(struct quorum *quorum, struct owner *owner,
                                 struct rlock_deadline deadline, struct rlock_grant *grant,
                                 struct rlock_obstacle *obstacle, int64_t *block_ms,
                                 struct rlock_error *err)
{
    struct broadcast broadcast = {.owner = owner,
                                  .ask = requests_acquire,
                                  .read = reply_parse_acquire,
                                  .reply_ms = acquire_reply_ms(&quorum->timing),
                                  .undo = true,
                                  .needs_memory = true,
                                  .is_told = true};
    enum rlock_status stopped;
    enum rlock_status st;
    struct votes votes;

    owner_begin_attempt(owner);
    quorum->recently_restarted = false;
    stopped = broadcast_run(quorum, &broadcast, deadline);
    st = votes_count(&votes, quorum, reply_parse_acquire, err);
    warn_of(quorum, &votes.stranger);
    quorum->in_doubt = quorum->in_doubt || broadcast_is_unanswered(quorum) || st != RLOCK_OK;
    if (st == RLOCK_OK && is_reached(&votes, quorum)) {
        owner_take_grant(owner, &votes.granted, votes.fence);
        st = stopped == RLOCK_OK ? confirm(quorum, owner, &votes, deadline) : stopped;
        if (st == RLOCK_PENDING)
            take_back(quorum, owner, &broadcast, votes.granted_by);
        if (st == RLOCK_OK)
            undo(quorum, owner, votes.inconsistent, requests_undo);
        if (st == RLOCK_OK)
            st = take_grant(quorum, owner, &votes, broadcast.reply_ms, grant);
        quorum->in_doubt = st != RLOCK_OK;
        return st;
    }
    if (stopped != RLOCK_OK || st != RLOCK_OK)
        return stopped != RLOCK_OK ? stopped : st;
    take_back(quorum, owner, &broadcast, votes.granted_by);
    return understand(quorum, owner, &votes, obstacle, block_ms, err);
}

void quorum_requeue(struct quorum *quorum, const struct owner *owner)
{
    unsigned granted_by = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++)
        granted_by |= (quorum->member[i].granted_by != 0 ? 1U : 0U) << i;
    undo(quorum, owner, granted_by, owner->ticket > 0 ? requests_requeue : requests_undo);
}

/* ---- in line ---- */

/* Whose clock is known, and that it is the same server's as before. */
struct clocks {
    bool is_known[RLOCK_MEMBERS_MAX];
    int n_moves[RLOCK_MEMBERS_MAX];
};

static void note_clocks(struct clocks *clocks, const struct quorum *quorum)
{
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        clocks->is_known[i] = quorum->member[i].knows_clock;
        clocks->n_moves[i] = quorum->member[i].n_moves;
    }
}

/* The next attempt must not come late only because this wait was cut off. */
static void keep_clocks(const struct clocks *clocks, struct quorum *quorum)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        quorum->member[i].knows_clock =
            clocks->is_known[i] && quorum->member[i].n_moves == clocks->n_moves[i];
}

enum rlock_status quorum_block(struct quorum *quorum, struct owner *owner, int64_t *block_ms,
                               struct rlock_deadline deadline, struct rlock_error *err)
{
    struct broadcast broadcast = {.owner = owner,
                                  .ask = requests_wait,
                                  .enough = 1,
                                  .block_ms = owner_block_ms(owner, *block_ms),
                                  .reply_ms = acquire_reply_ms(&quorum->timing)};
    struct clocks before;
    enum rlock_status st;
    size_t i;

    note_clocks(&before, quorum);
    st = broadcast_run(quorum, &broadcast, deadline);
    broadcast_abandon(quorum, &broadcast);
    keep_clocks(&before, quorum);
    if (st == RLOCK_STOPPED)
        return st;
    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].state == RLOCK_OK) {
            *block_ms = reply_soon_ms(quorum->member[i].reply);
            return *block_ms >= 0 ? RLOCK_PENDING : RLOCK_OK;
        }
    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].state >= RLOCK_E_USAGE &&
            quorum->member[i].err.reason == RLOCK_REASON_WHOLE_SECONDS)
            owner_need_whole_seconds(owner);
    return members_fault(quorum, err);
}

/* ---- renew ---- */

/*
 * Put our token back where it is gone while the majority has it, so that the
 * next member that fails doesn't end the lease: by an attempt like any other, as
 * long as the lease certainly lasts. After the grant that does its fence no harm.
 */
static void repair(struct quorum *quorum, const struct owner *owner, unsigned gone_from,
                   struct rlock_deadline deadline)
{
    struct owner again = owner_for_repair(owner);
    struct broadcast broadcast = {.owner = &again,
                                  .ask = requests_acquire,
                                  .read = reply_parse_acquire,
                                  .enough = 1,
                                  .skip = ~gone_from,
                                  .reply_ms = quorum->timing.reply_ms,
                                  .undo = true};
    size_t i;

    if (gone_from == 0 || owner->is_adopted || owner_has_parent_lock(owner))
        return;
    for (i = 0; i < quorum->n; i++)
        if (!quorum->member[i].knows_clock)
            broadcast.skip |= 1U << i;
    broadcast_run(quorum, &broadcast, deadline_in(deadline, quorum->timing.ttl_ms / REPAIR_SPARE));
    broadcast_abandon(quorum, &broadcast);
}

static enum rlock_status not_renewed(const struct quorum *quorum, const struct votes *votes,
                                     struct rlock_error *err)
{
    size_t most = quorum->n - quorum->need;

    if (votes->released > most)
        return err_set(err, RLOCK_RELEASED, 0, "it was released");
    if (votes->held + votes->gone + votes->released <= most)
        return votes->late > 0 ? RLOCK_PENDING : members_fault(quorum, err);
    if (votes->held > 0)
        return err_set(err, RLOCK_LOST, 0, "it is held by %s", votes->held_by.obstacle.holder);
    return err_set(err, RLOCK_GONE, 0, "it is gone from the server");
}

enum rlock_status quorum_renew(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, int64_t *expires_ms, bool *restored,
                               struct rlock_error *err)
{
    struct broadcast broadcast = {.owner = owner,
                                  .ask = requests_renew,
                                  .read = reply_parse_renew,
                                  .reply_ms = quorum->timing.reply_ms};
    enum rlock_status stopped =
        broadcast_run(quorum, &broadcast, deadline_in(deadline, quorum->timing.reply_ms));
    struct rlock_timing timing = quorum->timing;
    struct votes votes;
    enum rlock_status st = votes_count(&votes, quorum, reply_parse_renew, err);

    if (st != RLOCK_OK)
        return st;
    if (is_reached(&votes, quorum)) {
        if (owner->is_adopted && votes.left_ms > 0)
            timing.ttl_ms = votes.left_ms;
        *expires_ms = timing_end(&timing, votes.sent_ms);
        *restored = votes.restored > 0;
        if (stopped == RLOCK_OK)
            repair(quorum, owner, votes.gone_from, deadline);
        return RLOCK_OK;
    }
    return stopped == RLOCK_STOPPED ? stopped : not_renewed(quorum, &votes, err);
}

void quorum_learn(struct quorum *quorum, struct rlock_deadline deadline)
{
    struct broadcast broadcast = {
        .looks = true, .enough = quorum->n, .reply_ms = quorum->timing.reply_ms, .skip = ~0U};
    size_t i;

    for (i = 0; i < quorum->n; i++)
        if (member_may_look(&quorum->member[i]))
            broadcast.skip &= ~(1U << i);
    if (broadcast.skip == ~0U)
        return;
    (void)!broadcast_run(quorum, &broadcast, deadline_in(deadline, broadcast.reply_ms));
    broadcast_abandon(quorum, &broadcast);
}

/* ---- release ---- */

static enum rlock_status give_back(struct quorum *quorum, const struct owner *owner,
                                   requests_build *ask, struct rlock_deadline deadline,
                                   struct rlock_error *err)
{
    struct broadcast broadcast = {.owner = owner,
                                  .ask = ask,
                                  .read = reply_parse_release,
                                  .reply_ms = quorum->timing.reply_ms,
                                  .supersedes_pending = true};
    enum rlock_status stopped =
        broadcast_run(quorum, &broadcast, deadline_in(deadline, quorum->timing.reply_ms));
    struct votes votes;
    enum rlock_status st = votes_count(&votes, quorum, reply_parse_release, err);

    quorum->is_passed_on = st == RLOCK_OK && votes.granted.is_passed_on;
    if (st != RLOCK_OK || is_reached(&votes, quorum))
        return st;
    if (stopped == RLOCK_STOPPED)
        return stopped;
    if (votes.n_granted + votes.held + votes.gone < quorum->need)
        return members_fault(quorum, err);
    if (votes.held + votes.gone <= quorum->n - quorum->need)
        return RLOCK_OK; /* the others had it, as far as is known, and no majority has it now */
    return votes.held > 0 ? RLOCK_LOST : RLOCK_GONE;
}

enum rlock_status quorum_release(struct quorum *quorum, const struct owner *owner,
                                 struct rlock_deadline deadline, struct rlock_error *err)
{
    return give_back(quorum, owner, requests_release, deadline, err);
}

enum rlock_status quorum_leave(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, struct rlock_error *err)
{
    return give_back(quorum, owner, requests_leave, deadline, err);
}

/* ---- anything else ---- */

enum rlock_status quorum_ask(struct quorum *quorum, const struct request *request,
                             struct rlock_deadline deadline, const struct resp_value **reply,
                             struct rlock_error *err)
{
    return quorum_ask_slowly(quorum, request, 0, deadline, reply, err);
}

enum rlock_status quorum_ask_slowly(struct quorum *quorum, const struct request *request,
                                    int64_t block_ms, struct rlock_deadline deadline,
                                    const struct resp_value **reply, struct rlock_error *err)
{
    struct broadcast broadcast = {.request = request,
                                  .enough = block_ms > 0 ? quorum->n : 0,
                                  .block_ms = block_ms,
                                  .reply_ms = quorum->timing.reply_ms};
    enum rlock_status st = broadcast_run(quorum, &broadcast, deadline);
    size_t answered = 0;
    size_t i;

    if (st == RLOCK_STOPPED)
        return st;
    st = members_check(quorum, err);
    for (i = quorum->n; i > 0; i--) {
        if (quorum->member[i - 1].state != RLOCK_OK)
            continue;
        *reply = quorum->member[i - 1].reply;
        answered++;
    }
    if (st == RLOCK_OK && answered < quorum->need)
        st = members_fault(quorum, err);
    return st;
}
