/* SPDX-License-Identifier: MIT */
/* doctor: examines servers, and reports what makes their locks unsafe. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

/*
 * doctor_examine: implements rlock_examine().
 *
 *   keeps_history  config.history isn't 0
 *   needs_scripts  what the caller's lock needs scripts for: "a shared lock"; NULL: for nothing
 */
enum rlock_status doctor_examine(struct quorum *quorum, const char *key, bool keeps_history,
                                 const char *needs_scripts, struct rlock_deadline deadline,
                                 const struct rlock_examiner *examiner, struct rlock_error *err);

#endif
