/* SPDX-License-Identifier: MIT */
/* test_quorum: what a round makes of the answers it gets, and of those it doesn't. */
#include "clock.h"
#include "quorum.h"
#include "server.h"
#include "tap.h"

static const char *const the_key = "k";

#define CONNECT_MS 1000
#define REPLY_MS 300
#define TTL_MS 1000
#define RENEW_MS 300 /* an acquire waits so long for its reply, and no longer */

struct round_of {
    struct server server;
    struct quorum quorum;
    struct lease lease;
};

static bool open_round(struct round_of *round)
{
    const char *url = round->server.url;
    struct rlock_config config = {
        .urls = &url,
        .n_urls = 1,
        .keys = &the_key,
        .n_keys = 1,
        .timing = {.ttl_ms = TTL_MS, .renew_ms = RENEW_MS, .reply_ms = REPLY_MS},
        .holder = {.host = "h"},
        .connect_ms = CONNECT_MS,
    };

    return server_start(&round->server) && lease_open(&round->lease, &config, NULL) == RLOCK_OK &&
           roster_open(&round->quorum, &config, NULL) == RLOCK_OK;
}

static void close_round(struct round_of *round)
{
    roster_close(&round->quorum);
    lease_close(&round->lease);
    server_stop(&round->server);
}

static struct rlock_until in(int64_t ms)
{
    return (struct rlock_until){rlock_clock_ms() + ms, -1};
}

enum operation { ACQUIRE, RENEW, RELEASE };

static const struct {
    enum operation operation;
    const char *answer;
    enum rlock_status st;
    const char *text;
    bool is_undone;
    bool in_doubt;
} rows[] = {
    {ACQUIRE, GRANT, RLOCK_OK, "", false, false},
    {ACQUIRE, HELD, RLOCK_BUSY, "", false, false},
    {ACQUIRE, LATE, RLOCK_PENDING, "", false, false},
    {ACQUIRE, SUPERSEDED, RLOCK_SUPERSEDED, "", false, false},
    {ACQUIRE, LOST_TO, RLOCK_E_PROTOCOL, "not what the script returns", false, true},
    {ACQUIRE, LOADING, RLOCK_E_SERVER, "the server says: LOADING", false, false},
    {ACQUIRE, "-WRONGTYPE\r\n", RLOCK_E_REFUSED, "the server says: WRONGTYPE", false, false},
    {ACQUIRE, CLOSE, RLOCK_E_UNREACHABLE, "", false, true},
    {ACQUIRE, SILENT, RLOCK_E_UNREACHABLE, "no answer in time", true, true},
    {ACQUIRE, "*3\r\n:1\r\n", RLOCK_E_UNREACHABLE, "no answer in time", true, true},
    {ACQUIRE, ":1\r\n", RLOCK_E_PROTOCOL, "not what the script returns", false, true},
    {ACQUIRE, "nonsense\r\n", RLOCK_E_PROTOCOL, "not the protocol", false, true},
    {RENEW, RENEWED, RLOCK_OK, "", false, false},
    {RENEW, RESTORED, RLOCK_OK, "", false, false},
    {RENEW, GONE, RLOCK_LOST, "it is gone from the server", false, false},
    {RENEW, LOST_TO, RLOCK_LOST, "it is held by another program (\"foreign\")", false, false},
    {RENEW, "*2\r\n:-5\r\n:1\r\n", RLOCK_RELEASED, "it was released", false, false},
    {RENEW, LATE, RLOCK_PENDING, "", false, false},
    {RENEW, LOADING, RLOCK_E_SERVER, "the server says: LOADING", false, false},
    {RENEW, CLOSE, RLOCK_E_UNREACHABLE, "", false, false},
    {RENEW, SILENT, RLOCK_E_UNREACHABLE, "no answer in time", false, false},
    {RENEW, "$5\r\nhello\r\n", RLOCK_E_PROTOCOL, "not what the script returns", false, false},
    {RELEASE, RELEASED, RLOCK_OK, "", false, false},
    {RELEASE, NOT_OURS, RLOCK_LOST, "", false, false},
    {RELEASE, ":-1\r\n", RLOCK_GONE, "", false, false},
    {RELEASE, "-READONLY\r\n", RLOCK_E_SERVER, "the server says: READONLY", false, false},
    {RELEASE, SILENT, RLOCK_E_UNREACHABLE, "no answer in time", false, false},
    {RELEASE, ":7\r\n", RLOCK_E_PROTOCOL, "not what the script returns", false, false},
};

static enum rlock_status operate(struct round_of *round, enum operation operation,
                                 struct rlock_until until, struct rlock_error *err)
{
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant grant = {.fence = 0};
    int64_t before = rlock_clock_ms();
    enum rlock_status st;
    bool restored = false;
    int64_t block = 0;
    int64_t end = 0;

    switch (operation) {
    case ACQUIRE:
        st = quorum_acquire(&round->quorum, &round->lease, until, &grant, &obstacle, &block, err);
        if (st == RLOCK_BUSY)
            ok(obstacle.left_ms == 60000 && strstr(obstacle.holder, "foreign") != NULL,
               "it is told who is in the way, and for how long");
        if (st == RLOCK_BUSY)
            ok(block == 50 && obstacle.place == 2 && round->lease.ticket == 1700000000000000,
               "and how to wait, with which place in line");
        if (st != RLOCK_OK)
            return st;
        is_str(grant.token, round->lease.token, "a grant has the token");
        ok(grant.fence == 1700000000000000, "and the fence");
        end = grant.until_ms;
        break;
    case RENEW:
        st = quorum_renew(&round->quorum, &round->lease, until, &end, &restored, err);
        break;
    case RELEASE:
    default:
        return quorum_release(&round->quorum, &round->lease, until, err);
    }
    if (st == RLOCK_OK)
        ok(end >= before + TTL_MS - 12 && end <= rlock_clock_ms() + TTL_MS - 12,
           "it ends a TTL after it was asked for, less the drift");
    return st;
}

static void test_answers(void)
{
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct round_of round = {.server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(rows[i].answer),
                                                        [ASKED_RENEW] = ANSWERS(rows[i].answer),
                                                        [ASKED_RELEASE] = ANSWERS(rows[i].answer),
                                                        [ASKED_UNDO] = ANSWERS(SILENT)}}};
        struct rlock_error err = {.text = ""};

        if (!ok(open_round(&round), "a server"))
            continue;
        okf(operate(&round, rows[i].operation, in(60000), &err) == rows[i].st,
            "operation %d answered %s", rows[i].operation, rows[i].answer);
        okf(strstr(err.text, rows[i].text) != NULL, "says why: %s", err.text);
        okf(round.quorum.in_doubt == rows[i].in_doubt, "%s whether it was executed",
            rows[i].in_doubt ? "it isn't known" : "it is known");
        close_round(&round);
        okf(server_count(&round.server, ASKED_UNDO) == rows[i].is_undone,
            "what may have been executed and is given up is undone: %d", rows[i].is_undone);
    }
}

static void test_undo(void)
{
    struct round_of round = {
        .server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(SILENT), [ASKED_UNDO] = ANSWERS(SILENT)}}};
    char prefix[80];
    int n;
    int i;

    if (!ok(open_round(&round), "a server that never answers"))
        return;
    for (i = 0; i < 3; i++)
        is_int(operate(&round, ACQUIRE, in(200), NULL), RLOCK_E_UNREACHABLE, "is asked");
    snprintf(prefix, sizeof prefix, "%s v1 try=2 ", round.lease.token);
    close_round(&round);
    n = atomic_load(&round.server.n_log);
    is_int(n, 6, "three times, with an undo behind each");
    if (n == 6) {
        is_str(round.server.log[2].second, "2", "the second attempt says which it is");
        is_int(round.server.log[3].what, ASKED_UNDO, "its undo comes behind it");
        is_str(round.server.log[3].first, prefix, "and undoes this attempt alone");
    }
}

static void test_stop(void)
{
    struct round_of round = {.server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(SILENT),
                                                    [ASKED_RENEW] = ANSWERS(SILENT),
                                                    [ASKED_RELEASE] = ANSWERS(SILENT),
                                                    [ASKED_UNDO] = ANSWERS(SILENT)}}};
    int64_t before = rlock_clock_ms();
    enum operation operation;
    int stop[2];

    if (!ok(open_round(&round) && pipe(stop) == 0 && write(stop[1], "", 1) == 1, "a word to stop"))
        return;
    round.quorum.timing.renew_ms = round.quorum.timing.reply_ms = 60000;
    for (operation = ACQUIRE; operation <= RELEASE; operation++)
        okf(operate(&round, operation, (struct rlock_until){RLOCK_NEVER, stop[0]}, NULL) ==
                RLOCK_STOPPED,
            "stops operation %d", operation);
    ok(rlock_clock_ms() - before < 30000, "at once, and not when it has taken too long");
    close(stop[0]);
    close(stop[1]);
    close_round(&round);
}

static void test_open(void)
{
    const char *const urls[] = {"redis://h", "redis://i", NULL};
    struct rlock_config config = {.urls = urls};
    struct quorum quorum;

    for (config.n_urls = 0; config.n_urls <= 2; config.n_urls += 2) {
        okf(roster_open(&quorum, &config, NULL) == RLOCK_E_CONFIG, "%zu servers are not one",
            config.n_urls);
        roster_close(&quorum);
    }
}

int main(void)
{
    test_answers();
    test_undo();
    test_stop();
    test_open();
    return done_testing();
}
