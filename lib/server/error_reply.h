/* SPDX-License-Identifier: MIT */
/* error_reply: what an error reply of a server means. */
#ifndef ERROR_REPLY_H
#define ERROR_REPLY_H

#include "rlock.h"

/*
 * error_reply_meaning: the fault that an error reply means, with its reason; its text is what of it
 * can be shown.
 */
enum rlock_status error_reply_meaning(const char *reply, const char *shown,
                                      struct rlock_error *err);

#endif
