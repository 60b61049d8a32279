/* SPDX-License-Identifier: MIT */
/*
 * member: one vote of a quorum: a server, the request it was sent, what it answered.
 *
 * The URL of a member may stand for several servers: the nodes of a Cluster, or the primary that
 * Sentinels name. Callers see one member; which server is asked is the member's matter.
 *
 *     member_ask(member, &request, read, limits);
 *     while (member->state == RLOCK_PENDING) {
 *         ... poll(2) what member_fill_pollfds() says, until member_wake_ms() ...
 *         member_step(member);
 *         ... member_abandon() when member_deadline_ms() has passed ...
 *     }
 *
 * Nothing here blocks. Only member.c writes a struct member; callers read `url`, `state`, `reply`,
 * `answer` and `err`.
 */
#ifndef MEMBER_H
#define MEMBER_H

#include "lock/replies.h"
#include "server/cluster.h"
#include "server/sentinel.h"
#include "server/server_info.h"
#include "wire/conn.h"

#define MEMBER_POLLFDS_MAX URL_SENTINELS_MAX /* descriptors that one member may wait for */

/* How long a request may take, and what may go with it. */
struct member_limits {
    int64_t connect_deadline_ms; /* when the request must have been sent, on rlock_clock_ms() */
    int64_t block_ms;            /* for so long the server may hold the reply back; 0: it doesn't */
    int64_t reply_ms;            /* longest wait for the reply, beside block_ms, once it was sent */
    bool may_learn_topology;     /* CLUSTER NODES may go before the request: others will follow */
};

/* What a member is asked. */
enum member_task {
    MEMBER_NOTHING,
    MEMBER_REQUEST, /* what the caller wants to know */
    MEMBER_TOPOLOGY /* the nodes of its Cluster, for later: the caller learns nothing of it */
};

/* What a pending request does at the moment. */
enum member_phase {
    MEMBER_EXCHANGING, /* its connection is made, it is sent, or its reply is awaited */
    MEMBER_LOCATING,   /* Sentinels are asked which server is the primary */
    MEMBER_BACKING_OFF /* it was not executed, and waits to be sent once more */
};

/* The request under way, or the last one. */
struct member_request {
    enum member_task task;
    enum member_phase phase;
    char *bytes; /* as encoded; NULL: of MEMBER_TOPOLOGY */
    size_t n_bytes;
    const char *script; /* the text of the script that its EVALSHA names; NULL: it is no EVALSHA */
    reply_parse *read;  /* what makes `answer` of its reply; NULL: nothing does */
    struct member_limits limits;
    int64_t sent_ms;           /* just before its first byte was sent; 0: it was not executed */
    int64_t try_deadline_ms;   /* when this server is given up for another, if not connected */
    int64_t retry_at_ms;       /* of MEMBER_BACKING_OFF */
    int n_redirects;           /* followed since it last backed off */
    bool has_retried_password; /* a password was refused, and has been looked up once more */
};

/* A server that the URL stands for. */
struct endpoint {
    struct url url;
    struct conn conn;
    unsigned id; /* another one for each server */
};

/* Which server is asked. */
struct member_route {
    struct endpoint endpoint[2];
    struct endpoint *primary;  /* holds the lock, as far as is known */
    struct endpoint *redirect; /* where ASK has sent us last, or what was the primary before */
    struct endpoint *current;  /* which of both the request under way goes to */
    unsigned last_id;
    struct cluster cluster;   /* the nodes that are known */
    struct sentinel sentinel; /* of a URL that names Sentinels */
    int64_t located_ms;       /* when these were asked last */
    int64_t first_ms;         /* when the member was asked for the first time; 0: not yet */
    int n_failures;           /* servers that failed one after the other, up to a limit */
    bool knows_topology;      /* the primary was asked for the nodes of its Cluster */
};

/* What is known of the server itself. */
struct member_server {
    struct server_identity identity; /* as it has told; all of it "" and 0: not yet */
    int64_t ahead_ms;                /* its clock minus rlock_clock_ms(), or a little more */
    bool knows_clock;                /* ... is ahead_ms true? */
    bool has_answered;               /* ever: so it has accepted a password of ours */
    uint64_t grant_connection; /* by which the last grant came, see connection_id(); 0: by none */
};

struct member {
    struct url url;       /* as the caller gave it; names the member in messages */
    const char *password; /* borrowed; for servers whose URL has none; NULL: none */
    struct password_source *password_source; /* borrowed; asked where `password` is NULL, too */
    struct tls_context *tls;                 /* borrowed; of rediss:// */
    size_t reply_bytes;                      /* the longest reply, as in struct conn */
    bool is_one_of_several; /* so each new connection asks who the server is, and since when */
    struct member_route route;
    struct member_server server;
    struct member_request request;
    enum rlock_status state; /* of the request: RLOCK_PENDING, RLOCK_OK (answered) or a fault */
    const struct resp_value *reply; /* of RLOCK_OK: until the next request */
    struct reply answer;            /* of RLOCK_OK, where the request came with a `read` */
    struct rlock_error err;         /* of a fault */
};

/*
 * member_open: parse the address; no connection is made. A password in the URL goes before
 * `password`, and that before what `password_source` finds; each is borrowed, and may be NULL.
 */
enum rlock_status member_open(struct member *member, const char *url, const char *password,
                              struct password_source *password_source, struct rlock_error *err);

/*
 * member_open_sentinels: user and password for the Sentinels of the URL, if it names any. Each
 * pointer is borrowed for as long as the member is open, or NULL.
 */
enum rlock_status member_open_sentinels(struct member *member, const char *user,
                                        const char *password,
                                        struct password_source *password_source,
                                        struct rlock_error *err);

/* member_open_one_sentinel: the nth Sentinel of `of` as a member of its own. `of` is borrowed. */
enum rlock_status member_open_one_sentinel(struct member *member, const struct member *of,
                                           size_t nth);

/* member_set_tls: for servers of rediss://; borrowed. Needed before the first request to one. */
void member_set_tls(struct member *member, struct tls_context *tls);

/*
 * member_join: the member is one of `n_members`. Several must be different servers, so each is
 * asked which it is. `reply_bytes` is the longest reply that is accepted.
 */
void member_join(struct member *member, size_t n_members, size_t reply_bytes);

void member_close(struct member *member);

/* member_forget_password: clear all copies; no connection can be made any more. */
void member_forget_password(struct member *member);

/* member_visit: ask this server from now on, and no other in its place. Takes `url`. */
void member_visit(struct member *member, struct url *url);

/*
 * member_ask: start a request, and wait for nothing. `request` is borrowed for the call. It goes
 * where the server, its Cluster or its Sentinels say, within the same limits; a request that was
 * not executed is sent again, one that may have been executed never is. Nothing else may be under
 * way but a member_ask_topology(), behind which the request is sent.
 *
 *   read  what makes `answer` of the reply when it arrives; NULL: the caller reads `reply` itself
 */
void member_ask(struct member *member, const struct request *request, reply_parse *read,
                struct member_limits limits);

/* member_ask_topology: ask for the nodes of its Cluster, to be found again when its server dies. */
void member_ask_topology(struct member *member, struct member_limits limits);

/* member_may_be_asked: is nothing under way, or only a member_ask_topology()? */
bool member_may_be_asked(const struct member *member);

/* member_lacks_topology: may it be of a Cluster, and has its primary not been asked for it? */
bool member_lacks_topology(const struct member *member);

/*
 * What a pending request waits for: descriptors (at most MEMBER_POLLFDS_MAX are filled in; returns
 * how many), when member_step() must be called at the latest, and when it has taken too long. All
 * times on rlock_clock_ms().
 */
size_t member_fill_pollfds(const struct member *member, struct pollfd *fds);
int64_t member_wake_ms(const struct member *member);
int64_t member_deadline_ms(const struct member *member);

/* member_step: go on with a pending request as far as is possible without waiting. */
void member_step(struct member *member);

/*
 * member_abandon: end a pending request with a fault. Where it may have been delivered `undo` is
 * sent behind it (NULL: nothing is); then the connection is closed.
 */
void member_abandon(struct member *member, const struct request *undo);

/*
 * member_set_outcome: what its requests came to, as the caller knows better: several requests that
 * were sent to it alone, or an answer that must not count. `err` is copied where `state` is a
 * fault.
 */
void member_set_outcome(struct member *member, enum rlock_status state,
                        const struct rlock_error *err);

/*
 * member_may_retry_password: did the last request fail for the password only, at a server that
 * accepted one before, and may the next lookup find another?
 */
bool member_may_retry_password(const struct member *member);

/* member_primary_url: the server that holds the lock, as far as is known; borrowed. */
const struct url *member_primary_url(const struct member *member);

/* member_has_heard: has one of its servers ever sent anything? */
bool member_has_heard(const struct member *member);

/* member_is_let_in: does a connection stand on which its primary accepted our password? */
bool member_is_let_in(const struct member *member);

/* member_has_password: is its primary told a password, wherever that comes from? */
bool member_has_password(const struct member *member);

/* member_sent_ms: when the last request was sent, or a little earlier; 0: it was not executed. */
int64_t member_sent_ms(const struct member *member);

/* member_has_granted: has its last answer to a request for the lock granted it? */
bool member_has_granted(const struct member *member);

/* member_is_on_grant_connection: did the last request go by the connection of the last grant? */
bool member_is_on_grant_connection(const struct member *member);

/* member_server_ms: a moment of rlock_clock_ms() on the server's clock, or later; 0: not known. */
int64_t member_server_ms(const struct member *member, int64_t local_ms);

#endif
