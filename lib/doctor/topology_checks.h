/* SPDX-License-Identifier: MIT */
/* topology_checks: reports whether Sentinels or a Cluster can replace a dead primary in time. */
#ifndef TOPOLOGY_CHECKS_H
#define TOPOLOGY_CHECKS_H

#include "doctor/probes.h"

/* Each function reports one finding, and returns RLOCK_OK, or a fault of the examined server. */

/* topology_check_sentinels: checks that the Sentinels of the URL agree and fail over in time. */
enum rlock_status topology_check_sentinels(struct probe *probe);

/* topology_check_cluster: checks that all slots are served, and stay so when a node fails. */
enum rlock_status topology_check_cluster(struct probe *probe);

#endif
