/* SPDX-License-Identifier: MIT */
/* doctor: tell what makes locks unsafe, and what to change. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "options/options.h"

/* tell_doctor: what the verb does; returns the exit status. */
int tell_doctor(const struct options *options);

#endif
