/* SPDX-License-Identifier: MIT */
/*
 * error_reply: turns a server's error reply into a status, a reason and a text.
 *
 * Before Redis 7, if a command inside a script fails, the server puts text around its error ("ERR
 * Error running script (call to f_...): @user_script:9: -OOM command not ..."). So most words are
 * searched for in the whole reply. Source: the errors in redis/src and valkey/src; the test
 * tests/fault/replies.bats makes real servers send them.
 */
#include "server/error_reply.h"

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * What each error reply means. Of the rows whose `words` occur in the reply, the first one counts.
 * If `words` begin with '^', they must be at the start of the reply.
 */
static const struct {
    const char *words;
    enum rlock_status status;
    enum rlock_reason reason;
    enum error_reply kind;
} meanings[] = {
    /* the server did not execute the request; another node, or the same one later, may do so */
    {"^MOVED ", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_MOVED},
    {"^ASK ", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_ASK},
    {"^TRYAGAIN", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_TRY_AGAIN},
    {"^CLUSTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_TRY_AGAIN},
    {"^NOSCRIPT", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE, ERROR_REPLY_NOSCRIPT},
    /* the server refuses the user, the password or the key */
    {"WRONGTYPE", RLOCK_E_REFUSED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"NOAUTH", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN, ERROR_REPLY_FINAL},
    {"unauthenticated ", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN,
     ERROR_REPLY_FINAL}, /* sent instead of NOAUTH if the request is long */
    {"WRONGPASS", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN, ERROR_REPLY_FINAL},
    {"NOPERM", RLOCK_E_REFUSED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"DENIED", RLOCK_E_REFUSED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"invalid password", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN, ERROR_REPLY_FINAL},
    {"without any password configured", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN, ERROR_REPLY_FINAL},
    {"no password is set", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN, ERROR_REPLY_FINAL},
    /* the server denies a command inside a script: the words of Redis 8, and of Redis 7 (two) */
    {"ACL failure in script", RLOCK_E_REFUSED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"can't run this command", RLOCK_E_REFUSED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"can't access at least one of the keys", RLOCK_E_REFUSED, RLOCK_REASON_NONE,
     ERROR_REPLY_FINAL},
    /* the server can't execute the request now */
    {"LOADING", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"BUSY", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"OOM", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"MISCONF", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"READONLY", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY, ERROR_REPLY_FINAL},
    {"MASTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY, ERROR_REPLY_FINAL},
    {"UNBLOCKED", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY, ERROR_REPLY_FINAL},
    {"NOREPLICAS", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"max number of clients", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    /* the script used a key that is being moved to another node; it may have written other keys */
    {"non local key", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_PARTLY_EXECUTED},
    /* a command inside a script got a redirect: the script's error names no node to ask instead */
    {"MOVED", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"ASK", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"TRYAGAIN", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"CLUSTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    /* the server will never execute this request */
    {"CROSSSLOT", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"timeout is not an integer", RLOCK_E_UNSUPPORTED, RLOCK_REASON_WHOLE_SECONDS,
     ERROR_REPLY_FINAL},
    {"", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL}, /* every other error */
};

/* Our scripts reply FOREIGN if another program uses the key, see lib/lua/shared/keys.lua. */
#define FOREIGN "FOREIGN "
#define SHOWN_BYTES 160 /* error messages quote this much of a reply */

static bool matches(const char *reply, const char *words)
{
    if (words[0] == '^')
        return strncmp(reply, words + 1, strlen(words + 1)) == 0;
    return strstr(reply, words) != NULL;
}

enum rlock_status error_reply_read(const char *reply, const char *password, enum error_reply *kind,
                                   struct rlock_error *err)
{
    char masked[SHOWN_BYTES];
    enum rlock_status st;
    size_t i = 0;

    err_copy_masked(masked, sizeof masked, reply, password);
    err_make_printable(masked);
    *kind = ERROR_REPLY_FINAL;
    if (matches(reply, "^" FOREIGN))
        return err_set(err, RLOCK_E_REFUSED, 0,
                       "%s: another program uses this key; look at it, and DEL it if it isn't "
                       "needed",
                       masked + strlen(FOREIGN));
    while (!matches(reply, meanings[i].words))
        i++;
    st = meanings[i].status;
    *kind = meanings[i].kind;
    /* an error about EVALSHA: it is denied, renamed, or unknown to a proxy; EVAL may still work */
    if (strcasestr(reply, "evalsha") != NULL)
        *kind = ERROR_REPLY_NOSCRIPT;
    if (matches(reply, "unauthenticated "))
        snprintf(masked, sizeof masked, "NOAUTH Authentication required.");
    err_set(err, st, 0, "the server says: %s", masked);
    err_set_reason(err, meanings[i].reason);
    if (matches(reply, "CROSSSLOT"))
        err_suffix(err, "give all keys the same text between braces, as in {job}:a and {job}:b");
    return st;
}
