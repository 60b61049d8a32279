/* SPDX-License-Identifier: MIT */
/* test_inspect_commands: locks read, listed and broken without scripts, by a scripted server. */
#include "server.h"
#include "tap.h"

#include <rlock_admin.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define VALUE "$71\r\n" TOKEN " v1 try=1 host=web1 since=1700000000000\r\n"
#define OTHER "$71\r\nfedcba9876543210fedcba9876543210 v1 try=1 host=web2 since=1700000004000\r\n"
#define TIME "*2\r\n$10\r\n1700000005\r\n$1\r\n7\r\n"
#define EMPTY "*0\r\n"
#define NIL "$-1\r\n"
#define UNREAD "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

/* The replies to GETRANGE, STRLEN, PTTL, TIME and GET of the fence. */
#define READING(value) value, ":71\r\n", ":29000\r\n", TIME, "$2\r\n77\r\n"
#define FOREIGN(value, fence) value, ":7\r\n", ":29000\r\n", TIME, fence
/* The replies to the second GETRANGE, and to HMGET, ZCARD and ZRANGEBYSCORE for an empty queue. */
#define NOBODY_WAITS(value) value, EMPTY, ":0\r\n", EMPTY
/* The replies to PTTL, MULTI, EXEC and WATCH, by which a break begins. */
#define WATCHED ":29000\r\n", "+OK\r\n", EMPTY, "+OK\r\n"
#define QUEUED "+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n"

#define NOBODY "00000000000000000000000000000000"
#define SHARED bulk(NOBODY " v1 mode=shared since=1700000000000")

/* Returns the text as a bulk string of a reply. The text may be used until 100 calls later. */
static const char *bulk(const char *text)
{
    static char made[100][128];
    static size_t n;
    char *bytes = made[n++ % 100];

    snprintf(bytes, sizeof made[0], "$%zu\r\n%s\r\n", strlen(text), text);
    return bytes;
}

/* Returns an array of these bulk strings. The text may be used until 10 calls later. */
static const char *array(const char *const *item)
{
    static char made[10][8192];
    static size_t n_made;
    char *bytes = made[n_made++ % 10];
    size_t n = 0;
    size_t i;

    while (item[n] != NULL)
        n++;
    snprintf(bytes, sizeof made[0], "*%zu\r\n", n);
    for (i = 0; i < n; i++)
        strcat(bytes, item[i]);
    return bytes;
}

#define ARRAY(...) array(ANSWERS(__VA_ARGS__))

struct seen {
    int n_locks;
    int n_waiters;
    struct rlock_view view; /* of the last lock; its pointers are not valid after the callback */
    char name[64];          /* view->name of the last lock */
    char text[512];         /* the keys of the locks and the hosts of holders and waiters */
    char wrong[400];        /* view->wrong of the last lock */
    char holders[512];      /* the hosts and the times left of all holders */
    char fault[512];        /* the text of the error */
    char last[300];         /* the words of the last request */
    int n_requests;         /* commands that the server has read */
};

static void see_lock(void *context, const struct rlock_view *view)
{
    struct seen *seen = context;
    size_t i;

    seen->n_locks++;
    seen->view = *view;
    snprintf(seen->name, sizeof seen->name, "%s", view->name);
    snprintf(seen->wrong, sizeof seen->wrong, "%s", view->wrong);
    strcat(strcat(seen->text, view->key), " ");
    if (view->n_holders > 0)
        strcat(strcat(seen->text, view->holders[0].host), " ");
    for (i = 0; i < view->n_holders && strlen(seen->holders) < 400; i++)
        sprintf(seen->holders + strlen(seen->holders), "%.40s:%lld ", view->holders[i].host,
                (long long)view->holders[i].left_ms);
}

static void see_waiter(void *context, const struct rlock_party *waiter)
{
    struct seen *seen = context;

    seen->n_waiters++;
    strcat(strcat(seen->text, waiter->host), " ");
}

enum call { INSPECT, LIST, BREAK };

/*
 * Makes one call to a server that sends these replies, one to each command. `name` is the name of
 * the value to break, or the pattern of the locks to list.
 */
static enum rlock_status run(enum call what, const char *const *answers, const char *name,
                             struct seen *seen)
{
    struct server server = {.answers = {[ASKED_OTHER] = answers}};
    struct rlock_visitor visitor = {.on_lock = see_lock, .on_waiter = see_waiter, .context = seen};
    struct rlock_deadline deadline = {rlock_clock_ms() + 20000, -1};
    struct rlock_error err = {.text = ""};
    const struct rlock_config config = {.scripts = RLOCK_SCRIPTS_NO, .timing = {.reply_ms = 10000}};
    enum rlock_status st = RLOCK_E_SYSTEM;
    struct rlock *lock = NULL;

    *seen = (struct seen){.n_locks = 0};
    if (server_open(&server, config, &lock, &err) == RLOCK_OK) {
        if (what == INSPECT)
            st = rlock_inspect(lock, "k", deadline, &visitor, &err);
        else if (what == LIST)
            st = rlock_list(lock, name, deadline, &visitor, &err);
        else
            st = rlock_break(lock, "k", name, deadline, &err);
    }
    okf((st >= RLOCK_E_USAGE) == (err.text[0] != '\0'),
        "a fault has a text, and nothing else has: \"%s\"", err.text);
    snprintf(seen->fault, sizeof seen->fault, "%s", err.text);
    seen->n_requests = atomic_load(&server.n_log);
    if (seen->n_requests > 0)
        snprintf(seen->last, sizeof seen->last, "%s", server.log[seen->n_requests - 1].text);
    rlock_close(lock);
    server_stop(&server);
    return st;
}

static void test_inspect(void)
{
    struct seen seen;

    is_int(run(INSPECT, ANSWERS(READING(VALUE), NOBODY_WAITS(VALUE)), NULL, &seen), RLOCK_OK,
           "a lock is read");
    is_str(seen.text, "k web1 ", "the holder of the lock is shown");
    is_int(seen.view.left_ms, 29000, "the view has the time left");
    is_int((int64_t)seen.view.fence, 77, "the view has the fence");
    is_int(run(INSPECT,
               ANSWERS(READING(VALUE), NOBODY_WAITS(OTHER), READING(OTHER), NOBODY_WAITS(OTHER)),
               NULL, &seen),
           RLOCK_OK, "a lock whose value changes between the two GETRANGE is read again");
    is_str(seen.text, "k web2 ", "of a lock that was read twice only the new holder is shown");
    is_int(run(INSPECT,
               ANSWERS("$0\r\n\r\n", ":0\r\n", ":-2\r\n", TIME, NIL, "$0\r\n\r\n", ":0\r\n", EMPTY),
               NULL, &seen),
           RLOCK_OK, "a free lock is read");
    is_int(seen.view.seen, RLOCK_SEEN_FREE, "a free lock is seen as free");
    is_int(run(INSPECT,
               ANSWERS(VALUE, ":71\r\n", ":29000\r\n", TIME, UNREAD, VALUE, UNREAD, UNREAD), NULL,
               &seen),
           RLOCK_OK, "a lock whose helper keys hold other types is read");
    is_int(seen.view.waiting, -1, "the length of a queue of another type isn't known");
    is_str(seen.wrong,
           "{k}:rlock:fence is no fence from 1 to 2^53 - 2^32, {k}:rlock:queue is no sorted set",
           "a view says which helper keys hold other types");
    run(INSPECT,
        ANSWERS(VALUE, ":71\r\n", ":29000\r\n", TIME, bulk("9007194959773696"),
                NOBODY_WAITS(VALUE)),
        NULL, &seen);
    is_str(seen.wrong, "", "the greatest fence is valid");
    is_int((int64_t)seen.view.fence, 9007194959773696, "the view has the greatest fence");
    run(INSPECT,
        ANSWERS(VALUE, ":71\r\n", ":29000\r\n", TIME, bulk("9007194959773697"),
                NOBODY_WAITS(VALUE)),
        NULL, &seen);
    is_str(seen.wrong, "{k}:rlock:fence is no fence from 1 to 2^53 - 2^32",
           "a number above the greatest fence is no fence");
    is_int(run(INSPECT, ANSWERS(VALUE, ":71\r\n", ":29000\r\n", "*0\r\n", NIL, NOBODY_WAITS(VALUE)),
               NULL, &seen),
           RLOCK_E_PROTOCOL, "a reply without the server's time is malformed");
}

/* The replies about a shared lock with two holders. */
#define TWO_HOLDERS(first, second)                                                   \
    READING(SHARED), NOBODY_WAITS(SHARED), ":2\r\n",                                 \
        ARRAY(bulk(TOKEN), bulk("1700000015000"), bulk("b"), bulk("1700000025000")), \
        ARRAY(bulk("try=1 host=" first " since=1700000001000"),                      \
              bulk("try=1 host=" second " since=1700000002000"))

static void test_holders(void)
{
    struct seen seen;

    is_int(run(INSPECT, ANSWERS(TWO_HOLDERS("s1", "s2")), NULL, &seen), RLOCK_OK,
           "a shared lock is read");
    is_str(seen.holders, "s1:10000 s2:20000 ", "each holder has the time left");
    is_int((int64_t)seen.view.n_all, 2, "the view has the number of holders");
    is_str(seen.last, "HMGET {k}:rlock:holder-info " TOKEN " b ",
           "the holders' infos are asked for");
    is_int(run(INSPECT,
               ANSWERS(READING(SHARED), NOBODY_WAITS(SHARED), ":2\r\n",
                       ARRAY(bulk("a"), bulk("1700000015000"), bulk("b"), bulk("1700000025000")),
                       ARRAY(NIL, bulk("try=1 host=s2"))),
               NULL, &seen),
           RLOCK_OK, "a shared lock that one of two holders has just released is read");
    is_str(seen.holders, "s2:20000 ", "a holder without an info isn't shown");
    is_int(
        run(INSPECT, ANSWERS(READING(SHARED), NOBODY_WAITS(SHARED), ":0\r\n", EMPTY), NULL, &seen),
        RLOCK_OK, "a shared lock without holders is read");
    is_int(seen.view.seen, RLOCK_SEEN_FREE, "a shared lock without holders is free");
    ok(run(INSPECT, ANSWERS(READING(SHARED), NOBODY_WAITS(SHARED), UNREAD, UNREAD), NULL, &seen) ==
           RLOCK_E_REFUSED,
       "holders in a key of another type are a fault");
}

static void test_waiters(void)
{
    struct seen seen;

    is_int(run(INSPECT,
               ANSWERS(READING(VALUE), VALUE, EMPTY, ":2\r\n",
                       "*4\r\n$1\r\na\r\n$16\r\n1700000001000000\r\n$1\r\nb\r\n$16\r\n"
                       "1700000002000000\r\n",
                       "*2\r\n$22\r\n1700000004000 x host=w\r\n$22\r\n1600000004000 x host=d\r\n"),
               NULL, &seen),
           RLOCK_OK, "a lock with waiters is read");
    is_str(seen.text, "k web1 w ", "a waiter without a heartbeat for 20 s isn't shown");
    is_int(seen.view.waiting, 2,
           "the length of the queue counts also a waiter without a heartbeat");
}

#define WAITING_28 W4("a"), W4("b"), W4("c"), W4("d"), W4("e"), W4("f"), W4("g")
#define W4(name) W1(name "1"), W1(name "2"), W1(name "3"), W1(name "4")
#define W1(name) bulk(name), bulk("1700000001000000")
#define INFOS_28 I7, I7, I7, I7
#define I7 I1, I1, I1, I1, I1, I1, I1
#define I1 bulk("1700000004000 x host=w")

static void test_pages(void)
{
    struct seen seen;

    is_int(run(INSPECT,
               ANSWERS(READING(VALUE), VALUE, EMPTY, ":3\r\n",
                       ARRAY(bulk(TOKEN), bulk("1700000001000000"), bulk(TOKEN "xx"),
                             bulk("1700000002000000"), bulk("c"), bulk("1700000003000000")),
                       ARRAY(bulk("1699999985001 x host=w1"), bulk("1699999985000 x host=w2"))),
               NULL, &seen),
           RLOCK_OK, "a queue with a member that is no token is read");
    is_str(seen.last, "HMGET {k}:rlock:waiters " TOKEN " c ", "only tokens are waiters");
    is_str(seen.text, "k web1 w1 ", "a waiter is dead 20 s after its heartbeat");
    is_int(run(INSPECT,
               ANSWERS(READING(VALUE), VALUE, EMPTY, ":3\r\n",
                       ARRAY(":1\r\n", bulk("1"), bulk("a"), ":1\r\n", bulk("b"),
                             bulk("17000000020000000000000000000000"), bulk("c"), bulk("2")),
                       ARRAY(I1)),
               NULL, &seen),
           RLOCK_OK, "a queue with elements that no server sends is read");
    is_str(seen.last, "HMGET {k}:rlock:waiters c ", "elements that no server sends are left out");
    is_int(run(INSPECT,
               ANSWERS(READING(VALUE), VALUE, EMPTY, ":29\r\n", ARRAY(WAITING_28), ARRAY(INFOS_28),
                       ARRAY(bulk("z"), bulk("1700000002000000")), ARRAY(I1)),
               NULL, &seen),
           RLOCK_OK, "a queue of more waiters than a reply has is read");
    is_int(seen.n_waiters, 29, "the waiters of all pages are shown");
    is_int(run(INSPECT,
               ANSWERS(READING(VALUE), VALUE, EMPTY, ":28\r\n", ARRAY(WAITING_28), ARRAY(INFOS_28),
                       EMPTY),
               NULL, &seen),
           RLOCK_OK, "a queue of exactly one full page is read");
    is_str(seen.last, "ZRANGEBYSCORE {k}:rlock:queue (1700000001000000 +inf WITHSCORES LIMIT 0 28 ",
           "behind a full page another page is asked for");
}

static void test_break(void)
{
    struct seen seen;
    char name[64];

    run(INSPECT, ANSWERS(READING(VALUE), NOBODY_WAITS(VALUE)), NULL, &seen);
    snprintf(name, sizeof name, "%s", seen.name);
    is_int(run(BREAK, ANSWERS(WATCHED, READING(VALUE), QUEUED, "*3\r\n:1\r\n+OK\r\n+OK\r\n"), name,
               &seen),
           RLOCK_OK, "a lock with the value that was seen is broken");
    is_int(run(BREAK, ANSWERS(WATCHED, READING(OTHER)), name, &seen), RLOCK_BUSY,
           "a lock that has got another value isn't broken");
    is_int(run(BREAK, ANSWERS(WATCHED, READING(VALUE), QUEUED, NIL, WATCHED, READING(OTHER)), name,
               &seen),
           RLOCK_BUSY, "after EXEC has returned nil, the lock is compared again");
    is_int(run(BREAK, ANSWERS(WATCHED, "$0\r\n\r\n", ":0\r\n", ":-2\r\n", TIME, NIL), name, &seen),
           RLOCK_GONE, "a free lock isn't broken");
    is_int(run(BREAK, ANSWERS(WATCHED, READING(VALUE), QUEUED, "*3\r\n:0\r\n+OK\r\n+OK\r\n"), name,
               &seen),
           RLOCK_GONE, "a lock that expired before EXEC is free");
    ok(run(BREAK,
           ANSWERS(":1\r\n", "-NOPERM no right to 'multi'\r\n", "-ERR EXEC without MULTI\r\n",
                   "+OK\r\n", READING(VALUE)),
           name, &seen) == RLOCK_E_REFUSED,
       "without the right to MULTI the break fails before it writes");
    is_int(run(BREAK, ANSWERS(WATCHED, READING(VALUE), CLOSE), name, &seen), RLOCK_E_UNREACHABLE,
           "a break without a reply is a fault");
    ok(strstr(seen.fault, "may have been broken") != NULL,
       "the error of a break without a reply says that the lock may be broken");
}

/* The last reply to SCAN, with the keys a and b; then the replies to TIME and TYPE, and to TIME. */
#define FOUND_ONLY "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
#define FOUND FOUND_ONLY, TIME, "+string\r\n", "-NOPERM\r\n", TIME

static void test_list(void)
{
    struct seen seen;

    is_int(run(LIST,
               ANSWERS(FOUND, VALUE, "$1\r\nx\r\n", TIME, READING(VALUE), NOBODY_WAITS(VALUE)),
               NULL, &seen),
           RLOCK_OK, "the keys of a server are listed");
    is_str(seen.text, "a web1 ", "only the key that rlock wrote is a lock");
    is_int(run(LIST, ANSWERS(FOUND, VALUE, UNREAD, TIME, "-MOVED 1 h:1\r\n"), NULL, &seen),
           RLOCK_OK, "a lock that has moved to another server is no fault");
    is_int(seen.n_locks, 0, "a lock that has moved to another server isn't listed");
    is_int(run(LIST, ANSWERS("*2\r\n$2\r\n17\r\n*0\r\n", FOUND, "$0\r\n\r\n", "$0\r\n\r\n"), NULL,
               &seen),
           RLOCK_OK, "the keys of a server are listed in two pages");
    is_int(seen.n_requests, 8, "SCAN goes on until its cursor is 0");
    run(LIST, ANSWERS("*2\r\n$1\r\n0\r\n*0\r\n"), NULL, &seen);
    is_str(seen.last, "SCAN 0 MATCH ** COUNT 30 ", "without a pattern SCAN finds all keys");
    run(LIST, ANSWERS("*2\r\n$1\r\n0\r\n*0\r\n"), "b", &seen);
    is_str(seen.last, "SCAN 0 MATCH *b* COUNT 30 ",
           "SCAN finds the keys beside the locks of the pattern, too");
    is_int(run(LIST,
               ANSWERS(FOUND_ONLY, TIME, "+string\r\n", TIME, VALUE, TIME, READING(VALUE),
                       NOBODY_WAITS(VALUE)),
               "b", &seen),
           RLOCK_OK, "the locks of a pattern are listed");
    is_str(seen.text, "b web1 ", "only the lock of the pattern is listed");
    is_int(run(LIST,
               ANSWERS(FOUND, SHARED, SHARED, TIME, TWO_HOLDERS("s1", "s2"), TIME, READING(SHARED),
                       NOBODY_WAITS(SHARED), ":1\r\n", ARRAY(bulk("a"), bulk("1700000015000")),
                       ARRAY(bulk("try=1 host=s3"))),
               NULL, &seen),
           RLOCK_OK, "two shared locks are listed");
    is_str(seen.text, "a s1 b s3 ", "a shared lock with a single holder is listed, too");
    is_str(seen.holders, "s1:10000 s2:20000 s3:10000 ", "each shared lock has its own holders");
    is_int(run(LIST,
               ANSWERS(FOUND, SHARED, "$0\r\n\r\n", TIME, READING(SHARED), NOBODY_WAITS(SHARED),
                       ":0\r\n", EMPTY),
               NULL, &seen),
           RLOCK_OK, "a shared lock without holders is found");
    is_int(seen.n_locks, 0, "a shared lock without holders isn't listed");
    is_int(run(LIST, ANSWERS(FOUND_ONLY, TIME, "+hash\r\n", "+list\r\n"), NULL, &seen), RLOCK_OK,
           "keys of other types are found");
    is_int(seen.n_requests, 4, "a key of another type isn't read: the server would count an error");
    is_int(run(LIST, ANSWERS("*65\r\n", FOUND, "$0\r\n\r\n", "$0\r\n\r\n"), NULL, &seen), RLOCK_OK,
           "after a reply with too many keys, SCAN is asked for fewer keys");
    is_int(run(LIST, ANSWERS("*2\r\n$1\r\n0\r\n*1\r\n$16\r\n{a}:rlock:holders\r\n"), NULL, &seen),
           RLOCK_E_PROTOCOL, "a reply with a wrong length is malformed");
}

/* A lock that another program holds is found by its fence, or by its queue if it has no fence. */
static void test_list_foreign(void)
{
    const char *value = bulk("foreign");
    const char *fence = bulk("{f}:rlock:fence");
    const char *queue = bulk("{f}:rlock:queue");
    const char *both = ARRAY(bulk("0"), ARRAY(fence, queue));
    struct seen seen;

    is_int(run(LIST,
               ANSWERS(both, TIME, FOREIGN(value, bulk("77")), NOBODY_WAITS(value), TIME,
                       FOREIGN(value, bulk("77")), NOBODY_WAITS(value)),
               NULL, &seen),
           RLOCK_OK, "a lock with a fence and a queue is found twice");
    is_str(seen.text, "f  ", "it is listed once");
    is_int(
        run(LIST,
            ANSWERS(ARRAY(bulk("0"), ARRAY(queue)), TIME, FOREIGN(value, NIL), NOBODY_WAITS(value)),
            NULL, &seen),
        RLOCK_OK, "a lock without a fence is found by its queue");
    is_str(seen.text, "f  ", "it is listed");
    is_int(run(LIST, ANSWERS(both), "g", &seen), RLOCK_OK, "the locks of a pattern are listed");
    is_int(seen.n_requests, 1, "no lock of another key is read");
}

static void see_last_end(void *context, const char *key, const struct rlock_last_end *end)
{
    struct seen *seen = context;
    char text[80];

    snprintf(text, sizeof text, "%s:%lld:%d%s ", key, (long long)end->ended_ms, end->status,
             end->is_lost ? ":lost" : "");
    strcat(seen->text, text);
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
    {{"end v1 token=1 at=0 status=0"}, ""},
    {{"end v1 token=1 at=-5 status=0"}, ""},
    {{"end v1 token=1 at=99999999999999999999 status=0"}, ""},
    {{"end v2 token=1 at=5 status=0"}, ""},
    {{"grant v1 token=1 since=5"}, ""},
};

/* Lists a server with these answers, as `--format prometheus` does: with the last ends. */
static enum rlock_status list_ends(const char *const *answers, const char *pattern,
                                   struct seen *seen)
{
    struct server server = {.answers = {[ASKED_OTHER] = answers}};
    struct rlock_visitor visitor = {
        .on_lock = see_lock, .on_last_end = see_last_end, .context = seen};
    const struct rlock_config config = {.timing = {.reply_ms = 10000}};
    enum rlock_status st = RLOCK_E_SYSTEM;
    struct rlock *lock = NULL;

    *seen = (struct seen){.n_locks = 0};
    if (server_open(&server, config, &lock, NULL) == RLOCK_OK)
        st = rlock_list(lock, pattern, (struct rlock_deadline){rlock_clock_ms() + 20000, -1},
                        &visitor, NULL);
    seen->n_requests = atomic_load(&server.n_log);
    rlock_close(lock);
    server_stop(&server);
    return st;
}

#define HISTORY ARRAY(bulk("0"), ARRAY(bulk("{k}:rlock:history")))
#define FREE_LOCK TIME, "$0\r\n\r\n", ":0\r\n", ":-2\r\n", TIME, NIL, NOBODY_WAITS("$0\r\n\r\n")

static void test_last_ends(void)
{
    const char *entries[64];
    const char *entry[4];
    struct seen seen;
    size_t i;
    size_t j;

    for (i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        for (j = 0; j < 4; j++)
            entry[j] = ends[i].entry[j] != NULL ? bulk(ends[i].entry[j]) : NULL;
        is_int(
            list_ends(ANSWERS(HISTORY, FREE_LOCK, TIME, array(entry), TIME, EMPTY), "[a-k]", &seen),
            RLOCK_OK, "a free lock with a history is found");
        is_str(seen.text, ends[i].wanted, ends[i].entry[0]);
    }
    is_int(list_ends(ANSWERS(ARRAY(bulk("0"), ARRAY(bulk("k"), bulk("{k}:rlock:history"))), TIME,
                             FREE_LOCK, TIME, UNREAD),
                     "[a-j]", &seen),
           RLOCK_OK, "a list with a pattern is read");
    is_int(seen.n_requests, 1, "no history of another key is read");
    is_int(list_ends(ANSWERS(HISTORY, FREE_LOCK, TIME, UNREAD), NULL, &seen), RLOCK_OK,
           "a history that can't be read is no fault");
    for (i = 0; i < 50; i++)
        entries[i] = bulk("grant v1 token=1");
    entries[50] = NULL;
    entry[0] = entry[1] = entries[0];
    entry[2] = NULL;
    is_int(list_ends(ANSWERS(HISTORY, FREE_LOCK, TIME, array(entry), TIME, array(entries), TIME,
                             array(entries), TIME, array(entries), TIME, array(entry)),
                     NULL, &seen),
           RLOCK_OK, "a history without an end is read");
    is_int(seen.n_requests, 21, "rlock searches the last 200 entries for an end");
}

static const char *const malformed[] = {
    ":1\r\n",
    "*0\r\n",
    "$-1\r\n",
    "+OK\r\n",
    "*65\r\n",
    "*2\r\n:1\r\n:2\r\n",
    "*2\r\n$33\r\n111111111111111111111111111111111\r\n*0\r\n",
    "*2\r\n$32\r\n11111111111111111111111111111111\r\n*0\r\n",
    "*2\r\n$1\r\n0\r\n*1\r\n:1\r\n",
};

static void test_malformed_replies(void)
{
    struct seen seen;
    size_t i;

    for (i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        const char *const answers[] = {malformed[i], NULL};

        okf(run(INSPECT, answers, NULL, &seen) == RLOCK_E_PROTOCOL,
            "malformed reply %zu to inspect is refused", i);
        okf(run(LIST, answers, NULL, &seen) == RLOCK_E_PROTOCOL,
            "malformed reply %zu to list is refused", i);
        okf(run(BREAK, answers, "n", &seen) == RLOCK_E_PROTOCOL,
            "malformed reply %zu to break is refused", i);
        is_int(seen.n_locks, 0, "nothing of a malformed reply is shown");
    }
}

int main(void)
{
    RUN(test_inspect());
    RUN(test_holders());
    RUN(test_waiters());
    RUN(test_pages());
    RUN(test_break());
    RUN(test_list());
    RUN(test_list_foreign());
    RUN(test_last_ends());
    RUN(test_malformed_replies());
    return done_testing();
}
