/* SPDX-License-Identifier: MIT */
/* test_list: the list of all locks, and one lock without scripts, by a scripted server. */
#include "seen.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define VALUE "$71\r\n" TOKEN " v1 try=1 host=web1 since=1700000000000\r\n"
#define OTHER "$71\r\nfedcba9876543210fedcba9876543210 v1 try=1 host=web2 since=1700000004000\r\n"
#define TIME "*2\r\n$10\r\n1700000005\r\n$1\r\n7\r\n"
#define EMPTY "*0\r\n"
#define NIL "$-1\r\n"
#define UNREAD "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

/* The replies to PTTL, GETRANGE, TIME, GET of the fence, and ZCARD. */
#define READING(value) ":29000\r\n", value, TIME, "$2\r\n77\r\n", ":3\r\n"
#define FOREIGN(value, fence) ":29000\r\n", value, TIME, fence, ":1\r\n"
#define FREE ":-2\r\n", "$0\r\n\r\n", TIME
/* The replies to PTTL, MULTI, EXEC, WATCH, GETRANGE, TIME and GET, by which a break begins. */
#define WATCHED(value) ":29000\r\n", "+OK\r\n", EMPTY, "+OK\r\n", value, TIME, "$2\r\n77\r\n"
#define QUEUED "+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n"

#define SHARED server_bulk("00000000000000000000000000000000 v1 mode=shared since=1700000000000")

/* Returns an array of these bulk strings. The text may be used until 10 calls later. */
static const char *array(const char *const *item)
{
    static char made[10][8192];
    static size_t n_made;
    char *bytes = made[n_made++ % 10];
    size_t n = 0;

    while (item[n] != NULL)
        n++;
    snprintf(bytes, sizeof made[0], "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++)
        strcat(bytes, item[i]);
    return bytes;
}

#define ARRAY(...) array(ANSWERS(__VA_ARGS__))

/* Makes a call without scripts. */
static enum rlock_status run(enum call what, const char *const *answers, const char *name)
{
    return see(what, RLOCK_SCRIPTS_NO, answers, name);
}

static void test_inspect(void)
{
    is_int(run(INSPECT, ANSWERS(READING(VALUE)), NULL), RLOCK_OK, "a lock is read");
    is_str(seen.text, "k web1 ", "the holder of the lock is shown");
    ok(seen.view.left_ms == 29000 && seen.view.fence == 77 && seen.view.waiting == 3);
    is_int(run(INSPECT, ANSWERS(FREE, NIL, ":0\r\n"), NULL), RLOCK_OK);
    is_int(seen.view.seen, RLOCK_SEEN_FREE, "a free lock is seen as free");
    is_int(run(INSPECT, ANSWERS(":29000\r\n", VALUE, TIME, UNREAD, UNREAD), NULL), RLOCK_OK);
    is_int(seen.view.waiting, -1, "the length of a queue of another type isn't known");
    is_str(seen.wrong, "{k}:rlock:fence is no number from 1 to 2^53 - 2^32");
    is_int(run(INSPECT, ANSWERS(READING(SHARED)), NULL), RLOCK_OK, "a shared lock is read");
    ok(seen.view.seen == RLOCK_SEEN_SHARED && seen.view.n_holders == 0 && seen.view.other == NULL);
    is_int(run(INSPECT, ANSWERS(UNREAD, VALUE, TIME, NIL, ":0\r\n"), NULL), RLOCK_E_REFUSED);
}

static void test_break(void)
{
    char name[64];

    run(INSPECT, ANSWERS(READING(VALUE)), NULL);
    snprintf(name, sizeof name, "%s", seen.name);
    is_int(run(BREAK, ANSWERS(WATCHED(VALUE), QUEUED, "*3\r\n+OK\r\n+OK\r\n:1\r\n"), name),
           RLOCK_OK, "a lock with the value that was seen is broken");
    is_int(run(BREAK, ANSWERS(WATCHED(VALUE), QUEUED, NIL, WATCHED(OTHER)), name), RLOCK_BUSY,
           "a lock that has got another value isn't broken");
    is_int(
        run(BREAK, ANSWERS(":-2\r\n", "+OK\r\n", EMPTY, "+OK\r\n", "$0\r\n\r\n", TIME, NIL), name),
        RLOCK_GONE, "a free lock isn't broken");
    is_int(run(BREAK, ANSWERS(WATCHED(VALUE), CLOSE), name), RLOCK_E_UNREACHABLE);
    ok(strstr(seen.fault, "may have been broken") != NULL);
}

/* The last reply to SCAN, with the keys a and b; then the replies to TIME and TYPE, and to TIME. */
#define FOUND_ONLY "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
#define FOUND FOUND_ONLY, TIME, "+string\r\n", "-NOPERM\r\n", TIME

static void test_list(void)
{
    is_int(run(LIST, ANSWERS(FOUND, VALUE, "$1\r\nx\r\n", READING(VALUE)), NULL), RLOCK_OK);
    is_str(seen.text, "a web1 ", "only the key that rlock wrote is a lock");
    for (int scripts = RLOCK_SCRIPTS_YES; scripts <= RLOCK_SCRIPTS_NO; scripts++) {
        is_int(see(LIST, (enum rlock_scripts)scripts,
                   ANSWERS(FOUND, VALUE, UNREAD, "-MOVED 1 h:1\r\n"), NULL),
               RLOCK_OK);
        is_int(seen.n_locks, 0, "a lock that has moved to another server isn't listed");
    }
    is_int(run(LIST, ANSWERS("*2\r\n$2\r\n17\r\n*0\r\n", FOUND, "$0\r\n\r\n", "$0\r\n\r\n"), NULL),
           RLOCK_OK, "the keys of a server are listed in two pages");
    is_int(seen.n_requests, 8, "SCAN goes on until its cursor is 0");
    run(LIST, ANSWERS("*2\r\n$1\r\n0\r\n*0\r\n"), NULL);
    is_str(seen.last, "SCAN 0 MATCH ** COUNT 30 ", "without a pattern SCAN finds all keys");
    run(LIST, ANSWERS("*2\r\n$1\r\n0\r\n*0\r\n"), "b");
    is_str(seen.last, "SCAN 0 MATCH *b* COUNT 30 ");
    is_int(run(LIST, ANSWERS(FOUND_ONLY, TIME, "+string\r\n", TIME, VALUE, READING(VALUE)), "b"),
           RLOCK_OK, "the locks of a pattern are listed");
    is_str(seen.text, "b web1 ", "only the lock of the pattern is listed");
    is_int(run(LIST, ANSWERS(FOUND_ONLY, TIME, "+hash\r\n", "+list\r\n"), NULL), RLOCK_OK);
    is_int(seen.n_requests, 4, "a key of another type isn't read: the server would count an error");
    is_int(run(LIST, ANSWERS("*65\r\n", FOUND, "$0\r\n\r\n", "$0\r\n\r\n"), NULL), RLOCK_OK);
    is_int(run(LIST, ANSWERS("*2\r\n$1\r\n0\r\n*1\r\n$16\r\n{a}:rlock:holders\r\n"), NULL),
           RLOCK_E_PROTOCOL, "a reply with a wrong length is malformed");
}

/* A lock that another program holds is found by its fence, or by its queue if it has no fence. */
static void test_list_foreign(void)
{
    const char *value = server_bulk("foreign");
    const char *fence = server_bulk("{f}:rlock:fence");
    const char *queue = server_bulk("{f}:rlock:queue");
    const char *both = ARRAY(server_bulk("0"), ARRAY(fence, queue));

    is_int(run(LIST,
               ANSWERS(both, FOREIGN(value, server_bulk("77")), FOREIGN(value, server_bulk("77"))),
               NULL),
           RLOCK_OK, "a lock with a fence and a queue is found twice");
    is_str(seen.text, "f  ", "it is listed once");
    is_int(run(LIST, ANSWERS(ARRAY(server_bulk("0"), ARRAY(queue)), FOREIGN(value, NIL)), NULL),
           RLOCK_OK, "a lock without a fence is found by its queue");
    is_str(seen.text, "f  ", "it is listed");
    is_int(run(LIST,
               ANSWERS(ARRAY(server_bulk("0"), ARRAY(fence)), FREE, server_bulk("x"), ":0\r\n"),
               NULL),
           RLOCK_OK, "a free lock with the fence of another program is found");
    is_str(seen.text, "f ", "it is listed, as nobody can acquire it");
    is_int(run(LIST, ANSWERS(both), "g"), RLOCK_OK, "the locks of a pattern are listed");
    is_int(seen.n_requests, 1, "no lock of another key is read");
}

/* What LRANGE returns from the history of a free lock, and which last end is shown. */
static const struct {
    const char *const entry[4];
    const char *wanted;
} ends[] = {
    {{"end v1 token=1 at=5 status=3 since=4"}, "k:5:3 "},
    {{"end v1 token=1 fence=5000 held=2"}, "k:7:-1 "},
    {{"break v1 token=1 since=6"}, "k:6:-1 "},
    {{"end v1 token=1 at=6 missing=1 status=0"}, "k:6:0:lost "},
    {{"end v1 token=1 at=4 status=1", "end v1 token=1 at=5 status=2"}, "k:5:2 "},
    {{"end v1 token=1 at=5 status=256"}, "k:5:-1 "},
    {{"end v1 token=1 at=-5 status=0"}, ""},
    {{"end v1 token=1 at=99999999999999999999 status=0"}, ""},
    {{"end v2 token=1 at=5 status=0"}, ""},
    {{"grant v1 token=1 since=5"}, ""},
};

/* Lists a server with these answers, as `--format prometheus` does: with the last ends. */
static enum rlock_status list_ends(const char *const *answers, const char *pattern)
{
    return see(LIST_ENDS, RLOCK_SCRIPTS_AUTO, answers, pattern);
}

#define HISTORY ARRAY(server_bulk("0"), ARRAY(server_bulk("{k}:rlock:history")))
/* What inspect.lua returns of a free lock. */
#define FREE_LOCK                                                                               \
    "*4\r\n:1700000005000\r\n*8\r\n$-1\r\n:-2\r\n$0\r\n\r\n:0\r\n:0\r\n:-1\r\n*0\r\n$0\r\n\r\n" \
    "$1\r\nn\r\n$0\r\n\r\n"

static void test_last_ends(void)
{
    const char *answers[43] = {NULL};
    const char *entries[11];
    const char *entry[4];

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        for (size_t j = 0; j < 4; j++)
            entry[j] = ends[i].entry[j] != NULL ? server_bulk(ends[i].entry[j]) : NULL;
        is_int(list_ends(ANSWERS(HISTORY, FREE_LOCK, TIME, array(entry), TIME, EMPTY), "[a-k]"),
               RLOCK_OK, "a free lock with a history is found");
        is_str(seen.text, ends[i].wanted, ends[i].entry[0]);
    }
    is_int(list_ends(ANSWERS(ARRAY(server_bulk("0"),
                                   ARRAY(server_bulk("k"), server_bulk("{k}:rlock:history"))),
                             FREE_LOCK, TIME, UNREAD),
                     "[a-j]"),
           RLOCK_OK, "a list with a pattern is read");
    is_int(seen.n_requests, 1, "no history of another key is read");
    is_int(list_ends(ANSWERS(HISTORY, FREE_LOCK, TIME, UNREAD), NULL), RLOCK_OK);
    is_int(run(LIST, ANSWERS(HISTORY), NULL), RLOCK_OK, "a list without the last ends is read");
    is_int(seen.n_requests, 1, "no lock is looked for that has only a history");
    for (size_t i = 0; i < 10; i++)
        entries[i] = server_bulk("grant v1 token=1");
    entries[10] = NULL;
    answers[0] = HISTORY;
    answers[1] = FREE_LOCK;
    for (size_t i = 2; i < 42; i += 2) {
        answers[i] = TIME;
        answers[i + 1] = i == 2 ? array(entries) : answers[3];
    }
    is_int(list_ends(answers, NULL), RLOCK_OK, "a history without an end is read");
    is_int(seen.n_requests, 42, "rlock searches the last 200 entries for an end");
}

static const char *const malformed[] = {
    ":1\r\n",
    "*0\r\n",
    "$-1\r\n",
    "*2\r\n:1\r\n:2\r\n",
    "*2\r\n$33\r\n111111111111111111111111111111111\r\n*0\r\n",
    "*2\r\n$32\r\n11111111111111111111111111111111\r\n*0\r\n",
    "*2\r\n$1\r\n0\r\n*1\r\n:1\r\n",
};

static void test_malformed_replies(void)
{
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        const char *const answers[] = {malformed[i], NULL};

        okf(run(INSPECT, answers, NULL) == RLOCK_E_PROTOCOL,
            "malformed reply %zu to inspect is refused", i);
        okf(run(LIST, answers, NULL) == RLOCK_E_PROTOCOL, "malformed reply %zu to list is refused",
            i);
        okf(run(BREAK, answers, "n") == RLOCK_E_PROTOCOL, "malformed reply %zu to break is refused",
            i);
        is_int(seen.n_locks, 0, "nothing of a malformed reply is shown");
    }
}

TESTS(test_inspect, test_break, test_list, test_list_foreign, test_last_ends,
      test_malformed_replies)
