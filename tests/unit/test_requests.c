/* SPDX-License-Identifier: MIT */
/* test_requests: the words of each request that an owner sends. */
#include "lock/requests.h"
#include "lock/scripts.h"
#include "tap.h"

#include <stdlib.h>

static const char *const two_keys[] = {"k", "l", "k"};

static const struct rlock_config usual = {.keys = two_keys,
                                          .n_keys = 1,
                                          .timing = {.ttl_ms = 30000},
                                          .holder = {.host = "h", .label = "a b"}};
static struct owner owner;
static struct request request;

/* Opens the owner anew. */
static enum rlock_status reopen(struct rlock_config config)
{
    owner_close(&owner);
    return owner_open(&owner, &config, NULL);
}

static enum rlock_status open_for(const char *key)
{
    struct rlock_config config = usual;

    config.keys = &key;
    return reopen(config);
}

static void test_keys(void)
{
    static char key[RLOCK_KEY_MAX + 2];

    memset(key, 'k', RLOCK_KEY_MAX);
    if (is_int(open_for(key), RLOCK_OK, "a key of 64 KiB is accepted"))
        is_str(owner.lock[0].keys.name[KEY_LOCK], key, "a key of 64 KiB isn't changed");
    key[RLOCK_KEY_MAX] = 'k';
    is_int(open_for(key), RLOCK_E_USAGE, "a longer key is refused");
    if (is_int(open_for("\xff\n{a}\x01"), RLOCK_OK))
        is_str(owner.lock[0].keys.name[KEY_LOCK], "\xff\n{a}\x01");
    owner_close(&owner);
    ok(owner.token[0] == '\0' && owner.lock == NULL && owner.parent == NULL);
}

static const char *const empty_key = "";

/* What no lock can do, or none without scripts; and the whole text of the error. */
static const struct {
    struct rlock_config config;
    const char *text;
} refused[] = {
    {{.keys = two_keys, .n_keys = 3}, "the key k is given twice"},
    {{.keys = two_keys, .n_keys = 0}, "keys: 1 to 32 are possible"},
    {{.keys = &empty_key, .n_keys = 1}, "a key has 1 to 65536 bytes"},
    {{.keys = two_keys, .n_keys = 2, .mode = RLOCK_SLOTS, .n_slots = 3},
     "slots: only a single key can have slots"},
    {{.keys = two_keys, .n_keys = 1, .mode = RLOCK_SLOTS}, "slots: 1 to 1000 are possible"},
    {{.keys = two_keys, .n_keys = 1, .mode = RLOCK_SLOTS, .n_slots = RLOCK_SLOTS_MAX + 1},
     "slots: 1 to 1000 are possible"},
    {{.keys = two_keys, .n_keys = 2, .protocol = RLOCK_PROTOCOL_TIME_MS},
     "a timestamp lock has one key and one holder, and can't be marked as done"},
    {{.keys = two_keys, .n_keys = 1, .history = RLOCK_HISTORY_MAX + 1},
     "history: 0 to 1000 entries are possible"},
    {{.keys = two_keys, .n_keys = 1, .scripts = RLOCK_SCRIPTS_NO, .history = 1},
     "a history needs scripts on the server"},
    {{.keys = two_keys, .n_keys = 2, .scripts = RLOCK_SCRIPTS_NO},
     "a lock of several keys needs scripts on the server"},
};

static void test_refused(void)
{
    struct rlock_error err;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        owner_close(&owner);
        is_int(owner_open(&owner, &refused[i].config, &err), RLOCK_E_USAGE, refused[i].text);
        is_str(err.text, refused[i].text, "the error says what is wrong, and has no errno");
    }
}

/* Lets the owner build a request, and compares its words behind the script with `wanted`. */
static void sends(requests_build *build, struct requests_params params, const char *const *wanted,
                  const char *name)
{
    int n = 0;

    build(&owner, &request, &params);
    while (wanted[n] != NULL)
        n++;
    is_int(request.n, n + 2, name);
    is_str(request.word[0], "EVALSHA", name);
    for (n = 0; wanted[n] != NULL && n + 2 < request.n; n++) {
        const char *star = strchr(wanted[n], '*'); /* any text follows: a token */

        okf(star != NULL ? strncmp(request.word[n + 2], wanted[n], (size_t)(star - wanted[n])) == 0
                         : strcmp(request.word[n + 2], wanted[n]) == 0,
            "%s: word %d is %s, not %s", name, n, request.word[n + 2], wanted[n]);
    }
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define HELPER(K, KIND) "{" K "}:rlock:" KIND
#define KEYS_OF(K)                                                                         \
    K, HELPER(K, "fence"), HELPER(K, "queue"), HELPER(K, "waiters"), HELPER(K, "holders"), \
        HELPER(K, "holder-info"), HELPER(K, "history"), HELPER(K, "wake:*")
#define KEYS "8", KEYS_OF("k")
#define INFO "host=h label=a%20b"

/* Returns the beginning of the lock's value, or of what a release may delete. */
static const char *value_of(const char *behind_token)
{
    static char made[4][200];
    static size_t n;
    char *text = made[n++ % 4];

    snprintf(text, sizeof made[0], "%s %s", owner.token, behind_token);
    return text;
}

/*
 * If all that the server sends is lost, the EVALSHA of an undo must still arrive, so it has to fit
 * into one packet. (1,400 bytes, as over IPv6, with TLS.) A key that is longer than LONG_KEY may
 * keep its lock then, until the TTL ends: the request has the key eight times.
 */
#define PACKET 1400
#define LONG_KEY 110

/*
 * A server reads this much at once, and so both the EVALSHA and the EVAL of an undo, before its
 * reply to the first meets the reset of the connection.
 */
#define ONE_READ 16384

static size_t encoded_bytes(void)
{
    char *bytes = NULL;
    size_t n = 0;

    is_int(request_encode(&request, &bytes, &n, NULL), RLOCK_OK, "the request is encoded");
    free(bytes);
    return n;
}

static void test_sizes(void)
{
    static requests_build *const builds[] = {requests_undo, requests_leave, requests_requeue};
    char key[LONG_KEY + 1];
    size_t n;

    memset(key, 'k', LONG_KEY);
    key[LONG_KEY] = '\0';
    need(open_for(key) == RLOCK_OK, "an owner with a long key is opened");
    for (size_t i = 0; i < sizeof builds / sizeof builds[0]; i++) {
        builds[i](&owner, &request, NULL);
        n = encoded_bytes();
        okf(n <= PACKET, "builds[%zu]: %zu bytes, of %d in one packet", i, n, PACKET);
    }
    need(open_for("k") == RLOCK_OK, "an owner with a short key is opened");
    requests_undo(&owner, &request, NULL);
    n = encoded_bytes();
    request_use_eval(&request);
    n += encoded_bytes();
    okf(n <= ONE_READ, "an undo by EVALSHA and by EVAL: %zu bytes, of %d", n, ONE_READ);
}

static void test_requests(void)
{
    const struct requests_params when = {.not_after_ms = 5};
    const struct requests_params any_time = {.not_after_ms = 0};

    need(reopen(usual) == RLOCK_OK, "an owner is opened");
    is_int((int64_t)strlen(owner.token), 32, "the owner's token has 32 digits");
    owner.attempt = 1;
    sends(requests_acquire, any_time,
          WORDS(KEYS, value_of("v1 try=1 ttl=30000 " INFO), "30000", "fifo"),
          "a first attempt leaves out the last arguments if they are the usual ones");
    owner.attempt = 7;
    owner.lock[0].fence = UINT64_MAX;
    sends(requests_acquire, when,
          WORDS(KEYS, value_of("v1 try=7 ttl=30000 " INFO), "30000", "fifo", "", "5", "", "x", ""),
          "an acquire has the start of the value, TTL, policy and not-after");
    sends(requests_renew, when,
          WORDS(KEYS, "5", INFO, "x", "0", owner.token, "30000", "18446744073709551615"),
          "a renewal has not-after, info, mode, slot, and the lease of each lock");
    sends(requests_release, when, WORDS(KEYS, value_of(""), "18446744073709551615"),
          "a release removes all that the token wrote");
    sends(requests_leave, when, WORDS(KEYS, value_of(""), "", "", owner.token),
          "a leave removes all that the token wrote, and the token from the queue");
    sends(requests_undo, when, WORDS(KEYS, value_of("v1 try=7 "), ""),
          "an undo removes only what the last attempt wrote");
}

/* A lock whose value is the time of its expiry has scripts of its own. */
static void test_scripts(void)
{
    static const struct {
        requests_build *build;
        bool is_timestamp;
        enum script script;
    } rows[] = {{requests_acquire, false, SCRIPT_ACQUIRE},
                {requests_renew, false, SCRIPT_RENEW},
                {requests_release, false, SCRIPT_RELEASE},
                {requests_undo, false, SCRIPT_RELEASE},
                {requests_leave, false, SCRIPT_RELEASE},
                {requests_acquire, true, SCRIPT_TIMESTAMP_LOCK_ACQUIRE},
                {requests_renew, true, SCRIPT_TIMESTAMP_LOCK_RENEW},
                {requests_release, true, SCRIPT_TIMESTAMP_LOCK_RELEASE}};
    struct requests_params when = {.fence = 1};

    need(reopen(usual) == RLOCK_OK, "an owner is opened");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct request wanted;

        owner.is_timestamp = rows[i].is_timestamp;
        rows[i].build(&owner, &request, &when);
        script_request(&wanted, rows[i].script, 3);
        okf(request.script != NULL && strcmp(request.script, wanted.script) == 0,
            "rows[%zu] has its script", i);
    }
}

static const struct {
    enum rlock_queue queue;
    bool is_single_attempt;
    int64_t ticket;
    const char *policy;      /* the wanted POLICY of acquire.lua */
    const char *ticket_text; /* the wanted TICKET */
} queueing[] = {
    {RLOCK_QUEUE_FIFO, false, 0, "fifo", ""},
    {RLOCK_QUEUE_FIFO, true, 0, "try", ""},
    {RLOCK_QUEUE_NEWEST, false, 9, "newest", "9"},
    {RLOCK_QUEUE_NEWEST, true, 0, "try", ""},
    {RLOCK_QUEUE_NONE, false, 0, "none", ""},
    {RLOCK_QUEUE_NONE, true, 0, "none", ""},
    {RLOCK_QUEUE_FIFO, false, INT64_MAX, "fifo", "9223372036854775807"},
};

static const struct {
    int64_t block_ms;
    const char *seconds;
} blocks[] = {{2500, "2.500"}, {2000, "2"}, {2, "0.002"}};

static void test_waiting(void)
{
    char wake[80];

    need(reopen(usual) == RLOCK_OK, "an owner that will wait is opened");
    owner.attempt = 7;
    for (size_t i = 0; i < sizeof queueing / sizeof queueing[0]; i++) {
        owner.queue = queueing[i].queue;
        owner.is_single_attempt = queueing[i].is_single_attempt;
        owner.ticket = queueing[i].ticket;
        sends(requests_acquire, (struct requests_params){.not_after_ms = 5},
              WORDS(KEYS, value_of("v1 try=7 ttl=30000 " INFO), "30000", queueing[i].policy, "",
                    "5", queueing[i].ticket_text, "x", ""),
              "an acquire has the policy, and the ticket if it has one");
    }
    snprintf(wake, sizeof wake, "{k}:rlock:wake:%s", owner.token);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        struct requests_params when = {.block_ms = blocks[i].block_ms};

        requests_wait(&owner, &request, &when);
        ok(request.n == 3 && strcmp(request.word[0], "BLPOP") == 0 &&
           strcmp(request.word[1], wake) == 0);
        is_str(request.word[2], blocks[i].seconds, "the timeout of BLPOP is in seconds");
    }
}

/* An owner may have several keys, some of them held by a parent's token. */
static void test_several(void)
{
    static const char parent[] = "0123456789abcdef0123456789abcdef";
    const struct requests_params when = {.not_after_ms = 5};
    struct rlock_config config = usual;
    struct reply answer = {.n_locks = 2, .lock = {{0, 9, 30000}, {1, 8, 5000}}};

    config.n_keys = 2;
    config.mode = RLOCK_SHARED;
    config.unless_done = true;
    config.parent_tokens = (const char *const[]){"no token", parent};
    config.n_parents = 2;
    need(reopen(config) == RLOCK_OK, "an owner of two keys is opened");
    sends(requests_acquire, when,
          WORDS("16", KEYS_OF("k"), KEYS_OF("l"), value_of("v1 try=0 ttl=30000 " INFO), "30000",
                "fifo", "", "5", "", "s", "1", parent),
          "an acquire names both keys, the mode, unless-done and the parent's token");
    owner_take_grant(&owner, &answer, 10);
    ok(owner_has_own_lock(&owner) && owner_granted_ttl_ms(&owner) == 5000);
    sends(requests_renew, when,
          WORDS("16", KEYS_OF("k"), KEYS_OF("l"), "5", INFO, "s", "-1", owner.token, "30000", "10",
                parent, "5000", "0"),
          "a renewal has for each lock the token that holds it, and the TTL of its lease");
    owner.ending = RLOCK_ENDS_REST;
    owner.stay_ms = 77;
    sends(requests_release, when, WORDS(KEYS, value_of(""), "10", "", "", "rest", "77", INFO),
          "a release names only the lock that the owner's own token holds");
    answer.lock[0].parent = 1;
    owner_take_grant(&owner, &answer, 10);
    ok(!owner_has_own_lock(&owner), "if parents hold all locks, the owner has no lock of its own");
}

static void test_timestamp(void)
{
    struct rlock_config config = usual;

    config.protocol = RLOCK_PROTOCOL_TIME_MS;
    need(reopen(config) == RLOCK_OK, "an owner of a timestamp lock is opened");
    sends(requests_acquire, (struct requests_params){.not_after_ms = 5},
          WORDS(KEYS, value_of("v1 try=0 ttl=30000 " INFO), "30000", "none", "", "5", "", "ms", ""),
          "an acquire of a timestamp lock has the unit in the place of the mode");
}

static void test_history(void)
{
    const struct rlock_end end = {.status = 3, .reason = "exited", .held_ms = 5, .renewals = 2};
    const struct requests_params when = {.not_after_ms = 0};
    struct rlock_config config = usual;

    config.history = 7;
    need(reopen(config) == RLOCK_OK, "an owner with a history is opened");
    owner.waited_ms = 12;
    owner.attempt = 1;
    sends(
        requests_acquire, when,
        WORDS(KEYS, value_of("v1 try=1 ttl=30000 waited=12 history=7 " INFO), "30000", "fifo", "7"),
        "an acquire with a history has its size, and for how long the owner has waited");
    owner.lock[0].fence = 9;
    owner_set_end(&owner, &end);
    sends(requests_release, when,
          WORDS(KEYS, value_of(""), "9", "history=7 status=3 reason=exited held=5 renewals=2"),
          "a release with a history tells how the hold ended");
    owner_start_acquire(&owner, false);
    sends(requests_release, when, WORDS(KEYS, value_of(""), "9", "history=7"),
          "the next acquire forgets how the hold before it ended");
}

int main(void)
{
    RUN_ALL(test_keys, test_refused, test_scripts, test_requests, test_sizes, test_waiting,
            test_several, test_timestamp, test_history);
    owner_close(&owner);
    return done_testing();
}
