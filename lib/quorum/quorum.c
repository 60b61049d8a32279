/* SPDX-License-Identifier: MIT */
/*
 * quorum: acquires, renews and releases locks by a majority of members.
 *
 * A grant takes two rounds:
 * 1. Acquire: each member whose lock is free stores our token, and draws a number that is greater
 *    than all numbers before it on that member. If a majority draws a number, the greatest of the
 *    numbers is the fence.
 * 2. Confirm: each member that still has our token, and has drawn no greater number since, stores
 *    the fence. If a majority stores the fence, the lock is granted.
 * Round 2 is not needed if all members draw the same number, as a single server does, unless it has
 * to write the history (--history). If round 1 or 2 finds no majority, all members that stored our
 * token remove it again (undo).
 *
 * A waiter joins the queues of a quorum's members only so that a release wakes it. The members
 * never reserve a free lock for the first waiter, as a single server does: the queues of two
 * members may begin with different waiters, and then no waiter would get a majority. The first
 * owner that finds the lock free on a majority gets it.
 *
 * Source: "Distributed Locks with Redis", the Redlock algorithm, for the first round, which on a
 * single server is the single-instance algorithm. tests/model/fence.pml models both rounds.
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
#define SPLIT_FIRST_MS 100 /* see split_ms() */
/* How often round 2 is tried, as other holders of a shared lock may raise the fence meanwhile. */
#define CONFIRM_TRIES 5
#define MEMBERS_WORDS_BYTES 64
#define REPAIR_PART 4 /* a repair may take ttl_ms / REPAIR_PART, so it ends before the lease does */

static bool is_granted(const struct votes *votes, const struct quorum *quorum)
{
    return votes->n_granted >= quorum->members.need;
}

static int64_t acquire_reply_ms(const struct rlock_timing *timing)
{
    return timing->renew_ms < ACQUIRE_REPLY_MAX_MS ? timing->renew_ms : ACQUIRE_REPLY_MAX_MS;
}

/*
 * How long an attempt waits for a silent member when the lock is split: of three members one has
 * our token, one another owner's, and the third is silent. If the third hangs, nobody gets a
 * majority before one of the two owners undoes, so the time is short at first. It doubles with each
 * split attempt, as the third may only be slow, or have granted the lock to the other owner.
 */
static int64_t split_ms(const struct quorum *quorum)
{
    int64_t most_ms = acquire_reply_ms(&quorum->timing);
    int64_t ms = SPLIT_FIRST_MS;
    int i;

    for (i = 0; i < quorum->n_splits && ms < most_ms; i++)
        ms *= 2;
    return ms < most_ms ? ms : most_ms;
}

/*
 * Returns when the lease ends that a majority has granted or renewed. Counts from the sending of
 * the first request, as each member counts the TTL from a later moment.
 */
static int64_t lease_end(const struct votes *votes, int64_t ttl_ms)
{
    return timing_expires_ms(ttl_ms, votes->sent_ms);
}

/* ---- opening and closing a quorum ---- */

enum rlock_status quorum_open(struct quorum *quorum, const struct rlock_config *config,
                              struct rlock_error *err)
{
    *quorum = (struct quorum){.timing = config->timing,
                              .without_scripts = config->scripts == RLOCK_SCRIPTS_NO,
                              .may_use_commands =
                                  config->scripts == RLOCK_SCRIPTS_AUTO && config->n_urls == 1,
                              .replicas = config->replicas};
    return members_open(&quorum->members, config, err);
}

void quorum_use_commands(struct quorum *quorum)
{
    quorum->without_scripts = true;
    quorum->may_use_commands = false;
}

void quorum_close(struct quorum *quorum)
{
    members_close(&quorum->members);
}

struct quorum quorum_alone(const struct quorum *quorum, struct member *member,
                           struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX])
{
    struct quorum one = *quorum;

    one.members.member = member;
    one.members.pollfds = pollfds;
    one.members.n = one.members.need = 1;
    return one;
}

void quorum_set_patience(struct quorum *quorum, int64_t connect_ms, int64_t reply_ms)
{
    quorum->members.connect_ms = connect_ms;
    quorum->timing.reply_ms = reply_ms;
}

/* ---- acquiring a lock ---- */

/*
 * Fills in the grant. Returns RLOCK_OK, or RLOCK_PENDING if too much time has passed since the
 * request was sent, as when this process was stopped: too little of the lease is left.
 */
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
                                  .parent_keys = owner_parent_keys(owner),
                                  .timing = quorum->timing};
    memcpy(grant->token, owner_held_token(owner), sizeof grant->token);
    return rlock_clock_ms() > votes->sent_ms + reply_ms ? RLOCK_PENDING : RLOCK_OK;
}

/*
 * Round 2 of a grant: asks all members to store `*fence`. A member that has stored a greater fence,
 * or the same for another owner, refuses, and replies with its fence. Without a majority asks again
 * with a greater fence than all of these. Not needed if parents hold all locks, or all members
 * granted with one fence and keep no history. RLOCK_PENDING: no majority stored a fence in time.
 */
static enum rlock_status confirm(struct quorum *quorum, const struct owner *owner,
                                 const struct votes *votes, uint64_t *fence,
                                 struct rlock_deadline deadline, struct rlock_error *err)
{
    int64_t end_ms = votes->sent_ms + acquire_reply_ms(&quorum->timing);
    struct broadcast broadcast = {.purpose = BROADCAST_CONFIRM, .owner = owner};
    /* in a quorum only round 2 (confirm.lua) notes a grant in the history */
    bool is_history_due = owner->is_in_quorum && owner->history > 0;
    struct votes confirmed;
    enum rlock_status st;
    int tries;
    size_t i;

    if ((votes->n_same_fence == quorum->members.n && !is_history_due) || !owner_has_own_lock(owner))
        return RLOCK_OK;
    for (i = 0; i < quorum->members.n; i++)
        if (votes->granted_by >> i & 1)
            broadcast.drawn[i] = quorum->members.member[i].answer.fence;
    for (tries = 0; tries < CONFIRM_TRIES; tries++) {
        broadcast.fence = *fence;
        broadcast.reply_ms = end_ms - rlock_clock_ms();
        if (broadcast.reply_ms <= 0)
            return RLOCK_PENDING;
        st = broadcast_run(&quorum->members, &broadcast, deadline_at(deadline, end_ms), &confirmed,
                           err);
        if (st != RLOCK_OK || is_granted(&confirmed, quorum))
            return st;
        if (confirmed.n_late == 0)
            return RLOCK_PENDING;
        *fence = confirmed.fence + 1;
    }
    return RLOCK_PENDING;
}

/*
 * Removes what the last attempt wrote on the members whose bit is set in `members`. In a quorum the
 * undo wakes no waiter: two owners that each get a minority would wake one another without end.
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

/* Describes the obstacle: how many members were restarted, and may have forgotten a holder. */
static enum rlock_status wait_for_restarted(struct quorum *quorum, const struct votes *votes,
                                            struct rlock_obstacle *obstacle,
                                            struct rlock_error *err)
{
    quorum->recently_restarted = true;
    *obstacle =
        (struct rlock_obstacle){.left_ms = votes->uncounted_ms, .seen_ms = rlock_clock_ms()};
    snprintf(obstacle->holder.text, sizeof obstacle->holder.text, "%zu of %zu restarted servers",
             votes->n_recently_restarted, quorum->members.n);
    return err_set(err, RLOCK_E_NO_QUORUM, 0,
                   "%zu of %zu servers were restarted, and may have forgotten who holds the lock: "
                   "their grants count again in %lld.%01d s",
                   votes->n_recently_restarted, quorum->members.n,
                   (long long)(votes->uncounted_ms / 1000),
                   (int)(votes->uncounted_ms % 1000 / 100));
}

/*
 * How long to block after a split: the other owner may remove its token at any moment, which wakes
 * nobody. The time is random, so that the two owners don't ask at the same time again.
 */
static int64_t split_block_ms(const struct quorum *quorum)
{
    return random_between(split_ms(quorum) / 8, split_ms(quorum) / 2);
}

/* Decides what the members' answers mean if no majority granted. */
static enum rlock_status not_granted(struct quorum *quorum, struct owner *owner,
                                     const struct votes *votes, struct rlock_obstacle *obstacle,
                                     int64_t *block_ms, struct rlock_error *err)
{
    size_t n_willing = votes->n_granted + votes->n_recently_restarted;
    size_t n_without_mark = n_willing + votes->n_held + votes->n_late; /* the mark of --once */
    size_t n_unknown = quorum->members.n - n_without_mark - votes->n_done;

    if (votes->n_superseded > 0) {
        obstacle->holder = votes->newer->obstacle.holder;
        return RLOCK_SUPERSEDED;
    }
    if (votes->n_other_mode > 0)
        return err_set(
            err, RLOCK_E_USAGE, 0,
            "a parent rlock holds this key in another mode (-x, -s or --slots), so this rlock "
            "would wait for ever: use the mode of the parent");
    if (owner->only_parents && votes->n_gone > quorum->members.n - quorum->members.need)
        return RLOCK_GONE;
    if (votes->n_done > 0 && n_without_mark < quorum->members.need) {
        *obstacle = votes->done_by->obstacle;
        return RLOCK_DONE;
    }
    if (votes->n_held > 0 && votes->ticket > owner->ticket)
        owner_set_ticket(owner, votes->ticket);
    if (votes->n_held > 0 && votes->n_same_holder + n_unknown >= quorum->members.need) {
        *obstacle = votes->held_by->obstacle;
        obstacle->seen_ms = rlock_clock_ms();
        *block_ms = broadcast_is_split(&quorum->members, votes) ? split_block_ms(quorum)
                                                                : votes->held_by->block_ms;
        return RLOCK_BUSY;
    }
    if (n_willing >= quorum->members.need)
        return wait_for_restarted(quorum, votes, obstacle, err);
    /* several owners hold a few members each, and none a majority: all must try again */
    return votes->n_late + votes->n_held > 0 ? RLOCK_PENDING : members_fault(&quorum->members, err);
}

/* Writes which servers a lock is on: "one server", or "several servers (list 1a2b3c4d)". */
static void describe_members(char words[MEMBERS_WORDS_BYTES], const char *hash)
{
    if (hash[0] == '\0')
        snprintf(words, MEMBERS_WORDS_BYTES, "one server");
    else
        snprintf(words, MEMBERS_WORDS_BYTES, "several servers (list %.20s)", hash);
}

static void warn_of_other_quorum(struct quorum *quorum, const struct reply *holder)
{
    char ours[MEMBERS_WORDS_BYTES];
    char theirs[MEMBERS_WORDS_BYTES];
    char text[600];

    if (holder == NULL)
        return;
    describe_members(ours, quorum->members.hash);
    describe_members(theirs, holder->members_hash);
    snprintf(
        text, sizeof text,
        "%.256s uses %s for this lock, and this rlock uses %s: both may get it at the same time; "
        "give both the same servers (-u)",
        holder->obstacle.holder.text, theirs, ours);
    members_warn(&quorum->members, text);
}

/*
 * Called when a majority has stored the token. Makes a majority store the fence, too, and fills in
 * the grant. If no majority stores the fence in time, removes the token again.
 */
static enum rlock_status complete(struct quorum *quorum, struct owner *owner,
                                  const struct votes *votes, const struct broadcast *broadcast,
                                  struct rlock_deadline deadline, struct rlock_grant *grant,
                                  struct rlock_error *err)
{
    struct reply granted = *votes->granted; /* a copy: round 2 overwrites the member's answer */
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

/* Returns a set of bits with one bit for each member. */
static unsigned all_of(const struct members *members)
{
    return (1U << members->n) - 1;
}

/* Returns a set of bits: bit i is set if member i has answered the last request. */
static unsigned answered(const struct members *members)
{
    unsigned bits = 0;
    size_t i;

    for (i = 0; i < members->n; i++)
        if (members->member[i].state == RLOCK_OK)
            bits |= 1U << i;
    return bits;
}

enum rlock_status quorum_acquire(struct quorum *quorum, struct owner *owner,
                                 struct rlock_deadline deadline, struct rlock_grant *grant,
                                 struct rlock_obstacle *obstacle, int64_t *block_ms,
                                 struct rlock_error *err)
{
    struct broadcast broadcast = {
        .purpose = BROADCAST_ACQUIRE,
        .owner = owner,
        .reply_ms = acquire_reply_ms(&quorum->timing),
        /* a single attempt waits for slow members, as no other attempt follows */
        .split_ms = owner->is_single_attempt ? RLOCK_NEVER : split_ms(quorum)};
    enum rlock_status st;
    struct votes votes;

    owner_begin_attempt(owner);
    quorum->lost = 0;
    quorum->recently_restarted = false;
    st = broadcast_run(&quorum->members, &broadcast, deadline, &votes, err);
    warn_of_other_quorum(quorum, votes.other_quorum);
    quorum->n_splits = broadcast_is_split(&quorum->members, &votes) ? quorum->n_splits + 1 : 0;
    quorum->in_doubt |= broadcast_unanswered(&quorum->members);
    /* stopped: the reply that came with the stop may be a grant, or a place in the queue */
    if (st == RLOCK_E_CONFIG || st == RLOCK_STOPPED)
        quorum->in_doubt |= answered(&quorum->members);
    if (st != RLOCK_OK)
        return st;
    if (is_granted(&votes, quorum)) {
        st = complete(quorum, owner, &votes, &broadcast, deadline, grant, err);
        quorum->in_doubt = st != RLOCK_OK ? all_of(&quorum->members) : 0;
        return st;
    }
    broadcast_abandon_pending(&quorum->members, &broadcast);
    st = not_granted(quorum, owner, &votes, obstacle, block_ms, err);
    undo(quorum, owner, votes.granted_by, BROADCAST_UNDO);
    return st;
}

void quorum_doubt(struct quorum *quorum)
{
    quorum->in_doubt = all_of(&quorum->members);
}

bool quorum_may_be_held(const struct quorum *quorum)
{
    return (size_t)__builtin_popcount(quorum->in_doubt) > quorum->members.n - quorum->members.need;
}

void quorum_requeue(struct quorum *quorum, const struct owner *owner)
{
    unsigned granted_by = 0;
    size_t i;

    for (i = 0; i < quorum->members.n; i++)
        granted_by |= (member_has_granted(&quorum->members.member[i]) ? 1U : 0U) << i;
    undo(quorum, owner, granted_by, owner->ticket > 0 ? BROADCAST_REQUEUE : BROADCAST_UNDO);
}

/* ---- waiting in the queue ---- */

enum rlock_status quorum_block(struct quorum *quorum, const struct owner *owner, int64_t *block_ms,
                               struct rlock_deadline deadline, struct rlock_error *err)
{
    struct broadcast broadcast = {.purpose = BROADCAST_WAIT,
                                  .owner = owner,
                                  /* with a timeout of 0 BLPOP would block for ever */
                                  .block_ms = *block_ms < 1 ? 1 : *block_ms,
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
    return members_fault(&quorum->members, err);
}

/* ---- which members have lost the lock ---- */

/*
 * Notes which members answered a renewal or release that they lack the lock, for the next request:
 * if one of three has said so and hangs by then, and another loses the lock, no majority holds it.
 * REPLY_RELEASED is no loss.
 */
static void note_lost(struct quorum *quorum, const struct votes *votes)
{
    quorum->lost &= ~votes->granted_by;
    quorum->lost |= votes->held_from | votes->gone_from;
}

/*
 * Returns how many members lack the lock. A member that has not answered this broadcast counts by
 * its earlier answers. But if no answer to this broadcast shows a loss, the function returns 0, so
 * that the caller asks again.
 */
static size_t count_lost(const struct votes *votes)
{
    size_t n_now = votes->n_held + votes->n_gone + votes->n_released;

    return n_now > 0 ? n_now + votes->n_lost_before : 0;
}

/* ---- renewing a lease ---- */

/*
 * Writes the token again on members that have lost it, so that the lease outlasts further failures.
 * The request is an acquire, but the grant keeps its fence. Skips members whose clock isn't known:
 * only a time of that clock (NOT_AFTER) keeps a slow member from executing the request after the
 * lease has ended.
 */
static void repair(struct quorum *quorum, const struct owner *owner, unsigned gone_from,
                   struct rlock_deadline deadline)
{
    struct owner again = owner_for_repair(owner);
    struct broadcast broadcast = {.purpose = BROADCAST_REPAIR,
                                  .owner = &again,
                                  .skipped = ~gone_from,
                                  .reply_ms = quorum->timing.reply_ms};
    struct votes votes;
    size_t i;

    if (gone_from == 0 || owner->is_adopted || owner_has_parent_lock(owner))
        return;
    for (i = 0; i < quorum->members.n; i++)
        if (member_server_ms(&quorum->members.member[i], rlock_clock_ms()) == 0)
            broadcast.skipped |= 1U << i;
    (void)!broadcast_run(&quorum->members, &broadcast,
                         deadline_in(deadline, quorum->timing.ttl_ms / REPAIR_PART), &votes, NULL);
    quorum->lost &= broadcast.skipped; /* a member that doesn't answer may have the lock again */
    note_lost(quorum, &votes);
    broadcast_abandon_pending(&quorum->members, &broadcast);
}

/* Notes why the lock is lost, and writes it to `err`. */
static enum rlock_status lose(struct quorum *quorum, const struct votes *votes,
                              struct rlock_error *err)
{
    const struct rlock_party *by = &quorum->loss.by;

    if (votes->broken_by != NULL) {
        char who[sizeof by->text];

        quorum->loss = (struct rlock_loss){RLOCK_LOSS_BROKEN, votes->broken_by->obstacle.holder};
        holder_info_put_user(who, sizeof who, by);
        return err_set(err, RLOCK_LOST, 0, "the lock was broken by %s", who);
    }
    /* for example after a failover: the new primary had no lock, and reserves it for a waiter */
    if (votes->n_held > 0 && votes->held_by->obstacle.seen == RLOCK_SEEN_KEPT)
        return err_set(err, RLOCK_GONE, 0,
                       "the server no longer has the lock, and the next waiter has its turn");
    if (votes->n_held > 0) {
        quorum->loss = (struct rlock_loss){RLOCK_LOSS_HELD, votes->held_by->obstacle.holder};
        return err_set(err, RLOCK_LOST, 0, "the lock is held by %s", by->text);
    }
    return err_set(err, RLOCK_GONE, 0, "the server no longer has the lock");
}

/* Decides what the members' answers mean if no majority renewed. */
static enum rlock_status not_renewed(struct quorum *quorum, const struct votes *votes,
                                     struct rlock_error *err)
{
    /* if more members than this lack the lock, no majority holds it */
    size_t most = quorum->members.n - quorum->members.need;

    if (count_lost(votes) <= most)
        return votes->n_late > 0 ? RLOCK_PENDING : members_fault(&quorum->members, err);
    /* If any member says "released", a request with our token has released the lock. Members that
     * say otherwise have not executed that release, or have granted the lock to the next owner. */
    if (votes->n_released > 0)
        return err_set(err, RLOCK_RELEASED, 0, "the lock was released");
    return lose(quorum, votes, err);
}

/*
 * Returns how long a lease lasts at least after its renewal: the TTL of the grant, or less if
 * rlock_renew() asked for less. If the caller knows only the token, the server tells how long.
 */
static int64_t renewed_for_ms(const struct quorum *quorum, const struct owner *owner,
                              const struct votes *votes)
{
    int64_t asked_ms = owner_granted_ttl_ms(owner);
    int64_t ttl_ms = quorum->timing.ttl_ms;

    if (owner->is_adopted && votes->left_ms > 0)
        return votes->left_ms;
    return asked_ms > 0 && asked_ms < ttl_ms ? asked_ms : ttl_ms;
}

enum rlock_status quorum_renew(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, int64_t *expires_ms, bool *restored,
                               struct rlock_error *err)
{
    struct broadcast broadcast = {.purpose = BROADCAST_RENEW,
                                  .owner = owner,
                                  .lost = quorum->lost,
                                  .reply_ms = quorum->timing.reply_ms};
    struct votes votes;
    enum rlock_status st = broadcast_run(
        &quorum->members, &broadcast, deadline_in(deadline, quorum->timing.reply_ms), &votes, err);

    note_lost(quorum, &votes);
    if (is_granted(&votes, quorum)) {
        *expires_ms = lease_end(&votes, renewed_for_ms(quorum, owner, &votes));
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
    struct request request;
    enum rlock_status st;
    size_t i;

    for (i = 0; i < quorum->members.n; i++)
        if (member_lacks_topology(&quorum->members.member[i]))
            broadcast.skipped &= ~(1U << i);
    if (broadcast.skipped == ~0U)
        return;
    request_begin(&request, "TIME"); /* any short command, sent after CLUSTER NODES */
    broadcast.request = &request;
    st = broadcast_run(&quorum->members, &broadcast, deadline_in(deadline, broadcast.reply_ms),
                       NULL, NULL);
    if (st != RLOCK_STOPPED) /* if stopped, the release that follows abandons the request */
        broadcast_abandon_pending(&quorum->members, &broadcast);
}

/* ---- releasing a lock ---- */

static enum rlock_status give_back(struct quorum *quorum, const struct owner *owner,
                                   enum broadcast_purpose purpose, struct rlock_deadline deadline,
                                   unsigned *released, struct rlock_error *err)
{
    struct broadcast broadcast = {.purpose = purpose,
                                  .owner = owner,
                                  .released = *released,
                                  .lost = quorum->lost,
                                  .reply_ms = quorum->timing.reply_ms};
    struct votes votes;
    enum rlock_status st = broadcast_run(
        &quorum->members, &broadcast, deadline_in(deadline, quorum->timing.reply_ms), &votes, err);
    size_t n_without = count_lost(&votes);

    note_lost(quorum, &votes);
    *released |= votes.granted_by | votes.sent_twice | broadcast_unanswered(&quorum->members);
    if (is_granted(&votes, quorum))
        return RLOCK_OK;
    if (st != RLOCK_OK)
        return st;
    if (votes.n_granted + n_without < quorum->members.need)
        return members_fault(&quorum->members, err);
    if (n_without <= quorum->members.n - quorum->members.need)
        return RLOCK_OK; /* we held a majority before, and no majority holds the lock now */
    return votes.n_held > 0 ? RLOCK_LOST : RLOCK_GONE;
}

enum rlock_status quorum_release(struct quorum *quorum, const struct owner *owner,
                                 struct rlock_deadline deadline, unsigned *released,
                                 struct rlock_error *err)
{
    return give_back(quorum, owner, BROADCAST_RELEASE, deadline, released, err);
}

enum rlock_status quorum_leave(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, struct rlock_error *err)
{
    unsigned released = 0;
    enum rlock_status st = give_back(quorum, owner, BROADCAST_LEAVE, deadline, &released, err);

    quorum->in_doubt &= ~answered(&quorum->members);
    return st;
}

bool quorum_has_lost(const struct quorum *quorum)
{
    return (size_t)__builtin_popcount(quorum->lost) > quorum->members.n - quorum->members.need;
}

bool quorum_is_unanswered(const struct quorum *quorum)
{
    return broadcast_unanswered(&quorum->members) != 0;
}

bool quorum_has_heard(const struct quorum *quorum, unsigned members)
{
    size_t i;

    for (i = 0; i < quorum->members.n; i++)
        if ((members >> i & 1) != 0 && member_has_heard(&quorum->members.member[i]))
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

/* ---- sending any other request ---- */

static enum rlock_status ask(struct quorum *quorum, enum broadcast_purpose purpose,
                             const struct request *request, int64_t block_ms,
                             struct rlock_deadline deadline, const struct resp_value **reply,
                             struct rlock_error *err)
{
    struct broadcast broadcast = {.purpose = purpose,
                                  .request = request,
                                  .block_ms = block_ms,
                                  .reply_ms = quorum->timing.reply_ms};
    struct votes votes;
    enum rlock_status st = broadcast_run(&quorum->members, &broadcast, deadline, &votes, err);
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
    return ask(quorum, BROADCAST_REQUEST, request, 0, deadline, reply, err);
}

enum rlock_status quorum_ask_slowly(struct quorum *quorum, const struct request *request,
                                    int64_t block_ms, struct rlock_deadline deadline,
                                    const struct resp_value **reply, struct rlock_error *err)
{
    return ask(quorum, BROADCAST_SLOW_REQUEST, request, block_ms, deadline, reply, err);
}

enum rlock_status quorum_do(struct quorum *quorum, struct commands *commands,
                            struct rlock_deadline deadline, struct rlock_error *err)
{
    struct broadcast broadcast = {.purpose = BROADCAST_REQUEST,
                                  .reply_ms = quorum->timing.reply_ms};

    if (broadcast_commands(&quorum->members, &broadcast, commands, deadline) == RLOCK_STOPPED)
        return RLOCK_STOPPED;
    return quorum->members.member[0].state == RLOCK_OK ? RLOCK_OK
                                                       : members_fault(&quorum->members, err);
}
