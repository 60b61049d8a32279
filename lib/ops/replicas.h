/* SPDX-License-Identifier: MIT */
/* replicas: do enough of a server's replicas have what it granted? */
#ifndef REPLICAS_H
#define REPLICAS_H

#include "quorum/quorum.h"

/*
 * replicas_have: behind a grant or a renewal. RLOCK_OK (also where none are
 * wanted), RLOCK_E_REPLICAS (too few of them, for as long as a reply may take),
 * RLOCK_STOPPED, RLOCK_PENDING (ask for it all again, at once) or a fault.
 */
enum rlock_status replicas_have(struct quorum *quorum, struct rlock_deadline deadline,
                                struct rlock_error *err);

#endif
