/* SPDX-License-Identifier: MIT */
/*
 * refusal: what an error reply of a server means.
 *
 * Before Redis 7 an error inside a script arrives wrapped ("ERR Error running
 * script (call to f_...): @user_script:9: -OOM command not ..."), so the words
 * are looked for anywhere in the reply. Source: the errors of redis/src and
 * valkey/src, provoked one by one in tests/fault/replies.bats.
 */
#include "refusal.h"

#include "err.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *words;
    enum rlock_status meaning;
} meanings[] = {
    {"WRONGTYPE", RLOCK_E_REFUSED},
    {"NOAUTH", RLOCK_E_REFUSED},
    {"WRONGPASS", RLOCK_E_REFUSED},
    {"NOPERM", RLOCK_E_REFUSED},
    {"DENIED", RLOCK_E_REFUSED},
    {"invalid password", RLOCK_E_REFUSED},
    {"without any password configured", RLOCK_E_REFUSED},
    {"no password is set", RLOCK_E_REFUSED},
    {"ACL failure in script", RLOCK_E_REFUSED}, /* Redis 8; the next two are older ones' */
    {"can't run this command", RLOCK_E_REFUSED},
    {"can't access at least one of the keys", RLOCK_E_REFUSED},
    {"LOADING", RLOCK_E_SERVER},
    {"BUSY", RLOCK_E_SERVER},
    {"OOM", RLOCK_E_SERVER},
    {"MISCONF", RLOCK_E_SERVER},
    {"READONLY", RLOCK_E_SERVER},
    {"MASTERDOWN", RLOCK_E_SERVER},
    {"NOREPLICAS", RLOCK_E_SERVER},
    {"CLUSTERDOWN", RLOCK_E_SERVER},
    {"TRYAGAIN", RLOCK_E_SERVER},
    {"UNBLOCKED", RLOCK_E_SERVER},
    {"max number of clients", RLOCK_E_SERVER},
    {"non local key", RLOCK_E_SERVER}, /* of a script, while the slot is on its way */
    {"MOVED", RLOCK_E_SERVER},         /* too often in a row; else it was followed */
    {"ASK", RLOCK_E_SERVER},
    {"CROSSSLOT", RLOCK_E_UNSUPPORTED},
};

enum rlock_status refusal_meaning(const char *reply, const char *shown, struct rlock_error *err)
{
    size_t n = sizeof meanings / sizeof meanings[0];
    char said[160];
    size_t i;

    /* what it says to a long request before AUTH, instead of NOAUTH */
    if (strstr(reply, "unauthenticated ") != NULL)
        reply = shown = "NOAUTH Authentication required.";
    for (i = 0; i < n; i++)
        if (strstr(reply, meanings[i].words) != NULL)
            break;
    snprintf(said, sizeof said, "%s", shown);
    err_printable(said);
    err_set(err, i < n ? meanings[i].meaning : RLOCK_E_UNSUPPORTED, 0, "the server says: %s", said);
    if (strstr(reply, "CROSSSLOT") != NULL)
        err_suffix(err, "what several keys share goes between braces, as in {job}:a and {job}:b");
    return i < n ? meanings[i].meaning : RLOCK_E_UNSUPPORTED;
}
