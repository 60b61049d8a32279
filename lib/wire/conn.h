/* SPDX-License-Identifier: MIT */
/* conn: one Redis server: a connection, its greeting, one request at a time. */
#ifndef CONN_H
#define CONN_H

#include "wire/password_source.h"
#include "wire/resp.h"
#include "wire/socket.h"
#include "wire/tls.h"

enum conn_phase {
    CONN_CLOSED,
    CONN_CONNECTING,
    CONN_TLS_HANDSHAKE,
    CONN_AWAITING_PASSWORD, /* waits for the password */
    CONN_SETTING_UP,
    CONN_READY
};

/* What is said before a request, in the same packet. */
enum conn_preamble {
    CONN_NO_PREAMBLE,
    CONN_ASKING,        /* by who was sent here by ASK */
    CONN_CLUSTER_NODES, /* CLUSTER NODES */
    CONN_INFO_SERVER    /* INFO server */
};

struct conn {
    const struct url *url; /* borrowed */
    const char *password;  /* borrowed; NULL: none, or one that is looked up */
    struct password_source
        *password_source; /* borrowed; for who has no `password`; NULL: nothing is looked up */
    char *secret;         /* that was looked up, until the server has accepted it; else NULL */
    enum conn_phase phase;
    struct connector connector;
    int fd;                      /* of the connection; -1: none */
    struct tls_context *tls;     /* borrowed; for rediss:// */
    struct tls_connection *line; /* over the stream; NULL: nothing is */
    struct resp_reader *resp;
    unsigned n_connections; /* connections begun so far: which one it is */
    bool has_received;      /* anything at all from this server, ever */
    bool must_be_primary;   /* must it be one? Then it is asked before anything else */
    bool wants_server_info; /* CONN_INFO_SERVER on each new connection */
    int greetings;          /* replies the greeting still waits for */
    char *greeting;         /* AUTH, SELECT and ROLE, on their way */
    size_t greeting_bytes;
    enum conn_preamble preamble;
    bool expects_preamble_reply; /* its reply comes next */
    bool is_alone;               /* no request follows it */
    char *preamble_reply; /* what came of CONN_CLUSTER_NODES or CONN_INFO_SERVER; NULL: nothing */
    char *out;            /* the request, encoded */
    size_t out_bytes;
    size_t sent;        /* of what is being sent, greeting or request */
    size_t reply_bytes; /* the longest reply; 0: what is usual */
    int64_t sent_ms;    /* just before the request's first byte was sent; 0: not yet */
};

/*
 * conn_init: no connection yet. A password in the URL goes before `password`.
 * For rediss:// `tls` is to be set before the first request.
 */
void conn_init(struct conn *conn, const struct url *url, const char *password);
void conn_fini(struct conn *conn);

/* conn_password: that which the server is being told, to be hidden in what it says; NULL: none. */
const char *conn_password(const struct conn *conn);

/* conn_clear_password: overwrite what of it is on its way: for who will ask nothing any more. */
void conn_clear_password(struct conn *conn);

/* conn_has_password: is the server told one, wherever it comes from? */
bool conn_has_password(const struct conn *conn);

/*
 * conn_start_request: begin a request, on the standing connection if there is one, else
 * on a new one that must stand by `connect_deadline_ms`. Nothing may be under way.
 * `bytes` are a request as it was encoded; borrowed for the call. Without any, CONN_CLUSTER_NODES
 * is all that is asked, and its reply is the reply.
 */
enum rlock_status conn_start_request(struct conn *conn, enum conn_preamble preamble,
                                     const char *bytes, size_t n, int64_t connect_deadline_ms,
                                     struct rlock_error *err);

/*
 * conn_append_request: send a request behind a preamble that was started without one, and isn't
 * answered yet. RLOCK_PENDING or RLOCK_E_MEMORY; then the connection is closed.
 */
enum rlock_status conn_append_request(struct conn *conn, const char *bytes, size_t n,
                                      struct rlock_error *err);

/* conn_is_ready: is there a connection that a request could be sent on at once? */
bool conn_is_ready(const struct conn *conn);

/* What the request waits for: a descriptor, its poll events, and a time to look again. */
int conn_fd(const struct conn *conn);
short conn_events(const struct conn *conn);
int64_t conn_wake_ms(const struct conn *conn);

/* conn_timeout_text: where a request that has taken too long hangs, in words. */
const char *conn_timeout_text(const struct conn *conn);

/*
 * conn_step: go on. RLOCK_OK with the reply (the node's, until its next
 * request), RLOCK_PENDING, or a fault, after which the connection is closed.
 */
enum rlock_status conn_step(struct conn *conn, const struct resp_value **reply,
                            struct rlock_error *err);

/*
 * conn_abandon: give the request up. Where it may have been delivered already
 * `undo` is sent behind it, on the same connection, so that whoever executes
 * the one executes the other; then the connection is reset.
 */
void conn_abandon(struct conn *conn, const struct request *undo);

#endif
