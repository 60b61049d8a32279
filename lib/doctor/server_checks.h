/* SPDX-License-Identifier: MIT */
/* server_checks: reports which settings and states of a server make its locks unsafe. */
#ifndef SERVER_CHECKS_H
#define SERVER_CHECKS_H

#include "doctor/probes.h"

/*
 * server_checks_run: makes all checks but that of scripts, reports a finding of each, and sets
 * probe->is_replica and probe->is_cluster. Returns RLOCK_OK, RLOCK_STOPPED or a fault.
 */
enum rlock_status server_checks_run(struct probe *probe);

/*
 * server_checks_scripts: reports for how long a script of anybody may keep the server busy. Call it
 * after the server has run a script of rlock. Returns as server_checks_run().
 */
enum rlock_status server_checks_scripts(struct probe *probe);

#endif
