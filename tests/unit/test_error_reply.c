/* SPDX-License-Identifier: MIT */
/* test_error_reply: the status, reason and text of error replies, bare and inside script errors. */
#include "base/err.h"
#include "base/reason.h"
#include "server/error_reply.h"
#include "tap.h"

/* Error replies of Redis and Valkey, without the leading "-". */
static const struct {
    const char *text;
    enum rlock_status meaning;
} errors[] = {
    {"WRONGTYPE Operation against a key holding the wrong kind of value", RLOCK_E_REFUSED},
    {"NOAUTH Authentication required.", RLOCK_E_REFUSED},
    {"WRONGPASS invalid username-password pair or user is disabled.", RLOCK_E_REFUSED},
    {"ERR invalid password", RLOCK_E_REFUSED},
    {"ERR Client sent AUTH, but no password is set", RLOCK_E_REFUSED},
    {"ERR AUTH <password> called without any password configured for the default user. Are you "
     "sure your configuration is correct?",
     RLOCK_E_REFUSED},
    {"NOPERM this user has no permissions to run the 'eval' command or its subcommand",
     RLOCK_E_REFUSED},
    {"NOPERM User app has no permissions to run the 'eval' command", RLOCK_E_REFUSED},
    {"NOPERM No permissions to access a key", RLOCK_E_REFUSED},
    {"ERR Protocol error: unauthenticated bulk length", RLOCK_E_REFUSED},
    {"ERR The user executing the script can't run this command or subcommand", RLOCK_E_REFUSED},
    {"ERR The user executing the script can't access at least one of the keys mentioned in the "
     "command arguments",
     RLOCK_E_REFUSED},
    {"DENIED Redis is running in protected mode because protected mode is enabled",
     RLOCK_E_REFUSED},
    {"LOADING Redis is loading the dataset in memory", RLOCK_E_SERVER},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     RLOCK_E_SERVER},
    {"OOM command not allowed when used memory > 'maxmemory'.", RLOCK_E_SERVER},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
     "disk.",
     RLOCK_E_SERVER},
    {"READONLY You can't write against a read only replica.", RLOCK_E_SERVER},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     RLOCK_E_SERVER},
    {"NOREPLICAS Not enough good replicas to write.", RLOCK_E_SERVER},
    {"CLUSTERDOWN The cluster is down", RLOCK_E_SERVER},
    {"TRYAGAIN Multiple keys request during rehashing of slot", RLOCK_E_SERVER},
    {"UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
     "replica?)",
     RLOCK_E_SERVER},
    {"ERR max number of clients reached", RLOCK_E_SERVER},
    {"ERR max number of clients + cluster connections reached", RLOCK_E_SERVER},
    {"MOVED 3999 127.0.0.1:6381", RLOCK_E_SERVER},
    {"ASK 3999 127.0.0.1:6381", RLOCK_E_SERVER},
    {"ERR Script attempted to access a non local key in a cluster node", RLOCK_E_SERVER},
    {"CROSSSLOT Keys in request don't hash to the same slot", RLOCK_E_UNSUPPORTED},
    {"ERR unknown command `EVAL`, with args beginning with: `x`, `2`, ", RLOCK_E_UNSUPPORTED},
    {"ERR unknown command 'eval'", RLOCK_E_UNSUPPORTED},
    {"ERR DB index is out of range", RLOCK_E_UNSUPPORTED},
    {"ERR SELECT is not allowed in cluster mode", RLOCK_E_UNSUPPORTED},
    {"ERR wrong number of arguments for 'auth' command", RLOCK_E_UNSUPPORTED},
    {"ERR value is not an integer or out of range", RLOCK_E_UNSUPPORTED},
    {"ERR Error compiling script (new function): user_script:1: unexpected symbol",
     RLOCK_E_UNSUPPORTED},
    {"ERR", RLOCK_E_UNSUPPORTED},
    {"", RLOCK_E_UNSUPPORTED},
};

/* The text that each version of Redis puts around the error of a command in a script. */
static const struct {
    const char *before, *after;
} wrappings[] = {
    {"", ""},
    {"ERR Error running script (call to f_17eb1f0cbdcb4c1d8b1b8a8c0a8c1e1f2a3b4c5d): "
     "@user_script:9: @user_script: 9: -",
     ""}, /* Redis 6.0 */
    {"ERR Error running script (call to f_17eb1f0cbdcb4c1d8b1b8a8c0a8c1e1f2a3b4c5d): "
     "@user_script:9: ",
     ""},                                                                          /* Redis 6.2 */
    {"", " script: 17eb1f0cbdcb4c1d8b1b8a8c0a8c1e1f2a3b4c5d, on @user_script:9."}, /* Redis 7 */
    {"", " script: on @user_script:9."},                                           /* Valkey 9 */
};

/* The reason and the kind, by which the caller decides whether to send the request again. */
static const struct {
    const char *text;
    enum rlock_reason reason;
    enum error_reply kind;
} reasons[] = {
    {"MOVED 3999 10.0.0.1:6381", RLOCK_REASON_NONE, ERROR_REPLY_MOVED},
    {"ASK 3999 10.0.0.1:6381", RLOCK_REASON_NONE, ERROR_REPLY_ASK},
    {"TRYAGAIN Multiple keys request during rehashing of slot", RLOCK_REASON_NONE,
     ERROR_REPLY_TRY_AGAIN},
    {"CLUSTERDOWN Hash slot not served", RLOCK_REASON_CLUSTER_DOWN, ERROR_REPLY_TRY_AGAIN},
    {"CLUSTERDOWN", RLOCK_REASON_CLUSTER_DOWN, ERROR_REPLY_TRY_AGAIN},
    {"CROSSSLOT Keys in request don't hash to the same slot", RLOCK_REASON_OTHER_SLOTS,
     ERROR_REPLY_FINAL},
    {"ERR MOVED 3999 10.0.0.1:6381", RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"ERR CLUSTERDOWN", RLOCK_REASON_CLUSTER_DOWN, ERROR_REPLY_FINAL},
    {"MOVED", RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"ASKING", RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"", RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"NOSCRIPT No matching script. Please use EVAL.", RLOCK_REASON_NONE, ERROR_REPLY_NOSCRIPT},
    {"NOPERM User app has no permissions to run the 'evalsha' command", RLOCK_REASON_NO_RIGHT,
     ERROR_REPLY_NOSCRIPT},
    {"ERR unknown command `EVALSHA`, with args beginning with: ", RLOCK_REASON_NONE,
     ERROR_REPLY_NOSCRIPT},
    {"NOPERM User app has no permissions to run the 'eval' command", RLOCK_REASON_SCRIPTS_DENIED,
     ERROR_REPLY_FINAL},
    {"ERR unknown command 'EVAL', with args beginning with: ", RLOCK_REASON_NO_SCRIPTS,
     ERROR_REPLY_FINAL},
    {"unsupported command 'EVAL'", RLOCK_REASON_NO_SCRIPTS, ERROR_REPLY_FINAL},
    {"ERR command eval not support for normal user", RLOCK_REASON_NO_SCRIPTS, ERROR_REPLY_FINAL},
    {"ERR bad lua script for redis cluster, all the keys that the script uses should be passed "
     "using the KEYS array",
     RLOCK_REASON_SCRIPTS_REJECTED, ERROR_REPLY_FINAL},
    {"ERR bad lua script for redis cluster, first parameter of redis.call/redis.pcall must be a "
     "single literal string",
     RLOCK_REASON_SCRIPTS_REJECTED, ERROR_REPLY_FINAL},
    {"ERR Lua scripts without any input keys are not supported", RLOCK_REASON_SCRIPTS_REJECTED,
     ERROR_REPLY_FINAL},
    {"ERR undeclared key {k}:x", RLOCK_REASON_SCRIPTS_REJECTED, ERROR_REPLY_FINAL},
    {"ERR script tried accessing keys", RLOCK_REASON_SCRIPTS_REJECTED, ERROR_REPLY_FINAL},
    {"ERR This Redis command is not allowed from script", RLOCK_REASON_SCRIPTS_REJECTED,
     ERROR_REPLY_FINAL},
    {"ERR unknown command `EVAL`, with args beginning with: ", RLOCK_REASON_NO_SCRIPTS,
     ERROR_REPLY_FINAL},
    {"ERR Script attempted to access a non local key in a cluster node", RLOCK_REASON_NONE,
     ERROR_REPLY_PARTLY_EXECUTED},
    {"NOAUTH Authentication required.", RLOCK_REASON_NO_PASSWORD, ERROR_REPLY_FINAL},
    {"ERR Protocol error: unauthenticated bulk length", RLOCK_REASON_NO_PASSWORD,
     ERROR_REPLY_FINAL},
    {"WRONGPASS invalid username-password pair or user is disabled.", RLOCK_REASON_WRONG_PASSWORD,
     ERROR_REPLY_FINAL},
    {"ERR invalid password", RLOCK_REASON_WRONG_PASSWORD, ERROR_REPLY_FINAL},
    {"ERR Client sent AUTH, but no password is set", RLOCK_REASON_NEEDLESS_PASSWORD,
     ERROR_REPLY_FINAL},
    {"ERR AUTH <password> called without any password configured for the default user.",
     RLOCK_REASON_NEEDLESS_PASSWORD, ERROR_REPLY_FINAL},
    {"NOPERM No permissions to access a key", RLOCK_REASON_NO_RIGHT, ERROR_REPLY_FINAL},
    {"ERR The user executing the script can't run this command or subcommand",
     RLOCK_REASON_NO_RIGHT, ERROR_REPLY_FINAL},
    {"DENIED Redis is running in protected mode", RLOCK_REASON_PROTECTED, ERROR_REPLY_FINAL},
    {"WRONGTYPE Operation against a key", RLOCK_REASON_KEY_TYPE, ERROR_REPLY_FINAL},
    {"READONLY You can't write against a read only replica.", RLOCK_REASON_NOT_PRIMARY,
     ERROR_REPLY_FINAL},
    {"MASTERDOWN Link with MASTER is down", RLOCK_REASON_NOT_PRIMARY, ERROR_REPLY_FINAL},
    {"UNBLOCKED force unblock from blocking operation", RLOCK_REASON_NOT_PRIMARY,
     ERROR_REPLY_FINAL},
    {"LOADING Redis is loading the dataset in memory", RLOCK_REASON_LOADING, ERROR_REPLY_FINAL},
    {"BUSY Redis is busy running a script.", RLOCK_REASON_SCRIPT_RUNS, ERROR_REPLY_FINAL},
    {"OOM command not allowed", RLOCK_REASON_MEMORY_FULL, ERROR_REPLY_FINAL},
    {"MISCONF Redis is configured to save", RLOCK_REASON_DISK, ERROR_REPLY_FINAL},
    {"NOREPLICAS Not enough good replicas to write.", RLOCK_REASON_FEW_REPLICAS, ERROR_REPLY_FINAL},
    {"ERR max number of clients reached", RLOCK_REASON_MANY_CLIENTS, ERROR_REPLY_FINAL},
};

static void test_reasons(void)
{
    struct rlock_error err;
    enum error_reply kind;

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        (void)error_reply_read(reasons[i].text, "secret", &kind, &err);
        okf(err.reason == reasons[i].reason && kind == reasons[i].kind, "reason and kind of: %s",
            reasons[i].text);
    }
}

/* The text about a reason has a sentence and advice of rlock, and then the server's own words. */
static void test_sentences(void)
{
    struct rlock_error err;
    enum error_reply kind;

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        const char *sentence = reason_sentence(reasons[i].reason);

        if (sentence == NULL)
            continue;
        (void)error_reply_read(reasons[i].text, "secret", &kind, &err);
        okf(strncmp(err.text, sentence, strlen(sentence)) == 0 &&
                strncmp(err.text + err.said, "the server says: ", 17) == 0 &&
                rlock_reason_help(reasons[i].reason) != NULL,
            "a sentence, advice, and then the server's words: %s", err.text);
    }
    (void)error_reply_read("WRONGPASS invalid username-password pair", NULL, &kind, &err);
    err_prefix(&err, "host:1");
    is_str(err.text + err.said, "the server says: WRONGPASS invalid username-password pair");
}

/* Returns the server's words in the text of the error. */
static const char *words_of(const char *reply)
{
    static struct rlock_error err;
    enum error_reply kind;

    (void)error_reply_read(reply, NULL, &kind, &err);
    return err.text + err.said + strlen("the server says: ");
}

static void test_words(void)
{
    char reply[1024];

    for (size_t j = 0; j < sizeof wrappings / sizeof wrappings[0]; j++) {
        snprintf(reply, sizeof reply, "%sOOM command not allowed%s", wrappings[j].before,
                 wrappings[j].after);
        is_str(words_of(reply), "OOM command not allowed");
    }
    is_str(words_of("DENIED Redis is running in protected mode because protected mode is enabled "
                    "and no password is set for the default user. In this mode connections are "
                    "only accepted from the loopback interface. If you want to connect from "),
           "DENIED Redis is running in protected mode because protected mode is enabled and no "
           "password is set for the default user.");
    memset(reply, 'x', 500);
    reply[500] = '\0';
    is_str(words_of(reply) + 156, "...", "a long reply without a sentence ends in dots");
    is_str(words_of("ERR Error running script (call to f_"),
           "ERR Error running script (call to f_");
}

static void test_texts(void)
{
    static char reply[2048];
    static char password[1501];
    struct rlock_error err;
    enum error_reply kind;

    (void)error_reply_read("ERR unknown command AUTH, with args: pw1 pw1", "pw1", &kind, &err);
    is_str(err.text, "the server says: ERR unknown command AUTH, with args: *** ***");
    snprintf(reply, sizeof reply, "%0150d%s", 0, "secretsecret");
    (void)error_reply_read(reply, "secretsecret", &kind, &err);
    ok(strstr(err.text, "sec") == NULL, "a password is masked at the end of the shown text");
    memset(password, 'z', sizeof password - 1);
    snprintf(reply, sizeof reply, "ERR unknown command 'AUTH', with args: '%s'", password);
    (void)error_reply_read(reply, password, &kind, &err);
    ok(strchr(err.text, 'z') == NULL);
    snprintf(reply, sizeof reply, "ERR with args: 'user' '%.117s' ", password);
    (void)error_reply_read(reply, password, &kind, &err);
    ok(strchr(err.text, 'z') == NULL, "a password that the server itself has cut is masked");
    (void)error_reply_read("ERR se secr ", "secretsecret", &kind, &err);
    is_str(err.text, "the server says: ERR se secr ");
    (void)error_reply_read("FOREIGN job holds a hash", NULL, &kind, &err);
    ok(err.status == RLOCK_E_REFUSED && strncmp(err.text, "job holds a hash: another", 25) == 0);
    (void)error_reply_read("ERR Protocol error: unauthenticated bulk length", NULL, &kind, &err);
    is_str(err.text + err.said, "the server says: NOAUTH Authentication required.");
    (void)error_reply_read("CROSSSLOT Keys", NULL, &kind, &err);
    ok(strstr(rlock_reason_help(err.reason), "braces") != NULL);
}

int main(void)
{
    struct rlock_error err;
    enum error_reply kind;
    char reply[1024];

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        for (size_t j = 0; j < sizeof wrappings / sizeof wrappings[0]; j++) {
            snprintf(reply, sizeof reply, "%s%s%s", wrappings[j].before, errors[i].text,
                     wrappings[j].after);
            err.text[0] = '\0';
            okf(error_reply_read(reply, NULL, &kind, &err) == errors[i].meaning &&
                    err.status == errors[i].meaning &&
                    strncmp(err.text + err.said, "the server says: ", 17) == 0,
                "%s", reply);
            okf(error_reply_read(reply, NULL, &kind, NULL) == errors[i].meaning,
                "the status is the same without a struct rlock_error");
        }
    memset(reply, 'x', sizeof reply - 1);
    reply[sizeof reply - 1] = '\0';
    (void)error_reply_read(reply, NULL, &kind, &err);
    ok(strlen(err.text) < sizeof err.text, "a long error reply is cut");
    (void)error_reply_read("ERR a\nb\x1b[2J\rc", NULL, &kind, &err);
    ok(is_printable(err.text), "the text has no control characters");
    RUN_ALL(test_reasons, test_sentences, test_words, test_texts);
    return done_testing();
}
