/* SPDX-License-Identifier: MIT */
/*
 * conn: sends requests to one Redis server, one at a time, and reconnects as needed.
 *
 * A request is sent only after the replies to AUTH, SELECT and ROLE. Sent together with them, the
 * request would be executed as the default user if AUTH is refused, and in database 0 if SELECT is
 * refused. With TLS the password is sent only after the server has proven its identity.
 */
#include "wire/conn.h"

#include "base/err.h"
#include "base/reason.h"
#include "base/secret.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER_NODES_BYTES (1024 * 1024) /* enough for 1000 nodes, each with many slot ranges */
#define QUOTED_BYTES 64 /* if the server isn't Redis: how much of its text the error quotes */
#define TLS_ALERT 0x15  /* the first byte of a TLS record that contains an alert */

void conn_init(struct conn *conn, const struct url *url)
{
    *conn = (struct conn){.url = url, .fd = -1};
    connector_init(&conn->connector, url);
}

void conn_configure(struct conn *conn, const struct conn_settings *settings)
{
    conn->settings = *settings;
}

/* Returns the password from the URL or the settings; NULL: neither has one. */
static const char *given_password(const struct conn *conn)
{
    return conn->url->password != NULL ? conn->url->password : conn->settings.password;
}

static void clear(char **bytes, size_t *n)
{
    if (*bytes != NULL)
        explicit_bzero(*bytes, *n); /* the bytes may contain a password or tokens */
    free(*bytes);
    *bytes = NULL;
    *n = 0;
}

const char *conn_password(const struct conn *conn)
{
    return given_password(conn) != NULL ? given_password(conn) : conn->looked_up_password;
}

bool conn_looks_password_up(const struct conn *conn)
{
    return given_password(conn) == NULL && password_source_is_set(conn->settings.password_source);
}

bool conn_has_password(const struct conn *conn)
{
    return given_password(conn) != NULL || conn_looks_password_up(conn);
}

void conn_clear_password(struct conn *conn)
{
    secret_clear(conn->looked_up_password);
    if (conn->setup != NULL)
        explicit_bzero(conn->setup, conn->setup_bytes);
}

static void clear_setup(struct conn *conn)
{
    clear(&conn->setup, &conn->setup_bytes);
    secret_free(conn->looked_up_password);
    conn->looked_up_password = NULL;
}

static void conn_reset(struct conn *conn)
{
    if (conn->phase == CONN_AWAITING_PASSWORD)
        password_source_abandon(conn->settings.password_source);
    connector_abandon(&conn->connector);
    tls_connection_free(conn->tls_connection);
    conn->tls_connection = NULL;
    socket_reset(&conn->fd);
    resp_reader_free(conn->replies);
    conn->replies = NULL;
    clear_setup(conn);
    clear(&conn->request, &conn->request_bytes);
    conn->phase = CONN_CLOSED;
    conn->closes_at_name = conn->closes_at_name || conn->expects_name_reply;
    conn->name = NULL;
    conn->is_named = conn->expects_name_reply = false;
}

void conn_fini(struct conn *conn)
{
    conn_reset(conn);
    free(conn->preamble_reply);
    conn->preamble_reply = NULL;
    connector_fini(&conn->connector);
}

static enum rlock_status conn_send(struct conn *conn, const char *bytes, size_t n, size_t *done,
                                   struct rlock_error *err)
{
    if (conn->tls_connection != NULL)
        return tls_write(conn->tls_connection, bytes, n, done, err);
    return socket_send(conn->fd, bytes, n, done, err);
}

static enum rlock_status conn_receive(struct conn *conn, char *bytes, size_t n, size_t *done,
                                      struct rlock_error *err)
{
    if (conn->tls_connection != NULL)
        return tls_read(conn->tls_connection, bytes, n, done, err);
    return socket_receive(conn->fd, bytes, n, done, err);
}

/* Is the idle connection still open, and has the server sent nothing since its last reply? */
static bool is_usable(struct conn *conn)
{
    char byte;
    size_t n;

    return conn_receive(conn, &byte, 1, &n, NULL) == RLOCK_PENDING;
}

static enum rlock_status encode_setup(struct conn *conn, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    struct request request;

    conn->n_setup_replies = 0;
    /* without a password send no AUTH: the client certificate may name the user */
    if (conn_password(conn) != NULL) {
        request_begin(&request, "AUTH");
        if (conn->url->user != NULL)
            request_add(&request, conn->url->user);
        request_add(&request, conn_password(conn));
        st = request_encode(&request, &conn->setup, &conn->setup_bytes, err);
        conn->n_setup_replies++;
    }
    if (st == RLOCK_OK && conn->url->db != 0) {
        request_begin(&request, "SELECT");
        request_add_format(&request, "%d", conn->url->db);
        st = request_encode(&request, &conn->setup, &conn->setup_bytes, err);
        conn->n_setup_replies++;
    }
    if (st == RLOCK_OK && conn->settings.must_be_primary) {
        request_begin(&request, "ROLE");
        st = request_encode(&request, &conn->setup, &conn->setup_bytes, err);
        conn->n_setup_replies++;
    }
    return st;
}

static enum rlock_status start_connecting(struct conn *conn, int64_t deadline_ms,
                                          struct rlock_error *err)
{
    enum rlock_status st = RLOCK_PENDING;

    conn->n_connections++;
    conn->replies = resp_reader_new();
    if (conn->replies == NULL)
        st = err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    else if (conn->settings.reply_bytes > 0)
        resp_reader_set_max_bytes(conn->replies, conn->settings.reply_bytes);
    if (st == RLOCK_PENDING)
        st = connector_start(&conn->connector, deadline_ms, err);
    if (st == RLOCK_PENDING)
        conn->phase = CONN_CONNECTING;
    return st;
}

static enum rlock_status encode_preamble(enum conn_preamble preamble, char **out, size_t *out_bytes,
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

static enum rlock_status encode_name(struct conn *conn, struct rlock_error *err)
{
    struct request request;

    if (conn->name == NULL)
        return RLOCK_OK;
    request_begin(&request, "CLIENT");
    request_add(&request, "SETNAME");
    request_add(&request, conn->name);
    conn->name = NULL;
    conn->is_named = conn->expects_name_reply = true;
    return request_encode(&request, &conn->request, &conn->request_bytes, err);
}

/* Sets conn->request to the encoded name and preamble, followed by the encoded request. */
static enum rlock_status encode_request(struct conn *conn, enum conn_preamble preamble,
                                        const char *bytes, size_t n, struct rlock_error *err)
{
    enum rlock_status st = encode_name(conn, err);

    if (st == RLOCK_OK)
        st = encode_preamble(preamble, &conn->request, &conn->request_bytes, err);
    conn->preamble = preamble;
    conn->expects_preamble_reply = preamble != CONN_NO_PREAMBLE;
    conn->n_replies = 1;
    if (st == RLOCK_OK)
        st = request_append(&conn->request, &conn->request_bytes, bytes, n, err);
    return st;
}

enum rlock_status conn_start_request(struct conn *conn, enum conn_preamble preamble,
                                     const char *bytes, size_t n, int64_t connect_deadline_ms,
                                     struct rlock_error *err)
{
    enum rlock_status st;

    if (conn->phase == CONN_READY && !is_usable(conn))
        conn_reset(conn);
    if (conn->phase == CONN_CLOSED && conn->settings.wants_server_info && preamble != CONN_ASKING)
        preamble = CONN_INFO_SERVER;
    clear(&conn->request, &conn->request_bytes);
    conn->sent_bytes = 0;
    conn->sent_ms = 0;
    st = encode_request(conn, preamble, bytes, n, err);
    if (st == RLOCK_OK && conn->phase == CONN_CLOSED)
        st = start_connecting(conn, connect_deadline_ms, err);
    else if (st == RLOCK_OK)
        st = RLOCK_PENDING;
    if (st == RLOCK_PENDING && preamble == CONN_CLUSTER_NODES)
        resp_reader_set_max_bytes(conn->replies, CLUSTER_NODES_BYTES);
    if (st != RLOCK_PENDING)
        conn_reset(conn);
    return st;
}

void conn_expect_replies(struct conn *conn, size_t n)
{
    conn->n_replies = n;
}

void conn_name(struct conn *conn, const char *name)
{
    if (conn->phase == CONN_READY && !conn->is_named && !conn->closes_at_name)
        conn->name = name;
}

bool conn_is_ready(const struct conn *conn)
{
    return conn->phase == CONN_READY;
}

int conn_fd(const struct conn *conn)
{
    if (conn->phase == CONN_AWAITING_PASSWORD)
        return password_source_fd(conn->settings.password_source);
    return conn->phase == CONN_CONNECTING ? connector_fd(&conn->connector) : conn->fd;
}

/* Asks for POLLOUT also while bytes to send were not yet passed to send(2) or tls_write(). */
short conn_events(const struct conn *conn)
{
    size_t whole = conn->phase == CONN_SETTING_UP ? conn->setup_bytes : conn->request_bytes;
    short events = conn->tls_connection != NULL ? tls_events(conn->tls_connection) : POLLIN;

    if (conn->phase == CONN_CONNECTING)
        return connector_events(&conn->connector);
    if (conn->phase == CONN_AWAITING_PASSWORD)
        return POLLIN;
    if (conn->phase == CONN_TLS_HANDSHAKE)
        return events;
    return conn->sent_bytes < whole ? events | POLLOUT : events;
}

int64_t conn_wake_ms(const struct conn *conn)
{
    if (conn->phase == CONN_AWAITING_PASSWORD &&
        password_source_fd(conn->settings.password_source) < 0)
        return rlock_clock_ms(); /* now: the password lookup has ended */
    return conn->phase == CONN_CONNECTING ? connector_wake_ms(&conn->connector) : RLOCK_NEVER;
}

const char *conn_timeout_text(const struct conn *conn)
{
    switch (conn->phase) {
    case CONN_CONNECTING:
        return connector_is_resolving(&conn->connector) ? "resolve: timed out"
                                                        : "connect: timed out";
    case CONN_TLS_HANDSHAKE:
        return "TLS: timed out; does the server speak TLS on this port?";
    case CONN_AWAITING_PASSWORD:
        return "the password command or file gave no password in time";
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

    while (st == RLOCK_OK && conn->sent_bytes < n) {
        st = conn_send(conn, bytes + conn->sent_bytes, n - conn->sent_bytes, &done, err);
        if (st == RLOCK_OK)
            conn->sent_bytes += done;
    }
    return st;
}

/* A server that closes a new connection without a reply may expect TLS: suggests rediss://. */
static enum rlock_status suggest_tls(const struct conn *conn, enum rlock_status st,
                                     struct rlock_error *err)
{
    if (st == RLOCK_E_UNREACHABLE && !conn->has_received && conn->url->kind == URL_TCP &&
        !conn->url->is_tls)
        err_suffix(err, "does the server want TLS (rediss://)?");
    return st;
}

/*
 * Reports that the first bytes from this server are no reply of Redis, but for example a line of
 * HTTP or SSH. Such a server can't have executed the request.
 */
static enum rlock_status not_redis(struct conn *conn, const char *bytes, size_t n,
                                   struct rlock_error *err)
{
    char line[4 * QUOTED_BYTES];
    char words[QUOTED_BYTES];

    snprintf(line, sizeof line, "%.*s", (int)n, bytes);
    line[strcspn(line, "\r\n")] = '\0';
    /* the server may have repeated what AUTH sent: mask the password */
    err_copy_masked(words, sizeof words, line, conn_password(conn));
    err_make_printable(words);
    conn->sent_ms = 0;
    err_set(err, RLOCK_E_PROTOCOL, 0, "%s", reason_sentence(RLOCK_REASON_NOT_REDIS));
    err_set_reason(err, RLOCK_REASON_NOT_REDIS);
    err_add_said(err, words);
    return RLOCK_E_PROTOCOL;
}

/* Receives bytes until the next reply is whole. RLOCK_PENDING: there are no more bytes now. */
static enum rlock_status read_reply(struct conn *conn, const struct resp_value **reply,
                                    struct rlock_error *err)
{
    enum rlock_status st = resp_reader_next(conn->replies, reply, err);
    char bytes[1024]; /* most replies are shorter; a larger array would cost each waiter memory */
    size_t n;

    while (st == RLOCK_PENDING) {
        st = conn_receive(conn, bytes, sizeof bytes, &n, err);
        if (st == RLOCK_E_UNREACHABLE && resp_reader_is_refused(conn->replies, reply))
            return RLOCK_OK;
        if (st != RLOCK_OK)
            return suggest_tls(conn, st, err);
        if (!conn->has_received && conn->tls_connection == NULL && bytes[0] == TLS_ALERT)
            return err_set(err, RLOCK_E_PROTOCOL, 0, "the server speaks TLS here: use rediss://");
        if (!conn->has_received && !resp_may_begin(bytes[0]))
            return not_redis(conn, bytes, n, err);
        conn->has_received = true;
        st = resp_reader_feed(conn->replies, bytes, n, err);
        if (st == RLOCK_OK)
            st = resp_reader_next(conn->replies, reply, err);
    }
    return st;
}

/*
 * Has the server replied before the request was sent? RLOCK_PENDING: no. RLOCK_OK: by an error,
 * such as "max number of clients", to refuse the connection. Any other reply is a fault.
 */
static enum rlock_status read_early_reply(struct conn *conn, const struct resp_value **reply,
                                          struct rlock_error *err)
{
    enum rlock_status st = read_reply(conn, reply, err);

    if (st == RLOCK_OK && resp_error(*reply) == NULL)
        return err_set(
            err, RLOCK_E_PROTOCOL, 0,
            "unexpected reply: it came before the request was sent: look at a proxy in between");
    return st;
}

static enum rlock_status unexpected_setup(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_PROTOCOL, 0,
                   "unexpected reply to AUTH, SELECT or ROLE: look at a proxy in between");
}

/* Reads the reply to ROLE: {"master" or "slave", ...}. */
static enum rlock_status read_role(const struct resp_value *reply, struct rlock_error *err)
{
    size_t n;
    const char *role = resp_string(resp_array_at(reply, 0), &n);

    /* if the user may not call ROLE, send the request: a replica would refuse it anyway */
    if (resp_error(reply) != NULL)
        return RLOCK_OK;
    if (role == NULL)
        return unexpected_setup(err);
    if (strcmp(role, "master") == 0)
        return RLOCK_OK;
    err_set(err, RLOCK_E_SERVER, 0, "the server is not a primary, though the Sentinels say so");
    err_set_reason(err, RLOCK_REASON_NOT_PRIMARY);
    return RLOCK_E_SERVER;
}

static enum rlock_status step_setup(struct conn *conn, const struct resp_value **reply,
                                    struct rlock_error *err)
{
    enum rlock_status st;

    st = send_rest(conn, conn->setup, conn->setup_bytes, err);
    while (st == RLOCK_OK && conn->n_setup_replies > 0) {
        st = read_reply(conn, reply, err);
        if (st != RLOCK_OK)
            return st;
        if (conn->n_setup_replies == 1 && conn->settings.must_be_primary)
            st = read_role(*reply, err);
        else if (resp_error(*reply) != NULL)
            return RLOCK_OK; /* the caller reads the error; the request is never sent */
        else if (!resp_is_ok(*reply))
            return unexpected_setup(err);
        conn->n_setup_replies--;
    }
    if (st == RLOCK_OK)
        st = read_early_reply(conn, reply, err);
    if (st == RLOCK_PENDING) {
        clear_setup(conn);
        conn->phase = CONN_READY;
        conn->sent_bytes = 0;
    }
    return st;
}

/*
 * Has the server refused ASKING? Without ASKING it redirects the request back to the node that sent
 * the ASK, so the error reply to ASKING counts as the reply to the request. As the request's own
 * reply is still to come, the phase becomes CONN_SETTING_UP: the caller closes the connection.
 */
static bool is_asking_refused(struct conn *conn, const struct resp_value *reply)
{
    if (!conn->expects_preamble_reply || conn->preamble != CONN_ASKING || resp_error(reply) == NULL)
        return false;
    conn->phase = CONN_SETTING_UP;
    return true;
}

static void read_preamble_reply(struct conn *conn, const struct resp_value *reply)
{
    size_t n;
    const char *text = resp_string(reply, &n);

    conn->expects_preamble_reply = false;
    if (conn->settings.reply_bytes > 0)
        resp_reader_set_max_bytes(conn->replies, conn->settings.reply_bytes);
    free(conn->preamble_reply);
    conn->preamble_reply = NULL;
    if (conn->preamble == CONN_INFO_SERVER ||
        (conn->preamble == CONN_CLUSTER_NODES && text != NULL))
        conn->preamble_reply =
            strdup(text != NULL ? text : ""); /* "": the user may not call INFO */
}

/* Reads the replies of the request, one for each of its commands. */
static enum rlock_status read_replies(struct conn *conn, const struct resp_value **reply,
                                      struct rlock_error *err)
{
    resp_reader_gather(conn->replies, conn->n_replies);
    return read_reply(conn, reply, err);
}

static enum rlock_status step_request(struct conn *conn, const struct resp_value **reply,
                                      struct rlock_error *err)
{
    bool was_sent = conn->sent_bytes == conn->request_bytes;
    enum rlock_status st;

    if (conn->sent_ms == 0)
        conn->sent_ms = rlock_clock_ms();
    st = send_rest(conn, conn->request, conn->request_bytes, err);
    if (st == RLOCK_OK && !was_sent) /* just sent now: the reply can't be there yet */
        return RLOCK_PENDING;
    if ((st == RLOCK_OK || st == RLOCK_PENDING) && conn->expects_name_reply) {
        st = read_reply(conn, reply, err);
        if (st != RLOCK_OK)
            return st;
        conn->expects_name_reply = false;
    }
    if ((st == RLOCK_OK || st == RLOCK_PENDING) && !conn->expects_preamble_reply)
        st = read_replies(conn, reply, err);
    else if (st == RLOCK_OK || st == RLOCK_PENDING)
        st = read_reply(conn, reply, err);
    if (st == RLOCK_OK && is_asking_refused(conn, *reply))
        return RLOCK_OK;
    if (st == RLOCK_OK && conn->expects_preamble_reply) {
        read_preamble_reply(conn, *reply);
        st = read_replies(conn, reply, err);
    }
    if (st == RLOCK_OK &&
        (conn->sent_bytes < conn->request_bytes || !resp_reader_is_empty(conn->replies)))
        st = err_set(err, RLOCK_E_PROTOCOL, 0,
                     "unexpected reply: more came than was asked for: look at a proxy in between");
    return st;
}

static enum rlock_status start_setup(struct conn *conn, struct rlock_error *err)
{
    enum rlock_status st = encode_setup(conn, err);

    conn->phase = CONN_SETTING_UP;
    conn->sent_bytes = 0;
    return st == RLOCK_OK ? RLOCK_PENDING : st;
}

/*
 * Asks password_source for the password, if the connection has to look it up; else starts to send
 * AUTH. The lookup may run a command, so it starts only when the socket is connected: otherwise
 * each attempt to reach a server that is down would run the command.
 */
static enum rlock_status start_authentication(struct conn *conn, struct rlock_error *err)
{
    enum rlock_status st;

    if (!conn_looks_password_up(conn))
        return start_setup(conn, err);
    st = password_source_request(conn->settings.password_source, err);
    if (st != RLOCK_OK)
        return st;
    conn->phase = CONN_AWAITING_PASSWORD;
    return RLOCK_PENDING;
}

static enum rlock_status step_password(struct conn *conn, struct rlock_error *err)
{
    enum rlock_status st =
        password_source_take(conn->settings.password_source, &conn->looked_up_password, err);

    if (st != RLOCK_PENDING)
        conn->phase = CONN_SETTING_UP; /* the lookup has ended: conn_reset() must not abandon it */
    return st == RLOCK_OK ? start_setup(conn, err) : st;
}

static enum rlock_status step_connecting(struct conn *conn, struct rlock_error *err)
{
    const char *names[TLS_NAMES] = {conn->url->host, conn->url->alias, conn->url->given_host};
    enum rlock_status st = connector_step(&conn->connector, &conn->fd, err);

    if (st != RLOCK_OK)
        return st;
    if (!conn->url->is_tls)
        return start_authentication(conn, err);
    conn->phase = CONN_TLS_HANDSHAKE;
    st = tls_connection_new(conn->settings.tls, &conn->tls_connection, names, conn->fd, err);
    return st == RLOCK_OK ? RLOCK_PENDING : st;
}

static enum rlock_status step_handshake(struct conn *conn, struct rlock_error *err)
{
    enum rlock_status st = tls_handshake(conn->tls_connection, err);

    return st == RLOCK_OK ? start_authentication(conn, err) : st;
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
        st = step_password(conn, err);
    if (st == RLOCK_PENDING && conn->phase == CONN_SETTING_UP)
        st = step_setup(conn, reply, err);
    if (st == RLOCK_PENDING && conn->phase == CONN_READY)
        st = step_request(conn, reply, err);
    if (st == RLOCK_E_CONFIG)
        conn->sent_ms = 0; /* the server refused our certificate, and has not read the request */
    if (st != RLOCK_OK && st != RLOCK_PENDING)
        conn_reset(conn);
    return st;
}

char *conn_take_preamble_reply(struct conn *conn)
{
    char *text = conn->preamble_reply;

    conn->preamble_reply = NULL;
    return text;
}

void conn_avoid_address(struct conn *conn)
{
    connector_avoid(&conn->connector);
}

static enum rlock_status encode_behind(const struct conn *conn, const struct request *behind,
                                       char **bytes, size_t *n)
{
    enum rlock_status st = RLOCK_OK;

    if (conn->preamble == CONN_ASKING)
        st = encode_preamble(CONN_ASKING, bytes, n, NULL);
    return st == RLOCK_OK ? request_encode(behind, bytes, n, NULL) : st;
}

/*
 * Sends `behind`, and an EVALSHA also as EVAL, as nobody will read a NOSCRIPT. EVALSHA goes first,
 * as it is short: the reset may cut off the end of a long EVAL. Without TLS one write sends both: a
 * server that reads the EVALSHA alone drops the EVAL when its NOSCRIPT meets our reset. With TLS
 * each has its own records, as a server reads whole records only.
 */
static bool send_behind(struct conn *conn, struct request *behind)
{
    enum rlock_status st;
    char *bytes = NULL;
    size_t n = 0;
    size_t n_first;

    st = encode_behind(conn, behind, &bytes, &n);
    n_first = n;
    if (st == RLOCK_OK && behind->script != NULL) {
        request_use_eval(behind);
        st = encode_behind(conn, behind, &bytes, &n);
    }
    conn->sent_bytes = 0;
    if (st == RLOCK_OK)
        st = send_rest(conn, bytes, conn->tls_connection != NULL ? n_first : n, NULL);
    if (st == RLOCK_OK)
        (void)send_rest(conn, bytes, n, NULL);
    clear(&bytes, &n);
    return conn->sent_bytes > 0 && conn->sent_bytes >= n_first;
}

bool conn_abandon(struct conn *conn, struct request *behind)
{
    bool delivered = conn->phase == CONN_READY && conn->sent_bytes == conn->request_bytes;
    bool is_sent = behind != NULL && delivered && send_behind(conn, behind);

    conn_reset(conn);
    return is_sent;
}
