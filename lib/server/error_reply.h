/* SPDX-License-Identifier: MIT */
/* error_reply: turns a server's error reply into a status, a reason and a text. */
#ifndef ERROR_REPLY_H
#define ERROR_REPLY_H

#include "rlock.h"

/* What the caller does after an error reply. */
enum error_reply {
    ERROR_REPLY_FINAL,           /* fails; the server did not execute the request */
    ERROR_REPLY_MOVED,           /* asks another node from now on, see cluster_redirect() */
    ERROR_REPLY_ASK,             /* asks another node, for this request only */
    ERROR_REPLY_TRY_AGAIN,       /* asks later: no node of the Cluster serves the key now */
    ERROR_REPLY_NOSCRIPT,        /* sends EVAL: EVALSHA can't call the script */
    ERROR_REPLY_PARTLY_EXECUTED, /* fails; the script may have written something before its error */
};

/*
 * error_reply_read: fill `err` from an error reply: status, reason, and the server's own words as
 * text. No other file compares the words of an error reply.
 *
 *   reply     the reply without its '-'; of any length, with any bytes
 *   password  masked in the text, as a server may repeat the arguments of AUTH; NULL: none
 *   kind      out
 *   err       out; may be NULL
 *
 * Returns  RLOCK_E_REFUSED, RLOCK_E_SERVER or, for an unknown error, RLOCK_E_UNSUPPORTED.
 */
enum rlock_status error_reply_read(const char *reply, const char *password, enum error_reply *kind,
                                   struct rlock_error *err);

#endif
