/* SPDX-License-Identifier: MIT */
/* member: one vote: a server, what it was asked last, and what its clock says. */
#ifndef MEMBER_H
#define MEMBER_H

#include "server/cluster.h"
#include "server/identity.h"
#include "server/sentinel.h"
#include "wire/conn.h"

#define MEMBER_WATCH_MAX URL_SENTINELS_MAX /* descriptors that one member can wait for */

/* A server that can be asked. */
struct endpoint {
    struct url url;
    struct conn conn;
    unsigned nth; /* of all places of a member */
};

/* What is under way. */
enum member_phase {
    MEMBER_ASKING,
    MEMBER_LOCATING, /* Sentinels are being asked where to */
    MEMBER_RESTING   /* until it is asked again */
};

/* How long a request may take. */
struct member_limits {
    int64_t connect_deadline_ms;
    int64_t block_ms;        /* the server may wait so long with its answer; 0: it doesn't */
    int64_t reply_ms;        /* longest wait for the answer beside that, once it was asked */
    bool may_learn_topology; /* this isn't the last: it is worth while to look for a Cluster */
};

struct member {
    struct url url; /* as it was given */
    const char *password;
    struct password_source
        *password_source;    /* borrowed; where `password` is NULL; NULL: nothing is looked up */
    struct tls_context *tls; /* borrowed; for rediss:// */
    size_t reply_bytes;      /* as in struct conn */
    struct endpoint endpoint[2];
    unsigned n_endpoints;      /* that there have been */
    struct endpoint *primary;  /* the one that has the lock, as far as is known */
    struct endpoint *redirect; /* where ASK has sent us, or one that was home before */
    struct endpoint *at;       /* the one of them that is asked */
    struct cluster cluster;
    int64_t first_ms;         /* when it was asked first; 0: not yet */
    bool has_looked;          /* has home been asked for its Cluster? */
    bool is_looking;          /* that is all that it is asked */
    bool is_to_tell;          /* who it is, and since when it runs */
    struct identity identity; /* as it has told; all of it "" and 0: not yet */
    struct sentinel sentinel; /* of URL_SENTINEL */
    int64_t located_ms;       /* when Sentinels were asked last */
    enum member_phase phase;  /* of a pending request */
    enum rlock_status state;  /* of the request: RLOCK_PENDING, RLOCK_OK (answered) or a fault */
    const struct resp_value *reply; /* RLOCK_OK: the answer, until the next request */
    struct rlock_error err;         /* a fault: why */
    char *request;                  /* encoded */
    size_t request_bytes;
    const char *script; /* what its EVALSHA stands for; NULL: it has none */
    struct member_limits limits;
    int64_t sent_ms;  /* just before it was sent; 0: nothing of it can have been executed */
    int n_hops;       /* of this request */
    int n_tries;      /* since a server answered */
    int64_t again_ms; /* MEMBER_RESTING: until when */
    int64_t try_ms;   /* until when this server has to be connected; then others are tried */
    int64_t ahead_ms; /* server clock minus rlock_clock_ms(), at the most */
    bool knows_clock;
    int n_moves;         /* how often another server may have come to be home */
    uint64_t granted_by; /* the member_connection() of the last grant; 0: it was none */
    bool is_behind;      /* what is under way is of an earlier round */
    bool is_repeated;    /* what it is asked was sent behind an earlier request already */
    bool has_answered;   /* ever, to a request: so it has accepted a password of ours */
    bool has_relogged;   /* of this request: a password was refused, and looked up once more */
};

/*
 * member_open: parse the address; no connection yet. A password in the URL goes
 * before `password`, and that before what `password_source` finds; each is borrowed, and
 * may be NULL.
 */
enum rlock_status member_open(struct member *member, const char *url, const char *password,
                              struct password_source *password_source, struct rlock_error *err);

/*
 * member_open_sentinels: user and password for the Sentinels of the URL, if it
 * has any. Each pointer is borrowed for as long as the member is open, or NULL.
 */
enum rlock_status member_open_sentinels(struct member *member, const char *user,
                                        const char *password,
                                        struct password_source *password_source,
                                        struct rlock_error *err);
void member_close(struct member *member);

/* member_forget_password: clear the one in its URL, after which it can't be asked any more. */
void member_forget_password(struct member *member);

/* member_visit: this one is asked from now on, and no other in its place. Takes `url`. */
void member_visit(struct member *member, struct url *url);

/*
 * member_ask: begin a request; `state` says how it stands from then on. It goes
 * where the server, its Cluster or its Sentinels say, within the same limits.
 */
void member_ask(struct member *member, const struct request *request, struct member_limits limits);

/* member_look: ask which nodes its Cluster has, and remember them; `reply` tells nothing. */
void member_look(struct member *member, struct member_limits limits);

/* member_may_look: wasn't that asked yet, and could it be of use? */
bool member_may_look(const struct member *member);

/*
 * What a pending request waits for: descriptors (at most MEMBER_WATCH_MAX;
 * returns how many), when it must be looked at again, and when it has taken
 * too long.
 */
size_t member_watch(const struct member *member, struct pollfd *watch);
int64_t member_wake_ms(const struct member *member);
int64_t member_deadline_ms(const struct member *member);

/* member_step: go on with a pending request. */
void member_step(struct member *member);

/*
 * member_discard: ignore the reply that has come: it belongs to an earlier request, and the one
 * that the member was to be asked was never sent.
 */
void member_discard(struct member *member);

/* member_abandon: give a pending request up, with its undo behind it (conn_abandon). */
void member_abandon(struct member *member, const struct request *undo);

/*
 * member_may_relog: did the last request fail for the password only, at a server that accepted
 * one before, and may the next lookup find another?
 */
bool member_may_relog(const struct member *member);

/* member_sent_ms: when was the request sent, at the earliest? 0: not at all. */
int64_t member_sent_ms(const struct member *member);

/* member_connection: by which of all its connections the last request went. */
uint64_t member_connection(const struct member *member);

/* member_saw_clock: the answer told the server's time. */
void member_saw_clock(struct member *member, int64_t server_ms);

/* member_server_ms: a local moment on the server's clock; 0 where that isn't known. */
int64_t member_server_ms(const struct member *member, int64_t local_ms);

#endif
