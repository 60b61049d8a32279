/* SPDX-License-Identifier: MIT */
/* test_error_reply: the status, reason and text of error replies, bare and inside script errors. */
#include "base/err.h"
#include "base/reason.h"
#include "server/error_reply.h"
#include "tap.h"

#define E(status) RLOCK_E_##status
#define R(what) .reason = RLOCK_REASON_##what
#define K(what) .kind = ERROR_REPLY_##what

/* Error replies of Redis, Valkey and services, without the leading "-". */
static const struct {
    const char *text;
    enum rlock_status meaning;
    enum rlock_reason reason;
    enum error_reply kind; /* ERROR_REPLY_FINAL, which is 0: the request is not sent again */
} errors[] = {
    {"WRONGTYPE Operation against a key", E(REFUSED), R(KEY_TYPE)},
    {"NOAUTH Authentication required.", E(REFUSED), R(NO_PASSWORD)},
    {"ERR Protocol error: unauthenticated bulk", E(REFUSED), R(NO_PASSWORD)},
    {"WRONGPASS invalid username-password pair", E(REFUSED), R(WRONG_PASSWORD)},
    {"ERR invalid password", E(REFUSED), R(WRONG_PASSWORD)},
    {"ERR Client sent AUTH, but no password is set", E(REFUSED), R(NEEDLESS_PASSWORD)},
    {"ERR AUTH <password> called without any password configured for the default user. Are you "
     "sure your configuration is correct?",
     E(REFUSED), R(NEEDLESS_PASSWORD)},
    {"NOPERM User app has no permissions to run the 'eval' command", E(REFUSED), R(SCRIPTS_DENIED)},
    {"NOPERM User app has no permissions to run the 'evalsha' command", E(REFUSED), R(NO_RIGHT),
     K(NOSCRIPT)},
    {"NOPERM No permissions to access a key", E(REFUSED), R(NO_RIGHT)},
    {"ERR The user executing the script can't run this command or subcommand", E(REFUSED),
     R(NO_RIGHT)},
    {"ERR The user executing the script can't access at least one of the keys mentioned in the "
     "command arguments",
     E(REFUSED), R(NO_RIGHT)},
    {"DENIED Redis is running in protected mode", E(REFUSED), R(PROTECTED)},
    {"LOADING Redis is loading the dataset in memory", E(SERVER), R(LOADING)},
    {"BUSY Redis is busy running a script.", E(SERVER), R(SCRIPT_RUNS)},
    {"OOM command not allowed", E(SERVER), R(MEMORY_FULL)},
    {"MISCONF Redis is configured to save", E(SERVER), R(DISK)},
    {"READONLY You can't write against a read only replica.", E(SERVER), R(NOT_PRIMARY)},
    {"MASTERDOWN Link with MASTER is down", E(SERVER), R(NOT_PRIMARY)},
    {"UNBLOCKED force unblock from blocking operation", E(SERVER), R(NOT_PRIMARY)},
    {"NOREPLICAS Not enough good replicas to write.", E(SERVER), R(FEW_REPLICAS)},
    {"ERR max number of clients reached", E(SERVER), R(MANY_CLIENTS)},
    {"ERR max number of clients + cluster connections reached", E(SERVER), R(MANY_CLIENTS)},
    {"MOVED 3999 10.0.0.1:6381", E(SERVER), R(NONE), K(MOVED)},
    {"ASK 3999 10.0.0.1:6381", E(SERVER), R(NONE), K(ASK)},
    {"ASKING", E(SERVER), R(NONE)},
    {"TRYAGAIN Multiple keys", E(SERVER), R(NONE), K(TRY_AGAIN)},
    {"CLUSTERDOWN Hash slot not served", E(SERVER), R(CLUSTER_DOWN), K(TRY_AGAIN)},
    {"CLUSTERDOWN", E(SERVER), R(CLUSTER_DOWN), K(TRY_AGAIN)},
    {"ERR CLUSTERDOWN", E(SERVER), R(CLUSTER_DOWN)},
    {"ERR Script attempted to access a non local key in a cluster node", E(SERVER), R(NONE),
     K(PARTLY_EXECUTED)},
    {"CROSSSLOT Keys in request don't hash", E(UNSUPPORTED), R(OTHER_SLOTS)},
    {"NOSCRIPT No matching script.", E(UNSUPPORTED), R(NONE), K(NOSCRIPT)},
    {"ERR unknown command `EVALSHA`, with args beginning with: ", E(UNSUPPORTED), R(NONE),
     K(NOSCRIPT)},
    {"ERR unknown command 'EVAL', with args", E(UNSUPPORTED), R(NO_SCRIPTS)},
    {"ERR unknown command `EVAL`, with args beginning with: `evalsha`, ", E(UNSUPPORTED),
     R(NO_SCRIPTS)},
    {"unsupported command 'EVAL'", E(UNSUPPORTED), R(NO_SCRIPTS)},
    {"ERR command eval not support for normal user", E(UNSUPPORTED), R(NO_SCRIPTS)},
    {"ERR bad lua script for redis cluster, all the keys that the script uses should be passed "
     "using the KEYS array",
     E(UNSUPPORTED), R(SCRIPTS_REJECTED)},
    {"ERR Lua scripts without any input keys are not supported", E(UNSUPPORTED),
     R(SCRIPTS_REJECTED)},
    {"ERR undeclared key {k}:x", E(UNSUPPORTED), R(SCRIPTS_REJECTED)},
    {"ERR script tried accessing keys", E(UNSUPPORTED), R(SCRIPTS_REJECTED)},
    {"ERR This Redis command is not allowed from script", E(UNSUPPORTED), R(SCRIPTS_REJECTED)},
    {"ERR DB index is out of range", E(UNSUPPORTED), R(NONE)},
    {"ERR unknown command 'BLPOP', with args beginning with: 'TASK' 'job:OOM' 'x's -BUSY'",
     E(UNSUPPORTED), R(NONE)},
    {"ERR unknown command `BLPOP`, with args beginning with: `OOM`, `a READONLY`, ", E(UNSUPPORTED),
     R(NONE)},
    {"ERR", E(UNSUPPORTED), R(NONE)},
    {", with args S", E(UNSUPPORTED), R(NONE)},
    {"", E(UNSUPPORTED), R(NONE)},
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
        okf(err.reason == errors[i].reason && kind == errors[i].kind, "reason and kind of: %s",
            errors[i].text);
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
