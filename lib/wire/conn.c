/* SPDX-License-Identifier: MIT */
/*
 * conn: one Redis server: a connection, its greeting, one request at a time.
 *
 * The request is sent only after the greeting was answered well: a client that
 * goes on after a failed AUTH runs as somebody else. With TLS the greeting, and
 * with it the password, is sent only after the server has proven who it is.
 */
#include "wire/conn.h"

#include "base/err.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_BYTES (1024 * 1024) /* of a thousand nodes and all slots on their own */
#define TLS_ALERT 0x15            /* the first byte of such a record */

void conn_init(struct conn *conn, const struct url *url, const char *password)
{
    *conn = (struct conn){.url = url, .fd = -1};
    conn->password = url->password != NULL ? url->password : password;
    connector_init(&conn->connector, url);
}

static void forget(char **bytes, size_t *n)
{
    if (*bytes != NULL)
        explicit_bzero(*bytes, *n); /* a password may stand in it */
    free(*bytes);
    *bytes = NULL;
    *n = 0;
}

const char *conn_password(const struct conn *conn)
{
    return conn->password != NULL ? conn->password : conn->secret;
}

bool conn_has_password(const struct conn *conn)
{
    return conn->password != NULL || password_source_is_set(conn->password_source);
}

void conn_clear_password(struct conn *conn)
{
    if (conn->secret != NULL)
        explicit_bzero(conn->secret, strlen(conn->secret));
    if (conn->greeting != NULL)
        explicit_bzero(conn->greeting, conn->greeting_bytes);
}

static void forget_greeting(struct conn *conn)
{
    forget(&conn->greeting, &conn->greeting_bytes);
    if (conn->secret != NULL)
        password_source_give_back(conn->password_source, &conn->secret);
}

static void conn_reset(struct conn *conn)
{
    if (conn->phase == CONN_AWAITING_PASSWORD)
        password_source_abandon(conn->password_source);
    connector_abandon(&conn->connector);
    tls_connection_free(conn->line);
    conn->line = NULL;
    socket_reset(&conn->fd);
    resp_reader_free(conn->resp);
    conn->resp = NULL;
    forget_greeting(conn);
    forget(&conn->out, &conn->out_bytes);
    conn->phase = CONN_CLOSED;
}

void conn_fini(struct conn *conn)
{
    conn_reset(conn);
    free(conn->preamble_reply);
    conn->preamble_reply = NULL;
    connector_fini(&conn->connector);
}

static enum rlock_status put(struct conn *conn, const char *bytes, size_t n, size_t *done,
                             struct rlock_error *err)
{
    if (conn->line != NULL)
        return tls_write(conn->line, bytes, n, done, err);
    return socket_send(conn->fd, bytes, n, done, err);
}

static enum rlock_status get(struct conn *conn, char *bytes, size_t n, size_t *done,
                             struct rlock_error *err)
{
    if (conn->line != NULL)
        return tls_read(conn->line, bytes, n, done, err);
    return socket_receive(conn->fd, bytes, n, done, err);
}

/* A standing connection on which anything came in unasked, or its end, is of no more use. */
static bool is_quiet(struct conn *conn)
{
    char byte;
    size_t n;

    return get(conn, &byte, 1, &n, NULL) == RLOCK_PENDING;
}

static enum rlock_status write_greeting(struct conn *conn, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    struct request request;

    conn->greetings = 0;
    if (conn_password(conn) != NULL || conn->url->user != NULL) {
        request_begin(&request, "AUTH");
        if (conn->url->user != NULL)
            request_add(&request, conn->url->user);
        request_add(&request, conn_password(conn) != NULL ? conn_password(conn) : "");
        st = request_encode(&request, &conn->greeting, &conn->greeting_bytes, err);
        conn->greetings++;
    }
    if (st == RLOCK_OK && conn->url->db != 0) {
        request_begin(&request, "SELECT");
        request_add_format(&request, "%d", conn->url->db);
        st = request_encode(&request, &conn->greeting, &conn->greeting_bytes, err);
        conn->greetings++;
    }
    if (st == RLOCK_OK && conn->must_be_primary) {
        request_begin(&request, "ROLE");
        st = request_encode(&request, &conn->greeting, &conn->greeting_bytes, err);
        conn->greetings++;
    }
    return st;
}

static enum rlock_status start_call(struct conn *conn, int64_t deadline_ms, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_PENDING;

    conn->n_connections++;
    conn->resp = resp_reader_new();
    if (conn->resp == NULL)
        st = err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    else if (conn->reply_bytes > 0)
        resp_reader_set_max_bytes(conn->resp, conn->reply_bytes);
    if (st == RLOCK_PENDING)
        st = connector_start(&conn->connector, deadline_ms, err);
    if (st == RLOCK_PENDING)
        conn->phase = CONN_CONNECTING;
    return st;
}

static enum rlock_status say_first(enum conn_preamble preamble, char **out, size_t *out_bytes,
                                   struct rlock_error *err)
{
    static const char *const words[][2] = {[CONN_ASKING] = {"ASKING"},
                                           [CONN_CLUSTER_NODES] = {"CLUSTER", "NODES"},
                                           [CONN_INFO_SERVER] = {"INFO", "server"}};
    struct request request;

    if (preamble == CONN_NO_PREAMBLE)
        return RLOCK_OK;
    request_begin(&request, words[preamble][0]);
    if (words[preamble][1] != NULL)
        request_add(&request, words[preamble][1]);
    return request_encode(&request, out, out_bytes, err);
}

/* The request behind what must be said first. */
static enum rlock_status load(struct conn *conn, enum conn_preamble preamble, const char *bytes,
                              size_t n, struct rlock_error *err)
{
    enum rlock_status st = say_first(preamble, &conn->out, &conn->out_bytes, err);
    char *whole = st == RLOCK_OK ? realloc(conn->out, conn->out_bytes + n) : NULL;

    conn->preamble = preamble;
    conn->expects_preamble_reply = preamble != CONN_NO_PREAMBLE;
    if (whole == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    if (n > 0)
        memcpy(whole + conn->out_bytes, bytes, n);
    conn->is_alone = n == 0;
    conn->out = whole;
    conn->out_bytes += n;
    return RLOCK_OK;
}

enum rlock_status conn_start_request(struct conn *conn, enum conn_preamble preamble,
                                     const char *bytes, size_t n, int64_t connect_deadline_ms,
                                     struct rlock_error *err)
{
    enum rlock_status st;

    if (conn->phase == CONN_READY && !is_quiet(conn))
        conn_reset(conn);
    if (conn->phase == CONN_CLOSED && conn->wants_server_info && preamble != CONN_ASKING)
        preamble = CONN_INFO_SERVER;
    forget(&conn->out, &conn->out_bytes);
    conn->sent = 0;
    conn->sent_ms = 0;
    st = load(conn, preamble, bytes, n, err);
    if (st == RLOCK_OK && conn->phase == CONN_CLOSED)
        st = start_call(conn, connect_deadline_ms, err);
    else if (st == RLOCK_OK)
        st = RLOCK_PENDING;
    if (st == RLOCK_PENDING && preamble == CONN_CLUSTER_NODES)
        resp_reader_set_max_bytes(conn->resp, NODES_BYTES);
    if (st != RLOCK_PENDING)
        conn_reset(conn);
    return st;
}

enum rlock_status conn_append_request(struct conn *conn, const char *bytes, size_t n,
                                      struct rlock_error *err)
{
    char *whole = realloc(conn->out, conn->out_bytes + n);

    if (whole == NULL) {
        conn_reset(conn);
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    }
    memcpy(whole + conn->out_bytes, bytes, n);
    conn->out = whole;
    conn->out_bytes += n;
    conn->is_alone = false;
    conn->sent_ms = 0; /* of this request nothing was sent yet */
    return RLOCK_PENDING;
}

bool conn_is_ready(const struct conn *conn)
{
    return conn->phase == CONN_READY;
}

int conn_fd(const struct conn *conn)
{
    if (conn->phase == CONN_AWAITING_PASSWORD)
        return password_source_fd(conn->password_source);
    return conn->phase == CONN_CONNECTING ? connector_fd(&conn->connector) : conn->fd;
}

/* TLS knows what it has yet to send, but not what we have yet to hand to it. */
short conn_events(const struct conn *conn)
{
    size_t whole = conn->phase == CONN_SETTING_UP ? conn->greeting_bytes : conn->out_bytes;
    short events = conn->line != NULL ? tls_events(conn->line) : POLLIN;

    if (conn->phase == CONN_CONNECTING)
        return connector_events(&conn->connector);
    if (conn->phase == CONN_AWAITING_PASSWORD)
        return POLLIN;
    if (conn->phase == CONN_TLS_HANDSHAKE)
        return events;
    return conn->sent < whole ? events | POLLOUT : events;
}

int64_t conn_wake_ms(const struct conn *conn)
{
    if (conn->phase == CONN_AWAITING_PASSWORD && password_source_fd(conn->password_source) < 0)
        return rlock_clock_ms(); /* another connection has heard the password for both */
    return conn->phase == CONN_CONNECTING ? connector_wake_ms(&conn->connector) : RLOCK_NEVER;
}

/* A server that waits for something else than TLS says nothing either. */
const char *conn_timeout_text(const struct conn *conn)
{
    switch (conn->phase) {
    case CONN_CONNECTING:
        return connector_is_resolving(&conn->connector) ? "resolve: timed out"
                                                        : "connect: timed out";
    case CONN_TLS_HANDSHAKE:
        return "TLS: timed out; does the server speak TLS on this port?";
    case CONN_AWAITING_PASSWORD:
        return "no password was found in time";
    case CONN_CLOSED:
    case CONN_SETTING_UP:
    case CONN_READY:
        break;
    }
    return "no answer in time";
}

static enum rlock_status send_rest(struct conn *conn, const char *bytes, size_t n,
                                   struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    size_t done;

    while (st == RLOCK_OK && conn->sent < n) {
        st = put(conn, bytes + conn->sent, n - conn->sent, &done, err);
        if (st == RLOCK_OK)
            conn->sent += done;
    }
    return st;
}

/* A port for TLS cuts off whoever doesn't speak it, sometimes after an alert. */
static enum rlock_status hint_at_tls(const struct conn *conn, enum rlock_status st,
                                     struct rlock_error *err)
{
    if (st == RLOCK_E_UNREACHABLE && !conn->has_received && conn->url->kind == URL_TCP &&
        !conn->url->is_tls)
        err_suffix(err, "does it want TLS (rediss://)?");
    return st;
}

/* The next whole reply, reading as long as there is something to read. */
static enum rlock_status next_reply(struct conn *conn, const struct resp_value **reply,
                                    struct rlock_error *err)
{
    enum rlock_status st = resp_reader_next(conn->resp, reply, err);
    char bytes[4096];
    size_t n;

    while (st == RLOCK_PENDING) {
        st = get(conn, bytes, sizeof bytes, &n, err);
        if (st != RLOCK_OK)
            return hint_at_tls(conn, st, err);
        if (!conn->has_received && conn->line == NULL && bytes[0] == TLS_ALERT)
            return err_set(err, RLOCK_E_PROTOCOL, 0, "the server speaks TLS here: use rediss://");
        conn->has_received = true;
        st = resp_reader_feed(conn->resp, bytes, n, err);
        if (st == RLOCK_OK)
            st = resp_reader_next(conn->resp, reply, err);
    }
    return st;
}

/* Before anything was asked only a refusal to talk at all is an answer. RLOCK_PENDING: nothing. */
static enum rlock_status hear_early(struct conn *conn, const struct resp_value **reply,
                                    struct rlock_error *err)
{
    enum rlock_status st = next_reply(conn, reply, err);

    if (st == RLOCK_OK && resp_error(*reply) == NULL)
        return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: an answer to nothing that was asked");
    return st;
}

/* The answer to the last part of a greeting, where a primary is needed. */
static enum rlock_status hear_role(const struct resp_value *reply, struct rlock_error *err)
{
    size_t n;
    const char *role = resp_string(resp_array_at(reply, 0), &n);

    if (resp_error(reply) != NULL) /* it isn't to be known; then a write shows it */
        return RLOCK_OK;
    if (role == NULL)
        return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: unexpected answer to the greeting");
    if (strcmp(role, "master") == 0)
        return RLOCK_OK;
    err_set(err, RLOCK_E_SERVER, 0, "it is no primary, though Sentinel says so");
    err_set_reason(err, RLOCK_REASON_NOT_PRIMARY);
    return RLOCK_E_SERVER;
}

static enum rlock_status step_greeting(struct conn *conn, const struct resp_value **reply,
                                       struct rlock_error *err)
{
    enum rlock_status st;

    st = send_rest(conn, conn->greeting, conn->greeting_bytes, err);
    while (st == RLOCK_OK && conn->greetings > 0) {
        st = next_reply(conn, reply, err);
        if (st != RLOCK_OK)
            return st;
        if (conn->greetings == 1 && conn->must_be_primary)
            st = hear_role(*reply, err);
        else if (resp_error(*reply) != NULL)
            return RLOCK_OK; /* the caller sees the refusal, and nothing more is sent */
        else if (!resp_is_ok(*reply))
            return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: unexpected answer to the greeting");
        conn->greetings--;
    }
    if (st == RLOCK_OK)
        st = hear_early(conn, reply, err);
    if (st == RLOCK_PENDING) {
        forget_greeting(conn);
        conn->phase = CONN_READY;
        conn->sent = 0;
    }
    return st;
}

/*
 * What may not be looked at is nothing to be told. But without ASKING a request
 * is sent back by where it was sent to, and it is for that that we may not ask.
 */
static bool is_kept_out(struct conn *conn, const struct resp_value *reply)
{
    if (!conn->expects_preamble_reply || conn->preamble != CONN_ASKING || resp_error(reply) == NULL)
        return false;
    conn->phase = CONN_SETTING_UP; /* with an answer still to come it is of no more use */
    return true;
}

static void hear_first(struct conn *conn, const struct resp_value *reply)
{
    size_t n;
    const char *text = resp_string(reply, &n);

    conn->expects_preamble_reply = false;
    if (conn->reply_bytes > 0)
        resp_reader_set_max_bytes(conn->resp, conn->reply_bytes);
    free(conn->preamble_reply);
    conn->preamble_reply = NULL;
    if (conn->preamble == CONN_INFO_SERVER ||
        (conn->preamble == CONN_CLUSTER_NODES && text != NULL))
        conn->preamble_reply =
            strdup(text != NULL ? text : ""); /* who may not ask it is told nothing */
}

static enum rlock_status step_request(struct conn *conn, const struct resp_value **reply,
                                      struct rlock_error *err)
{
    bool was_sent = conn->sent == conn->out_bytes;
    enum rlock_status st;

    if (conn->sent_ms == 0)
        conn->sent_ms = rlock_clock_ms();
    st = send_rest(conn, conn->out, conn->out_bytes, err);
    if (st == RLOCK_OK && !was_sent) /* no answer can be here yet: who polls will be told */
        return RLOCK_PENDING;
    if (st == RLOCK_OK || st == RLOCK_PENDING)
        st = next_reply(conn, reply, err);
    if (st == RLOCK_OK && is_kept_out(conn, *reply))
        return RLOCK_OK;
    if (st == RLOCK_OK && conn->expects_preamble_reply) {
        hear_first(conn, *reply);
        st = conn->is_alone ? st : next_reply(conn, reply, err);
    }
    if (st == RLOCK_OK && (conn->sent < conn->out_bytes || !resp_reader_is_empty(conn->resp)))
        st = err_set(err, RLOCK_E_PROTOCOL, 0, "reply: more than was asked for");
    return st;
}

static enum rlock_status start_greeting(struct conn *conn, struct rlock_error *err)
{
    enum rlock_status st = write_greeting(conn, err);

    conn->phase = CONN_SETTING_UP;
    conn->sent = 0;
    return st == RLOCK_OK ? RLOCK_PENDING : st;
}

/*
 * The password is looked up when the server has taken the connection: one that
 * can't be reached costs no lookup, however often it is tried.
 */
static enum rlock_status start_login(struct conn *conn, struct rlock_error *err)
{
    enum rlock_status st;

    if (conn->password != NULL || !password_source_is_set(conn->password_source))
        return start_greeting(conn, err);
    st = password_source_request(conn->password_source, err);
    if (st != RLOCK_OK)
        return st;
    conn->phase = CONN_AWAITING_PASSWORD;
    return RLOCK_PENDING;
}

static enum rlock_status step_login(struct conn *conn, struct rlock_error *err)
{
    enum rlock_status st = password_source_take(conn->password_source, &conn->secret, err);

    if (st != RLOCK_PENDING)
        conn->phase = CONN_SETTING_UP; /* it waits no longer */
    return st == RLOCK_OK ? start_greeting(conn, err) : st;
}

static enum rlock_status step_connecting(struct conn *conn, struct rlock_error *err)
{
    const char *names[TLS_NAMES] = {conn->url->host, conn->url->alias, conn->url->given};
    enum rlock_status st = connector_step(&conn->connector, &conn->fd, err);

    if (st != RLOCK_OK)
        return st;
    if (!conn->url->is_tls)
        return start_login(conn, err);
    conn->phase = CONN_TLS_HANDSHAKE;
    st = tls_connection_new(conn->tls, &conn->line, names, conn->fd, err);
    return st == RLOCK_OK ? RLOCK_PENDING : st;
}

static enum rlock_status step_handshake(struct conn *conn, struct rlock_error *err)
{
    enum rlock_status st = tls_handshake(conn->line, err);

    return st == RLOCK_OK ? start_login(conn, err) : st;
}

enum rlock_status conn_step(struct conn *conn, const struct resp_value **reply,
                            struct rlock_error *err)
{
    enum rlock_status st = RLOCK_PENDING;

    if (conn->phase == CONN_CONNECTING)
        st = step_connecting(conn, err);
    if (st == RLOCK_PENDING && conn->phase == CONN_TLS_HANDSHAKE)
        st = step_handshake(conn, err);
    if (st == RLOCK_PENDING && conn->phase == CONN_AWAITING_PASSWORD)
        st = step_login(conn, err);
    if (st == RLOCK_PENDING && conn->phase == CONN_SETTING_UP)
        st = step_greeting(conn, reply, err);
    if (st == RLOCK_PENDING && conn->phase == CONN_READY)
        st = step_request(conn, reply, err);
    if (st == RLOCK_E_CONFIG)
        conn->sent_ms = 0; /* our certificate was refused: nothing was listened to */
    if (st != RLOCK_OK && st != RLOCK_PENDING)
        conn_reset(conn);
    return st;
}

void conn_abandon(struct conn *conn, const struct request *undo)
{
    bool delivered = conn->phase == CONN_READY && conn->sent == conn->out_bytes;
    enum rlock_status st = RLOCK_OK;
    char *bytes = NULL;
    size_t n = 0;
    size_t done;

    if (undo != NULL && delivered && conn->preamble == CONN_ASKING)
        st = say_first(CONN_ASKING, &bytes, &n, NULL);
    if (undo != NULL && delivered && st == RLOCK_OK)
        st = request_encode(undo, &bytes, &n, NULL);
    if (n > 0 && st == RLOCK_OK)
        (void)put(conn, bytes, n, &done, NULL);
    free(bytes);
    conn_reset(conn);
}
