/* SPDX-License-Identifier: MIT */
/* reason: for each enum rlock_reason a sentence for people, and advice on what they can do. */
#include "base/reason.h"

static const struct {
    const char *sentence; /* NULL: the text of the error says what has happened */
    const char *help;     /* NULL: no advice fits all faults with this reason */
    bool is_login;
} rows[] = {
    [RLOCK_REASON_NONE] = {NULL, NULL, false},
    [RLOCK_REASON_TOKEN] = {NULL, NULL, false},
    [RLOCK_REASON_PASSWORD_LOOKUP] = {NULL, NULL, true},
    [RLOCK_REASON_NO_PASSWORD] = {"the server wants a password, and none was given",
                                  "name the file that has it with --password-file FILE, or set "
                                  "RLOCK_PASSWORD",
                                  true},
    [RLOCK_REASON_WRONG_PASSWORD] =
        {"the server refuses the user or the password",
         "check the password (--password-file, RLOCK_PASSWORD, or the URL), and the user in the "
         "URL: -u redis://USER@HOST",
         true},
    [RLOCK_REASON_NEEDLESS_PASSWORD] =
        {"a password was given, but the server has none",
         "leave the password out, or name the user that it is for: -u redis://USER@HOST", true},
    [RLOCK_REASON_SENTINEL_LOGIN] =
        {NULL,
         "name the file with the password for the Sentinels with --sentinel-password-file, and "
         "their user with --sentinel-user",
         true},
    [RLOCK_REASON_NOT_REDIS] = {"no Redis server answers at this address",
                                "check the host and the port of the URL (-u)", false},
    [RLOCK_REASON_PROTECTED] =
        {"the server is in protected mode: it accepts connections from its own machine only",
         "set a password on the server (requirepass), or run rlock on that machine", false},
    [RLOCK_REASON_NO_RIGHT] =
        {"the server's rules (ACL) deny this user a command or a key that rlock needs",
         "rlock doctor -k KEY lists what to allow", false},
    [RLOCK_REASON_KEY_TYPE] = {"the key holds a value of another type, and no lock",
                               "choose another key, or look: redis-cli TYPE KEY", false},
    [RLOCK_REASON_NOT_PRIMARY] =
        {"the server is a replica, which grants no locks",
         "name the primary with -u, or the Sentinels: -u redis+sentinel://HOST/SERVICE", false},
    [RLOCK_REASON_LOADING] = {"the server has just started, and is still loading its data",
                              "wait for the server with -w DURATION", false},
    [RLOCK_REASON_SCRIPT_RUNS] = {"the server is busy with a script that runs for too long",
                                  "end the script: redis-cli SCRIPT KILL", false},
    [RLOCK_REASON_MEMORY_FULL] = {"the server's memory is full, so it accepts no writes",
                                  "raise the server's maxmemory, or delete keys", false},
    [RLOCK_REASON_DISK] = {"the server can't save to its disk, so it accepts no writes",
                           "look at the server's log and at its disk", false},
    [RLOCK_REASON_FEW_REPLICAS] =
        {"the server has too few replicas (min-replicas-to-write), so it accepts no writes",
         "bring the server's replicas back", false},
    [RLOCK_REASON_MANY_CLIENTS] = {"the server has as many clients as it allows",
                                   "raise the server's maxclients, or wait with -w DURATION",
                                   false},
    [RLOCK_REASON_CLUSTER_DOWN] = {"no node of the Cluster serves this key now",
                                   "look at the Cluster: redis-cli CLUSTER NODES", false},
    [RLOCK_REASON_OTHER_SLOTS] =
        {"these keys are in different hash slots of the Cluster",
         "give all keys the same text between braces, as in {job}:a and {job}:b", false},
    [RLOCK_REASON_NO_SCRIPTS] = {"the server refuses scripts (EVAL)",
                                 "use another server, for all who lock this key", false},
    [RLOCK_REASON_SCRIPTS_DENIED] = {"the server's rules (ACL) deny this user scripts (EVAL)",
                                     "rlock doctor -k KEY lists what to allow", false},
    [RLOCK_REASON_SCRIPTS_REJECTED] = {"the server runs scripts, but refuses rlock's",
                                       "use another server, for all who lock this key", false},
};

const char *reason_sentence(enum rlock_reason reason)
{
    return rows[reason].sentence;
}

const char *rlock_reason_help(enum rlock_reason reason)
{
    return rows[reason].help;
}

bool reason_is_login(enum rlock_reason reason)
{
    return rows[reason].is_login;
}

bool reason_is_about_scripts(enum rlock_reason reason)
{
    return reason >= RLOCK_REASON_NO_SCRIPTS && reason <= RLOCK_REASON_SCRIPTS_REJECTED;
}
