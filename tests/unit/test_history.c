/* SPDX-License-Identifier: MIT */
/* test_history: rlock_history() joins the entries of a scripted server into holds. */
#include "server.h"
#include "tap.h"

#include <rlock_admin.h>

#define NOW_MS 1700000100000
#define ID_A "aaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbb"
#define HOLDS_MAX 8
#define REPLY_BYTES 4096
#define DAY_MS INT64_C(86400000)

/* The state of the lock that a page tells. */
struct state {
    const char *next;    /* where the next page begins; "": there is none */
    const char *wrong;   /* what is wrong with the history's key; "": nothing */
    const char *fence;   /* the last fence */
    int64_t fence_left;  /* ms until the server forgets this fence */
    const char *holders; /* 12 digits of each token, with commas between; "*": the newest grant */
};

static const struct state free_lock = {"", "", "0", -2, ""};

static size_t add_text(char *reply, size_t used, const char *text)
{
    return used +
           (size_t)snprintf(reply + used, REPLY_BYTES - used, "$%zu\r\n%s\r\n", strlen(text), text);
}

/* Makes a reply of history.lua. `entries` ends in NULL. */
static void make_page(char reply[REPLY_BYTES], const struct state *state,
                      const char *const *entries)
{
    size_t n = 0;
    size_t used;

    while (entries[n] != NULL)
        n++;
    used = (size_t)snprintf(reply, REPLY_BYTES, "*%zu\r\n:%lld\r\n", 6 + n, (long long)NOW_MS);
    used = add_text(reply, used, state->next);
    used = add_text(reply, used, state->wrong);
    used = add_text(reply, used, state->fence);
    used += (size_t)snprintf(reply + used, REPLY_BYTES - used, ":%lld\r\n",
                             (long long)state->fence_left);
    used = add_text(reply, used, state->holders);
    for (; *entries != NULL; entries++)
        used = add_text(reply, used, *entries);
}

static struct {
    size_t n;
    struct rlock_hold hold[HOLDS_MAX]; /* its pointers are not valid after the callback */
    char hosts[256];                   /* the hosts of the holders, in the order of the holds */
} seen;

static struct rlock_error err; /* of the last call */

static void see_hold(void *context, const struct rlock_hold *hold)
{
    (void)context;
    if (seen.n < HOLDS_MAX)
        seen.hold[seen.n++] = *hold;
    strcat(strcat(seen.hosts, hold->holder.host), " ");
}

static const struct rlock_config usual = {.timing = {.reply_ms = 10000}};

/* Reads the history of a lock from servers that give these answers, one list for each server. */
static enum rlock_status read_history(const char *const *const answers[], size_t n_servers,
                                      int64_t since_ms)
{
    struct server server[SERVERS_MAX];
    struct rlock_history_visitor visitor = {.on_hold = see_hold};
    struct rlock *lock;
    enum rlock_status st;

    memset(&seen, 0, sizeof seen);
    err = (struct rlock_error){.status = RLOCK_OK};
    for (size_t i = 0; i < n_servers; i++)
        server[i] = (struct server){.answers = {[ASKED_OTHER] = answers[i]}};
    st = servers_open(server, n_servers, usual, &lock, &err);
    if (st == RLOCK_OK)
        st = rlock_history(lock, "k", since_ms, in(20000), &visitor, &err);
    rlock_close(lock);
    for (size_t i = 0; i < n_servers; i++)
        server_stop(&server[i]);
    return st;
}

/* Reads the history that a single server tells in one page. */
static void read_page(const struct state *state, const char *const *entries)
{
    char reply[REPLY_BYTES];

    make_page(reply, state, entries);
    is_int(read_history((const char *const *const[]){ANSWERS(reply)}, 1, 0), RLOCK_OK);
    is_str(err.text, "", "there is no error");
}

#define ENTRIES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define GRANT_A \
    "1700000000000 grant v1 token=" ID_A " fence=5 waited=70 ttl=30000 host=a since=1700000000000"
#define GRANT_A_AT_ONCE \
    "1700000000000 grant v1 token=" ID_A " fence=5 waited=0 ttl=30000 host=a since=1700000000000"
#define GRANT_B \
    "1700000050000 grant v1 token=" ID_B " fence=6 waited=0 ttl=30000 host=b since=1700000050000"
#define END_A \
    "1700000020000 end v1 token=" ID_A " fence=5 status=3 reason=exited held=20000 renewals=2"

static void test_ends(void)
{
    const struct rlock_hold *hold = seen.hold;

    read_page(&free_lock, ENTRIES(NULL));
    is_int((int64_t)seen.n, 0, "a lock without a history has no holds");
    read_page(&free_lock, ENTRIES(GRANT_A, GRANT_A, END_A, END_A));
    is_int((int64_t)seen.n, 1, "a grant and its end are one hold, also if each was sent twice");
    ok(hold->end == RLOCK_HOLD_ENDED && hold->status == 3 && strcmp(hold->reason, "exited") == 0 &&
       hold->waited_ms == 70 && hold->held_ms == 20000 && hold->renewals == 2 && hold->fence == 5 &&
       hold->ended_ms == 1700000020000);
    is_str(seen.hosts, "a ", "the holder is read");
    read_page(&free_lock,
              ENTRIES(GRANT_A, "1700000020000 end v1 token=" ID_A
                               " fence=5 missing=1 status=0 reason=exited held=20000 renewals=2"));
    is_int(hold->end, RLOCK_HOLD_LOST);
    read_page(&free_lock, ENTRIES(GRANT_A, "1700000020000 end v1 token=" ID_A
                                           " fence=0 by=1 host=web2 user=ann pid=7 label=x%20y"));
    is_int(hold->end, RLOCK_HOLD_RELEASED);
    is_str(hold->by.text, "ann@web2, pid 7: x y");
    is_int(hold->held_ms, 20000, "the length is computed from the grant and the end");
    is_int(hold->renewals, -1, "the number of renewals is not known");
    read_page(&free_lock,
              ENTRIES(GRANT_A, "1700000020000 break v1 token=" ID_A "," ID_B " host=h user=root"));
    ok(seen.n == 2 && hold[0].end == RLOCK_HOLD_BROKEN && hold[1].end == RLOCK_HOLD_BROKEN,
       "a break of two tokens tells of two holds");
    is_int(hold[1].holder.since_ms, 0, "without a grant the start of the hold is unknown");
    read_page(&free_lock, ENTRIES(END_A));
    ok(seen.n == 1 && hold->holder.since_ms == 0 && hold->status == 3,
       "an end entry whose grant entry was removed is shown as a hold");
    read_page(&free_lock, ENTRIES(GRANT_A, END_A,
                                  "1700000030000 grant v1 token=" ID_A
                                  " fence=9 ttl=30000 host=c since=1700000030000"));
    is_int((int64_t)seen.n, 2, "a token that gets the lock again after its end has two holds");
    read_page(&free_lock, ENTRIES("1700000000000 future v2 token=" ID_A, GRANT_A));
    is_int((int64_t)seen.n, 1, "an entry of a later version is left out");
}

/* A fence lives for 7 days after its last grant or renewal. */
static void test_without_end(void)
{
    struct state state = {"", "", "6", 7 * DAY_MS - 10000, ID_B};

    read_page(&state, ENTRIES(GRANT_A, GRANT_B));
    ok(seen.hold[1].end == RLOCK_HOLD_NOW && seen.hold[1].held_ms == 50000,
       "the token in the key holds the lock now, since its grant");
    ok(seen.hold[0].end == RLOCK_HOLD_VANISHED && seen.hold[0].alive_ms == 1700000000000 &&
           seen.hold[0].ended_ms == 1700000050000,
       "the hold before has vanished");
    state.holders = "*";
    read_page(&state, ENTRIES(GRANT_A, GRANT_B));
    ok(seen.hold[1].end == RLOCK_HOLD_NOW && seen.hold[0].end == RLOCK_HOLD_VANISHED,
       "with the holders *, the newest grant holds the lock");
    state.holders = "";
    state.fence_left = 7 * DAY_MS - 40000;
    read_page(&state, ENTRIES(GRANT_A, GRANT_B));
    ok(seen.hold[1].end == RLOCK_HOLD_VANISHED && seen.hold[1].alive_ms == 1700000060000 &&
           seen.hold[1].ended_ms == 1700000090000,
       "the last hold has vanished");
    state.fence = "0";
    state.fence_left = -2;
    read_page(&state, ENTRIES(GRANT_B));
    ok(seen.hold[0].alive_ms == 1700000050000 && seen.hold[0].ended_ms == NOW_MS);
    read_page(&free_lock, ENTRIES("1700000000000 grant v1 token=" ID_A
                                  " fence=5 shared=1 ttl=30000 host=a since=1700000000000",
                                  "1700000050000 grant v1 token=" ID_B
                                  " fence=6 shared=1 ttl=30000 host=b since=1700000050000"));
    is_int(seen.hold[0].ended_ms, NOW_MS, "the next grant of a shared lock doesn't end a hold");
}

static void test_since(void)
{
    char reply[REPLY_BYTES];
    struct state state = {"", "", "6", 7 * DAY_MS, ID_B};

    make_page(reply, &state, ENTRIES(GRANT_A, END_A, GRANT_B));
    is_int(read_history((const char *const *const[]){ANSWERS(reply)}, 1, 80000), RLOCK_OK,
           "the holds of the last 80 s are read");
    is_str(seen.hosts, "a b ", "a hold that ended 80 s ago is shown");
    is_int(read_history((const char *const *const[]){ANSWERS(reply)}, 1, 79999), RLOCK_OK,
           "the holds of the last 79.999 s are read");
    is_str(seen.hosts, "b ", "a hold that ended earlier isn't shown, one that lasts is");
}

static void test_pages(void)
{
    struct state first = {"1700000020001-0", "", "0", -2, ""};
    char reply[2][REPLY_BYTES];

    make_page(reply[0], &first, ENTRIES(GRANT_A));
    make_page(reply[1], &free_lock, ENTRIES(END_A, GRANT_B));
    is_int(read_history((const char *const *const[]){ANSWERS(reply[0], reply[1])}, 1, 0), RLOCK_OK,
           "a history of two pages is read");
    is_str(seen.hosts, "a b ", "the holds of both pages are shown");
    is_int(seen.hold[0].end, RLOCK_HOLD_ENDED, "an end on the next page belongs to its grant");
}

static void test_quorum(void)
{
    struct state state = {"", "", "6", 7 * DAY_MS, ""};
    char reply[3][REPLY_BYTES];
    const char *const *answers[3] = {ANSWERS(reply[0]), ANSWERS(reply[1]), ANSWERS(reply[2])};

    make_page(reply[0], &free_lock, ENTRIES(GRANT_A, END_A));
    make_page(reply[1], &free_lock, ENTRIES(GRANT_A));
    make_page(reply[2], &state, ENTRIES(GRANT_B));
    is_int(read_history(answers, 3, 0), RLOCK_OK, "three histories are read");
    is_str(seen.hosts, "a b ", "the holds of all members are joined, the oldest first");
    ok(seen.hold[0].n_alike == 2 && seen.hold[0].n_members == 3 && seen.hold[1].n_alike == 1);
    is_int(seen.hold[0].end, RLOCK_HOLD_ENDED, "the member that knows the end is believed");
    make_page(reply[1], &free_lock, ENTRIES(GRANT_A_AT_ONCE, END_A));
    make_page(reply[0], &free_lock, ENTRIES(GRANT_A));
    is_int(read_history(answers, 3, 0), RLOCK_OK, "the histories are read again");
    is_int(seen.hold[0].waited_ms, 0, "the member that knows the end is believed in all it tells");
    make_page(reply[0], &free_lock, ENTRIES(END_A));
    make_page(reply[1], &free_lock, ENTRIES(END_A));
    is_int(read_history(answers, 3, 0), RLOCK_OK, "an end without its grant is read");
    ok(seen.hold[0].end == RLOCK_HOLD_ENDED && seen.hold[0].holder.renewed_ms == -1 &&
       seen.hold[0].holder.slot == -1 && seen.hold[0].waited_ms == -1);
    answers[0] = ANSWERS(CLOSE);
    is_int(read_history(answers, 3, 0), RLOCK_OK);
    answers[1] = ANSWERS(CLOSE);
    ok(read_history(answers, 3, 0) >= RLOCK_E_USAGE);
    is_int((int64_t)seen.n, 0, "with too few members no hold is shown");
}

/* A START for the next page that is longer than an ID of a stream can be. */
#define LONG_START "$48\r\n111111111111111111111111111111111111111111111111\r\n"

static const char *const malformed[] = {
    ":1\r\n",
    "*5\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n0\r\n:-2\r\n",
    "*6\r\n$1\r\n1\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n0\r\n:-2\r\n$0\r\n\r\n",
    "*6\r\n:1\r\n:0\r\n$0\r\n\r\n$1\r\n0\r\n:-2\r\n$0\r\n\r\n",
    "*6\r\n:1\r\n$0\r\n\r\n:0\r\n$1\r\n0\r\n:-2\r\n$0\r\n\r\n",
    "*6\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n:0\r\n:-2\r\n$0\r\n\r\n",
    "*6\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n0\r\n$1\r\n0\r\n$0\r\n\r\n",
    "*6\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n0\r\n:-2\r\n:0\r\n",
    "*7\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n0\r\n:-2\r\n$0\r\n\r\n:1\r\n",
    "*7\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n0\r\n:-2\r\n$0\r\n\r\n$5\r\ngrant\r\n",
    "*7\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n0\r\n:-2\r\n$0\r\n\r\n$7\r\n1 grant\r\n",
    "*6\r\n:1\r\n" LONG_START "$0\r\n\r\n$1\r\n0\r\n:-2\r\n$0\r\n\r\n",
};

static void test_faults(void)
{
    const struct state wrong = {"", "{k}:rlock:history is no list", "0", -2, ""};
    char reply[REPLY_BYTES];

    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        okf(read_history((const char *const *const[]){ANSWERS(malformed[i])}, 1, 0) ==
                    RLOCK_E_PROTOCOL &&
                err.text[0] != '\0',
            "malformed[%zu] is refused: %s", i, err.text);
    make_page(reply, &wrong, ENTRIES(NULL));
    is_int(read_history((const char *const *const[]){ANSWERS(reply)}, 1, 0), RLOCK_E_REFUSED,
           "a key of another type is refused");
    ok(strstr(err.text, "{k}:rlock:history is no list") != NULL, "the error names the key");
}

/* ---- rlock_history_keys() ---- */

#define TIME "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"

static void see_key(void *context, const char *key)
{
    (void)context;
    seen.n++;
    strcat(strcat(seen.hosts, key), " ");
}

static char list_asked[700]; /* the words of the first request of list_keys() */

/* Lists the locks of a server that gives these answers. */
static enum rlock_status list_keys(const char *const *answers, const char *pattern)
{
    struct server server = {.answers = {[ASKED_OTHER] = answers}};
    struct rlock_history_visitor visitor = {.on_key = see_key};
    enum rlock_status st = RLOCK_E_SYSTEM;
    struct rlock *lock = NULL;

    memset(&seen, 0, sizeof seen);
    list_asked[0] = '\0';
    if (server_open(&server, usual, &lock, NULL) == RLOCK_OK)
        st = rlock_history_keys(lock, pattern, in(20000), &visitor, NULL);
    rlock_close(lock);
    server_stop(&server);
    if (atomic_load(&server.n_log) > 0)
        snprintf(list_asked, sizeof list_asked, "%.*s", (int)sizeof list_asked - 1,
                 server.log[0].text);
    return st;
}

/* The replies to SCAN, with the cursor of the next one, and to TIME and LRANGE for each key. */
static void test_keys(void)
{
    static const char page_one[] =
        "*2\r\n$2\r\n17\r\n*4\r\n$19\r\n{job}:rlock:history\r\n$20\r\n{other}:rlock:histor\r\n"
        "$20\r\n{text}:rlock:history\r\n$13\r\nnot a history\r\n";
    static const char page_two[] = "*2\r\n$1\r\n0\r\n*1\r\n$19\r\n{web}:rlock:history\r\n";
    static const char *const bad[] = {
        ":1\r\n",
        "*1\r\n$1\r\n0\r\n",
        "*2\r\n:0\r\n*0\r\n",
        "*2\r\n$0\r\n\r\n*0\r\n",
        "*2\r\n$1\r\n0\r\n*1\r\n:1\r\n",
        "*2\r\n$32\r\n11111111111111111111111111111111\r\n*0\r\n",
    };
    char many[1000] = "*2\r\n$1\r\n0\r\n*32\r\n";
    const char *const *pages = ANSWERS(page_one, TIME, "*0\r\n", "*0\r\n", "-WRONGTYPE\r\n",
                                       "*0\r\n", page_two, TIME, "*0\r\n");

    is_int(list_keys(pages, NULL), RLOCK_OK, "two pages are read");
    is_str(seen.hosts, "job web ", "the locks of all histories are shown, and no other keys");
    is_str(list_asked, "SCAN 0 MATCH *:rlock:*history COUNT 30 ", "one SCAN examines 30 keys");
    is_int(list_keys(pages, "w*"), RLOCK_OK, "a list with a pattern is read");
    is_str(seen.hosts, "web ", "only locks whose keys match are shown");
    for (size_t i = 0; i < 32; i++)
        strcat(many, "$17\r\n{k}:rlock:history\r\n");
    is_int(list_keys(ANSWERS(many, "*0\r\n"), NULL), RLOCK_OK);
    ok(seen.n == 32, "the histories of a long page are read by several requests");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        okf(list_keys((const char *const[]){bad[i], NULL}, NULL) == RLOCK_E_PROTOCOL,
            "malformed reply %zu is refused", i);
}

TESTS(test_ends, test_without_end, test_since, test_pages, test_quorum, test_faults, test_keys)
