/* SPDX-License-Identifier: MIT */
/* status: tell who holds a lock, and who waits for it. */
#ifndef STATUS_H
#define STATUS_H

#include "options/options.h"

/* tell_status: what the verb does; returns the exit status. */
int tell_status(const struct options *options);

#endif
