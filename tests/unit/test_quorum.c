/* SPDX-License-Identifier: MIT */
/*
 * test_quorum: how the replies of one member or of three decide an acquire, a renewal or a release,
 * also when members reply late, with an error, or not at all.
 */
#include "base/clock.h"
#include "ops/acquire_loop.h"
#include "quorum/quorum.h"
#include "server.h"
#include "tap.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>

static const char *const the_key = "k";

#define CONNECT_MS 1000
#define REPLY_MS 300
#define TTL_MS 1000
#define RENEW_MS 300 /* also the longest time that an acquire waits for its reply */

struct single {
    struct server server;
    struct quorum quorum;
    struct owner owner;
};

static bool open_single(struct single *single)
{
    const char *url = single->server.url;
    struct rlock_config config = {
        .urls = &url,
        .n_urls = 1,
        .keys = &the_key,
        .n_keys = 1,
        .timing = {.ttl_ms = TTL_MS, .renew_ms = RENEW_MS, .reply_ms = REPLY_MS},
        .holder = {.host = "h"},
        .connect_ms = CONNECT_MS,
    };

    return server_start(&single->server) && owner_open(&single->owner, &config, NULL) == RLOCK_OK &&
           quorum_open(&single->quorum, &config, NULL) == RLOCK_OK;
}

static void close_single(struct single *single)
{
    quorum_close(&single->quorum);
    owner_close(&single->owner);
    server_stop(&single->server);
}

int64_t __real_rlock_clock_ms(void);
int64_t __wrap_rlock_clock_ms(void);

static int64_t slow_from_ms; /* from then on rlock's clock advances by a tenth; 0: it isn't slow */

/*
 * The fake servers answer at once, but a busy machine may run them late. A test that isn't about a
 * silent server slows rlock's clock, so that no answer comes after its deadline.
 */
static void slow_clock(bool is_slow)
{
    slow_from_ms = is_slow ? __real_rlock_clock_ms() : 0;
}

/* The linker replaces rlock_clock_ms() by this function. */
int64_t __wrap_rlock_clock_ms(void)
{
    int64_t now = __real_rlock_clock_ms();

    return slow_from_ms == 0 ? now : slow_from_ms + (now - slow_from_ms) / 10;
}

static struct rlock_deadline in(int64_t ms)
{
    return (struct rlock_deadline){rlock_clock_ms() + ms, -1};
}

enum operation { ACQUIRE, RENEW, RELEASE };

/* One server's answer to an operation, and the wanted result. */
static const struct {
    enum operation operation;
    const char *answer;
    enum rlock_status st;
    const char *text; /* a part of the error text */
    bool is_undone;   /* the member sends an undo */
    bool in_doubt;    /* the wanted quorum->in_doubt */
} rows[] = {
    {ACQUIRE, GRANT, RLOCK_OK, "", false, false},
    {ACQUIRE, HELD, RLOCK_BUSY, "", false, false},
    {ACQUIRE, LATE, RLOCK_PENDING, "", false, false},
    {ACQUIRE, SUPERSEDED, RLOCK_SUPERSEDED, "", false, false},
    {ACQUIRE, LOST_TO, RLOCK_E_PROTOCOL, "not what rlock's script returns", false, true},
    {ACQUIRE, LOADING, RLOCK_E_SERVER, "the server says: LOADING", false, false},
    {ACQUIRE, "-WRONGTYPE\r\n", RLOCK_E_REFUSED, "the server says: WRONGTYPE", false, false},
    {ACQUIRE, CLOSE, RLOCK_E_UNREACHABLE, "", false, true},
    {ACQUIRE, SILENT, RLOCK_E_UNREACHABLE, "no answer in time", true, true},
    {ACQUIRE, "*3\r\n:1\r\n", RLOCK_E_UNREACHABLE, "no answer in time", true, true},
    {ACQUIRE, ":1\r\n", RLOCK_E_PROTOCOL, "not what rlock's script returns", false, true},
    {ACQUIRE, "nonsense\r\n", RLOCK_E_PROTOCOL, "the server says: nonsense", false, false},
    {RENEW, RENEWED, RLOCK_OK, "", false, false},
    {RENEW, RESTORED, RLOCK_OK, "", false, false},
    {RENEW, GONE, RLOCK_GONE, "the server no longer has the lock", false, false},
    {RENEW, LOST_TO, RLOCK_LOST,
     "the lock is held by another program (\"foreign\", the key's value, not written by rlock)",
     false, false},
    {RENEW, "*4\r\n:0\r\n:1\r\n:400\r\n$42\r\n0123456789abcdef0123456789abcdef v1 try=0 \r\n",
     RLOCK_GONE, "the server lost the lock, and the next waiter has its turn", false, false},
    {RENEW, "*2\r\n:-5\r\n:1\r\n", RLOCK_RELEASED, "the lock was released", false, false},
    {RENEW, "*3\r\n:-6\r\n:1\r\n$34\r\nbroken user=u host=h pid=7 label=x\r\n", RLOCK_LOST,
     "the lock was broken by u@h, pid 7: x", false, false},
    {RENEW, "*2\r\n:-6\r\n:1\r\n", RLOCK_E_PROTOCOL, "not what rlock's script returns", false,
     false},
    {RENEW, LATE, RLOCK_PENDING, "", false, false},
    {RENEW, LOADING, RLOCK_E_SERVER, "the server says: LOADING", false, false},
    {RENEW, CLOSE, RLOCK_E_UNREACHABLE, "", false, false},
    {RENEW, SILENT, RLOCK_E_UNREACHABLE, "no answer in time", false, false},
    {RENEW, "$5\r\nhello\r\n", RLOCK_E_PROTOCOL, "not what rlock's script returns", false, false},
    {RELEASE, RELEASED, RLOCK_OK, "", false, false},
    {RELEASE, NOT_OURS, RLOCK_LOST, "", false, false},
    {RELEASE, ":-1\r\n", RLOCK_GONE, "", false, false},
    {RELEASE, "-READONLY\r\n", RLOCK_E_SERVER, "the server says: READONLY", false, false},
    {RELEASE, SILENT, RLOCK_E_UNREACHABLE, "no answer in time", false, false},
    {RELEASE, ":7\r\n", RLOCK_E_PROTOCOL, "not what rlock's script returns", false, false},
};

static const char *const operation_names[] = {
    [ACQUIRE] = "an acquire", [RENEW] = "a renewal", [RELEASE] = "a release"};

static enum rlock_status operate(struct single *single, enum operation operation,
                                 struct rlock_deadline deadline, struct rlock_error *err)
{
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant grant = {.fence = 0};
    int64_t before = rlock_clock_ms();
    enum rlock_status st;
    bool restored = false;
    unsigned released = 0;
    int64_t block = 0;
    int64_t end = 0;

    switch (operation) {
    case ACQUIRE:
        st = quorum_acquire(&single->quorum, &single->owner, deadline, &grant, &obstacle, &block,
                            err);
        if (st == RLOCK_BUSY)
            ok(obstacle.left_ms == 60000 && strstr(obstacle.holder.text, "foreign") != NULL);
        if (st == RLOCK_BUSY)
            ok(block == 50 && obstacle.place == 2 && single->owner.ticket == 1700000000000000);
        if (st != RLOCK_OK)
            return st;
        is_str(grant.token, single->owner.token, "a grant has the owner's token");
        ok(grant.fence == 1700000000000000, "a grant has the fence in the server's reply");
        end = grant.expires_ms;
        break;
    case RENEW:
        st = quorum_renew(&single->quorum, &single->owner, deadline, &end, &restored, err);
        break;
    case RELEASE:
    default:
        return quorum_release(&single->quorum, &single->owner, deadline, &released, err);
    }
    if (st == RLOCK_OK)
        ok(end >= before + TTL_MS - 12 &&
           end <= server_read_ms(&single->server,
                                 operation == ACQUIRE ? ASKED_ACQUIRE : ASKED_RENEW, 0) +
                      TTL_MS - 12);
    return st;
}

static void test_answers(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct single single = {.server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(rows[i].answer),
                                                       [ASKED_RENEW] = ANSWERS(rows[i].answer),
                                                       [ASKED_RELEASE] = ANSWERS(rows[i].answer),
                                                       [ASKED_UNDO] = ANSWERS(SILENT)}}};
        struct rlock_error err = {.text = ""};

        if (!ok(open_single(&single), "a quorum of one server is opened"))
            continue;
        slow_clock(rows[i].st != RLOCK_E_UNREACHABLE);
        okf(operate(&single, rows[i].operation, in(60000), &err) == rows[i].st,
            "%s, answered %s, returns status %d", operation_names[rows[i].operation],
            rows[i].answer, (int)rows[i].st);
        okf(strstr(err.text, rows[i].text) != NULL, "the error text contains \"%s\": %s",
            rows[i].text, err.text);
        ok(rows[i].st == RLOCK_E_UNREACHABLE || err.sys == 0);
        okf(single.quorum.in_doubt == rows[i].in_doubt, "in_doubt is %s: the server %s",
            rows[i].in_doubt ? "set" : "not set",
            rows[i].in_doubt ? "may have granted the lock" : "has told what it did");
        close_single(&single);
        slow_clock(false);
        okf(server_count(&single.server, ASKED_UNDO) == (rows[i].is_undone ? 2 : 0), "%s",
            rows[i].is_undone ? "an acquire without an answer is undone, by EVALSHA and by EVAL"
                              : "no undo is sent");
    }
}

/* An answer to the acquire of a single server, and a part of the warning; NULL: no warning. */
static const struct {
    const char *answer;
    enum rlock_status st;
    const char *warning;
} conflicts[] = {
    {HELD_BY("84", HOLDER " " OF_SEVERAL), RLOCK_BUSY,
     "uses several servers (list 1234abcd) for this lock, and this rlock uses one server: "},
    {DONE_BY("84", HOLDER " " OF_SEVERAL), RLOCK_DONE,
     "uses several servers (list 1234abcd) for this lock, and this rlock uses one server: "},
    {HELD_BY("67", HOLDER), RLOCK_BUSY, NULL},
    {HELD_BY("16", OF_SEVERAL), RLOCK_BUSY, NULL},
    {GRANT, RLOCK_OK, NULL},
};

static void note_warning(void *context, const char *text)
{
    snprintf(context, 700, "%s", text);
}

static void test_other_quorum(void)
{
    for (size_t i = 0; i < sizeof conflicts / sizeof conflicts[0]; i++) {
        struct single single = {
            .server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(conflicts[i].answer),
                                   [ASKED_UNDO] = ANSWERS(RELEASED)}}};
        struct rlock_obstacle obstacle = {.left_ms = 0};
        struct rlock_grant grant = {.fence = 0};
        struct rlock_error err = {.text = ""};
        char warning[700] = "";
        int64_t block_ms = 0;

        if (!ok(open_single(&single), "a quorum of one server is opened"))
            continue;
        single.quorum.members.hooks.on_warning = note_warning;
        single.quorum.members.hooks.context = warning;
        okf(quorum_acquire(&single.quorum, &single.owner, in(60000), &grant, &obstacle, &block_ms,
                           &err) == conflicts[i].st,
            "conflicts[%zu]: the acquire returns status %d: %s", i, (int)conflicts[i].st, err.text);
        if (conflicts[i].warning != NULL)
            okf(strstr(warning, conflicts[i].warning) != NULL, "conflicts[%zu]: a warning says: %s",
                i, warning);
        else
            is_str(warning, "", "a holder with the same servers, and another program: no warning");
        if (conflicts[i].st == RLOCK_DONE)
            is_str(obstacle.holder.host, "web1", "RLOCK_DONE names who has done the work");
        if (conflicts[i].st == RLOCK_OK)
            quorum_requeue(&single.quorum, &single.owner);
        close_single(&single);
        is_int(server_count(&single.server, ASKED_UNDO), conflicts[i].st == RLOCK_OK);
    }
}

static void test_undo(void)
{
    struct single single = {
        .server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(SILENT), [ASKED_UNDO] = ANSWERS(SILENT)}}};
    char prefix[80];
    int n;

    need(open_single(&single), "a quorum of one server that never answers is opened");
    for (int i = 0; i < 3; i++)
        is_int(operate(&single, ACQUIRE, in(200), NULL), RLOCK_E_UNREACHABLE);
    snprintf(prefix, sizeof prefix, "%s v1 try=2 ", single.owner.token);
    close_single(&single);
    n = atomic_load(&single.server.n_log);
    is_int(n, 9, "the server is sent three acquires, and three undos by EVALSHA and by EVAL");
    if (n == 9) {
        is_str(single.server.log[3].second, "2", "the second acquire has the attempt number 2");
        for (int i = 4; i < 6; i++) {
            is_int(single.server.log[i].what, ASKED_UNDO, "two undos follow the second acquire");
            is_str(single.server.log[i].first, prefix, "they remove only attempt 2");
        }
    }
}

static void test_stop(void)
{
    struct single single = {.server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(SILENT),
                                                   [ASKED_RENEW] = ANSWERS(SILENT),
                                                   [ASKED_RELEASE] = ANSWERS(SILENT),
                                                   [ASKED_UNDO] = ANSWERS(SILENT)}}};
    int64_t before = rlock_clock_ms();
    enum operation operation;
    int stop[2];

    need(open_single(&single) && pipe(stop) == 0 && write(stop[1], "", 1) == 1);
    single.quorum.timing.renew_ms = single.quorum.timing.reply_ms = 60000;
    for (operation = ACQUIRE; operation <= RELEASE; operation++)
        okf(operate(&single, operation, (struct rlock_deadline){RLOCK_NEVER, stop[0]}, NULL) ==
                RLOCK_STOPPED,
            "%s returns RLOCK_STOPPED", operation_names[operation]);
    ok(rlock_clock_ms() - before < 30000, "the operations stop before their reply_ms of 60 s ends");
    close(stop[0]);
    close(stop[1]);
    close_single(&single);
}

/* ---- tests with several members ---- */

#define FENCE "$16\r\n1700000000000000\r\n"
#define GRANT_OF(FENCE) "*3\r\n:1\r\n:1700000000000\r\n$16\r\n" FENCE "\r\n"
#define GRANT_PARENT \
    "*5\r\n:1\r\n:1700000000000\r\n" FENCE ":0\r\n$23\r\n1:1700000000000000:6000\r\n"
#define CONFIRMED "*3\r\n:1\r\n:1700000000000\r\n" FENCE
#define GREATER_FENCE "*3\r\n:-2\r\n:1700000000000\r\n$16\r\n1700000000000009\r\n"
#define MEMBERS 3
#define RESTARTED "$35\r\nrun_id:young\r\nuptime_in_seconds:1\r\n\r\n"
#define NO_INFO "-NOPERM this user has no permissions to run the 'info' command\r\n"
#define SAME_RUN_ID "$39\r\nrun_id:twin\r\nuptime_in_seconds:100000\r\n\r\n"

/*
 * A waiter is stopped in the moment in which it reads that the lock is held: the stop descriptor is
 * an epoll over its own socket. The server may have put it in the queue.
 */
static void test_stop_beside_reply(void)
{
    struct single single = {.server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(HELD)}}};
    struct rlock_deadline deadline = {RLOCK_NEVER, epoll_create1(0)};

    need(open_single(&single), "a quorum of one server is opened");
    single.quorum.timing.renew_ms = single.quorum.timing.reply_ms = 60000;
    for (int i = 0; i < 2; i++) /* with the second one it asks for CLUSTER NODES */
        is_int(operate(&single, ACQUIRE, in(60000), NULL), RLOCK_BUSY);
    ok(epoll_ctl(deadline.stop_fd, EPOLL_CTL_ADD, server_client(&single.server),
                 &(struct epoll_event){.events = EPOLLIN}) == 0);
    is_int(operate(&single, ACQUIRE, deadline, NULL), RLOCK_STOPPED);
    ok(single.quorum.in_doubt == 1, "the place in the queue is in doubt, so the caller leaves it");
    close(deadline.stop_fd);
    close_single(&single);
}

struct several {
    struct server server[MEMBERS];
    const char *only[MEMBERS][2]; /* see open_answering() */
    struct quorum quorum;
    struct owner owner;
};

static bool open_several(struct several *several)
{
    const char *urls[MEMBERS];
    struct rlock_config config = {
        .urls = urls,
        .n_urls = MEMBERS,
        .keys = &the_key,
        .n_keys = 1,
        .timing = {.ttl_ms = 6000, .renew_ms = 2000, .reply_ms = 2000},
        .connect_ms = CONNECT_MS,
    };
    bool good = true;

    for (int i = 0; i < MEMBERS; i++) {
        good = good && server_start(&several->server[i]);
        urls[i] = several->server[i].url;
    }
    good = good && owner_open(&several->owner, &config, NULL) == RLOCK_OK &&
           quorum_open(&several->quorum, &config, NULL) == RLOCK_OK;
    owner_join_quorum(&several->owner, several->quorum.members.hash);
    return good;
}

/* Opens a quorum whose servers have only one answer each, to requests of the kind `what`. */
static bool open_answering(struct several *several, enum asked_for what,
                           const char *const answers[MEMBERS])
{
    *several = (struct several){.owner = {.n_locks = 0}};
    for (int i = 0; i < MEMBERS; i++) {
        several->only[i][0] = answers[i];
        several->server[i].answers[what] = several->only[i];
    }
    return ok(open_several(several), "a quorum of three servers is opened");
}

static void close_several(struct several *several)
{
    quorum_close(&several->quorum);
    owner_close(&several->owner);
    for (int i = 0; i < MEMBERS; i++)
        server_stop(&several->server[i]);
}

/* The answers of three members to an acquire, to a confirm and to INFO; and the wanted result. */
static const struct {
    const char *acquire[MEMBERS], *confirm[MEMBERS], *info[MEMBERS];
    enum rlock_status st;
    const char *text;    /* a part of the error text */
    int confirms, undos; /* sums over all members; -N: at least N, see is_about() */
    uint64_t fence;
} votes[] = {
    {{GRANT, GRANT, GRANT}, {NULL}, {NULL}, RLOCK_OK, "", 0, 0, 1700000000000000},
    {{GRANT, GRANT_OF("1700000000000005"), GRANT_OF("1700000000000002")},
     {CONFIRMED, CONFIRMED, CONFIRMED},
     {NULL},
     RLOCK_OK,
     "",
     -2,
     0,
     1700000000000005},
    {{GRANT, GRANT_OF("1700000000000005"), HELD},
     {CONFIRMED, CONFIRMED, GONE},
     {NULL},
     RLOCK_OK,
     "",
     -2,
     0,
     1700000000000005},
    {{GRANT, GRANT, CLOSE},
     {CONFIRMED, CONFIRMED, CONFIRMED},
     {NULL},
     RLOCK_OK,
     "",
     -2,
     0,
     1700000000000000},
    {{GRANT, GRANT, HELD}, {CONFIRMED, GREATER_FENCE, GONE}, {NULL}, RLOCK_PENDING, "", -2, -2, 0},
    {{GRANT, GRANT, HELD}, {CONFIRMED, GONE, GONE}, {NULL}, RLOCK_PENDING, "", -2, -2, 0},
    /* member 3 answers the acquire after it was decided, and the confirm counts all the same */
    {{GRANT, GRANT_OF("1700000000000005"), AFTER(300, GRANT)},
     {CONFIRMED, LOADING, CONFIRMED},
     {NULL},
     RLOCK_OK,
     "",
     3,
     0,
     1700000000000005},
    /* member 3 never answers the acquire: it gets an undo, by EVALSHA and by EVAL, when the
     * confirm has failed */
    {{GRANT, GRANT_OF("1700000000000005"), SILENT},
     {GONE, GONE, GONE},
     {NULL},
     RLOCK_PENDING,
     "",
     2,
     4,
     0},
    {{GRANT, HELD, HELD}, {NULL}, {NULL}, RLOCK_BUSY, "", 0, 1, 0},
    {{HELD, HELD, HELD}, {NULL}, {NULL}, RLOCK_BUSY, "", 0, 0, 0},
    {{HELD, HELD, CLOSE}, {NULL}, {NULL}, RLOCK_BUSY, "", 0, 0, 0},
    /* each member has another holder: none of them has a majority, and all must try again */
    {{HELD_BY("1", "a"), HELD_BY("1", "b"), HELD_BY("1", "c")},
     {NULL},
     {NULL},
     RLOCK_PENDING,
     "",
     0,
     0,
     0},
    {{GRANT_PARENT, GRANT, HELD}, {NULL}, {NULL}, RLOCK_BUSY, "", 0, 2, 0},
    {{GRANT, GRANT, GRANT_PARENT},
     {CONFIRMED, CONFIRMED, GONE},
     {NULL},
     RLOCK_OK,
     "",
     0,
     1,
     1700000000000000},
    {{GRANT, LATE, LATE}, {NULL}, {NULL}, RLOCK_PENDING, "", 0, 1, 0},
    {{HELD, SUPERSEDED, HELD}, {NULL}, {NULL}, RLOCK_SUPERSEDED, "", 0, 0, 0},
    {{GRANT, LOADING, LOADING},
     {NULL},
     {NULL},
     RLOCK_E_SERVER,
     "2 of 3 members failed, 2 must agree: ",
     0,
     1,
     0},
    {{GRANT, LOADING, "-WRONGTYPE\r\n"}, {NULL}, {NULL}, RLOCK_E_NO_QUORUM, "LOADING", 0, 1, 0},
    {{GRANT, GRANT, GRANT}, {NULL}, {RESTARTED, NULL, NULL}, RLOCK_OK, "", 0, 0, 1700000000000000},
    {{GRANT, GRANT, HELD},
     {NULL},
     {RESTARTED, NULL, NULL},
     RLOCK_E_NO_QUORUM,
     "1 of 3 servers were restarted, and may have forgotten who holds the lock",
     0,
     2,
     0},
    {{GRANT, GRANT, HELD}, {NULL}, {NO_INFO, NULL, NULL}, RLOCK_BUSY, "", 0, 1, 0},
    {{GRANT, GRANT, GRANT},
     {NULL},
     {SAME_RUN_ID, NULL, SAME_RUN_ID},
     RLOCK_E_CONFIG,
     "are the same server",
     0,
     0,
     0},
};

static int count_all(struct several *several, enum asked_for what)
{
    int n = 0;

    for (int i = 0; i < MEMBERS; i++)
        n += server_count(&several->server[i], what);
    return n;
}

/*
 * Checks a number of requests. `wanted` is -N: at least N, because the quorum doesn't wait until
 * all members have read theirs.
 */
static void is_about(int got, int wanted, const char *what)
{
    if (wanted < 0)
        okf(got >= -wanted, "%s: %d", what, got);
    else
        is_int(got, wanted, what);
}

static void test_vote(size_t row)
{
    static const char *const released[] = {RELEASED, NULL};
    static struct several several;
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant grant = {.fence = 0};
    struct rlock_error err = {.text = ""};
    const char *answers[MEMBERS][2][2] = {{{NULL}}};
    char warning[700] = "";
    int64_t block_ms = 0;
    enum rlock_status st;

    several = (struct several){.owner = {.n_locks = 0}};
    for (int i = 0; i < MEMBERS; i++) {
        answers[i][0][0] = votes[row].acquire[i];
        answers[i][1][0] = votes[row].confirm[i] != NULL ? votes[row].confirm[i] : CLOSE;
        several.server[i] = (struct server){.info = votes[row].info[i],
                                            .answers = {[ASKED_ACQUIRE] = answers[i][0],
                                                        [ASKED_CONFIRM] = answers[i][1],
                                                        [ASKED_UNDO] = released}};
    }
    need(open_several(&several), "a quorum of three servers is opened");
    several.quorum.members.hooks.on_warning = note_warning;
    several.quorum.members.hooks.context = warning;
    st = quorum_acquire(&several.quorum, &several.owner, in(60000), &grant, &obstacle, &block_ms,
                        &err);
    is_str(warning, "", "no holder uses other servers: no warning");
    okf(st == votes[row].st, "votes[%zu]: the acquire returns status %d, %s", row, (int)st,
        err.text);
    okf(strstr(err.text, votes[row].text) != NULL, "votes[%zu]: the error text contains \"%s\"",
        row, votes[row].text);
    okf(grant.fence == votes[row].fence, "votes[%zu]: the grant has the fence %llu", row,
        (unsigned long long)grant.fence);
    if (strstr(err.text, "count again in ") != NULL)
        ok(atof(strstr(err.text, "count again in ") + strlen("count again in ")) < 60);
    close_several(&several);
    is_about(count_all(&several, ASKED_CONFIRM), votes[row].confirms,
             "the members get the wanted number of confirms");
    is_about(count_all(&several, ASKED_UNDO), votes[row].undos,
             "the members get the wanted number of undos");
}

static void test_votes(void)
{
    for (size_t i = 0; i < sizeof votes / sizeof votes[0]; i++)
        test_vote(i);
}

#define HELD_FOR_LONG "*8\r\n" HELD_BY_FOREIGN ":5000\r\n$16\r\n1700000000000000\r\n:2\r\n:1\r\n"

/*
 * We have the lock on one member, another owner has it on the second, and the third is silent. If
 * it hangs, neither of us gets a majority for as long as both wait for it. So a waiter soon removes
 * its token and tries again; if the third member is only slow, a later attempt waits for it. A
 * caller that makes a single attempt has no later one, and waits for the slow member at once.
 */
static void test_split(bool is_single_attempt)
{
    static const char *const acquire[MEMBERS][2] = {{GRANT}, {HELD_FOR_LONG}, {AFTER(600, GRANT)}};
    static const char *const confirm[] = {CONFIRMED, NULL};
    static const char *const released[] = {RELEASED, NULL};
    static struct several several;
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant grant = {.fence = 0};
    enum rlock_status st = RLOCK_BUSY;
    int64_t block_ms = 0;
    int tries;

    several = (struct several){.owner = {.n_locks = 0}};
    for (int i = 0; i < MEMBERS; i++)
        several.server[i] = (struct server){
            .answers = {
                [ASKED_ACQUIRE] = acquire[i], [ASKED_CONFIRM] = confirm, [ASKED_UNDO] = released}};
    need(open_several(&several), "a quorum of three servers, one of them slow, is opened");
    several.owner.is_single_attempt = is_single_attempt;
    for (tries = 0; st == RLOCK_BUSY && tries < 20; tries++) {
        st = quorum_acquire(&several.quorum, &several.owner, in(60000), &grant, &obstacle,
                            &block_ms, NULL);
        if (tries > 0)
            continue;
        is_int(st, is_single_attempt ? RLOCK_OK : RLOCK_BUSY,
               is_single_attempt ? "a single attempt waits for the slow member"
                                 : "a waiter's first attempt doesn't wait for the slow member");
        okf(block_ms <= 100, "the next attempt comes soon: after %lld ms", (long long)block_ms);
    }
    okf(st == RLOCK_OK, "attempt %d has waited until the slow member answered", tries);
    close_several(&several);
}

/*
 * Each member stores only a fence that is greater than all that it knows. If a member refuses the
 * greatest fence of the grants, the next confirm has the fence behind the one in its answer.
 */
static void test_greater_fence(void)
{
    static const char *const confirmed[] = {GREATER_FENCE, CONFIRMED, NULL};
    static const char *const granted[] = {GRANT, NULL};
    static const char *const granted_5[] = {GRANT_OF("1700000000000005"), NULL};
    static struct several several;
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant grant = {.fence = 0};
    int64_t block_ms = 0;
    int j;

    several = (struct several){.owner = {.n_locks = 0}};
    for (int i = 0; i < MEMBERS; i++)
        several.server[i] = (struct server){
            .answers = {
                [ASKED_ACQUIRE] = i == 0 ? granted : granted_5, [ASKED_CONFIRM] = confirmed}};
    need(open_several(&several), "a quorum of three servers is opened");
    is_int(quorum_acquire(&several.quorum, &several.owner, in(60000), &grant, &obstacle, &block_ms,
                          NULL),
           RLOCK_OK, "the members confirm the second fence");
    is_int((int64_t)grant.fence, 1700000000000010, "the grant has the fence that was confirmed");
    close_several(&several);
    for (int i = 0; i < MEMBERS; i++) {
        const char *wanted = i == 0 ? " 1700000000000005 6000 1700000000000000 "
                                    : " 1700000000000005 6000 1700000000000005 ";

        for (j = 0; j < atomic_load(&several.server[i].n_log); j++)
            if (several.server[i].log[j].what == ASKED_CONFIRM)
                break;
        okf(strstr(several.server[i].log[j].text, wanted) != NULL,
            "a confirm has the fence and the one that member %d has drawn: %s", i,
            several.server[i].log[j].text);
    }
}

#define STOPPED_FROM_MS 200
#define STOPPED_UNTIL_MS 700

/* A signal handler that sleeps: as if the process was stopped for that time. */
static void be_stopped(int number)
{
    struct timespec rest = {.tv_nsec = (STOPPED_UNTIL_MS - STOPPED_FROM_MS) * 1000000L};

    (void)number;
    while (nanosleep(&rest, &rest) != 0)
        continue;
}

/*
 * A member's late grant must not count as its confirmation:
 * 1. Members 1 and 2 grant with different fences. Member 3 has not answered the acquire yet.
 * 2. In the confirm round member 1 stores the greater fence, and member 2 answers with an error.
 * 3. This process is stopped. Meanwhile its deadline passes, and member 3's answer to the acquire
 *    comes. Member 3 was never asked to store the fence, so no majority has stored it.
 */
static void test_late_grant_is_no_confirmation(void)
{
    static const char *const late[] = {AFTER(400, GRANT), NULL};
    static const char *const grant[] = {GRANT, NULL};
    static const char *const greater[] = {GRANT_OF("1700000000000005"), NULL};
    static const char *const confirmed[] = {CONFIRMED, NULL};
    static const char *const refused[] = {LOADING, NULL};
    static const char *const released[] = {RELEASED, NULL};
    static const char *const *const first[] = {grant, greater, late};
    static struct several several;
    struct itimerval alarm = {.it_value = {.tv_usec = STOPPED_FROM_MS * 1000}};
    struct sigaction action = {.sa_handler = be_stopped};
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant taken = {.fence = 0};
    struct rlock_error err = {.text = ""};
    int64_t block_ms = 0;
    sigset_t alarms;

    several = (struct several){.owner = {.n_locks = 0}};
    for (int i = 0; i < MEMBERS; i++)
        several.server[i] =
            (struct server){.answers = {[ASKED_ACQUIRE] = first[i],
                                        [ASKED_CONFIRM] = i == 0 ? confirmed : refused,
                                        [ASKED_UNDO] = released}};
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* the servers' threads inherit the mask */
    need(open_several(&several), "a quorum of three servers, one of them slow, is opened");
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    setitimer(ITIMER_REAL, &alarm, NULL);
    ok(quorum_acquire(&several.quorum, &several.owner, in(300), &taken, &obstacle, &block_ms,
                      &err) != RLOCK_OK);
    close_several(&several);
}

#define NOT_OURS ":0\r\n"
#define NOT_THERE ":-1\r\n"

/*
 * A release finds the lock lost or gone only if a majority of the members doesn't have the lock.
 * If too few members answer to know this, the release fails.
 */
static const struct {
    const char *release[MEMBERS];
    enum rlock_status st;
} releases[] = {
    {{RELEASED, RELEASED, NOT_THERE}, RLOCK_OK}, {{RELEASED, NOT_THERE, CLOSE}, RLOCK_OK},
    {{CLOSE, NOT_OURS, RELEASED}, RLOCK_OK},     {{RELEASED, NOT_THERE, NOT_THERE}, RLOCK_GONE},
    {{NOT_OURS, CLOSE, NOT_THERE}, RLOCK_LOST},  {{RELEASED, CLOSE, CLOSE}, RLOCK_E_UNREACHABLE},
};

static void test_releases(void)
{
    static struct several several;

    for (size_t row = 0; row < sizeof releases / sizeof releases[0]; row++) {
        struct rlock_error err = {.text = ""};
        unsigned released = 0;
        enum rlock_status st;

        if (!open_answering(&several, ASKED_RELEASE, releases[row].release))
            return;
        st = quorum_release(&several.quorum, &several.owner, in(60000), &released, &err);
        okf(st == releases[row].st, "releases[%zu]: the release returns status %d, %s", row,
            (int)st, err.text);
        close_several(&several);
    }
}

static enum rlock_status renew_several(struct several *several, struct rlock_error *err)
{
    int64_t expires_ms;
    bool is_restored;

    return quorum_renew(&several->quorum, &several->owner, in(60000), &expires_ms, &is_restored,
                        err);
}

/*
 * A release that fails is tried again. A member that doesn't hold the lock when it is asked again
 * counts as one that has lost the lock only if it can't have executed an earlier release. A member
 * that has said that it lost the lock counts so, too, if it doesn't answer any more.
 */
static const struct {
    const char *what;
    const char *renew[MEMBERS][3]; /* {NULL}: no renewal precedes the release */
    const char *repair;            /* the first member's answer; NULL: it closes the connection */
    const char *release[MEMBERS][4];
    enum rlock_status st;
} retries[] = {
    {"a member has released the lock, and another one has lost it",
     {{NULL}},
     NULL,
     {{RELEASED, NOT_THERE}, {LOADING, NOT_THERE}, {LOADING, RELEASED}},
     RLOCK_OK},
    {"a member may have released the lock, and another one has lost it",
     {{NULL}},
     NULL,
     {{CLOSE, NOT_OURS}, {LOADING, NOT_THERE}, {LOADING, RELEASED}},
     RLOCK_OK},
    {"a member may have released the lock, and the two others have lost it",
     {{NULL}},
     NULL,
     {{CLOSE, NOT_THERE}, {LOADING, NOT_THERE}, {LOADING, NOT_OURS}},
     RLOCK_LOST},
    /* member 3 reads the first release behind the renewal, and may execute it */
    {"a member was sent the release behind a pending renewal, and another one has lost the lock",
     {{RENEWED}, {RENEWED}, {SILENT}},
     NULL,
     {{LOADING, NOT_THERE}, {LOADING, RELEASED}, {RELEASED, LOADING, NOT_THERE}},
     RLOCK_OK},
    {"two members have lost the lock, and the first of them answers only one release",
     {{NULL}},
     NULL,
     {{NOT_OURS, CLOSE, NOT_THERE}, {LOADING, NOT_THERE}, {LOADING, CLOSE, RELEASED}},
     RLOCK_GONE},
    {"two members have lost the lock, and the first of them leaves out a release",
     {{NULL}},
     NULL,
     {{NOT_OURS, CLOSE, NOT_OURS}, {LOADING, LOADING, RELEASED}, {LOADING, LOADING, NOT_THERE}},
     RLOCK_LOST},
    {"two members have lost the lock, and the first of them answers only the renewal",
     {{LOST_TO}, {RENEWED}, {RENEWED}},
     NULL,
     {{CLOSE}, {NOT_OURS}, {RELEASED}},
     RLOCK_LOST},
    {"two members have lost the lock, and one was sent the release behind a pending renewal",
     {{LOST_TO, SILENT}, {RENEWED}, {RENEWED}},
     NULL,
     {{RELEASED, NOT_OURS}, {NOT_THERE}, {RELEASED}},
     RLOCK_LOST},
    {"a member has lost the lock, and the others release it",
     {{LOST_TO}, {RENEWED}, {RENEWED}},
     NULL,
     {{CLOSE}, {RELEASED}, {RELEASED}},
     RLOCK_OK},
    {"a member has lost the lock and confirms it again, then another one loses it",
     {{LOST_TO, RENEWED}, {RENEWED}, {RENEWED}},
     NULL,
     {{CLOSE}, {NOT_OURS}, {RELEASED}},
     RLOCK_OK},
    {"a member has lost the lock and gets it again, then another one loses it",
     {{GONE}, {RENEWED}, {RENEWED}},
     GRANT,
     {{CLOSE}, {NOT_OURS}, {RELEASED}},
     RLOCK_OK},
    {"a member has lost the lock and may have got it again, then another one loses it",
     {{GONE}, {RENEWED}, {RENEWED}},
     NULL,
     {{CLOSE}, {NOT_OURS}, {RELEASED}},
     RLOCK_OK},
    {"a member has lost the lock to another owner, then another one loses it",
     {{GONE}, {RENEWED}, {RENEWED}},
     HELD,
     {{CLOSE}, {NOT_OURS}, {RELEASED}},
     RLOCK_LOST},
};

/*
 * A member is still to answer the acquire when the renewer, which learns the members' nodes, is
 * stopped. The release must go behind the acquire, on the same connection: on another one it could
 * come first.
 */
static void test_release_behind_acquire(void)
{
    static const char *const grant[] = {GRANT, NULL};
    static const char *const late[] = {AFTER(400, GRANT), NULL};
    static const char *const confirmed[] = {CONFIRMED, NULL};
    static const char *const released[] = {RELEASED, NULL};
    static const char *const time[] = {"*2\r\n$10\r\n1700000000\r\n$1\r\n7\r\n", NULL};
    static struct several several;
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant taken = {.fence = 0};
    struct rlock_error err = {.text = ""};
    int64_t block_ms = 0;
    unsigned members = 0;
    int stop[2];

    several = (struct several){.owner = {.n_locks = 0}};
    for (int i = 0; i < MEMBERS; i++)
        several.server[i] = (struct server){.answers = {[ASKED_ACQUIRE] = i == 2 ? late : grant,
                                                        [ASKED_CONFIRM] = confirmed,
                                                        [ASKED_RELEASE] = released,
                                                        [ASKED_OTHER] = time}};
    need(open_several(&several) && pipe(stop) == 0 && write(stop[1], "", 1) == 1,
         "a quorum of three servers, one of them slow, is opened");
    is_int(quorum_acquire(&several.quorum, &several.owner, in(60000), &taken, &obstacle, &block_ms,
                          &err),
           RLOCK_OK);
    quorum_learn_topology(&several.quorum, (struct rlock_deadline){RLOCK_NEVER, stop[0]});
    is_int(quorum_release(&several.quorum, &several.owner, in(60000), &members, &err), RLOCK_OK);
    close(stop[0]);
    close(stop[1]);
    close_several(&several);
    ok(server_count(&several.server[2], ASKED_RELEASE) > 0,
       "the release follows the acquire on the connection");
}

static void test_release_retries(void)
{
    static struct several several;

    /*
     * After two members have answered, the third has from 20 to 100 ms. If it answers later, it may
     * have executed the release, and the outcome is another one.
     */
    slow_clock(true);
    for (size_t row = 0; row < sizeof retries / sizeof retries[0]; row++) {
        const char *const repair[] = {retries[row].repair, NULL};
        struct rlock_error err = {.text = ""};
        enum rlock_status st;

        several = (struct several){.owner = {.n_locks = 0}};
        for (int i = 0; i < MEMBERS; i++) {
            several.server[i].answers[ASKED_RENEW] = retries[row].renew[i];
            several.server[i].answers[ASKED_RELEASE] = retries[row].release[i];
        }
        if (retries[row].repair != NULL)
            several.server[0].answers[ASKED_ACQUIRE] = repair;
        need(open_several(&several), "a quorum of three servers is opened");
        for (int i = 0; retries[row].renew[0][i] != NULL; i++)
            is_int(renew_several(&several, &err), RLOCK_OK, "a majority renews the lock");
        st = release_loop_run(&several.quorum, &several.owner, in(60000), &err);
        okf(st == retries[row].st, "%s: the release returns status %d, %s", retries[row].what,
            (int)st, err.text);
        close_several(&several);
    }
    slow_clock(false);
}

/*
 * A renewal that no majority confirms finds the lock lost, unless a member says that another
 * process has released it by its token: then the present holder was granted it after the release.
 */
static const struct {
    const char *renew[MEMBERS];
    enum rlock_status st;
    const char *text; /* a part of the error text */
} renewals[] = {
    {{RENEWED, RENEWED, FREED}, RLOCK_OK, ""},
    {{RENEWED, FREED, CLOSE}, RLOCK_E_NO_QUORUM, "1 of 3 members failed, 2 must agree: "},
    {{FREED, FREED, CLOSE}, RLOCK_RELEASED, "the lock was released"},
    {{LOST_TO, FREED, CLOSE}, RLOCK_RELEASED, "the lock was released"},
    {{LOST_TO, LOST_TO, FREED}, RLOCK_RELEASED, "the lock was released"},
    {{GONE, FREED, RENEWED}, RLOCK_RELEASED, "the lock was released"},
    {{LOST_TO, LOST_TO, RENEWED}, RLOCK_LOST, "another program"},
    {{GONE, LOST_TO, CLOSE}, RLOCK_LOST, "another program"},
    {{GONE, CLOSE, GONE}, RLOCK_GONE, "the server no longer has the lock"},
};

static void test_renewals(void)
{
    static struct several several;

    for (size_t row = 0; row < sizeof renewals / sizeof renewals[0]; row++) {
        struct rlock_error err = {.text = ""};
        enum rlock_status st;

        if (!open_answering(&several, ASKED_RENEW, renewals[row].renew))
            return;
        st = renew_several(&several, &err);
        okf(st == renewals[row].st && strstr(err.text, renewals[row].text) != NULL,
            "renewals[%zu]: the renewal returns status %d, %s", row, (int)st, err.text);
        close_several(&several);
    }
}

/*
 * The answers of three members to two renewals, and the wanted result of the second one. A member
 * that has lost the lock and doesn't answer the second renewal has lost the lock all the same.
 */
static const struct {
    const char *renew[MEMBERS][3];
    enum rlock_status st;
    enum rlock_status release; /* of a release that no member answers */
} second_renewals[] = {
    {{{LOST_TO, CLOSE}, {LOADING, GONE}, {LOADING, RENEWED}}, RLOCK_GONE, RLOCK_GONE},
    {{{GONE, CLOSE}, {LOADING, LOST_TO}, {LOADING, CLOSE}}, RLOCK_LOST, RLOCK_GONE},
    {{{LOST_TO, CLOSE}, {LOADING, FREED}, {LOADING, CLOSE}}, RLOCK_RELEASED, RLOCK_E_UNREACHABLE},
    {{{LOST_TO, CLOSE}, {LOADING, CLOSE}, {LOADING, RENEWED}},
     RLOCK_E_UNREACHABLE,
     RLOCK_E_UNREACHABLE},
    {{{LOST_TO, CLOSE}, {LOADING, CLOSE}, {LOADING, CLOSE}},
     RLOCK_E_UNREACHABLE,
     RLOCK_E_UNREACHABLE},
    {{{LOST_TO, CLOSE}, {RENEWED, RENEWED}, {RENEWED, RENEWED}}, RLOCK_OK, RLOCK_E_UNREACHABLE},
};

static void test_second_renewals(void)
{
    static struct several several;

    for (size_t row = 0; row < sizeof second_renewals / sizeof second_renewals[0]; row++) {
        struct rlock_error err = {.text = ""};
        enum rlock_status st;

        several = (struct several){.owner = {.n_locks = 0}};
        for (int i = 0; i < MEMBERS; i++)
            several.server[i].answers[ASKED_RENEW] = second_renewals[row].renew[i];
        need(open_several(&several), "a quorum of three servers is opened");
        (void)!renew_several(&several, NULL);
        st = renew_several(&several, &err);
        okf(st == second_renewals[row].st,
            "second_renewals[%zu]: the second renewal returns status %d, %s", row, (int)st,
            err.text);
        st = release_loop_run(&several.quorum, &several.owner, in(100), NULL);
        is_int(st, second_renewals[row].release);
        close_several(&several);
    }
}

/* A release that no member answers is repeated, also if the lock is known to be lost. */
static void test_release_after_loss(void)
{
    static const char *const renew[MEMBERS] = {LOST_TO, LOST_TO, RENEWED};
    static const char *const release[MEMBERS][3] = {{CLOSE}, {CLOSE, NOT_OURS}, {CLOSE, RELEASED}};
    static struct several several;

    if (!open_answering(&several, ASKED_RENEW, renew))
        return;
    for (int i = 0; i < MEMBERS; i++)
        several.server[i].answers[ASKED_RELEASE] = release[i];
    is_int(renew_several(&several, NULL), RLOCK_LOST, "a renewal finds the lock lost");
    is_int(release_loop_run(&several.quorum, &several.owner, in(60000), NULL), RLOCK_LOST);
    close_several(&several);
    is_int(server_count(&several.server[2], ASKED_RELEASE), 2);
}

/* What a member has said of a lost lock doesn't count for the next grant of the same handle. */
static void test_loss_before_acquire(void)
{
    static const char *const acquire[MEMBERS] = {LOADING, GRANT, GRANT};
    static const char *const renew[MEMBERS] = {LOST_TO, LOST_TO, RENEWED};
    static const char *const release[MEMBERS] = {CLOSE, RELEASED, NOT_THERE};
    static const char *const confirm[] = {CONFIRMED, NULL};
    static struct several several;
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant grant = {.fence = 0};
    const char *renewed[MEMBERS][2] = {{NULL}};
    const char *ended[MEMBERS][2] = {{NULL}};
    int64_t block_ms = 0;

    several = (struct several){.owner = {.n_locks = 0}};
    for (int i = 0; i < MEMBERS; i++) {
        several.only[i][0] = acquire[i];
        renewed[i][0] = renew[i];
        several.server[i].answers[ASKED_ACQUIRE] = several.only[i];
        several.server[i].answers[ASKED_CONFIRM] = confirm;
        several.server[i].answers[ASKED_RENEW] = renewed[i];
        ended[i][0] = release[i];
        several.server[i].answers[ASKED_RELEASE] = ended[i];
    }
    need(open_several(&several), "a quorum of three servers is opened");
    is_int(renew_several(&several, NULL), RLOCK_LOST, "a renewal finds the lock lost");
    is_int(quorum_acquire(&several.quorum, &several.owner, in(60000), &grant, &obstacle, &block_ms,
                          NULL),
           RLOCK_OK, "the lock is granted again");
    is_int(release_loop_run(&several.quorum, &several.owner, in(60000), NULL), RLOCK_OK);
    close_several(&several);
}

static void test_alone(void)
{
    static const char *const answers[MEMBERS][2] = {{":1\r\n"}, {":2\r\n"}, {":3\r\n"}};
    static struct several several;
    struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX];
    const struct resp_value *reply = NULL;
    struct request request;
    struct quorum one;

    several = (struct several){.owner = {.n_locks = 0}};
    for (int i = 0; i < MEMBERS; i++)
        several.server[i].answers[ASKED_OTHER] = answers[i];
    need(open_several(&several), "a quorum of three servers is opened");
    one = quorum_alone(&several.quorum, &several.quorum.members.member[1], pollfds);
    request_begin(&request, "PING");
    ok(quorum_ask(&one, &request, in(60000), &reply, NULL) == RLOCK_OK && resp_int(reply) == 2);
    ok(server_count(&several.server[0], ASKED_OTHER) == 0 &&
       server_count(&several.server[2], ASKED_OTHER) == 0);
    close_several(&several);
}

static void test_members_hash(void)
{
    const char *urls[] = {"redis://h", "redis://i/3", "unix:///s"};
    const char *others[] = {"redis://i/3", "unix:///s", "redis://:pw@h:6379/0"};
    struct rlock_config config = {.urls = urls, .n_urls = 3};
    struct quorum one;
    struct quorum other;

    ok(quorum_open(&one, &config, NULL) == RLOCK_OK && strlen(one.members.hash) == 8);
    config.urls = others;
    ok(quorum_open(&other, &config, NULL) == RLOCK_OK &&
       strcmp(one.members.hash, other.members.hash) == 0);
    quorum_close(&other);
    others[0] = "redis://i/4";
    ok(quorum_open(&other, &config, NULL) == RLOCK_OK &&
       strcmp(one.members.hash, other.members.hash) != 0);
    quorum_close(&other);
    config.n_urls = 1;
    ok(quorum_open(&other, &config, NULL) == RLOCK_OK && other.members.hash[0] == '\0');
    quorum_close(&other);
    quorum_close(&one);
}

static void test_open(void)
{
    const char *const urls[] = {"redis://h", "redis://i", NULL};
    struct rlock_config config = {.urls = urls};
    struct quorum quorum;

    for (config.n_urls = 0; config.n_urls <= 2; config.n_urls += 2) {
        okf(quorum_open(&quorum, &config, NULL) == RLOCK_E_CONFIG,
            "a quorum of %zu members is refused", config.n_urls);
        quorum_close(&quorum);
    }
}

int main(void)
{
    RUN_ALL(test_answers, test_undo, test_stop, test_stop_beside_reply, test_votes);
    RUN(test_split(false));
    RUN(test_split(true));
    RUN_ALL(test_greater_fence, test_late_grant_is_no_confirmation, test_release_behind_acquire,
            test_release_retries, test_loss_before_acquire, test_members_hash, test_open);

    slow_clock(true);
    RUN_ALL(test_other_quorum, test_releases, test_renewals, test_second_renewals,
            test_release_after_loss, test_alone);
    return done_testing();
}
