/* SPDX-License-Identifier: MIT */
/* run: hold a lock for as long as a command runs. */
#ifndef RUN_H
#define RUN_H

#include "options/options.h"

/* run: everything after the options were read. Returns the exit status, or ends by a signal. */
int run(const struct options *options);

#endif
