/* SPDX-License-Identifier: MIT */
/*
 * quorum: one operation on all members, decided by majority.
 *
 * Every operation is a round: one request to each member at the same time, in
 * one thread, with one poll over all of them, so that a member that hangs
 * never delays the others and every deadline and every stop is seen in one
 * place. Source: "Distributed Locks with Redis", the Redlock algorithm; of one
 * member it is the single-instance algorithm.
 */
#include "quorum.h"

#include "clock.h"
#include "err.h"
#include "timing.h"

#include <stdlib.h>
#include <string.h>

#define ACQUIRE_REPLY_MAX_MS 2000
#define REPLY_BYTES (64 * 1024)
#define REPLY_BYTES_LONG (1024 * 1024) /* to who only looks, and may see the longest keys */

/* What TLS needs is loaded only where it is wanted. */
static enum rlock_status secure(struct quorum *quorum, const struct rlock_config *config,
                                struct member *member, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    if (!member->url.is_tls)
        return RLOCK_OK;
    if (quorum->tls == NULL)
        st = tls_open(&quorum->tls, config, err);
    member->tls = quorum->tls;
    return st;
}

enum rlock_status quorum_open(struct quorum *quorum, const struct rlock_config *config,
                              struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    *quorum = (struct quorum){
        .timing = config->timing, .connect_ms = config->connect_ms, .replicas = config->replicas};
    if (config->replicas < 0 || config->replicas > RLOCK_REPLICAS_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "replicas: 0 to %d are possible", RLOCK_REPLICAS_MAX);
    if (config->n_urls != 1)
        return err_set(err, RLOCK_E_CONFIG, 0, "exactly one server is needed");
    quorum->member = calloc(config->n_urls, sizeof *quorum->member);
    quorum->watch = calloc(config->n_urls * MEMBER_WATCH_MAX + 1, sizeof *quorum->watch);
    if (quorum->member == NULL || quorum->watch == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    quorum->need = config->n_urls / 2 + 1;
    quorum->reply_bytes = config->n_keys > 0 ? REPLY_BYTES : REPLY_BYTES_LONG;
    for (; st == RLOCK_OK && quorum->n < config->n_urls; quorum->n++) {
        struct member *member = &quorum->member[quorum->n];

        st = member_open(member, config->urls[quorum->n], config->password, err);
        if (st == RLOCK_OK)
            st = secure(quorum, config, member, err);
        member->reply_bytes = quorum->reply_bytes;
    }
    return st;
}

void quorum_close(struct quorum *quorum)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        member_close(&quorum->member[i]);
    tls_close(quorum->tls);
    free(quorum->member);
    free(quorum->watch);
}

/* What a round asks: the request for one member, and what takes it back. */
struct round {
    const struct lease *lease;
    lease_ask *ask;
    const struct request *request; /* what is asked where it isn't about the lease */
    int64_t block_ms;              /* how long the server may wait with its answer */
    int64_t reply_ms;              /* how long the answer may take beside that */
    bool undo;                     /* a request given up is to be undone */
    bool goes_on;                  /* it isn't the last request */
    bool is_told;                  /* whoever watches is to know when it is on its way */
};

static void begin(struct quorum *quorum, const struct round *round, struct rlock_until until)
{
    struct rlock_until connect = until_in(until, quorum->connect_ms);
    struct rlock_until answer = until_in(until, quorum->connect_ms + round->reply_ms);
    struct member_limits limits = {.connect_until_ms = connect.at_ms,
                                   .block_ms = round->block_ms,
                                   .reply_ms = round->reply_ms,
                                   .goes_on = round->goes_on};
    struct lease_when when = {.block_ms = round->block_ms};
    struct request request;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        when.not_after_ms = member_server_ms(member, answer.at_ms);
        if (round->request == NULL)
            round->ask(round->lease, &request, &when);
        member_ask(member, round->request != NULL ? round->request : &request, limits);
        if (member->state == RLOCK_PENDING)
            member_step(member);
    }
}

static void give_up(const struct round *round, struct member *member)
{
    struct request undo;

    if (round->undo)
        lease_ask_undo(round->lease, &undo, NULL);
    member_abandon(member, round->undo ? &undo : NULL);
}

/* Fill the poll set; returns the earliest time to look, or 0 when nothing is pending. */
static int64_t watch_pending(struct quorum *quorum, size_t *n_watched)
{
    int64_t wake = 0;
    size_t i;

    *n_watched = 1; /* the first is the stop descriptor */
    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        if (member->state != RLOCK_PENDING)
            continue;
        *n_watched += member_watch(member, &quorum->watch[*n_watched]);
        if (wake == 0 || member_wake_ms(member) < wake)
            wake = member_wake_ms(member);
    }
    return wake;
}

static void step_pending(struct quorum *quorum, const struct round *round, bool over)
{
    int64_t now = rlock_clock_ms();
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        if (member->state == RLOCK_PENDING)
            member_step(member);
        if (member->state == RLOCK_PENDING && (over || now >= member_deadline_ms(member)))
            give_up(round, member);
    }
}

static bool is_on_its_way(const struct quorum *quorum)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].state == RLOCK_PENDING && member_asked_ms(&quorum->member[i]) == 0)
            return false;
    return true;
}

/* One request to each member; back when each has answered, failed or taken too long. */
static enum rlock_status run(struct quorum *quorum, const struct round *round,
                             struct rlock_until until)
{
    struct pollfd *stop = &quorum->watch[0];
    bool is_to_tell = round->is_told;
    size_t n_watched;
    int64_t wake;

    begin(quorum, round, until);
    while ((wake = watch_pending(quorum, &n_watched)) != 0) {
        stop->fd = until.stop_fd;
        stop->events = POLLIN;
        stop->revents = 0;
        wake = watch_wake_ms(quorum->told, wake);
        if (is_to_tell && is_on_its_way(quorum)) {
            watch_asked(quorum->told);
            is_to_tell = false;
        }
        poll(quorum->watch, n_watched, until_poll_ms(until_at(until, wake)));
        watch_tick(quorum->told);
        step_pending(quorum, round, stop->revents != 0 || until_over(until));
        if (stop->revents != 0)
            return RLOCK_STOPPED;
    }
    return RLOCK_OK;
}

/* The fault of a round that too few members answered: the member's own, if there is one. */
static enum rlock_status fault(const struct quorum *quorum, struct rlock_error *err)
{
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        if (quorum->member[i].state == RLOCK_OK)
            continue;
        if (err != NULL)
            *err = quorum->member[i].err;
        return quorum->member[i].err.status;
    }
    return err_set(err, RLOCK_E_NO_QUORUM, 0, "too few members granted");
}

/* How the members answered a request for a grant. */
struct tally {
    size_t n_granted;
    size_t restored;
    size_t held;
    size_t gone;
    size_t late;
    size_t superseded;
    size_t released;
    size_t done;
    size_t other_mode;
    int64_t asked_ms;      /* the earliest of those who granted */
    uint64_t fence;        /* the greatest */
    int64_t left_ms;       /* the least; 0: not told */
    struct answer granted; /* the last of those who granted */
    struct answer held_by; /* the last of those where something is in the way */
};

static void add_grant(struct tally *tally, const struct member *member, const struct answer *answer)
{
    if (tally->n_granted++ == 0 || member_asked_ms(member) < tally->asked_ms)
        tally->asked_ms = member_asked_ms(member);
    if (answer->fence > tally->fence)
        tally->fence = answer->fence;
    if (tally->left_ms == 0 || answer->left_ms < tally->left_ms)
        tally->left_ms = answer->left_ms;
    tally->granted = *answer;
}

static void add(struct tally *tally, const struct member *member, const struct answer *answer)
{
    switch (answer->kind) {
    case ANSWER_RESTORED:
        tally->restored++;
        add_grant(tally, member, answer);
        break;
    case ANSWER_GRANTED:
        add_grant(tally, member, answer);
        break;
    case ANSWER_HELD:
        tally->held++;
        tally->held_by = *answer;
        break;
    case ANSWER_GONE:
        tally->gone++;
        break;
    case ANSWER_LATE:
        tally->late++;
        break;
    case ANSWER_SUPERSEDED:
        tally->superseded++;
        break;
    case ANSWER_RELEASED:
        tally->released++;
        break;
    case ANSWER_DONE:
        tally->done++;
        tally->held_by = *answer;
        break;
    case ANSWER_OTHER_MODE:
        tally->other_mode++;
        tally->held_by = *answer;
        break;
    }
}

static struct tally count(struct quorum *quorum, answer_read *read)
{
    struct tally tally = {.n_granted = 0};
    struct answer answer;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        member->granted_by = 0;
        if (member->state != RLOCK_OK)
            continue;
        member->state = read(member->reply, &answer, &member->err);
        if (member->state != RLOCK_OK) {
            err_prefix(&member->err, member->url.shown);
            continue;
        }
        member_saw_clock(member, answer.server_ms);
        add(&tally, member, &answer);
        if (answer.kind == ANSWER_GRANTED || answer.kind == ANSWER_RESTORED)
            member->granted_by = member_connection(member);
    }
    return tally;
}

bool quorum_unanswered(const struct quorum *quorum)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].state != RLOCK_OK && member_asked_ms(&quorum->member[i]) != 0)
            return true;
    return false;
}

static int64_t acquire_reply_ms(const struct rlock_timing *timing)
{
    return timing->renew_ms < ACQUIRE_REPLY_MAX_MS ? timing->renew_ms : ACQUIRE_REPLY_MAX_MS;
}

static enum rlock_status take_grant(struct quorum *quorum, struct lease *lease,
                                    const struct tally *tally, int64_t reply_ms,
                                    struct rlock_grant *grant)
{
    lease_take(lease, &tally->granted, tally->fence);
    timing_shorten(&quorum->timing, lease_ttl_ms(lease));
    *grant = (struct rlock_grant){.until_ms = timing_end(&quorum->timing, tally->asked_ms),
                                  .fence = tally->fence,
                                  .slot = lease->slot,
                                  .is_outer = !lease_is_ours(lease),
                                  .has_outer = lease_has_outer(lease),
                                  .timing = quorum->timing};
    memcpy(grant->token, lease_token(lease), sizeof grant->token);
    /* were we stopped meanwhile? Then too little of the lease is left, and we ask again */
    return rlock_clock_ms() > tally->asked_ms + reply_ms ? RLOCK_PENDING : RLOCK_OK;
}

enum rlock_status quorum_acquire(struct quorum *quorum, struct lease *lease,
                                 struct rlock_until until, struct rlock_grant *grant,
                                 struct rlock_obstacle *obstacle, int64_t *block_ms,
                                 struct rlock_error *err)
{
    struct round round = {.lease = lease,
                          .ask = lease_ask_acquire,
                          .reply_ms = acquire_reply_ms(&quorum->timing),
                          .undo = true,
                          .is_told = true};
    enum rlock_status st;
    struct tally tally;

    lease->attempt++;
    st = run(quorum, &round, until);
    tally = count(quorum, answer_read_grant);
    quorum->in_doubt = quorum->in_doubt || quorum_unanswered(quorum);
    if (tally.n_granted >= quorum->need) {
        if (st == RLOCK_OK)
            st = take_grant(quorum, lease, &tally, round.reply_ms, grant);
        quorum->in_doubt = st != RLOCK_OK;
        return st;
    }
    if (st == RLOCK_STOPPED)
        return st;
    if (tally.superseded > 0)
        return RLOCK_SUPERSEDED;
    if (tally.other_mode > 0)
        return err_set(err, RLOCK_E_USAGE, 0,
                       "an outer rlock holds it in another mode, which this one would wait for");
    if (tally.done > 0) {
        *obstacle = tally.held_by.obstacle;
        return RLOCK_DONE;
    }
    if (tally.held > 0) {
        *obstacle = tally.held_by.obstacle;
        obstacle->seen_ms = rlock_clock_ms();
        *block_ms = tally.held_by.block_ms;
        lease->ticket = tally.held_by.ticket;
        return RLOCK_BUSY;
    }
    return tally.late > 0 ? RLOCK_PENDING : fault(quorum, err);
}

enum rlock_status quorum_block(struct quorum *quorum, struct lease *lease, int64_t block_ms,
                               struct rlock_until until, struct rlock_error *err)
{
    struct round round = {.lease = lease,
                          .ask = lease_ask_wake,
                          .block_ms = lease_block_ms(lease, block_ms),
                          .reply_ms = acquire_reply_ms(&quorum->timing),
                          .goes_on = true};
    bool knew_clock = quorum->member[0].knows_clock;
    int n_moves = quorum->member[0].n_moves;
    enum rlock_status st = run(quorum, &round, until);

    /* the next attempt must not come late only because this wait was cut off */
    quorum->member[0].knows_clock = knew_clock && quorum->member[0].n_moves == n_moves;
    if (st == RLOCK_STOPPED)
        return st;
    if (quorum->member[0].state == RLOCK_OK)
        return answer_is_soon(quorum->member[0].reply) ? RLOCK_PENDING : RLOCK_OK;
    if (strstr(quorum->member[0].err.text, "timeout is not an integer") != NULL)
        lease->whole_seconds = true;
    return fault(quorum, err);
}

enum rlock_status quorum_renew(struct quorum *quorum, const struct lease *lease,
                               struct rlock_until until, int64_t *end_ms, bool *restored,
                               struct rlock_error *err)
{
    struct round round = {.lease = lease,
                          .ask = lease_ask_renew,
                          .reply_ms = quorum->timing.reply_ms,
                          .goes_on = true};
    enum rlock_status st = run(quorum, &round, until_in(until, quorum->timing.reply_ms));
    struct tally tally = count(quorum, answer_read_renewal);
    struct rlock_timing timing = quorum->timing;

    if (tally.n_granted >= quorum->need) {
        if (lease->is_adopted && tally.left_ms > 0)
            timing.ttl_ms = tally.left_ms;
        *end_ms = timing_end(&timing, tally.asked_ms);
        *restored = tally.restored > 0;
        return RLOCK_OK;
    }
    if (st == RLOCK_STOPPED)
        return st;
    if (tally.released > quorum->n - quorum->need)
        return err_set(err, RLOCK_RELEASED, 0, "it was released");
    if (tally.held + tally.gone + tally.released > quorum->n - quorum->need) {
        if (tally.held > 0)
            return err_set(err, RLOCK_LOST, 0, "it is held by %s", tally.held_by.obstacle.holder);
        return err_set(err, RLOCK_LOST, 0, "it is gone from the server");
    }
    return tally.late > 0 ? RLOCK_PENDING : fault(quorum, err);
}

static enum rlock_status give_back(struct quorum *quorum, const struct lease *lease, lease_ask *ask,
                                   struct rlock_until until, struct rlock_error *err)
{
    struct round round = {.lease = lease, .ask = ask, .reply_ms = quorum->timing.reply_ms};
    enum rlock_status st = run(quorum, &round, until_in(until, quorum->timing.reply_ms));
    struct answer answer;
    size_t released = 0;
    size_t answered = 0;
    size_t held = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        if (member->state == RLOCK_OK)
            member->state = answer_read_release(member->reply, &answer, &member->err);
        if (member->state != RLOCK_OK)
            continue;
        answered++;
        released += answer.kind == ANSWER_GRANTED;
        held += answer.kind == ANSWER_HELD;
    }
    if (released >= quorum->need)
        return RLOCK_OK;
    if (st == RLOCK_STOPPED)
        return st;
    if (answered < quorum->need)
        return fault(quorum, err);
    return held > 0 ? RLOCK_LOST : RLOCK_GONE;
}

enum rlock_status quorum_release(struct quorum *quorum, const struct lease *lease,
                                 struct rlock_until until, struct rlock_error *err)
{
    return give_back(quorum, lease, lease_ask_release, until, err);
}

enum rlock_status quorum_leave(struct quorum *quorum, const struct lease *lease,
                               struct rlock_until until, struct rlock_error *err)
{
    return give_back(quorum, lease, lease_ask_leave, until, err);
}

enum rlock_status quorum_ask(struct quorum *quorum, const struct request *request,
                             struct rlock_until until, const struct reply **reply,
                             struct rlock_error *err)
{
    return quorum_ask_slowly(quorum, request, 0, until, reply, err);
}

enum rlock_status quorum_ask_slowly(struct quorum *quorum, const struct request *request,
                                    int64_t block_ms, struct rlock_until until,
                                    const struct reply **reply, struct rlock_error *err)
{
    struct round round = {
        .request = request, .block_ms = block_ms, .reply_ms = quorum->timing.reply_ms};
    enum rlock_status st = run(quorum, &round, until);
    size_t i;

    if (st == RLOCK_STOPPED)
        return st;
    for (i = 0; i < quorum->n; i++) {
        if (quorum->member[i].state != RLOCK_OK)
            continue;
        *reply = quorum->member[i].reply;
        return RLOCK_OK;
    }
    return fault(quorum, err);
}
