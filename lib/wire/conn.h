/* SPDX-License-Identifier: MIT */
/* conn: sends requests to one Redis server, one at a time, and reconnects as needed. */
#ifndef CONN_H
#define CONN_H

#include "wire/password_source.h"
#include "wire/resp.h"
#include "wire/socket.h"
#include "wire/tls.h"

/* What a connection does. */
enum conn_phase {
    CONN_CLOSED,
    CONN_CONNECTING,        /* looks the host name up, and calls connect(2) */
    CONN_TLS_HANDSHAKE,     /* waits until the server has proven its identity */
    CONN_AWAITING_PASSWORD, /* waits until password_source has looked the password up */
    CONN_SETTING_UP,        /* sends AUTH, SELECT and ROLE, if needed, and waits for the replies */
    CONN_READY              /* sends a request, waits for its reply, or is idle */
};

/* A command that is sent before a request, in the same packet. */
enum conn_preamble {
    CONN_NO_PREAMBLE,
    CONN_ASKING,        /* ASKING: the request comes here by an ASK redirect */
    CONN_CLUSTER_NODES, /* CLUSTER NODES: which other nodes the Cluster has */
    CONN_INFO_SERVER    /* INFO server: the server's run_id and uptime */
};

/* How connections to one server are made. Every pointer is borrowed, and may be NULL. */
struct conn_settings {
    const char *password; /* used if the URL has no password */
    struct password_source
        *password_source;    /* looks the password up if neither the URL nor `password` has one */
    struct tls_context *tls; /* needed for rediss:// only */
    size_t reply_bytes;      /* the longest reply that is accepted; 0: the default of resp.h */
    bool must_be_primary;    /* new connections send ROLE, and fail if the server is a replica */
    bool wants_server_info;  /* new connections send INFO, but not if the first request is ASKING */
};

struct conn {
    const struct url *url; /* the server; borrowed */
    struct conn_settings settings;

    /* the connection */
    enum conn_phase phase;
    unsigned n_connections; /* how many connections were started, the present one included */
    bool has_received;      /* this server has sent a byte, by this or an earlier connection */
    struct connector connector;
    int fd;                                /* the connected socket; -1: none */
    struct tls_connection *tls_connection; /* TLS over the socket; NULL: no TLS */
    struct resp_reader *replies;           /* parses the replies; NULL in CONN_CLOSED */

    /* setting up the connection */
    char *looked_up_password; /* from password_source, until AUTH is answered; else NULL */
    char *setup; /* AUTH, SELECT and ROLE, encoded, until their replies have come; else NULL */
    size_t setup_bytes;
    int n_setup_replies; /* replies to `setup` that have not come yet */

    /* the connection's name */
    const char *name;        /* CLIENT SETNAME with this name precedes the next request; borrowed */
    bool is_named;           /* CLIENT SETNAME was sent */
    bool expects_name_reply; /* the next reply is that of CLIENT SETNAME */
    bool closes_at_name;     /* an earlier connection ended before the reply to CLIENT SETNAME */

    /* the request */
    enum conn_preamble preamble;
    bool expects_preamble_reply; /* the next reply is that of the preamble */
    size_t n_replies;     /* how many replies the request gets: one for each of its commands */
    char *preamble_reply; /* text of the reply to the preamble, until it is taken; else NULL */
    char *request;        /* CLIENT SETNAME, preamble and request, encoded */
    size_t request_bytes;
    size_t sent_bytes; /* sent so far: of `setup` in CONN_SETTING_UP, else of `request` */
    int64_t sent_ms;   /* on rlock_clock_ms(), just before the first byte of the request was sent;
                        * 0: the server can't have executed the request */
};

/* conn_init: make a closed connection, whose settings are all 0. `url` is borrowed. */
void conn_init(struct conn *conn, const struct url *url);
void conn_fini(struct conn *conn);

/* conn_configure: replace the settings, for the connections that are made from now on. */
void conn_configure(struct conn *conn, const struct conn_settings *settings);

/* conn_password: the password to mask in the server's replies; NULL: AUTH sent none. */
const char *conn_password(const struct conn *conn);

/* conn_clear_password: overwrite the connection's passwords, in a process that won't connect. */
void conn_clear_password(struct conn *conn);

/* conn_has_password: does AUTH send a password, from the URL, the settings or a lookup? */
bool conn_has_password(const struct conn *conn);

/* conn_looks_password_up: does each new connection look its password up? */
bool conn_looks_password_up(const struct conn *conn);

/*
 * conn_start_request: send a request by the connection that is ready, or make a new connection.
 * Call it only when no other request is pending. Doesn't block.
 *
 *   bytes, n             the encoded request, copied
 *   connect_deadline_ms  on rlock_clock_ms(): when the caller gives up if nothing is connected
 *
 * Returns  RLOCK_PENDING, or a fault.
 */
enum rlock_status conn_start_request(struct conn *conn, enum conn_preamble preamble,
                                     const char *bytes, size_t n, int64_t connect_deadline_ms,
                                     struct rlock_error *err);

/*
 * conn_expect_replies: the request that was just started has `n` commands. conn_step() returns
 * their replies as one array, when all have come. Without this call a request has one reply.
 */
void conn_expect_replies(struct conn *conn, size_t n);

/*
 * conn_name: let CLIENT SETNAME precede the next request in the same packet, so that the server's
 * list of clients tells what the connection is for. The reply to CLIENT SETNAME is ignored. Does
 * nothing if the connection isn't ready or has its name, or if an earlier connection ended before
 * that reply.
 *
 *   name  without blanks and control characters; borrowed until that request is started
 */
void conn_name(struct conn *conn, const char *name);

/* conn_is_ready: is the phase CONN_READY, so that a request needs no new connection? */
bool conn_is_ready(const struct conn *conn);

/* When to call conn_step(): at these poll(2) events, or at this time on rlock_clock_ms(). */
int conn_fd(const struct conn *conn);
short conn_events(const struct conn *conn);
int64_t conn_wake_ms(const struct conn *conn);

/* conn_timeout_text: a message that says in which phase a request timed out. */
const char *conn_timeout_text(const struct conn *conn);

/*
 * conn_step: continue the request; doesn't block.
 *
 *   reply  out, on RLOCK_OK only: valid until the next request. If conn_is_ready() is false,
 *          `*reply` is an error reply to AUTH, SELECT, ROLE or ASKING, or to the connection itself,
 *          and the server doesn't execute the request
 *
 * Returns  RLOCK_OK, RLOCK_PENDING, or a fault, after which the connection is closed.
 */
enum rlock_status conn_step(struct conn *conn, const struct resp_value **reply,
                            struct rlock_error *err);

/*
 * conn_take_preamble_reply: return the text of the reply to CLUSTER NODES or INFO ("": the server
 * refused INFO), which the caller frees. NULL: no such reply has come since the last call.
 */
char *conn_take_preamble_reply(struct conn *conn);

/*
 * conn_avoid_address: make the next connection try the address of the present one last, because
 * the server there has become a replica.
 */
void conn_avoid_address(struct conn *conn);

/*
 * conn_abandon: give up the request and reset the connection. If the whole request was sent, first
 * sends `behind` (NULL: nothing) on the same connection, to be executed after the request. An
 * EVALSHA is sent again as EVAL, and `behind` becomes an EVAL: the server may execute both, which
 * must do no harm. Returns whether all of `behind` was sent, at least as EVALSHA.
 */
bool conn_abandon(struct conn *conn, struct request *behind);

#endif
