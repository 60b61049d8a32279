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

void node_init(struct node *node, const struct url *url, const char *password)
{
    *node = (struct node){.url = url, .stream = STREAM_EMPTY};
    node->password = url->password != NULL ? url->password : password;
    dial_init(&node->dial, url);
}

static void forget(char **bytes, size_t *n)
{
    if (*bytes != NULL)
        explicit_bzero(*bytes, *n); /* a password may stand in it */
    free(*bytes);
    *bytes = NULL;
    *n = 0;
}

const char *node_password(const struct node *node)
{
    return node->password != NULL ? node->password : node->secret;
}

bool node_has_password(const struct node *node)
{
    return node->password != NULL || login_has_source(node->login);
}

void node_clear_password(struct node *node)
{
    if (node->secret != NULL)
        explicit_bzero(node->secret, strlen(node->secret));
    if (node->greeting != NULL)
        explicit_bzero(node->greeting, node->greeting_bytes);
}

static void forget_greeting(struct node *node)
{
    forget(&node->greeting, &node->greeting_bytes);
    if (node->secret != NULL)
        login_forget(node->login, &node->secret);
}

static void node_reset(struct node *node)
{
    if (node->phase == NODE_LOGGING_IN)
        login_leave(node->login);
    dial_stop(&node->dial);
    tls_end(node->line);
    node->line = NULL;
    stream_reset(&node->stream);
    codec_free(node->codec);
    node->codec = NULL;
    forget_greeting(node);
    forget(&node->out, &node->out_bytes);
    node->phase = NODE_CLOSED;
}

void node_fini(struct node *node)
{
    node_reset(node);
    free(node->said);
    node->said = NULL;
    dial_fini(&node->dial);
}

static enum rlock_status put(struct node *node, const char *bytes, size_t n, size_t *done,
                             struct rlock_error *err)
{
    if (node->line != NULL)
        return tls_write(node->line, bytes, n, done, err);
    return stream_write(&node->stream, bytes, n, done, err);
}

static enum rlock_status get(struct node *node, char *bytes, size_t n, size_t *done,
                             struct rlock_error *err)
{
    if (node->line != NULL)
        return tls_read(node->line, bytes, n, done, err);
    return stream_read(&node->stream, bytes, n, done, err);
}

/* A standing connection on which anything came in unasked, or its end, is of no more use. */
static bool is_quiet(struct node *node)
{
    char byte;
    size_t n;

    return get(node, &byte, 1, &n, NULL) == RLOCK_PENDING;
}

static enum rlock_status write_greeting(struct node *node, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    struct request request;

    node->greetings = 0;
    if (node_password(node) != NULL || node->url->user != NULL) {
        request_begin(&request, "AUTH");
        if (node->url->user != NULL)
            request_add(&request, node->url->user);
        request_add(&request, node_password(node) != NULL ? node_password(node) : "");
        st = codec_encode(&request, &node->greeting, &node->greeting_bytes, err);
        node->greetings++;
    }
    if (st == RLOCK_OK && node->url->db != 0) {
        request_begin(&request, "SELECT");
        request_add_format(&request, "%d", node->url->db);
        st = codec_encode(&request, &node->greeting, &node->greeting_bytes, err);
        node->greetings++;
    }
    if (st == RLOCK_OK && node->is_primary) {
        request_begin(&request, "ROLE");
        st = codec_encode(&request, &node->greeting, &node->greeting_bytes, err);
        node->greetings++;
    }
    return st;
}

static enum rlock_status start_call(struct node *node, int64_t until_ms, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_PENDING;

    node->calls++;
    node->codec = codec_new();
    if (node->codec == NULL)
        st = err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    else if (node->reply_bytes > 0)
        codec_allow(node->codec, node->reply_bytes);
    if (st == RLOCK_PENDING)
        st = dial_start(&node->dial, until_ms, err);
    if (st == RLOCK_PENDING)
        node->phase = NODE_DIALING;
    return st;
}

static enum rlock_status say_first(enum node_first first, char **out, size_t *out_bytes,
                                   struct rlock_error *err)
{
    static const char *const words[][2] = {[NODE_ASKING] = {"ASKING"},
                                           [NODE_LOOK] = {"CLUSTER", "NODES"},
                                           [NODE_TELL] = {"INFO", "server"}};
    struct request request;

    if (first == NODE_NOTHING)
        return RLOCK_OK;
    request_begin(&request, words[first][0]);
    if (words[first][1] != NULL)
        request_add(&request, words[first][1]);
    return codec_encode(&request, out, out_bytes, err);
}

/* The request behind what must be said first. */
static enum rlock_status load(struct node *node, enum node_first first, const char *bytes, size_t n,
                              struct rlock_error *err)
{
    enum rlock_status st = say_first(first, &node->out, &node->out_bytes, err);
    char *whole = st == RLOCK_OK ? realloc(node->out, node->out_bytes + n) : NULL;

    node->first = first;
    node->is_first = first != NODE_NOTHING;
    if (whole == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    if (n > 0)
        memcpy(whole + node->out_bytes, bytes, n);
    node->is_alone = n == 0;
    node->out = whole;
    node->out_bytes += n;
    return RLOCK_OK;
}

enum rlock_status node_ask(struct node *node, enum node_first first, const char *bytes, size_t n,
                           int64_t connect_until_ms, struct rlock_error *err)
{
    enum rlock_status st;

    if (node->phase == NODE_READY && !is_quiet(node))
        node_reset(node);
    if (node->phase == NODE_CLOSED && node->is_to_tell && first != NODE_ASKING)
        first = NODE_TELL;
    forget(&node->out, &node->out_bytes);
    node->sent = 0;
    node->asked_ms = 0;
    st = load(node, first, bytes, n, err);
    if (st == RLOCK_OK && node->phase == NODE_CLOSED)
        st = start_call(node, connect_until_ms, err);
    else if (st == RLOCK_OK)
        st = RLOCK_PENDING;
    if (st == RLOCK_PENDING && first == NODE_LOOK)
        codec_allow(node->codec, NODES_BYTES);
    if (st != RLOCK_PENDING)
        node_reset(node);
    return st;
}

bool node_stands(const struct node *node)
{
    return node->phase == NODE_READY;
}

int node_fd(const struct node *node)
{
    if (node->phase == NODE_LOGGING_IN)
        return node->login->fd;
    return node->phase == NODE_DIALING ? dial_fd(&node->dial) : node->stream.fd;
}

/* TLS knows what it has yet to send, but not what we have yet to hand to it. */
short node_events(const struct node *node)
{
    size_t whole = node->phase == NODE_GREETING ? node->greeting_bytes : node->out_bytes;
    short events = node->line != NULL ? tls_events(node->line) : POLLIN;

    if (node->phase == NODE_DIALING)
        return dial_events(&node->dial);
    if (node->phase == NODE_LOGGING_IN)
        return POLLIN;
    if (node->phase == NODE_SECURING)
        return events;
    return node->sent < whole ? events | POLLOUT : events;
}

int64_t node_wake_ms(const struct node *node)
{
    if (node->phase == NODE_LOGGING_IN && node->login->fd < 0)
        return rlock_clock_ms(); /* another connection has heard the password for both */
    return node->phase == NODE_DIALING ? dial_wake_ms(&node->dial) : RLOCK_NEVER;
}

/* A server that waits for something else than TLS says nothing either. */
const char *node_late(const struct node *node)
{
    switch (node->phase) {
    case NODE_DIALING:
        return dial_is_resolving(&node->dial) ? "resolve: timed out" : "connect: timed out";
    case NODE_SECURING:
        return "TLS: timed out; does the server speak TLS on this port?";
    case NODE_LOGGING_IN:
        return "no password was found in time";
    case NODE_CLOSED:
    case NODE_GREETING:
    case NODE_READY:
        break;
    }
    return "no answer in time";
}

static enum rlock_status send_rest(struct node *node, const char *bytes, size_t n,
                                   struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    size_t done;

    while (st == RLOCK_OK && node->sent < n) {
        st = put(node, bytes + node->sent, n - node->sent, &done, err);
        if (st == RLOCK_OK)
            node->sent += done;
    }
    return st;
}

/* A port for TLS cuts off whoever doesn't speak it, sometimes after an alert. */
static enum rlock_status hint_at_tls(const struct node *node, enum rlock_status st,
                                     struct rlock_error *err)
{
    if (st == RLOCK_E_UNREACHABLE && !node->has_heard && node->url->kind == URL_TCP &&
        !node->url->is_tls)
        err_suffix(err, "does it want TLS (rediss://)?");
    return st;
}

/* The next whole reply, reading as long as there is something to read. */
static enum rlock_status next_reply(struct node *node, const struct reply **reply,
                                    struct rlock_error *err)
{
    enum rlock_status st = codec_next(node->codec, reply, err);
    char bytes[4096];
    size_t n;

    while (st == RLOCK_PENDING) {
        st = get(node, bytes, sizeof bytes, &n, err);
        if (st != RLOCK_OK)
            return hint_at_tls(node, st, err);
        if (!node->has_heard && node->line == NULL && bytes[0] == TLS_ALERT)
            return err_set(err, RLOCK_E_PROTOCOL, 0, "the server speaks TLS here: use rediss://");
        node->has_heard = true;
        st = codec_feed(node->codec, bytes, n, err);
        if (st == RLOCK_OK)
            st = codec_next(node->codec, reply, err);
    }
    return st;
}

/* Before anything was asked only a refusal to talk at all is an answer. RLOCK_PENDING: nothing. */
static enum rlock_status hear_early(struct node *node, const struct reply **reply,
                                    struct rlock_error *err)
{
    enum rlock_status st = next_reply(node, reply, err);

    if (st == RLOCK_OK && reply_error(*reply) == NULL)
        return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: an answer to nothing that was asked");
    return st;
}

/* The answer to the last part of a greeting, where a primary is needed. */
static enum rlock_status hear_role(const struct reply *reply, struct rlock_error *err)
{
    size_t n;
    const char *role = reply_text(reply_at(reply, 0), &n);

    if (reply_error(reply) != NULL) /* it isn't to be known; then a write shows it */
        return RLOCK_OK;
    if (role == NULL)
        return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: unexpected answer to the greeting");
    if (strcmp(role, "master") == 0)
        return RLOCK_OK;
    err_set(err, RLOCK_E_SERVER, 0, "it is no primary, though Sentinel says so");
    if (err != NULL)
        err->reason = RLOCK_REASON_NOT_PRIMARY;
    return RLOCK_E_SERVER;
}

static enum rlock_status step_greeting(struct node *node, const struct reply **reply,
                                       struct rlock_error *err)
{
    enum rlock_status st;

    st = send_rest(node, node->greeting, node->greeting_bytes, err);
    while (st == RLOCK_OK && node->greetings > 0) {
        st = next_reply(node, reply, err);
        if (st != RLOCK_OK)
            return st;
        if (node->greetings == 1 && node->is_primary)
            st = hear_role(*reply, err);
        else if (reply_error(*reply) != NULL)
            return RLOCK_OK; /* the caller sees the refusal, and nothing more is sent */
        else if (!reply_is_ok(*reply))
            return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: unexpected answer to the greeting");
        node->greetings--;
    }
    if (st == RLOCK_OK)
        st = hear_early(node, reply, err);
    if (st == RLOCK_PENDING) {
        forget_greeting(node);
        node->phase = NODE_READY;
        node->sent = 0;
    }
    return st;
}

/*
 * What may not be looked at is nothing to be told. But without ASKING a request
 * is sent back by where it was sent to, and it is for that that we may not ask.
 */
static bool is_kept_out(struct node *node, const struct reply *reply)
{
    if (!node->is_first || node->first != NODE_ASKING || reply_error(reply) == NULL)
        return false;
    node->phase = NODE_GREETING; /* with an answer still to come it is of no more use */
    return true;
}

static void hear_first(struct node *node, const struct reply *reply)
{
    size_t n;
    const char *text = reply_text(reply, &n);

    node->is_first = false;
    if (node->reply_bytes > 0)
        codec_allow(node->codec, node->reply_bytes);
    free(node->said);
    node->said = NULL;
    if (node->first == NODE_TELL || (node->first == NODE_LOOK && text != NULL))
        node->said = strdup(text != NULL ? text : ""); /* who may not ask it is told nothing */
}

static enum rlock_status step_request(struct node *node, const struct reply **reply,
                                      struct rlock_error *err)
{
    bool was_sent = node->sent == node->out_bytes;
    enum rlock_status st;

    if (node->asked_ms == 0)
        node->asked_ms = rlock_clock_ms();
    st = send_rest(node, node->out, node->out_bytes, err);
    if (st == RLOCK_OK && !was_sent) /* no answer can be here yet: who polls will be told */
        return RLOCK_PENDING;
    if (st == RLOCK_OK || st == RLOCK_PENDING)
        st = next_reply(node, reply, err);
    if (st == RLOCK_OK && is_kept_out(node, *reply))
        return RLOCK_OK;
    if (st == RLOCK_OK && node->is_first) {
        hear_first(node, *reply);
        st = node->is_alone ? st : next_reply(node, reply, err);
    }
    if (st == RLOCK_OK && (node->sent < node->out_bytes || !codec_empty(node->codec)))
        st = err_set(err, RLOCK_E_PROTOCOL, 0, "reply: more than was asked for");
    return st;
}

static enum rlock_status start_greeting(struct node *node, struct rlock_error *err)
{
    enum rlock_status st = write_greeting(node, err);

    node->phase = NODE_GREETING;
    node->sent = 0;
    return st == RLOCK_OK ? RLOCK_PENDING : st;
}

/*
 * The password is looked up when the server has taken the connection: one that
 * can't be reached costs no lookup, however often it is tried.
 */
static enum rlock_status start_login(struct node *node, struct rlock_error *err)
{
    enum rlock_status st;

    if (node->password != NULL || !login_has_source(node->login))
        return start_greeting(node, err);
    st = login_wait(node->login, err);
    if (st != RLOCK_OK)
        return st;
    node->phase = NODE_LOGGING_IN;
    return RLOCK_PENDING;
}

static enum rlock_status step_login(struct node *node, struct rlock_error *err)
{
    enum rlock_status st = login_take(node->login, &node->secret, err);

    if (st != RLOCK_PENDING)
        node->phase = NODE_GREETING; /* it waits no longer */
    return st == RLOCK_OK ? start_greeting(node, err) : st;
}

static enum rlock_status step_dial(struct node *node, struct rlock_error *err)
{
    const char *names[TLS_NAMES] = {node->url->host, node->url->alias, node->url->given};
    enum rlock_status st = dial_step(&node->dial, &node->stream, err);

    if (st != RLOCK_OK)
        return st;
    if (!node->url->is_tls)
        return start_login(node, err);
    node->phase = NODE_SECURING;
    st = tls_start(node->tls, &node->line, names, node->stream, err);
    return st == RLOCK_OK ? RLOCK_PENDING : st;
}

static enum rlock_status step_handshake(struct node *node, struct rlock_error *err)
{
    enum rlock_status st = tls_handshake(node->line, err);

    return st == RLOCK_OK ? start_login(node, err) : st;
}

enum rlock_status node_step(struct node *node, const struct reply **reply, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_PENDING;

    if (node->phase == NODE_DIALING)
        st = step_dial(node, err);
    if (st == RLOCK_PENDING && node->phase == NODE_SECURING)
        st = step_handshake(node, err);
    if (st == RLOCK_PENDING && node->phase == NODE_LOGGING_IN)
        st = step_login(node, err);
    if (st == RLOCK_PENDING && node->phase == NODE_GREETING)
        st = step_greeting(node, reply, err);
    if (st == RLOCK_PENDING && node->phase == NODE_READY)
        st = step_request(node, reply, err);
    if (st == RLOCK_E_CONFIG)
        node->asked_ms = 0; /* our certificate was refused: nothing was listened to */
    if (st != RLOCK_OK && st != RLOCK_PENDING)
        node_reset(node);
    return st;
}

void node_abandon(struct node *node, const struct request *undo)
{
    bool delivered = node->phase == NODE_READY && node->sent == node->out_bytes;
    enum rlock_status st = RLOCK_OK;
    char *bytes = NULL;
    size_t n = 0;
    size_t done;

    if (undo != NULL && delivered && node->first == NODE_ASKING)
        st = say_first(NODE_ASKING, &bytes, &n, NULL);
    if (undo != NULL && delivered && st == RLOCK_OK)
        st = codec_encode(undo, &bytes, &n, NULL);
    if (n > 0 && st == RLOCK_OK)
        (void)put(node, bytes, n, &done, NULL);
    free(bytes);
    node_reset(node);
}
