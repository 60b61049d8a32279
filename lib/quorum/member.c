/* SPDX-License-Identifier: MIT */
/*
 * member: one server of a quorum, the request that it was sent, and what it answered.
 *
 * A request that no server has executed is sent again: to the server that a redirect, the nodes of
 * a Cluster or the Sentinels name; as EVAL after NOSCRIPT; with a password that has changed. A
 * request that may have been executed is not: only the caller knows whether that may happen twice.
 */
#include "quorum/member.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "base/reason.h"
#include "lock/scripts.h"
#include "server/error_reply.h"

#include <stdlib.h>
#include <string.h>

#define CLOCK_MAX_MS (INT64_C(1) << 53) /* a server's time above this counts as not known */
#define CLOCK_SLACK_MS 100  /* how far a server's clock may jump ahead between two replies */
#define REDIRECT_LIMIT 8    /* followed in a row, before a back-off; there is no limit in all */
#define BACK_OFF_LOW_MS 10  /* the shortest back-off; each back-off is a random time */
#define BACK_OFF_HIGH_MS 50 /* the longest back-off */
/* How long a server that the Sentinels named may take until the request can be sent to it. Doubled
 * after each failure. */
#define TRY_MS 500
#define FAILURES_MAX 6      /* after this many failures TRY_MS is not doubled again */
#define LOCATED_FOR_MS 1000 /* the Sentinels are asked again when their answer is older than this */
/* While the known primary is connected, the Sentinels get the lesser of these two to answer: */
#define SENTINELS_MAX_MS 200
#define SENTINELS_PART 4 /* reply_ms / SENTINELS_PART */
/* If a request is abandoned less than reply_ms / LATE_PART before its deadline, or after it, the
 * server was too slow: the next request goes to another server, if one is known. */
#define LATE_PART 4
/* A request that had less time than this says nothing about its server if no reply comes: a
 * quorum's acquire sends such requests when its own time is nearly over. */
#define FAULT_MIN_MS 100

/* How requests find a server, by the kind of server that the URL names. */
struct server_kind {
    /* Send the request, or first ask others which server it must go to. */
    void (*start)(struct member *member);
    /* After this fault of the current server: may another server be able to answer? */
    bool (*knows_another)(const struct member *member, enum rlock_status st);
    /* After a failure of the current server: choose another one for the next request, if known. */
    void (*turn_to_another)(struct member *member);
};

static const struct server_kind *kind_of(const struct member *member);

static bool has_sentinels(const struct member *member)
{
    return member->url.kind == URL_SENTINEL;
}

static bool is_connected(const struct endpoint *endpoint)
{
    return conn_is_ready(&endpoint->conn);
}

/* ---- choosing the server to ask ---- */

static void configure(const struct member *member, struct conn *conn)
{
    const struct conn_settings settings = {.password = member->password,
                                           .password_source = member->password_source,
                                           .tls = member->tls,
                                           .reply_bytes = member->reply_bytes,
                                           .must_be_primary = has_sentinels(member),
                                           .wants_server_info = member->is_one_of_several};

    conn_configure(conn, &settings);
}

/* Makes an endpoint another server's: closes the connection, and moves `url` into the endpoint. */
static void set_endpoint(struct member *member, struct endpoint *endpoint, struct url *url)
{
    member->route.has_heard = member_has_heard(member);
    conn_fini(&endpoint->conn);
    url_fini(&endpoint->url);
    url_move(&endpoint->url, url);
    conn_init(&endpoint->conn, &endpoint->url);
    configure(member, &endpoint->conn);
    endpoint->id = ++member->route.last_id;
}

/* Makes the server `url` the primary; route->redirect becomes the former one. Empties `url`. */
static void set_primary(struct member *member, struct url *url)
{
    struct member_route *route = &member->route;
    struct endpoint *former = route->primary;

    conn_abandon(&former->conn, NULL);
    if (!url_is_same(&route->redirect->url, url))
        set_endpoint(member, route->redirect, url);
    url_fini(url);
    route->primary = route->redirect;
    route->redirect = former;
    route->knows_topology = false; /* this server may know newer nodes: CLUSTER NODES is due */
    member->server.knows_clock = false;
}

/*
 * Closes the connection to a server that is a replica now, and so can't grant locks. The address
 * may be a host name or a proxy, and a new connection may lead to the new primary.
 */
static void leave_replica(struct member *member)
{
    struct conn *conn = &member->route.current->conn;

    conn_abandon(conn, NULL);
    conn_avoid_address(conn);
    member->server.knows_clock = false; /* the next connection may lead to another server */
}

/* ---- opening and closing a member ---- */

static void init(struct member *member, const char *password,
                 struct password_source *password_source)
{
    struct member_route *route = &member->route;

    *member = (struct member){
        .state = RLOCK_OK, .password = password, .password_source = password_source};
    route->primary = route->current = &route->endpoint[0];
    route->redirect = &route->endpoint[1];
    conn_init(&route->primary->conn, &route->primary->url);
    conn_init(&route->redirect->conn, &route->redirect->url);
    cluster_init(&route->cluster, &member->url);
}

enum rlock_status member_open(struct member *member, const char *url, const char *password,
                              struct password_source *password_source, struct rlock_error *err)
{
    struct member_route *route = &member->route;
    enum rlock_status st;

    init(member, password, password_source);
    st = url_parse(&member->url, url, err);
    if (st == RLOCK_OK && has_sentinels(member))
        st = sentinel_init(&route->sentinel, &member->url, err);
    else if (st == RLOCK_OK)
        st = url_copy(&route->primary->url, &member->url, err);
    configure(member, &route->primary->conn);
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
        return err_set(
            err, RLOCK_E_CONFIG, 0,
            "%s: a user for the Sentinels is set, but no password (--sentinel-password-file)",
            member->url.shown);
    for (i = 0; user != NULL && i < member->url.n_sentinels; i++)
        if (url_set_user(&member->url.sentinel[i], user, err) != RLOCK_OK)
            return RLOCK_E_MEMORY;
    sentinel_set_password(&member->route.sentinel, password, password_source);
    return RLOCK_OK;
}

enum rlock_status member_open_one_sentinel(struct member *member, const struct member *of,
                                           size_t nth)
{
    const struct conn_settings *settings = &of->route.sentinel.settings;
    enum rlock_status st;

    init(member, settings->password, settings->password_source);
    member->tls = of->tls;
    st = url_copy(&member->url, &of->url.sentinel[nth], NULL);
    return st == RLOCK_OK ? url_copy(&member->route.primary->url, &member->url, NULL) : st;
}

void member_set_tls(struct member *member, struct tls_context *tls)
{
    member->tls = tls;
}

void member_join(struct member *member, size_t n_members, size_t reply_bytes,
                 const char *client_name)
{
    member->is_one_of_several = n_members > 1;
    member->reply_bytes = reply_bytes;
    member->client_name = client_name;
}

void member_visit(struct member *member, struct url *url)
{
    cluster_fini(&member->route.cluster);
    if (url_is_same(&member->route.primary->url, url))
        url_fini(url);
    else
        set_primary(member, url);
}

static void free_request(struct member_request *request)
{
    if (request->bytes != NULL)
        explicit_bzero(request->bytes, request->n_bytes); /* it contains tokens */
    free(request->bytes);
    request->bytes = NULL;
    request->n_bytes = 0;
}

void member_forget_password(struct member *member)
{
    struct member_route *route = &member->route;
    size_t i;

    url_clear_password(&member->url);
    for (i = 0; i < 2; i++) {
        url_clear_password(&route->endpoint[i].url);
        conn_clear_password(&route->endpoint[i].conn);
    }
    cluster_clear_passwords(&route->cluster);
    if (has_sentinels(member))
        sentinel_clear_passwords(&route->sentinel);
}

void member_close(struct member *member)
{
    struct member_route *route = &member->route;
    size_t i;

    for (i = 0; i < 2; i++) {
        conn_fini(&route->endpoint[i].conn);
        url_fini(&route->endpoint[i].url);
    }
    if (has_sentinels(member))
        sentinel_fini(&route->sentinel);
    cluster_fini(&route->cluster);
    free_request(&member->request);
    url_fini(&member->url);
}

/* ---- sending the request to a server ---- */

bool member_lacks_topology(const struct member *member)
{
    return !member->route.knows_topology && !has_sentinels(member);
}

/*
 * Is it time to send CLUSTER NODES before the request? Each primary is asked once. A new connection
 * of one of several members sends INFO first, and CLUSTER NODES only with a later request.
 */
static bool is_time_for_topology(const struct member *member)
{
    const struct member_route *route = &member->route;

    return member->request.limits.is_in_long_use && member_lacks_topology(member) &&
           (!member->is_one_of_several || is_connected(route->primary));
}

uint64_t member_connection(const struct member *member)
{
    const struct endpoint *current = member->route.current;

    return (uint64_t)current->id << 32 | current->conn.n_connections;
}

/*
 * A request that relies on WATCH must go by the connection on which the key is watched. If that
 * connection was closed, the request ends in a fault before it is sent; the caller begins again.
 */
static enum rlock_status check_connection(struct member *member, enum rlock_status st)
{
    uint64_t needed = member->request.connection;

    if (st != RLOCK_PENDING || needed == 0 || member_connection(member) == needed)
        return st;
    conn_abandon(&member->route.current->conn, NULL);
    return err_set(&member->err, RLOCK_E_SERVER, 0,
                   "the connection was closed between WATCH and EXEC");
}

/* Sends the request to a server. Connects first, if the connection is closed. */
static enum rlock_status ask_at(struct member *member, struct endpoint *endpoint,
                                enum conn_preamble preamble)
{
    struct member_request *request = &member->request;
    struct conn *conn = &endpoint->conn;
    int64_t deadline = request->limits.connect_deadline_ms;
    enum rlock_status st;
    int64_t try_deadline = rlock_clock_ms() + ((int64_t)TRY_MS << member->route.n_failures);

    member->reply = NULL;
    member->route.current = endpoint;
    request->phase = MEMBER_EXCHANGING;
    request->try_deadline_ms =
        has_sentinels(member) ? clock_earlier(try_deadline, deadline) : deadline;
    configure(member, conn);
    if (preamble == CONN_NO_PREAMBLE && is_time_for_topology(member))
        preamble = CONN_CLUSTER_NODES;
    if (member->client_name != NULL && request->limits.is_in_long_use)
        conn_name(conn, member->client_name);
    st = conn_start_request(conn, preamble, request->bytes, request->n_bytes, deadline,
                            &member->err);
    if (st == RLOCK_PENDING)
        conn_expect_replies(conn, request->n_replies);
    st = check_connection(member, st);
    if (conn->preamble == CONN_CLUSTER_NODES) /* a new connection may have sent INFO instead */
        member->route.knows_topology = true;
    return st;
}

/*
 * Lets a request that no server has executed wait for a moment before the member sends it again. If
 * too little time is left, or if the request is a waiter's BLPOP (block_ms), the request ends in
 * the fault `st` at once: the waiter must ask for the lock before it blocks again.
 */
static enum rlock_status back_off(struct member *member, enum rlock_status st)
{
    struct member_request *request = &member->request;

    request->retry_at_ms = rlock_clock_ms() + random_between(BACK_OFF_LOW_MS, BACK_OFF_HIGH_MS);
    if (request->limits.block_ms > 0 || request->retry_at_ms >= request->limits.connect_deadline_ms)
        return st;
    err_prefix(&member->err, member->route.current->url.shown);
    request->phase = MEMBER_BACKING_OFF;
    return RLOCK_PENDING;
}

/* ---- acting on error replies ---- */

/* Follows a MOVED or ASK of a Cluster's node to the node `to`. Empties `to`. */
static enum rlock_status follow_redirect(struct member *member, enum error_reply kind,
                                         struct url *to, enum rlock_status st)
{
    struct member_route *route = &member->route;
    struct member_request *request = &member->request;

    if (to->is_tls && to->alias == NULL && url_is_number(to->host) && !route->knows_topology &&
        ++request->n_redirects <= REDIRECT_LIMIT) {
        /* The redirect names the node by its IP address, but the node's certificate may be for its
         * host name. So we ask for the host names first, and then send the request. */
        url_fini(to);
        return ask_at(member, route->current, CONN_CLUSTER_NODES);
    }
    if (kind == ERROR_REPLY_MOVED)
        set_primary(member, to);
    else if (!url_is_same(&route->redirect->url, to))
        set_endpoint(member, route->redirect, to);
    url_fini(to);
    if (++request->n_redirects > REDIRECT_LIMIT) {
        request->n_redirects = 0;
        return back_off(member, st);
    }
    if (kind == ERROR_REPLY_MOVED && request->limits.block_ms > 0)
        return st; /* the waiter must ask the other node for the lock before it blocks there */
    if (kind == ERROR_REPLY_MOVED)
        return ask_at(member, route->primary, CONN_NO_PREAMBLE);
    return ask_at(member, route->redirect, CONN_ASKING);
}

/*
 * Sends request->bytes to the server that has just answered. If the last request was sent there by
 * an ASK redirect, ASKING precedes this one, too.
 */
static enum rlock_status ask_there_again(struct member *member)
{
    struct endpoint *current = member->route.current;
    bool is_asking = current->conn.preamble == CONN_ASKING;

    return ask_at(member, current, is_asking ? CONN_ASKING : CONN_NO_PREAMBLE);
}

/* Sends the script's text by EVAL: the server doesn't know its SHA1, or denies EVALSHA. */
static enum rlock_status use_eval(struct member *member)
{
    struct member_request *request = &member->request;
    const char *script = request->script;
    enum rlock_status st;

    request->script = NULL;
    st = request_encoded_use_eval(script, &request->bytes, &request->n_bytes, &member->err);
    return st != RLOCK_OK ? st : ask_there_again(member);
}

/* Did a server refuse a password that was looked up? Then a new lookup may find another one. */
static bool is_password_replaceable(const struct member *member)
{
    const struct member_route *route = &member->route;

    if (member->err.reason == RLOCK_REASON_SENTINEL_LOGIN)
        return password_source_is_set(route->sentinel.settings.password_source);
    return reason_is_login(member->err.reason) && conn_looks_password_up(&route->current->conn);
}

bool member_may_retry_password(const struct member *member)
{
    return member->state > RLOCK_PENDING && member->server.has_answered &&
           is_password_replaceable(member);
}

/*
 * Must the member look the password up again, and send the request again? The password may have
 * changed since the last lookup, so the member looks it up again once for each request.
 */
static bool is_to_retry_password(struct member *member, enum rlock_status st)
{
    bool is_first = !member->request.has_retried_password;

    if (st != RLOCK_E_REFUSED || !is_password_replaceable(member))
        return false;
    member->request.has_retried_password = true;
    return is_first;
}

static bool is_redirect(enum error_reply kind)
{
    return kind == ERROR_REPLY_MOVED || kind == ERROR_REPLY_ASK;
}

/*
 * Acts on an error reply. Returns RLOCK_PENDING if the request was sent again or will be, else the
 * fault that the reply means.
 */
static enum rlock_status handle_error_reply(struct member *member, const char *reply)
{
    struct conn *conn = &member->route.current->conn;
    enum error_reply kind;
    enum rlock_status st = error_reply_read(reply, conn_password(conn), &kind, &member->err);
    bool is_login = reason_is_login(member->err.reason);
    struct url to = {.host = NULL};
    enum rlock_status redirected;
    char place[SCRIPT_PLACE_BYTES];

    /* an error without a known reason may be a bug in the script: name the script's line */
    if (member->err.reason == RLOCK_REASON_NONE && script_find_place(reply, place))
        err_suffix(&member->err, place);
    if (kind != ERROR_REPLY_PARTLY_EXECUTED)
        member->request.sent_ms = 0; /* the server has executed no part of the request */
    if (kind == ERROR_REPLY_NOSCRIPT && member->request.script != NULL)
        return use_eval(member);
    if (is_redirect(kind) && member->request.stays)
        return st;
    if (is_redirect(kind)) {
        redirected = cluster_redirect(&member->route.cluster, reply, conn->url, &to, &member->err);
        if (redirected != RLOCK_OK)
            return redirected;
    }
    if (!conn_is_ready(conn) || is_login)
        conn_abandon(conn, NULL);
    member->request.is_after_refusal = kind == ERROR_REPLY_TRY_AGAIN;
    if (is_to_retry_password(member, st) || kind == ERROR_REPLY_TRY_AGAIN)
        return back_off(member, st);
    return is_redirect(kind) ? follow_redirect(member, kind, &to, st) : st;
}

/* ---- ending a request ---- */

static bool is_demoted(const struct member *member, enum rlock_status st)
{
    return st == RLOCK_E_SERVER && member->err.reason == RLOCK_REASON_NOT_PRIMARY;
}

/* Did the lookup of the password fail? The server isn't at fault: the message doesn't name it. */
static bool is_lookup_fault(const struct member *member)
{
    return member->err.reason == RLOCK_REASON_PASSWORD_LOOKUP;
}

/* Keeps the reply to what conn sent before the request: CLUSTER NODES or INFO. */
static void read_preamble_reply(struct member *member, struct conn *conn)
{
    char *text = conn_take_preamble_reply(conn);

    if (text != NULL && conn->preamble == CONN_CLUSTER_NODES)
        cluster_set_nodes(&member->route.cluster, text, conn->url);
    else if (text != NULL)
        server_identity_read(&member->server.identity, text);
    free(text);
}

/*
 * Notes by how much the server's clock is ahead of ours. The server read its clock after we had
 * sent the request, so the true difference is at most the one that is noted.
 */
static void note_clock(struct member *member, int64_t server_ms)
{
    if (server_ms == 0)
        return; /* the reply doesn't tell the server's time */
    member->server.knows_clock = server_ms > 0 && server_ms < CLOCK_MAX_MS;
    if (member->server.knows_clock)
        member->server.ahead_ms = server_ms - member->request.sent_ms;
}

static void note_answer(struct member *member)
{
    const struct reply *answer = &member->answer;

    note_clock(member, answer->server_ms);
    if (answer->code == REPLY_OK || answer->code == REPLY_RESTORED)
        member->server.grant_connection = member_connection(member);
}

/* A malformed reply is a fault, but no reason to ask another server. */
static void read_answer(struct member *member)
{
    member->state = member->request.read(member->reply, &member->answer, &member->err);
    if (member->state == RLOCK_OK)
        note_answer(member);
    else
        err_prefix(&member->err, member->url.shown);
}

/*
 * Acts on a fault of the current server: turns to another server. Returns RLOCK_PENDING if the
 * request will be sent again, as no server has executed it; else the fault. Forgets the server's
 * clock, as the next reply may come from another server; not after a BLPOP (block_ms), which may
 * fail for other reasons.
 */
static enum rlock_status handle_fault(struct member *member, enum rlock_status st)
{
    if (member->request.limits.block_ms == 0)
        member->server.knows_clock = false;
    if (is_demoted(member, st))
        leave_replica(member);
    if (kind_of(member)->knows_another(member, st)) {
        kind_of(member)->turn_to_another(member);
        if (member->request.sent_ms == 0)
            st = back_off(member, st);
    }
    if (st > RLOCK_PENDING && !is_lookup_fault(member))
        err_prefix(&member->err, member->route.current->url.shown);
    return st;
}

/*
 * Acts on a whole reply, or on an error reply to AUTH, SELECT or ROLE. If the request has several
 * commands, acts on the first reply alone: if that is an error, such as MOVED, the later commands
 * have most likely failed in the same way. The caller reads the other replies.
 */
static enum rlock_status act_on_reply(struct member *member)
{
    const struct resp_value *first = resp_array_at(member->reply, 0);
    const char *error = resp_error(member->reply);

    if (error == NULL && member->request.n_replies > 1 && first != NULL)
        error = resp_error(first);
    return error != NULL ? handle_error_reply(member, error) : RLOCK_OK;
}

/* Acts on the result of a step of the connection: RLOCK_OK (a reply), RLOCK_PENDING or a fault. */
static void settle(struct member *member, enum rlock_status st)
{
    struct conn *conn = &member->route.current->conn;

    member->request.sent_ms = conn->sent_ms;
    if (st != RLOCK_PENDING)
        member->request.is_after_refusal = false;
    read_preamble_reply(member, conn);
    if (st == RLOCK_OK)
        st = act_on_reply(member);
    if (st == RLOCK_OK) {
        member->route.n_failures = 0;
        member->server.has_answered = true;
    }
    if (st > RLOCK_PENDING)
        st = handle_fault(member, st);
    member->state = st;
    if (st == RLOCK_OK && member->request.read != NULL)
        read_answer(member);
}

/* ---- what differs by the kind of server ---- */

static void start_at_primary(struct member *member)
{
    settle(member, ask_at(member, member->route.primary, CONN_NO_PREAMBLE));
}

static bool is_gone(enum rlock_status st)
{
    return st == RLOCK_E_UNREACHABLE || st == RLOCK_E_PROTOCOL;
}

static bool cluster_knows_another(const struct member *member, enum rlock_status st)
{
    return is_gone(st) && cluster_is_known(&member->route.cluster);
}

/* Turns to another node if the primary has failed. If the target of an ASK failed, does nothing. */
static void turn_to_another_node(struct member *member)
{
    struct member_route *route = &member->route;
    struct url other;

    if (route->current == route->primary && cluster_is_known(&route->cluster) &&
        cluster_locate(&route->cluster, &route->current->url, &other, NULL) == RLOCK_OK)
        set_primary(member, &other);
}

/*
 * Asks the Sentinels for the primary, then sends the request there. Asks them also while the known
 * primary is connected, as they may have replaced it. Then the Sentinels get less time, and if they
 * don't answer, the request goes to the known primary.
 */
static void start_at_sentinels(struct member *member)
{
    const struct member_limits *limits = &member->request.limits;
    struct member_route *route = &member->route;
    int64_t now = rlock_clock_ms();
    int64_t deadline = limits->connect_deadline_ms;
    bool has_primary = is_connected(route->primary);

    if (has_primary && (now < route->located_ms + LOCATED_FOR_MS || limits->block_ms > 0)) {
        start_at_primary(member);
        return;
    }
    if (has_primary)
        deadline = clock_earlier(
            deadline, now + clock_earlier(limits->reply_ms / SENTINELS_PART, SENTINELS_MAX_MS));
    member->request.phase = MEMBER_LOCATING;
    member->state = RLOCK_PENDING;
    sentinel_set_tls(&route->sentinel, member->tls);
    sentinel_ask(&route->sentinel, deadline);
}

static bool sentinels_know_another(const struct member *member, enum rlock_status st)
{
    return is_gone(st) || is_demoted(member, st);
}

static void turn_to_another_primary(struct member *member)
{
    struct member_route *route = &member->route;

    route->n_failures += route->n_failures < FAILURES_MAX;
    conn_abandon(&route->primary->conn, NULL);
    sentinel_avoid(&route->sentinel, &route->primary->url);
}

/* The functions for a URL with an address: the server there may be a node of a Cluster. */
static const struct server_kind by_address = {start_at_primary, cluster_knows_another,
                                              turn_to_another_node};
static const struct server_kind by_sentinels = {start_at_sentinels, sentinels_know_another,
                                                turn_to_another_primary};

static const struct server_kind *kind_of(const struct member *member)
{
    static const struct server_kind *const kinds[] = {
        [URL_TCP] = &by_address, [URL_UNIX] = &by_address, [URL_SENTINEL] = &by_sentinels};

    return kinds[member->url.kind];
}

/* ---- starting, stepping and abandoning a request ---- */

void member_ask(struct member *member, const struct request *request, reply_parse *read,
                struct member_limits limits)
{
    enum rlock_status st;

    free_request(&member->request);
    member->request = (struct member_request){.script = request->script,
                                              .connection = request->connection,
                                              .stays = request->stays,
                                              .n_replies = (size_t)request->n_commands,
                                              .read = read,
                                              .limits = limits,
                                              .try_deadline_ms = limits.connect_deadline_ms};
    member->route.current = member->route.primary;
    if (read != NULL)
        member->server.grant_connection = 0;
    st = request_encode(request, &member->request.bytes, &member->request.n_bytes, &member->err);
    if (st == RLOCK_OK)
        kind_of(member)->start(member);
    else
        member->state = st;
}

/*
 * Goes on with asking the Sentinels. Sends the request to the primary that they name, or, if they
 * haven't answered in time, to the known primary, if that is connected.
 */
static void step_locating(struct member *member)
{
    struct member_route *route = &member->route;
    struct member_request *request = &member->request;
    struct url to = {.host = NULL};
    enum rlock_status st = sentinel_locate(&route->sentinel, &to, &member->err);
    bool is_usable = st == RLOCK_OK || is_connected(route->primary);

    if (st == RLOCK_PENDING)
        return;
    if (is_usable)
        route->located_ms = rlock_clock_ms();
    if (st == RLOCK_OK && !url_is_same(&route->primary->url, &to))
        set_primary(member, &to);
    url_fini(&to);
    if (is_usable) {
        start_at_primary(member);
        return;
    }
    err_prefix(&member->err, member->url.shown);
    request->retry_at_ms = rlock_clock_ms() + random_between(BACK_OFF_LOW_MS, BACK_OFF_HIGH_MS);
    if (is_to_retry_password(member, st) &&
        request->retry_at_ms < request->limits.connect_deadline_ms)
        request->phase = MEMBER_BACKING_OFF;
    else
        member->state = st;
}

/* Has try_deadline_ms passed before the request could be sent to the server? */
static bool is_try_over(const struct member *member)
{
    const struct member_request *request = &member->request;

    return member->state == RLOCK_PENDING && request->phase == MEMBER_EXCHANGING &&
           request->sent_ms == 0 && rlock_clock_ms() >= request->try_deadline_ms &&
           request->try_deadline_ms < request->limits.connect_deadline_ms;
}

void member_step(struct member *member)
{
    struct conn *conn = &member->route.current->conn;

    switch (member->request.phase) {
    case MEMBER_LOCATING:
        step_locating(member);
        break;
    case MEMBER_BACKING_OFF:
        if (rlock_clock_ms() >= member->request.retry_at_ms)
            kind_of(member)->start(member);
        break;
    case MEMBER_EXCHANGING:
        settle(member, conn_step(conn, &member->reply, &member->err));
        if (is_try_over(member)) {
            err_set(&member->err, RLOCK_E_UNREACHABLE, 0, "no answer in time");
            conn_abandon(&member->route.current->conn, NULL);
            settle(member, RLOCK_E_UNREACHABLE);
        }
        break;
    }
}

bool member_abandon(struct member *member, struct request *behind)
{
    struct conn *conn = &member->route.current->conn;
    int64_t reply_ms = member->request.limits.reply_ms;
    /* If the caller gives up long before the request's deadline, because its stop descriptor is
     * readable or its own time is over, the server isn't at fault. */
    bool is_late = reply_ms >= FAULT_MIN_MS &&
                   rlock_clock_ms() >= member_deadline_ms(member) - reply_ms / LATE_PART;
    bool is_sent;

    switch (member->request.phase) {
    case MEMBER_LOCATING:
        sentinel_stop(&member->route.sentinel);
        member->state = err_set(&member->err, RLOCK_E_UNREACHABLE, 0,
                                "%s: no Sentinel answered in time", member->url.shown);
        return false;
    case MEMBER_BACKING_OFF: /* member->err is the fault before the back-off */
        member->state = member->err.status;
        return false;
    case MEMBER_EXCHANGING:
        break;
    }
    if (member->request.is_after_refusal) {
        member->state = member->err.status; /* which says more than that the reply is missing */
    } else {
        member->state =
            err_set(&member->err, RLOCK_E_UNREACHABLE, 0, "%s", conn_timeout_text(conn));
        err_prefix(&member->err, member->route.current->url.shown);
    }
    member->request.sent_ms = conn->sent_ms;
    is_sent = conn_abandon(conn, behind);
    if (member->request.limits.block_ms == 0)
        member->server.knows_clock = false;
    if (is_late)
        kind_of(member)->turn_to_another(member);
    return is_sent;
}

void member_reject(struct member *member, const char *refusal, const struct rlock_error *fault)
{
    const char *password = conn_password(&member->route.current->conn);
    enum error_reply kind;

    if (refusal != NULL)
        error_reply_read(refusal, password, &kind, &member->err);
    else
        member->err = *fault;
    member->state = handle_fault(member, member->err.status);
}

void member_conclude(struct member *member, const struct reply *answer, int64_t sent_ms)
{
    member->server.grant_connection = 0;
    member->request.sent_ms = sent_ms;
    if (answer == NULL)
        return;
    member->answer = *answer;
    note_answer(member);
}

void member_set_outcome(struct member *member, enum rlock_status state,
                        const struct rlock_error *err)
{
    member->state = state;
    if (state >= RLOCK_E_USAGE)
        member->err = *err;
}

/* ---- what is known about the server ---- */

const struct url *member_primary_url(const struct member *member)
{
    return &member->route.primary->url;
}

bool member_has_heard(const struct member *member)
{
    const struct member_route *route = &member->route;

    return route->has_heard || route->primary->conn.has_received ||
           route->redirect->conn.has_received;
}

bool member_is_logged_in(const struct member *member)
{
    return is_connected(member->route.primary);
}

bool member_has_password(const struct member *member)
{
    return conn_has_password(&member->route.primary->conn);
}

int64_t member_sent_ms(const struct member *member)
{
    return member->request.sent_ms;
}

bool member_has_granted(const struct member *member)
{
    return member->server.grant_connection != 0;
}

bool member_is_on_grant_connection(const struct member *member)
{
    return member->server.grant_connection == member_connection(member);
}

int64_t member_server_ms(const struct member *member, int64_t local_ms)
{
    return member->server.knows_clock ? local_ms + member->server.ahead_ms + CLOCK_SLACK_MS : 0;
}

/* ---- what a pending request waits for ---- */

size_t member_fill_pollfds(const struct member *member, struct pollfd *fds)
{
    const struct conn *conn = &member->route.current->conn;

    switch (member->request.phase) {
    case MEMBER_LOCATING:
        return sentinel_watch(&member->route.sentinel, fds);
    case MEMBER_BACKING_OFF:
        return 0;
    case MEMBER_EXCHANGING:
        break;
    }
    fds->fd = conn_fd(conn);
    fds->events = conn_events(conn);
    return 1;
}

int64_t member_wake_ms(const struct member *member)
{
    const struct member_request *request = &member->request;
    int64_t deadline = member_deadline_ms(member);

    switch (request->phase) {
    case MEMBER_LOCATING:
        return clock_earlier(deadline, sentinel_wake_ms(&member->route.sentinel));
    case MEMBER_BACKING_OFF:
        return clock_earlier(deadline, request->retry_at_ms);
    case MEMBER_EXCHANGING:
        break;
    }
    if (request->sent_ms == 0)
        deadline = clock_earlier(deadline, request->try_deadline_ms);
    return clock_earlier(deadline, conn_wake_ms(&member->route.current->conn));
}

int64_t member_deadline_ms(const struct member *member)
{
    const struct member_request *request = &member->request;

    if (request->phase != MEMBER_EXCHANGING || request->sent_ms == 0)
        return request->limits.connect_deadline_ms;
    return request->sent_ms + request->limits.block_ms + request->limits.reply_ms;
}
