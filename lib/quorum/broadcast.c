/* SPDX-License-Identifier: MIT */
/*
 * broadcast: sends one request to all members at once, and counts their votes.
 *
 * One thread polls all members, so that a member that hangs doesn't delay the others, and so that
 * one place checks the deadline and the stop descriptor.
 *
 * What happens to a member that is slow: 1. A majority has answered yes, or so many have answered
 * no that no majority can. The broadcast is
 *    decided.
 * 2. The other members get a short time (LINGER) to answer, too.
 * 3. A member that doesn't answer in that time stays pending. 4. The next broadcast waits for that
 *    answer before it asks the member. A release doesn't wait: the
 *    member sends it after the pending request, and the server executes both in this order.
 * So a member that hangs costs LINGER if a majority answers, and one time-out if none does.
 */
#include "quorum/broadcast.h"

#include "base/clock.h"
#include "base/err.h"

#include <string.h>

/*
 * LINGER: how long the other members get to answer after the decision: reply_ms / 20, or as long as
 * the decision took if that is longer, but at least 20 ms and at most 100 ms.
 */
#define LINGER_PART 20
#define LINGER_MIN_MS 20
#define LINGER_MAX_MS 100

/* How many members must say yes to decide a broadcast. */
enum enough { MAJORITY, ONE, ALL };

/* What else depends on the purpose: one bit for each rule. */
enum rule {
    UNDO_ABANDONED = 1,     /* abandoning a member sends it an undo of the request */
    SUPERSEDES_PENDING = 2, /* the token's last request: is sent also to a member that is pending */
    NEEDS_MEMORY = 4,       /* a member that was restarted too recently to count can't say yes */
    NO_LINGER = 8,          /* the broadcast ends as soon as it is decided */
    CALLS_ON_SENT = 16,     /* calls the hook on_sent when a majority was sent the request */
    GOES_ON_STOPPED = 32    /* leaves members pending, not abandoned, when the caller is stopped */
};

static const struct {
    requests_build *build; /* NULL: broadcast->request is sent, or CLUSTER NODES */
    reply_parse *read;     /* NULL: any reply counts as yes, and isn't parsed */
    enum enough enough;
    unsigned rules;
} purposes[] = {
    [BROADCAST_ACQUIRE] = {requests_acquire, reply_parse_acquire, MAJORITY,
                           UNDO_ABANDONED | NEEDS_MEMORY | CALLS_ON_SENT},
    [BROADCAST_CONFIRM] = {requests_confirm, reply_parse_confirm, MAJORITY,
                           NEEDS_MEMORY | NO_LINGER},
    [BROADCAST_UNDO] = {requests_undo, NULL, ONE, 0},
    [BROADCAST_REQUEUE] = {requests_requeue, NULL, ONE, 0},
    [BROADCAST_WAIT] = {requests_wait, NULL, ONE, 0},
    [BROADCAST_RENEW] = {requests_renew, reply_parse_renew, MAJORITY, 0},
    [BROADCAST_REPAIR] = {requests_acquire, reply_parse_acquire, ONE, UNDO_ABANDONED},
    [BROADCAST_RELEASE] = {requests_release, reply_parse_release, MAJORITY, SUPERSEDES_PENDING},
    [BROADCAST_LEAVE] = {requests_leave, reply_parse_release, MAJORITY, SUPERSEDES_PENDING},
    [BROADCAST_REQUEST] = {NULL, NULL, MAJORITY, 0},
    [BROADCAST_SLOW_REQUEST] = {NULL, NULL, ALL, 0},
    [BROADCAST_TOPOLOGY] = {NULL, NULL, ALL, GOES_ON_STOPPED},
};

/* What a member was asked in this broadcast. */
enum asked {
    SKIPPED,           /* nothing: the caller doesn't want it asked */
    WAITS_FOR_EARLIER, /* nothing yet: a request of an earlier broadcast is still pending */
    ASKED,             /* the request */
    ASKED_TWICE /* the request, twice: once after a pending one, on a connection that is closed
                          then, and once on a new connection */
};

/* The state of one call of broadcast_run(). */
struct run {
    struct members *members;
    const struct broadcast *broadcast;
    struct rlock_deadline deadline;
    enum asked asked[RLOCK_MEMBERS_MAX];
    bool calls_on_sent; /* on_sent is still to be called */
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool has_rule(const struct broadcast *broadcast, enum rule rule)
{
    return (purposes[broadcast->purpose].rules & rule) != 0;
}

static bool is_skipped(const struct broadcast *broadcast, size_t i)
{
    return (broadcast->skipped >> i & 1) != 0;
}

static bool is_pending(const struct run *run, size_t i)
{
    return run->asked[i] != SKIPPED && run->members->member[i].state == RLOCK_PENDING;
}

/* ---- counting votes ---- */

/* The member's parsed answer to this broadcast; NULL: none yet, a fault, or none is parsed. */
static const struct reply *answer_of(const struct run *run, size_t i)
{
    const struct member *member = &run->members->member[i];
    bool is_asked = run->asked[i] == ASKED || run->asked[i] == ASKED_TWICE;

    if (!is_asked || purposes[run->broadcast->purpose].read == NULL)
        return NULL;
    return member->state == RLOCK_OK ? &member->answer : NULL;
}

/*
 * The member's reply code. If a release was sent twice, and the second found nothing to release,
 * the first has most likely released the lock: that counts as REPLY_OK.
 */
static enum reply_code code_of(const struct run *run, size_t i)
{
    return run->asked[i] == ASKED_TWICE ? REPLY_OK : run->members->member[i].answer.code;
}

/* The answer of a member if it granted, renewed or released; else NULL. */
static const struct reply *grant_of(const struct run *run, size_t i)
{
    const struct reply *answer = answer_of(run, i);

    if (answer == NULL)
        return NULL;
    switch (code_of(run, i)) {
    case REPLY_OK:
    case REPLY_RESTORED:
        return answer;
    case REPLY_DONE:
    case REPLY_HELD:
    case REPLY_GONE:
    case REPLY_LATE:
    case REPLY_SUPERSEDED:
    case REPLY_RELEASED:
    case REPLY_OTHER_MODE:
        break;
    }
    return NULL;
}

/*
 * Do both members say that the same tokens hold each lock, the owner's or a parent's? A member that
 * has lost a parent's lock grants that lock to the owner's own token, unlike the other members.
 */
static bool is_alike(const struct reply *one, const struct reply *other)
{
    size_t i;

    for (i = 0; i < RLOCK_KEYS_MAX; i++)
        if (one->lock[i].parent != other->lock[i].parent)
            return false;
    return true;
}

/*
 * Weighs an answer by how many members granted the same. Of two answers that equally many members
 * gave, the one whose fence more members gave weighs more.
 */
static size_t weigh_grant(const struct run *run, const struct reply *answer)
{
    size_t weight = 0;
    size_t i;

    for (i = 0; i < run->members->n; i++) {
        const struct reply *other = grant_of(run, i);

        if (other != NULL && is_alike(other, answer))
            weight += RLOCK_MEMBERS_MAX + 1U + (other->fence == answer->fence ? 1U : 0U);
    }
    return weight;
}

/* Finds the answer that most members gave, among those that granted. */
static void find_grant(const struct run *run, struct votes *votes)
{
    size_t most = 0;
    size_t i;

    for (i = 0; i < run->members->n; i++) {
        const struct reply *answer = grant_of(run, i);
        size_t weight = answer != NULL ? weigh_grant(run, answer) : 0;

        if (weight <= most)
            continue;
        most = weight;
        votes->granted = answer;
    }
}

static const struct reply *held_answer_of(const struct run *run, size_t i)
{
    const struct reply *answer = answer_of(run, i);

    return answer != NULL && answer->code == REPLY_HELD ? answer : NULL;
}

/* Finds the holder that most members name. */
static void find_holder(const struct run *run, struct votes *votes)
{
    size_t i;
    size_t j;

    for (i = 0; i < run->members->n; i++) {
        const struct reply *answer = held_answer_of(run, i);
        size_t same = 0;

        for (j = 0; answer != NULL && j < run->members->n; j++) {
            const struct reply *other = held_answer_of(run, j);

            same += other != NULL && strcmp(other->holder_id, answer->holder_id) == 0;
        }
        if (same <= votes->n_same_holder)
            continue;
        votes->n_same_holder = same;
        votes->held_by = answer;
    }
}

/* Does the holder use other members than this quorum? Then both may hold the lock at once. */
static bool is_of_other_quorum(const struct run *run, const struct reply *answer)
{
    return (answer->code == REPLY_HELD || answer->code == REPLY_DONE) && answer->is_rlock &&
           strcmp(answer->members_hash, run->members->hash) != 0;
}

static void add_grant(struct votes *votes, const struct member *member, const struct reply *answer)
{
    if (votes->n_granted++ == 0 || member_sent_ms(member) < votes->sent_ms)
        votes->sent_ms = member_sent_ms(member);
    if (answer->fence > votes->fence)
        votes->fence = answer->fence;
    if (votes->left_ms == 0 || answer->left_ms < votes->left_ms)
        votes->left_ms = answer->left_ms;
}

static void add_answer(struct votes *votes, const struct member *member, const struct reply *answer,
                       enum reply_code code)
{
    switch (code) {
    case REPLY_RESTORED:
        votes->n_restored++;
        add_grant(votes, member, answer);
        break;
    case REPLY_OK:
        add_grant(votes, member, answer);
        break;
    case REPLY_HELD:
        votes->n_held++;
        if (answer->ticket > votes->ticket)
            votes->ticket = answer->ticket;
        break;
    case REPLY_GONE:
        votes->n_gone++;
        break;
    case REPLY_LATE:
        votes->n_late++;
        if (answer->fence > votes->fence)
            votes->fence = answer->fence;
        break;
    case REPLY_SUPERSEDED:
        votes->n_superseded++;
        break;
    case REPLY_RELEASED:
        votes->n_released++;
        break;
    case REPLY_DONE:
        votes->n_done++;
        votes->held_by = answer;
        break;
    case REPLY_OTHER_MODE:
        votes->n_other_mode++;
        votes->held_by = answer;
        break;
    }
}

/* Adds the answer of member i to the votes. */
static void add_vote(const struct run *run, size_t i, struct votes *votes)
{
    const struct member *member = &run->members->member[i];
    const struct reply *answer = answer_of(run, i);
    int64_t uncounted_ms =
        has_rule(run->broadcast, NEEDS_MEMORY) ? members_uncounted_ms(run->members, member) : 0;

    if (answer == NULL)
        return;
    if (is_of_other_quorum(run, answer))
        votes->other_quorum = answer;
    if (code_of(run, i) == REPLY_GONE)
        votes->gone_from |= 1U << i;
    if (grant_of(run, i) == NULL) {
        add_answer(votes, member, answer, code_of(run, i));
        return;
    }
    votes->granted_by |= 1U << i;
    if (!is_alike(answer, votes->granted)) {
        votes->inconsistent |= 1U << i;
    } else if (uncounted_ms > 0) {
        votes->n_recently_restarted++;
        if (uncounted_ms > votes->uncounted_ms)
            votes->uncounted_ms = uncounted_ms;
    } else {
        add_answer(votes, member, answer, code_of(run, i));
    }
}

/* Notes the TTLs of all holders, because members_uncounted_ms() needs the longest one. */
static void note_leases(const struct run *run)
{
    size_t i;

    for (i = 0; i < run->members->n; i++)
        if (answer_of(run, i) != NULL)
            members_note_lease(run->members, answer_of(run, i)->holder_ttl_ms);
}

/* Has a member replied to a request whose reply isn't parsed? A nil says that BLPOP timed out. */
static bool is_replied(const struct run *run, const struct member *member)
{
    if (member->state != RLOCK_OK || purposes[run->broadcast->purpose].read != NULL)
        return false;
    return run->broadcast->block_ms == 0 || !resp_is_nil(member->reply);
}

static void count(const struct run *run, struct votes *votes)
{
    size_t n_settled = 0;
    size_t i;

    *votes = (struct votes){.n_granted = 0};
    note_leases(run);
    find_grant(run, votes);
    find_holder(run, votes);
    for (i = 0; i < run->members->n; i++) {
        add_vote(run, i, votes);
        if (run->asked[i] == SKIPPED || is_pending(run, i))
            continue;
        n_settled++;
        votes->n_yes += is_replied(run, &run->members->member[i]);
    }
    for (i = 0; i < run->members->n; i++)
        votes->n_same_fence += grant_of(run, i) != NULL && grant_of(run, i)->fence == votes->fence;
    votes->n_yes += votes->n_granted;
    votes->n_no = n_settled - votes->n_yes;
}

/* Is the outcome certain, whatever the members say that haven't answered yet? */
static bool is_decided(const struct run *run)
{
    const struct members *members = run->members;
    struct votes votes;
    size_t enough = members->need;

    count(run, &votes);
    switch (purposes[run->broadcast->purpose].enough) {
    case MAJORITY:
        break;
    case ONE:
        enough = 1;
        break;
    case ALL:
        enough = members->n;
        break;
    }
    return votes.n_yes >= enough || votes.n_no > members->n - members->need;
}

/* ---- asking members ---- */

static void ask(struct run *run, size_t i)
{
    const struct broadcast *broadcast = run->broadcast;
    struct members *members = run->members;
    struct member *member = &members->member[i];
    int64_t connect_ms = members->connect_ms;
    struct member_limits limits = {.connect_deadline_ms =
                                       deadline_in(run->deadline, connect_ms).at_ms,
                                   .block_ms = broadcast->block_ms,
                                   .reply_ms = broadcast->reply_ms,
                                   .may_learn_topology = !has_rule(broadcast, SUPERSEDES_PENDING)};
    struct requests_params params = {
        .block_ms = broadcast->block_ms, .fence = broadcast->fence, .drawn = broadcast->drawn[i]};
    requests_build *build = purposes[broadcast->purpose].build;
    struct request request;

    params.not_after_ms = member_server_ms(
        member, deadline_in(run->deadline, connect_ms + broadcast->reply_ms).at_ms);
    if (build != NULL)
        build(broadcast->owner, &request, &params);
    if (broadcast->purpose == BROADCAST_TOPOLOGY)
        member_ask_topology(member, limits);
    else
        member_ask(member, build != NULL ? &request : broadcast->request,
                   purposes[broadcast->purpose].read, limits);
    if (member->state == RLOCK_PENDING)
        member_step(member);
}

/*
 * Handles a member that hasn't answered the request of an earlier broadcast. A release can't wait
 * for that answer. It is sent twice, because nobody knows whether the server still reads the
 * connection:
 * 1. here, on the old connection, which is then closed. A server that is merely slow executes the
 *    pending request and the release in this order;
 * 2. by the caller, on a new connection. A server that was stopped for a while (SIGSTOP, suspended
 *    host) drops the old connection without reading the rest of it.
 */
static enum asked ask_after_earlier(struct run *run, struct member *member)
{
    struct request request;

    member_step(member);
    if (member_may_be_asked(member))
        return ASKED;
    if (has_rule(run->broadcast, SUPERSEDES_PENDING)) {
        purposes[run->broadcast->purpose].build(run->broadcast->owner, &request,
                                                &(struct requests_params){.block_ms = 0});
        request_use_eval(&request); /* the connection is closed before a NOSCRIPT could be read */
        member_abandon(member, &request);
        return ASKED_TWICE;
    }
    if (rlock_clock_ms() < member_deadline_ms(member))
        return WAITS_FOR_EARLIER;
    member_abandon(member, NULL);
    return ASKED;
}

static void ask_all(struct run *run)
{
    size_t i;

    for (i = 0; i < run->members->n; i++) {
        struct member *member = &run->members->member[i];

        run->asked[i] = is_skipped(run->broadcast, i) ? SKIPPED : ASKED;
        if (is_pending(run, i))
            run->asked[i] = ask_after_earlier(run, member);
        if (run->asked[i] == ASKED || run->asked[i] == ASKED_TWICE)
            ask(run, i);
    }
}

static void abandon(const struct broadcast *broadcast, struct member *member)
{
    struct request undo;

    if (has_rule(broadcast, UNDO_ABANDONED))
        requests_undo(broadcast->owner, &undo, NULL);
    member_abandon(member, has_rule(broadcast, UNDO_ABANDONED) ? &undo : NULL);
}

/*
 * Replaces the reply to an earlier broadcast by a fault, when no time is left to ask the member
 * again. The reply must not count in this broadcast: a member that granted an acquire has not
 * confirmed the fence.
 */
static void ignore_reply(struct member *member)
{
    struct rlock_error err;

    err_set(&err, RLOCK_E_UNREACHABLE, 0,
            "%s: it answered an earlier request too late to be asked again", member->url.shown);
    member_set_outcome(member, err.status, &err);
}

static void step_earlier(struct run *run, size_t i, bool is_over)
{
    struct member *member = &run->members->member[i];

    if (member->state == RLOCK_PENDING && rlock_clock_ms() >= member_deadline_ms(member)) {
        member_abandon(member, NULL);
    } else if (member->state != RLOCK_PENDING && is_over) {
        ignore_reply(member);
    } else if (member->state != RLOCK_PENDING) {
        run->asked[i] = ASKED;
        ask(run, i);
    }
}

static void step_all(struct run *run, bool is_over)
{
    int64_t now = rlock_clock_ms();
    size_t i;

    for (i = 0; i < run->members->n; i++) {
        struct member *member = &run->members->member[i];

        if (!is_pending(run, i))
            continue;
        member_step(member);
        if (run->asked[i] == WAITS_FOR_EARLIER)
            step_earlier(run, i, is_over);
        else if (member->state == RLOCK_PENDING && (is_over || now >= member_deadline_ms(member)))
            abandon(run->broadcast, member);
    }
}

/* ---- waiting for replies ---- */

/*
 * Fills in all descriptors. Returns when poll(2) must end at the latest; 0: no member is pending.
 */
static int64_t fill_pollfds(const struct run *run, size_t *n_fds)
{
    const struct members *members = run->members;
    struct pollfd *fds = members->pollfds;
    int64_t wake_ms = 0;
    size_t i;

    fds[0] = (struct pollfd){.fd = run->deadline.stop_fd, .events = POLLIN};
    *n_fds = 1;
    for (i = 0; i < members->n; i++) {
        const struct member *member = &members->member[i];

        if (!is_pending(run, i))
            continue;
        *n_fds += member_fill_pollfds(member, &fds[*n_fds]);
        if (wake_ms == 0 || member_wake_ms(member) < wake_ms)
            wake_ms = member_wake_ms(member);
    }
    return wake_ms;
}

static int64_t linger_ms(const struct broadcast *broadcast, int64_t took_ms)
{
    int64_t linger = broadcast->reply_ms / LINGER_PART;

    if (has_rule(broadcast, NO_LINGER))
        return 0;
    if (broadcast->block_ms == 0 && took_ms > linger)
        linger = took_ms;
    if (linger < LINGER_MIN_MS)
        return LINGER_MIN_MS;
    return earlier(linger, LINGER_MAX_MS);
}

/* Was the request sent to a majority? */
static bool is_sent(const struct members *members)
{
    size_t sent = 0;
    size_t i;

    for (i = 0; i < members->n; i++)
        sent += member_sent_ms(&members->member[i]) != 0;
    return sent >= members->need;
}

/* Calls the hooks that are due. Returns when on_wait must be called again, or RLOCK_NEVER. */
static int64_t call_hooks(struct run *run)
{
    const struct wait_hooks *hooks = &run->members->hooks;

    if (run->calls_on_sent && is_sent(run->members)) {
        run->calls_on_sent = false;
        if (hooks->on_sent != NULL)
            hooks->on_sent(hooks->context);
    }
    return hooks->on_wait != NULL ? hooks->on_wait(hooks->context) : RLOCK_NEVER;
}

/* Returns whether the stop descriptor became readable. */
static bool wait_for_replies(struct run *run)
{
    struct pollfd *fds = run->members->pollfds;
    int64_t began_ms = rlock_clock_ms();
    int64_t linger_until_ms = RLOCK_NEVER;
    int64_t wake_ms;
    size_t n_fds;

    while ((wake_ms = fill_pollfds(run, &n_fds)) != 0) {
        bool is_stopped;
        bool is_over;

        if (linger_until_ms == RLOCK_NEVER && is_decided(run))
            linger_until_ms =
                rlock_clock_ms() + linger_ms(run->broadcast, rlock_clock_ms() - began_ms);
        if (rlock_clock_ms() >= linger_until_ms)
            break;
        wake_ms = earlier(earlier(wake_ms, linger_until_ms), call_hooks(run));
        poll(fds, n_fds, deadline_poll_ms(deadline_at(run->deadline, wake_ms)));
        is_stopped = fds[0].revents != 0;
        is_over = is_stopped || deadline_has_passed(run->deadline);
        step_all(run, is_over && !(is_stopped && has_rule(run->broadcast, GOES_ON_STOPPED)));
        if (is_over)
            return is_stopped;
    }
    return false;
}

enum rlock_status broadcast_run(struct members *members, const struct broadcast *broadcast,
                                struct rlock_deadline deadline, struct votes *votes,
                                struct rlock_error *err)
{
    struct run run = {.members = members,
                      .broadcast = broadcast,
                      .deadline = deadline,
                      .calls_on_sent = has_rule(broadcast, CALLS_ON_SENT)};
    enum rlock_status st = RLOCK_OK;
    bool is_stopped;

    ask_all(&run);
    is_stopped = wait_for_replies(&run);
    if (votes != NULL)
        st = members_check(members, err);
    if (votes != NULL && st == RLOCK_OK)
        count(&run, votes);
    else if (votes != NULL)
        *votes = (struct votes){.n_granted = 0};
    return is_stopped ? RLOCK_STOPPED : st;
}

void broadcast_abandon_pending(struct members *members, const struct broadcast *broadcast)
{
    size_t i;

    for (i = 0; i < members->n; i++)
        if (members->member[i].state == RLOCK_PENDING && !is_skipped(broadcast, i))
            abandon(broadcast, &members->member[i]);
}

bool broadcast_is_unanswered(const struct members *members)
{
    size_t i;

    for (i = 0; i < members->n; i++)
        if (members->member[i].state != RLOCK_OK && member_sent_ms(&members->member[i]) != 0)
            return true;
    return false;
}
