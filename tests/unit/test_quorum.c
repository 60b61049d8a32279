/* SPDX-License-Identifier: MIT */
/*
 * test_quorum: how the replies of one member or of three decide an acquire, a renewal or a release,
 * also when members reply late, with an error, or not at all.
 */
#include "ops/acquire_loop.h"
#include "quorums.h"
#include "tap.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <time.h>

#define TTL_MS 1000
#define FENCE_0 1700000000000000
#define FENCE_5 1700000000000005

static const struct rlock_config for_one = {
    .timing = {.ttl_ms = TTL_MS, .renew_ms = 300, .reply_ms = 300}, /* an acquire waits 300 ms */
    .holder = {.host = "h"},
    .connect_ms = 1000};
static const struct rlock_config for_three = {
    .timing = {.ttl_ms = 6000, .renew_ms = 2000, .reply_ms = 2000}, .connect_ms = 1000};

/* Starts three servers, whose answers are set. */
static bool start_three(void)
{
    return ok(quorum_start(for_three, MEMBERS), "a quorum of three servers is opened");
}

int64_t __real_rlock_clock_ms(void);
int64_t __wrap_rlock_clock_ms(void);

/* From then on rlock's clock advances by a tenth; 0: it isn't slow. */
static _Atomic int64_t slow_from_ms;

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
    int64_t from = slow_from_ms;

    return from == 0 ? now : from + (now - from) / 10;
}

enum operation { ACQUIRE, RENEW, RELEASE };

#define OTHER_SERVERS \
    "uses several servers (list 1234abcd) for this lock, and this rlock uses one server: "

/* One server's answer to an operation, and the wanted result. */
static const struct {
    enum operation operation;
    const char *answer;
    enum rlock_status st;
    const char *text; /* a part of the error text or of the warning */
    bool is_undone;   /* the member sends an undo */
    bool in_doubt;    /* the wanted quorum->in_doubt */
} rows[] = {
    {ACQUIRE, GRANT, RLOCK_OK, "", false, false},
    {ACQUIRE, HELD_BY("84", HOLDER " " OF_SEVERAL), RLOCK_BUSY, OTHER_SERVERS, false, false},
    {ACQUIRE, DONE_BY("84", HOLDER " " OF_SEVERAL), RLOCK_DONE, OTHER_SERVERS, false, false},
    {ACQUIRE, HELD_BY("67", HOLDER), RLOCK_BUSY, "", false, false},
    {ACQUIRE, HELD_BY("16", OF_SEVERAL), RLOCK_BUSY, "", false, false},
    {ACQUIRE, HELD, RLOCK_BUSY, "", false, false},
    {ACQUIRE, LATE, RLOCK_PENDING, "", false, false},
    {ACQUIRE, SUPERSEDED, RLOCK_SUPERSEDED, "", false, false},
    {ACQUIRE, LOADING, RLOCK_E_SERVER, "the server says: LOADING", false, false},
    {ACQUIRE, "-WRONGTYPE\r\n", RLOCK_E_REFUSED, "the server says: WRONGTYPE", false, false},
    {ACQUIRE, CLOSE, RLOCK_E_UNREACHABLE, "", false, true},
    {ACQUIRE, SILENT, RLOCK_E_UNREACHABLE, "no answer in time", true, true},
    {ACQUIRE, ":1\r\n", RLOCK_E_PROTOCOL, "unexpected reply to rlock's script", false, true},
    {ACQUIRE, "nonsense\r\n", RLOCK_E_PROTOCOL, "the server says: nonsense", false, false},
    {RENEW, RENEWED, RLOCK_OK, "", false, false},
    {RENEW, RESTORED, RLOCK_OK, "", false, false},
    {RENEW, GONE, RLOCK_GONE, "the server no longer has the lock", false, false},
    {RENEW, LOST_TO, RLOCK_LOST,
     "the lock is held by another program (\"foreign\", the key's value, not written by rlock)",
     false, false},
    {RENEW, "*4\r\n:0\r\n:1\r\n:400\r\n$42\r\n0123456789abcdef0123456789abcdef v1 try=0 \r\n",
     RLOCK_GONE, "no longer has the lock, and the next waiter has its turn", false, false},
    {RENEW, "*2\r\n:-5\r\n:1\r\n", RLOCK_RELEASED, "the lock was released", false, false},
    {RENEW, "*3\r\n:-6\r\n:1\r\n$34\r\nbroken user=u host=h pid=7 label=x\r\n", RLOCK_LOST,
     "the lock was broken by u@h, pid 7: x", false, false},
    {RENEW, "*2\r\n:-6\r\n:1\r\n", RLOCK_E_PROTOCOL, "unexpected reply to rlock's script", false,
     false},
    {RENEW, LATE, RLOCK_PENDING, "", false, false},
    {RENEW, LOADING, RLOCK_E_SERVER, "the server says: LOADING", false, false},
    {RENEW, CLOSE, RLOCK_E_UNREACHABLE, "", false, false},
    {RENEW, SILENT, RLOCK_E_UNREACHABLE, "no answer in time", false, false},
    {RELEASE, RELEASED, RLOCK_OK, "", false, false},
    {RELEASE, NOT_OURS, RLOCK_LOST, "", false, false},
    {RELEASE, ":-1\r\n", RLOCK_GONE, "", false, false},
    {RELEASE, SILENT, RLOCK_E_UNREACHABLE, "no answer in time", false, false},
    {RELEASE, "-NOPERM no\r\n", RLOCK_E_REFUSED, "the server says: NOPERM", false, false},
    {RELEASE, ":7\r\n", RLOCK_E_PROTOCOL, "unexpected reply to rlock's script", false, false},
};

static const char *const operation_names[] = {
    [ACQUIRE] = "an acquire", [RENEW] = "a renewal", [RELEASE] = "a release"};

static enum rlock_status operate(enum operation operation, struct rlock_deadline deadline,
                                 struct rlock_error *err)
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
        st = quorum_acquire(&several.quorum, &several.owner, deadline, &grant, &obstacle, &block,
                            err);
        if (st == RLOCK_BUSY)
            ok(obstacle.left_ms == 60000 && obstacle.holder.text[0] != '\0' && block == 50 &&
               obstacle.place == 2 && several.owner.ticket == FENCE_0);
        if (st == RLOCK_DONE)
            is_str(obstacle.holder.host, "web1", "RLOCK_DONE names who has done the work");
        if (st == RLOCK_OK)
            ok(strcmp(grant.token, several.owner.token) == 0 && grant.fence == FENCE_0);
        end = grant.expires_ms;
        break;
    case RENEW:
        st = quorum_renew(&several.quorum, &several.owner, deadline, &end, &restored, err);
        break;
    case RELEASE:
    default:
        return quorum_release(&several.quorum, &several.owner, deadline, &released, err);
    }
    if (st == RLOCK_OK)
        ok(end >= before + TTL_MS - 12 &&
           end <= server_read_ms(&several.server[0],
                                 operation == ACQUIRE ? ASKED_ACQUIRE : ASKED_RENEW, 0) +
                      TTL_MS - 12);
    return st;
}

static void note_warning(void *context, const char *text)
{
    snprintf(context, 700, "%s", text);
}

static void test_answers(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rlock_error err = {.text = ""};
        char warning[700] = "";
        enum rlock_status st;

        quorum_begin();
        quorum_answers(ASKED_ACQUIRE, rows[i].answer, NULL, NULL);
        quorum_answers(ASKED_RENEW, rows[i].answer, NULL, NULL);
        quorum_answers(ASKED_RELEASE, rows[i].answer, NULL, NULL);
        quorum_answers(ASKED_UNDO, SILENT, NULL, NULL);
        need(quorum_start(for_one, 1), "a quorum of one server is opened");
        several.quorum.members.observer.on_warning = note_warning;
        several.quorum.members.observer.context = warning;
        slow_clock(rows[i].st != RLOCK_E_UNREACHABLE);
        st = operate(rows[i].operation, in(60000), &err);
        okf(st == rows[i].st, "%s, answered %s, returns status %d, not %d",
            operation_names[rows[i].operation], rows[i].answer, (int)st, (int)rows[i].st);
        okf(strstr(warning[0] != '\0' ? warning : err.text, rows[i].text) != NULL &&
                (warning[0] != '\0') == (strcmp(rows[i].text, OTHER_SERVERS) == 0),
            "the error or the warning contains \"%s\": %s%s", rows[i].text, err.text, warning);
        ok(rows[i].st == RLOCK_E_UNREACHABLE || err.sys == 0);
        is_int(several.quorum.in_doubt, rows[i].in_doubt, rows[i].answer);
        quorum_end();
        slow_clock(false);
        /* an acquire without an answer is undone, by EVALSHA and by EVAL */
        is_int(quorum_count(ASKED_UNDO), rows[i].is_undone ? 2 : 0, rows[i].answer);
    }
}

static void test_undo(void)
{
    char prefix[80];
    int n;

    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, SILENT, NULL, NULL);
    quorum_answers(ASKED_UNDO, SILENT, NULL, NULL);
    need(quorum_start(for_one, 1), "a quorum of one server that never answers is opened");
    for (int i = 0; i < 3; i++)
        is_int(operate(ACQUIRE, in(200), NULL), RLOCK_E_UNREACHABLE);
    snprintf(prefix, sizeof prefix, "%s v1 try=2 ", several.owner.token);
    quorum_end();
    n = atomic_load(&several.server[0].n_log);
    if (!is_int(n, 9, "the server gets three acquires, and each time an undo by EVALSHA and EVAL"))
        return;
    is_str(several.server[0].log[3].second, "2", "the second acquire has the attempt number 2");
    for (int i = 4; i < 6; i++)
        ok(several.server[0].log[i].what == ASKED_UNDO &&
               strcmp(several.server[0].log[i].first, prefix) == 0,
           "two undos follow, which remove only attempt 2");
}

static void test_stop(void)
{
    int64_t before = rlock_clock_ms();
    int stop_fd = eventfd(1, EFD_CLOEXEC);
    enum operation operation;

    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, SILENT, NULL, NULL);
    quorum_answers(ASKED_RENEW, SILENT, NULL, NULL);
    quorum_answers(ASKED_RELEASE, SILENT, NULL, NULL);
    quorum_answers(ASKED_UNDO, SILENT, NULL, NULL);
    quorum_answers(ASKED_OTHER, SILENT, NULL, NULL);
    need(quorum_start(for_one, 1) && stop_fd >= 0);
    several.quorum.timing.renew_ms = several.quorum.timing.reply_ms = 60000;
    for (int i = 0; i<2; several.owner.without_scripts = ++i> 0)
        for (operation = ACQUIRE; operation <= RELEASE; operation++)
            okf(operate(operation, (struct rlock_deadline){RLOCK_NEVER, stop_fd}, NULL) ==
                    RLOCK_STOPPED,
                "%s returns RLOCK_STOPPED", operation_names[operation]);
    ok(rlock_clock_ms() - before < 30000, "the operations stop before their reply_ms of 60 s ends");
    close(stop_fd);
    quorum_end();
}

/* ---- tests with several members ---- */

#define GREATER_FENCE "*3\r\n:-2\r\n:1700000000000\r\n$16\r\n1700000000000009\r\n"
#define RESTARTED "$35\r\nrun_id:young\r\nuptime_in_seconds:1\r\n\r\n"
#define NO_INFO "-NOPERM this user has no permissions to run the 'info' command\r\n"
#define SAME_RUN_ID "$39\r\nrun_id:twin\r\nuptime_in_seconds:100000\r\n\r\n"
#define WRONGTYPE "-WRONGTYPE\r\n"

/*
 * A waiter is stopped in the moment in which it reads that the lock is held: the stop descriptor is
 * an epoll over its own socket. The server may have put it in the queue.
 */
static void test_stop_beside_reply(void)
{
    struct rlock_deadline deadline = {RLOCK_NEVER, epoll_create1(0)};

    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, HELD, NULL, NULL);
    need(quorum_start(for_one, 1), "a quorum of one server is opened");
    several.quorum.timing.renew_ms = several.quorum.timing.reply_ms = 60000;
    for (int i = 0; i < 2; i++) /* with the second one it asks for CLUSTER NODES */
        is_int(operate(ACQUIRE, in(60000), NULL), RLOCK_BUSY);
    ok(epoll_ctl(deadline.stop_fd, EPOLL_CTL_ADD, server_client(&several.server[0]),
                 &(struct epoll_event){.events = EPOLLIN}) == 0);
    is_int(operate(ACQUIRE, deadline, NULL), RLOCK_STOPPED);
    ok(several.quorum.in_doubt == 1, "the place in the queue is in doubt: the caller leaves it");
    close(deadline.stop_fd);
    quorum_end();
}

#define NONE EACH(NULL, NULL, NULL)
#define THREE(ANSWER) EACH(ANSWER, ANSWER, ANSWER)

/* The answers of three members to an acquire, to a confirm and to INFO; and the wanted result. */
static const struct {
    const char *acquire[MEMBERS], *confirm[MEMBERS], *info[MEMBERS];
    enum rlock_status st;
    uint64_t fence;
    int confirms, undos; /* how many all members get; -N: N or more */
    const char *text;    /* a part of the error text */
} votes[] = {
    {THREE(GRANT), NONE, NONE, RLOCK_OK, FENCE_0, 0, 0, ""},
    {EACH(GRANT, GRANT_5, HELD), EACH(CONFIRMED, CONFIRMED, GONE), NONE, RLOCK_OK, FENCE_5, -2, 0,
     ""},
    {EACH(GRANT, GRANT, CLOSE), THREE(CONFIRMED), NONE, RLOCK_OK, FENCE_0, -2, 0, ""},
    {EACH(GRANT, GRANT, HELD), EACH(CONFIRMED, GREATER_FENCE, GONE), NONE, RLOCK_PENDING, 0, -2, -2,
     ""},
    {EACH(GRANT, GRANT, HELD), EACH(CONFIRMED, GONE, GONE), NONE, RLOCK_PENDING, 0, -2, -2, ""},
    /* member 3 answers the acquire after it was decided, and the confirm counts all the same */
    {EACH(GRANT, GRANT_5, AFTER(300, GRANT)), EACH(CONFIRMED, LOADING, CONFIRMED), NONE, RLOCK_OK,
     FENCE_5, 3, 0, ""},
    /* member 3 never answers the acquire: it gets an undo, by EVALSHA and by EVAL, when the
     * confirm has failed */
    {EACH(GRANT, GRANT_5, SILENT), THREE(GONE), NONE, RLOCK_PENDING, 0, 2, 4, ""},
    {EACH(GRANT, HELD, HELD), NONE, NONE, RLOCK_BUSY, 0, 0, 1, ""},
    {EACH(HELD, HELD, CLOSE), NONE, NONE, RLOCK_BUSY, 0, 0, 0, ""},
    /* each member has another holder: none of them has a majority, and all must try again */
    {EACH(HELD_BY("1", "a"), HELD_BY("1", "b"), HELD_BY("1", "c")), NONE, NONE, RLOCK_PENDING, 0, 0,
     0, ""},
    {EACH(GRANT_PARENT, GRANT, HELD), NONE, NONE, RLOCK_BUSY, 0, 0, 2, ""},
    {EACH(GRANT, GRANT, GRANT_PARENT), EACH(CONFIRMED, CONFIRMED, GONE), NONE, RLOCK_OK, FENCE_0, 0,
     1, ""},
    {EACH(GRANT, LATE, LATE), NONE, NONE, RLOCK_PENDING, 0, 0, 1, ""},
    /* a mark of --once that a majority is without doesn't count; that of a missing majority may */
    {EACH(GRANT, HELD, DONE_BY("7", "foreign")), NONE, NONE, RLOCK_PENDING, 0, 0, 1, ""},
    {EACH(GRANT, LOADING, DONE_BY("7", "foreign")), NONE, NONE, RLOCK_DONE, 0, 0, 1, ""},
    {EACH(HELD, SUPERSEDED, HELD), NONE, NONE, RLOCK_SUPERSEDED, 0, 0, 0, ""},
    {EACH(GRANT, LOADING, LOADING), NONE, NONE, RLOCK_E_SERVER, 0, 0, 1,
     "2 of 3 members failed, 2 "},
    {EACH(GRANT, LOADING, WRONGTYPE), NONE, NONE, RLOCK_E_NO_QUORUM, 0, 0, 1, "LOADING"},
    {THREE(GRANT), NONE, EACH(RESTARTED, NULL, NULL), RLOCK_OK, FENCE_0, 0, 0, ""},
    {EACH(GRANT, GRANT, HELD), NONE, EACH(RESTARTED, NULL, NULL), RLOCK_E_NO_QUORUM, 0, 0, 2,
     "1 of 3 servers were restarted, and may have forgotten who holds the lock"},
    {EACH(GRANT, GRANT, HELD), NONE, EACH(NO_INFO, NULL, NULL), RLOCK_BUSY, 0, 0, 1, ""},
    {THREE(GRANT), NONE, EACH(SAME_RUN_ID, NULL, SAME_RUN_ID), RLOCK_E_CONFIG, 0, 0, 0,
     "are the same server"},
};

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

static void test_votes(void)
{
    for (size_t row = 0; row < sizeof votes / sizeof votes[0]; row++) {
        const char *const *acquire = votes[row].acquire;
        const char *const *confirm = votes[row].confirm;
        struct rlock_error err = {.text = ""};
        struct rlock_grant grant;
        char warning[700] = "";
        enum rlock_status st;

        quorum_begin();
        quorum_answers(ASKED_ACQUIRE, acquire[0], acquire[1], acquire[2]);
        quorum_answers(ASKED_CONFIRM, confirm[0], confirm[1], confirm[2]);
        quorum_answers(ASKED_UNDO, RELEASED, RELEASED, RELEASED);
        for (int i = 0; i < MEMBERS; i++)
            several.server[i].info = votes[row].info[i];
        need(start_three());
        several.quorum.members.observer.on_warning = note_warning;
        several.quorum.members.observer.context = warning;
        slow_clock(strcmp(acquire[2], SILENT) != 0 &&
                   strncmp(acquire[2], LATER, strlen(LATER)) != 0);
        st = quorum_attempt(in(60000), &grant, &err);
        slow_clock(false);
        is_str(warning, "", "no holder uses other servers: no warning");
        okf(st == votes[row].st && strstr(err.text, votes[row].text) != NULL &&
                grant.fence == votes[row].fence,
            "votes[%zu]: the acquire returns status %d, fence %llu, %s", row, (int)st,
            (unsigned long long)grant.fence, err.text);
        if (strstr(err.text, "count again in ") != NULL)
            ok(atof(strstr(err.text, "count again in ") + strlen("count again in ")) < 60);
        ok(quorum_has_heard(&several.quorum, ~0U) && !quorum_has_heard(&several.quorum, 0));
        quorum_end();
        is_about(quorum_count(ASKED_CONFIRM), votes[row].confirms, "confirms");
        is_about(quorum_count(ASKED_UNDO), votes[row].undos, "undos");
    }
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
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant grant = {.fence = 0};
    enum rlock_status st = RLOCK_BUSY;
    int64_t block_ms = 0;
    int tries;

    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, GRANT, HELD_FOR_LONG, AFTER(600, GRANT));
    quorum_answers(ASKED_CONFIRM, CONFIRMED, CONFIRMED, CONFIRMED);
    quorum_answers(ASKED_UNDO, RELEASED, RELEASED, RELEASED);
    need(start_three());
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
    quorum_end();
}

/*
 * Each member stores only a fence that is greater than all that it knows. If a member refuses the
 * greatest fence of the grants, the next confirm has the fence behind the one in its answer.
 */
static void test_greater_fence(void)
{
    static const char *const refused_once[] = {GREATER_FENCE, CONFIRMED, NULL};
    struct rlock_grant grant;

    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, GRANT, GRANT_5, GRANT_5);
    for (int i = 0; i < MEMBERS; i++)
        several.server[i].answers[ASKED_CONFIRM] = refused_once;
    need(start_three());
    is_int(quorum_attempt(in(60000), &grant, NULL), RLOCK_OK, "the second fence is confirmed");
    is_int((int64_t)grant.fence, 1700000000000010, "the grant has the fence that was confirmed");
    quorum_end();
    for (int i = 0; i < MEMBERS; i++) {
        const char *wanted = i == 0 ? " 1700000000000005 6000 1700000000000000 "
                                    : " 1700000000000005 6000 1700000000000005 ";

        /* two members may have decided before this one has read the confirm */
        okf(server_count(&several.server[i], ASKED_CONFIRM) == 0 ||
                server_has_read(&several.server[i], ASKED_CONFIRM, wanted),
            "a confirm has the fence and the one that member %d has drawn", i);
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
    struct itimerval alarm = {.it_value = {.tv_usec = STOPPED_FROM_MS * 1000}};
    struct sigaction action = {.sa_handler = be_stopped};
    struct rlock_grant taken;
    sigset_t alarms;

    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, GRANT, GRANT_5, AFTER(400, GRANT));
    quorum_answers(ASKED_CONFIRM, CONFIRMED, LOADING, LOADING);
    quorum_answers(ASKED_UNDO, RELEASED, RELEASED, RELEASED);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* the servers' threads inherit the mask */
    need(start_three());
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    setitimer(ITIMER_REAL, &alarm, NULL);
    ok(quorum_attempt(in(300), &taken, NULL) != RLOCK_OK);
    quorum_end();
}

#define NOT_THERE ":-1\r\n"
#define A(...) ANSWERS(__VA_ARGS__)
#define ONLY(ONE, TWO, THREE) EACH(A(ONE), A(TWO), A(THREE))
#define NO_RENEWAL NONE, RLOCK_OK, NULL

/*
 * How a lock ends whose members lose it. A release finds the lock lost or gone only if a majority
 * of the members doesn't have the lock; if too few members answer to know this, the release fails,
 * and is tried again. A member that doesn't hold the lock when it is asked again counts as one that
 * has lost the lock only if it can't have executed an earlier release. A member that has said that
 * it lost the lock counts so, too, if it doesn't answer any more.
 */
static const struct {
    const char *what;
    const char *const *renew[MEMBERS]; /* to one or two renewals; none: there is no renewal */
    enum rlock_status renewed;         /* the result of the last renewal */
    const char *repair; /* the first member's answer; NULL: it closes the connection */
    const char *const *release[MEMBERS]; /* none: no member answers */
    enum rlock_status released;
} ends[] = {
    {"a member has lost the lock, and another one doesn't answer", NO_RENEWAL,
     ONLY(RELEASED, NOT_THERE, CLOSE), RLOCK_OK},
    {"two members have lost the lock", NO_RENEWAL, ONLY(RELEASED, NOT_THERE, NOT_THERE),
     RLOCK_GONE},
    {"another owner has the lock on a member, and another one doesn't answer", NO_RENEWAL,
     ONLY(NOT_OURS, CLOSE, NOT_THERE), RLOCK_LOST},
    {"one member answers", NO_RENEWAL, ONLY(RELEASED, CLOSE, CLOSE), RLOCK_E_UNREACHABLE},
    {"a member has released the lock, and another one has lost it", NO_RENEWAL,
     EACH(A(RELEASED, NOT_THERE), A(LOADING, NOT_THERE), A(LOADING, RELEASED)), RLOCK_OK},
    {"a member may have released the lock, and another one has lost it", NO_RENEWAL,
     EACH(A(CLOSE, NOT_OURS), A(LOADING, NOT_THERE), A(LOADING, RELEASED)), RLOCK_OK},
    {"a member may have released the lock, and the two others have lost it", NO_RENEWAL,
     EACH(A(CLOSE, NOT_THERE), A(LOADING, NOT_THERE), A(LOADING, NOT_OURS)), RLOCK_LOST},
    /* member 3 reads the first release behind the renewal, and may execute it */
    {"a member was sent the release behind a pending renewal, and another one has lost the lock",
     ONLY(RENEWED, RENEWED, SILENT), RLOCK_OK, NULL,
     EACH(A(LOADING, NOT_THERE), A(LOADING, RELEASED), A(RELEASED, LOADING, NOT_THERE)), RLOCK_OK},
    {"two members have lost the lock, and the first of them answers only one release", NO_RENEWAL,
     EACH(A(NOT_OURS, CLOSE, NOT_THERE), A(LOADING, NOT_THERE), A(LOADING, CLOSE)), RLOCK_GONE},
    {"two members have lost the lock, and the first of them leaves out a release", NO_RENEWAL,
     EACH(A(NOT_OURS, CLOSE, NOT_OURS), A(LOADING, LOADING, RELEASED),
          A(LOADING, LOADING, NOT_THERE)),
     RLOCK_LOST},
    {"two members have lost the lock, and the first of them answers only the renewal",
     ONLY(LOST_TO, RENEWED, RENEWED), RLOCK_OK, NULL, ONLY(CLOSE, NOT_OURS, RELEASED), RLOCK_LOST},
    {"two members have lost the lock, and one was sent the release behind a pending renewal",
     EACH(A(LOST_TO, SILENT), A(RENEWED), A(RENEWED)), RLOCK_OK, NULL,
     EACH(A(RELEASED, NOT_OURS), A(NOT_THERE), A(RELEASED)), RLOCK_LOST},
    {"a member has lost the lock, and the others release it", ONLY(LOST_TO, RENEWED, RENEWED),
     RLOCK_OK, NULL, ONLY(CLOSE, RELEASED, RELEASED), RLOCK_OK},
    {"a member has lost the lock and confirms it again, then another one loses it",
     EACH(A(LOST_TO, RENEWED), A(RENEWED, RENEWED), A(RENEWED)), RLOCK_OK, NULL,
     ONLY(CLOSE, NOT_OURS, RELEASED), RLOCK_OK},
    {"a member has lost the lock and gets it again, then another one loses it",
     ONLY(GONE, RENEWED, RENEWED), RLOCK_OK, GRANT, ONLY(CLOSE, NOT_OURS, RELEASED), RLOCK_OK},
    {"a member has lost the lock and may have got it again, then another one loses it",
     ONLY(GONE, RENEWED, RENEWED), RLOCK_OK, NULL, ONLY(CLOSE, NOT_OURS, RELEASED), RLOCK_OK},
    {"a member has lost the lock to another owner, then another one loses it",
     ONLY(GONE, RENEWED, RENEWED), RLOCK_OK, HELD, ONLY(CLOSE, NOT_OURS, RELEASED), RLOCK_LOST},
    {"no member answers the first release of a lock that is known to be lost",
     ONLY(LOST_TO, LOST_TO, RENEWED), RLOCK_LOST, NULL,
     EACH(A(CLOSE), A(CLOSE, NOT_OURS), A(CLOSE, RELEASED)), RLOCK_LOST},
    {"a member has lost the lock and answers no more, then another one has lost it",
     EACH(A(LOST_TO, CLOSE), A(LOADING, GONE), A(LOADING, RENEWED)), RLOCK_GONE, NULL, NONE,
     RLOCK_GONE},
    {"two members have lost the lock one after the other, and the third never answers",
     EACH(A(GONE, CLOSE), A(LOADING, LOST_TO), A(LOADING, CLOSE)), RLOCK_LOST, NULL, NONE,
     RLOCK_GONE},
    {"a member has lost the lock and answers no more, another one was told of a release",
     EACH(A(LOST_TO, CLOSE), A(LOADING, FREED), A(LOADING, CLOSE)), RLOCK_RELEASED, NULL, NONE,
     RLOCK_E_UNREACHABLE},
    {"a member has lost the lock and answers no more, and one of the others does",
     EACH(A(LOST_TO, CLOSE), A(LOADING, CLOSE), A(LOADING, RENEWED)), RLOCK_E_UNREACHABLE, NULL,
     NONE, RLOCK_E_UNREACHABLE},
    {"a member has lost the lock and answers no more, and the others renew it twice",
     EACH(A(LOST_TO, CLOSE), A(RENEWED, RENEWED), A(RENEWED, RENEWED)), RLOCK_OK, NULL, NONE,
     RLOCK_E_UNREACHABLE},
};

static void test_ends(void)
{
    /*
     * After two members have answered, the third has from 20 to 100 ms. If it answers later, it may
     * have executed the release, and the outcome is another one.
     */
    slow_clock(true);
    for (size_t row = 0; row < sizeof ends / sizeof ends[0]; row++) {
        bool is_over = ends[row].released == RLOCK_E_UNREACHABLE || ends[row].release[0] == NULL;
        struct rlock_error err = {.text = ""};
        enum rlock_status st = RLOCK_OK;
        int64_t end;
        int n = 0;

        quorum_begin();
        quorum_answers(ASKED_ACQUIRE, ends[row].repair, NULL, NULL);
        for (int i = 0; i < MEMBERS; i++) {
            several.server[i].answers[ASKED_RENEW] = ends[row].renew[i];
            several.server[i].answers[ASKED_RELEASE] = ends[row].release[i];
        }
        need(start_three());
        for (int i = 0; ends[row].renew[0] != NULL && ends[row].renew[0][i] != NULL; i++)
            st = quorum_renewal(&end, &err);
        okf(st == ends[row].renewed, "%s: the last renewal returns status %d, %s", ends[row].what,
            (int)st, err.text);
        st = release_loop_run(&several.quorum, &several.owner, in(is_over ? 100 : 60000), &err);
        okf(st == ends[row].released, "%s: the release returns status %d, %s", ends[row].what,
            (int)st, err.text);
        quorum_end();
        while (ends[row].release[2] != NULL && ends[row].release[2][n] != NULL)
            n++;
        okf(server_count(&several.server[2], ASKED_RELEASE) >= n, "%s: member 3 is asked %d times",
            ends[row].what, n);
    }
    slow_clock(false);
}

/*
 * A member is still to answer the acquire when the renewer, which learns the members' nodes, is
 * stopped. The release must go behind the acquire, on the same connection: on another one it could
 * come first.
 */
static void test_release_behind_acquire(void)
{
    static const char time[] = "*2\r\n$10\r\n1700000000\r\n$1\r\n7\r\n";
    struct rlock_grant taken;
    unsigned members = 0;
    int stop_fd = eventfd(1, EFD_CLOEXEC);

    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, GRANT, GRANT, AFTER(400, GRANT));
    quorum_answers(ASKED_CONFIRM, CONFIRMED, CONFIRMED, CONFIRMED);
    quorum_answers(ASKED_RELEASE, RELEASED, RELEASED, RELEASED);
    quorum_answers(ASKED_OTHER, time, time, time);
    need(start_three() && stop_fd >= 0);
    is_int(quorum_attempt(in(60000), &taken, NULL), RLOCK_OK);
    quorum_learn_topology(&several.quorum, (struct rlock_deadline){RLOCK_NEVER, stop_fd});
    is_int(quorum_release(&several.quorum, &several.owner, in(60000), &members, NULL), RLOCK_OK);
    close(stop_fd);
    quorum_end();
    ok(server_count(&several.server[2], ASKED_RELEASE) > 0,
       "the release follows the acquire on the connection");
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
    {EACH(RENEWED, RENEWED, FREED), RLOCK_OK, ""},
    {EACH(RENEWED, FREED, CLOSE), RLOCK_E_NO_QUORUM, "1 of 3 members failed, 2 must agree: "},
    {EACH(FREED, FREED, CLOSE), RLOCK_RELEASED, "the lock was released"},
    {EACH(LOST_TO, FREED, CLOSE), RLOCK_RELEASED, "the lock was released"},
    {EACH(LOST_TO, LOST_TO, FREED), RLOCK_RELEASED, "the lock was released"},
    {EACH(GONE, FREED, RENEWED), RLOCK_RELEASED, "the lock was released"},
    {EACH(LOST_TO, LOST_TO, RENEWED), RLOCK_LOST, "another program"},
    {EACH(GONE, LOST_TO, CLOSE), RLOCK_LOST, "another program"},
    {EACH(GONE, CLOSE, GONE), RLOCK_GONE, "the server no longer has the lock"},
};

static void test_renewals(void)
{
    for (size_t row = 0; row < sizeof renewals / sizeof renewals[0]; row++) {
        const char *const *renew = renewals[row].renew;
        struct rlock_error err = {.text = ""};
        enum rlock_status st;
        int64_t end;

        quorum_begin();
        quorum_answers(ASKED_RENEW, renew[0], renew[1], renew[2]);
        need(start_three());
        st = quorum_renewal(&end, &err);
        okf(st == renewals[row].st && strstr(err.text, renewals[row].text) != NULL,
            "renewals[%zu]: the renewal returns status %d, %s", row, (int)st, err.text);
        quorum_end();
    }
}

/* What a member has said of a lost lock doesn't count for the next grant of the same handle. */
static void test_loss_before_acquire(void)
{
    struct rlock_grant grant;
    int64_t end;

    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, LOADING, GRANT, GRANT);
    quorum_answers(ASKED_CONFIRM, CONFIRMED, CONFIRMED, CONFIRMED);
    quorum_answers(ASKED_RENEW, LOST_TO, LOST_TO, RENEWED);
    quorum_answers(ASKED_RELEASE, CLOSE, RELEASED, NOT_THERE);
    need(start_three());
    is_int(quorum_renewal(&end, NULL), RLOCK_LOST, "a renewal finds the lock lost");
    is_int(quorum_attempt(in(60000), &grant, NULL), RLOCK_OK, "the lock is granted again");
    is_int(release_loop_run(&several.quorum, &several.owner, in(60000), NULL), RLOCK_OK);
    quorum_end();
}

/* A process that knows only the token doesn't write it on members that have lost it. */
static void test_adopted(void)
{
    for (int is_adopted = 0; is_adopted <= 1; is_adopted++) {
        int64_t end;

        quorum_begin();
        quorum_answers(ASKED_RENEW, GONE, RENEWED, RENEWED);
        quorum_answers(ASKED_ACQUIRE, GRANT, NULL, NULL);
        need(start_three());
        several.owner.is_adopted = is_adopted;
        is_int(quorum_renewal(&end, NULL), RLOCK_OK, "a majority has the lock");
        quorum_end();
        is_int(quorum_count(ASKED_ACQUIRE) > 0, !is_adopted, "only the owner repairs it");
    }
}

static void test_alone(void)
{
    struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX];
    const struct resp_value *reply = NULL;
    struct request request;
    struct quorum one;
    char moved[80];

    quorum_begin();
    need(start_three());
    snprintf(moved, sizeof moved, "-MOVED 1 %.50s\r\n", several.server[2].url + 8);
    quorum_answers(ASKED_OTHER, ":1\r\n", moved, ":3\r\n");
    is_str(several.quorum.members.client_name, "rlock:k");
    one = quorum_alone(&several.quorum, &several.quorum.members.member[1], pollfds);
    request_begin(&request, "PING");
    ok(quorum_ask(&one, &request, in(60000), &reply, NULL) == RLOCK_OK && resp_int(reply) == 3,
       "the server is asked that the member names");
    is_int(quorum_count(ASKED_OTHER), 2, "no other member is asked");
    quorum_end();
}

static const char *hash_of(const char *const *urls, size_t n)
{
    static char hash[2][16];
    static size_t made;
    struct rlock_config config = {.urls = urls, .n_urls = n};
    struct quorum quorum;
    char *text = hash[made++ % 2];

    is_int(quorum_open(&quorum, &config, NULL), RLOCK_OK);
    snprintf(text, sizeof hash[0], "%s", quorum.members.hash);
    quorum_close(&quorum);
    return text;
}

static void test_members_hash(void)
{
    static const char *const urls[] = {"redis://h", "redis://i/3", "unix:///s"};
    static const char *const alike[] = {"redis://i/3", "unix:///s", "redis://:pw@h:6379/0"};
    static const char *const other[] = {"redis://i/4", "unix:///s", "redis://h"};

    static const char *const most[RLOCK_MEMBERS_MAX] = {"redis://a", "redis://b", "redis://c",
                                                        "redis://d", "redis://e", "redis://f",
                                                        "redis://g", "redis://h", "redis://i"};

    ok(strlen(hash_of(most, RLOCK_MEMBERS_MAX)) == 8, "so many servers are allowed");
    ok(strlen(hash_of(urls, 3)) == 8 && strcmp(hash_of(urls, 3), hash_of(alike, 3)) == 0);
    ok(strcmp(hash_of(urls, 3), hash_of(other, 3)) != 0);
    is_str(hash_of(urls, 1), "", "a lock of one server has no list of servers");
}

int main(void)
{
    RUN_ALL(test_answers, test_undo, test_stop, test_stop_beside_reply, test_votes);
    RUN(test_split(false));
    RUN(test_split(true));
    RUN_ALL(test_greater_fence, test_late_grant_is_no_confirmation, test_release_behind_acquire,
            test_ends, test_loss_before_acquire, test_members_hash);

    slow_clock(true);
    RUN_ALL(test_renewals, test_adopted, test_alone);
    return done_testing();
}
