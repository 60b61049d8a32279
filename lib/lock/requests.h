/* SPDX-License-Identifier: MIT */
/* requests: builds the requests that an owner sends. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include "lock/owner.h"

/* The parts of a request that aren't in struct owner, as they differ by member or by broadcast. */
struct requests_params {
    int64_t not_after_ms; /* the server refuses the request later than this time on its own clock;
                             0: it never refuses */
    int64_t block_ms;     /* for requests_wait(): how long to block */
    uint64_t fence;       /* for requests_confirm(): the fence to store */
    uint64_t drawn;       /* for requests_confirm(): the fence that this member returned to the
                             acquire; 0: not known */
};

/* Builds a request, which borrows strings of the owner until it is encoded. */
typedef void requests_build(const struct owner *owner, struct request *request,
                            const struct requests_params *params);

requests_build requests_acquire;
requests_build requests_confirm; /* store the fence that a quorum has chosen */
requests_build requests_renew;
requests_build requests_release;
requests_build requests_undo;    /* remove what the last attempt may have written, nothing else */
requests_build requests_requeue; /* as requests_undo(), and join the queue with the old ticket */
requests_build requests_leave;   /* remove all that the token wrote, and leave the queue */
requests_build requests_wait;    /* block in BLPOP until the server wakes the owner */

#endif
