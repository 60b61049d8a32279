/* SPDX-License-Identifier: MIT */
/* topology_checks: the Sentinels that watch a server, or the Cluster that it is part of. */
#ifndef TOPOLOGY_CHECKS_H
#define TOPOLOGY_CHECKS_H

#include "doctor/probes.h"

/* Each reports one finding. RLOCK_OK, or a fault of the server under examination. */

/* topology_check_sentinels: do the Sentinels of the URL agree, and fail over in time? */
enum rlock_status topology_check_sentinels(struct probe *probe);

/* topology_check_cluster: are all slots served, also when a node fails? */
enum rlock_status topology_check_cluster(struct probe *probe);

#endif
