/* SPDX-License-Identifier: MIT */
/*
 * broadcast: one request to each member at the same time, until it is decided.
 *
 * In one thread, with one poll over all members, so that one that hangs never
 * delays the others and every deadline and every stop is seen in one place.
 *
 * When it is decided, by a majority for or against, the others get about as
 * long again and are then left alone: what they were asked may still be what we
 * want. The next round asks them when they have answered, and the last one puts
 * its request behind theirs, so that it is executed after it. So a member that
 * hangs costs next to nothing as long as a majority answers, and one time-out if
 * not.
 */
#include "quorum/broadcast.h"

#include "base/clock.h"
#include "base/err.h"

#include <string.h>

#define LINGER_PART 20 /* of the time for an answer, for the others when it is decided; and yet */
#define LINGER_MIN_MS 20
#define LINGER_MAX_MS 100

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_skipped(const struct broadcast *broadcast, size_t i)
{
    return (broadcast->skip >> i & 1) != 0;
}

static void ask_one(struct quorum *quorum, const struct broadcast *broadcast, size_t i,
                    struct rlock_deadline deadline)
{
    struct rlock_deadline connect = deadline_in(deadline, quorum->connect_ms);
    struct rlock_deadline answer = deadline_in(deadline, quorum->connect_ms + broadcast->reply_ms);
    struct member_limits limits = {.connect_deadline_ms = connect.at_ms,
                                   .block_ms = broadcast->block_ms,
                                   .reply_ms = broadcast->reply_ms,
                                   .may_learn_topology = !broadcast->supersedes_pending};
    struct member *member = &quorum->member[i];
    struct requests_params when = {.block_ms = broadcast->block_ms, .fence = broadcast->fence};
    struct request request;

    member->is_behind = false;
    when.not_after_ms = member_server_ms(member, answer.at_ms);
    if (!broadcast->looks && broadcast->request == NULL)
        broadcast->ask(broadcast->owner, &request, &when);
    if (broadcast->looks)
        member_look(member, limits);
    else
        member_ask(member, broadcast->request != NULL ? broadcast->request : &request, limits);
    if (member->state == RLOCK_PENDING)
        member_step(member);
}

/* A member that hasn't answered an earlier broadcast. Returns whether it can be asked again. */
static bool is_through(const struct broadcast *broadcast, struct member *member)
{
    struct request request;

    member_step(member);
    if (member->state != RLOCK_PENDING)
        return true;
    if (broadcast->supersedes_pending) {
        broadcast->ask(broadcast->owner, &request, &(struct requests_params){.block_ms = 0});
        request_use_eval(&request); /* as that of an undo */
        member_abandon(member, &request);
        member->is_repeated = true;
        return true; /* and once more: a server that was stopped doesn't read on behind our end */
    }
    if (rlock_clock_ms() >= member_deadline_ms(member)) {
        member_abandon(member, NULL);
        return true;
    }
    member->is_behind = true;
    return false;
}

static void begin(struct quorum *quorum, const struct broadcast *broadcast,
                  struct rlock_deadline deadline)
{
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        if (is_skipped(broadcast, i))
            continue;
        member->is_repeated = false;
        if (member->state != RLOCK_PENDING || is_through(broadcast, member))
            ask_one(quorum, broadcast, i, deadline);
    }
}

static void give_up(const struct broadcast *broadcast, struct member *member)
{
    struct request undo;

    if (broadcast->undo)
        requests_undo(broadcast->owner, &undo, NULL);
    member_abandon(member, broadcast->undo ? &undo : NULL);
}

/* Fill the poll set; returns the earliest time to look, or 0 when nothing is pending. */
static int64_t watch_pending(struct quorum *quorum, const struct broadcast *broadcast,
                             size_t *n_watched)
{
    int64_t wake = 0;
    size_t i;

    *n_watched = 1; /* the first is the stop descriptor */
    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        if (member->state != RLOCK_PENDING || is_skipped(broadcast, i))
            continue;
        *n_watched += member_watch(member, &quorum->watch[*n_watched]);
        if (wake == 0 || member_wake_ms(member) < wake)
            wake = member_wake_ms(member);
    }
    return wake;
}

static void step_pending(struct quorum *quorum, const struct broadcast *broadcast, bool over,
                         struct rlock_deadline deadline)
{
    int64_t now = rlock_clock_ms();
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        if (member->state != RLOCK_PENDING || is_skipped(broadcast, i))
            continue;
        member_step(member);
        if (member->state != RLOCK_PENDING && member->is_behind && over)
            member_discard(member); /* its grant of the first round is no noted fence */
        else if (member->state != RLOCK_PENDING && member->is_behind)
            ask_one(quorum, broadcast, i, deadline);
        else if (member->state == RLOCK_PENDING && member->is_behind &&
                 now >= member_deadline_ms(member))
            member_abandon(member, NULL);
        else if (member->state == RLOCK_PENDING && !member->is_behind &&
                 (over || now >= member_deadline_ms(member)))
            give_up(broadcast, member);
    }
}

/* To a majority, as that can grant it. */
static bool is_on_its_way(const struct quorum *quorum)
{
    size_t asked = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++)
        asked += member_sent_ms(&quorum->member[i]) != 0;
    return asked >= quorum->need;
}

static bool says_yes(const struct quorum *quorum, const struct broadcast *broadcast,
                     const struct member *member)
{
    struct reply answer;

    if (broadcast->needs_memory && members_young_ms(quorum, member) > 0)
        return false;
    if (broadcast->block_ms > 0)
        return !resp_is_nil(member->reply);
    if (broadcast->read == NULL)
        return true;
    return broadcast->read(member->reply, &answer, NULL) == RLOCK_OK &&
           (answer.code == REPLY_OK || answer.code == REPLY_RESTORED);
}

/* Can the rest change anything yet? */
static bool is_decided(const struct quorum *quorum, const struct broadcast *broadcast)
{
    size_t yes = 0;
    size_t no = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        const struct member *member = &quorum->member[i];

        if (is_skipped(broadcast, i) || member->state == RLOCK_PENDING)
            continue;
        if (member->state == RLOCK_OK && says_yes(quorum, broadcast, member))
            yes++;
        else
            no++;
    }
    return yes >= (broadcast->enough > 0 ? broadcast->enough : quorum->need) ||
           no > quorum->n - quorum->need;
}

static int64_t linger_ms(const struct broadcast *broadcast, int64_t took_ms)
{
    int64_t linger = broadcast->reply_ms / LINGER_PART;

    if (broadcast->is_quick)
        return 0;
    if (broadcast->block_ms == 0 && took_ms > linger)
        linger = took_ms;
    if (linger < LINGER_MIN_MS)
        return LINGER_MIN_MS;
    return linger < LINGER_MAX_MS ? linger : LINGER_MAX_MS;
}

/* Who watches is told once that a grant may come, and asked when to be called again. */
static int64_t tell_hooks(const struct quorum *quorum, bool *is_to_tell)
{
    const struct quorum_hooks *hooks = &quorum->hooks;

    if (*is_to_tell && is_on_its_way(quorum)) {
        if (hooks->on_sent != NULL)
            hooks->on_sent(hooks->context);
        *is_to_tell = false;
    }
    return hooks->on_wait != NULL ? hooks->on_wait(hooks->context) : RLOCK_NEVER;
}

enum rlock_status broadcast_run(struct quorum *quorum, const struct broadcast *broadcast,
                                struct rlock_deadline deadline)
{
    struct pollfd *stop = &quorum->watch[0];
    int64_t began_ms = rlock_clock_ms();
    int64_t linger_until = RLOCK_NEVER;
    bool is_to_tell = broadcast->is_told;
    size_t n_watched;
    int64_t wake;
    bool over;

    stop->revents = 0;
    begin(quorum, broadcast, deadline);
    while ((wake = watch_pending(quorum, broadcast, &n_watched)) != 0) {
        if (linger_until == RLOCK_NEVER && is_decided(quorum, broadcast))
            linger_until = rlock_clock_ms() + linger_ms(broadcast, rlock_clock_ms() - began_ms);
        if (rlock_clock_ms() >= linger_until)
            break;
        stop->fd = deadline.stop_fd;
        stop->events = POLLIN;
        stop->revents = 0;
        wake = earlier(wake, linger_until);
        wake = earlier(wake, tell_hooks(quorum, &is_to_tell));
        poll(quorum->watch, n_watched, deadline_poll_ms(deadline_at(deadline, wake)));
        over = stop->revents != 0 || deadline_has_passed(deadline);
        step_pending(quorum, broadcast, over, deadline);
        if (over)
            break;
    }
    return stop->revents != 0 ? RLOCK_STOPPED : RLOCK_OK;
}

void broadcast_abandon(struct quorum *quorum, const struct broadcast *broadcast)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].state == RLOCK_PENDING && !is_skipped(broadcast, i))
            give_up(broadcast, &quorum->member[i]);
}

bool broadcast_is_unanswered(const struct quorum *quorum)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].state != RLOCK_OK && member_sent_ms(&quorum->member[i]) != 0)
            return true;
    return false;
}

/* ---- votes ---- */

/*
 * How the members answered a broadcast.
 *
 * Everything is read before anything is counted: an answer may tell of a lease
 * that is longer than ours, and so how long a member must have been up to count.
 * Only those count that granted the same: where an parent rlock holds the lock,
 * a member that has lost it grants it anew.
 */

/* Are the same of the locks ours, and the others the same parent one's? */
static bool is_alike(const struct reply *one, const struct reply *other)
{
    size_t i;

    for (i = 0; i < RLOCK_KEYS_MAX; i++)
        if (one->lock[i].parent != other->lock[i].parent)
            return false;
    return true;
}

static bool is_granted(const struct reply *answer)
{
    return answer->code == REPLY_OK || answer->code == REPLY_RESTORED;
}

/* How many granted the same, and as far as these are equal, with the same fence. */
static size_t count_alike(const struct quorum *quorum, const struct reply *answers, size_t nth)
{
    size_t alike = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        if (quorum->member[i].state != RLOCK_OK || !is_granted(&answers[i]) ||
            !is_alike(&answers[i], &answers[nth]))
            continue;
        alike += RLOCK_MEMBERS_MAX + 1U + (answers[i].fence == answers[nth].fence ? 1U : 0U);
    }
    return alike;
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

static void add(struct votes *votes, const struct member *member, const struct reply *answer)
{
    switch (answer->code) {
    case REPLY_RESTORED:
        votes->restored++;
        add_grant(votes, member, answer);
        break;
    case REPLY_OK:
        add_grant(votes, member, answer);
        break;
    case REPLY_HELD:
        votes->held++;
        if (answer->ticket > votes->ticket)
            votes->ticket = answer->ticket;
        break;
    case REPLY_GONE:
        votes->gone++;
        break;
    case REPLY_LATE:
        votes->late++;
        if (answer->fence > votes->fence)
            votes->fence = answer->fence;
        break;
    case REPLY_SUPERSEDED:
        votes->superseded++;
        break;
    case REPLY_RELEASED:
        votes->released++;
        break;
    case REPLY_DONE:
        votes->done++;
        votes->held_by = *answer;
        break;
    case REPLY_OTHER_MODE:
        votes->other_mode++;
        votes->held_by = *answer;
        break;
    }
}

/* Who is in the way of us on most of the members? */
static void find_owner(struct votes *votes, const struct quorum *quorum,
                       const struct reply *answers)
{
    size_t same;
    size_t i;
    size_t j;

    for (i = 0; i < quorum->n; i++) {
        if (quorum->member[i].state != RLOCK_OK || answers[i].code != REPLY_HELD)
            continue;
        for (same = 0, j = 0; j < quorum->n; j++)
            same += quorum->member[j].state == RLOCK_OK && answers[j].code == REPLY_HELD &&
                    strcmp(answers[j].holder_id, answers[i].holder_id) == 0;
        if (same > votes->same_owner)
            votes->held_by = answers[i];
        if (same > votes->same_owner)
            votes->same_owner = same;
    }
}

/* Who asks other servers than we do isn't kept out by us, nor we by it. */
static void find_stranger(struct votes *votes, const struct quorum *quorum,
                          const struct reply *answers)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].state == RLOCK_OK &&
            (answers[i].code == REPLY_HELD || answers[i].code == REPLY_DONE) &&
            answers[i].is_rlock && strcmp(answers[i].members_hash, quorum->members_hash) != 0)
            votes->stranger = answers[i];
}

static void find_grant(struct votes *votes, const struct quorum *quorum,
                       const struct reply *answers)
{
    size_t most = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        size_t alike = count_alike(quorum, answers, i);

        if (quorum->member[i].state != RLOCK_OK || !is_granted(&answers[i]) || alike <= most)
            continue;
        most = alike;
        votes->granted = answers[i];
    }
}

static void read_all(struct quorum *quorum, reply_parse *read, struct reply *answers)
{
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        member->granted_by = 0;
        if (member->state != RLOCK_OK || member->reply == NULL)
            continue;
        member->state = read(member->reply, &answers[i], &member->err);
        if (member->state != RLOCK_OK) {
            err_prefix(&member->err, member->url.shown);
            continue;
        }
        if (read != reply_parse_release)
            member_saw_clock(member, answers[i].server_ms);
        else if (member->is_repeated)
            answers[i].code = REPLY_OK; /* by the first of the two, as far as can be known */
        if (answers[i].holder_ttl_ms > quorum->longest_ms)
            quorum->longest_ms = answers[i].holder_ttl_ms;
    }
}

enum rlock_status votes_count(struct votes *votes, struct quorum *quorum, reply_parse *read,
                              struct rlock_error *err)
{
    struct reply answers[RLOCK_MEMBERS_MAX];
    enum rlock_status st = members_check(quorum, err);
    size_t i;

    *votes = (struct votes){.n_granted = 0};
    for (i = 0; i < quorum->n; i++)
        answers[i] = (struct reply){.code = REPLY_GONE};
    read_all(quorum, read, answers);
    find_grant(votes, quorum, answers);
    find_owner(votes, quorum, answers);
    find_stranger(votes, quorum, answers);
    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];
        int64_t young_ms = members_young_ms(quorum, member);

        if (member->state != RLOCK_OK)
            continue;
        if (is_granted(&answers[i])) {
            votes->granted_by |= 1U << i;
            member->granted_by = member_connection(member);
        }
        votes->gone_from |= (answers[i].code == REPLY_GONE ? 1U : 0) << i;
        if (is_granted(&answers[i]) && !is_alike(&answers[i], &votes->granted)) {
            votes->inconsistent |= 1U << i;
            continue;
        }
        if ((read == reply_parse_acquire || read == reply_parse_confirm) &&
            answers[i].code == REPLY_OK && young_ms > 0) {
            votes->young++;
            votes->young_ms = young_ms > votes->young_ms ? young_ms : votes->young_ms;
            continue;
        }
        add(votes, member, &answers[i]);
    }
    for (i = 0; i < quorum->n; i++)
        votes->same_fence += (votes->granted_by >> i & 1) != 0 && answers[i].fence == votes->fence;
    return st;
}
