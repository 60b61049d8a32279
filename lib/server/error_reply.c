/* SPDX-License-Identifier: MIT */
/*
 * error_reply: what a server's error reply means, as a status and a reason.
 *
 * Before Redis 7 an error that a script meets arrives wrapped ("ERR Error running script (call to
 * f_...): @user_script:9: -OOM command not ..."), so most words are looked for anywhere in the
 * reply. Source: the errors of redis/src and valkey/src, provoked one by one in
 * tests/fault/replies.bats.
 */
#include "server/error_reply.h"

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The first row whose words stand in the reply counts; after '^' they must begin it. */
static const struct {
    const char *words;
    enum rlock_status status;
    enum rlock_reason reason;
    enum error_reply kind;
} meanings[] = {
    /* the server didn't execute the request, and says where or when it would be */
    {"^MOVED ", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_MOVED},
    {"^ASK ", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_ASK},
    {"^TRYAGAIN", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_TRY_AGAIN},
    {"^CLUSTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_TRY_AGAIN},
    {"^NOSCRIPT", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE, ERROR_REPLY_NOSCRIPT},
    /* it refuses us */
    {"WRONGTYPE", RLOCK_E_REFUSED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"NOAUTH", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN, ERROR_REPLY_FINAL},
    {"unauthenticated ", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN,
     ERROR_REPLY_FINAL}, /* NOAUTH, to a long request */
    {"WRONGPASS", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN, ERROR_REPLY_FINAL},
    {"NOPERM", RLOCK_E_REFUSED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"DENIED", RLOCK_E_REFUSED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"invalid password", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN, ERROR_REPLY_FINAL},
    {"without any password configured", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN, ERROR_REPLY_FINAL},
    {"no password is set", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN, ERROR_REPLY_FINAL},
    {"ACL failure in script", RLOCK_E_REFUSED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},  /* Redis 8 */
    {"can't run this command", RLOCK_E_REFUSED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL}, /* Redis 7 */
    {"can't access at least one of the keys", RLOCK_E_REFUSED, RLOCK_REASON_NONE,
     ERROR_REPLY_FINAL}, /* Redis 7 */
    /* it can't serve us now */
    {"LOADING", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"BUSY", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"OOM", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"MISCONF", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"READONLY", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY, ERROR_REPLY_FINAL},
    {"MASTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY, ERROR_REPLY_FINAL},
    {"UNBLOCKED", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY, ERROR_REPLY_FINAL},
    {"NOREPLICAS", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"max number of clients", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    /* a script met a key whose slot is being moved to another node; it may have written others */
    {"non local key", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_PARTLY_EXECUTED},
    /* the same words inside a script's error: nobody can be asked instead */
    {"MOVED", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"ASK", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"TRYAGAIN", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"CLUSTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    /* it can't do what was asked, now or later */
    {"CROSSSLOT", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"timeout is not an integer", RLOCK_E_UNSUPPORTED, RLOCK_REASON_WHOLE_SECONDS,
     ERROR_REPLY_FINAL},
    {"", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL}, /* whatever else it says */
};

#define FOREIGN "FOREIGN " /* our scripts say so of a key of another program: shared/keys.lua */
#define SHOWN_BYTES 160

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
    /* EVALSHA is forbidden to our user, or renamed, or not known to a proxy: EVAL may be allowed */
    if (strcasestr(reply, "evalsha") != NULL)
        *kind = ERROR_REPLY_NOSCRIPT;
    if (matches(reply, "unauthenticated "))
        snprintf(masked, sizeof masked, "NOAUTH Authentication required.");
    err_set(err, st, 0, "the server says: %s", masked);
    err_set_reason(err, meanings[i].reason);
    if (matches(reply, "CROSSSLOT"))
        err_suffix(err, "what several keys share goes between braces, as in {job}:a and {job}:b");
    return st;
}
