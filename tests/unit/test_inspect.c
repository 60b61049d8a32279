/* SPDX-License-Identifier: MIT */
/* test_survey: what a server says of its locks, page by page, and servers that talk nonsense. */
#include "server.h"
#include "tap.h"

#include <rlock_admin.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define NOW ":1700000005000\r\n"
#define OURS "$71\r\n" TOKEN " v1 try=1 host=web1 since=1700000000000\r\n"
#define ALONE ":-1\r\n*0\r\n$0\r\n\r\n" /* not of several, and nothing is wrong */
#define VIEW "*8\r\n" OURS ":29000\r\n$2\r\n77\r\n:2\r\n:0\r\n" ALONE
#define VIEW_FREE "*8\r\n$-1\r\n:-2\r\n$0\r\n\r\n:0\r\n:0\r\n" ALONE
#define NAME "$1\r\nn\r\n"
#define LAST "$0\r\n\r\n"
#define WAITER(ticket, host) "$16\r\n" ticket "\r\n$11\r\n1 host=" host "\r\n"
#define PAGE_ONE "*6\r\n" NOW VIEW NAME "$1\r\n5\r\n" WAITER("1700000001000000", "aaaa")
#define PAGE_TWO "*6\r\n" NOW VIEW_FREE NAME LAST WAITER("1700000002000000", "bbbb")
#define ROW(key) "*2\r\n$1\r\n" key "\r\n" VIEW

struct seen {
    int n_locks;
    int n_waiters;
    struct rlock_view view; /* the last one; what it points to is over */
    struct rlock_party holder;
    char text[256]; /* keys, and hosts of waiters */
};

static void see_lock(void *context, const struct rlock_view *view)
{
    struct seen *seen = context;

    seen->n_locks++;
    seen->view = *view;
    if (view->n_holders > 0)
        seen->holder = view->holders[0];
    strcat(strcat(seen->text, view->key), " ");
}

static void see_waiter(void *context, const struct rlock_party *waiter)
{
    struct seen *seen = context;

    seen->n_waiters++;
    strcat(strcat(seen->text, waiter->host), " ");
}

enum survey { INSPECT, LIST, BREAK };

/* One inspection of a server that gives these answers, and how it ends. */
static enum rlock_status survey(enum survey what, const char *const *answers, struct seen *seen)
{
    struct server server = {.answers = {[ASKED_OTHER] = answers}};
    struct rlock_visitor visitor = {see_lock, see_waiter, seen};
    struct rlock_deadline deadline = {rlock_clock_ms() + 20000, -1};
    struct rlock_error err = {.text = ""};
    const char *url = server.url;
    struct rlock_config config = {
        .urls = &url, .n_urls = 1, .timing = {.reply_ms = 10000}, .connect_ms = 5000};
    enum rlock_status st = RLOCK_E_SYSTEM;
    struct rlock *lock = NULL;

    *seen = (struct seen){.n_locks = 0};
    if (!server_start(&server))
        return st;
    if (rlock_open(&lock, &config, &err) == RLOCK_OK) {
        if (what == INSPECT)
            st = rlock_inspect(lock, "k", deadline, &visitor, &err);
        else if (what == LIST)
            st = rlock_list(lock, NULL, deadline, &visitor, &err);
        else
            st = rlock_break(lock, "k", "n", deadline, &err);
    }
    okf((st >= RLOCK_E_USAGE) == (err.text[0] != '\0'), "a fault has a text: %s", err.text);
    rlock_close(lock);
    server_stop(&server);
    return st;
}

static void test_inspect(void)
{
    struct seen seen;

    ok(survey(INSPECT, ANSWERS(PAGE_ONE, PAGE_TWO), &seen) == RLOCK_OK, "a lock, in two pages");
    is_str(seen.text, "k aaaa bbbb ", "is shown once, then those who wait, in their order");
    is_int(seen.view.seen, RLOCK_SEEN_EXCLUSIVE, "it is held");
    is_int(seen.view.left_ms, 29000, "for so long");
    is_int((long long)seen.view.fence, 77, "with that fence");
    is_str(seen.holder.host, "web1", "by that host");
    is_int(seen.holder.for_ms, 5000, "since then");
    ok(survey(INSPECT, ANSWERS("*4\r\n" NOW VIEW_FREE NAME LAST), &seen) == RLOCK_OK, "a free one");
    is_int(seen.view.seen, RLOCK_SEEN_FREE, "is free");
    is_int((long long)seen.view.n_holders, 0, "and held by nobody");
}

#define SEVERAL                                                                    \
    "*4\r\n" NOW "*8\r\n$46\r\n" TOKEN                                             \
    " v1 mode=slots\r\n:29000\r\n$2\r\n77\r\n:0\r\n:0\r\n:5\r\n"                   \
    "*4\r\n:7000\r\n$25\r\nv1 try=1 host=web1 slot=4\r\n:8000\r\n$18\r\nv1 try=1 " \
    "host=web2\r\n$0\r\n\r\n" NAME LAST

static void test_several(void)
{
    struct seen seen;

    ok(survey(INSPECT, ANSWERS(SEVERAL), &seen) == RLOCK_OK, "a lock that several have");
    is_int(seen.view.seen, RLOCK_SEEN_SLOTS, "by slots");
    is_int((long long)seen.view.n_holders, 2, "two of whom are shown");
    is_int((long long)seen.view.n_all, 5, "of five");
    is_str(seen.holder.host, "web1", "with their cards");
    is_int(seen.holder.slot, 4, "their slots");
    is_int(seen.holder.left_ms, 7000, "and how long their leases have left");
}

static void test_list(void)
{
    struct seen seen;

    ok(survey(LIST,
              ANSWERS("*1\r\n" NOW, "*4\r\n" NOW "$1\r\n9\r\n" ROW("a") ROW("b"), "*1\r\n" NOW,
                      "*2\r\n" NOW "$1\r\n7\r\n", "*3\r\n" NOW "$1\r\n0\r\n" ROW("c")),
              &seen) == RLOCK_OK,
       "locks, in three steps, two of which were too long at first");
    is_str(seen.text, "a b c ", "are all shown");
    is_str(seen.holder.host, "web1", "with their holders");
}

static void test_break(void)
{
    struct seen seen;

    is_int(survey(BREAK, ANSWERS(":1\r\n"), &seen), RLOCK_OK, "broken");
    is_int(survey(BREAK, ANSWERS(":0\r\n"), &seen), RLOCK_BUSY, "another's by now");
    is_int(survey(BREAK, ANSWERS(":-1\r\n"), &seen), RLOCK_GONE, "gone by now");
    is_int(survey(BREAK, ANSWERS("$1\r\n1\r\n"), &seen), RLOCK_E_PROTOCOL, "nonsense");
    is_int(survey(BREAK, ANSWERS(CLOSE), &seen), RLOCK_E_UNREACHABLE, "no answer");
}

static const struct {
    const char *value, *kept;
    enum rlock_seen wanted;
} values[] = {
    {TOKEN " v1 try=1 ", "0", RLOCK_SEEN_EXCLUSIVE},
    {TOKEN " v1 try=0 ", "1", RLOCK_SEEN_KEPT},
    {TOKEN " v1 mode=shared", "0", RLOCK_SEEN_SHARED},
    {TOKEN " v1 mode=slots n=3", "0", RLOCK_SEEN_SLOTS},
    {TOKEN " v1 mode=rest", "0", RLOCK_SEEN_REST},
    {TOKEN " v1 mode=done", "0", RLOCK_SEEN_DONE},
    {TOKEN " v1 label=mode=done", "0", RLOCK_SEEN_EXCLUSIVE},
    {TOKEN " v2", "0", RLOCK_SEEN_FOREIGN},
    {TOKEN, "0", RLOCK_SEEN_FOREIGN},
    {"", "0", RLOCK_SEEN_FOREIGN},
};

static void test_values(void)
{
    struct seen seen;
    char answer[256];
    size_t i;

    for (i = 0; i < sizeof values / sizeof values[0]; i++) {
        snprintf(answer, sizeof answer,
                 "*4\r\n" NOW "*8\r\n$%zu\r\n%s\r\n:1\r\n$0\r\n\r\n:0\r\n:%s\r\n" ALONE NAME LAST,
                 strlen(values[i].value), values[i].value, values[i].kept);
        is_int(survey(INSPECT, ANSWERS(answer), &seen), RLOCK_OK, "a value");
        is_int(seen.view.seen, values[i].wanted, values[i].value);
    }
}

static const char *const nonsense[] = {
    ":1\r\n",
    "*0\r\n",
    "$-1\r\n",
    "*4\r\n" NOW ":1\r\n" NAME LAST,
    "*4\r\n" NOW "*7\r\n" OURS ":1\r\n" LAST ":0\r\n" ALONE NAME LAST,
    "*4\r\n" NOW "*8\r\n:1\r\n:1\r\n" LAST ":0\r\n:0\r\n" ALONE NAME LAST,
    "*4\r\n" NOW "*8\r\n" OURS LAST LAST ":0\r\n:0\r\n" ALONE NAME LAST,
    "*4\r\n" NOW "*8\r\n" OURS ":1\r\n:77\r\n:0\r\n:0\r\n" ALONE NAME LAST,
    "*4\r\n" NOW "*8\r\n" OURS ":1\r\n" LAST ":0\r\n" LAST ALONE NAME LAST,
    "*4\r\n" NOW "*8\r\n" OURS ":1\r\n" LAST ":0\r\n:0\r\n:-1\r\n*0\r\n:0\r\n" NAME LAST,
    "*4\r\n" NOW VIEW ":1\r\n" LAST,
    "*4\r\n" NOW VIEW NAME ":1\r\n",
    "*2\r\n" NOW ":0\r\n",
    "*2\r\n" NOW "$40\r\n1111111111111111111111111111111111111111\r\n",
    "*3\r\n" NOW "$1\r\n0\r\n:1\r\n",
    "*3\r\n" NOW "$1\r\n0\r\n*2\r\n:1\r\n" VIEW,
    "*3\r\n" NOW "$1\r\n0\r\n*1\r\n$1\r\na\r\n",
    "*65\r\n",
};

static void test_nonsense(void)
{
    struct seen seen;
    size_t i;

    for (i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        okf(survey(INSPECT, ANSWERS(nonsense[i]), &seen) == RLOCK_E_PROTOCOL,
            "no view of a lock: %zu", i);
        is_int(seen.n_locks, 0, "and nothing of it is shown");
        okf(survey(LIST, ANSWERS(nonsense[i]), &seen) == RLOCK_E_PROTOCOL, "nor of locks: %zu", i);
        is_int(seen.n_locks, 0, "and nothing of them is shown");
    }
    ok(survey(LIST, ANSWERS("*1\r\n" NOW), &seen) == RLOCK_E_PROTOCOL,
       "a server that has always more than fits is not asked for ever");
}

int main(void)
{
    test_inspect();
    test_several();
    test_list();
    test_break();
    test_values();
    test_nonsense();
    return done_testing();
}
