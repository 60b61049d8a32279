/* SPDX-License-Identifier: MIT */
/* test_lease: the words of each request, and what answers may mean. */
#include "lease.h"
#include "tap.h"

static enum rlock_status open_for(struct lease *lease, const char *key, struct rlock_error *err)
{
    struct rlock_config config = {
        .key = key, .timing = {.ttl_ms = 30000}, .holder = {.host = "h", .label = "a b"}};

    return lease_open(lease, &config, err);
}

static void test_open(void)
{
    static char key[RLOCK_KEY_MAX + 2];
    struct rlock_error err = {.text = ""};
    struct lease lease;
    int i;

    memset(key, 'k', RLOCK_KEY_MAX);
    if (is_int(open_for(&lease, key, &err), RLOCK_OK, "a key of 64 KiB"))
        is_str(lease.key[KEY_LOCK], key, "is kept as it is");
    lease_close(&lease);
    key[RLOCK_KEY_MAX] = 'k';
    ok(open_for(&lease, key, &err) == RLOCK_E_USAGE && strstr(err.text, "65536") != NULL,
       "a longer one is refused, and the bound is named");
    lease_close(&lease);
    is_int(open_for(&lease, "", &err), RLOCK_E_USAGE, "no key is refused");
    lease_close(&lease);
    if (is_int(open_for(&lease, "\xff\n{a}\x01", &err), RLOCK_OK, "a key of any bytes"))
        is_str(lease.key[KEY_LOCK], "\xff\n{a}\x01", "is kept as it is");
    lease_close(&lease);
    ok(lease.token[0] == '\0' && lease.wake_prefix == NULL && lease.wake_key == NULL,
       "nothing of it stays behind");
    for (i = 0; i < SCRIPT_KEYS; i++)
        ok(lease.key[i] == NULL, "no key of it either");
}

/* The words of a request after the script: compared with a list that ends in NULL. */
static void has_words(const struct request *request, const char *const *wanted, const char *name)
{
    int n = 0;

    while (wanted[n] != NULL)
        n++;
    is_int(request->n, n + 2, name);
    is_str(request->word[0], "EVAL", "is EVAL");
    for (n = 0; wanted[n] != NULL && n + 2 < request->n; n++) {
        is_str(request->word[n + 2], wanted[n], "of these words");
        okf(request->bytes[n + 2] == strlen(wanted[n]), "each whole");
    }
}

#define KEYS "4", "k", "rlock:fence:{k}:k", "rlock:line:{k}:k", "rlock:waiters:{k}:k"
#define WAKE "rlock:wake:{k}:k"
#define CARD "host=h label=a%20b"

static void test_requests(void)
{
    struct lease_words numbers[5] = {{.not_after_ms = 5}};
    struct request request[5] = {{.n = 9}};
    char prefix[80];
    struct lease lease;

    if (!is_int(open_for(&lease, "k", NULL), RLOCK_OK, "a lock to ask for"))
        return;
    is_int((int64_t)strlen(lease.token), 32, "its token is 32 digits");
    lease.attempt = 7;
    lease.fence = UINT64_MAX;

    lease_ask_acquire(&lease, &request[0], &numbers[0]);
    has_words(&request[0],
              (const char *[]){KEYS, WAKE, lease.token, "7", CARD, "30000", "5", "fifo", "", NULL},
              "acquire");
    lease_ask_renew(&lease, &request[1], &numbers[1]);
    has_words(&request[1],
              (const char *[]){KEYS, lease.token, "30000", "18446744073709551615", CARD, "0", NULL},
              "renew");
    lease_ask_release(&lease, &request[2], &numbers[2]);
    snprintf(prefix, sizeof prefix, "%s ", lease.token);
    has_words(&request[2], (const char *[]){KEYS, WAKE, prefix, "18446744073709551615", "", NULL},
              "release: of whatever this token wrote");
    lease_ask_leave(&lease, &request[4], &numbers[4]);
    has_words(&request[4], (const char *[]){KEYS, WAKE, prefix, "", lease.token, NULL},
              "leave: the same, without a grant, and its place in line");
    lease_ask_undo(&lease, &request[3], &numbers[3]);
    snprintf(prefix, sizeof prefix, "%s v1 try=7 ", lease.token);
    has_words(&request[3], (const char *[]){KEYS, WAKE, prefix, "", "", NULL},
              "undo: of what this attempt wrote, and no other");

    is_str(request[2].word[1], request[3].word[1], "an undo is a release");
    is_str(request[2].word[1], request[4].word[1], "as is leaving");
    ok(strcmp(request[0].word[1], request[1].word[1]) != 0 &&
           strcmp(request[1].word[1], request[2].word[1]) != 0,
       "all others are scripts of their own");
    ok(strstr(request[0].word[1], "'NX'") != NULL && strstr(request[2].word[1], "'DEL'") != NULL,
       "that do what they are called");
    lease_close(&lease);
}

static const struct {
    enum rlock_queue queue;
    bool is_once;
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
    struct lease_words words = {.not_after_ms = 5};
    struct request request;
    struct lease lease;
    char wake[80];
    size_t i;

    if (!is_int(open_for(&lease, "k", NULL), RLOCK_OK, "a lock to wait for"))
        return;
    lease.attempt = 7;
    for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        lease.queue = ways[i].queue;
        lease.is_once = ways[i].is_once;
        lease.ticket = ways[i].ticket;
        lease_ask_acquire(&lease, &request, &words);
        has_words(&request,
                  (const char *[]){KEYS, WAKE, lease.token, "7", CARD, "30000", "5", ways[i].way,
                                   ways[i].text, NULL},
                  ways[i].way);
    }
    snprintf(wake, sizeof wake, WAKE "%s", lease.token);
    for (i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        lease.whole_seconds = blocks[i].whole_seconds;
        words.block_ms = blocks[i].block_ms;
        lease_ask_wake(&lease, &request, &words);
        is_int(request.n, 3, "a wait for being woken");
        is_str(request.word[0], "BLPOP", "is BLPOP");
        is_str(request.word[1], wake, "of our own list");
        is_str(request.word[2], blocks[i].seconds, "for so many seconds, and never for ever");
    }
    lease_close(&lease);
}

/* The beginning of what somebody who waits is told. */
#define HELD(LEFT, BY) "*7\r\n:0\r\n:5\r\n:" LEFT "\r\n$1\r\n" BY "\r\n"

static const struct {
    const char *reply;
    enum lease_kind kind;
    int64_t server_ms;
    uint64_t fence;
    const char *holder;
    int64_t left_ms;
    int64_t block_ms;
    int64_t ticket;
    int64_t place;
} good[] = {
    {"*3\r\n:1\r\n:5\r\n$2\r\n42\r\n", LEASE_GRANTED, 5, 42, "", 0, 0, 0, 0},
    {"*3\r\n:1\r\n:5\r\n$16\r\n1700000000000001\r\n", LEASE_GRANTED, 5, 1700000000000001, "", 0, 0,
     0, 0},
    {"*3\r\n:1\r\n:5\r\n$20\r\n18446744073709551615\r\n", LEASE_GRANTED, 5, UINT64_MAX, "", 0, 0, 0,
     0},
    {"*2\r\n:1\r\n:5\r\n", LEASE_GRANTED, 5, 0, "", 0, 0, 0, 0},
    {"*2\r\n:2\r\n:5\r\n", LEASE_RESTORED, 5, 0, "", 0, 0, 0, 0},
    {"*2\r\n:-1\r\n:5\r\n", LEASE_GONE, 5, 0, "", 0, 0, 0, 0},
    {"*2\r\n:-2\r\n:5\r\n", LEASE_LATE, 5, 0, "", 0, 0, 0, 0},
    {"*2\r\n:-3\r\n:5\r\n", LEASE_SUPERSEDED, 5, 0, "", 0, 0, 0, 0},
    {"*4\r\n:0\r\n:5\r\n:900\r\n$1\r\nx\r\n", LEASE_HELD, 5, 0, "another program (\"x\")", 900, 0,
     0, 0},
    {"*4\r\n:0\r\n:5\r\n:-1\r\n$0\r\n\r\n", LEASE_HELD, 5, 0, "another program (\"\")", -1, 0, 0,
     0},
    {HELD("900", "x") ":200\r\n$1\r\n9\r\n:1\r\n", LEASE_HELD, 5, 0, "another program (\"x\")", 900,
     200, 9, 1},
    {HELD("-1", "x") ":0\r\n$1\r\n0\r\n:0\r\n", LEASE_HELD, 5, 0, "another program (\"x\")", -1, 0,
     0, 0},
    {HELD("1", "x") ":60000\r\n$16\r\n1700000000000001\r\n:301\r\n", LEASE_HELD, 5, 0,
     "another program (\"x\")", 1, 60000, 1700000000000001, 301},
};

/* Nothing that a script of ours returns. */
static const char *const malformed[] = {
    "+OK\r\n",
    ":1\r\n",
    "$1\r\n1\r\n",
    "$-1\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*1\r\n:1\r\n",
    "*2\r\n:3\r\n:5\r\n",
    "*2\r\n:-4\r\n:5\r\n",
    "*2\r\n:4294967297\r\n:5\r\n",
    "*2\r\n$1\r\n1\r\n:5\r\n",
    "*2\r\n:1\r\n$1\r\n5\r\n",
    "*2\r\n:1\r\n$-1\r\n",
    "*2\r\n*1\r\n:1\r\n:5\r\n",
    "*3\r\n:1\r\n:5\r\n:42\r\n",
    "*3\r\n:1\r\n:5\r\n$0\r\n\r\n",
    "*3\r\n:1\r\n:5\r\n$1\r\n0\r\n",
    "*3\r\n:1\r\n:5\r\n$2\r\n-1\r\n",
    "*3\r\n:1\r\n:5\r\n$2\r\n 1\r\n",
    "*3\r\n:1\r\n:5\r\n$2\r\n1x\r\n",
    "*3\r\n:1\r\n:5\r\n$5\r\n1.5e3\r\n",
    "*3\r\n:1\r\n:5\r\n$3\r\nnan\r\n",
    "*3\r\n:1\r\n:5\r\n$20\r\n18446744073709551616\r\n",
    "*3\r\n:1\r\n:5\r\n$-1\r\n",
    "*2\r\n:0\r\n:5\r\n",
    "*3\r\n:0\r\n:5\r\n:900\r\n",
    "*4\r\n:0\r\n:5\r\n$1\r\n9\r\n$1\r\nx\r\n",
    "*4\r\n:0\r\n:5\r\n:900\r\n:1\r\n",
    "*4\r\n:0\r\n:5\r\n:900\r\n$-1\r\n",
};

/* An answer about who holds the lock that doesn't say how to wait: to who waits it is none. */
static const char *const malformed_waits[] = {
    "*4\r\n:0\r\n:5\r\n:900\r\n$1\r\nx\r\n",
    "*6\r\n:0\r\n:5\r\n:900\r\n$1\r\nx\r\n:200\r\n$1\r\n9\r\n",
    HELD("900", "x") "$3\r\n200\r\n$1\r\n9\r\n:1\r\n",
    HELD("900", "x") "$-1\r\n$1\r\n9\r\n:1\r\n",
    HELD("900", "x") ":-1\r\n$1\r\n9\r\n:1\r\n",
    HELD("900", "x") ":60001\r\n$1\r\n9\r\n:1\r\n",
    HELD("900", "x") ":9223372036854775807\r\n$1\r\n9\r\n:1\r\n",
    HELD("900", "x") ":-9223372036854775808\r\n$1\r\n9\r\n:1\r\n",
    HELD("900", "x") ":200\r\n:9\r\n:1\r\n",
    HELD("900", "x") ":200\r\n$-1\r\n:1\r\n",
    HELD("900", "x") ":200\r\n$2\r\n-9\r\n:1\r\n",
    HELD("900", "x") ":200\r\n$1\r\n9\r\n$1\r\n1\r\n",
    HELD("900", "x") ":200\r\n$1\r\n9\r\n$-1\r\n",
    "*7\r\n:0\r\n:5\r\n$1\r\n9\r\n$1\r\nx\r\n:200\r\n$1\r\n9\r\n:1\r\n",
    "*7\r\n:0\r\n:5\r\n:900\r\n$-1\r\n:200\r\n$1\r\n9\r\n:1\r\n",
    "*7\r\n:0\r\n$1\r\n5\r\n:900\r\n$1\r\nx\r\n:200\r\n$1\r\n9\r\n:1\r\n",
};

/* The reply in a text; the caller gives `*codec` back. */
static const struct reply *parse(struct codec **codec, const char *text)
{
    const struct reply *reply = NULL;

    *codec = codec_new();
    if (*codec == NULL || codec_feed(*codec, text, strlen(text), NULL) != RLOCK_OK ||
        codec_next(*codec, &reply, NULL) != RLOCK_OK)
        return NULL;
    return reply;
}

static void test_answers(void)
{
    bool is_renewal;
    enum rlock_status (*read)(const struct reply *, struct lease_answer *, struct rlock_error *);
    struct lease_answer answer;
    struct rlock_error err;
    struct codec *codec;
    size_t i;

    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct reply *reply = parse(&codec, good[i].reply);

        memset(&answer, 0x55, sizeof answer);
        /* a renewal has no fence and no place in line; the short answers are common to both */
        is_renewal = reply != NULL && reply_count(reply) % 2 == 0 &&
                     reply_int(reply_at(reply, 0)) != -3; /* nobody supersedes a holder */
        read = is_renewal ? lease_read_renewal : lease_read_grant;
        if (okf(reply != NULL && read(reply, &answer, &err) == RLOCK_OK, "good: %s",
                good[i].reply)) {
            is_int(answer.kind, good[i].kind, "of this kind");
            is_int(answer.server_ms, good[i].server_ms, "with the server's time");
            ok(answer.fence == good[i].fence, "and the fence");
            is_str(answer.obstacle.holder, good[i].holder, "and who holds it");
            is_int(answer.obstacle.left_ms, good[i].left_ms, "and for how long");
            is_int(answer.block_ms, good[i].block_ms, "and how long to wait");
            is_int(answer.ticket, good[i].ticket, "and since when we wait");
            is_int(answer.obstacle.place, good[i].place, "and which place that is");
        }
        codec_free(codec);
    }
    for (i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        const struct reply *reply = parse(&codec, malformed[i]);

        err.text[0] = '\0';
        read = i % 2 == 0 ? lease_read_grant : lease_read_renewal;
        if (reply_int(reply_at(reply, 0)) == 1)
            read = lease_read_grant;
        okf(reply != NULL && read(reply, &answer, &err) == RLOCK_E_PROTOCOL &&
                err.status == RLOCK_E_PROTOCOL && strncmp(err.text, "reply: ", 7) == 0,
            "malformed: %s", malformed[i]);
        codec_free(codec);
    }
    for (i = 0; i < sizeof malformed_waits / sizeof malformed_waits[0]; i++) {
        const struct reply *reply = parse(&codec, malformed_waits[i]);

        err.text[0] = '\0';
        okf(reply != NULL && lease_read_grant(reply, &answer, &err) == RLOCK_E_PROTOCOL &&
                err.status == RLOCK_E_PROTOCOL && strncmp(err.text, "reply: ", 7) == 0,
            "malformed wait: %s", malformed_waits[i]);
        codec_free(codec);
    }
}

static void test_release_answers(void)
{
    static const char *const bad[] = {
        ":2\r\n",       ":-2\r\n", ":4294967296\r\n", "$1\r\n1\r\n",
        "*1\r\n:1\r\n", "+OK\r\n", "$-1\r\n",         ":-9223372036854775808\r\n"};
    static const struct {
        const char *reply;
        enum lease_kind kind;
    } released[] = {{":1\r\n", LEASE_GRANTED}, {":0\r\n", LEASE_HELD}, {":-1\r\n", LEASE_GONE}};
    struct lease_answer answer;
    struct codec *codec;
    size_t i;

    for (i = 0; i < sizeof released / sizeof released[0]; i++) {
        const struct reply *reply = parse(&codec, released[i].reply);

        okf(reply != NULL && lease_read_release(reply, &answer, NULL) == RLOCK_OK &&
                answer.kind == released[i].kind,
            "release: %s", released[i].reply);
        codec_free(codec);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct reply *reply = parse(&codec, bad[i]);

        okf(reply != NULL && lease_read_release(reply, &answer, NULL) == RLOCK_E_PROTOCOL,
            "malformed release: %s", bad[i]);
        codec_free(codec);
    }
}

int main(void)
{
    test_open();
    test_requests();
    test_waiting();
    test_answers();
    test_release_answers();
    return done_testing();
}
