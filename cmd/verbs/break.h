/* SPDX-License-Identifier: MIT */
/* break: take a lock away from whoever holds it. */
#ifndef BREAK_H
#define BREAK_H

#include "options/options.h"

/* break_lock: what the verb does; returns the exit status. */
int break_lock(const struct options *options);

#endif
