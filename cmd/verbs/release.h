/* SPDX-License-Identifier: MIT */
/* release: give a lock back by its token. */
#ifndef RELEASE_H
#define RELEASE_H

#include "options/options.h"

/* release_lock: from the options to an exit status. */
int release_lock(const struct options *options);

#endif
