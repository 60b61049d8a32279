/* SPDX-License-Identifier: MIT */
/* test_inspect: rlock_inspect() and rlock_break() read a scripted server, also of a Cluster. */
#include "seen.h"

#include <errno.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define NOW ":1700000005000\r\n"
#define OURS "$71\r\n" TOKEN " v1 try=1 host=web1 since=1700000000000\r\n"
#define ONE_HOLDER ":-1\r\n*0\r\n$0\r\n\r\n" /* no list of holders, no foreign helper key */
#define VIEW "*8\r\n" OURS ":29000\r\n$2\r\n77\r\n:2\r\n:0\r\n" ONE_HOLDER
#define VIEW_FREE "*8\r\n$-1\r\n:-2\r\n$0\r\n\r\n:0\r\n:0\r\n" ONE_HOLDER
#define NAME "$1\r\nn\r\n"
#define LAST "$0\r\n\r\n"
#define WAITER(ticket, host) "$16\r\n" ticket "\r\n$11\r\n1 host=" host "\r\n"
#define PAGE_ONE "*6\r\n" NOW VIEW NAME "$1\r\n5\r\n" WAITER("1700000001000000", "aaaa")
#define PAGE_TWO "*6\r\n" NOW VIEW_FREE NAME LAST WAITER("1700000002000000", "bbbb")

/* Makes a call by scripts. */
static enum rlock_status run(enum call what, const char *const *answers)
{
    return see(what, RLOCK_SCRIPTS_AUTO, answers, "n");
}

static void test_inspect(void)
{
    ok(run(INSPECT, ANSWERS(PAGE_ONE, PAGE_TWO)) == RLOCK_OK);
    is_str(seen.text, "k web1 aaaa bbbb ",
           "the lock is shown once, then its waiters in their order");
    is_int(seen.waiter.for_ms, 3000, "a waiter has for how long it has waited");
    is_int(seen.view.seen, RLOCK_SEEN_EXCLUSIVE, "the lock is held exclusively");
    is_int(seen.view.left_ms, 29000, "the view has the time left");
    is_int((long long)seen.view.fence, 77, "the view has the fence");
    is_str(seen.holder.host, "web1", "the view has the holder's host");
    is_int(seen.holder.for_ms, 5000, "the view has for how long the lock has been held");
    ok(run(INSPECT, ANSWERS("*4\r\n" NOW VIEW_FREE NAME LAST)) == RLOCK_OK);
    is_int(seen.view.seen, RLOCK_SEEN_FREE, "a free lock is seen as free");
    is_int((long long)seen.view.n_holders, 0, "a free lock has no holder");
}

#define FIVE_SLOTS                                                                 \
    "*4\r\n" NOW "*8\r\n$46\r\n" TOKEN                                             \
    " v1 mode=slots\r\n:29000\r\n$2\r\n77\r\n:0\r\n:0\r\n:5\r\n"                   \
    "*4\r\n:7000\r\n$25\r\nv1 try=1 host=web1 slot=4\r\n:8000\r\n$25\r\nv1 try=1 " \
    "host=web2 slot=1\r\n$0\r\n\r\n" NAME LAST

static void test_several_holders(void)
{
    ok(run(INSPECT, ANSWERS(FIVE_SLOTS)) == RLOCK_OK, "a lock with several holders is read");
    is_int(seen.view.seen, RLOCK_SEEN_SLOTS, "the lock is held by slots");
    is_int((long long)seen.view.n_holders, 2, "the two holders in the reply are shown");
    is_int((long long)seen.view.n_all, 5, "the view has how many holders there are in all");
    is_str(seen.holder.host, "web2", "the first of several holders has its own host");
    is_int(seen.holder.slot, 1, "the first holder is that with the lowest slot");
    is_int(seen.holder.left_ms, 8000, "a holder has the time left of its own lease");
}

static const struct rlock_config usual = {.timing = {.reply_ms = 10000}};

/*
 * The member whose lock is held answers last, so that both others are sure to be counted. If the
 * lock is free on one of them, and the other one fails, no view has a majority, and it is held.
 */
static void test_majority(bool is_free)
{
    static const char held[] = AFTER(30, "*4\r\n" NOW VIEW NAME LAST);
    static const char free[] = "*4\r\n" NOW VIEW_FREE LAST LAST;
    struct server server[SERVERS_MAX] = {
        {.answers = {[ASKED_OTHER] = ANSWERS(held)}},
        {.answers = {[ASKED_OTHER] = ANSWERS(free)}},
        {.answers = {[ASKED_OTHER] = ANSWERS(is_free ? free : LOADING)}}};
    struct rlock_visitor visitor = {.on_lock = see_lock, .on_waiter = see_waiter};
    struct rlock *lock;

    memset(&seen, 0, sizeof seen);
    ok(servers_open(server, SERVERS_MAX, usual, &lock, NULL) == RLOCK_OK &&
       rlock_inspect(lock, "k", in(20000), &visitor, NULL) == RLOCK_OK);
    ok(seen.n_locks == 1 && seen.view.n_alike == (is_free ? 2 : 1) &&
       seen.view.seen == (is_free ? RLOCK_SEEN_FREE : RLOCK_SEEN_EXCLUSIVE));
    rlock_close(lock);
    for (size_t i = 0; i < SERVERS_MAX; i++)
        server_stop(&server[i]);
}

#define NODE_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NODE_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define CLUSTER_HELLO "*2\r\n$4\r\nmode\r\n$7\r\ncluster\r\n"
#define NO_HELLO "-ERR unknown command 'HELLO', with args beginning with:\r\n"
#define TOO_LONG "*65\r\n" /* a reply with more elements than rlock reads */

/* How a server with the lock `a` introduces itself, and what a list of its locks shows. */
static const struct {
    const char *hello, *slots;
    const char *wanted; /* `b` is a lock of the other primary in the reply to CLUSTER NODES */
    bool is_cluster;
} modes[] = {
    {CLUSTER_HELLO, NULL, "a web1 b web1 ", true},
    {CLUSTER_HELLO, TOO_LONG, "a web1 b web1 ", true},
    {NO_HELLO, NULL, "a web1 b web1 ", true},
    {NO_HELLO, NULL, "a web1 ", false},
    {CLUSTER_HELLO, NULL, "a web1 ", false},
    {NULL, NULL, "a web1 ", true},
    {"-NOPERM no\r\n", NULL, "a web1 b web1 ", true},
};

/* The replies to SCAN, with one key, to TYPE and GETRANGE behind TIME, and of inspect.lua. */
#define LOCK(key)                                                                        \
    ANSWERS("*2\r\n$1\r\n0\r\n*1\r\n$1\r\n" key "\r\n", TIME, "+string\r\n", TIME, OURS, \
            "*4\r\n" NOW VIEW NAME LAST)
#define TIME "*2\r\n$10\r\n1700000005\r\n$1\r\n7\r\n"

static void test_list_cluster(void)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        struct server other = {.answers = {[ASKED_OTHER] = LOCK("b")}};
        struct server server = {.answers = {[ASKED_OTHER] = LOCK("a")},
                                .hello = modes[i].hello,
                                .slots = modes[i].slots};
        memset(&seen, 0, sizeof seen);
        struct rlock_visitor visitor = {.on_lock = see_lock};
        enum rlock_status st = RLOCK_E_SYSTEM;
        struct rlock_error err = {.text = ""};
        struct rlock *lock = NULL;
        char nodes[512];
        char text[600];

        if (server_start(&other) && server_open(&server, usual, &lock, &err) == RLOCK_OK) {
            snprintf(nodes, sizeof nodes,
                     NODE_A " %.40s@1 myself,master - 0 0 1 connected 0-8191\n" NODE_B
                            " %.40s@1 master - 0 0 2 connected 8192-16383\n",
                     server.url + strlen("redis://"), other.url + strlen("redis://"));
            snprintf(text, sizeof text, "$%zu\r\n%s\r\n", strlen(nodes), nodes);
            server.nodes = modes[i].is_cluster ? text : NULL;
            st = rlock_list(lock, NULL, in(20000), &visitor, &err);
        }
        okf(st == RLOCK_OK, "modes[%zu]: the locks are listed: %s", i, err.text);
        is_str(seen.text, modes[i].wanted, "the locks of all primaries of a Cluster are listed");
        rlock_close(lock);
        server_stop(&server);
        server_stop(&other);
    }
}

static void test_break(void)
{
    is_int(run(BREAK, ANSWERS(":1\r\n")), RLOCK_OK, "the reply 1 to a break: done");
    is_int(run(BREAK, ANSWERS(":0\r\n")), RLOCK_BUSY);
    is_int(run(BREAK, ANSWERS(":-1\r\n")), RLOCK_GONE);
    is_int(run(BREAK, ANSWERS("$1\r\n1\r\n")), RLOCK_E_PROTOCOL);
    is_int(run(BREAK, ANSWERS(":2\r\n")), RLOCK_E_PROTOCOL);
    is_int(run(BREAK, ANSWERS(CLOSE)), RLOCK_E_UNREACHABLE);
}

static void test_parties(void)
{
    run(INSPECT, ANSWERS("*4\r\n" NOW "*8\r\n$10\r\nhost=other\r\n:1\r\n" LAST
                         ":0\r\n:0\r\n" ONE_HOLDER NAME LAST));
    is_str(seen.value, "host=other", "a lock of another program is shown with its value");
    run(INSPECT, ANSWERS("*4\r\n" NOW "*8\r\n$51\r\n" TOKEN " v1 try=0 host=next\r\n:1\r\n" LAST
                         ":0\r\n:1\r\n" ONE_HOLDER NAME LAST));
    is_str(seen.other, "next", "a lock that is kept for a waiter names the waiter");
    is_str(seen.value, "", "a value of rlock isn't shown as that of another program");
    run(INSPECT, ANSWERS("*4\r\n" NOW "*8\r\n$47\r\n" TOKEN " v1 mode=shared\r\n:9\r\n" LAST
                         ":0\r\n:0\r\n:0\r\n*0\r\n" LAST NAME LAST));
    ok(seen.view.n_holders == 0 && seen.view.other == NULL);
}

static const char *const malformed[] = {
    "*0\r\n",
    "*4\r\n" NOW ":1\r\n" NAME LAST,
    "*4\r\n" NOW "*7\r\n" OURS ":1\r\n" LAST ":0\r\n" ONE_HOLDER NAME LAST,
    "*4\r\n" NOW "*8\r\n:1\r\n:1\r\n" LAST ":0\r\n:0\r\n" ONE_HOLDER NAME LAST,
    "*4\r\n" NOW "*8\r\n" OURS LAST LAST ":0\r\n:0\r\n" ONE_HOLDER NAME LAST,
    "*4\r\n" NOW "*8\r\n" OURS ":1\r\n:77\r\n:0\r\n:0\r\n" ONE_HOLDER NAME LAST,
    "*4\r\n" NOW "*8\r\n" OURS ":1\r\n" LAST ":0\r\n" LAST ONE_HOLDER NAME LAST,
    "*4\r\n" NOW "*8\r\n" OURS ":1\r\n" LAST ":0\r\n:0\r\n:-1\r\n*0\r\n:0\r\n" NAME LAST,
    "*4\r\n" NOW VIEW ":1\r\n" LAST,
    "*4\r\n" NOW VIEW NAME ":1\r\n",
    "*2\r\n" NOW "$40\r\n1111111111111111111111111111111111111111\r\n",
    "*4\r\n" NOW VIEW NAME "$64\r\n" TOKEN TOKEN "\r\n", /* a ticket that is too long */
};

static void test_malformed_replies(void)
{
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        okf(run(INSPECT, ANSWERS(malformed[i])) == RLOCK_E_PROTOCOL,
            "malformed reply %zu to inspect is refused", i);
        is_int(seen.n_locks, 0, "nothing of a malformed view is shown");
        ok(strstr(seen.fault, strerror(EPERM)) == NULL, "a malformed reply is no system's error");
    }
}

int main(void)
{
    RUN(test_majority(true));
    RUN(test_majority(false));
    RUN_ALL(test_inspect, test_several_holders, test_list_cluster, test_break, test_parties,
            test_malformed_replies);
    return done_testing();
}
