/* SPDX-License-Identifier: MIT */
/* server_checks: reports which settings and states of a server make its locks unsafe. */
#ifndef SERVER_CHECKS_H
#define SERVER_CHECKS_H

#include "doctor/probes.h"

/*
 * server_checks_run: makes all checks, reports a finding of each, and sets probe->is_replica and
 * probe->is_cluster. Returns RLOCK_OK, RLOCK_STOPPED or a fault.
 */
enum rlock_status server_checks_run(struct probe *probe);

#endif
