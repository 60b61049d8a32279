/* SPDX-License-Identifier: MIT */
/* broadcast: one request to each member at the same time, until it is decided. */
#ifndef BROADCAST_H
#define BROADCAST_H

#include "lock/requests.h"
#include "quorum/members.h"

struct broadcast {
    const struct owner *owner;
    requests_build *ask;
    const struct request *request; /* what is asked where it isn't about the lease */
    reply_parse *read;             /* how to tell a yes; NULL: any answer is one */
    size_t enough;                 /* so many yes decide it; 0: a majority */
    unsigned skip;                 /* a bit for each member that isn't asked */
    uint64_t fence;                /* as in struct requests_params */
    int64_t block_ms;              /* how long the server may wait with its answer */
    int64_t reply_ms;              /* how long the answer may take beside that */
    bool undo;                     /* a request given up is to be undone */
    bool supersedes_pending; /* no request follows: send it even behind one that is under way */
    bool looks;              /* instead of a request: which nodes does the member's Cluster have? */
    bool needs_memory;       /* one that may have forgotten who has the lock says no yes */
    bool is_quick;           /* the rest isn't worth a moment when it is decided */
    bool is_told;            /* whoever watches is to know when it is on its way */
};

/*
 * broadcast_run: RLOCK_OK or RLOCK_STOPPED; how it went is told by the members'
 * states. Those that weren't waited for are RLOCK_PENDING: what they were asked
 * may be executed yet, and the next round asks them when they have answered.
 */
enum rlock_status broadcast_run(struct quorum *quorum, const struct broadcast *broadcast,
                                struct rlock_deadline deadline);

/* broadcast_abandon: give up on those that weren't waited for, with the undo that the round has. */
void broadcast_abandon(struct quorum *quorum, const struct broadcast *broadcast);

/* broadcast_is_unanswered: was a request of the last round sent to which no answer came? */
bool broadcast_is_unanswered(const struct quorum *quorum);

struct votes {
    size_t n_granted;
    size_t restored;
    size_t held;
    size_t gone;
    size_t late;
    size_t superseded;
    size_t released;
    size_t done;
    size_t other_mode;
    size_t young;          /* granted, by one that doesn't count yet */
    size_t same_fence;     /* of those who granted: with the greatest */
    size_t same_owner;     /* of those where somebody is in the way: who is in most of them */
    unsigned granted_by;   /* a bit for each member that granted, counted or not */
    unsigned inconsistent; /* likewise that granted something else than most: it doesn't count */
    unsigned gone_from;    /* likewise where nobody has it */
    int64_t sent_ms;       /* the earliest of those who granted */
    uint64_t fence;        /* the greatest, of those who granted or came too late */
    int64_t left_ms;       /* the least; 0: not told */
    int64_t young_ms;      /* until the last of the young ones counts */
    int64_t ticket;        /* the greatest */
    struct reply granted;  /* of one of those who granted */
    struct reply held_by;  /* of one of those where something is in the way */
    struct reply stranger; /* of one of those where it is somebody who asks other servers */
};

/* votes_count: read all answers; what can't be read is a fault of its member. */
enum rlock_status votes_count(struct votes *votes, struct quorum *quorum, reply_parse *read,
                              struct rlock_error *err);

#endif
