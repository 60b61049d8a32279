/* SPDX-License-Identifier: MIT */
/*
 * test_lease_end: every function that computes the end of a lease counts from before the request
 * was sent. (That the renewer does, test_renewer shows.)
 *
 * A lease ends one TTL, less the drift, after a moment just before its request was sent. The test
 * knows a time before the call and the time at which the server had read the request. So
 *
 *     time before the call + length <= end of the lease <= time of reading + length
 *
 * must hold, also on a slow machine: the client has sent the request before the server reads it.
 * Each answer comes LATE_MS after the reading. So an end that was wrongly counted from the reply
 * lies at least LATE_MS above the upper bound.
 *
 * This program is linked with --wrap=send, so that a test can stop the client right after a send.
 */
#include "lock/timing.h"
#include "quorums.h"
#include "tap.h"

static const char *const the_key = "k";
static const char *const some_keys[] = {"k", "l"};

#define LATE_MS 100
#define LATE_BY(ANSWER) AFTER(LATE_MS, ANSWER)
#define TTL_MS 9000
#define REPLY_MS 2000
#define RENEW_MS 3000
#define PATIENCE_MS 10000
#define TOKEN "0123456789abcdef0123456789abcdef"

#define LEFT_60S "*3\r\n:1\r\n:1700000000000\r\n:60000\r\n"
#define NOSCRIPT "-NOSCRIPT No matching script. Please use EVAL.\r\n"

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);

/* How long this thread sleeps after each send(2), as if the process had been stopped. */
static _Thread_local int stopped_ms;

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
    ssize_t sent = __real_send(fd, bytes, n, flags);

    poll(NULL, 0, stopped_ms);
    return sent;
}

static int64_t length_of(int64_t ttl_ms)
{
    return ttl_ms - ttl_ms / 100 - 2;
}

/*
 * Checks that the end of a lease is counted from a moment between `from_ms`, a time before the
 * request was sent, and `read_ms`, the time at which the server had read it.
 */
static void is_end(int64_t expires_ms, int64_t ttl_ms, int64_t from_ms, int64_t read_ms,
                   const char *what)
{
    int64_t sent_ms = expires_ms - length_of(ttl_ms);

    if (okf(from_ms >= 0 && sent_ms >= from_ms && sent_ms <= read_ms,
            "%s: the end of the lease is counted from before the request was sent", what))
        return;
    printf("# counted from %lld ms after the earliest moment, %lld ms after the server's reading\n",
           (long long)(sent_ms - from_ms), (long long)(sent_ms - read_ms));
}

static const struct rlock_config usual = {
    .keys = &the_key,
    .n_keys = 1,
    .timing = {.ttl_ms = TTL_MS, .renew_ms = RENEW_MS, .reply_ms = REPLY_MS, .kill_margin_ms = 250},
    .holder = {.host = "h"},
    .connect_ms = PATIENCE_MS,
};

/* ---- tests with a quorum of one server ---- */

static enum rlock_status acquire(int64_t *expires_ms)
{
    struct rlock_grant grant;
    enum rlock_status st = quorum_attempt(in(PATIENCE_MS), &grant, NULL);

    *expires_ms = grant.expires_ms;
    return st;
}

/* Returns when the first server had read its nth request of this kind. */
static int64_t read_ms(enum asked_for what, int nth)
{
    return server_read_ms(&several.server[0], what, nth);
}

/*
 * All kinds of locks: their keys and scripts differ, but their leases must end alike. If a parent
 * holds the lock, its lease is extended, whose TTL is 6 s.
 */
static const struct {
    const char *name;
    size_t n_keys;
    enum rlock_mode mode;
    enum rlock_protocol protocol;
    const char *grant;
    int64_t ttl_ms;
    int stopped_ms; /* for how long the client is stopped right after each send */
} kinds[] = {
    {"an exclusive lock", 1, RLOCK_EXCLUSIVE, RLOCK_PROTOCOL_TOKEN, LATE_BY(GRANT), TTL_MS, 0},
    {"a shared lock", 1, RLOCK_SHARED, RLOCK_PROTOCOL_TOKEN, LATE_BY(GRANT), TTL_MS, 0},
    {"a lock with slots", 1, RLOCK_SLOTS, RLOCK_PROTOCOL_TOKEN, LATE_BY(GRANT), TTL_MS, 0},
    {"a lock of two keys", 2, RLOCK_EXCLUSIVE, RLOCK_PROTOCOL_TOKEN, LATE_BY(GRANT), TTL_MS, 0},
    {"a timestamp lock in ms", 1, RLOCK_EXCLUSIVE, RLOCK_PROTOCOL_TIME_MS, LATE_BY(GRANT), TTL_MS,
     0},
    {"a timestamp lock in s", 1, RLOCK_EXCLUSIVE, RLOCK_PROTOCOL_TIME_S, LATE_BY(GRANT), TTL_MS, 0},
    {"a parent's lock", 1, RLOCK_EXCLUSIVE, RLOCK_PROTOCOL_TOKEN, LATE_BY(GRANT_PARENT), 6000, 0},
    {"a stopped client", 1, RLOCK_EXCLUSIVE, RLOCK_PROTOCOL_TOKEN, GRANT, TTL_MS, LATE_MS},
};

static void test_kinds(void)
{
    static const char *const parent = TOKEN;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bool is_one = kinds[i].n_keys == 1; /* with more keys all scripts are ASKED_OTHER */
        struct rlock_config config = usual;
        int64_t before = rlock_clock_ms();
        int64_t expires_ms;

        quorum_begin();
        quorum_answers(ASKED_ACQUIRE, kinds[i].grant, NULL, NULL);
        quorum_answers(ASKED_RENEW, LATE_BY(RENEWED), NULL, NULL);
        several.server[0].answers[ASKED_OTHER] = ANSWERS(kinds[i].grant, LATE_BY(RENEWED));
        config.keys = some_keys;
        config.n_keys = kinds[i].n_keys;
        config.mode = kinds[i].mode;
        config.n_slots = 3;
        config.protocol = kinds[i].protocol;
        config.parent_tokens = &parent;
        config.n_parents = 1;
        need(quorum_start(config, 1), kinds[i].name);
        stopped_ms = kinds[i].stopped_ms;
        is_int(acquire(&expires_ms), RLOCK_OK, kinds[i].name);
        is_end(expires_ms, kinds[i].ttl_ms, before,
               read_ms(is_one ? ASKED_ACQUIRE : ASKED_OTHER, 0), kinds[i].name);
        before = rlock_clock_ms();
        is_int(quorum_renewal(&expires_ms, NULL), RLOCK_OK, kinds[i].name);
        stopped_ms = 0;
        is_end(expires_ms, kinds[i].ttl_ms, before,
               is_one ? read_ms(ASKED_RENEW, 0) : read_ms(ASKED_OTHER, 1), kinds[i].name);
        quorum_end();
    }
}

/* The observer's on_sent: sleeps for *context ms, as if the process was stopped. */
static void stop(void *context)
{
    poll(NULL, 0, *(const int *)context);
}

/*
 * A client that was stopped after it sent its acquire may read the grant when little of the lease
 * is left. A grant that is read later than renew_ms after the request was sent is refused.
 */
static void test_stopped(void)
{
    int ms = LATE_MS + LATE_MS;
    struct rlock_config config = usual;
    int64_t expires_ms;

    config.timing.renew_ms = LATE_MS; /* the longest time that the reply to an acquire may take */
    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, GRANT, NULL, NULL);
    need(quorum_start(config, 1), "a quorum of one server is opened");
    members_observe(&several.quorum.members,
                    (struct rlock_observer){.on_sent = stop, .context = &ms}, NULL, NULL);
    ok(acquire(&expires_ms) != RLOCK_OK);
    quorum_end();
}

/* ---- rlock_acquire(), which makes attempts until the lock is granted ---- */

static struct rlock *open_lock(struct server *server, struct rlock_config config)
{
    struct rlock *lock;

    return ok(server_open(server, config, &lock, NULL) == RLOCK_OK) ? lock : NULL;
}

static void close_lock(struct server *server, struct rlock *lock)
{
    rlock_close(lock);
    server_stop(server);
}

/* Acquires the lock. Returns the end of its lease; 0: it was not granted. */
static int64_t acquire_end(struct rlock *lock, const char *what)
{
    struct rlock_grant grant = {.expires_ms = 0};

    okf(rlock_acquire(lock, in(PATIENCE_MS), &grant, NULL, NULL) == RLOCK_OK,
        "%s: the lock is granted", what);
    okf(grant.expires_ms == grant.sent_ms + length_of(grant.timing.ttl_ms),
        "%s: expires_ms is one TTL, less the drift, after the grant's sent_ms", what);
    return grant.expires_ms;
}

/* An acquire that is sent several times: the lease is counted from the last request. */
static void test_asked_again(void)
{
    static const struct {
        const char *name;
        const char *acquire[4];
    } rows[] = {{"an acquire after a lost reply", {CLOSE, LATE_BY(GRANT)}},
                {"an acquire after NOSCRIPT", {CLOSE, LATE_BY(NOSCRIPT), LATE_BY(GRANT)}},
                {"an acquire after LOADING", {LATE_BY(LOADING), LATE_BY(GRANT)}},
                {"an acquire after REPLY_LATE", {LATE_BY(LATE), LATE_BY(GRANT)}},
                {"an acquire of a waiter that was woken", {HELD, LATE_BY(GRANT)}}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server server = {
            .answers = {[ASKED_ACQUIRE] = rows[i].acquire, [ASKED_WAKE] = ANSWERS(LATE_BY(WOKEN))}};
        struct rlock *lock = open_lock(&server, usual);
        int64_t expires_ms;
        int last;

        if (lock == NULL)
            continue;
        expires_ms = acquire_end(lock, rows[i].name);
        last = server_count(&server, ASKED_ACQUIRE) - 1;
        okf(last > 0, "%s: the acquire was sent again", rows[i].name);
        is_end(expires_ms, TTL_MS, server_read_ms(&server, ASKED_ACQUIRE, last - 1),
               server_read_ms(&server, ASKED_ACQUIRE, last), rows[i].name);
        close_lock(&server, lock);
    }
}

/* The first server redirects the acquire by MOVED or ASK (`kind`) to the second, which grants. */
static void test_redirected(const char *kind)
{
    struct server there = {
        .answers = {[ASKED_ACQUIRE] = ANSWERS(LATE_BY(GRANT)), [ASKED_OTHER] = ANSWERS("+OK\r\n")}};
    char redirect[128];
    const char *answers[] = {redirect, NULL};
    struct server here = {.answers = {[ASKED_ACQUIRE] = answers}};
    struct rlock *lock;
    int64_t expires_ms;

    need(server_start(&there), "the target of the redirect is started");
    snprintf(redirect, sizeof redirect, LATE_BY("-%.8s 1 %.40s\r\n"), kind,
             there.url + strlen("redis://"));
    lock = open_lock(&here, usual);
    if (lock != NULL) {
        expires_ms = acquire_end(lock, kind);
        is_end(expires_ms, TTL_MS, server_read_ms(&here, ASKED_ACQUIRE, 0) + LATE_MS,
               server_read_ms(&there, ASKED_ACQUIRE, 0), kind);
        close_lock(&here, lock);
    }
    server_stop(&there);
}

/* ---- tests of renewals ---- */

/*
 * With --replicas a grant and a renewal are reported only once the replicas have them. The wait for
 * the replicas must not move the end of the lease.
 */
static void test_replicas(void)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(GRANT),
                                        [ASKED_RENEW] = ANSWERS(RENEWED),
                                        [ASKED_OTHER] = ANSWERS(LATE_BY(":1\r\n"))}};
    struct rlock_config config = usual;
    int64_t before = rlock_clock_ms();
    struct rlock *lock;
    int64_t expires_ms;
    int events;

    config.replicas = 1;
    config.timing.renew_ms = 1000;
    lock = open_lock(&server, config);
    if (lock == NULL)
        return;
    expires_ms = acquire_end(lock, "a grant that replicas confirm late");
    is_end(expires_ms, TTL_MS, before, server_read_ms(&server, ASKED_ACQUIRE, 0),
           "a grant that replicas confirm late");
    before = rlock_clock_ms();
    if (ok(rlock_keep(lock, &events, NULL) == RLOCK_OK, "rlock_keep() starts the renewer")) {
        expires_ms = next_event(events).expires_ms;
        is_end(expires_ms, TTL_MS, before, server_read_ms(&server, ASKED_RENEW, 0),
               "a renewal that replicas confirm late");
    }
    close_lock(&server, lock);
}

/*
 * rlock_renew() renews by the token alone, or after a grant. If the reply is lost, it sends the
 * renewal once more. If it asks for another TTL than the grant's, the end counts by the shorter
 * one, because a lease that is nearly over gets only the TTL that the renewal asks for.
 */
static void test_renew(void)
{
    static const struct {
        const char *name;
        const char *renew[3];
        bool by_token;
        int64_t asks_ms; /* the TTL that the caller asks for; 0: the TTL of the grant */
        int64_t ttl_ms;  /* the TTL from which the end must be counted */
    } rows[] = {
        {"a renewal by token with a TTL", {LATE_BY(RENEWED)}, true, TTL_MS, TTL_MS},
        {"a renewal by token with the grant's TTL", {LATE_BY(LEFT_60S)}, true, 0, 60000},
        {"a renewal by token after a lost reply", {CLOSE, LATE_BY(RENEWED)}, true, TTL_MS, TTL_MS},
        {"a renewal by token after LOADING", {LATE_BY(LOADING), LATE_BY(LEFT_60S)}, true, 0, 60000},
        {"a renewal for less than the grant's TTL", {RENEWED}, false, 1000, 1000},
        {"a renewal for the grant's TTL", {RENEWED}, false, 0, TTL_MS},
        {"a renewal for more than the grant's TTL", {RENEWED}, false, 2 * TTL_MS, TTL_MS}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server server = {
            .answers = {[ASKED_ACQUIRE] = ANSWERS(GRANT), [ASKED_RENEW] = rows[i].renew}};
        struct rlock_config config = usual;
        struct rlock *lock;
        int64_t expires_ms = 0;
        int64_t before;
        char sent[24];
        int last;

        config.token = rows[i].by_token ? TOKEN : NULL;
        lock = open_lock(&server, config);
        if (lock == NULL)
            continue;
        if (!rows[i].by_token)
            (void)acquire_end(lock, "a grant");
        before = rlock_clock_ms();
        okf(rlock_renew(lock, rows[i].asks_ms, in(PATIENCE_MS), &expires_ms, NULL) == RLOCK_OK,
            "%s: the lease is renewed", rows[i].name);
        last = server_count(&server, ASKED_RENEW) - 1;
        is_end(expires_ms, rows[i].ttl_ms,
               last > 0 ? server_read_ms(&server, ASKED_RENEW, last - 1) : before,
               server_read_ms(&server, ASKED_RENEW, last), rows[i].name);
        /* by RLOCK_PROTOCOL_TIME_MS a renewal for 0 ms would end the lease at once */
        snprintf(sent, sizeof sent, "%lld",
                 (long long)(rows[i].by_token || rows[i].asks_ms != 0 ? rows[i].asks_ms : TTL_MS));
        is_str(server.log[atomic_load(&server.n_log) - 1].second, sent, rows[i].name);
        close_lock(&server, lock);
    }
}

/* ---- tests with several members ---- */

/* Returns when the first of members 1 and 2 had read its first request of this kind. */
static int64_t first_read_ms(enum asked_for what)
{
    int64_t one = server_read_ms(&several.server[0], what, 0);
    int64_t other = server_read_ms(&several.server[1], what, 0);

    return one < other ? one : other;
}

#define ACCEPTED "+OK\r\n"

/*
 * The third member closes each connection, so that the first two members are the majority. A member
 * that accepts the password late gets its request late. The lease ends first on the member that
 * read its request first.
 */
static void test_majority(void)
{
    static const struct {
        const char *name;
        const char *acquire[2], *confirm[2], *login[2]; /* of the first two members */
    } rows[] = {
        {"a majority", {GRANT, LATE_BY(GRANT)}, {CONFIRMED, CONFIRMED}, {ACCEPTED, ACCEPTED}},
        {"a majority, its first member asked late",
         {GRANT, GRANT},
         {CONFIRMED, CONFIRMED},
         {LATE_BY(ACCEPTED), ACCEPTED}},
        {"a majority, its second member asked late",
         {GRANT, GRANT},
         {CONFIRMED, CONFIRMED},
         {ACCEPTED, LATE_BY(ACCEPTED)}},
        {"a majority that confirms the greater fence",
         {LATE_BY(GRANT), LATE_BY(GRANT_5)},
         {LATE_BY(CONFIRMED), LATE_BY(CONFIRMED)},
         {ACCEPTED, ACCEPTED}}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rlock_config config = usual;
        int64_t before = rlock_clock_ms();
        int64_t expires_ms;

        config.password = "pw";
        quorum_begin();
        quorum_answers(ASKED_ACQUIRE, rows[i].acquire[0], rows[i].acquire[1], NULL);
        quorum_answers(ASKED_CONFIRM, rows[i].confirm[0], rows[i].confirm[1], NULL);
        quorum_answers(ASKED_OTHER, rows[i].login[0], rows[i].login[1], NULL);
        quorum_answers(ASKED_RENEW, RENEWED, LATE_BY(RENEWED), NULL);
        need(quorum_start(config, MEMBERS), "a quorum of three servers is opened");
        is_int(acquire(&expires_ms), RLOCK_OK, rows[i].name);
        is_end(expires_ms, TTL_MS, before, first_read_ms(ASKED_ACQUIRE), rows[i].name);
        before = rlock_clock_ms();
        is_int(quorum_renewal(&expires_ms, NULL), RLOCK_OK, rows[i].name);
        is_end(expires_ms, TTL_MS, before, first_read_ms(ASKED_RENEW), rows[i].name);
        quorum_end();
    }
}

/*
 * Acquire and confirm together may take as long as one reply (renew_ms, 1300 ms), counted from the
 * first acquire that was sent. Here the acquire is answered after 700 ms, and the confirm would be
 * answered after 1200 ms more. Returns whether the members were sent an undo.
 */
static bool is_undone(void)
{
    struct rlock_config config = usual;
    int64_t expires_ms;

    config.timing.renew_ms = 1300;
    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, AFTER(700, GRANT), AFTER(700, GRANT_5), AFTER(700, GRANT_5));
    quorum_answers(ASKED_CONFIRM, AFTER(1200, CONFIRMED), AFTER(1200, CONFIRMED),
                   AFTER(1200, CONFIRMED));
    quorum_answers(ASKED_UNDO, RELEASED, RELEASED, RELEASED);
    if (!ok(quorum_start(config, MEMBERS), "a quorum of three servers is opened"))
        return false;
    ok(acquire(&expires_ms) != RLOCK_OK);
    quorum_end();
    return quorum_count(ASKED_UNDO) > 0;
}

/*
 * On a busy machine the client may be so late that the confirmations are there when it checks the
 * time. So up to five tries are made, and one of them must end in an undo.
 */
static void test_both_rounds(void)
{
    bool has_undo = false;

    for (int tries = 0; tries < 5 && !has_undo; tries++)
        has_undo = is_undone();
    ok(has_undo, "a grant that is confirmed too late is undone");
}

/*
 * A member's start is the time of its reply to INFO minus its uptime. Counted from before the
 * request, the start would be too early, and the member would seem to remember leases that it may
 * have forgotten.
 */
static void test_uptime(void)
{
    int64_t before = rlock_clock_ms();
    int64_t expires_ms;

    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, HELD, LATE_BY(HELD), NULL);
    several.server[0].info = LATE_BY("$35\r\nrun_id:abcde\r\nuptime_in_seconds:5\r\n\r\n");
    need(quorum_start(usual, MEMBERS), "a quorum of three servers is opened");
    (void)acquire(&expires_ms);
    ok(strcmp(several.quorum.members.member[0].server.identity.run_id, "abcde") == 0 &&
       several.quorum.members.member[0].server.identity.started_ms >=
           before + LATE_MS - (5 - 1) * 1000);
    quorum_end();
}

int main(void)
{
    RUN_ALL(test_kinds, test_stopped, test_asked_again);
    RUN(test_redirected("MOVED"));
    RUN(test_redirected("ASK"));
    RUN_ALL(test_replicas, test_renew, test_majority, test_both_rounds, test_uptime);
    return done_testing();
}
