/* SPDX-License-Identifier: MIT */
/*
 * round: one request to each member at the same time, until it is decided.
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
#include "quorum/round.h"

#include "base/clock.h"

#define LINGER_PART 20 /* of the time for an answer, for the others when it is decided; and yet */
#define LINGER_MIN_MS 20
#define LINGER_MAX_MS 100

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_skipped(const struct round *round, size_t i)
{
    return (round->skip >> i & 1) != 0;
}

static void ask_one(struct quorum *quorum, const struct round *round, size_t i,
                    struct rlock_deadline deadline)
{
    struct rlock_deadline connect = deadline_in(deadline, quorum->connect_ms);
    struct rlock_deadline answer = deadline_in(deadline, quorum->connect_ms + round->reply_ms);
    struct member_limits limits = {.connect_deadline_ms = connect.at_ms,
                                   .block_ms = round->block_ms,
                                   .reply_ms = round->reply_ms,
                                   .may_learn_topology = !round->supersedes_pending};
    struct member *member = &quorum->member[i];
    struct requests_params when = {.block_ms = round->block_ms, .fence = round->fence};
    struct request request;

    member->is_behind = false;
    when.not_after_ms = member_server_ms(member, answer.at_ms);
    if (!round->looks && round->request == NULL)
        round->ask(round->owner, &request, &when);
    if (round->looks)
        member_look(member, limits);
    else
        member_ask(member, round->request != NULL ? round->request : &request, limits);
    if (member->state == RLOCK_PENDING)
        member_step(member);
}

/* A member that hasn't answered an earlier round. Returns whether it can be asked again. */
static bool is_through(const struct round *round, struct member *member)
{
    struct request request;

    member_step(member);
    if (member->state != RLOCK_PENDING)
        return true;
    if (round->supersedes_pending) {
        round->ask(round->owner, &request, &(struct requests_params){.block_ms = 0});
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

static void begin(struct quorum *quorum, const struct round *round, struct rlock_deadline deadline)
{
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        if (is_skipped(round, i))
            continue;
        member->is_repeated = false;
        if (member->state != RLOCK_PENDING || is_through(round, member))
            ask_one(quorum, round, i, deadline);
    }
}

static void give_up(const struct round *round, struct member *member)
{
    struct request undo;

    if (round->undo)
        requests_undo(round->owner, &undo, NULL);
    member_abandon(member, round->undo ? &undo : NULL);
}

/* Fill the poll set; returns the earliest time to look, or 0 when nothing is pending. */
static int64_t watch_pending(struct quorum *quorum, const struct round *round, size_t *n_watched)
{
    int64_t wake = 0;
    size_t i;

    *n_watched = 1; /* the first is the stop descriptor */
    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        if (member->state != RLOCK_PENDING || is_skipped(round, i))
            continue;
        *n_watched += member_watch(member, &quorum->watch[*n_watched]);
        if (wake == 0 || member_wake_ms(member) < wake)
            wake = member_wake_ms(member);
    }
    return wake;
}

static void step_pending(struct quorum *quorum, const struct round *round, bool over,
                         struct rlock_deadline deadline)
{
    int64_t now = rlock_clock_ms();
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        if (member->state != RLOCK_PENDING || is_skipped(round, i))
            continue;
        member_step(member);
        if (member->state != RLOCK_PENDING && member->is_behind && over)
            member_discard(member); /* its grant of the first round is no noted fence */
        else if (member->state != RLOCK_PENDING && member->is_behind)
            ask_one(quorum, round, i, deadline);
        else if (member->state == RLOCK_PENDING && member->is_behind &&
                 now >= member_deadline_ms(member))
            member_abandon(member, NULL);
        else if (member->state == RLOCK_PENDING && !member->is_behind &&
                 (over || now >= member_deadline_ms(member)))
            give_up(round, member);
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

static bool says_yes(const struct quorum *quorum, const struct round *round,
                     const struct member *member)
{
    struct answer answer;

    if (round->needs_memory && members_young_ms(quorum, member) > 0)
        return false;
    if (round->block_ms > 0)
        return !resp_is_nil(member->reply);
    if (round->read == NULL)
        return true;
    return round->read(member->reply, &answer, NULL) == RLOCK_OK &&
           (answer.kind == ANSWER_GRANTED || answer.kind == ANSWER_RESTORED);
}

/* Can the rest change anything yet? */
static bool is_decided(const struct quorum *quorum, const struct round *round)
{
    size_t yes = 0;
    size_t no = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        const struct member *member = &quorum->member[i];

        if (is_skipped(round, i) || member->state == RLOCK_PENDING)
            continue;
        if (member->state == RLOCK_OK && says_yes(quorum, round, member))
            yes++;
        else
            no++;
    }
    return yes >= (round->enough > 0 ? round->enough : quorum->need) ||
           no > quorum->n - quorum->need;
}

static int64_t linger_ms(const struct round *round, int64_t took_ms)
{
    int64_t linger = round->reply_ms / LINGER_PART;

    if (round->is_quick)
        return 0;
    if (round->block_ms == 0 && took_ms > linger)
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

enum rlock_status round_run(struct quorum *quorum, const struct round *round,
                            struct rlock_deadline deadline)
{
    struct pollfd *stop = &quorum->watch[0];
    int64_t began_ms = rlock_clock_ms();
    int64_t linger_until = RLOCK_NEVER;
    bool is_to_tell = round->is_told;
    size_t n_watched;
    int64_t wake;
    bool over;

    stop->revents = 0;
    begin(quorum, round, deadline);
    while ((wake = watch_pending(quorum, round, &n_watched)) != 0) {
        if (linger_until == RLOCK_NEVER && is_decided(quorum, round))
            linger_until = rlock_clock_ms() + linger_ms(round, rlock_clock_ms() - began_ms);
        if (rlock_clock_ms() >= linger_until)
            break;
        stop->fd = deadline.stop_fd;
        stop->events = POLLIN;
        stop->revents = 0;
        wake = earlier(wake, linger_until);
        wake = earlier(wake, tell_hooks(quorum, &is_to_tell));
        poll(quorum->watch, n_watched, deadline_poll_ms(deadline_at(deadline, wake)));
        over = stop->revents != 0 || deadline_has_passed(deadline);
        step_pending(quorum, round, over, deadline);
        if (over)
            break;
    }
    return stop->revents != 0 ? RLOCK_STOPPED : RLOCK_OK;
}

void round_drop(struct quorum *quorum, const struct round *round)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].state == RLOCK_PENDING && !is_skipped(round, i))
            give_up(round, &quorum->member[i]);
}

bool round_unanswered(const struct quorum *quorum)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].state != RLOCK_OK && member_sent_ms(&quorum->member[i]) != 0)
            return true;
    return false;
}
