/* SPDX-License-Identifier: MIT */
/* replicas: do enough of a server's replicas have what it granted? */
#ifndef REPLICAS_H
#define REPLICAS_H

#include "quorum/quorum.h"

/*
 * replicas_have: right after a grant or a renewal, ask for as many acknowledgements as the quorum's
 * `replicas` says. Blocks for up to reply_ms.
 *
 * Returns  RLOCK_OK (also if no replicas are wanted), RLOCK_E_REPLICAS, RLOCK_STOPPED,
 *          RLOCK_PENDING (too late to be of use: grant or renew again, at once) or a fault.
 */
enum rlock_status replicas_have(struct quorum *quorum, struct rlock_deadline deadline,
                                struct rlock_error *err);

#endif
