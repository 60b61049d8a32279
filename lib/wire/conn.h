/* SPDX-License-Identifier: MIT */
/* conn: one Redis server: a connection, its greeting, one request at a time. */
#ifndef NODE_H
#define NODE_H

#include "wire/dial.h"
#include "wire/login.h"
#include "wire/resp.h"
#include "wire/tls.h"

enum node_phase {
    NODE_CLOSED,
    NODE_DIALING,
    NODE_SECURING,
    NODE_LOGGING_IN, /* waits for the password */
    NODE_GREETING,
    NODE_READY
};

/* What is said before a request, in the same packet. */
enum node_first {
    NODE_NOTHING,
    NODE_ASKING, /* by who was sent here by ASK */
    NODE_LOOK,   /* CLUSTER NODES */
    NODE_TELL    /* INFO server */
};

struct node {
    const struct url *url; /* borrowed */
    const char *password;  /* borrowed; NULL: none, or one that is looked up */
    struct login *login;   /* borrowed; for who has no `password`; NULL: nothing is looked up */
    char *secret;          /* that was looked up, until the server has accepted it; else NULL */
    enum node_phase phase;
    struct dial dial;
    struct stream stream;
    struct tls *tls;       /* borrowed; for rediss:// */
    struct tls_line *line; /* over the stream; NULL: nothing is */
    struct codec *codec;
    unsigned calls;  /* connections begun so far: which one it is */
    bool has_heard;  /* anything at all from this server, ever */
    bool is_primary; /* must it be one? Then it is asked before anything else */
    bool is_to_tell; /* NODE_TELL on each new connection */
    int greetings;   /* replies the greeting still waits for */
    char *greeting;  /* AUTH, SELECT and ROLE, on their way */
    size_t greeting_bytes;
    enum node_first first;
    bool is_first; /* its reply comes next */
    bool is_alone; /* no request follows it */
    char *said;    /* what came of NODE_LOOK or NODE_TELL; NULL: nothing */
    char *out;     /* the request, encoded */
    size_t out_bytes;
    size_t sent;        /* of what is being sent, greeting or request */
    size_t reply_bytes; /* the longest reply; 0: what is usual */
    int64_t asked_ms;   /* just before the request's first byte was sent; 0: not yet */
};

/*
 * node_init: no connection yet. A password in the URL goes before `password`.
 * For rediss:// `tls` is to be set before the first request.
 */
void node_init(struct node *node, const struct url *url, const char *password);
void node_fini(struct node *node);

/* node_password: that which the server is being told, to be hidden in what it says; NULL: none. */
const char *node_password(const struct node *node);

/* node_clear_password: overwrite what of it is on its way: for who will ask nothing any more. */
void node_clear_password(struct node *node);

/* node_has_password: is the server told one, wherever it comes from? */
bool node_has_password(const struct node *node);

/*
 * node_ask: begin a request, on the standing connection if there is one, else
 * on a new one that must stand by `connect_until_ms`. Nothing may be under way.
 * `bytes` are a request as it was encoded; borrowed for the call. Without any, NODE_LOOK is all
 * that is asked, and its reply is the reply.
 */
enum rlock_status node_ask(struct node *node, enum node_first first, const char *bytes, size_t n,
                           int64_t connect_until_ms, struct rlock_error *err);

/* node_stands: is there a connection that a request could be sent on at once? */
bool node_stands(const struct node *node);

/* What the request waits for: a descriptor, its poll events, and a time to look again. */
int node_fd(const struct node *node);
short node_events(const struct node *node);
int64_t node_wake_ms(const struct node *node);

/* node_late: where a request that has taken too long hangs, in words. */
const char *node_late(const struct node *node);

/*
 * node_step: go on. RLOCK_OK with the reply (the node's, until its next
 * request), RLOCK_PENDING, or a fault, after which the connection is closed.
 */
enum rlock_status node_step(struct node *node, const struct reply **reply, struct rlock_error *err);

/*
 * node_abandon: give the request up. Where it may have been delivered already
 * `undo` is sent behind it, on the same connection, so that whoever executes
 * the one executes the other; then the connection is reset.
 */
void node_abandon(struct node *node, const struct request *undo);

#endif
