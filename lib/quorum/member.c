/* SPDX-License-Identifier: MIT */
/*
 * member: one vote: a server, what it was asked last, and what its clock says.
 *
 * A request that was not executed goes on by itself, where the server, its
 * Cluster or its Sentinels say, as often as the time for it allows. One that
 * may have been executed is never sent a second time from here: that is for
 * those above, who know what it means to ask again.
 */
#include "quorum/member.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "server/error_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOCK_MAX_MS (INT64_C(1) << 53)
#define CLOCK_SLACK_MS 100 /* for a server clock that runs ahead a little between two answers */
#define HOPS_MAX 8
#define REST_LOW_MS 10
#define REST_HIGH_MS 50
#define TRY_MS 500  /* for a server that may be the wrong one to be connected */
#define TRIES_MAX 6 /* each time it gets twice as long */
#define LOOK_AFTER_MS 1000
#define FRESH_MS 1000  /* so long Sentinels needn't be asked again */
#define CONFIRM_MS 200 /* to answer, while there is somebody to ask without them */
#define CONFIRM_PART 4 /* of the time for the answer, at the most */
#define LATE_PART 4    /* of the same: so much of it may be missing, and it was late */

static bool has_sentinels(const struct member *member)
{
    return member->url.kind == URL_SENTINEL;
}

/* ---- where ---- */

/* Another server at a place. Takes `url`. */
static void settle_at(struct member *member, struct endpoint *endpoint, struct url *url)
{
    conn_fini(&endpoint->conn);
    url_fini(&endpoint->url);
    endpoint->url = *url;
    *url = (struct url){.host = NULL};
    conn_init(&endpoint->conn, &endpoint->url, member->password);
    endpoint->nth = ++member->n_endpoints;
    endpoint->conn.must_be_primary = has_sentinels(member);
    endpoint->conn.tls = member->tls;
    endpoint->conn.reply_bytes = member->reply_bytes;
}

/* Home is there from now on. Takes `url`. */
static void move_home(struct member *member, struct url *url)
{
    struct endpoint *left = member->primary;

    conn_abandon(&left->conn, NULL);
    if (!url_is_same(&member->redirect->url, url))
        settle_at(member, member->redirect, url);
    url_fini(url);
    member->primary = member->redirect;
    member->redirect = left;
    member->knows_clock = false; /* it is another one */
    member->has_looked = false;  /* and may know of newer nodes */
    member->n_moves++;
}

enum rlock_status member_open(struct member *member, const char *url, const char *password,
                              struct password_source *password_source, struct rlock_error *err)
{
    enum rlock_status st;

    *member = (struct member){
        .state = RLOCK_OK, .password = password, .password_source = password_source};
    member->primary = member->at = &member->endpoint[0];
    member->redirect = &member->endpoint[1];
    conn_init(&member->primary->conn, &member->primary->url, NULL);
    conn_init(&member->redirect->conn, &member->redirect->url, NULL);
    cluster_open(&member->cluster, &member->url);
    st = url_parse(&member->url, url, err);
    if (st == RLOCK_OK && has_sentinels(member))
        st = sentinel_open(&member->sentinel, &member->url, err);
    else if (st == RLOCK_OK)
        st = url_copy(&member->primary->url, &member->url, err);
    conn_init(&member->primary->conn, &member->primary->url, password);
    return st;
}

enum rlock_status member_open_sentinels(struct member *member, const char *user,
                                        const char *password,
                                        struct password_source *password_source,
                                        struct rlock_error *err)
{
    size_t i;

    if (!has_sentinels(member))
        return RLOCK_OK;
    if (user != NULL && password == NULL && !password_source_is_set(password_source))
        return err_set(err, RLOCK_E_CONFIG, 0, "%s: a user for the Sentinels, but no password",
                       member->url.shown);
    for (i = 0; i < member->url.n_sentinels; i++) {
        struct url *url = &member->url.sentinel[i];

        if (user != NULL && (url->user = strdup(user)) == NULL)
            return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    }
    sentinel_set_password(&member->sentinel, password, password_source);
    return RLOCK_OK;
}

void member_visit(struct member *member, struct url *url)
{
    cluster_close(&member->cluster);
    if (url_is_same(&member->primary->url, url))
        url_fini(url);
    else
        move_home(member, url);
}

static void forget_request(struct member *member)
{
    if (member->request != NULL)
        explicit_bzero(member->request, member->request_bytes); /* tokens stand in it */
    free(member->request);
    member->request = NULL;
    member->request_bytes = 0;
}

static void clear(char *password)
{
    if (password != NULL)
        explicit_bzero(password, strlen(password));
}

void member_forget_password(struct member *member)
{
    size_t i;

    clear(member->url.password);
    for (i = 0; i < 2; i++) {
        clear(member->endpoint[i].url.password);
        conn_clear_password(&member->endpoint[i].conn);
    }
    for (i = 0; i < member->cluster.n; i++)
        clear(member->cluster.node[i].password);
    if (has_sentinels(member)) {
        clear(member->sentinel.wrong.password);
        clear(member->sentinel.named.password);
        sentinel_clear_password(&member->sentinel);
    }
}

void member_close(struct member *member)
{
    size_t i;

    for (i = 0; i < 2; i++) {
        conn_fini(&member->endpoint[i].conn);
        url_fini(&member->endpoint[i].url);
    }
    if (has_sentinels(member))
        sentinel_close(&member->sentinel);
    cluster_close(&member->cluster);
    forget_request(member);
    url_fini(&member->url);
}

/* Home doesn't answer, or isn't what it should be: the next request goes elsewhere. */
static void turn_away(struct member *member)
{
    struct url other;

    if (has_sentinels(member)) {
        member->n_tries += member->n_tries < TRIES_MAX;
        conn_abandon(&member->primary->conn, NULL);
        sentinel_redirect(&member->sentinel, &member->primary->url);
    } else if (member->at == member->primary && cluster_is_known(&member->cluster) &&
               cluster_locate(&member->cluster, &member->at->url, &other, NULL) == RLOCK_OK) {
        move_home(member, &other);
    }
}

/* ---- the answers ---- */

bool member_may_look(const struct member *member)
{
    return !member->has_looked && !has_sentinels(member);
}

/*
 * Is it time to ask for the nodes of a Cluster? Only who may have to find it
 * again needs them: one that is about to ask again, and this isn't over soon. A
 * server that is none is asked once.
 */
static bool is_to_look(const struct member *member)
{
    return member->limits.may_learn_topology && member_may_look(member) &&
           (!member->is_to_tell || conn_is_ready(&member->primary->conn)) &&
           (cluster_is_known(&member->cluster) || member->limits.block_ms >= LOOK_AFTER_MS ||
            rlock_clock_ms() >= member->first_ms + LOOK_AFTER_MS);
}

static enum rlock_status ask_at(struct member *member, struct endpoint *endpoint,
                                enum conn_preamble preamble)
{
    int64_t deadline = member->limits.connect_deadline_ms;
    int64_t soon = rlock_clock_ms() + ((int64_t)TRY_MS << member->n_tries);

    member->reply = NULL;
    member->phase = MEMBER_ASKING;
    member->at = endpoint;
    endpoint->conn.tls = member->tls;
    endpoint->conn.password_source = member->password_source;
    endpoint->conn.reply_bytes = member->reply_bytes;
    endpoint->conn.wants_server_info = member->is_to_tell;
    member->try_ms = has_sentinels(member) && soon < deadline ? soon : deadline;
    if (member->is_looking || (preamble == CONN_NO_PREAMBLE && is_to_look(member))) {
        preamble = CONN_CLUSTER_NODES;
        member->has_looked = true;
    }
    return conn_start_request(&endpoint->conn, preamble, member->request, member->request_bytes,
                              deadline, &member->err);
}

/* Nothing was executed: ask again in a moment, if there is time. */
static enum rlock_status rest(struct member *member, enum rlock_status st)
{
    member->again_ms = rlock_clock_ms() + random_between(REST_LOW_MS, REST_HIGH_MS);
    if (member->limits.block_ms > 0 || member->again_ms >= member->limits.connect_deadline_ms)
        return st;
    err_prefix(&member->err, member->at->url.shown);
    member->phase = MEMBER_RESTING;
    return RLOCK_PENDING;
}

/* Go where a Cluster sends us. Who would wait there asks first what has become of the lock. */
static enum rlock_status follow(struct member *member, enum error_reply kind, struct url *to,
                                enum rlock_status st)
{
    bool is_wait = member->limits.block_ms > 0;

    if (to->is_tls && to->alias == NULL && url_is_number(to->host) && !member->has_looked) {
        url_fini(to); /* its certificate may be for a name: ask for that, and for the way again */
        member->has_looked = true;
        return ask_at(member, member->at, CONN_CLUSTER_NODES);
    }
    if (kind == ERROR_REPLY_MOVED)
        move_home(member, to);
    else if (!url_is_same(&member->redirect->url, to))
        settle_at(member, member->redirect, to);
    url_fini(to);
    if (++member->n_hops > HOPS_MAX) {
        member->n_hops = 0;
        return rest(member, st);
    }
    if (kind == ERROR_REPLY_MOVED && is_wait)
        return st;
    return ask_at(member, kind == ERROR_REPLY_MOVED ? member->primary : member->redirect,
                  kind == ERROR_REPLY_ASK ? CONN_ASKING : CONN_NO_PREAMBLE);
}

/* This server doesn't know the script by its SHA1, or its user may not name it so. */
static enum rlock_status spell_out(struct member *member)
{
    enum conn_preamble preamble = member->at->conn.preamble;
    const char *script = member->script;
    enum rlock_status st;

    member->script = NULL;
    st = request_encoded_use_eval(script, &member->request, &member->request_bytes, &member->err);
    return st != RLOCK_OK
               ? st
               : ask_at(member, member->at, preamble == CONN_ASKING ? preamble : CONN_NO_PREAMBLE);
}

/* ---- a password that was refused ---- */

static bool has_source(const struct member *member)
{
    if (member->err.reason == RLOCK_REASON_SENTINEL_LOGIN)
        return password_source_is_set(member->sentinel.password_source);
    return member->err.reason == RLOCK_REASON_LOGIN && member->at->conn.password == NULL &&
           password_source_is_set(member->password_source);
}

bool member_may_relog(const struct member *member)
{
    return member->state > RLOCK_PENDING && member->has_answered && has_source(member);
}

/* It may have been changed since it was looked up: once more, by a new connection. */
static bool is_to_relog(struct member *member, enum rlock_status st)
{
    bool expects_preamble_reply = !member->has_relogged;

    if (st != RLOCK_E_REFUSED || !has_source(member))
        return false;
    member->has_relogged = true;
    return expects_preamble_reply;
}

static bool is_redirect(enum error_reply kind)
{
    return kind == ERROR_REPLY_MOVED || kind == ERROR_REPLY_ASK;
}

/* An error reply. RLOCK_PENDING: the request is sent again, here or elsewhere. */
static enum rlock_status refused(struct member *member)
{
    struct conn *conn = &member->at->conn;
    const char *reply = resp_error(member->reply);
    enum error_reply kind;
    enum rlock_status st = error_reply_read(reply, conn_password(conn), &kind, &member->err);
    bool is_login = member->err.reason == RLOCK_REASON_LOGIN;
    struct url to = {.host = NULL};
    enum rlock_status redirected;

    if (kind != ERROR_REPLY_PARTLY_EXECUTED)
        member->sent_ms = 0; /* nothing of the request was executed */
    if (kind == ERROR_REPLY_NOSCRIPT && member->script != NULL)
        return spell_out(member);
    if (is_redirect(kind)) {
        redirected = cluster_redirect(&member->cluster, reply, &member->at->url, &to, &member->err);
        if (redirected != RLOCK_OK)
            return redirected;
    }
    if (is_login && conn->url->user != NULL && conn_password(conn) == NULL)
        err_suffix(&member->err, "no password was given for this user");
    if (!conn_is_ready(conn) || is_login)
        conn_abandon(conn, NULL);
    if (is_to_relog(member, st) || kind == ERROR_REPLY_TRY_AGAIN)
        return rest(member, st);
    return is_redirect(kind) ? follow(member, kind, &to, st) : st;
}

static bool is_demoted(const struct member *member, enum rlock_status st)
{
    return st == RLOCK_E_SERVER && member->err.reason == RLOCK_REASON_NOT_PRIMARY;
}

/* Do Sentinels, or other nodes of a Cluster, know a way out of this fault? */
static bool is_elsewhere(const struct member *member, enum rlock_status st)
{
    if (has_sentinels(member) && is_demoted(member, st))
        return true;
    return (has_sentinels(member) || cluster_is_known(&member->cluster)) &&
           (st == RLOCK_E_UNREACHABLE || st == RLOCK_E_PROTOCOL);
}

/*
 * A replica takes no locks. The address may lead to the new primary by now, be it a name or a
 * proxy's: but only a new connection does, and so the old one is given up.
 */
static void leave_demoted(struct member *member)
{
    conn_abandon(&member->at->conn, NULL);
    connector_avoid(&member->at->conn.connector);
    member->n_moves++; /* the next connection may be to a server with another clock */
}

static void see(struct member *member, struct conn *conn)
{
    if (conn->preamble == CONN_CLUSTER_NODES)
        cluster_see(&member->cluster, conn->preamble_reply, conn->url);
    else
        identity_read(&member->identity, conn->preamble_reply);
    free(conn->preamble_reply);
    conn->preamble_reply = NULL;
}

/* Is it a password that could not be looked up? Then the server has no part in it. */
static bool is_ours(const struct member *member, enum rlock_status st)
{
    return member->err.reason == RLOCK_REASON_LOGIN && st != RLOCK_E_REFUSED;
}

/* A server that is no Cluster, or doesn't tell whom it is with, has answered as well. */
static bool has_seen(const struct member *member)
{
    return member->is_looking && conn_is_ready(&member->at->conn);
}

static void settle(struct member *member, enum rlock_status st)
{
    member->sent_ms = member->at->conn.sent_ms;
    if (member->at->conn.preamble_reply != NULL)
        see(member, &member->at->conn);
    if (st == RLOCK_OK && resp_error(member->reply) != NULL && !has_seen(member))
        st = refused(member);
    else if (st == RLOCK_OK)
        member->n_tries = 0;
    member->has_answered = member->has_answered || st == RLOCK_OK;
    if (st > RLOCK_PENDING) {
        /* our estimate of its clock may be what made the server refuse, or it is another by now */
        member->knows_clock = false;
        if (is_demoted(member, st))
            leave_demoted(member);
        if (is_elsewhere(member, st)) {
            turn_away(member);
            st = member->sent_ms == 0 ? rest(member, st) : st;
        }
    }
    if (st > RLOCK_PENDING && !is_ours(member, st))
        err_prefix(&member->err, member->at->url.shown);
    member->state = st;
}

/* ---- a request ---- */

/* Sentinels are asked also while their primary answers: it may be one that was given up. */
static void start(struct member *member)
{
    int64_t now = rlock_clock_ms();
    int64_t deadline = member->limits.connect_deadline_ms;
    bool stands = conn_is_ready(&member->primary->conn);
    int64_t confirm = member->limits.reply_ms / CONFIRM_PART;

    if (!has_sentinels(member) || (stands && now < member->located_ms + FRESH_MS) ||
        (stands && member->limits.block_ms > 0)) {
        settle(member, ask_at(member, member->primary, CONN_NO_PREAMBLE));
        return;
    }
    if (stands && now + (confirm < CONFIRM_MS ? confirm : CONFIRM_MS) < deadline)
        deadline = now + (confirm < CONFIRM_MS ? confirm : CONFIRM_MS);
    member->phase = MEMBER_LOCATING;
    member->state = RLOCK_PENDING;
    member->sentinel.tls = member->tls;
    sentinel_ask(&member->sentinel, deadline);
}

static void begin(struct member *member, struct member_limits limits)
{
    member->reply = NULL;
    member->limits = limits;
    member->n_hops = 0;
    member->has_relogged = false;
    member->is_looking = false;
    if (member->first_ms == 0)
        member->first_ms = rlock_clock_ms();
    member->at = member->primary;
    member->sent_ms = member->at->conn.sent_ms = 0;
    forget_request(member);
    member->script = NULL;
}

void member_look(struct member *member, struct member_limits limits)
{
    begin(member, limits);
    member->is_looking = true;
    start(member);
}

void member_ask(struct member *member, const struct request *request, struct member_limits limits)
{
    enum rlock_status st;

    begin(member, limits);
    member->script = request->script;
    st = request_encode(request, &member->request, &member->request_bytes, &member->err);
    if (st == RLOCK_OK)
        start(member);
    else
        settle(member, st);
}

static void step_locating(struct member *member)
{
    struct url to = {.host = NULL};
    enum rlock_status st = sentinel_locate(&member->sentinel, &to, &member->err);

    if (st == RLOCK_PENDING)
        return;
    if (st == RLOCK_OK || conn_is_ready(&member->primary->conn))
        member->located_ms = rlock_clock_ms();
    if (st == RLOCK_OK && !url_is_same(&member->primary->url, &to))
        move_home(member, &to);
    url_fini(&to);
    if (st == RLOCK_OK || conn_is_ready(&member->primary->conn)) {
        settle(member, ask_at(member, member->primary, CONN_NO_PREAMBLE));
        return;
    }
    err_prefix(&member->err, member->url.shown);
    member->again_ms = rlock_clock_ms() + random_between(REST_LOW_MS, REST_HIGH_MS);
    if (is_to_relog(member, st) && member->again_ms < member->limits.connect_deadline_ms)
        member->phase = MEMBER_RESTING;
    else
        member->state = st;
}

void member_step(struct member *member)
{
    struct conn *conn = &member->at->conn;

    switch (member->phase) {
    case MEMBER_LOCATING:
        step_locating(member);
        break;
    case MEMBER_RESTING:
        if (rlock_clock_ms() >= member->again_ms)
            start(member);
        break;
    case MEMBER_ASKING:
        settle(member, conn_step(conn, &member->reply, &member->err));
        if (member->state == RLOCK_PENDING && member->phase == MEMBER_ASKING &&
            member->sent_ms == 0 && rlock_clock_ms() >= member->try_ms &&
            member->try_ms < member->limits.connect_deadline_ms) {
            err_set(&member->err, RLOCK_E_UNREACHABLE, 0, "no answer in time");
            conn_abandon(&member->at->conn, NULL);
            settle(member, RLOCK_E_UNREACHABLE);
        }
        break;
    }
}

void member_abandon(struct member *member, const struct request *undo)
{
    /* or does whoever asks have no more time, or no more interest? */
    bool is_late =
        rlock_clock_ms() >= member_deadline_ms(member) - member->limits.reply_ms / LATE_PART;

    switch (member->phase) {
    case MEMBER_LOCATING:
        sentinel_stop(&member->sentinel);
        member->state = err_set(&member->err, RLOCK_E_UNREACHABLE, 0,
                                "%s: no Sentinel answered in time", member->url.shown);
        return;
    case MEMBER_RESTING: /* why it rests is why it failed */
        member->state = member->err.status;
        return;
    case MEMBER_ASKING:
        break;
    }
    err_set(&member->err, RLOCK_E_UNREACHABLE, 0, "%s", conn_timeout_text(&member->at->conn));
    err_prefix(&member->err, member->at->url.shown);
    member->sent_ms = member->at->conn.sent_ms;
    conn_abandon(&member->at->conn, undo);
    member->knows_clock = false;
    member->state = RLOCK_E_UNREACHABLE;
    if (is_late)
        turn_away(member);
}

void member_discard(struct member *member)
{
    member->state =
        err_set(&member->err, RLOCK_E_UNREACHABLE, 0,
                "%s: it answered an earlier request too late to be asked again", member->url.shown);
}

/* ---- time ---- */

size_t member_watch(const struct member *member, struct pollfd *watch)
{
    switch (member->phase) {
    case MEMBER_LOCATING:
        return sentinel_watch(&member->sentinel, watch);
    case MEMBER_RESTING:
        return 0;
    case MEMBER_ASKING:
        break;
    }
    watch->fd = conn_fd(&member->at->conn);
    watch->events = conn_events(&member->at->conn);
    return 1;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t member_wake_ms(const struct member *member)
{
    int64_t deadline = member_deadline_ms(member);

    switch (member->phase) {
    case MEMBER_LOCATING:
        return earlier(deadline, sentinel_wake_ms(&member->sentinel));
    case MEMBER_RESTING:
        return earlier(deadline, member->again_ms);
    case MEMBER_ASKING:
        break;
    }
    if (member->sent_ms == 0)
        deadline = earlier(deadline, member->try_ms);
    return earlier(deadline, conn_wake_ms(&member->at->conn));
}

int64_t member_deadline_ms(const struct member *member)
{
    if (member->phase != MEMBER_ASKING || member->sent_ms == 0)
        return member->limits.connect_deadline_ms;
    return member->sent_ms + member->limits.block_ms + member->limits.reply_ms;
}

int64_t member_sent_ms(const struct member *member)
{
    return member->sent_ms;
}

uint64_t member_connection(const struct member *member)
{
    return (uint64_t)member->at->nth << 32 | member->at->conn.n_connections;
}

void member_saw_clock(struct member *member, int64_t server_ms)
{
    /* what is no time of this age is no time to reckon with */
    member->knows_clock = server_ms > 0 && server_ms < CLOCK_MAX_MS;
    if (member->knows_clock)
        member->ahead_ms = server_ms - member->sent_ms;
}

int64_t member_server_ms(const struct member *member, int64_t local_ms)
{
    return member->knows_clock ? local_ms + member->ahead_ms + CLOCK_SLACK_MS : 0;
}
