/* SPDX-License-Identifier: MIT */
/* requests: what an owner asks a server, as requests that run one script each. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include "lock/owner.h"

/* What goes into a request and isn't the owner's: it differs by server or by round. */
struct requests_params {
    int64_t not_after_ms; /* on the server's clock: later it refuses; 0: at any time */
    int64_t block_ms;     /* of a wait: owner_block_ms() */
    uint64_t fence;       /* of a confirmation */
};

/* One operation: fills `request`, which borrows words of the owner until it is encoded. */
typedef void requests_build(const struct owner *owner, struct request *request,
                            const struct requests_params *params);

requests_build requests_acquire;
requests_build requests_confirm; /* note the fence that a quorum agreed on */
requests_build requests_renew;
requests_build requests_release;
requests_build requests_undo;    /* remove what the last acquire may have written, nothing else */
requests_build requests_requeue; /* the same, and stand in line again with the owner's ticket */
requests_build
    requests_leave; /* remove all that the token wrote, and leave the line: its last use */
requests_build requests_wait; /* block until a waker says that our turn may have come */

#endif
