/* SPDX-License-Identifier: MIT */
/* refusal: what an error reply of a server means. */
#ifndef REFUSAL_H
#define REFUSAL_H

#include "rlock.h"

/* refusal_meaning: a fault with the server's words, for an error reply. */
enum rlock_status refusal_meaning(const char *reply, struct rlock_error *err);

#endif
