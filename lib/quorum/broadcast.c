/* SPDX-License-Identifier: MIT */
/*
 * broadcast: sends one request to all members at once, and counts their votes.
 *
 * One thread polls all members, so that a member that hangs doesn't delay the others, and so that
 * one place checks the deadline and the stop descriptor.
 *
 * What happens to a member that is slow:
 * 1. A majority has answered yes, or so many members have answered no that no majority can answer
 *    yes any more: the broadcast is decided.
 * 2. The other members get a short time (LINGER) to answer, too. Then they stay pending.
 * 3. The next broadcast waits for such an answer before it asks the member. A release doesn't wait:
 *    it is sent behind the pending request, and the server executes both in this order.
 * So a member that hangs costs
 * - LINGER if a majority of the members agrees on yes or no;
 * - split_ms if some members have granted the lock to this owner, and some to another one;
 * - one time-out if no majority answers.
 */
#include "quorum/broadcast.h"

#include "base/clock.h"
#include "base/err.h"

#include <string.h>

/*
 * LINGER: how long the other members get to answer after the decision, 20 to 100 ms: reply_ms / 20
 * or, if the request doesn't block, as long as the decision took if that is longer.
 */
#define LINGER_PART 20
#define LINGER_MIN_MS 20
#define LINGER_MAX_MS 100

/* How many members must say yes to decide a broadcast. So do too many no for a majority of yes. */
enum enough { MAJORITY, ONE, ALL };

/* Rules that hold for some purposes of a broadcast, see purposes[]: one bit each. */
enum rule {
    SUPERSEDES_PENDING = 1, /* is sent even to a member that hasn't answered an earlier request */
    NEEDS_MEMORY = 2,       /* a yes counts only if the member can't have forgotten a lease */
    NO_LINGER = 4,          /* the broadcast ends as soon as it is decided */
    CALLS_ON_SENT = 8       /* calls the hook on_sent once the request was sent to a majority */
};

static const struct {
    requests_build *build;       /* NULL: the broadcast sends broadcast->request */
    enum commands_task commands; /* replaces `build` if the owner uses no scripts */
    reply_parse *read;           /* NULL: any reply counts as yes, and isn't parsed */
    enum enough enough;
    unsigned rules;
    requests_build *build_behind; /* sent behind a request that is abandoned; NULL: none */
} purposes[] = {
    [BROADCAST_ACQUIRE] = {requests_acquire, COMMANDS_ACQUIRE, reply_parse_acquire, MAJORITY,
                           NEEDS_MEMORY | CALLS_ON_SENT, requests_undo},
    [BROADCAST_CONFIRM] = {requests_confirm, COMMANDS_NONE, reply_parse_confirm, MAJORITY,
                           NEEDS_MEMORY | NO_LINGER, NULL},
    [BROADCAST_UNDO] = {requests_undo, COMMANDS_UNDO, NULL, ONE, 0, requests_undo},
    [BROADCAST_REQUEUE] = {requests_requeue, COMMANDS_NONE, NULL, ONE, 0, requests_requeue},
    [BROADCAST_WAIT] = {requests_wait, COMMANDS_NONE, NULL, ONE, 0, NULL},
    [BROADCAST_RENEW] = {requests_renew, COMMANDS_RENEW, reply_parse_renew, MAJORITY, 0, NULL},
    [BROADCAST_REPAIR] = {requests_acquire, COMMANDS_NONE, reply_parse_acquire, ONE, 0,
                          requests_undo},
    [BROADCAST_RELEASE] = {requests_release, COMMANDS_RELEASE, reply_parse_release, MAJORITY,
                           SUPERSEDES_PENDING, requests_release},
    [BROADCAST_LEAVE] = {requests_leave, COMMANDS_RELEASE, reply_parse_release, MAJORITY,
                         SUPERSEDES_PENDING, requests_leave},
    [BROADCAST_REQUEST] = {NULL, COMMANDS_NONE, NULL, MAJORITY, 0, NULL},
    [BROADCAST_SLOW_REQUEST] = {NULL, COMMANDS_NONE, NULL, ALL, 0, NULL},
    [BROADCAST_TOPOLOGY] = {NULL, COMMANDS_NONE, NULL, ALL, 0, NULL},
};

/* Whether this broadcast has sent its request to a member. */
enum asked {
    SKIPPED,           /* not sent: the caller's `skipped` leaves the member out */
    WAITS_FOR_EARLIER, /* not sent yet: a request of an earlier broadcast is still pending */
    ASKED,             /* sent */
    ASKED_TWICE        /* sent after the pending request on the old connection, which was then
                          closed, and once more on a new connection */
};

/* The state of one call of broadcast_run(). */
struct broadcast_call {
    struct members *members;
    const struct broadcast *broadcast;
    struct rlock_deadline deadline;
    enum asked asked[RLOCK_MEMBERS_MAX];
    bool calls_on_sent; /* the hook on_sent is still to be called */
};

static bool has_rule(const struct broadcast *broadcast, enum rule rule)
{
    return (purposes[broadcast->purpose].rules & rule) != 0;
}

/* Returns which commands replace the script. COMMANDS_NONE: a script or `request` is sent. */
static enum commands_task commands_of(const struct broadcast *broadcast)
{
    return broadcast->request == NULL && broadcast->owner != NULL &&
                   broadcast->owner->without_scripts
               ? purposes[broadcast->purpose].commands
               : COMMANDS_NONE;
}

/* Returns the parser of the replies; NULL: the replies aren't parsed. */
static reply_parse *read_of(const struct broadcast *broadcast)
{
    return broadcast->request == NULL ? purposes[broadcast->purpose].read : NULL;
}

/*
 * Does the request release, leave, undo or requeue? The server must execute it even if rlock
 * doesn't wait for the reply any more, so abandon() sends it again, as EVAL.
 */
static bool gives_back(const struct broadcast *broadcast)
{
    requests_build *build = purposes[broadcast->purpose].build;

    return build != NULL && build == purposes[broadcast->purpose].build_behind;
}

static bool is_skipped(const struct broadcast *broadcast, size_t i)
{
    return (broadcast->skipped >> i & 1) != 0;
}

static bool was_lost(const struct broadcast *broadcast, size_t i)
{
    return (broadcast->lost >> i & 1) != 0;
}

static bool is_pending(const struct broadcast_call *call, size_t i)
{
    return call->asked[i] != SKIPPED && call->members->member[i].state == RLOCK_PENDING;
}

/* ---- counting votes ---- */

/*
 * Returns the member's parsed answer to this broadcast. NULL: the member has not answered, its
 * request ended in a fault, or answers of this purpose aren't parsed.
 */
static const struct reply *answer_of(const struct broadcast_call *call, size_t i)
{
    const struct member *member = &call->members->member[i];
    bool is_asked = call->asked[i] == ASKED || call->asked[i] == ASKED_TWICE;

    if (!is_asked || read_of(call->broadcast) == NULL)
        return NULL;
    return member->state == RLOCK_OK ? &member->answer : NULL;
}

/*
 * Returns the member's reply code. If the member may have executed an earlier copy of the release,
 * any answer counts as REPLY_OK: if the last copy found nothing to release, most likely the earlier
 * copy has released the lock. Not so if the member had lost the lock before the first copy.
 */
static enum reply_code code_of(const struct broadcast_call *call, size_t i)
{
    bool is_repeated = call->asked[i] == ASKED_TWICE || (call->broadcast->released >> i & 1) != 0;

    return is_repeated && !was_lost(call->broadcast, i) ? REPLY_OK
                                                        : call->members->member[i].answer.code;
}

/* Returns the member's answer if it granted, renewed or released; NULL: it did not. */
static const struct reply *grant_of(const struct broadcast_call *call, size_t i)
{
    const struct reply *answer = answer_of(call, i);

    if (answer == NULL)
        return NULL;
    switch (code_of(call, i)) {
    case REPLY_OK:
    case REPLY_RESTORED:
        return answer;
    case REPLY_DONE:
    case REPLY_HELD:
    case REPLY_GONE:
    case REPLY_LATE:
    case REPLY_SUPERSEDED:
    case REPLY_RELEASED:
    case REPLY_BROKEN:
    case REPLY_OTHER_MODE:
        break;
    }
    return NULL;
}

/*
 * Do both members name the same holder of each lock: the owner's token, or the same parent's? A
 * member that has lost a parent's lock grants that lock to the owner's own token, unlike the other
 * members.
 */
static bool is_alike(const struct reply *one, const struct reply *other)
{
    size_t i;

    for (i = 0; i < RLOCK_KEYS_MAX; i++)
        if (one->lock[i].parent != other->lock[i].parent)
            return false;
    return true;
}

/* Sets votes->granted to the grant with which most of the other grants agree, see is_alike(). */
static void find_grant(const struct broadcast_call *call, struct votes *votes)
{
    size_t most = 0;
    size_t i;
    size_t j;

    for (i = 0; i < call->members->n; i++) {
        const struct reply *answer = grant_of(call, i);
        size_t n_alike = 0;

        for (j = 0; answer != NULL && j < call->members->n; j++)
            n_alike += grant_of(call, j) != NULL && is_alike(grant_of(call, j), answer);
        if (n_alike <= most)
            continue;
        most = n_alike;
        votes->granted = answer;
    }
}

static const struct reply *held_answer_of(const struct broadcast_call *call, size_t i)
{
    const struct reply *answer = answer_of(call, i);

    return answer != NULL && answer->code == REPLY_HELD ? answer : NULL;
}

/* Sets votes->held_by to an answer with the holder that most members name. */
static void find_holder(const struct broadcast_call *call, struct votes *votes)
{
    size_t i;
    size_t j;

    for (i = 0; i < call->members->n; i++) {
        const struct reply *answer = held_answer_of(call, i);
        size_t same = 0;

        for (j = 0; answer != NULL && j < call->members->n; j++) {
            const struct reply *other = held_answer_of(call, j);

            same += other != NULL && strcmp(other->holder_id, answer->holder_id) == 0;
        }
        if (same <= votes->n_same_holder)
            continue;
        votes->n_same_holder = same;
        votes->held_by = answer;
    }
}

/* Does the holder use other members than this quorum? Then this owner may get the lock, too. */
static bool is_of_other_quorum(const struct broadcast_call *call, const struct reply *answer)
{
    return (answer->code == REPLY_HELD || answer->code == REPLY_DONE) && answer->is_rlock &&
           strcmp(answer->members_hash, call->members->hash) != 0;
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
    case REPLY_BROKEN:
        votes->n_gone++;
        votes->broken_by = answer;
        break;
    case REPLY_LATE:
        votes->n_late++;
        if (answer->fence > votes->fence)
            votes->fence = answer->fence;
        break;
    case REPLY_SUPERSEDED:
        votes->n_superseded++;
        votes->newer = answer;
        break;
    case REPLY_RELEASED:
        votes->n_released++;
        break;
    case REPLY_DONE:
        votes->n_done++;
        votes->done_by = answer;
        break;
    case REPLY_OTHER_MODE:
        votes->n_other_mode++;
        votes->held_by = answer;
        break;
    }
}

/* Adds the answer of member i to the votes. */
static void add_vote(const struct broadcast_call *call, size_t i, struct votes *votes)
{
    const struct member *member = &call->members->member[i];
    const struct reply *answer = answer_of(call, i);
    int64_t uncounted_ms =
        has_rule(call->broadcast, NEEDS_MEMORY) ? members_uncounted_ms(call->members, member) : 0;

    if (call->asked[i] == ASKED_TWICE)
        votes->sent_twice |= 1U << i;
    if (answer == NULL) {
        votes->n_lost_before += was_lost(call->broadcast, i);
        return;
    }
    if (is_of_other_quorum(call, answer))
        votes->other_quorum = answer;
    if (code_of(call, i) == REPLY_GONE || code_of(call, i) == REPLY_BROKEN)
        votes->gone_from |= 1U << i;
    if (code_of(call, i) == REPLY_HELD)
        votes->held_from |= 1U << i;
    if (grant_of(call, i) == NULL) {
        add_answer(votes, member, answer, code_of(call, i));
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
        add_answer(votes, member, answer, code_of(call, i));
    }
}

/* Notes the TTLs of all holders, because members_uncounted_ms() needs the longest one. */
static void note_leases(const struct broadcast_call *call)
{
    size_t i;

    for (i = 0; i < call->members->n; i++)
        if (answer_of(call, i) != NULL)
            members_note_lease(call->members, answer_of(call, i)->holder_ttl_ms);
}

/*
 * Has a member replied to a request whose reply isn't parsed? If the request is a BLPOP (block_ms),
 * a nil doesn't count: the BLPOP has timed out.
 */
static bool is_replied(const struct broadcast_call *call, const struct member *member)
{
    if (member->state != RLOCK_OK || read_of(call->broadcast) != NULL)
        return false;
    return call->broadcast->block_ms == 0 || !resp_is_nil(member->reply);
}

static void count(const struct broadcast_call *call, struct votes *votes)
{
    size_t n_settled = 0;
    size_t i;

    *votes = (struct votes){.n_granted = 0};
    note_leases(call);
    find_grant(call, votes);
    find_holder(call, votes);
    for (i = 0; i < call->members->n; i++) {
        add_vote(call, i, votes);
        if (call->asked[i] == SKIPPED || is_pending(call, i))
            continue;
        n_settled++;
        votes->n_yes += is_replied(call, &call->members->member[i]);
    }
    for (i = 0; i < call->members->n; i++)
        votes->n_same_fence +=
            grant_of(call, i) != NULL && grant_of(call, i)->fence == votes->fence;
    votes->n_yes += votes->n_granted;
    votes->n_no = n_settled - votes->n_yes;
}

/* Is the outcome certain, whatever the members say that haven't answered yet? */
static bool is_decided(const struct broadcast_call *call)
{
    const struct members *members = call->members;
    struct votes votes;
    size_t enough = members->need;

    count(call, &votes);
    switch (purposes[call->broadcast->purpose].enough) {
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

bool broadcast_is_split(const struct members *members, const struct votes *votes)
{
    return votes->granted_by != 0 && votes->n_held > 0 && votes->n_granted < members->need &&
           votes->n_same_holder < members->need;
}

/* Has a majority answered an acquire, and do these answers show that the lock is split? */
static bool is_split_so_far(const struct broadcast_call *call)
{
    struct votes votes;

    if (call->broadcast->purpose != BROADCAST_ACQUIRE || call->broadcast->split_ms == RLOCK_NEVER)
        return false;
    count(call, &votes);
    return votes.n_yes + votes.n_no >= call->members->need &&
           broadcast_is_split(call->members, &votes);
}

/* ---- asking members ---- */

/* Will further requests follow? Only then the connection gets a name, and CLUSTER NODES is sent. */
static bool is_in_long_use(const struct broadcast *broadcast)
{
    return broadcast->purpose == BROADCAST_WAIT || broadcast->purpose == BROADCAST_TOPOLOGY ||
           (broadcast->purpose == BROADCAST_RENEW && !broadcast->owner->is_adopted) ||
           (broadcast->purpose == BROADCAST_ACQUIRE && broadcast->owner->attempt > 1);
}

static void ask(struct broadcast_call *call, size_t i)
{
    const struct broadcast *broadcast = call->broadcast;
    struct members *members = call->members;
    struct member *member = &members->member[i];
    int64_t connect_ms = members->connect_ms;
    struct member_limits limits = {.connect_deadline_ms =
                                       deadline_in(call->deadline, connect_ms).at_ms,
                                   .block_ms = broadcast->block_ms,
                                   .reply_ms = broadcast->reply_ms,
                                   .is_in_long_use = is_in_long_use(broadcast)};
    struct requests_params params = {
        .block_ms = broadcast->block_ms, .fence = broadcast->fence, .drawn = broadcast->drawn[i]};
    requests_build *build = broadcast->request == NULL ? purposes[broadcast->purpose].build : NULL;
    struct request request;

    params.not_after_ms = member_server_ms(
        member, deadline_in(call->deadline, connect_ms + broadcast->reply_ms).at_ms);
    if (build != NULL)
        build(broadcast->owner, &request, &params);
    /* In a quorum rlock waits for a majority only. Nobody reads the NOSCRIPT of a member that
     * answers later, and that member would keep its part of the lock until the TTL ends. */
    if (gives_back(broadcast) && broadcast->owner->is_in_quorum)
        request_use_eval(&request);
    member_ask(member, build != NULL ? &request : broadcast->request, read_of(broadcast), limits);
    if (member->state == RLOCK_PENDING)
        member_step(member);
}

/*
 * Goes on with an earlier request of the member. ASKED: the caller sends the next request now. A
 * release doesn't wait, and is sent twice. This function sends it behind the earlier request, for a
 * server that is merely slow, and resets the connection. The caller sends it on a new connection,
 * for a server that was stopped, and drops the old connection unread.
 */
static enum asked ask_after_earlier(struct broadcast_call *call, struct member *member)
{
    struct request request;

    member_step(member);
    if (member->state != RLOCK_PENDING)
        return ASKED;
    if (has_rule(call->broadcast, SUPERSEDES_PENDING) && call->broadcast->request == NULL) {
        purposes[call->broadcast->purpose].build(call->broadcast->owner, &request,
                                                 &(struct requests_params){.block_ms = 0});
        return member_abandon(member, &request) ? ASKED_TWICE : ASKED;
    }
    if (!has_rule(call->broadcast, SUPERSEDES_PENDING) &&
        rlock_clock_ms() < member_deadline_ms(member))
        return WAITS_FOR_EARLIER;
    member_abandon(member, NULL);
    return ASKED;
}

static void ask_all(struct broadcast_call *call)
{
    size_t i;

    for (i = 0; i < call->members->n; i++) {
        struct member *member = &call->members->member[i];

        call->asked[i] = is_skipped(call->broadcast, i) ? SKIPPED : ASKED;
        if (is_pending(call, i))
            call->asked[i] = ask_after_earlier(call, member);
        if (call->asked[i] == ASKED || call->asked[i] == ASKED_TWICE)
            ask(call, i);
    }
}

/*
 * Resets the connection to a member that hasn't answered. Before that sends what the server is to
 * execute after the request: after an acquire or a repair, the undo; after a release, a leave, an
 * undo or a requeue, the same again, as EVAL (executed twice, it changes nothing the second time);
 * after any other request, broadcast->behind, if the caller has set it.
 */
static void abandon(const struct broadcast *broadcast, struct member *member)
{
    requests_build *build = purposes[broadcast->purpose].build_behind;
    struct request behind;

    if (broadcast->request != NULL || build == NULL) {
        member_abandon(member, broadcast->behind);
        return;
    }
    build(broadcast->owner, &behind, NULL);
    if (gives_back(broadcast))
        request_use_eval(&behind);
    member_abandon(member, &behind);
}

/*
 * Replaces the reply to an earlier broadcast by a fault, when no time is left to ask the member
 * again. The reply must not count in this broadcast: for example, a member that granted an acquire
 * has not confirmed the fence yet.
 */
static void ignore_reply(struct member *member)
{
    struct rlock_error err;

    err_set(&err, RLOCK_E_UNREACHABLE, 0,
            "%s: answered an earlier request so late that no time was left for the next one",
            member->url.shown);
    member_set_outcome(member, err.status, &err);
}

static void step_earlier(struct broadcast_call *call, size_t i, bool is_over)
{
    struct member *member = &call->members->member[i];

    if (member->state == RLOCK_PENDING && rlock_clock_ms() >= member_deadline_ms(member)) {
        member_abandon(member, NULL);
    } else if (member->state != RLOCK_PENDING && is_over) {
        ignore_reply(member);
    } else if (member->state != RLOCK_PENDING) {
        call->asked[i] = ASKED;
        ask(call, i);
    }
}

static void step_all(struct broadcast_call *call, bool is_over)
{
    int64_t now = rlock_clock_ms();
    size_t i;

    for (i = 0; i < call->members->n; i++) {
        struct member *member = &call->members->member[i];

        if (!is_pending(call, i))
            continue;
        member_step(member);
        if (call->asked[i] == WAITS_FOR_EARLIER)
            step_earlier(call, i, is_over);
        else if (member->state == RLOCK_PENDING && (is_over || now >= member_deadline_ms(member)))
            abandon(call->broadcast, member);
    }
}

/* ---- waiting for replies ---- */

/* Fills in the descriptors for poll(2). Returns by when poll(2) must end; 0: none is pending. */
static int64_t fill_pollfds(const struct broadcast_call *call, size_t *n_fds)
{
    const struct members *members = call->members;
    struct pollfd *fds = members->pollfds;
    int64_t wake_ms = 0;
    size_t i;

    fds[0] = (struct pollfd){.fd = call->deadline.stop_fd, .events = POLLIN};
    *n_fds = 1;
    for (i = 0; i < members->n; i++) {
        const struct member *member = &members->member[i];

        if (!is_pending(call, i))
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
    return clock_earlier(linger, LINGER_MAX_MS);
}

/* Was a request sent to a majority? */
static bool is_sent(const struct members *members)
{
    size_t sent = 0;
    size_t i;

    for (i = 0; i < members->n; i++)
        sent += member_sent_ms(&members->member[i]) != 0;
    return sent >= members->need;
}

/* Calls on_sent once, when due, and on_wait. Returns when to call on_wait again, or RLOCK_NEVER. */
static int64_t call_hooks(struct broadcast_call *call)
{
    const struct members *members = call->members;

    if (call->calls_on_sent && is_sent(members)) {
        call->calls_on_sent = false;
        if (members->observer.on_sent != NULL)
            members->observer.on_sent(members->observer.context);
    }
    return members->on_wait != NULL ? members->on_wait(members->waiter) : RLOCK_NEVER;
}

/* Returns whether the stop descriptor became readable. */
static bool wait_for_replies(struct broadcast_call *call)
{
    struct pollfd *fds = call->members->pollfds;
    int64_t began_ms = rlock_clock_ms();
    int64_t linger_until_ms = RLOCK_NEVER;
    int64_t split_until_ms = RLOCK_NEVER;
    int64_t wake_ms;
    size_t n_fds;

    while ((wake_ms = fill_pollfds(call, &n_fds)) != 0) {
        int64_t now = rlock_clock_ms();
        bool is_stopped;
        bool is_over;

        if (linger_until_ms == RLOCK_NEVER && is_decided(call))
            linger_until_ms = now + linger_ms(call->broadcast, now - began_ms);
        else if (linger_until_ms == RLOCK_NEVER && split_until_ms == RLOCK_NEVER &&
                 is_split_so_far(call))
            split_until_ms = now + clock_later(call->broadcast->split_ms, now - began_ms);
        if (now >= clock_earlier(linger_until_ms, split_until_ms))
            break;
        wake_ms = clock_earlier(clock_earlier(wake_ms, linger_until_ms), split_until_ms);
        wake_ms = clock_earlier(wake_ms, call_hooks(call));
        poll(fds, n_fds, deadline_poll_ms(deadline_at(call->deadline, wake_ms)));
        is_stopped = fds[0].revents != 0;
        is_over = is_stopped || deadline_has_passed(call->deadline);
        step_all(call, is_over);
        if (is_over)
            return is_stopped;
    }
    return false;
}

/* The lease counts from the sending of the first request that may have written the lock's value. */
enum rlock_status broadcast_commands(struct members *members, const struct broadcast *broadcast,
                                     struct commands *commands, struct rlock_deadline deadline)
{
    struct member *member = &members->member[0];
    struct broadcast one = *broadcast;
    enum rlock_status st = RLOCK_PENDING;
    const char *refusal = NULL;
    int64_t written_ms = 0;
    bool is_stopped;
    struct rlock_error err;
    struct request request;
    struct request undo;
    struct reply answer;

    one.request = &request;
    while (st == RLOCK_PENDING) {
        bool writes = commands_build(commands, &request);

        one.behind = commands_build_undo(commands, &undo) ? &undo : NULL;
        st = broadcast_run(members, &one, deadline, NULL, NULL);
        if (writes && written_ms == 0)
            written_ms = member_sent_ms(member);
        if (member->state != RLOCK_OK)
            break;
        is_stopped = st == RLOCK_STOPPED;
        st = commands_read(commands, member->reply, member_connection(member), &answer, &refusal,
                           &err);
        if (is_stopped && st == RLOCK_PENDING && written_ms == 0) { /* nothing is written yet */
            st = RLOCK_STOPPED;
            err_set(&err, RLOCK_E_UNREACHABLE, 0, "%s: stopped between two requests",
                    member->url.shown);
            member_set_outcome(member, err.status, &err);
        }
        if (st >= RLOCK_E_USAGE)
            member_reject(member, refusal, &err);
    }
    member_conclude(member, st == RLOCK_OK && member->state == RLOCK_OK ? &answer : NULL,
                    written_ms);
    return st == RLOCK_STOPPED ? st : RLOCK_OK;
}

enum rlock_status broadcast_run(struct members *members, const struct broadcast *broadcast,
                                struct rlock_deadline deadline, struct votes *votes,
                                struct rlock_error *err)
{
    struct broadcast_call call = {.members = members,
                                  .broadcast = broadcast,
                                  .deadline = deadline,
                                  .calls_on_sent = has_rule(broadcast, CALLS_ON_SENT)};
    enum rlock_status st = RLOCK_OK;
    bool is_stopped;

    if (commands_of(broadcast) != COMMANDS_NONE) {
        struct commands commands;

        commands_begin(&commands, commands_of(broadcast), broadcast->owner);
        is_stopped = broadcast_commands(members, broadcast, &commands, deadline) == RLOCK_STOPPED;
        commands_end(&commands);
        call.asked[0] = ASKED;
    } else {
        ask_all(&call);
        is_stopped = wait_for_replies(&call);
    }
    if (votes != NULL)
        st = members_check(members, err);
    if (votes != NULL && st == RLOCK_OK)
        count(&call, votes);
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

unsigned broadcast_unanswered(const struct members *members)
{
    unsigned unanswered = 0;
    size_t i;

    for (i = 0; i < members->n; i++)
        if (members->member[i].state != RLOCK_OK && member_sent_ms(&members->member[i]) != 0)
            unanswered |= 1U << i;
    return unanswered;
}
