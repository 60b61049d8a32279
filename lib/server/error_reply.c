/* SPDX-License-Identifier: MIT */
/*
 * error_reply: what an error reply of a server means.
 *
 * Before Redis 7 an error inside a script arrives wrapped ("ERR Error running
 * script (call to f_...): @user_script:9: -OOM command not ..."), so the words
 * are looked for anywhere in the reply. Source: the errors of redis/src and
 * valkey/src, provoked one by one in tests/fault/replies.bats.
 */
#include "server/error_reply.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *words;
    enum rlock_status meaning;
    enum rlock_reason reason;
} meanings[] = {
    {"WRONGTYPE", RLOCK_E_REFUSED, RLOCK_REASON_NONE},
    {"NOAUTH", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN},
    {"WRONGPASS", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN},
    {"NOPERM", RLOCK_E_REFUSED, RLOCK_REASON_NONE},
    {"DENIED", RLOCK_E_REFUSED, RLOCK_REASON_NONE},
    {"invalid password", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN},
    {"without any password configured", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN},
    {"no password is set", RLOCK_E_REFUSED, RLOCK_REASON_LOGIN},
    {"ACL failure in script", RLOCK_E_REFUSED,
     RLOCK_REASON_NONE}, /* Redis 8; the next two are older ones' */
    {"can't run this command", RLOCK_E_REFUSED, RLOCK_REASON_NONE},
    {"can't access at least one of the keys", RLOCK_E_REFUSED, RLOCK_REASON_NONE},
    {"LOADING", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"BUSY", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"OOM", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"MISCONF", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"READONLY", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY},
    {"MASTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY},
    {"NOREPLICAS", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"CLUSTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"TRYAGAIN", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"UNBLOCKED", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY},
    {"max number of clients", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"non local key", RLOCK_E_SERVER,
     RLOCK_REASON_NONE},                          /* of a script, while the slot is on its way */
    {"MOVED", RLOCK_E_SERVER, RLOCK_REASON_NONE}, /* too often in a row; else it was followed */
    {"ASK", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"CROSSSLOT", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE},
    {"timeout is not an integer", RLOCK_E_UNSUPPORTED, RLOCK_REASON_WHOLE_SECONDS},
};

#define FOREIGN "FOREIGN " /* see lib/lua/shared/keys.lua */

enum rlock_status error_reply_meaning(const char *reply, const char *shown, struct rlock_error *err)
{
    size_t n = sizeof meanings / sizeof meanings[0];
    char said[160];
    size_t i;

    if (strncmp(reply, FOREIGN, strlen(FOREIGN)) == 0) { /* one of our scripts says it */
        snprintf(said, sizeof said, "%s", shown + strlen(FOREIGN));
        err_printable(said);
        return err_set(err, RLOCK_E_REFUSED, 0,
                       "%s: another program uses this key; look at it, and DEL it if it isn't "
                       "needed",
                       said);
    }
    /* what it says to a long request before AUTH, instead of NOAUTH */
    if (strstr(reply, "unauthenticated ") != NULL)
        reply = shown = "NOAUTH Authentication required.";
    for (i = 0; i < n; i++)
        if (strstr(reply, meanings[i].words) != NULL)
            break;
    snprintf(said, sizeof said, "%s", shown);
    err_printable(said);
    err_set(err, i < n ? meanings[i].meaning : RLOCK_E_UNSUPPORTED, 0, "the server says: %s", said);
    if (i < n && err != NULL)
        err->reason = meanings[i].reason;
    if (strstr(reply, "CROSSSLOT") != NULL)
        err_suffix(err, "what several keys share goes between braces, as in {job}:a and {job}:b");
    return i < n ? meanings[i].meaning : RLOCK_E_UNSUPPORTED;
}
