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

    memset(key, 'k', RLOCK_KEY_MAX);
    if (is_int(open_for(&lease, key, &err), RLOCK_OK, "a key of 64 KiB"))
        is_str(lease.key, key, "is kept as it is");
    lease_close(&lease);
    key[RLOCK_KEY_MAX] = 'k';
    ok(open_for(&lease, key, &err) == RLOCK_E_USAGE && strstr(err.text, "65536") != NULL,
       "a longer one is refused, and the bound is named");
    lease_close(&lease);
    is_int(open_for(&lease, "", &err), RLOCK_E_USAGE, "no key is refused");
    lease_close(&lease);
    if (is_int(open_for(&lease, "\xff\n{a}\x01", &err), RLOCK_OK, "a key of any bytes"))
        is_str(lease.key, "\xff\n{a}\x01", "is kept as it is");
    lease_close(&lease);
    ok(lease.token[0] == '\0' && lease.key == NULL, "nothing of it stays behind");
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

static void test_requests(void)
{
    const char *const acquire[] = {
        "2", "k", "rlock:fence:{k}:k", NULL, "7", "host=h label=a%20b", "30000", "5", NULL};
    const char *const renew[] = {
        "2", "k", "rlock:fence:{k}:k", NULL, "30000", "18446744073709551615", "host=h label=a%20b",
        "0", NULL};
    const char *words[sizeof acquire / sizeof acquire[0]];
    struct lease_words numbers[4];
    struct request request[4] = {{.n = 9}};
    char prefix[80];
    struct lease lease;

    if (!is_int(open_for(&lease, "k", NULL), RLOCK_OK, "a lock to ask for"))
        return;
    is_int((int64_t)strlen(lease.token), 32, "its token is 32 digits");
    lease.attempt = 7;
    lease.fence = UINT64_MAX;

    lease_ask_acquire(&lease, &request[0], &numbers[0], 5);
    memcpy(words, acquire, sizeof acquire);
    words[3] = lease.token;
    has_words(&request[0], words, "acquire");
    lease_ask_renew(&lease, &request[1], &numbers[1], 0);
    memcpy(words, renew, sizeof renew);
    words[3] = lease.token;
    has_words(&request[1], words, "renew");
    lease_ask_release(&lease, &request[2], &numbers[2]);
    snprintf(prefix, sizeof prefix, "%s ", lease.token);
    has_words(&request[2],
              (const char *[]){"2", "k", "rlock:fence:{k}:k", prefix, "18446744073709551615", NULL},
              "release: of whatever this token wrote");
    lease_ask_undo(&lease, &request[3], &numbers[3]);
    snprintf(prefix, sizeof prefix, "%s v1 try=7 ", lease.token);
    has_words(&request[3], (const char *[]){"2", "k", "rlock:fence:{k}:k", prefix, "", NULL},
              "undo: of what this attempt wrote, and no other");

    is_str(request[2].word[1], request[3].word[1], "an undo is a release");
    ok(strcmp(request[0].word[1], request[1].word[1]) != 0 &&
           strcmp(request[1].word[1], request[2].word[1]) != 0,
       "all others are scripts of their own");
    ok(strstr(request[0].word[1], "'NX'") != NULL && strstr(request[2].word[1], "'DEL'") != NULL,
       "that do what they are called");
    lease_close(&lease);
}

static const struct {
    const char *reply;
    enum lease_kind kind;
    int64_t server_ms;
    uint64_t fence;
    const char *holder;
    int64_t left_ms;
} good[] = {
    {"*3\r\n:1\r\n:5\r\n$2\r\n42\r\n", LEASE_GRANTED, 5, 42, "", 0},
    {"*3\r\n:1\r\n:5\r\n$16\r\n1700000000000001\r\n", LEASE_GRANTED, 5, 1700000000000001, "", 0},
    {"*3\r\n:1\r\n:5\r\n$20\r\n18446744073709551615\r\n", LEASE_GRANTED, 5, UINT64_MAX, "", 0},
    {"*2\r\n:1\r\n:5\r\n", LEASE_GRANTED, 5, 0, "", 0},
    {"*2\r\n:2\r\n:5\r\n", LEASE_RESTORED, 5, 0, "", 0},
    {"*2\r\n:-1\r\n:5\r\n", LEASE_GONE, 5, 0, "", 0},
    {"*2\r\n:-2\r\n:5\r\n", LEASE_LATE, 5, 0, "", 0},
    {"*4\r\n:0\r\n:5\r\n:900\r\n$1\r\nx\r\n", LEASE_HELD, 5, 0, "another program (\"x\")", 900},
    {"*4\r\n:0\r\n:5\r\n:-1\r\n$0\r\n\r\n", LEASE_HELD, 5, 0, "another program (\"\")", -1},
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
    "*2\r\n:-3\r\n:5\r\n",
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
    enum rlock_status (*read)(const struct reply *, struct lease_answer *, struct rlock_error *);
    struct lease_answer answer;
    struct rlock_error err;
    struct codec *codec;
    size_t i;

    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct reply *reply = parse(&codec, good[i].reply);

        memset(&answer, 0x55, sizeof answer);
        /* a renewal has no fence of its own; the other answers are common to both */
        read = reply != NULL && reply_count(reply) == 2 ? lease_read_renewal : lease_read_grant;
        if (okf(reply != NULL && read(reply, &answer, &err) == RLOCK_OK, "good: %s",
                good[i].reply)) {
            is_int(answer.kind, good[i].kind, "of this kind");
            is_int(answer.server_ms, good[i].server_ms, "with the server's time");
            ok(answer.fence == good[i].fence, "and the fence");
            is_str(answer.obstacle.holder, good[i].holder, "and who holds it");
            is_int(answer.obstacle.left_ms, good[i].left_ms, "and for how long");
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
    test_answers();
    test_release_answers();
    return done_testing();
}
