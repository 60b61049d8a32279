/* SPDX-License-Identifier: MIT */
/* error_reply: what an error reply of a server means. */
#ifndef REFUSAL_H
#define REFUSAL_H

#include "rlock.h"

/*
 * refusal_meaning: the fault that an error reply means, with its reason; its text is what of it
 * can be shown.
 */
enum rlock_status refusal_meaning(const char *reply, const char *shown, struct rlock_error *err);

#endif
