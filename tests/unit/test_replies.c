/* SPDX-License-Identifier: MIT */
/* test_replies: parsing the replies of the scripts, well-formed and malformed ones. */
#include "lock/replies.h"
#include "tap.h"

/* The first four elements of the eight that acquire.lua returns to a waiter (REPLY_HELD). */
#define HELD(LEFT, BY) "*8\r\n:0\r\n:5\r\n:" LEFT "\r\n$1\r\n" BY "\r\n"

static const struct {
    const char *reply;
    enum reply_code code;
    int64_t server_ms;
    uint64_t fence;
    const char *holder;
    int64_t left_ms;
    int64_t block_ms;
    int64_t ticket;
    int64_t place;
} good[] = {
    {"*3\r\n:1\r\n:5\r\n$2\r\n42\r\n", REPLY_OK, 5, 42, "", 0, 0, 0, 0},
    {"$16\r\n1700000000000001\r\n", REPLY_OK, 1700000000000, 1700000000000001, "", 0, 0, 0, 0},
    {"*3\r\n:1\r\n:5\r\n$16\r\n1700000000000001\r\n", REPLY_OK, 5, 1700000000000001, "", 0, 0, 0,
     0},
    {"*3\r\n:1\r\n:5\r\n$20\r\n18446744073709551615\r\n", REPLY_OK, 5, UINT64_MAX, "", 0, 0, 0, 0},
    {"*2\r\n:1\r\n:5\r\n", REPLY_OK, 5, 0, "", 0, 0, 0, 0},
    {"*2\r\n:2\r\n:5\r\n", REPLY_RESTORED, 5, 0, "", 0, 0, 0, 0},
    {"*2\r\n:-1\r\n:5\r\n", REPLY_GONE, 5, 0, "", 0, 0, 0, 0},
    {"*2\r\n:-2\r\n:5\r\n", REPLY_LATE, 5, 0, "", 0, 0, 0, 0},
    {"*3\r\n:-3\r\n:5\r\n$0\r\n\r\n", REPLY_SUPERSEDED, 5, 0, "", 0, 0, 0, 0},
    {"*3\r\n:-3\r\n:5\r\n$26\r\nx host=h pid=4 command=tar\r\n", REPLY_SUPERSEDED, 5, 0,
     "tar of ?@h, pid 4", 0, 0, 0, 0},
    {"*2\r\n:-5\r\n:5\r\n", REPLY_RELEASED, 5, 0, "", 0, 0, 0, 0},
    {"*4\r\n:0\r\n:5\r\n:900\r\n$1\r\nx\r\n", REPLY_HELD, 5, 0,
     "another program (\"x\", the key's value, not written by rlock)", 900, 0, 0, 0},
    {"*4\r\n:0\r\n:5\r\n:-1\r\n$0\r\n\r\n", REPLY_HELD, 5, 0,
     "another program (\"\", the key's value, not written by rlock)", -1, 0, 0, 0},
    {HELD("900", "x") ":200\r\n$1\r\n9\r\n:1\r\n:1\r\n", REPLY_HELD, 5, 0,
     "another program (\"x\", the key's value, not written by rlock)", 900, 200, 9, 1},
    {HELD("-1", "x") ":0\r\n$1\r\n0\r\n:0\r\n:1\r\n", REPLY_HELD, 5, 0,
     "another program (\"x\", the key's value, not written by rlock)", -1, 0, 0, 0},
    {HELD("1", "x") ":60000\r\n$16\r\n1700000000000001\r\n:301\r\n:1\r\n", REPLY_HELD, 5, 0,
     "another program (\"x\", the key's value, not written by rlock)", 1, 60000, 1700000000000001,
     301},
    {"*4\r\n:3\r\n:5\r\n:900\r\n$1\r\nx\r\n", REPLY_DONE, 5, 0,
     "another program (\"x\", the key's value, not written by rlock)", 900, 0, 0, 0},
    {"*3\r\n:-4\r\n:5\r\n:1\r\n", REPLY_OTHER_MODE, 5, 0, "", 0, 0, 0, 0},
};

/* A grant with a slot, and with LOCKS, a text of N bytes: "PARENT:FENCE:TTL" of each lock. */
#define GRANT(SLOT, N, LOCKS) "*5\r\n:1\r\n:5\r\n$2\r\n42\r\n:" SLOT "\r\n$" N "\r\n" LOCKS "\r\n"

static const struct {
    const char *reply;
    int64_t slot;
    size_t n;
    struct granted_lock last;
} good_grants[] = {
    {GRANT("0", "9", "0:42:1000"), 0, 1, {0, 42, 1000}},
    {GRANT("999", "9", "0:42:1000"), 999, 1, {0, 42, 1000}},
    {GRANT("3", "35", "2:7:30000 0:42:1000 16:0:2592000000"), 3, 3, {16, 0, 2592000000}},
    {GRANT("0", "28", "1:18446744073709551615:30000"), 0, 1, {1, UINT64_MAX, 30000}},
};

static const char *const malformed_grants[] = {
    "$0\r\n\r\n",
    "$1\r\n0\r\n",
    "$2\r\n4x\r\n",
    GRANT("-1", "9", "0:42:1000"),
    GRANT("1000", "9", "0:42:1000"),
    "*4\r\n:1\r\n:5\r\n$2\r\n42\r\n:0\r\n",
    "*5\r\n:1\r\n:5\r\n$2\r\n42\r\n$1\r\n0\r\n$9\r\n0:42:1000\r\n",
    "*5\r\n:1\r\n:5\r\n$2\r\n42\r\n:0\r\n:1\r\n",
    "*5\r\n:1\r\n:5\r\n$2\r\n42\r\n:0\r\n$-1\r\n",
    GRANT("0", "0", ""),
    GRANT("0", "4", "0:42"),
    GRANT("0", "5", "0:42:"),
    GRANT("0", "8", ":42:1000"),
    GRANT("0", "7", "0::1000"),
    GRANT("0", "10", "-1:42:1000"),
    GRANT("0", "10", "17:42:1000"),
    GRANT("0", "10", "0:-2:10000"),
    GRANT("0", "8", "0:42:999"),
    GRANT("0", "15", "0:42:2592000001"),
    GRANT("0", "10", "0:42:1000 "),
    GRANT("0", "10", "0:42:1000x"),
    GRANT("0", "20", "0:42:1000  0:42:1000"),
    GRANT("0", "19", "0:42:1000\t0:42:1000"),
    GRANT("0", "26", "0:42:18446744073709551617x"),
    "*5\r\n:1\r\n:5\r\n$1\r\n0\r\n:0\r\n$9\r\n0:42:1000\r\n",
    /* REPLY_OTHER_MODE without a valid number of the lock that is in another mode */
    "*2\r\n:-4\r\n:5\r\n",
    "*3\r\n:-4\r\n:5\r\n:0\r\n",
    "*3\r\n:-4\r\n:5\r\n:65\r\n",
    "*3\r\n:-4\r\n:5\r\n$1\r\n1\r\n",
    /* REPLY_DONE without a valid time or value of the done mark */
    "*2\r\n:3\r\n:5\r\n",
    "*4\r\n:3\r\n:5\r\n:900\r\n$-1\r\n",
    "*4\r\n:3\r\n:5\r\n$3\r\n900\r\n$1\r\nx\r\n",
    /* REPLY_SUPERSEDED without the newer waiter's info */
    "*2\r\n:-3\r\n:5\r\n",
    "*3\r\n:-3\r\n:5\r\n:1\r\n",
    /* REPLY_RESTORED, which only renew.lua returns */
    "*2\r\n:2\r\n:5\r\n",
};

/* REPLY_SUPERSEDED, REPLY_OTHER_MODE and REPLY_DONE: renew.lua never returns these. */
static const char *const not_for_renewals[] = {
    "*3\r\n:-3\r\n:5\r\n$0\r\n\r\n",
    "*3\r\n:-4\r\n:5\r\n:1\r\n",
    "*4\r\n:3\r\n:5\r\n:900\r\n$1\r\nx\r\n",
};

/* Replies that no script returns. */
static const char *const malformed[] = {
    "+OK\r\n",
    ":1\r\n",
    "$1\r\n1\r\n",
    "$-1\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*1\r\n:1\r\n",
    "*2\r\n:4\r\n:5\r\n",
    "*2\r\n:-6\r\n:5\r\n",
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

/* Replies REPLY_HELD to an acquire in which an element is missing or has a wrong type or value. */
static const char *const malformed_waits[] = {
    "*4\r\n:0\r\n:5\r\n:900\r\n$1\r\nx\r\n",
    "*6\r\n:0\r\n:5\r\n:900\r\n$1\r\nx\r\n:200\r\n$1\r\n9\r\n",
    HELD("900", "x") "$3\r\n200\r\n$1\r\n9\r\n:1\r\n:1\r\n",
    HELD("900", "x") "$-1\r\n$1\r\n9\r\n:1\r\n:1\r\n",
    HELD("900", "x") ":-1\r\n$1\r\n9\r\n:1\r\n:1\r\n",
    HELD("900", "x") ":60001\r\n$1\r\n9\r\n:1\r\n:1\r\n",
    HELD("900", "x") ":9223372036854775807\r\n$1\r\n9\r\n:1\r\n:1\r\n",
    HELD("900", "x") ":-9223372036854775808\r\n$1\r\n9\r\n:1\r\n:1\r\n",
    HELD("900", "x") ":200\r\n:9\r\n:1\r\n:1\r\n",
    HELD("900", "x") ":200\r\n$-1\r\n:1\r\n:1\r\n",
    HELD("900", "x") ":200\r\n$2\r\n-9\r\n:1\r\n:1\r\n",
    HELD("900", "x") ":200\r\n$1\r\n9\r\n$1\r\n1\r\n:1\r\n",
    HELD("900", "x") ":200\r\n$1\r\n9\r\n$-1\r\n:1\r\n",
    "*8\r\n:0\r\n:5\r\n$1\r\n9\r\n$1\r\nx\r\n:200\r\n$1\r\n9\r\n:1\r\n:1\r\n",
    "*8\r\n:0\r\n:5\r\n:900\r\n$-1\r\n:200\r\n$1\r\n9\r\n:1\r\n:1\r\n",
    "*8\r\n:0\r\n$1\r\n5\r\n:900\r\n$1\r\nx\r\n:200\r\n$1\r\n9\r\n:1\r\n:1\r\n",
};

/* Parses these bytes of RESP. Returns NULL if they are malformed. The caller frees `*resp`. */
static const struct resp_value *parse_bytes(struct resp_reader **resp, const char *text, size_t n)
{
    const struct resp_value *reply = NULL;

    *resp = resp_reader_new();
    if (*resp == NULL || resp_reader_feed(*resp, text, n, NULL) != RLOCK_OK ||
        resp_reader_next(*resp, &reply, NULL) != RLOCK_OK)
        return NULL;
    return reply;
}

/* The same for a text without a NUL. */
static const struct resp_value *parse(struct resp_reader **resp, const char *text)
{
    return parse_bytes(resp, text, strlen(text));
}

static void test_nul_in_fence(void)
{
    static const char bytes[] = "*3\r\n:1\r\n:5\r\n$4\r\n42\0x\r\n";
    struct resp_reader *resp;
    struct reply answer;
    const struct resp_value *reply = parse_bytes(&resp, bytes, sizeof bytes - 1);

    ok(reply != NULL && reply_parse_acquire(reply, &answer, NULL) == RLOCK_E_PROTOCOL);
    resp_reader_free(resp);
}

static void test_answers(void)
{
    bool is_renewal;
    enum rlock_status (*read)(const struct resp_value *, struct reply *, struct rlock_error *);
    struct reply answer;
    struct rlock_error err;
    struct resp_reader *resp;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct resp_value *reply = parse(&resp, good[i].reply);

        memset(&answer, 0x55, sizeof answer);
        /* Replies of two or four elements come from renew.lua, except REPLY_SUPERSEDED and
         * REPLY_DONE, which only acquire.lua returns. */
        is_renewal = reply != NULL && resp_array_count(reply) > 0 &&
                     resp_array_count(reply) % 2 == 0 && resp_array_count(reply) < 8 &&
                     resp_int(resp_array_at(reply, 0)) != REPLY_SUPERSEDED &&
                     resp_int(resp_array_at(reply, 0)) != REPLY_DONE;
        read = is_renewal ? reply_parse_renew : reply_parse_acquire;
        if (okf(reply != NULL && read(reply, &answer, &err) == RLOCK_OK,
                "a well-formed reply is parsed: %s", good[i].reply)) {
            is_int(answer.code, good[i].code, "the reply code is parsed");
            is_int(answer.server_ms, good[i].server_ms, "the server's time is parsed");
            ok(answer.fence == good[i].fence, "the fence is parsed");
            is_str(answer.obstacle.holder.text, good[i].holder, "the holder is parsed");
            is_int(answer.obstacle.left_ms, good[i].left_ms, "the time left is parsed");
            is_int(answer.block_ms, good[i].block_ms, "the time to block is parsed");
            is_int(answer.ticket, good[i].ticket, "the ticket is parsed");
            is_int(answer.obstacle.place, good[i].place, "the place in the queue is parsed");
        }
        resp_reader_free(resp);
    }
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        const struct resp_value *reply = parse(&resp, malformed[i]);

        err.text[0] = '\0';
        read = i % 2 == 0 ? reply_parse_acquire : reply_parse_renew;
        if (resp_int(resp_array_at(reply, 0)) == 1)
            read = reply_parse_acquire;
        okf(reply != NULL && read(reply, &answer, &err) == RLOCK_E_PROTOCOL &&
                err.status == RLOCK_E_PROTOCOL && strncmp(err.text, "reply: ", 7) == 0,
            "a malformed reply is a protocol error: %s", malformed[i]);
        resp_reader_free(resp);
    }
    for (size_t i = 0; i < sizeof malformed_waits / sizeof malformed_waits[0]; i++) {
        const struct resp_value *reply = parse(&resp, malformed_waits[i]);

        err.text[0] = '\0';
        okf(reply != NULL && reply_parse_acquire(reply, &answer, &err) == RLOCK_E_PROTOCOL &&
                err.status == RLOCK_E_PROTOCOL && strncmp(err.text, "reply: ", 7) == 0,
            "a malformed reply to a waiter is a protocol error: %s", malformed_waits[i]);
        resp_reader_free(resp);
    }
}

static void test_grants(void)
{
    struct reply answer;
    struct resp_reader *resp;

    for (size_t i = 0; i < sizeof good_grants / sizeof good_grants[0]; i++) {
        const struct resp_value *reply = parse(&resp, good_grants[i].reply);
        const struct granted_lock *last = &good_grants[i].last;

        memset(&answer, 0x55, sizeof answer);
        if (okf(reply != NULL && reply_parse_acquire(reply, &answer, NULL) == RLOCK_OK,
                "a well-formed grant is parsed: %s", good_grants[i].reply)) {
            is_int(answer.slot, good_grants[i].slot, "the slot of a grant is parsed");
            is_int((int64_t)answer.n_locks, (int64_t)good_grants[i].n);
            is_int((int64_t)answer.lock[good_grants[i].n - 1].parent, (int64_t)last->parent);
            ok(answer.lock[good_grants[i].n - 1].fence == last->fence);
            is_int(answer.lock[good_grants[i].n - 1].ttl_ms, last->ttl_ms);
        }
        resp_reader_free(resp);
    }
    for (size_t i = 0; i < sizeof malformed_grants / sizeof malformed_grants[0]; i++) {
        const struct resp_value *reply = parse(&resp, malformed_grants[i]);

        okf(reply != NULL && reply_parse_acquire(reply, &answer, NULL) == RLOCK_E_PROTOCOL,
            "a malformed reply to an acquire is a protocol error: %s", malformed_grants[i]);
        resp_reader_free(resp);
    }
    for (size_t i = 0; i < sizeof not_for_renewals / sizeof not_for_renewals[0]; i++) {
        const struct resp_value *reply = parse(&resp, not_for_renewals[i]);

        okf(reply != NULL && reply_parse_renew(reply, &answer, NULL) == RLOCK_E_PROTOCOL,
            "a code that renew.lua never returns is a protocol error: %s", not_for_renewals[i]);
        resp_reader_free(resp);
    }
}

/* A grant may have RLOCK_KEYS_MAX locks, and not one more. */
static void test_many_locks(void)
{
    char locks[RLOCK_KEYS_MAX * 10 + 20];
    char text[sizeof locks + 60];

    for (size_t n = RLOCK_KEYS_MAX; n <= RLOCK_KEYS_MAX + 1; n++) {
        const struct resp_value *reply;
        struct reply answer;
        struct resp_reader *resp;
        size_t used = 0;
        size_t i;

        for (i = 0; i < n; i++)
            used += (size_t)sprintf(locks + used, "%s0:42:1000", i > 0 ? " " : "");
        sprintf(text, "*5\r\n:1\r\n:5\r\n$2\r\n42\r\n:0\r\n$%zu\r\n%s\r\n", used, locks);
        reply = parse(&resp, text);
        okf(reply != NULL && reply_parse_acquire(reply, &answer, NULL) ==
                                 (n > RLOCK_KEYS_MAX ? RLOCK_E_PROTOCOL : RLOCK_OK),
            "a grant of %zu locks is %s", n, n > RLOCK_KEYS_MAX ? "a protocol error" : "parsed");
        resp_reader_free(resp);
    }
}

static void test_release_answers(void)
{
    static const char *const bad[] = {
        ":3\r\n",       ":-2\r\n", ":4294967296\r\n", "$1\r\n1\r\n",
        "*1\r\n:1\r\n", "+OK\r\n", "$-1\r\n",         ":-9223372036854775808\r\n"};
    static const struct {
        const char *reply;
        enum reply_code code;
        bool is_passed_on;
    } released[] = {{":1\r\n", REPLY_OK, false},
                    {":2\r\n", REPLY_OK, true},
                    {":0\r\n", REPLY_HELD, false},
                    {":-1\r\n", REPLY_GONE, false}};
    struct reply answer;
    struct resp_reader *resp;

    for (size_t i = 0; i < sizeof released / sizeof released[0]; i++) {
        const struct resp_value *reply = parse(&resp, released[i].reply);

        okf(reply != NULL && reply_parse_release(reply, &answer, NULL) == RLOCK_OK &&
                answer.code == released[i].code && answer.is_passed_on == released[i].is_passed_on,
            "a reply to a release is parsed: %s", released[i].reply);
        resp_reader_free(resp);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct resp_value *reply = parse(&resp, bad[i]);

        okf(reply != NULL && reply_parse_release(reply, &answer, NULL) == RLOCK_E_PROTOCOL,
            "a malformed reply to a release is a protocol error: %s", bad[i]);
        resp_reader_free(resp);
    }
}

/* The third element of the reply to a renewal: ms until the first lease ends. */
static void test_renewals(void)
{
    static const struct {
        const char *reply;
        int64_t left_ms; /* the wanted result; 0: not in the reply; -1: a protocol error */
    } rows[] = {
        {"*2\r\n:1\r\n:5\r\n", 0},         {"*3\r\n:1\r\n:5\r\n:42\r\n", 42},
        {"*3\r\n:2\r\n:5\r\n:42\r\n", 42}, {"*3\r\n:1\r\n:5\r\n:0\r\n", -1},
        {"*3\r\n:1\r\n:5\r\n:-1\r\n", -1}, {"*3\r\n:1\r\n:5\r\n$2\r\n42\r\n", -1},
        {"*3\r\n:1\r\n:5\r\n$-1\r\n", -1}, {"*3\r\n:1\r\n:5\r\n:9223372036854775807\r\n", -1}};
    struct reply answer;
    struct resp_reader *resp;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct resp_value *reply = parse(&resp, rows[i].reply);
        enum rlock_status st = reply == NULL ? RLOCK_OK : reply_parse_renew(reply, &answer, NULL);

        okf(reply != NULL &&
                (rows[i].left_ms < 0 ? st == RLOCK_E_PROTOCOL
                                     : st == RLOCK_OK && answer.left_ms == rows[i].left_ms),
            "a renewal's time left is parsed, or is a protocol error: %s", rows[i].reply);
        resp_reader_free(resp);
    }
}

static void test_times(void)
{
    static const struct {
        const char *reply;
        int64_t us;
        const char *name;
    } times[] = {
        {"*2\r\n$10\r\n1700000000\r\n$1\r\n7\r\n", INT64_C(1700000000000007),
         "a reply to TIME gives the time in microseconds"},
        {"*2\r\n$11\r\n-1700000000\r\n$1\r\n7\r\n", 0, "a time before 1970 is no reply to TIME"},
        {"*2\r\n$1\r\n0\r\n$2\r\n-7\r\n", 0, "microseconds below 0 are no reply to TIME"},
        {"*1\r\n$10\r\n1700000000\r\n", 0, "a single number is no reply to TIME"},
    };
    struct resp_reader *resp;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        is_int(reply_time_us(parse(&resp, times[i].reply)), times[i].us, times[i].name);
        resp_reader_free(resp);
    }
}

/* Parses a reply to BLPOP whose second element is this text. Returns NULL without memory. */
static const struct resp_value *parse_wake(struct resp_reader **resp, const char *text)
{
    char reply[200];

    snprintf(reply, sizeof reply, "*2\r\n$1\r\nw\r\n$%zu\r\n%.99s\r\n", strlen(text), text);
    return parse(resp, reply);
}

/* A waiter that is woken asks for the lock, or blocks again if it is only told when to ask. */
static void test_wakes(void)
{
    static const struct {
        const char *text;
        int64_t soon_ms;
    } wakes[] = {{"turn", -1},    {"soon 0", 0},  {"soon 99999", 99999},
                 {"soon -1", -1}, {"soon x", -1}, {"released", -1}};
    struct resp_reader *resp;

    for (size_t i = 0; i < sizeof wakes / sizeof wakes[0]; i++) {
        const struct resp_value *reply = parse_wake(&resp, wakes[i].text);

        if (reply == NULL)
            continue;
        okf(reply_soon_ms(reply) == wakes[i].soon_ms, "in %d ms the lock is free: %s",
            (int)wakes[i].soon_ms, wakes[i].text);
        resp_reader_free(resp);
    }
}

TESTS(test_wakes, test_times, test_nul_in_fence, test_answers, test_grants, test_many_locks,
      test_renewals, test_release_answers)
