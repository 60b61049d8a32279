/* SPDX-License-Identifier: MIT */
/* error_reply: turns a server's error reply into a status, a reason and a text. */
#ifndef ERROR_REPLY_H
#define ERROR_REPLY_H

#include "rlock.h"

/* What the caller does after an error reply. */
enum error_reply {
    ERROR_REPLY_FINAL,           /* the server did not execute the request, which has failed */
    ERROR_REPLY_MOVED,           /* the caller asks another node from now on: cluster_redirect() */
    ERROR_REPLY_ASK,             /* the caller asks another node, for this request only */
    ERROR_REPLY_TRY_AGAIN,       /* no node serves the key now: the caller asks again later */
    ERROR_REPLY_NOSCRIPT,        /* EVALSHA can't call the script: the caller sends EVAL */
    ERROR_REPLY_PARTLY_EXECUTED, /* the request has failed, but the script may have written keys */
};

/*
 * error_reply_read: fill `err` from an error reply: status, reason, and as text what the reason
 * means (reason_sentence()) and then the server's own words, without the hash of the script in
 * which the error occurred.
 *
 *   reply     the reply without its '-'; of any length, with any bytes
 *   password  that AUTH sent, masked in the text, as a server may repeat it; NULL: none was sent
 *   kind      out
 *   err       out; may be NULL
 *
 * Returns  RLOCK_E_REFUSED, RLOCK_E_SERVER or RLOCK_E_UNSUPPORTED (also for an unknown error).
 */
enum rlock_status error_reply_read(const char *reply, const char *password, enum error_reply *kind,
                                   struct rlock_error *err);

#endif
