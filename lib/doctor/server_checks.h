/* SPDX-License-Identifier: MIT */
/* server_checks: what a server tells of itself that bears on its locks. */
#ifndef SERVER_CHECKS_H
#define SERVER_CHECKS_H

#include "doctor/probes.h"

/* condition_tell: each thing that it tells, and each that it doesn't. RLOCK_OK or as `err` says. */
enum rlock_status condition_tell(struct probe *probe);

#endif
