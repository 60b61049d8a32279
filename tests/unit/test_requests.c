/* SPDX-License-Identifier: MIT */
/* test_requests: the words of each request. */
#include "lock/requests.h"
#include "tap.h"

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
    if (is_int(open_for(&owner, key, &err), RLOCK_OK, "a key of 64 KiB"))
        is_str(owner.lock[0].keys.name[KEY_LOCK], key, "is kept as it is");
    owner_close(&owner);
    key[RLOCK_KEY_MAX] = 'k';
    ok(open_for(&owner, key, &err) == RLOCK_E_USAGE && strstr(err.text, "65536") != NULL,
       "a longer one is refused, and the bound is named");
    owner_close(&owner);
    is_int(open_for(&owner, "", &err), RLOCK_E_USAGE, "no key is refused");
    owner_close(&owner);
    if (is_int(open_for(&owner, "\xff\n{a}\x01", &err), RLOCK_OK, "a key of any bytes"))
        is_str(owner.lock[0].keys.name[KEY_LOCK], "\xff\n{a}\x01", "is kept as it is");
    owner_close(&owner);
    ok(owner.token[0] == '\0' && owner.lock == NULL && owner.parent == NULL,
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
    const struct requests_params when = {.not_after_ms = 5};
    char prefix[80];
    struct owner owner;

    if (!is_int(open_for(&owner, "k", NULL), RLOCK_OK, "a lock to ask for"))
        return;
    is_int((int64_t)strlen(owner.token), 32, "its token is 32 digits");
    owner.attempt = 7;
    owner.lock[0].fence = UINT64_MAX;

    requests_acquire(&owner, &request[0], &when);
    has_words(
        &request[0],
        (const char *[]){KEYS, owner.token, "7", CARD, "30000", "5", "fifo", "", "x", "", NULL},
        "acquire");
    requests_renew(&owner, &request[1], &when);
    has_words(&request[1],
              (const char *[]){KEYS, "5", CARD, "x", "0", owner.token, "30000",
                               "18446744073709551615", NULL},
              "renew");
    requests_release(&owner, &request[2], &when);
    snprintf(prefix, sizeof prefix, "%s ", owner.token);
    has_words(&request[2],
              (const char *[]){KEYS, prefix, "18446744073709551615", "", "", "0", CARD, NULL},
              "release: of whatever this token wrote");
    requests_leave(&owner, &request[4], &when);
    has_words(&request[4], (const char *[]){KEYS, prefix, "", owner.token, "", NULL},
              "leave: the same, without a grant, and its place in line");
    requests_undo(&owner, &request[3], &when);
    snprintf(prefix, sizeof prefix, "%s v1 try=7 ", owner.token);
    has_words(&request[3], (const char *[]){KEYS, prefix, "", "", "", NULL},
              "undo: of what this attempt wrote, and no other");

    is_str(request[3].word[0], "EVAL", "an undo is spelled out");
    is_str(request[2].script, request[3].word[1], "and is a release");
    is_str(request[2].word[1], request[4].word[1], "as is leaving");
    ok(strcmp(request[0].word[1], request[1].word[1]) != 0 &&
           strcmp(request[1].word[1], request[2].word[1]) != 0,
       "all others are scripts of their own");
    owner_close(&owner);
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
    struct requests_params when = {.not_after_ms = 5};
    static struct request request;
    struct owner owner;
    char wake[80];
    size_t i;

    if (!is_int(open_for(&owner, "k", NULL), RLOCK_OK, "a lock to wait for"))
        return;
    owner.attempt = 7;
    for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        owner.queue = ways[i].queue;
        owner.is_single_attempt = ways[i].is_single_attempt;
        owner.ticket = ways[i].ticket;
        requests_acquire(&owner, &request, &when);
        has_words(&request,
                  (const char *[]){KEYS, owner.token, "7", CARD, "30000", "5", ways[i].way,
                                   ways[i].text, "x", "", NULL},
                  ways[i].way);
    }
    snprintf(wake, sizeof wake, WAKE "%s", owner.token);
    for (i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        owner.whole_seconds = blocks[i].whole_seconds;
        when.block_ms = owner_block_ms(&owner, blocks[i].block_ms);
        requests_wait(&owner, &request, &when);
        is_int(request.n, 3, "a wait for being woken");
        is_str(request.word[0], "BLPOP", "is BLPOP");
        is_str(request.word[1], wake, "of our own list");
        is_str(request.word[2], blocks[i].seconds, "for so many seconds, and never for ever");
    }
    owner_close(&owner);
}

/* Several keys, in each mode, with what an parent rlock holds among them. */
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

    if (!is_int(owner_open(&owner, &config, NULL), RLOCK_OK, "two keys"))
        return;
    requests_acquire(&owner, &request, &when);
    has_words(&request,
              (const char *[]){"12", KEYS_OF("k"), KEYS_OF("l"), owner.token, "0", CARD, "30000",
                               "5", "fifo", "", "s", "1", parent, NULL},
              "acquire: both, shared, unless done, below an outer one");
    owner_take_grant(&owner, &answer, 10);
    ok(owner_has_own_lock(&owner) && owner_granted_ttl_ms(&owner) == 5000,
       "one is ours, one the outer one's");
    requests_renew(&owner, &request, &when);
    has_words(&request,
              (const char *[]){"12", KEYS_OF("k"), KEYS_OF("l"), "5", CARD, "s", "0", owner.token,
                               "30000", "10", parent, "5000", "0", NULL},
              "renew: each by its owner's token, for its own time");
    owner.ending = RLOCK_ENDS_REST;
    owner.stay_ms = 77;
    requests_release(&owner, &request, &when);
    snprintf(prefix, sizeof prefix, "%s ", owner.token);
    has_words(&request,
              (const char *[]){"6", KEYS_OF("k"), prefix, "10", "", "rest", "77", CARD, NULL},
              "release: ours alone");
    answer.lock[0].parent = 1;
    owner_take_grant(&owner, &answer, 10);
    ok(!owner_has_own_lock(&owner), "all may be the outer one's");
    owner_close(&owner);

    config.n_keys = 3;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE, "a key twice is refused");
    owner_close(&owner);
    config.n_keys = 0;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE, "as is none");
    owner_close(&owner);
    config.n_keys = 2;
    config.mode = RLOCK_SLOTS;
    config.n_slots = 3;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE, "slots of two keys");
    owner_close(&owner);
    config.n_keys = 1;
    config.n_slots = RLOCK_SLOTS_MAX + 1;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE, "and too many slots");
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

    config.protocol = RLOCK_PROTOCOL_TIME_MS;
    is_int(owner_open(&owner, &config, NULL), RLOCK_E_USAGE, "a timestamp is of one key");
    owner_close(&owner);
    config.n_keys = 1;
    config.mode = RLOCK_EXCLUSIVE;
    config.unless_done = false;
    if (is_int(owner_open(&owner, &config, NULL), RLOCK_OK, "of one owner")) {
        requests_acquire(&owner, &request, &when);
        has_words(&request,
                  (const char *[]){KEYS, owner.token, "0", CARD, "30000", "5", "none", "", "ms", "",
                                   NULL},
                  "and in a unit");
    }
    owner_close(&owner);
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
