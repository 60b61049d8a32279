/* SPDX-License-Identifier: MIT */
/* server_checks: what a server tells of itself that bears on its locks. */
#ifndef SERVER_CHECKS_H
#define SERVER_CHECKS_H

#include "doctor/probes.h"

/* server_checks_run: report each check; sets is_replica and is_cluster. RLOCK_OK or a fault. */
enum rlock_status server_checks_run(struct probe *probe);

#endif
