/* SPDX-License-Identifier: MIT */
/* acquire: take a lock without a command, and print its token. */
#ifndef ACQUIRE_H
#define ACQUIRE_H

#include "options/options.h"

/* acquire_lock: from the options to an exit status. */
int acquire_lock(const struct options *options);

#endif
