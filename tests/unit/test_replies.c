/* SPDX-License-Identifier: MIT */
/* test_replies: parsing the replies of the scripts, well-formed and malformed ones. */
#include "lock/replies.h"
#include "tap.h"

enum script_of { ACQUIRE, RENEW, RELEASE };

static reply_parse *const parsers[] = {
    [ACQUIRE] = reply_parse_acquire, [RENEW] = reply_parse_renew, [RELEASE] = reply_parse_release};

/* The first four elements of the eight that acquire.lua returns to a waiter (REPLY_HELD). */
#define HELD(LEFT) "*8\r\n:0\r\n:5\r\n:" LEFT "\r\n$1\r\nx\r\n"
/* A grant with a slot, and with LOCKS, a text of N bytes: "PARENT:FENCE:TTL" of each lock. */
#define GRANT(SLOT, N, LOCKS) "*5\r\n:1\r\n:5\r\n$2\r\n42\r\n:" SLOT "\r\n$" N "\r\n" LOCKS "\r\n"
#define FOREIGN "another program (\"x\", the key's value, not written by rlock)"
#define OK_42 .code = REPLY_OK, .server_ms = 5, .fence = 42
#define HELD_5(LEFT) \
    .code = REPLY_HELD, .server_ms = 5, .obstacle = {.holder = {.text = FOREIGN}, .left_ms = (LEFT)}

static const struct {
    enum script_of script;
    const char *reply;
    struct reply wanted;
} good[] = {
    {ACQUIRE, "*3\r\n:1\r\n:5\r\n$2\r\n42\r\n", {OK_42}},
    {ACQUIRE,
     "$16\r\n1700000000000001\r\n",
     {.code = REPLY_OK, .server_ms = 1700000000000, .fence = 1700000000000001}},
    {ACQUIRE,
     "*3\r\n:1\r\n:5\r\n$20\r\n18446744073709551615\r\n",
     {.code = REPLY_OK, .server_ms = 5, .fence = UINT64_MAX}},
    {RENEW, "*2\r\n:1\r\n:5\r\n", {.code = REPLY_OK, .server_ms = 5}},
    {RENEW, "*3\r\n:2\r\n:5\r\n:42\r\n", {.code = REPLY_RESTORED, .server_ms = 5, .left_ms = 42}},
    {RENEW, "*2\r\n:-1\r\n:5\r\n", {.code = REPLY_GONE, .server_ms = 5}},
    {RENEW, "*2\r\n:-2\r\n:5\r\n", {.code = REPLY_LATE, .server_ms = 5}},
    {RENEW, "*2\r\n:-5\r\n:5\r\n", {.code = REPLY_RELEASED, .server_ms = 5}},
    {RENEW, "*4\r\n:0\r\n:5\r\n:900\r\n$1\r\nx\r\n", {HELD_5(900)}},
    {ACQUIRE,
     "*3\r\n:-3\r\n:5\r\n$26\r\nx host=h pid=4 command=tar\r\n",
     {.code = REPLY_SUPERSEDED, .server_ms = 5, .obstacle = {.holder.text = "tar of ?@h, pid 4"}}},
    {ACQUIRE,
     "*4\r\n:3\r\n:5\r\n:900\r\n$1\r\nx\r\n",
     {.code = REPLY_DONE, .server_ms = 5, .obstacle = {.holder.text = FOREIGN, .left_ms = 900}}},
    {ACQUIRE, "*3\r\n:-4\r\n:5\r\n:1\r\n", {.code = REPLY_OTHER_MODE, .server_ms = 5}},
    {ACQUIRE, HELD("-1") ":0\r\n$1\r\n0\r\n:0\r\n:1\r\n", {HELD_5(-1)}},
    {ACQUIRE,
     HELD("1") ":60000\r\n$16\r\n1700000000000001\r\n:301\r\n:1\r\n",
     {.code = REPLY_HELD,
      .server_ms = 5,
      .obstacle = {.holder.text = FOREIGN, .left_ms = 1, .place = 301},
      .block_ms = 60000,
      .ticket = 1700000000000001}},
    {ACQUIRE, GRANT("999", "9", "0:42:1000"), {OK_42, 999, .n_locks = 1, .lock = {{0, 42, 1000}}}},
    {ACQUIRE,
     GRANT("3", "35", "2:7:30000 0:42:1000 16:0:2592000000"),
     {OK_42, 3, .n_locks = 3, .lock = {{2, 7, 30000}, {0, 42, 1000}, {16, 0, 2592000000}}}},
    {ACQUIRE,
     GRANT("0", "28", "1:18446744073709551615:30000"),
     {OK_42, .n_locks = 1, .lock = {{1, UINT64_MAX, 30000}}}},
    {RELEASE, ":1\r\n", {.code = REPLY_OK}},
    {RELEASE, ":0\r\n", {.code = REPLY_HELD}},
    {RELEASE, ":-1\r\n", {.code = REPLY_GONE}},
};

static const struct {
    enum script_of script;
    const char *replies[5]; /* up to the first NULL */
} malformed[] = {
    /* no array, or one whose code or time is missing or of another type */
    {ACQUIRE, {"+OK\r\n"}},
    {RENEW, {":1\r\n"}},
    {ACQUIRE, {"$0\r\n\r\n", "$1\r\n1\r\n", "$1\r\n0\r\n", "$2\r\n4x\r\n"}},
    {RENEW, {"$-1\r\n"}},
    {ACQUIRE, {"*0\r\n", "*1\r\n:1\r\n"}},
    {RENEW, {"*2\r\n:4\r\n:5\r\n", "*2\r\n:4294967297\r\n:5\r\n", "*2\r\n$1\r\n1\r\n:5\r\n"}},
    {ACQUIRE, {"*2\r\n:1\r\n$1\r\n5\r\n"}},
    /* a code that only another script returns */
    {ACQUIRE, {"*2\r\n:2\r\n:5\r\n", "*2\r\n:-6\r\n:5\r\n"}},
    {RENEW, {"*3\r\n:-3\r\n:5\r\n$0\r\n\r\n", "*3\r\n:-4\r\n:5\r\n:1\r\n"}},
    {RENEW, {"*4\r\n:3\r\n:5\r\n:900\r\n$1\r\nx\r\n"}},
    /* no fence */
    {ACQUIRE, {"*3\r\n:1\r\n:5\r\n:42\r\n", "*3\r\n:1\r\n:5\r\n$0\r\n\r\n"}},
    {ACQUIRE, {"*3\r\n:1\r\n:5\r\n$1\r\n0\r\n", "*3\r\n:1\r\n:5\r\n$2\r\n-1\r\n"}},
    {ACQUIRE, {"*3\r\n:1\r\n:5\r\n$2\r\n1x\r\n"}},
    {ACQUIRE, {"*3\r\n:1\r\n:5\r\n$20\r\n18446744073709551616\r\n"}},
    /* no slot, no locks */
    {ACQUIRE, {GRANT("-1", "9", "0:42:1000"), GRANT("1000", "9", "0:42:1000")}},
    {ACQUIRE, {"*4\r\n:1\r\n:5\r\n$2\r\n42\r\n:0\r\n"}},
    {ACQUIRE, {"*5\r\n:1\r\n:5\r\n$2\r\n42\r\n$1\r\n0\r\n$9\r\n0:42:1000\r\n"}},
    {ACQUIRE, {"*5\r\n:1\r\n:5\r\n$2\r\n42\r\n:0\r\n:1\r\n", GRANT("0", "0", "")}},
    {ACQUIRE, {GRANT("0", "5", "0:42:"), GRANT("0", "7", "0::1000")}},
    {ACQUIRE, {GRANT("0", "10", "-1:42:1000"), GRANT("0", "10", "17:42:1000")}},
    {ACQUIRE, {GRANT("0", "10", "0:-2:10000"), GRANT("0", "8", "0:42:999")}},
    {ACQUIRE, {GRANT("0", "15", "0:42:2592000001"), GRANT("0", "10", "0:42:1000x")}},
    {ACQUIRE, {GRANT("0", "19", "0:42:1000\t0:42:1000")}},
    {ACQUIRE, {GRANT("0", "26", "0:42:18446744073709551617x")}},
    /* no number of the lock that is in another mode */
    {ACQUIRE, {"*3\r\n:-4\r\n:5\r\n:0\r\n", "*3\r\n:-4\r\n:5\r\n:65\r\n"}},
    {ACQUIRE, {"*3\r\n:-4\r\n:5\r\n$1\r\n1\r\n"}},
    /* no time or value of the done mark, no info of the newer waiter */
    {ACQUIRE, {"*2\r\n:3\r\n:5\r\n", "*4\r\n:3\r\n:5\r\n:900\r\n$-1\r\n"}},
    {ACQUIRE, {"*4\r\n:3\r\n:5\r\n$3\r\n900\r\n$1\r\nx\r\n", "*3\r\n:-3\r\n:5\r\n:1\r\n"}},
    /* no time left, no holder, or not all that a waiter must be told */
    {RENEW, {"*2\r\n:0\r\n:5\r\n", "*4\r\n:0\r\n:5\r\n$1\r\n9\r\n$1\r\nx\r\n"}},
    {RENEW, {"*4\r\n:0\r\n:5\r\n:900\r\n:1\r\n"}},
    {ACQUIRE, {"*4\r\n:0\r\n:5\r\n:900\r\n$1\r\nx\r\n"}},
    {ACQUIRE, {HELD("900") "$3\r\n200\r\n$1\r\n9\r\n:1\r\n:1\r\n"}},
    {ACQUIRE, {HELD("900") ":-1\r\n$1\r\n9\r\n:1\r\n:1\r\n"}},
    {ACQUIRE, {HELD("900") ":60001\r\n$1\r\n9\r\n:1\r\n:1\r\n"}},
    {ACQUIRE, {HELD("900") ":200\r\n:9\r\n:1\r\n:1\r\n"}},
    {ACQUIRE, {HELD("900") ":200\r\n$2\r\n-9\r\n:1\r\n:1\r\n"}},
    {ACQUIRE, {HELD("900") ":200\r\n$1\r\n9\r\n$1\r\n1\r\n:1\r\n"}},
    {ACQUIRE, {"*8\r\n:0\r\n$1\r\n5\r\n:900\r\n$1\r\nx\r\n:200\r\n$1\r\n9\r\n:1\r\n:1\r\n"}},
    /* no time left of the lease that was renewed */
    {RENEW, {"*3\r\n:1\r\n:5\r\n:0\r\n", "*3\r\n:1\r\n:5\r\n$2\r\n42\r\n"}},
    {RENEW, {"*3\r\n:1\r\n:5\r\n:9223372036854775807\r\n"}},
    {RELEASE, {":2\r\n", ":-2\r\n", ":4294967296\r\n", "$1\r\n1\r\n"}},
};

static struct resp_reader *resp;

/* Parses these bytes of RESP. The value may be used until the next call. NULL: malformed. */
static const struct resp_value *parse_bytes(const char *text, size_t n)
{
    const struct resp_value *reply = NULL;

    resp_reader_free(resp);
    resp = resp_reader_new();
    if (resp == NULL || resp_reader_feed(resp, text, n, NULL) != RLOCK_OK ||
        resp_reader_next(resp, &reply, NULL) != RLOCK_OK)
        return NULL;
    return reply;
}

/* The same for a text without a NUL. */
static const struct resp_value *parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static void test_good(void)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct reply *wanted = &good[i].wanted;
        struct reply got;

        memset(&got, 0x55, sizeof got);
        if (!okf(parsers[good[i].script](parse(good[i].reply), &got, NULL) == RLOCK_OK,
                 "a well-formed reply is parsed: %s", good[i].reply))
            continue;
        is_int(got.code, wanted->code);
        if (good[i].script == RELEASE)
            continue;
        is_int(got.server_ms, wanted->server_ms);
        ok(got.fence == wanted->fence);
        is_int(got.left_ms, wanted->left_ms);
        is_str(got.obstacle.holder.text, wanted->obstacle.holder.text);
        is_int(got.obstacle.left_ms, wanted->obstacle.left_ms);
        is_int(got.obstacle.place, wanted->obstacle.place);
        is_int(got.block_ms, wanted->block_ms);
        is_int(got.ticket, wanted->ticket);
        is_int(got.slot, wanted->slot);
        is_int((int64_t)got.n_locks, (int64_t)wanted->n_locks);
        for (size_t j = 0; j < wanted->n_locks; j++)
            ok(got.lock[j].parent == wanted->lock[j].parent &&
               got.lock[j].fence == wanted->lock[j].fence &&
               got.lock[j].ttl_ms == wanted->lock[j].ttl_ms);
    }
}

static void test_malformed(void)
{
    static const char with_nul[] = "*3\r\n:1\r\n:5\r\n$4\r\n42\0x\r\n";
    struct rlock_error err;
    struct reply answer;

    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        for (const char *const *text = malformed[i].replies; *text != NULL; text++) {
            const struct resp_value *reply = parse(*text);

            err.text[0] = '\0';
            okf(reply != NULL &&
                    parsers[malformed[i].script](reply, &answer, &err) == RLOCK_E_PROTOCOL &&
                    err.status == RLOCK_E_PROTOCOL &&
                    strncmp(err.text, "unexpected reply ", 17) == 0,
                "a malformed reply is a protocol error: %s", *text);
        }
    ok(reply_parse_acquire(parse_bytes(with_nul, sizeof with_nul - 1), &answer, NULL) ==
       RLOCK_E_PROTOCOL);
}

/* A grant may have RLOCK_KEYS_MAX locks, and not one more. */
static void test_many_locks(void)
{
    char locks[RLOCK_KEYS_MAX * 10 + 20] = "";
    char text[sizeof locks + 60];
    struct reply answer;

    for (size_t n = 1; n <= RLOCK_KEYS_MAX + 1; n++) {
        strcat(locks, n > 1 ? " 0:42:1000" : "0:42:1000");
        sprintf(text, "*5\r\n:1\r\n:5\r\n$2\r\n42\r\n:0\r\n$%zu\r\n%s\r\n", strlen(locks), locks);
        okf(reply_parse_acquire(parse(text), &answer, NULL) ==
                (n > RLOCK_KEYS_MAX ? RLOCK_E_PROTOCOL : RLOCK_OK),
            "a grant of %zu locks is %s", n, n > RLOCK_KEYS_MAX ? "a protocol error" : "parsed");
    }
}

static void test_times(void)
{
    is_int(reply_time_us(parse("*2\r\n$10\r\n1700000000\r\n$1\r\n7\r\n")), 1700000000000007);
    is_int(reply_time_us(parse("*2\r\n$11\r\n-1700000000\r\n$1\r\n7\r\n")), 0, "before 1970");
    is_int(reply_time_us(parse("*2\r\n$1\r\n0\r\n$2\r\n-7\r\n")), 0, "negative microseconds");
    is_int(reply_time_us(parse("*1\r\n$10\r\n1700000000\r\n")), 0, "a single number");
}

/* A waiter that is woken asks for the lock, or blocks again if it is only told when to ask. */
static void test_wakes(void)
{
    static const struct {
        const char *reply;
        int64_t soon_ms;
    } wakes[] = {{"*2\r\n$1\r\nw\r\n$4\r\nturn\r\n", -1},
                 {"*2\r\n$1\r\nw\r\n$6\r\nsoon 0\r\n", 0},
                 {"*2\r\n$1\r\nw\r\n$10\r\nsoon 99999\r\n", 99999},
                 {"*2\r\n$1\r\nw\r\n$7\r\nsoon -1\r\n", -1},
                 {"*2\r\n$1\r\nw\r\n$6\r\nsoon x\r\n", -1}};

    for (size_t i = 0; i < sizeof wakes / sizeof wakes[0]; i++)
        is_int(reply_soon_ms(parse(wakes[i].reply)), wakes[i].soon_ms, wakes[i].reply);
}

int main(void)
{
    RUN_ALL(test_good, test_malformed, test_many_locks, test_times, test_wakes);
    resp_reader_free(resp);
    return done_testing();
}
