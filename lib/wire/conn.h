/* SPDX-License-Identifier: MIT */
/* conn: a connection to one Redis server, made anew as needed; one request at a time. */
#ifndef CONN_H
#define CONN_H

#include "wire/password_source.h"
#include "wire/resp.h"
#include "wire/socket.h"
#include "wire/tls.h"

/* How far a connection is. */
enum conn_phase {
    CONN_CLOSED,
    CONN_CONNECTING,        /* resolving the name, connect(2) */
    CONN_TLS_HANDSHAKE,     /* until the server has proven who it is */
    CONN_AWAITING_PASSWORD, /* until the password has been looked up */
    CONN_SETTING_UP,        /* until AUTH, SELECT and ROLE are answered, as far as needed */
    CONN_READY              /* a request can be sent, or is under way */
};

/* A command that is sent in front of a request, in the same packet; its reply comes first. */
enum conn_preamble {
    CONN_NO_PREAMBLE,
    CONN_ASKING,        /* ASKING: the request was sent here by an ASK redirect */
    CONN_CLUSTER_NODES, /* CLUSTER NODES: which other nodes there are */
    CONN_INFO_SERVER    /* INFO server: who the server is, and since when it runs */
};

/* How connections to one server are made. Every pointer is borrowed, and may be NULL. */
struct conn_settings {
    const char *password;                    /* a password in the URL goes before it */
    struct password_source *password_source; /* looks a password up if there is none above */
    struct tls_context *tls;                 /* needed for rediss:// only */
    size_t reply_bytes;     /* the longest reply that is accepted; 0: the default of resp.h */
    bool must_be_primary;   /* each new connection sends ROLE, and fails at a replica */
    bool wants_server_info; /* CONN_INFO_SERVER precedes the first request of each connection */
};

struct conn {
    const struct url *url; /* borrowed */
    struct conn_settings settings;

    /* the connection */
    enum conn_phase phase;
    unsigned n_connections; /* begun so far: the number of this one */
    bool has_received;      /* anything at all from this server, by any connection */
    struct connector connector;
    int fd;                                /* of the socket; -1: none */
    struct tls_connection *tls_connection; /* over the socket; NULL: plain */
    struct resp_reader *replies;           /* what was received; NULL: CONN_CLOSED */

    /* setting up */
    char *looked_up_password; /* a copy of password_source's, until AUTH is answered; else NULL */
    char *setup;              /* AUTH, SELECT and ROLE, encoded, until they are answered */
    size_t setup_bytes;
    int n_setup_replies; /* still to come */

    /* the request */
    enum conn_preamble preamble;
    bool expects_preamble_reply; /* the next reply is the preamble's */
    bool has_request;            /* false: nothing follows the preamble, whose reply is the reply */
    char *preamble_reply;        /* text of CLUSTER NODES or INFO, until somebody takes it; NULL */
    char *request;               /* preamble and request, encoded */
    size_t request_bytes;
    size_t sent_bytes; /* of `setup` or of `request`, whichever is being sent */
    int64_t sent_ms; /* on rlock_clock_ms(), just before the request's first byte was sent; 0: none
                          was, so the server can't have executed it */
};

/* conn_init: closed, with no request, and with settings that are all 0. `url` is borrowed. */
void conn_init(struct conn *conn, const struct url *url);
void conn_fini(struct conn *conn);

/* conn_configure: replace the settings, for the connections that are made from now on. */
void conn_configure(struct conn *conn, const struct conn_settings *settings);

/* conn_password: what the server is told now, to be masked in its replies; NULL: nothing. */
const char *conn_password(const struct conn *conn);

/* conn_clear_password: overwrite all copies: for a forked process that connects no more. */
void conn_clear_password(struct conn *conn);

/* conn_has_password: does the server get a password, be it given or looked up? */
bool conn_has_password(const struct conn *conn);

/* conn_looks_password_up: does each new connection look its password up? */
bool conn_looks_password_up(const struct conn *conn);

/*
 * conn_start_request: begin a request, on the connection that is ready, or else on a new one. No
 * other request may be under way.
 *
 *   bytes, n             the encoded request, copied; with n = 0 the preamble alone is asked
 *   connect_deadline_ms  on rlock_clock_ms(): when a new connection must stand
 *
 * Returns  RLOCK_PENDING, or a fault.
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

/* conn_is_ready: could a request be sent at once, as a connection stands? */
bool conn_is_ready(const struct conn *conn);

/* What a request waits for: a descriptor, its poll(2) events, and a time on rlock_clock_ms(). */
int conn_fd(const struct conn *conn);
short conn_events(const struct conn *conn);
int64_t conn_wake_ms(const struct conn *conn);

/* conn_timeout_text: in which phase a request hangs that has taken too long, for people. */
const char *conn_timeout_text(const struct conn *conn);

/*
 * conn_step: go on with the request; doesn't block.
 *
 *   reply  out, on RLOCK_OK only: borrowed until the next request. While the connection is not
 *          ready yet it is an error reply to AUTH, SELECT or ROLE, and the request was not sent
 *
 * Returns  RLOCK_OK, RLOCK_PENDING, or a fault, after which the connection is closed.
 */
enum rlock_status conn_step(struct conn *conn, const struct resp_value **reply,
                            struct rlock_error *err);

/*
 * conn_take_preamble_reply: the text that the server replied to CLUSTER NODES or INFO; "" if the
 * server refused INFO. The caller frees it. NULL: none has come since it was taken last.
 */
char *conn_take_preamble_reply(struct conn *conn);

/* conn_avoid_address: the next connection tries the address of the newest one last. */
void conn_avoid_address(struct conn *conn);

/*
 * conn_abandon: give the request up and close the connection, with a TCP reset. If the server may
 * have received the whole request, `undo` (NULL: none) is sent behind it on the same connection:
 * so whichever server executes the request executes its undo next.
 */
void conn_abandon(struct conn *conn, const struct request *undo);

#endif
