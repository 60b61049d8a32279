/* SPDX-License-Identifier: MIT */
/* topology_checks: the Sentinels that watch a server, or the Cluster that it is part of. */
#ifndef TOPOLOGY_CHECKS_H
#define TOPOLOGY_CHECKS_H

#include "doctor/probes.h"

/* Each tells one finding. RLOCK_OK, or a fault of the server under examination. */

/* ensemble_tell_sentinels: do those in the URL agree, and are they quick enough? */
enum rlock_status ensemble_tell_sentinels(struct probe *probe);

/* ensemble_tell_cluster: are all slots served, and what becomes of them when a node fails? */
enum rlock_status ensemble_tell_cluster(struct probe *probe);

#endif
