/* SPDX-License-Identifier: MIT */
/* member: one vote: a server, what it was asked last, and what its clock says. */
#ifndef MEMBER_H
#define MEMBER_H

#include "node.h"

struct member {
    struct url url;
    struct node node;
    enum rlock_status state;   /* of the request: RLOCK_PENDING, RLOCK_OK (answered) or a fault */
    const struct reply *reply; /* RLOCK_OK: the answer, until the next request */
    struct rlock_error err;    /* a fault: why */
    int64_t connect_until_ms;
    int64_t reply_ms; /* longest wait for the answer once it was asked */
    int64_t ahead_ms; /* server clock minus rlock_clock_ms(), at the most */
    bool knows_clock;
    unsigned granted_by; /* which of its connections the last grant came by; 0: it was none */
};

/* member_open: parse the address; no connection yet. `password` is borrowed. */
enum rlock_status member_open(struct member *member, const char *url, const char *password,
                              struct rlock_error *err);
void member_close(struct member *member);

/* member_ask: begin a request; `state` says how it stands from then on. */
void member_ask(struct member *member, const struct request *request, int64_t connect_until_ms,
                int64_t reply_ms);

/* When a pending request must be looked at again, and when it has taken too long. */
int64_t member_wake_ms(const struct member *member);
int64_t member_deadline_ms(const struct member *member);

/* member_step: go on with a pending request. */
void member_step(struct member *member);

/* member_abandon: give a pending request up, with its undo behind it (node_abandon). */
void member_abandon(struct member *member, const struct request *undo);

/* member_asked_ms: when was the request sent, at the earliest? 0: not at all. */
int64_t member_asked_ms(const struct member *member);

/* member_saw_clock: the answer told the server's time. */
void member_saw_clock(struct member *member, int64_t server_ms);

/* member_server_ms: a local moment on the server's clock; 0 where that isn't known. */
int64_t member_server_ms(const struct member *member, int64_t local_ms);

#endif
