/* SPDX-License-Identifier: MIT */
/* error_reply: what a server's error reply means, as a status and a reason. */
#ifndef ERROR_REPLY_H
#define ERROR_REPLY_H

#include "rlock.h"

/* What to do about an error reply, where that depends on what the server said. */
enum error_reply {
    ERROR_REPLY_FINAL,           /* nothing: the request was not executed, and has failed */
    ERROR_REPLY_MOVED,           /* ask another node, from now on: cluster_redirect() */
    ERROR_REPLY_ASK,             /* ask another node, for this request only */
    ERROR_REPLY_TRY_AGAIN,       /* no node of the Cluster serves the key just now: ask later */
    ERROR_REPLY_NOSCRIPT,        /* the script can't be called by its SHA1: use EVAL */
    ERROR_REPLY_PARTLY_EXECUTED, /* the script has failed, maybe after it wrote something */
};

/*
 * error_reply_read: fill `err` from an error reply: status, reason, and the server's own words as
 * text. No other file compares the words of an error reply.
 *
 *   reply     as it came, without the '-'; any length, any bytes
 *   password  is masked in the text, since servers repeat what they were sent; NULL: there is none
 *   kind      out
 *   err       out; may be NULL
 *
 * Returns  RLOCK_E_REFUSED, RLOCK_E_SERVER or, for all that is not known here, RLOCK_E_UNSUPPORTED.
 */
enum rlock_status error_reply_read(const char *reply, const char *password, enum error_reply *kind,
                                   struct rlock_error *err);

#endif
