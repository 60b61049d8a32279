/* SPDX-License-Identifier: MIT */
/*
 * member: one server of a quorum, the request that it was sent, and what it answered.
 *
 * The URL of a member may stand for several servers: the nodes of a Cluster, or the servers of
 * which Sentinels name the primary. The member itself finds the server that has to be asked.
 *
 *     member_ask(member, &request, read, limits);
 *     while (member->state == RLOCK_PENDING) {
 *         ... poll(2) the descriptors of member_fill_pollfds() until member_wake_ms() ...
 *         member_step(member);
 *         ... call member_abandon() when member_deadline_ms() has passed ...
 *     }
 *
 * No function here blocks. Only member.c writes a struct member; callers read `url`, `state`,
 * `reply`, `answer` and `err`.
 */
#ifndef MEMBER_H
#define MEMBER_H

#include "lock/replies.h"
#include "server/cluster.h"
#include "server/sentinel.h"
#include "server/server_info.h"
#include "wire/conn.h"

#define MEMBER_POLLFDS_MAX URL_SENTINELS_MAX /* descriptors that one member waits for at most */

/* How long a request may take, and what is sent with it. */
struct member_limits {
    int64_t connect_deadline_ms; /* when the request must be sent, on rlock_clock_ms() */
    int64_t block_ms;            /* how long a blocking command (BLPOP) may block; 0: it doesn't */
    int64_t reply_ms; /* how long the reply may take after the sending, beside block_ms */
    /* further requests will follow: the connection gets a name, and CLUSTER NODES goes before the
     * request, once for each primary */
    bool is_in_long_use;
};

/* What a pending request does at the moment. */
enum member_phase {
    MEMBER_EXCHANGING, /* the member connects, sends the request, or waits for the reply */
    MEMBER_LOCATING,   /* the member asks the Sentinels which server is the primary */
    MEMBER_BACKING_OFF /* no server executed the request; the member resends it at retry_at_ms */
};

/* The pending request, or the last one that ended. */
struct member_request {
    enum member_phase phase;
    char *bytes; /* the encoded request */
    size_t n_bytes;
    size_t n_replies;    /* how many replies come: one for each command in `bytes` */
    uint64_t connection; /* the only connection that may be used; 0: any */
    bool stays;          /* a redirect isn't followed */
    const char *script;  /* text of the script that the request's EVALSHA names; NULL: no EVALSHA */
    reply_parse *read;   /* parses the reply into `answer`; NULL: the caller parses the reply */
    struct member_limits limits;
    int64_t sent_ms; /* just before the request's first byte was sent; 0: no server has executed the
                        request (it was not sent, or an error reply says that it wasn't executed) */
    int64_t try_deadline_ms;   /* when the member, if not connected, tries another server */
    int64_t retry_at_ms;       /* in MEMBER_BACKING_OFF: when to send the request again */
    int n_redirects;           /* redirects followed since the last back-off */
    bool has_retried_password; /* the password was looked up again because a server refused it */
    bool is_after_refusal;     /* a server couldn't execute the request now (ERROR_REPLY_TRY_AGAIN):
                                  member->err is that fault until a server replies again */
};

/* One of the servers for which the URL stands. */
struct endpoint {
    struct url url;
    struct conn conn;
    unsigned id; /* changes when the endpoint becomes another server */
};

/* The servers for which the URL stands, and which of them is asked. */
struct member_route {
    struct endpoint endpoint[2];
    struct endpoint *primary;  /* the server that has the lock's key, as far as is known */
    struct endpoint *redirect; /* the target of the last ASK, or the previous primary */
    struct endpoint *current;  /* `primary` or `redirect`: where the last request was sent */
    unsigned last_id;          /* the last endpoint.id that was given */
    struct cluster cluster;    /* the nodes of the Cluster that are known */
    struct sentinel sentinel;  /* the Sentinels, if the URL names any */
    int64_t located_ms;  /* when the Sentinels last answered, or failed to answer in time while
                           `primary` was connected */
    int n_failures;      /* how many servers in a row have failed, at most FAILURES_MAX */
    bool knows_topology; /* CLUSTER NODES was sent to this primary */
    bool has_heard;      /* a server that was in `endpoint` before has sent a byte */
};

/* What the server has told of itself. */
struct member_server {
    struct server_identity identity; /* from INFO; all of it "" and 0: not known yet */
    int64_t ahead_ms;  /* the server's clock minus rlock_clock_ms(), or a little more */
    bool knows_clock;  /* ahead_ms is valid */
    bool has_answered; /* the server has answered a request, so it accepted the password then */
    uint64_t grant_connection; /* member_connection() of the last grant; 0: no lock was granted */
};

struct member {
    struct url url;       /* the URL that the caller gave; names the member in messages */
    const char *password; /* borrowed; used if the URL has none; NULL: there is none */
    struct password_source *password_source; /* borrowed; used if `password` is NULL, too */
    struct tls_context *tls;                 /* borrowed; for rediss:// */
    size_t reply_bytes;                      /* the longest reply that is accepted */
    const char *client_name; /* borrowed; the name of connections in use for long; NULL: none */
    bool is_one_of_several;  /* the quorum has more members: send INFO on each new connection, to
                               know which server it leads to, and since when the server runs */
    struct member_route route;
    struct member_server server;
    struct member_request request;
    enum rlock_status state; /* of the request: RLOCK_PENDING, RLOCK_OK (answered) or a fault */
    const struct resp_value *reply; /* set if `state` is RLOCK_OK; valid until the next request */
    struct reply answer;            /* set if `state` is RLOCK_OK, after a request with `read`, or
                                       by member_conclude() */
    struct rlock_error err;         /* set if `state` is a fault */
};

/*
 * member_open: parse the URL, without connecting. The member uses the password in the URL; if there
 * is none, `password`; if that is NULL, what `password_source` finds. `password` and
 * `password_source` are borrowed, and may be NULL.
 */
enum rlock_status member_open(struct member *member, const char *url, const char *password,
                              struct password_source *password_source, struct rlock_error *err);

/*
 * member_open_sentinels: set the user and the password for the Sentinels, if the URL names any.
 * Each pointer may be NULL, and is borrowed for as long as the member is open.
 */
enum rlock_status member_open_sentinels(struct member *member, const char *user,
                                        const char *password,
                                        struct password_source *password_source,
                                        struct rlock_error *err);

/* member_open_one_sentinel: open the nth Sentinel of `of` as a member. `of` is borrowed. */
enum rlock_status member_open_one_sentinel(struct member *member, const struct member *of,
                                           size_t nth);

/* member_set_tls: set the TLS settings, borrowed, before the first request to rediss://. */
void member_set_tls(struct member *member, struct tls_context *tls);

/*
 * member_join: set how many members the quorum has, the longest reply that is accepted, and the
 * name of connections in use for long (borrowed; NULL: none). If the quorum has several members,
 * each new connection asks which server it leads to (INFO), as they must be different servers.
 */
void member_join(struct member *member, size_t n_members, size_t reply_bytes,
                 const char *client_name);

void member_close(struct member *member);

/* member_forget_password: clear all copies of passwords; the member can't connect any more. */
void member_forget_password(struct member *member);

/* member_visit: ask the server of `url` from now on, and forget all other nodes. Empties `url`. */
void member_visit(struct member *member, struct url *url);

/*
 * member_ask: start a request, without blocking. `request` is borrowed for the call. The member
 * follows redirects, and asks Sentinels or other nodes of the Cluster, all within `limits`. The
 * member sends the request again if no server has executed it, and never if a server may have
 * executed it. No other request may be pending.
 *
 *   read  parses the reply into `answer`; NULL: the caller reads `reply` itself
 */
void member_ask(struct member *member, const struct request *request, reply_parse *read,
                struct member_limits limits);

/*
 * member_reject: turn the answer to the last request into a fault: what the error reply `refusal`
 * means, or, if `refusal` is NULL, `fault`. Leaves a server that has become a replica.
 *
 * member_conclude: end an operation of several requests. Sets `answer`; NULL: the operation failed.
 * sent_ms is when the request was sent from which the lease counts; 0: no server can have executed
 * a request that writes.
 */
void member_reject(struct member *member, const char *refusal, const struct rlock_error *fault);
void member_conclude(struct member *member, const struct reply *answer, int64_t sent_ms);

/*
 * member_lacks_topology: may the primary be a node of a Cluster, and has the member not sent it
 * CLUSTER NODES yet?
 */
bool member_lacks_topology(const struct member *member);

/*
 * For a pending request: member_fill_pollfds() fills in the descriptors to poll (at most
 * MEMBER_POLLFDS_MAX), and returns how many. member_wake_ms() is the time by which the caller must
 * call member_step(), and member_deadline_ms() the time after which it abandons the request. Both
 * are on rlock_clock_ms().
 */
size_t member_fill_pollfds(const struct member *member, struct pollfd *fds);
int64_t member_wake_ms(const struct member *member);
int64_t member_deadline_ms(const struct member *member);

/* member_step: go on with a pending request as far as possible without blocking. */
void member_step(struct member *member);

/*
 * member_abandon: end a pending request with a fault, and reset the connection. If the whole
 * request was sent, first sends `behind` on the same connection, unless it is NULL. An EVALSHA is
 * sent as EVAL, too, see conn_abandon(). Returns whether `behind` was sent.
 */
bool member_abandon(struct member *member, struct request *behind);

/*
 * member_set_outcome: set `state` and, if it is a fault, `err`. For a caller that sent several
 * requests to this member alone, or that rejects an answer.
 */
void member_set_outcome(struct member *member, enum rlock_status state,
                        const struct rlock_error *err);

/*
 * member_may_retry_password: did the server refuse the password of the last request, although it
 * accepted one before, and was that password looked up, so that another lookup may find a new one?
 */
bool member_may_retry_password(const struct member *member);

/* member_primary_url: the server that has the lock's key, as far as is known; borrowed. */
const struct url *member_primary_url(const struct member *member);

/* member_has_heard: has one of the member's servers ever sent a byte? */
bool member_has_heard(const struct member *member);

/* member_is_logged_in: is the member connected to its primary, and logged in? */
bool member_is_logged_in(const struct member *member);

/* member_has_password: does the member send its primary a password, from whatever source? */
bool member_has_password(const struct member *member);

/* member_sent_ms: when the last request was sent, or just before; 0: no server executed it. */
int64_t member_sent_ms(const struct member *member);

/* member_connection: identifies the connection by which the last request was sent; never 0. */
uint64_t member_connection(const struct member *member);

/* member_has_granted: did the last request with a `read` get REPLY_OK or REPLY_RESTORED? */
bool member_has_granted(const struct member *member);

/* member_is_on_grant_connection: did the last request use the same connection as the last grant? */
bool member_is_on_grant_connection(const struct member *member);

/*
 * member_server_ms: convert a time of rlock_clock_ms() to the server's clock, plus 100 ms in case
 * that clock jumps ahead; 0: the server's clock is not known.
 */
int64_t member_server_ms(const struct member *member, int64_t local_ms);

#endif
