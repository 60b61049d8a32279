/* SPDX-License-Identifier: MIT */
/* round: one request to each member at the same time, until it is decided. */
#ifndef ROUND_H
#define ROUND_H

#include "lock/requests.h"
#include "quorum/members.h"

struct round {
    const struct owner *owner;
    requests_build *ask;
    const struct request *request; /* what is asked where it isn't about the lease */
    answer_read *read;             /* how to tell a yes; NULL: any answer is one */
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
 * round_run: RLOCK_OK or RLOCK_STOPPED; how it went is told by the members'
 * states. Those that weren't waited for are RLOCK_PENDING: what they were asked
 * may be executed yet, and the next round asks them when they have answered.
 */
enum rlock_status round_run(struct quorum *quorum, const struct round *round,
                            struct rlock_deadline deadline);

/* round_drop: give up on those that weren't waited for, with the undo that the round has. */
void round_drop(struct quorum *quorum, const struct round *round);

/* round_unanswered: was a request of the last round sent to which no answer came? */
bool round_unanswered(const struct quorum *quorum);

#endif
