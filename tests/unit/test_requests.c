/* SPDX-License-Identifier: MIT */
/* test_requests: the words of each request that an owner sends. */
#include "lock/requests.h"
#include "lock/scripts.h"
#include "tap.h"

#include <stdlib.h>

static enum rlock_status open_for(struct owner *owner, const char *key, struct rlock_error *err)
{
    struct rlock_config config = {.keys = &key,
                                  .n_keys = 1,
                                  .timing = {.ttl_ms = 30000},
                                  .holder = {.host = "h", .label = "a b"}};

    return owner_open(owner, &config, err);
}

static void test_open(void)
{
    static char key[RLOCK_KEY_MAX + 2];
    struct rlock_error err = {.text = ""};
    struct owner owner;

    memset(key, 'k', RLOCK_KEY_MAX);
    if (is_int(open_for(&owner, key, &err), RLOCK_OK, "a key of 64 KiB is accepted"))
        is_str(owner.lock[0].keys.name[KEY_LOCK], key, "a key of 64 KiB isn't changed");
    owner_close(&owner);
    key[RLOCK_KEY_MAX] = 'k';
    ok(open_for(&owner, key, &err) == RLOCK_E_USAGE && strstr(err.text, "65536") != NULL);
    owner_close(&owner);
    is_int(open_for(&owner, "", &err), RLOCK_E_USAGE, "an empty key is refused");
    owner_close(&owner);
    if (is_int(open_for(&owner, "\xff\n{a}\x01", &err), RLOCK_OK))
        is_str(owner.lock[0].keys.name[KEY_LOCK], "\xff\n{a}\x01");
    owner_close(&owner);
    ok(owner.token[0] == '\0' && owner.lock == NULL && owner.parent == NULL);
}

/* The name of an owner's list in `wanted` of has_words() ends with "wake:*". */
static bool ends_with_token(const char *word)
{
    return strstr(word, ":rlock:wake:*") != NULL;
}

/* Compares the words of a request after the script with `wanted`, which ends in NULL. */
static void has_words(const struct request *request, const char *const *wanted, const char *name)
{
    int n = 0;

    while (wanted[n] != NULL)
        n++;
    is_int(request->n, n + 2, name);
    is_str(request->word[0], request->script == NULL ? "EVAL" : "EVALSHA");
    for (n = 0; wanted[n] != NULL && n + 2 < request->n; n++)
        if (ends_with_token(wanted[n]))
            okf(strncmp(request->word[n + 2], wanted[n], strlen(wanted[n]) - 1) == 0,
                "the request has the owner's list at this place, not %s", request->word[n + 2]);
        else
            is_str(request->word[n + 2], wanted[n]);
}

#define HELPER(K, KIND) "{" K "}:rlock:" KIND
#define KEYS_OF(K)                                                                         \
    K, HELPER(K, "fence"), HELPER(K, "queue"), HELPER(K, "waiters"), HELPER(K, "holders"), \
        HELPER(K, "holder-info"), HELPER(K, "history"), HELPER(K, "wake:*")
#define KEYS "8", KEYS_OF("k")
#define WAKE "{k}:rlock:wake:"
#define INFO "host=h label=a%20b"

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

static size_t encoded_bytes(const struct request *request)
{
    char *bytes = NULL;
    size_t n = 0;

    is_int(request_encode(request, &bytes, &n, NULL), RLOCK_OK, "the request is encoded");
    free(bytes);
    return n;
}

static void test_sizes(void)
{
    static const struct {
        requests_build *build;
        const char *name;
    } rows[] = {{requests_undo, "undo"}, {requests_leave, "leave"}, {requests_requeue, "requeue"}};
    static struct request request;
    struct owner owner;
    char key[LONG_KEY + 1];
    size_t i;

    memset(key, 'k', LONG_KEY);
    key[LONG_KEY] = '\0';
    if (!is_int(open_for(&owner, key, NULL), RLOCK_OK, "an owner with a long key is opened"))
        return;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n;

        rows[i].build(&owner, &request, NULL);
        n = encoded_bytes(&request);
        okf(n <= PACKET, "%s: %zu bytes, of %d in one packet", rows[i].name, n, PACKET);
    }
    owner_close(&owner);
    if (!is_int(open_for(&owner, "k", NULL), RLOCK_OK, "an owner with a short key is opened"))
        return;
    requests_undo(&owner, &request, NULL);
    i = encoded_bytes(&request);
    request_use_eval(&request);
    i += encoded_bytes(&request);
    okf(i <= ONE_READ, "an undo by EVALSHA and by EVAL: %zu bytes, of %d", i, ONE_READ);
    owner_close(&owner);
}

static void test_requests(void)
{
    static struct request request[5];
    const struct requests_params when = {.not_after_ms = 5};
    const struct requests_params any_time = {.not_after_ms = 0};
    char prefix[80];
    char start[200];
    struct owner owner;

    if (!is_int(open_for(&owner, "k", NULL), RLOCK_OK, "an owner is opened"))
        return;
    is_int((int64_t)strlen(owner.token), 32, "the owner's token has 32 digits");
    owner.attempt = 7;
    owner.lock[0].fence = UINT64_MAX;

    snprintf(start, sizeof start, "%s v1 try=7 ttl=30000 %s", owner.token, INFO);
    requests_acquire(&owner, &request[0], &when);
    has_words(&request[0],
              (const char *[]){KEYS, start, "30000", "fifo", "", "5", "", "x", "", NULL},
              "requests_acquire() sends the start of the value, TTL, policy and not-after");
    owner.attempt = 1;
    snprintf(start, sizeof start, "%s v1 try=1 ttl=30000 %s", owner.token, INFO);
    requests_acquire(&owner, &request[0], &any_time);
    has_words(&request[0], (const char *[]){KEYS, start, "30000", "fifo", NULL},
              "a first attempt leaves out the last arguments if they are the usual ones");
    owner.attempt = 7;
    requests_renew(&owner, &request[1], &when);
    has_words(&request[1],
              (const char *[]){KEYS, "5", INFO, "x", "0", owner.token, "30000",
                               "18446744073709551615", NULL},
              "requests_renew() sends not-after, info, mode, slot, and the lease of each lock");
    requests_release(&owner, &request[2], &when);
    snprintf(prefix, sizeof prefix, "%s ", owner.token);
    has_words(&request[2], (const char *[]){KEYS, prefix, "18446744073709551615", NULL},
              "requests_release() releases all that the token wrote");
    requests_leave(&owner, &request[4], &when);
    has_words(&request[4], (const char *[]){KEYS, prefix, "", "", owner.token, NULL},
              "requests_leave() releases all that the token wrote, and removes it from the queue");
    requests_undo(&owner, &request[3], &when);
    snprintf(prefix, sizeof prefix, "%s v1 try=7 ", owner.token);
    has_words(&request[3], (const char *[]){KEYS, prefix, "", NULL},
              "requests_undo() releases only what the last attempt wrote");

    is_str(request[0].word[0], "EVALSHA", "an acquire is sent by EVALSHA");
    is_str(request[1].word[0], "EVALSHA", "a renewal is sent by EVALSHA");
    is_str(request[2].word[0], "EVALSHA", "a release is sent by EVALSHA");
    is_str(request[3].word[0], "EVALSHA", "an undo is sent by EVALSHA");
    is_str(request[4].word[0], "EVALSHA", "a leave is sent by EVALSHA");
    is_str(request[2].script, request[3].script, "an undo runs the same script as a release");
    is_str(request[2].script, request[4].script, "a leave runs the same script as a release");
    ok(strcmp(request[0].word[1], request[1].word[1]) != 0 &&
       strcmp(request[1].word[1], request[2].word[1]) != 0);
    owner_close(&owner);
}

/* A lock whose value is the time of its expiry has scripts of its own. */
static void test_scripts(void)
{
    static const struct {
        requests_build *build;
        enum script usual, of_timestamps;
    } rows[] = {{requests_acquire, SCRIPT_ACQUIRE, SCRIPT_TIMESTAMP_LOCK_ACQUIRE},
                {requests_renew, SCRIPT_RENEW, SCRIPT_TIMESTAMP_LOCK_RENEW},
                {requests_release, SCRIPT_RELEASE, SCRIPT_TIMESTAMP_LOCK_RELEASE}};
    struct requests_params when = {.fence = 1};
    struct owner owner;

    if (!is_int(open_for(&owner, "k", NULL), RLOCK_OK, "an owner is opened"))
        return;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct request request;
        struct request wanted;

        owner.is_timestamp = i % 2 == 1;
        rows[i / 2].build(&owner, &request, &when);
        script_request(&wanted, i % 2 == 1 ? rows[i / 2].of_timestamps : rows[i / 2].usual, 3);
        okf(request.script != NULL && strcmp(request.script, wanted.script) == 0,
            "rows[%zu]: %s has its script", i / 2,
            i % 2 == 1 ? "a timestamp lock" : "a lock with tokens");
    }
    owner_close(&owner);
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
    struct requests_params when = {.not_after_ms = 5};
    static struct request request;
    struct owner owner;
    char wake[80];
    char start[200];

    if (!is_int(open_for(&owner, "k", NULL), RLOCK_OK, "an owner that will wait is opened"))
        return;
    owner.attempt = 7;
    snprintf(start, sizeof start, "%s v1 try=7 ttl=30000 %s", owner.token, INFO);
    for (size_t i = 0; i < sizeof queueing / sizeof queueing[0]; i++) {
        owner.queue = queueing[i].queue;
        owner.is_single_attempt = queueing[i].is_single_attempt;
        owner.ticket = queueing[i].ticket;
        requests_acquire(&owner, &request, &when);
        has_words(&request,
                  (const char *[]){KEYS, start, "30000", queueing[i].policy, "", "5",
                                   queueing[i].ticket_text, "x", "", NULL},
                  "an acquire sends the policy, and the ticket if it has one");
    }
    snprintf(wake, sizeof wake, WAKE "%s", owner.token);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        when.block_ms = blocks[i].block_ms;
        requests_wait(&owner, &request, &when);
        is_int(request.n, 3, "requests_wait() sends three words");
        is_str(request.word[0], "BLPOP", "a waiter blocks by BLPOP");
        is_str(request.word[1], wake, "the BLPOP is on the owner's own list");
        is_str(request.word[2], blocks[i].seconds, "the timeout of BLPOP is in seconds");
    }
    owner_close(&owner);
}

/* An owner may have several keys, some of them held by a parent's token. Bad keys are refused. */
static void test_several(void)
{
    static const char parent[] = "0123456789abcdef0123456789abcdef";
    static struct request request;
    const struct requests_params when = {.not_after_ms = 5};
    struct rlock_config config = {.keys = (const char *const[]){"k", "l", "k"},
                                  .n_keys = 2,
                                  .mode = RLOCK_SHARED,
                                  .unless_done = true,
                                  .parent_tokens = (const char *const[]){"no token", parent},
                                  .n_parents = 2,
                                  .timing = {.ttl_ms = 30000},
                                  .holder = {.host = "h", .label = "a b"}};
    struct reply answer = {.n_locks = 2, .lock = {{0, 9, 30000}, {1, 8, 5000}}};
    struct owner owner;
    char prefix[80];
    char start[200];

    if (!is_int(owner_open(&owner, &config, NULL), RLOCK_OK, "an owner of two keys is opened"))
        return;
    snprintf(start, sizeof start, "%s v1 try=0 ttl=30000 %s", owner.token, INFO);
    requests_acquire(&owner, &request, &when);
    has_words(&request,
              (const char *[]){"16", KEYS_OF("k"), KEYS_OF("l"), start, "30000", "fifo", "", "5",
                               "", "s", "1", parent, NULL},
              "an acquire names both keys, the mode, unless-done and the parent's token");
    owner_take_grant(&owner, &answer, 10);
    ok(owner_has_own_lock(&owner) && owner_granted_ttl_ms(&owner) == 5000);
    requests_renew(&owner, &request, &when);
    has_words(&request,
              (const char *[]){"16", KEYS_OF("k"), KEYS_OF("l"), "5", INFO, "s", "-1", owner.token,
                               "30000", "10", parent, "5000", "0", NULL},
              "a renewal has for each lock the token that holds it, and the TTL of its lease");
    owner.ending = RLOCK_ENDS_REST;
    owner.stay_ms = 77;
    requests_release(&owner, &request, &when);
    snprintf(prefix, sizeof prefix, "%s ", owner.token);
    has_words(&request,
              (const char *[]){"8", KEYS_OF("k"), prefix, "10", "", "", "rest", "77", INFO, NULL},
              "a release names only the lock that the owner's own token holds");
    answer.lock[0].parent = 1;
    owner_take_grant(&owner, &answer, 10);
    ok(!owner_has_own_lock(&owner), "if parents hold all locks, the owner has no lock of its own");
    owner_close(&owner);

    config.n_keys = 3;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE, "one key given twice is refused");
    owner_close(&owner);
    config.n_keys = 0;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE, "an empty list of keys is refused");
    owner_close(&owner);
    config.n_keys = 2;
    config.mode = RLOCK_SLOTS;
    config.n_slots = 3;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE, "slots with two keys are refused");
    owner_close(&owner);
    config.n_keys = 1;
    config.n_slots = RLOCK_SLOTS_MAX + 1;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE, "too many slots are refused");
    owner_close(&owner);
}

static void test_timestamp(void)
{
    static struct request request;
    const struct requests_params when = {.not_after_ms = 5};
    struct rlock_config config = {.keys = (const char *const[]){"k", "l"},
                                  .n_keys = 2,
                                  .timing = {.ttl_ms = 30000},
                                  .holder = {.host = "h", .label = "a b"}};
    struct owner owner;
    char start[200];

    config.protocol = RLOCK_PROTOCOL_TIME_MS;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE);
    owner_close(&owner);
    config.n_keys = 1;
    config.mode = RLOCK_EXCLUSIVE;
    config.unless_done = false;
    if (is_int(owner_open(&owner, &config, NULL), RLOCK_OK)) {
        snprintf(start, sizeof start, "%s v1 try=0 ttl=30000 %s", owner.token, INFO);
        requests_acquire(&owner, &request, &when);
        has_words(&request,
                  (const char *[]){KEYS, start, "30000", "none", "", "5", "", "ms", "", NULL},
                  "an acquire of a timestamp lock has the unit in the place of the mode");
    }
    owner_close(&owner);
}

static void test_history(void)
{
    const char *key = "k";
    struct rlock_config config = {.keys = &key,
                                  .n_keys = 1,
                                  .timing = {.ttl_ms = 30000},
                                  .holder = {.host = "h", .label = "a b"},
                                  .history = 7};
    const struct rlock_end end = {.status = 3, .reason = "exited", .held_ms = 5, .renewals = 2};
    const struct requests_params when = {.not_after_ms = 0};
    static struct request request;
    struct owner owner;
    char prefix[80];
    char start[200];

    if (!is_int(owner_open(&owner, &config, NULL), RLOCK_OK, "an owner with a history is opened"))
        return;
    owner.waited_ms = 12;
    owner.attempt = 1;
    snprintf(start, sizeof start, "%s v1 try=1 ttl=30000 waited=12 history=7 %s", owner.token,
             INFO);
    requests_acquire(&owner, &request, &when);
    has_words(&request, (const char *[]){KEYS, start, "30000", "fifo", "7", NULL},
              "an acquire with a history sends its size, and for how long the owner has waited");
    owner.lock[0].fence = 9;
    owner_set_end(&owner, &end);
    requests_release(&owner, &request, &when);
    snprintf(prefix, sizeof prefix, "%s ", owner.token);
    has_words(&request,
              (const char *[]){KEYS, prefix, "9",
                               "history=7 status=3 reason=exited held=5 renewals=2", NULL},
              "a release with a history sends how the hold ended");
    owner_start_acquire(&owner, false);
    requests_release(&owner, &request, &when);
    has_words(&request, (const char *[]){KEYS, prefix, "9", "history=7", NULL},
              "the next acquire forgets how the hold before it ended");
    owner_close(&owner);
    config.history = RLOCK_HISTORY_MAX + 1;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE, "a longer history is refused");
    owner_close(&owner);
}

TESTS(test_open, test_scripts, test_requests, test_sizes, test_waiting, test_several,
      test_timestamp, test_history)
