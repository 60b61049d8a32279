/* SPDX-License-Identifier: MIT */
/* test_lease: the words of each request. */
#include "lock/requests.h"
#include "tap.h"

static enum rlock_status open_for(struct lease *lease, const char *key, struct rlock_error *err)
{
    struct rlock_config config = {.keys = &key,
                                  .n_keys = 1,
                                  .timing = {.ttl_ms = 30000},
                                  .holder = {.host = "h", .label = "a b"}};

    return lease_open(lease, &config, err);
}

static void test_open(void)
{
    static char key[RLOCK_KEY_MAX + 2];
    struct rlock_error err = {.text = ""};
    struct lease lease;

    memset(key, 'k', RLOCK_KEY_MAX);
    if (is_int(open_for(&lease, key, &err), RLOCK_OK, "a key of 64 KiB"))
        is_str(lease.lock[0].key[KEY_LOCK], key, "is kept as it is");
    lease_close(&lease);
    key[RLOCK_KEY_MAX] = 'k';
    ok(open_for(&lease, key, &err) == RLOCK_E_USAGE && strstr(err.text, "65536") != NULL,
       "a longer one is refused, and the bound is named");
    lease_close(&lease);
    is_int(open_for(&lease, "", &err), RLOCK_E_USAGE, "no key is refused");
    lease_close(&lease);
    if (is_int(open_for(&lease, "\xff\n{a}\x01", &err), RLOCK_OK, "a key of any bytes"))
        is_str(lease.lock[0].key[KEY_LOCK], "\xff\n{a}\x01", "is kept as it is");
    lease_close(&lease);
    ok(lease.token[0] == '\0' && lease.lock == NULL && lease.parent == NULL,
       "nothing of it stays behind");
}

/* The words of a request after the script: compared with a list that ends in NULL. */
static void has_words(const struct request *request, const char *const *wanted, const char *name)
{
    int n = 0;

    while (wanted[n] != NULL)
        n++;
    is_int(request->n, n + 2, name);
    is_str(request->word[0], request->script == NULL ? "EVAL" : "EVALSHA", "is a script");
    for (n = 0; wanted[n] != NULL && n + 2 < request->n; n++) {
        is_str(request->word[n + 2], wanted[n], "of these words");
        okf(request->bytes[n + 2] == strlen(wanted[n]), "each whole");
    }
}

#define KEYS_OF(K)                                                            \
    K, "{" K "}:rlock:fence", "{" K "}:rlock:queue", "{" K "}:rlock:waiters", \
        "{" K "}:rlock:holders", "{" K "}:rlock:holder-info"
#define KEYS "6", KEYS_OF("k")
#define WAKE "{k}:rlock:wake:"
#define CARD "host=h label=a%20b"

static void test_requests(void)
{
    static struct request request[5];
    const struct lease_when when = {.not_after_ms = 5};
    char prefix[80];
    struct lease lease;

    if (!is_int(open_for(&lease, "k", NULL), RLOCK_OK, "a lock to ask for"))
        return;
    is_int((int64_t)strlen(lease.token), 32, "its token is 32 digits");
    lease.attempt = 7;
    lease.lock[0].fence = UINT64_MAX;

    lease_ask_acquire(&lease, &request[0], &when);
    has_words(
        &request[0],
        (const char *[]){KEYS, lease.token, "7", CARD, "30000", "5", "fifo", "", "x", "", NULL},
        "acquire");
    lease_ask_renew(&lease, &request[1], &when);
    has_words(&request[1],
              (const char *[]){KEYS, "5", CARD, "x", "0", lease.token, "30000",
                               "18446744073709551615", NULL},
              "renew");
    lease_ask_release(&lease, &request[2], &when);
    snprintf(prefix, sizeof prefix, "%s ", lease.token);
    has_words(&request[2],
              (const char *[]){KEYS, prefix, "18446744073709551615", "", "", "0", CARD, NULL},
              "release: of whatever this token wrote");
    lease_ask_leave(&lease, &request[4], &when);
    has_words(&request[4], (const char *[]){KEYS, prefix, "", lease.token, "", NULL},
              "leave: the same, without a grant, and its place in line");
    lease_ask_undo(&lease, &request[3], &when);
    snprintf(prefix, sizeof prefix, "%s v1 try=7 ", lease.token);
    has_words(&request[3], (const char *[]){KEYS, prefix, "", "", "", NULL},
              "undo: of what this attempt wrote, and no other");

    is_str(request[3].word[0], "EVAL", "an undo is spelled out");
    is_str(request[2].script, request[3].word[1], "and is a release");
    is_str(request[2].word[1], request[4].word[1], "as is leaving");
    ok(strcmp(request[0].word[1], request[1].word[1]) != 0 &&
           strcmp(request[1].word[1], request[2].word[1]) != 0,
       "all others are scripts of their own");
    lease_close(&lease);
}

static const struct {
    enum rlock_queue queue;
    bool is_single_attempt;
    int64_t ticket;
    const char *way;
    const char *text;
} ways[] = {
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
    bool whole_seconds;
    const char *seconds;
} blocks[] = {
    {2500, false, "2.500"}, {2000, false, "2"},   {2, false, "0.002"}, {0, false, "0.001"},
    {-7, false, "0.001"},   {1, true, "1"},       {1000, true, "1"},   {1001, true, "2"},
    {0, true, "1"},         {60000, false, "60"},
};

static void test_waiting(void)
{
    struct lease_when when = {.not_after_ms = 5};
    static struct request request;
    struct lease lease;
    char wake[80];
    size_t i;

    if (!is_int(open_for(&lease, "k", NULL), RLOCK_OK, "a lock to wait for"))
        return;
    lease.attempt = 7;
    for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        lease.queue = ways[i].queue;
        lease.is_single_attempt = ways[i].is_single_attempt;
        lease.ticket = ways[i].ticket;
        lease_ask_acquire(&lease, &request, &when);
        has_words(&request,
                  (const char *[]){KEYS, lease.token, "7", CARD, "30000", "5", ways[i].way,
                                   ways[i].text, "x", "", NULL},
                  ways[i].way);
    }
    snprintf(wake, sizeof wake, WAKE "%s", lease.token);
    for (i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        lease.whole_seconds = blocks[i].whole_seconds;
        when.block_ms = lease_block_ms(&lease, blocks[i].block_ms);
        lease_ask_wake(&lease, &request, &when);
        is_int(request.n, 3, "a wait for being woken");
        is_str(request.word[0], "BLPOP", "is BLPOP");
        is_str(request.word[1], wake, "of our own list");
        is_str(request.word[2], blocks[i].seconds, "for so many seconds, and never for ever");
    }
    lease_close(&lease);
}

/* Several keys, in each mode, with what an parent rlock holds among them. */
static void test_several(void)
{
    static const char parent[] = "0123456789abcdef0123456789abcdef";
    static struct request request;
    const struct lease_when when = {.not_after_ms = 5};
    struct rlock_config config = {.keys = (const char *const[]){"k", "l", "k"},
                                  .n_keys = 2,
                                  .mode = RLOCK_SHARED,
                                  .unless_done = true,
                                  .parent = (const char *const[]){"no token", parent},
                                  .n_parents = 2,
                                  .timing = {.ttl_ms = 30000},
                                  .holder = {.host = "h", .label = "a b"}};
    struct answer answer = {.n_holdings = 2, .holding = {{0, 9, 30000}, {1, 8, 5000}}};
    struct lease lease;
    char prefix[80];

    if (!is_int(lease_open(&lease, &config, NULL), RLOCK_OK, "two keys"))
        return;
    lease_ask_acquire(&lease, &request, &when);
    has_words(&request,
              (const char *[]){"12", KEYS_OF("k"), KEYS_OF("l"), lease.token, "0", CARD, "30000",
                               "5", "fifo", "", "s", "1", parent, NULL},
              "acquire: both, shared, unless done, below an outer one");
    lease_take(&lease, &answer, 10);
    ok(lease_is_ours(&lease) && lease_ttl_ms(&lease) == 5000, "one is ours, one the outer one's");
    lease_ask_renew(&lease, &request, &when);
    has_words(&request,
              (const char *[]){"12", KEYS_OF("k"), KEYS_OF("l"), "5", CARD, "s", "0", lease.token,
                               "30000", "10", parent, "5000", "0", NULL},
              "renew: each by its owner's token, for its own time");
    lease.ending = RLOCK_ENDS_REST;
    lease.stay_ms = 77;
    lease_ask_release(&lease, &request, &when);
    snprintf(prefix, sizeof prefix, "%s ", lease.token);
    has_words(&request,
              (const char *[]){"6", KEYS_OF("k"), prefix, "10", "", "rest", "77", CARD, NULL},
              "release: ours alone");
    answer.holding[0].parent = 1;
    lease_take(&lease, &answer, 10);
    ok(!lease_is_ours(&lease), "all may be the outer one's");
    lease_close(&lease);

    config.n_keys = 3;
    is_int(lease_open(&lease, &config, NULL), RLOCK_E_USAGE, "a key twice is refused");
    lease_close(&lease);
    config.n_keys = 0;
    is_int(lease_open(&lease, &config, NULL), RLOCK_E_USAGE, "as is none");
    lease_close(&lease);
    config.n_keys = 2;
    config.mode = RLOCK_SLOTS;
    config.n_slots = 3;
    is_int(lease_open(&lease, &config, NULL), RLOCK_E_USAGE, "slots of two keys");
    lease_close(&lease);
    config.n_keys = 1;
    config.n_slots = RLOCK_SLOTS_MAX + 1;
    is_int(lease_open(&lease, &config, NULL), RLOCK_E_USAGE, "and too many slots");
    lease_close(&lease);
}

static void test_timestamp(void)
{
    static struct request request;
    const struct lease_when when = {.not_after_ms = 5};
    struct rlock_config config = {.keys = (const char *const[]){"k", "l"},
                                  .n_keys = 2,
                                  .timing = {.ttl_ms = 30000},
                                  .holder = {.host = "h", .label = "a b"}};
    struct lease lease;

    config.protocol = RLOCK_PROTOCOL_TIME_MS;
    is_int(lease_open(&lease, &config, NULL), RLOCK_E_USAGE, "a timestamp is of one key");
    lease_close(&lease);
    config.n_keys = 1;
    config.mode = RLOCK_EXCLUSIVE;
    config.unless_done = false;
    if (is_int(lease_open(&lease, &config, NULL), RLOCK_OK, "of one owner")) {
        lease_ask_acquire(&lease, &request, &when);
        has_words(&request,
                  (const char *[]){KEYS, lease.token, "0", CARD, "30000", "5", "none", "", "ms", "",
                                   NULL},
                  "and in a unit");
    }
    lease_close(&lease);
}

int main(void)
{
    test_open();
    test_requests();
    test_waiting();
    test_several();
    test_timestamp();
    return done_testing();
}
