/* SPDX-License-Identifier: MIT */
/* renew: renew a lock by its token. */
#ifndef RENEW_H
#define RENEW_H

#include "options/options.h"

/* renew_lock: from the options to an exit status. */
int renew_lock(const struct options *options);

#endif
