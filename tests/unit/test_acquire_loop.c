/* SPDX-License-Identifier: MIT */
/* test_acquire_loop: rlock_acquire() calls its observer when it should. */
#include "server.h"
#include "tap.h"

#include <rlock_admin.h>
#include <sys/timerfd.h>

#define FAR_MS 1000000
#define BLOCKS AFTER(150, NOT_WOKEN) /* the BLPOP times out after 150 ms */

static const char *const the_key = "k";

/* What the callbacks of the last wait_until() have counted, and what it has returned. */
static struct {
    int n_shown;       /* calls of on_blocked() with an obstacle */
    int n_again;       /* calls of on_blocked() with the seen_ms of the previous call */
    int n_ends;        /* calls of on_blocked(NULL) */
    int n_after_end;   /* calls of on_blocked() after on_blocked(NULL) */
    int64_t seen_ms;   /* obstacle->seen_ms of the last call */
    int64_t next_ms;   /* from then until on_blocked() was told of `is_next` */
    int n_sent;        /* calls of on_sent() */
    int n_unreachable; /* calls of on_unreachable() */
    bool in_doubt;     /* obstacle->in_doubt at the end */
    int n_troubles;    /* calls of on_blocked() that tell a trouble */
    char warning[700]; /* the text of the last warning */
    enum rlock_status trouble;
    struct rlock_error err;
} seen;

static void see(void *context, const struct rlock_obstacle *obstacle)
{
    (void)context;
    seen.n_after_end += seen.n_ends;
    seen.n_ends += obstacle == NULL;
    if (obstacle == NULL)
        return;
    seen.n_shown++;
    seen.n_troubles += obstacle->trouble.status != RLOCK_OK;
    seen.n_again += obstacle->seen_ms == seen.seen_ms;
    seen.seen_ms = obstacle->seen_ms;
    if (obstacle->is_next)
        seen.next_ms = rlock_clock_ms() - obstacle->seen_ms;
}

static void count_sent(void *context)
{
    (void)context;
    seen.n_sent++;
}

static void count_unreachable(void *context)
{
    (void)context;
    seen.n_unreachable++;
}

static void note_warning(void *context, const char *text)
{
    (void)context;
    snprintf(seen.warning, sizeof seen.warning, "%s", text);
}

/* Where wait_until() looks the server's password up; NULL: the server has none. */
static const struct rlock_password_source *password_source;

/*
 * Calls rlock_acquire() on `server` with this deadline, with an observer that is called every
 * `every_ms`; -1: without.
 */
static enum rlock_status wait_until(struct server *server, struct rlock_deadline deadline,
                                    int64_t every_ms)
{
    struct rlock_config config = {
        .keys = &the_key,
        .n_keys = 1,
        .timing = {.ttl_ms = 3000, .renew_ms = 1000, .reply_ms = 1000, .kill_margin_ms = 250},
        .connect_ms = 1000,
        .observer = {.on_blocked = every_ms >= 0 ? see : NULL,
                     .on_warning = note_warning,
                     .on_sent = count_sent,
                     .on_unreachable = count_unreachable,
                     .every_ms = every_ms >= 0 ? every_ms : 1},
        .password_source = password_source,
    };
    struct rlock_obstacle obstacle = {.in_doubt = false};
    struct rlock_grant grant;
    struct rlock *lock = NULL;
    enum rlock_status st = RLOCK_E_SYSTEM;

    memset(&seen, 0, sizeof seen);
    if (server_open(server, config, &lock, NULL) == RLOCK_OK) {
        st = rlock_acquire(lock, deadline, &grant, &obstacle, &seen.err);
        seen.in_doubt = obstacle.in_doubt;
        seen.trouble = obstacle.trouble.status;
    }
    rlock_close(lock);
    server_stop(server);
    return st;
}

/*
 * The holder is shown for each reply, and again after every_ms; without an observer nothing is. A
 * warning that the holder uses several servers is passed on.
 */
static void test_observed(void)
{
    static const int64_t every_ms[] = {-1, 0, FAR_MS, 10};

    for (size_t i = 0; i < sizeof every_ms / sizeof every_ms[0]; i++) {
        struct server server = {
            .answers = {[ASKED_ACQUIRE] = ANSWERS(HELD_BY("84", HOLDER " " OF_SEVERAL)),
                        [ASKED_WAKE] = ANSWERS(BLOCKS),
                        [ASKED_LEAVE] = ANSWERS(":0\r\n")}};

        is_int(wait_until(&server, in(500), every_ms[i]), RLOCK_TIMEOUT);
        is_int(seen.n_sent, server_count(&server, ASKED_ACQUIRE));
        ok(strstr(seen.warning, "uses several servers (list 1234abcd)") != NULL);
        if (every_ms[i] < 0)
            continue;
        ok(seen.n_shown > 0 && (seen.n_again > 0) == (every_ms[i] == 10));
        is_int(seen.n_shown - seen.n_again, server_count(&server, ASKED_ACQUIRE));
        ok(seen.n_ends == 1 && seen.n_after_end == 0);
    }
}

/* The third in the queue, told to be next, doesn't fork its guard while the holder ahead starts. */
static void test_next_in_turn(void)
{
    static const char soon[] = "*2\r\n$1\r\nw\r\n$6\r\nsoon 9\r\n";
    static const char third[] =
        "*8\r\n" HELD_BY_FOREIGN ":50\r\n$16\r\n1700000000000000\r\n:3\r\n:1\r\n";
    struct server server = {
        .answers = {
            [ASKED_ACQUIRE] = ANSWERS(third, GRANT), [ASKED_WAKE] = ANSWERS(soon, NOT_WOKEN)}};

    is_int(wait_until(&server, in(20000), FAR_MS), RLOCK_OK);
    ok(seen.n_shown == 2 && seen.next_ms >= 2);
}

/* A waiter that is to ask after 50 ms asks then, though a wake-up tells it to ask later. */
static void test_told_to_ask_later(void)
{
    struct server server = {
        .answers = {[ASKED_ACQUIRE] = ANSWERS(HELD, GRANT),
                    [ASKED_WAKE] = ANSWERS("*2\r\n$1\r\nw\r\n$9\r\nsoon 9000\r\n", NOT_WOKEN)}};
    int64_t began_ms = rlock_clock_ms();

    is_int(wait_until(&server, in(20000), FAR_MS), RLOCK_OK);
    okf(rlock_clock_ms() < began_ms + 8000, "the waiter asks after %lld ms",
        (long long)(rlock_clock_ms() - began_ms));
}

static void test_trouble(void)
{
    struct server lost = {.answers = {[ASKED_ACQUIRE] = ANSWERS(CLOSE, GRANT)}};
    struct server loads = {.answers = {[ASKED_ACQUIRE] = ANSWERS(HELD, LOADING, LOADING, GRANT),
                                       [ASKED_WAKE] = ANSWERS(NOT_WOKEN)}};

    is_int(wait_until(&lost, in(20000), -1), RLOCK_OK);
    is_int(seen.n_unreachable, 1, "on_unreachable is called before the waiter connects again");
    is_int(wait_until(&loads, in(20000), 0), RLOCK_OK);
    ok(seen.n_troubles > 0, "the observer is told of the server's error");
    ok(seen.n_shown > seen.n_troubles, "the observer is told of the holder, too");
}

/* The stop descriptor becomes readable while the waiter blocks. */
static void test_stopped(void)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(HELD),
                                        [ASKED_WAKE] = ANSWERS(SILENT),
                                        [ASKED_LEAVE] = ANSWERS(":0\r\n")}};
    struct itimerspec at = {.it_value = {.tv_nsec = 300000000}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

    ok(timer >= 0 && timerfd_settime(timer, 0, &at, NULL) == 0, "a timer is the stop descriptor");
    is_int(wait_until(&server, (struct rlock_deadline){RLOCK_NEVER, timer}, -1), RLOCK_STOPPED,
           "a waiter ends when its stop descriptor is readable");
    ok(server_count(&server, ASKED_ACQUIRE) <= 1, "a stopped waiter makes no further attempt");
    close(timer);
}

/*
 * The lock is in doubt if rlock doesn't know whether an acquire was executed, and couldn't undo the
 * acquire.
 */
static const struct {
    const char *name;
    const char *const *acquire;
    const char *const *leave;
    const char *wake;
    int64_t within_ms;
    enum rlock_status st;
    bool in_doubt;
} doubts[] = {
    {"no reply to the acquire, none to the undo", ANSWERS(SILENT), ANSWERS(SILENT), BLOCKS, 300,
     RLOCK_E_UNREACHABLE, true},
    {"no reply to the acquire, but one to the undo", ANSWERS(CLOSE), ANSWERS(RELEASED), BLOCKS, 300,
     RLOCK_E_UNREACHABLE, false},
    {"the server refuses the second acquire of a waiter, and closes the connection then",
     ANSWERS(HELD, "-NOPERM this user has no permissions\r\n"), ANSWERS(CLOSE), BLOCKS, 20000,
     RLOCK_E_REFUSED, false},
    {"the lock is granted", ANSWERS(GRANT), ANSWERS(CLOSE), BLOCKS, 20000, RLOCK_OK, false},
    {"the lock is held, and the server closes the connection then", ANSWERS(HELD), ANSWERS(CLOSE),
     BLOCKS, 300, RLOCK_TIMEOUT, false},
    {"no reply to the second acquire, none to the undo", ANSWERS(LOADING, CLOSE), ANSWERS(CLOSE),
     BLOCKS, 500, RLOCK_E_UNREACHABLE, true},
    {"the server has no BLPOP, so the waiter asks until its time ends", ANSWERS(HELD),
     ANSWERS(":0\r\n"), "-ERR unknown command 'BLPOP'\r\n", 300, RLOCK_TIMEOUT, false},
};

static void test_in_doubt(void)
{
    for (size_t i = 0; i < sizeof doubts / sizeof doubts[0]; i++) {
        struct server server = {.answers = {[ASKED_ACQUIRE] = doubts[i].acquire,
                                            [ASKED_WAKE] = ANSWERS(doubts[i].wake),
                                            [ASKED_UNDO] = doubts[i].leave,
                                            [ASKED_LEAVE] = doubts[i].leave}};
        bool has_heard = strcmp(doubts[i].acquire[0], SILENT) != 0;

        is_int(wait_until(&server, in(doubts[i].within_ms), 1), doubts[i].st, doubts[i].name);
        is_int(seen.in_doubt, doubts[i].in_doubt, "obstacle->in_doubt has the value in the table");
        ok((strstr(seen.err.text, "may stay taken") != NULL) == (doubts[i].in_doubt && has_heard),
           "the error tells that the lock may stay taken, if the server has ever sent a byte");
        ok(seen.n_ends == 1 && (has_heard || seen.n_shown == 0),
           "an obstacle is shown only after a reply, and at last that the wait is over");
        if (doubts[i].wake[0] == '-')
            is_int(seen.trouble, RLOCK_OK, "a refused BLPOP isn't told as what keeps the lock");
    }
}

/* Starts a lookup that has ended already: `context` is a descriptor that is readable. */
static int ask_password(void *context, int64_t deadline_ms, struct rlock_error *err)
{
    (void)deadline_ms;
    (void)err;
    return *(const int *)context;
}

static enum rlock_status take_password(void *context, char *password, size_t room,
                                       struct rlock_error *err)
{
    (void)context;
    (void)err;
    snprintf(password, room, "pw");
    return RLOCK_OK;
}

/*
 * While a waiter waits, the server's password changes, and so the server refuses the one that was
 * looked up. The waiter warns once, and looks the password up again until the server accepts it.
 */
static void test_changed_password(void)
{
    static const char refused[] = "-WRONGPASS invalid username-password pair\r\n";
    struct server server = {
        .answers = {[ASKED_ACQUIRE] = ANSWERS(HELD, GRANT),
                    [ASKED_WAKE] = ANSWERS(CLOSE),
                    [ASKED_OTHER] = ANSWERS("+OK\r\n", refused, refused, "+OK\r\n")}};
    struct rlock_password_source source = {.ask = ask_password, .take = take_password};
    int ended[2];

    if (pipe(ended) != 0)
        return;
    close(ended[1]); /* makes the other end readable */
    source.context = &ended[0];
    password_source = &source;
    is_int(wait_until(&server, in(20000), -1), RLOCK_OK);
    okf(strstr(seen.warning, "WRONGPASS") != NULL &&
            strstr(seen.warning, "; rlock looks the password up again until the wait is over") !=
                NULL,
        "a warning tells that the password was refused: %s", seen.warning);
    password_source = NULL;
    close(ended[0]);
}

static const struct rlock_config usual_config = {
    .keys = &the_key,
    .n_keys = 1,
    .timing = {.ttl_ms = 30000, .renew_ms = 9000, .reply_ms = 1000, .kill_margin_ms = 300}};

/*
 * Too few replicas have the first grant. A caller that waits gives the lock back, and returns to
 * its place in the queue: the ticket is the fence of that grant.
 */
static void test_waits_for_replicas(enum rlock_queue queue, const char *ticket)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(GRANT),
                                        [ASKED_UNDO] = ANSWERS(RELEASED),
                                        /* WAIT, the return to the queue if there is one, WAIT */
                                        [ASKED_OTHER] = ANSWERS(":0\r\n", ":1\r\n")}};
    struct rlock_config config = usual_config;
    struct rlock_grant grant = {.fence = 0};
    struct rlock *lock = NULL;
    int i;

    config.replicas = 1;
    config.queue = queue;
    need(server_open(&server, config, &lock, NULL) == RLOCK_OK, "a handle is opened");
    is_int(rlock_acquire(lock, in(20000), &grant, NULL, NULL), RLOCK_OK,
           "a waiter is granted the lock once a replica has the grant");
    rlock_close(lock);
    server_stop(&server);
    is_int(server_count(&server, ASKED_OTHER), queue == RLOCK_QUEUE_NONE ? 2 : 3);
    is_int(server_count(&server, ASKED_UNDO), queue == RLOCK_QUEUE_NONE);
    is_int(server_count(&server, ASKED_ACQUIRE), 2, "the waiter has made two attempts");
    is_int(server_count(&server, ASKED_LEAVE), 0, "a waiter that has the lock leaves nothing");
    for (i = atomic_load(&server.n_log) - 1; i > 0 && server.log[i].what != ASKED_ACQUIRE; i--)
        continue;
    okf(strstr(server.log[i].text, ticket) != NULL, "the second attempt has the words \"%s\": %s",
        ticket, server.log[i].text);
}

/* A caller that doesn't wait releases the lock again. */
static void test_lacks_replicas(void)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(GRANT),
                                        [ASKED_OTHER] = ANSWERS(":0\r\n"),
                                        [ASKED_LEAVE] = ANSWERS(RELEASED)}};
    struct rlock_config config = usual_config;
    struct rlock_grant grant = {.fence = 0};
    struct rlock_error err = {.text = ""};
    struct rlock *lock = NULL;

    config.replicas = 1;
    need(server_open(&server, config, &lock, NULL) == RLOCK_OK, "a handle is opened");
    is_int(rlock_acquire(lock, in(0), &grant, NULL, &err), RLOCK_E_REPLICAS,
           "a caller that doesn't wait is told that replicas lack the grant");
    okf(strstr(err.text, "the lock was released again") != NULL, "the lock is free: %s", err.text);
    rlock_close(lock);
    server_stop(&server);
    is_int(server_count(&server, ASKED_LEAVE), 1, "the grant was taken back");
    is_int(server_count(&server, ASKED_OTHER), 1, "the caller doesn't join the queue again");
}

int main(void)
{
    RUN(test_waits_for_replicas(RLOCK_QUEUE_FIFO, " 1700000000000000 x "));
    RUN(test_waits_for_replicas(RLOCK_QUEUE_NONE, "  x "));
    RUN_ALL(test_lacks_replicas, test_changed_password, test_observed, test_next_in_turn,
            test_told_to_ask_later, test_trouble, test_stopped, test_in_doubt);
    return done_testing();
}
