/* SPDX-License-Identifier: MIT */
/* error_reply: what a server's error reply means, as a status and a reason. */
#ifndef ERROR_REPLY_H
#define ERROR_REPLY_H

#include "rlock.h"

/*
 * error_reply_read: fill `err` from an error reply: status, reason, and the server's own words as
 * text. No other file compares the words of an error reply.
 *
 *   reply     as it came, without the '-'; any length, any bytes
 *   password  is masked in the text, since servers repeat what they were sent; NULL: there is none
 *   err       out; may be NULL
 *
 * Returns  RLOCK_E_REFUSED, RLOCK_E_SERVER or, for all that is not known here, RLOCK_E_UNSUPPORTED.
 */
enum rlock_status error_reply_read(const char *reply, const char *password,
                                   struct rlock_error *err);

#endif
