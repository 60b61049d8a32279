/* SPDX-License-Identifier: MIT */
/*
 * quorum: one operation on all members, decided by majority.
 *
 * A grant takes two rounds:
 * 1. Acquire: each member where the lock is free places our token, and draws a number that is
 *    greater than all before it. If a majority did, the greatest of these numbers is the fence.
 * 2. Confirm: each member that still has the token there, and has seen no greater number, notes the
 *    fence. If a majority did, the lock is granted.
 * Where all members drew the same number there is nothing to note: so it is with a single server.
 * A token that doesn't come to a majority is removed again from all members (undo).
 *
 * A waiter of a quorum stands in line only to be woken. No turn is kept for it: each member would
 * keep it for another waiter, and one that is first on too few members would hold up all others.
 * Whoever finds a majority free has the lock.
 *
 * Source: "Distributed Locks with Redis", the Redlock algorithm, for the first round, which on a
 * single server is the single-instance algorithm. tests/model/fence.pml models both rounds.
 */
#include "quorum/quorum.h"

#include "base/clock.h"
#include "base/err.h"
#include "lock/timing.h"
#include "quorum/broadcast.h"

#include <stdio.h>
#include <string.h>

#define ACQUIRE_REPLY_MAX_MS 2000
#define CONFIRM_TRIES 5 /* where others are granted it at the same time, as by shared locks */
#define REPAIR_PART 4   /* of the TTL: so long a repair may take, while the lease lasts anyhow */

static bool is_granted(const struct votes *votes, const struct quorum *quorum)
{
    return votes->n_granted >= quorum->members.need;
}

static int64_t acquire_reply_ms(const struct rlock_timing *timing)
{
    return timing->renew_ms < ACQUIRE_REPLY_MAX_MS ? timing->renew_ms : ACQUIRE_REPLY_MAX_MS;
}

/*
 * When the lease ends that a majority has granted or renewed. This is the only place that counts
 * it: on the member that was asked first the TTL began first, and not before its request was sent.
 */
static int64_t lease_end(const struct votes *votes, int64_t ttl_ms)
{
    return timing_expires_ms(ttl_ms, votes->sent_ms);
}

/* ---- from open to close ---- */

enum rlock_status quorum_open(struct quorum *quorum, const struct rlock_config *config,
                              struct rlock_error *err)
{
    *quorum = (struct quorum){.timing = config->timing, .replicas = config->replicas};
    return members_open(&quorum->members, config, err);
}

void quorum_close(struct quorum *quorum)
{
    members_close(&quorum->members);
}

struct quorum quorum_alone(const struct quorum *quorum, struct member *member,
                           struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX])
{
    struct quorum one = *quorum;

    one.members = members_alone(&quorum->members, member, pollfds);
    return one;
}

void quorum_set_patience(struct quorum *quorum, int64_t connect_ms, int64_t reply_ms)
{
    members_set_connect_ms(&quorum->members, connect_ms);
    quorum->timing.reply_ms = reply_ms;
}

void quorum_set_hooks(struct quorum *quorum, struct wait_hooks hooks)
{
    members_set_hooks(&quorum->members, hooks);
}

/* ---- acquire ---- */

/* RLOCK_OK, or RLOCK_PENDING: we were stopped meanwhile, and too little of the lease is left. */
static enum rlock_status take_grant(struct quorum *quorum, struct owner *owner,
                                    const struct reply *granted, const struct votes *votes,
                                    uint64_t fence, struct rlock_grant *grant)
{
    int64_t reply_ms = acquire_reply_ms(&quorum->timing);

    owner_take_grant(owner, granted, fence);
    timing_shorten(&quorum->timing, owner_granted_ttl_ms(owner));
    *grant = (struct rlock_grant){.sent_ms = votes->sent_ms,
                                  .expires_ms = lease_end(votes, quorum->timing.ttl_ms),
                                  .fence = fence,
                                  .slot = owner->slot,
                                  .is_parent = !owner_has_own_lock(owner),
                                  .has_parent = owner_has_parent_lock(owner),
                                  .parent_keys = owner_parent_keys(owner),
                                  .timing = quorum->timing};
    memcpy(grant->token, owner_held_token(owner), sizeof grant->token);
    return rlock_clock_ms() > votes->sent_ms + reply_ms ? RLOCK_PENDING : RLOCK_OK;
}

/*
 * The second round of a grant makes a majority note the fence:
 * 1. We ask all members to note `*fence`.
 * 2. A member that has noted a greater fence refuses, and tells its fence.
 * 3. Without a majority we raise `*fence` to the greatest that was told, and go to 1.
 * Both rounds together may take as long as one reply, counted from the first request of the grant.
 * No second round is needed if all members granted with the same fence, or if only parent locks
 * were granted.
 *
 * RLOCK_OK (a majority has noted `*fence`), RLOCK_STOPPED, a fault, or RLOCK_PENDING: no majority
 * has noted a fence in that time.
 */
static enum rlock_status confirm(struct quorum *quorum, const struct owner *owner,
                                 const struct votes *votes, uint64_t *fence,
                                 struct rlock_deadline deadline, struct rlock_error *err)
{
    int64_t end_ms = votes->sent_ms + acquire_reply_ms(&quorum->timing);
    struct votes confirmed;
    enum rlock_status st;
    int tries;

    if (votes->n_same_fence == quorum->members.n || !owner_has_own_lock(owner))
        return RLOCK_OK;
    for (tries = 0; tries < CONFIRM_TRIES; tries++) {
        struct broadcast broadcast = {.purpose = BROADCAST_CONFIRM,
                                      .owner = owner,
                                      .fence = *fence,
                                      .reply_ms = end_ms - rlock_clock_ms()};

        if (broadcast.reply_ms <= 0)
            return RLOCK_PENDING;
        st = broadcast_run(&quorum->members, &broadcast, deadline_at(deadline, end_ms), &confirmed,
                           err);
        if (st != RLOCK_OK || is_granted(&confirmed, quorum))
            return st;
        if (confirmed.n_late == 0)
            return RLOCK_PENDING;
        *fence = confirmed.fence; /* the greatest of those that refused */
    }
    return RLOCK_PENDING;
}

/*
 * Remove from some members what the last attempt placed there. That wakes no waiter: owners who got
 * a minority each would wake one another without end.
 */
static void undo(struct quorum *quorum, const struct owner *owner, unsigned members,
                 enum broadcast_purpose purpose)
{
    struct rlock_deadline never = {RLOCK_NEVER, -1};
    struct broadcast broadcast = {.purpose = purpose,
                                  .owner = owner,
                                  .skipped = ~members,
                                  .reply_ms = quorum->timing.reply_ms};

    if (members != 0)
        (void)!broadcast_run(&quorum->members, &broadcast, deadline_in(never, broadcast.reply_ms),
                             NULL, NULL);
}

/* A majority would grant it, but too many of these may have forgotten who holds it. */
static enum rlock_status wait_for_restarted(struct quorum *quorum, const struct votes *votes,
                                            struct rlock_obstacle *obstacle,
                                            struct rlock_error *err)
{
    quorum->recently_restarted = true;
    *obstacle =
        (struct rlock_obstacle){.left_ms = votes->uncounted_ms, .seen_ms = rlock_clock_ms()};
    snprintf(obstacle->holder, sizeof obstacle->holder,
             "%zu of %zu servers that were restarted, and may have forgotten who holds it",
             votes->n_recently_restarted, quorum->members.n);
    return err_set(err, RLOCK_E_NO_QUORUM, 0,
                   "%zu of %zu members were restarted, and may have forgotten who holds it: they "
                   "count again in %lld.%01d s",
                   votes->n_recently_restarted, quorum->members.n,
                   (long long)(votes->uncounted_ms / 1000),
                   (int)(votes->uncounted_ms % 1000 / 100));
}

/* What the members' answers come to where no majority granted. */
static enum rlock_status not_granted(struct quorum *quorum, struct owner *owner,
                                     const struct votes *votes, struct rlock_obstacle *obstacle,
                                     int64_t *block_ms, struct rlock_error *err)
{
    size_t n_willing = votes->n_granted + votes->n_recently_restarted;
    size_t n_unknown = quorum->members.n - n_willing - votes->n_held - votes->n_late;

    if (votes->n_superseded > 0)
        return RLOCK_SUPERSEDED;
    if (votes->n_other_mode > 0)
        return err_set(err, RLOCK_E_USAGE, 0,
                       "a parent rlock holds it in another mode, which this one would wait for");
    if (owner->only_parents && votes->n_gone > quorum->members.n - quorum->members.need)
        return RLOCK_GONE;
    if (votes->n_done > 0) {
        *obstacle = votes->held_by->obstacle;
        return RLOCK_DONE;
    }
    if (votes->n_held > 0 && votes->ticket > owner->ticket)
        owner_set_ticket(owner, votes->ticket);
    if (votes->n_held > 0 && votes->n_same_holder + n_unknown >= quorum->members.need) {
        *obstacle = votes->held_by->obstacle;
        obstacle->seen_ms = rlock_clock_ms();
        *block_ms = votes->held_by->block_ms;
        return RLOCK_BUSY;
    }
    if (n_willing >= quorum->members.need)
        return wait_for_restarted(quorum, votes, obstacle, err);
    /* where each of several owners got a few members nobody holds it: ask again */
    return votes->n_late + votes->n_held > 0 ? RLOCK_PENDING : members_fault(&quorum->members, err);
}

static void warn_of_other_quorum(const struct quorum *quorum, const struct reply *holder)
{
    const struct wait_hooks *hooks = &quorum->members.hooks;
    const char *ours = quorum->members.hash[0] != '\0' ? quorum->members.hash : "one server";
    char text[512];

    if (holder == NULL || hooks->on_warning == NULL)
        return;
    snprintf(text, sizeof text,
             "%.256s names other servers for this lock (%.20s, here %.20s): nothing keeps it and "
             "us apart",
             holder->obstacle.holder,
             holder->members_hash[0] != '\0' ? holder->members_hash : "one server", ours);
    hooks->on_warning(hooks->context, text);
}

/* A majority let us place the token: note the fence, and take the grant, or undo all of it. */
static enum rlock_status complete(struct quorum *quorum, struct owner *owner,
                                  const struct votes *votes, const struct broadcast *broadcast,
                                  struct rlock_deadline deadline, struct rlock_grant *grant,
                                  struct rlock_error *err)
{
    struct reply granted = *votes->granted; /* the next round overwrites the member's */
    uint64_t fence = votes->fence;
    enum rlock_status st;

    owner_take_grant(owner, &granted, fence);
    st = confirm(quorum, owner, votes, &fence, deadline, err);
    if (st == RLOCK_PENDING) {
        broadcast_abandon_pending(&quorum->members, broadcast);
        undo(quorum, owner, votes->granted_by, BROADCAST_UNDO);
    }
    if (st != RLOCK_OK)
        return st;
    undo(quorum, owner, votes->inconsistent, BROADCAST_UNDO);
    return take_grant(quorum, owner, &granted, votes, fence, grant);
}

enum rlock_status quorum_acquire(struct quorum *quorum, struct owner *owner,
                                 struct rlock_deadline deadline, struct rlock_grant *grant,
                                 struct rlock_obstacle *obstacle, int64_t *block_ms,
                                 struct rlock_error *err)
{
    struct broadcast broadcast = {.purpose = BROADCAST_ACQUIRE,
                                  .owner = owner,
                                  .reply_ms = acquire_reply_ms(&quorum->timing)};
    enum rlock_status st;
    struct votes votes;

    owner_begin_attempt(owner);
    quorum->recently_restarted = false;
    st = broadcast_run(&quorum->members, &broadcast, deadline, &votes, err);
    warn_of_other_quorum(quorum, votes.other_quorum);
    quorum->in_doubt = quorum->in_doubt || broadcast_is_unanswered(&quorum->members) ||
                       st == RLOCK_E_CONFIG || (st == RLOCK_STOPPED && votes.granted_by != 0);
    if (st != RLOCK_OK)
        return st;
    if (is_granted(&votes, quorum)) {
        st = complete(quorum, owner, &votes, &broadcast, deadline, grant, err);
        quorum->in_doubt = st != RLOCK_OK;
        return st;
    }
    broadcast_abandon_pending(&quorum->members, &broadcast);
    st = not_granted(quorum, owner, &votes, obstacle, block_ms, err);
    undo(quorum, owner, votes.granted_by, BROADCAST_UNDO);
    return st;
}

void quorum_doubt(struct quorum *quorum)
{
    quorum->in_doubt = true;
}

void quorum_requeue(struct quorum *quorum, const struct owner *owner)
{
    unsigned granted_by = 0;
    size_t i;

    for (i = 0; i < quorum->members.n; i++)
        granted_by |= (member_has_granted(&quorum->members.member[i]) ? 1U : 0U) << i;
    undo(quorum, owner, granted_by, owner->ticket > 0 ? BROADCAST_REQUEUE : BROADCAST_UNDO);
}

/* ---- in line ---- */

enum rlock_status quorum_block(struct quorum *quorum, struct owner *owner, int64_t *block_ms,
                               struct rlock_deadline deadline, struct rlock_error *err)
{
    struct broadcast broadcast = {.purpose = BROADCAST_WAIT,
                                  .owner = owner,
                                  .block_ms = owner_block_ms(owner, *block_ms),
                                  .reply_ms = acquire_reply_ms(&quorum->timing)};
    enum rlock_status st = broadcast_run(&quorum->members, &broadcast, deadline, NULL, NULL);
    size_t i;

    broadcast_abandon_pending(&quorum->members, &broadcast);
    if (st == RLOCK_STOPPED)
        return st;
    for (i = 0; i < quorum->members.n; i++)
        if (quorum->members.member[i].state == RLOCK_OK) {
            *block_ms = reply_soon_ms(quorum->members.member[i].reply);
            return *block_ms >= 0 ? RLOCK_PENDING : RLOCK_OK;
        }
    for (i = 0; i < quorum->members.n; i++)
        if (quorum->members.member[i].state >= RLOCK_E_USAGE &&
            quorum->members.member[i].err.reason == RLOCK_REASON_WHOLE_SECONDS)
            owner_need_whole_seconds(owner);
    return members_fault(&quorum->members, err);
}

/* ---- renew ---- */

/*
 * Place the token again where it is gone while a majority has it, so that the next member that
 * fails doesn't end the lease. It is an acquire like any other, so it needs the member's clock:
 * without a not-after it might be executed when the lease is over. As the lease was granted
 * already, that the member draws another number for it does the fence no harm.
 */
static void repair(struct quorum *quorum, const struct owner *owner, unsigned gone_from,
                   struct rlock_deadline deadline)
{
    struct owner again = owner_for_repair(owner);
    struct broadcast broadcast = {.purpose = BROADCAST_REPAIR,
                                  .owner = &again,
                                  .skipped = ~gone_from,
                                  .reply_ms = quorum->timing.reply_ms};
    size_t i;

    if (gone_from == 0 || owner->is_adopted || owner_has_parent_lock(owner))
        return;
    for (i = 0; i < quorum->members.n; i++)
        if (member_server_ms(&quorum->members.member[i], rlock_clock_ms()) == 0)
            broadcast.skipped |= 1U << i;
    (void)!broadcast_run(&quorum->members, &broadcast,
                         deadline_in(deadline, quorum->timing.ttl_ms / REPAIR_PART), NULL, NULL);
    broadcast_abandon_pending(&quorum->members, &broadcast);
}

static enum rlock_status not_renewed(const struct quorum *quorum, const struct votes *votes,
                                     struct rlock_error *err)
{
    size_t most = quorum->members.n -
                  quorum->members.need; /* so many members may lack it, and a majority has it */

    if (votes->n_released > most)
        return err_set(err, RLOCK_RELEASED, 0, "it was released");
    if (votes->n_held + votes->n_gone + votes->n_released <= most)
        return votes->n_late > 0 ? RLOCK_PENDING : members_fault(&quorum->members, err);
    if (votes->n_held > 0)
        return err_set(err, RLOCK_LOST, 0, "it is held by %s", votes->held_by->obstacle.holder);
    return err_set(err, RLOCK_GONE, 0, "it is gone from the server");
}

enum rlock_status quorum_renew(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, int64_t *expires_ms, bool *restored,
                               struct rlock_error *err)
{
    struct broadcast broadcast = {
        .purpose = BROADCAST_RENEW, .owner = owner, .reply_ms = quorum->timing.reply_ms};
    struct votes votes;
    enum rlock_status st = broadcast_run(
        &quorum->members, &broadcast, deadline_in(deadline, quorum->timing.reply_ms), &votes, err);

    if (is_granted(&votes, quorum)) {
        bool is_told = owner->is_adopted && votes.left_ms > 0;

        *expires_ms = lease_end(&votes, is_told ? votes.left_ms : quorum->timing.ttl_ms);
        *restored = votes.n_restored > 0;
        if (st == RLOCK_OK)
            repair(quorum, owner, votes.gone_from, deadline);
        return RLOCK_OK;
    }
    return st != RLOCK_OK ? st : not_renewed(quorum, &votes, err);
}

void quorum_learn_topology(struct quorum *quorum, struct rlock_deadline deadline)
{
    struct broadcast broadcast = {
        .purpose = BROADCAST_TOPOLOGY, .reply_ms = quorum->timing.reply_ms, .skipped = ~0U};
    enum rlock_status st;
    size_t i;

    for (i = 0; i < quorum->members.n; i++)
        if (member_lacks_topology(&quorum->members.member[i]))
            broadcast.skipped &= ~(1U << i);
    if (broadcast.skipped == ~0U)
        return;
    st = broadcast_run(&quorum->members, &broadcast, deadline_in(deadline, broadcast.reply_ms),
                       NULL, NULL);
    if (st != RLOCK_STOPPED) /* then the release follows by the same connection */
        broadcast_abandon_pending(&quorum->members, &broadcast);
}

/* ---- release ---- */

static enum rlock_status give_back(struct quorum *quorum, const struct owner *owner,
                                   enum broadcast_purpose purpose, struct rlock_deadline deadline,
                                   struct rlock_error *err)
{
    struct broadcast broadcast = {
        .purpose = purpose, .owner = owner, .reply_ms = quorum->timing.reply_ms};
    struct votes votes;
    enum rlock_status st = broadcast_run(
        &quorum->members, &broadcast, deadline_in(deadline, quorum->timing.reply_ms), &votes, err);
    size_t n_without = votes.n_held + votes.n_gone;

    quorum->is_passed_on = votes.granted != NULL && votes.granted->is_passed_on;
    if (is_granted(&votes, quorum))
        return RLOCK_OK;
    if (st != RLOCK_OK)
        return st;
    if (votes.n_granted + n_without < quorum->members.need)
        return members_fault(&quorum->members, err);
    if (n_without <= quorum->members.n - quorum->members.need)
        return RLOCK_OK; /* the others had it, as far as is known, and no majority has it now */
    return votes.n_held > 0 ? RLOCK_LOST : RLOCK_GONE;
}

enum rlock_status quorum_release(struct quorum *quorum, const struct owner *owner,
                                 struct rlock_deadline deadline, struct rlock_error *err)
{
    return give_back(quorum, owner, BROADCAST_RELEASE, deadline, err);
}

enum rlock_status quorum_leave(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, struct rlock_error *err)
{
    return give_back(quorum, owner, BROADCAST_LEAVE, deadline, err);
}

bool quorum_is_unanswered(const struct quorum *quorum)
{
    return broadcast_is_unanswered(&quorum->members);
}

bool quorum_has_heard(const struct quorum *quorum)
{
    size_t i;

    for (i = 0; i < quorum->members.n; i++)
        if (member_has_heard(&quorum->members.member[i]))
            return true;
    return false;
}

bool quorum_may_retry_password(const struct quorum *quorum, enum rlock_status st)
{
    bool may = false;
    size_t i;

    for (i = 0; i < quorum->members.n; i++) {
        if (quorum->members.member[i].state != st)
            continue;
        if (!member_may_retry_password(&quorum->members.member[i]))
            return false;
        may = true;
    }
    return may;
}

/* ---- any other request ---- */

static enum rlock_status ask(struct quorum *quorum, const struct broadcast *broadcast,
                             struct rlock_deadline deadline, const struct resp_value **reply,
                             struct rlock_error *err)
{
    struct votes votes;
    enum rlock_status st = broadcast_run(&quorum->members, broadcast, deadline, &votes, err);
    size_t n_answered = 0;
    size_t i;

    if (st == RLOCK_STOPPED)
        return st;
    for (i = quorum->members.n; i > 0; i--) {
        if (quorum->members.member[i - 1].state != RLOCK_OK)
            continue;
        *reply = quorum->members.member[i - 1].reply;
        n_answered++;
    }
    if (st == RLOCK_OK && n_answered < quorum->members.need)
        st = members_fault(&quorum->members, err);
    return st;
}

enum rlock_status quorum_ask(struct quorum *quorum, const struct request *request,
                             struct rlock_deadline deadline, const struct resp_value **reply,
                             struct rlock_error *err)
{
    struct broadcast broadcast = {
        .purpose = BROADCAST_REQUEST, .request = request, .reply_ms = quorum->timing.reply_ms};

    return ask(quorum, &broadcast, deadline, reply, err);
}

enum rlock_status quorum_ask_slowly(struct quorum *quorum, const struct request *request,
                                    int64_t block_ms, struct rlock_deadline deadline,
                                    const struct resp_value **reply, struct rlock_error *err)
{
    struct broadcast broadcast = {.purpose = BROADCAST_SLOW_REQUEST,
                                  .request = request,
                                  .block_ms = block_ms,
                                  .reply_ms = quorum->timing.reply_ms};

    return ask(quorum, &broadcast, deadline, reply, err);
}
