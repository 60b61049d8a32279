/* SPDX-License-Identifier: MIT */
/* test_error_reply: the status, reason and text of error replies, bare and inside script errors. */
#include "base/err.h"
#include "base/reason.h"
#include "server/error_reply.h"
#include "tap.h"

/* Error replies of Redis, Valkey and services, without the leading "-". */
static const struct {
    const char *text;
    enum rlock_status meaning;
    enum rlock_reason reason;
} errors[] = {
    {"WRONGTYPE Operation against a key", RLOCK_E_REFUSED, RLOCK_REASON_KEY_TYPE},
    {"NOAUTH Authentication required.", RLOCK_E_REFUSED, RLOCK_REASON_NO_PASSWORD},
    {"ERR Protocol error: unauthenticated bulk", RLOCK_E_REFUSED, RLOCK_REASON_NO_PASSWORD},
    {"WRONGPASS invalid username-password pair", RLOCK_E_REFUSED, RLOCK_REASON_WRONG_PASSWORD},
    {"ERR invalid password", RLOCK_E_REFUSED, RLOCK_REASON_WRONG_PASSWORD},
    {"ERR Client sent AUTH, but no password is set", RLOCK_E_REFUSED,
     RLOCK_REASON_NEEDLESS_PASSWORD},
    {"ERR AUTH <password> called without any password configured for the default user. Are you "
     "sure your configuration is correct?",
     RLOCK_E_REFUSED, RLOCK_REASON_NEEDLESS_PASSWORD},
    {"NOPERM User app has no permissions to run the 'eval' command", RLOCK_E_REFUSED,
     RLOCK_REASON_SCRIPTS_DENIED},
    {"NOPERM User app has no permissions to run the 'evalsha' command", RLOCK_E_REFUSED,
     RLOCK_REASON_NO_RIGHT},
    {"NOPERM No permissions to access a key", RLOCK_E_REFUSED, RLOCK_REASON_NO_RIGHT},
    {"ERR The user executing the script can't run this command or subcommand", RLOCK_E_REFUSED,
     RLOCK_REASON_NO_RIGHT},
    {"ERR The user executing the script can't access at least one of the keys mentioned in the "
     "command arguments",
     RLOCK_E_REFUSED, RLOCK_REASON_NO_RIGHT},
    {"DENIED Redis is running in protected mode", RLOCK_E_REFUSED, RLOCK_REASON_PROTECTED},
    {"LOADING Redis is loading the dataset in memory", RLOCK_E_SERVER, RLOCK_REASON_LOADING},
    {"BUSY Redis is busy running a script.", RLOCK_E_SERVER, RLOCK_REASON_SCRIPT_RUNS},
    {"OOM command not allowed", RLOCK_E_SERVER, RLOCK_REASON_MEMORY_FULL},
    {"MISCONF Redis is configured to save", RLOCK_E_SERVER, RLOCK_REASON_DISK},
    {"READONLY You can't write against a read only replica.", RLOCK_E_SERVER,
     RLOCK_REASON_NOT_PRIMARY},
    {"MASTERDOWN Link with MASTER is down", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY},
    {"UNBLOCKED force unblock from blocking operation", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY},
    {"NOREPLICAS Not enough good replicas to write.", RLOCK_E_SERVER, RLOCK_REASON_FEW_REPLICAS},
    {"ERR max number of clients reached", RLOCK_E_SERVER, RLOCK_REASON_MANY_CLIENTS},
    {"ERR max number of clients + cluster connections reached", RLOCK_E_SERVER,
     RLOCK_REASON_MANY_CLIENTS},
    {"MOVED 3999 10.0.0.1:6381", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"ASK 3999 10.0.0.1:6381", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"ASKING", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"TRYAGAIN Multiple keys", RLOCK_E_SERVER, RLOCK_REASON_NONE},
    {"CLUSTERDOWN Hash slot not served", RLOCK_E_SERVER, RLOCK_REASON_CLUSTER_DOWN},
    {"CLUSTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_CLUSTER_DOWN},
    {"ERR CLUSTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_CLUSTER_DOWN},
    {"ERR Script attempted to access a non local key in a cluster node", RLOCK_E_SERVER,
     RLOCK_REASON_NONE},
    {"CROSSSLOT Keys in request don't hash", RLOCK_E_UNSUPPORTED, RLOCK_REASON_OTHER_SLOTS},
    {"NOSCRIPT No matching script.", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE},
    {"ERR unknown command `EVALSHA`, with args beginning with: ", RLOCK_E_UNSUPPORTED,
     RLOCK_REASON_NONE},
    {"ERR unknown command 'EVAL', with args", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NO_SCRIPTS},
    {"ERR unknown command `EVAL`, with args beginning with: `evalsha`, ", RLOCK_E_UNSUPPORTED,
     RLOCK_REASON_NO_SCRIPTS},
    {"unsupported command 'EVAL'", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NO_SCRIPTS},
    {"ERR command eval not support for normal user", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NO_SCRIPTS},
    {"ERR bad lua script for redis cluster, all the keys that the script uses should be passed "
     "using the KEYS array",
     RLOCK_E_UNSUPPORTED, RLOCK_REASON_SCRIPTS_REJECTED},
    {"ERR Lua scripts without any input keys are not supported", RLOCK_E_UNSUPPORTED,
     RLOCK_REASON_SCRIPTS_REJECTED},
    {"ERR undeclared key {k}:x", RLOCK_E_UNSUPPORTED, RLOCK_REASON_SCRIPTS_REJECTED},
    {"ERR script tried accessing keys", RLOCK_E_UNSUPPORTED, RLOCK_REASON_SCRIPTS_REJECTED},
    {"ERR This Redis command is not allowed from script", RLOCK_E_UNSUPPORTED,
     RLOCK_REASON_SCRIPTS_REJECTED},
    {"ERR DB index is out of range", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE},
    {"ERR unknown command 'BLPOP', with args beginning with: 'TASK' 'job:OOM' 'x's -BUSY'",
     RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE},
    {"ERR unknown command `BLPOP`, with args beginning with: `OOM`, `a READONLY`, ",
     RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE},
    {"ERR", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE},
    {", with args S", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE},
    {"", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE},
};

/* The errors after which a request is sent again; after all others it has failed. */
static const struct {
    const char *text;
    enum error_reply kind;
} asked_again[] = {
    {"NOPERM User app has no permissions to run the 'evalsha' command", ERROR_REPLY_NOSCRIPT},
    {"MOVED 3999 10.0.0.1:6381", ERROR_REPLY_MOVED},
    {"ASK 3999 10.0.0.1:6381", ERROR_REPLY_ASK},
    {"TRYAGAIN Multiple keys", ERROR_REPLY_TRY_AGAIN},
    {"CLUSTERDOWN Hash slot not served", ERROR_REPLY_TRY_AGAIN},
    {"CLUSTERDOWN", ERROR_REPLY_TRY_AGAIN},
    {"ERR Script attempted to access a non local key in a cluster node",
     ERROR_REPLY_PARTLY_EXECUTED},
    {"NOSCRIPT No matching script.", ERROR_REPLY_NOSCRIPT},
    {"ERR unknown command `EVALSHA`, with args beginning with: ", ERROR_REPLY_NOSCRIPT},
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

static enum error_reply kind_of(const char *text)
{
    for (size_t i = 0; i < sizeof asked_again / sizeof asked_again[0]; i++)
        if (strcmp(asked_again[i].text, text) == 0)
            return asked_again[i].kind;
    return ERROR_REPLY_FINAL;
}

/* The text about a reason has a sentence and advice of rlock, and then the server's own words. */
static void test_errors(void)
{
    struct rlock_error err;
    enum error_reply kind;
    char reply[1024];

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        const char *sentence = reason_sentence(errors[i].reason);

        for (size_t j = 0; j < sizeof wrappings / sizeof wrappings[0]; j++) {
            snprintf(reply, sizeof reply, "%s%s%s", wrappings[j].before, errors[i].text,
                     wrappings[j].after);
            okf(error_reply_read(reply, "secret", &kind, &err) == errors[i].meaning &&
                    err.status == errors[i].meaning &&
                    strncmp(err.text + err.said, "the server says: ", 17) == 0 &&
                    error_reply_read(reply, NULL, &kind, NULL) == errors[i].meaning,
                "%s", reply);
        }
        (void)error_reply_read(errors[i].text, "secret", &kind, &err);
        okf(err.reason == errors[i].reason && kind == kind_of(errors[i].text),
            "reason and kind of: %s", errors[i].text);
        okf(sentence == NULL || (strncmp(err.text, sentence, strlen(sentence)) == 0 &&
                                 rlock_reason_help(errors[i].reason) != NULL),
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
    memset(reply, 'x', sizeof reply - 1);
    reply[sizeof reply - 1] = '\0';
    is_str(words_of(reply) + 156, "...", "a long reply without a sentence ends in dots");
    is_str(words_of("ERR Error running script (call to f_"),
           "ERR Error running script (call to f_");
    ok(is_printable(words_of("ERR a\nb\x1b[2J\rc")), "the text has no control characters");
}

static void test_texts(void)
{
    static char reply[2048];
    static char password[1501];
    struct rlock_error err;
    enum error_reply kind;

    (void)error_reply_read("ERR unknown command AUTH, with args: pw1 pw1", "pw1", &kind, &err);
    is_str(err.text, "the server says: ERR unknown command AUTH, with args: *** ***");
    for (int pad = 1; pad < 200; pad++) {
        snprintf(reply, sizeof reply, "ERR unknown %0*d secretsecret secretsecret", pad, 0);
        (void)error_reply_read(reply, "secretsecret", &kind, &err);
        okf(strstr(err.text, "sec") == NULL, "a password is masked wherever the text is cut: %s",
            err.text);
    }
    (void)error_reply_read("ERR geh\xc3\xa4\x01m", "geh\xc3\xa4\x01m", &kind, &err);
    ok(strstr(err.text, "geh") == NULL, "a password is masked before bytes of it are replaced");
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

TESTS(test_errors, test_words, test_texts)
