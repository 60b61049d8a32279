/* SPDX-License-Identifier: MIT */
/* test_exchange: the requests of each operation without scripts, and what each reply leads to. */
#include "lock/exchange.h"
#include "tap.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define PARENT "fedcba9876543210fedcba9876543210"
#define OURS TOKEN " v1 try=1 ttl=30000 host=h since=1700000000000"
#define KEPT TOKEN " v1 try=1 ttl=30000 kept=1 host=h"
#define OTHER "other"
#define FENCE "{k}:rlock:fence"
#define WAKE "{k}:rlock:wake:" TOKEN
#define VALUE "GETRANGE k 0 1278" /* rlock reads at most 1279 bytes, EXCHANGE_VALUE_BYTES - 1 */
#define TIME "*2\r\n$10\r\n1700000000\r\n$1\r\n7\r\n"
#define UNKNOWN "-ERR unknown command\r\n"

static const char *const key = "k";
static struct owner owner;
static struct exchange exchange;
static struct exchange_server server;
static struct resp_reader *reader;
static struct reply answer;
static struct rlock_error fault;
static const char *refusal;

static bool open_owner(bool is_adopted)
{
    static const char parent[] = PARENT;
    const char *const parents[] = {parent};
    struct rlock_config config = {.keys = &key,
                                  .n_keys = 1,
                                  .timing = {.ttl_ms = 30000},
                                  .holder = {.host = "h"},
                                  .token = is_adopted ? TOKEN : NULL,
                                  .parent_tokens = parents,
                                  .n_parents = 1,
                                  .scripts = RLOCK_SCRIPTS_NO};

    return ok(owner_open(&owner, &config, NULL) == RLOCK_OK, "an owner without scripts is opened");
}

/* Begins an exchange of the owner whose token is in OURS, with a server still unknown to rlock. */
static void begin(enum exchange_task task)
{
    owner_close(&owner);
    (void)open_owner(true);
    owner_begin_attempt(&owner);
    server = (struct exchange_server){.set_ifeq = SUPPORT_UNKNOWN};
    exchange_begin(&exchange, task, &owner, 0);
}

/* Is the next request made of these commands, such as "PTTL WATCH GETRANGE"? */
static bool sends(const char *commands)
{
    struct request request;
    char names[200] = "";
    int i;

    exchange_build(&exchange, &server, &request);
    for (i = 0; i < request.n_commands; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? " " : "",
                 request.word[request.first[i]]);
    return is_str(names, commands, "the next request has these commands");
}

/* Is this the next request, with all its words? `words` has a semicolon between two commands. */
static bool sends_words(const char *words)
{
    struct request request;
    char all[2000] = ""; /* begins with a semicolon, as every command does */
    int i;
    int command = 0;

    exchange_build(&exchange, &server, &request);
    for (i = 0; i < request.n; i++) {
        bool begins = command < request.n_commands && request.first[command] == i;

        command += begins;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", begins ? "; " : " ",
                 request.word[i]);
    }
    return is_str(all + 2, words, "the next request has these words");
}

/* Lets the exchange read the replies to the commands of its request. */
static enum rlock_status hears(const char *replies)
{
    const struct resp_value *value = NULL;
    struct request request;

    exchange_build(&exchange, &server, &request);
    resp_reader_gather(reader, (size_t)request.n_commands);
    (void)!resp_reader_feed(reader, replies, strlen(replies), NULL);
    if (!ok(resp_reader_next(reader, &value, NULL) == RLOCK_OK && resp_reader_is_empty(reader),
            "there is one reply for each command"))
        return RLOCK_E_PROTOCOL;
    return exchange_read(&exchange, value, &server, 1, &answer, &refusal, &fault);
}

static const char *bulk(const char *text)
{
    static char encoded[2][2000];
    static int which;

    which = 1 - which;
    snprintf(encoded[which], sizeof encoded[which], "$%zu\r\n%s\r\n", strlen(text), text);
    return encoded[which];
}

/*
 * Returns the replies to a look at the key: a reply to PTTL; `watch`, the replies to MULTI, EXEC
 * and WATCH; replies to GETRANGE and TIME; and `more`, which is the reply to GET or "".
 */
static const char *looked_with(const char *watch, const char *value, const char *more)
{
    static char replies[4000];

    snprintf(replies, sizeof replies, "%s%s%s" TIME "%s", *value != '\0' ? ":20000\r\n" : ":-2\r\n",
             watch, bulk(value), more);
    return replies;
}

static const char *looked(const char *value, const char *more)
{
    return looked_with("+OK\r\n*0\r\n+OK\r\n", value, more);
}

/* Returns replies to SET, TIME, GETRANGE and PTTL. */
static const char *set(const char *reply, const char *value)
{
    static char replies[4000];

    snprintf(replies, sizeof replies, "%s" TIME "%s:30000\r\n", reply, bulk(value));
    return replies;
}

static const char *fenced(const char *value)
{
    static char replies[4000];

    snprintf(replies, sizeof replies, "$-1\r\n:42\r\n:1\r\n%s", bulk(value));
    return replies;
}

static void test_acquire(void)
{
    begin(EXCHANGE_ACQUIRE);
    sends("TIME");
    is_int(hears(TIME), RLOCK_PENDING, "after the reply to TIME the acquire goes on");
    sends("SET TIME GETRANGE PTTL");
    is_str(exchange.value, OURS, "SET writes the value that the scripts write");
    is_int(hears(set("+OK\r\n", OURS)), RLOCK_PENDING,
           "after SET has taken the lock, the acquire goes on to the fence");
    ok(exchange_may_have_written(&exchange),
       "after SET the acquire may have written to the server");
    sends("SET INCR PEXPIRE GETRANGE");
    is_int(hears(fenced(OURS)), RLOCK_OK,
           "if the value is still ours after INCR, the acquire ends");
    ok(answer.code == REPLY_OK && answer.fence == 42, "the lock is granted with the fence of INCR");

    begin(EXCHANGE_ACQUIRE);
    (void)hears(TIME);
    (void)hears(set("+OK\r\n", OURS));
    is_int(hears(fenced(OTHER)), RLOCK_OK,
           "if the key has another value after INCR, the acquire ends");
    is_int(answer.code, REPLY_LATE, "a grant whose lease ended before INCR is no grant");

    begin(EXCHANGE_ACQUIRE);
    (void)hears(TIME);
    is_int(hears(set("$-1\r\n", OTHER)), RLOCK_OK,
           "if another owner has the lock, the acquire ends");
    ok(answer.code == REPLY_HELD && answer.obstacle.left_ms == 30000,
       "the reply names the holder's lease as the obstacle");
    is_int(answer.server_ms, 1700000000000, "the reply has the server's time");

    begin(EXCHANGE_ACQUIRE);
    (void)hears(TIME);
    is_int(hears("$-1\r\n" TIME "$0\r\n\r\n:-2\r\n"), RLOCK_OK,
           "if the lock expires between SET and GETRANGE, the acquire ends");
    is_int(answer.code, REPLY_LATE,
           "a lock that has just expired is reported so that the caller asks again");

    begin(EXCHANGE_ACQUIRE);
    (void)hears(TIME);
    is_int(hears("-OOM no\r\n" TIME "$0\r\n\r\n:-2\r\n"), RLOCK_E_REFUSED,
           "if the server refuses SET, the acquire fails");
    ok(refusal != NULL && !exchange.has_written,
       "after a refused SET the acquire has written nothing");
}

static void test_own_value(void)
{
    begin(EXCHANGE_ACQUIRE);
    owner_begin_attempt(&owner);
    (void)hears(TIME);
    is_int(hears(set("$-1\r\n", OURS)), RLOCK_PENDING,
           "if the value is ours already, the acquire goes on");
    sends("PTTL MULTI EXEC WATCH GETRANGE TIME GET");
    (void)hears(looked(OURS, "$-1\r\n"));
    sends("SET");
    ok(strstr(exchange.value, " try=2 ") != NULL, "the second attempt writes the attempt number 2");
    is_int(hears("-ERR syntax error\r\n"), RLOCK_PENDING,
           "if the server has no SET IFEQ, the acquire goes on");
    sends("MULTI SET EXEC");
    ok(exchange_needs_connection(&exchange) && exchange.watched_on == 1,
       "EXEC must go by the connection that watches the key");
    is_int(hears("+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"), RLOCK_PENDING,
           "after EXEC has replaced the value, the acquire goes on to the fence");
    sends("SET INCR PEXPIRE GETRANGE");
}

static void test_parent(void)
{
    static const char held[] = PARENT " v1 try=1 ttl=9000 host=h";

    begin(EXCHANGE_ACQUIRE);
    (void)hears(TIME);
    is_int(hears(set("$-1\r\n", held)), RLOCK_PENDING,
           "if a parent holds the lock, the acquire goes on");
    (void)hears(looked(held, "$1\r\n7\r\n"));
    is_int(hears("+OK\r\n"), RLOCK_OK,
           "after SET has extended the parent's lease, the acquire ends");
    ok(answer.code == REPLY_OK && answer.n_locks == 1 && answer.lock[0].parent == 1 &&
           answer.lock[0].ttl_ms == 9000 && answer.fence == 7,
       "the grant is the parent's, with its TTL and the last fence");
}

static void test_renew(void)
{
    begin(EXCHANGE_RENEW);
    sends("PTTL MULTI EXEC WATCH GETRANGE TIME GET");
    ok(!exchange_may_have_written(&exchange),
       "a request that only reads can't have written anything");
    is_int(hears(looked(OURS, "$-1\r\n")), RLOCK_PENDING,
           "if the lock is ours, the renewal goes on");
    is_int(hears("+OK\r\n"), RLOCK_OK, "after SET IFEQ the renewal ends");
    ok(answer.code == REPLY_OK && answer.left_ms == 30000 && server.set_ifeq == SUPPORT_YES,
       "the renewal succeeds, and remembers that the server has SET IFEQ");

    exchange_begin(&exchange, EXCHANGE_RENEW, &owner, 0);
    sends("PTTL GETRANGE TIME GET");

    begin(EXCHANGE_RENEW);
    (void)hears(looked(OURS, "$-1\r\n"));
    is_int(hears("-OOM no\r\n"), RLOCK_PENDING,
           "if the server's memory is full, the renewal goes on by PEXPIRE");
    sends("MULTI PEXPIRE EXEC");
    ok(server.set_ifeq == SUPPORT_UNKNOWN,
       "the error OOM doesn't tell whether the server has SET IFEQ");
    is_int(hears("+OK\r\n+QUEUED\r\n*1\r\n:0\r\n"), RLOCK_PENDING,
           "if the key had expired at PEXPIRE, the renewal reads it again");
    is_int(hears(looked("", "$-1\r\n")), RLOCK_OK, "if nobody has the lock, the renewal ends");
    is_int(answer.code, REPLY_GONE, "if nobody has the lock, the lease is gone");

    begin(EXCHANGE_RENEW);
    (void)hears(looked("", bulk("released")));
    is_int(answer.code, REPLY_RELEASED,
           "a note about a release: the renewal finds the lock released");
    begin(EXCHANGE_RENEW);
    (void)hears(looked(OTHER, bulk("broken v1 host=x")));
    is_int(answer.code, REPLY_BROKEN, "a note about a break: the renewal finds the lock broken");
    begin(EXCHANGE_RENEW);
    (void)hears(looked(OTHER, "$-1\r\n"));
    is_int(answer.code, REPLY_HELD, "the renewal finds that another owner has the lock");
    begin(EXCHANGE_RENEW);
    (void)hears(looked(TOKEN " v1 try=0 host=h", "$-1\r\n"));
    is_int(answer.code, REPLY_HELD, "a lock that is reserved for this token is not held by it");
}

static void test_release(void)
{
    struct request undo;

    begin(EXCHANGE_RELEASE);
    (void)hears(looked(OURS, ""));
    sends("DELIFEQ DELEX");
    is_int(hears(UNKNOWN UNKNOWN), RLOCK_PENDING,
           "if the server has neither DELIFEQ nor DELEX, the release goes on");
    sends("MULTI DEL EXEC");
    is_int(hears("+OK\r\n+QUEUED\r\n*-1\r\n"), RLOCK_PENDING,
           "if EXEC finds the key changed, the release reads it again");
    is_int(hears(looked(OTHER, "")), RLOCK_OK,
           "if the key has another value when it is read again, the release ends");
    is_int(answer.code, REPLY_HELD, "the release finds that another owner has the lock");

    exchange_begin(&exchange, EXCHANGE_RELEASE, &owner, 0);
    (void)hears(looked(OURS, ""));
    sends("MULTI DEL EXEC");
    is_int(hears("+OK\r\n+QUEUED\r\n*1\r\n:1\r\n"), RLOCK_OK,
           "after EXEC has deleted the key, the release ends");
    is_int(answer.code, REPLY_OK, "the lock is released");

    begin(EXCHANGE_RELEASE);
    (void)hears(looked(OURS, ""));
    is_int(hears(UNKNOWN ":1\r\n"), RLOCK_OK, "after DELEX has deleted the key, the release ends");
    exchange_begin(&exchange, EXCHANGE_RELEASE, &owner, 0);
    sends("PTTL GETRANGE TIME");
    (void)hears(":1\r\n$0\r\n\r\n" TIME);
    is_int(answer.code, REPLY_HELD, "an empty value is another program's");

    begin(EXCHANGE_RELEASE);
    (void)hears(looked(OURS, ""));
    is_int(hears("-READONLY no\r\n-READONLY no\r\n"), RLOCK_E_REFUSED,
           "if the server is a replica, the release fails");
    ok(refusal != NULL && server.delifeq == SUPPORT_UNKNOWN,
       "the error READONLY doesn't tell whether the server has DELIFEQ");

    begin(EXCHANGE_RELEASE);
    (void)hears(looked(KEPT, ""));
    sends("SET DELIFEQ DELEX");
    is_int(hears("+OK\r\n:1\r\n" UNKNOWN), RLOCK_OK,
           "a release that leaves a note ends after DELIFEQ has deleted the key");

    begin(EXCHANGE_RELEASE);
    is_int(hears(looked("00000000000000000000000000000000 v1 mode=shared since=1", "")),
           RLOCK_E_USAGE, "a shared lock can't be released without scripts");

    begin(EXCHANGE_UNDO);
    (void)hears(looked(TOKEN " v1 try=7 ttl=30000 host=h", ""));
    is_int(answer.code, REPLY_HELD, "an undo leaves the value of another attempt alone");

    begin(EXCHANGE_ACQUIRE);
    ok(!exchange_build_undo(&exchange, &undo), "before SET there is nothing to undo");
    (void)hears(TIME);
    ok(exchange_build_undo(&exchange, &undo) && undo.n_commands == 2 &&
           strcmp(undo.word[2], OURS) == 0,
       "the undo of a SET compares with the value that the SET writes");
}

#define NO_MULTI "-NOPERM no right to 'multi'\r\n-ERR EXEC without MULTI\r\n+OK\r\n"

/* Without MULTI the server would execute the DEL at once, whatever value the key has by then. */
static void test_denied_multi(void)
{
    begin(EXCHANGE_RELEASE);
    is_int(hears(looked_with(NO_MULTI, OURS, "")), RLOCK_PENDING,
           "without the right to MULTI the release goes on: DELIFEQ may be enough");
    sends("DELIFEQ DELEX");
    is_int(hears(":1\r\n" UNKNOWN), RLOCK_OK,
           "without the right to MULTI, DELIFEQ releases the lock");
    begin(EXCHANGE_RELEASE);
    (void)hears(looked_with(NO_MULTI, OURS, ""));
    is_int(hears(UNKNOWN UNKNOWN), RLOCK_PENDING,
           "if the server has neither DELIFEQ nor DELEX, the lock is read again");
    is_int(hears(looked_with(NO_MULTI, OURS, "")), RLOCK_E_REFUSED,
           "without the right to MULTI, and without DELIFEQ and DELEX, the release fails");
    ok(refusal != NULL && strstr(refusal, "multi") != NULL,
       "the release fails with the server's error about MULTI");
    ok(!exchange.has_written, "the failed release has sent no command that writes");
    begin(EXCHANGE_RELEASE);
    is_int(hears(looked_with("+OK\r\n*0\r\n-NOPERM no 'watch'\r\n", OURS, "")), RLOCK_PENDING,
           "without the right to WATCH the release goes on: DELIFEQ may be enough");
    begin(EXCHANGE_RENEW);
    (void)hears(looked_with(NO_MULTI, OURS, "$-1\r\n"));
    is_int(hears("-OOM no\r\n"), RLOCK_E_REFUSED,
           "if the memory is full and MULTI denied, the renewal fails");
    ok(refusal != NULL && strstr(refusal, "OOM") != NULL,
       "the renewal fails with the server's error about SET");
    begin(EXCHANGE_RENEW);
    is_int(hears("-NOPERM no 'pttl'\r\n+OK\r\n*0\r\n+OK\r\n$0\r\n\r\n" TIME "$-1\r\n"),
           RLOCK_E_REFUSED, "an error about PTTL, which every exchange needs, ends the exchange");
    begin(EXCHANGE_RENEW);
    is_int(hears(":1\r\n+OK\r\n*0\r\n+OK\r\n-NOPERM no 'getrange'\r\n" TIME "$-1\r\n"),
           RLOCK_E_REFUSED,
           "an error about GETRANGE, which every exchange needs, ends the exchange");
}

static void test_rest(void)
{
    begin(EXCHANGE_RELEASE);
    owner_set_ending(&owner, RLOCK_ENDS_REST, 5000);
    exchange_begin(&exchange, EXCHANGE_RELEASE, &owner, 0);
    (void)hears(looked(OURS, ""));
    sends("SET");
    is_str(exchange.value,
           "00000000000000000000000000000000 v1 mode=rest host=h since=1700000000000",
           "with --min-hold a release writes the value that the scripts write");
    is_int(exchange.ttl_ms, 5000, "with --min-hold the value expires after the time asked for");
}

static void test_words(void)
{
    begin(EXCHANGE_ACQUIRE);
    (void)hears(TIME);
    sends_words("SET k " OURS " NX PX 30000; TIME; " VALUE "; PTTL k");
    (void)hears(set("+OK\r\n", OURS));
    sends_words("SET " FENCE " 1700000000000007 NX PX 604800000; INCR " FENCE "; "
                "PEXPIRE " FENCE " 604800000; " VALUE);

    begin(EXCHANGE_RENEW);
    sends_words("PTTL k; MULTI; EXEC; WATCH k; " VALUE "; TIME; GET " WAKE);
    (void)hears(looked(OURS, "$-1\r\n"));
    sends_words("SET k " OURS " IFEQ " OURS " PX 30000");
    (void)hears("-OOM no\r\n");
    sends_words("MULTI; PEXPIRE k 30000; EXEC");

    begin(EXCHANGE_ACQUIRE);
    owner_begin_attempt(&owner);
    (void)hears(TIME);
    (void)hears(set("$-1\r\n", OURS));
    sends_words("PTTL k; MULTI; EXEC; WATCH k; " VALUE "; TIME; GET " FENCE);
    (void)hears(looked(OURS, "$-1\r\n"));
    (void)hears(UNKNOWN);
    sends_words("MULTI; SET k " TOKEN " v1 try=2 ttl=30000 host=h since=1700000000000 "
                "XX PX 30000; EXEC");

    begin(EXCHANGE_RELEASE);
    (void)hears(looked(KEPT, ""));
    sends_words("SET " WAKE " released PX 20000; DELIFEQ k " KEPT "; DELEX k IFEQ " KEPT);
    (void)hears("+OK\r\n" UNKNOWN UNKNOWN);
    sends_words("MULTI; SET " WAKE " released PX 20000; DEL k; EXEC");
}

/* What a server is known to support, and with what rlock asks it to delete the key. */
static const struct {
    enum exchange_support delifeq, delex;
    const char *commands;
} deletes[] = {
    {SUPPORT_UNKNOWN, SUPPORT_UNKNOWN, "DELIFEQ DELEX"},
    {SUPPORT_YES, SUPPORT_UNKNOWN, "DELIFEQ"},
    {SUPPORT_UNKNOWN, SUPPORT_YES, "DELEX"},
    {SUPPORT_NO, SUPPORT_UNKNOWN, "DELEX"},
    {SUPPORT_UNKNOWN, SUPPORT_NO, "DELIFEQ"},
    {SUPPORT_YES, SUPPORT_NO, "DELIFEQ"},
    {SUPPORT_NO, SUPPORT_YES, "DELEX"},
};

static void test_supported(void)
{
    size_t i;

    for (i = 0; i < sizeof deletes / sizeof deletes[0]; i++) {
        begin(EXCHANGE_RELEASE);
        (void)hears(looked(OURS, ""));
        server.delifeq = deletes[i].delifeq;
        server.delex = deletes[i].delex;
        sends(deletes[i].commands);
    }
    begin(EXCHANGE_RELEASE);
    server.delifeq = SUPPORT_NO;
    (void)hears(looked(OURS, ""));
    sends("DELEX");
    begin(EXCHANGE_RELEASE);
    server.delifeq = server.delex = SUPPORT_NO;
    (void)hears(looked(OURS, ""));
    sends("MULTI DEL EXEC");
}

static enum rlock_status hears_fence(const char *fence)
{
    char replies[500];

    begin(EXCHANGE_ACQUIRE);
    (void)hears(TIME);
    (void)hears(set("+OK\r\n", OURS));
    snprintf(replies, sizeof replies, "$-1\r\n:%s\r\n:1\r\n%s", fence, bulk(OURS));
    return hears(replies);
}

static void test_fences(void)
{
    is_int(hears_fence("0"), RLOCK_E_REFUSED, "0 is no fence");
    is_int(hears_fence("1"), RLOCK_OK, "1 is the smallest fence");
    is_int(hears_fence("9007194959773696"), RLOCK_OK, "2^53 - 2^32 is the largest fence");
    is_int(hears_fence("9007194959773697"), RLOCK_E_REFUSED, "a larger number is no fence");
}

static enum rlock_status hears_fence_error(const char *error)
{
    char replies[500];

    begin(EXCHANGE_ACQUIRE);
    (void)hears(TIME);
    (void)hears(set("+OK\r\n", OURS));
    snprintf(replies, sizeof replies, "$-1\r\n%s:1\r\n%s", error, bulk(OURS));
    return hears(replies);
}

static void test_errors(void)
{
    is_int(hears_fence_error("-WRONGTYPE Operation against a key\r\n"), RLOCK_E_REFUSED,
           "a fence of another type ends the acquire");
    ok(refusal == NULL && strstr(fault.text, FENCE) != NULL,
       "the error names the key that is no fence");
    is_int(hears_fence_error("-READONLY no\r\n"), RLOCK_E_REFUSED,
           "an error of the server ends the acquire");
    ok(refusal != NULL && strncmp(refusal, "READONLY", 8) == 0,
       "an error that is not about the fence is told as it is");
    ok(exchange.has_written, "an acquire that fails after SET has written");

    begin(EXCHANGE_ACQUIRE);
    (void)hears(TIME);
    is_int(hears("+OK\r\n" TIME "-NOPERM no right to 'getrange'\r\n:30000\r\n"), RLOCK_E_REFUSED,
           "an error reply to GETRANGE ends the acquire");
    ok(exchange.has_written, "an acquire whose SET has worked has written");
}

/* Returns replies to the request of a renewal, with this reply to PTTL. */
static const char *looked_at(const char *left)
{
    static char replies[4000];

    snprintf(replies, sizeof replies, "%s%s", left, strchr(looked(OURS, "$-1\r\n"), '\n') + 1);
    return replies;
}

static void test_longer_lease(void)
{
    char replies[4000];

    begin(EXCHANGE_RELEASE);
    snprintf(replies, sizeof replies, ":-1\r\n%s", strchr(looked(KEPT, ""), '\n') + 1);
    (void)hears(replies);
    sends("DELIFEQ DELEX"); /* a note about a lock without a TTL would never end */
    begin(EXCHANGE_RENEW);
    (void)hears(looked_at(":31000\r\n"));
    is_int(exchange.ttl_ms, 31000, "a renewal doesn't shorten a lease that another process noted");
    ok(strstr(exchange.value, " ttl=31000 ") != NULL, "the renewal writes the longer TTL");
    begin(EXCHANGE_RENEW);
    (void)hears(looked_at(":31001\r\n"));
    is_int(exchange.ttl_ms, 30000, "a lease longer than any that was noted is no such lease");
    begin(EXCHANGE_RENEW);
    (void)hears(looked_at(":29999\r\n"));
    is_int(exchange.ttl_ms, 30000, "a shorter lease is renewed for the whole TTL");
}

/* What a lock without scripts can't do, and what no lock can do: the whole text of the error. */
static void test_refused(void)
{
    const char *const keys[] = {"k", "l"};
    const char *const empty[] = {""};
    const struct {
        struct rlock_config config;
        const char *text;
    } rows[] = {
        {{.keys = keys, .n_keys = 1, .scripts = RLOCK_SCRIPTS_NO, .history = 1},
         "a history needs scripts on the server"},
        {{.keys = keys, .n_keys = 2, .scripts = RLOCK_SCRIPTS_NO},
         "a lock of several keys needs scripts on the server"},
        {{.keys = keys, .n_keys = 1, .mode = RLOCK_SLOTS, .n_slots = 0},
         "slots: 1 to 1000 are possible"},
        {{.keys = keys, .n_keys = 1, .mode = RLOCK_SLOTS, .n_slots = 1001},
         "slots: 1 to 1000 are possible"},
        {{.keys = empty, .n_keys = 1}, "a key has 1 to 65536 bytes"},
    };
    struct owner other;
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        is_int(owner_open(&other, &rows[i].config, &fault), RLOCK_E_USAGE,
               "a configuration that no lock can have is refused");
        is_str(fault.text, rows[i].text, "the error says what is wrong, and has no errno");
        owner_close(&other);
    }
}

int main(void)
{
    reader = resp_reader_new();
    if (!ok(reader != NULL, "the test makes a reader of replies") || !open_owner(false))
        return done_testing();
    RUN(test_acquire());
    RUN(test_own_value());
    RUN(test_parent());
    RUN(test_renew());
    RUN(test_release());
    RUN(test_denied_multi());
    RUN(test_rest());
    RUN(test_words());
    RUN(test_supported());
    RUN(test_fences());
    RUN(test_errors());
    RUN(test_refused());
    RUN(test_longer_lease());
    exchange_end(&exchange);
    is_int(exchange.task, EXCHANGE_NONE, "exchange_end() ends the exchange");
    owner_close(&owner);
    resp_reader_free(reader);
    return done_testing();
}
