/* SPDX-License-Identifier: MIT */
/* replicas: asks a server whether enough of its replicas have a grant or a renewal. */
#ifndef REPLICAS_H
#define REPLICAS_H

#include "quorum/quorum.h"

/*
 * replicas_have: waits until quorum->replicas replicas of a majority of the members have
 * acknowledged the grant or the renewal, which the caller has sent just before. Blocks for up to
 * reply_ms.
 *
 * Returns  RLOCK_OK (also if quorum->replicas is 0), RLOCK_E_REPLICAS, RLOCK_STOPPED or a fault.
 *          RLOCK_PENDING: enough replicas have acknowledged, but so late that too little of the
 *          lease may be left: the caller acquires or renews again.
 */
enum rlock_status replicas_have(struct quorum *quorum, struct rlock_deadline deadline,
                                struct rlock_error *err);

#endif
