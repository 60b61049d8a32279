/* SPDX-License-Identifier: MIT */
/* test_renewer: when the renewer sends a renewal, and which events it writes. */
#include "ops/renewer.h"
#include "quorums.h"
#include "tap.h"

#include <fcntl.h>

#define TTL_MS 1000
#define LEASE_MS (TTL_MS - TTL_MS / 100 - 2) /* from sent_ms to expires_ms */
#define REPLY_MS 20000 /* a server that replies late must not cause an event */
#define SILENT_MS 1500 /* the same where the server is to be silent */

static struct renewer renewer;
static int events;
static int64_t granted_ms; /* when keep() started the renewer */

/*
 * Starts the server, and a renewer for a lease that is granted now. The renewer renews after
 * `renew_ms`.
 */
static bool keep(int64_t renew_ms, int64_t reply_ms)
{
    struct rlock_config config = {
        .timing = {.ttl_ms = TTL_MS, .renew_ms = renew_ms, .reply_ms = reply_ms},
        .holder = {.host = "h"},
        .connect_ms = REPLY_MS,
    };

    renewer = (struct renewer){.is_running = false};
    granted_ms = rlock_clock_ms();
    return ok(quorum_start(config, 1) && renewer_start(&renewer, &several.quorum, &several.owner,
                                                       granted_ms, &events, NULL) == RLOCK_OK,
              "a renewer starts");
}

/* The server gives these answers to renewals. */
static void answer(const char *const *answers)
{
    quorum_begin();
    several.server[0].answers[ASKED_RENEW] = answers;
}

static void end(void)
{
    renewer_stop(&renewer);
    quorum_end();
}

/* Waits until the server has read so many renewals. */
static void wait_for_renewals(int n)
{
    while (quorum_count(ASKED_RENEW) < n)
        poll(NULL, 0, 1);
}

/*
 * Each answer comes 50 ms after the server has read the renewal, so that an end of the lease which
 * was counted from the answer would be too late.
 */
static void test_renewals(void)
{
    static const enum rlock_kept wanted[] = {RLOCK_KEPT_RENEWED, RLOCK_KEPT_RESTORED,
                                             RLOCK_KEPT_RENEWED};
    int64_t started = rlock_clock_ms();
    int64_t before = started;

    answer(ANSWERS(AFTER(50, RENEWED), AFTER(50, RESTORED), AFTER(50, RENEWED), SILENT));
    quorum_answers(ASKED_OTHER, ":1\r\n", NULL, NULL);
    need(keep(100, REPLY_MS));
    ok((fcntl(events, F_GETFD) & FD_CLOEXEC) != 0, "the pipe of events is close-on-exec");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct rlock_event event = next_event(events);
        int64_t read_ms = server_read_ms(&several.server[0], ASKED_RENEW, (int)i);

        is_int(event.kind, wanted[i], "each renewal writes the event for its reply");
        ok(event.expires_ms >= before + LEASE_MS && event.expires_ms <= read_ms + LEASE_MS);
        is_str(event.text, "", "the event of a successful renewal has no text");
        before = event.expires_ms - LEASE_MS;
    }
    ok(quorum_count(ASKED_RENEW) <= (rlock_clock_ms() - started) / 89 + 1);
    end();
    ok(renewer.renewed_at_ms > granted_ms && renewer.renewed_at_ms <= before,
       "the renewer notes a time just before the last renewal that succeeded was sent");
    is_str(several.server[0].log[1].second, "1000", "a renewal asks for the whole TTL");
    renewer_stop(&renewer);
    ok(!renewer.is_running, "a renewer that was stopped can be stopped once more");
}

/* A reply to a renewal that isn't a success, and the event that it must cause. */
static const struct {
    const char *answer;
    enum rlock_kept kind;
    const char *text;
} troubles[] = {
    {LOADING, RLOCK_KEPT_TROUBLE, "the server says: LOADING"},
    {CLOSE, RLOCK_KEPT_TROUBLE, "127.0.0.1"},
    {SILENT, RLOCK_KEPT_TROUBLE, "no answer in time"},
    {"nonsense\r\n", RLOCK_KEPT_TROUBLE, "not the protocol"},
    {"-WRONGPASS no\r\n", RLOCK_KEPT_TROUBLE, "the server says: WRONGPASS"},
    {GONE, RLOCK_KEPT_LOST, "the server no longer has the lock"},
    {LOST_TO, RLOCK_KEPT_LOST, "the lock is held by another program (\"foreign\""},
};

static void test_troubles(void)
{
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++) {
        const char *bad = troubles[i].answer;
        struct rlock_event event;

        answer(ANSWERS(RENEWED, bad, bad, RENEWED, GONE));
        need(keep(20, strcmp(bad, SILENT) == 0 ? SILENT_MS : REPLY_MS));
        is_int(next_event(events).kind, RLOCK_KEPT_RENEWED, "the first renewal succeeds");
        event = next_event(events);
        okf(event.kind == troubles[i].kind && strstr(event.text, troubles[i].text) != NULL,
            "the reply %s causes the right event, with text: %s", bad, event.text);
        if (event.kind == RLOCK_KEPT_TROUBLE) {
            is_int(next_event(events).kind, RLOCK_KEPT_RENEWED);
            is_int(next_event(events).kind, RLOCK_KEPT_LOST);
        }
        end();
        is_int(quorum_count(ASKED_RENEW), troubles[i].kind == RLOCK_KEPT_LOST ? 2 : 5);
        is_int(quorum_count(ASKED_UNDO) + quorum_count(ASKED_RELEASE) + quorum_count(ASKED_LEAVE),
               0, "the renewer never releases a lease");
    }
}

static void test_late(void)
{
    answer(ANSWERS(RENEWED, LATE, LATE, RENEWED, GONE));
    need(keep(20, REPLY_MS));
    is_int(next_event(events).kind, RLOCK_KEPT_RENEWED, "the first renewal succeeds");
    is_int(next_event(events).kind, RLOCK_KEPT_RENEWED, "a late request is no event");
    end();
    is_int(several.server[0].log[1].what, ASKED_RENEW, "the second request is the renewal again");
}

/* A renewer that waits for a reply stops at once, and one whose renewal isn't due yet. */
static void test_stop(int64_t renew_ms)
{
    int64_t before;

    answer(ANSWERS(SILENT));
    need(keep(renew_ms, 60000));
    if (renew_ms < 60000)
        wait_for_renewals(1);
    before = rlock_clock_ms();
    end();
    ok(rlock_clock_ms() - before < 30000);
    is_int(renewer.renewed_at_ms, granted_ms, "without a renewal the grant counts");
}

static void test_nobody_reads(void)
{
    struct rlock_event event = {.kind = RLOCK_KEPT_RENEWED};
    int whole = 0;

    answer(ANSWERS(RENEWED));
    need(keep(1, 1000));
    wait_for_renewals(400);
    ok(true, "the renewer goes on when the pipe of events is full");
    while (read(events, &event, sizeof event) == (ssize_t)sizeof event && whole < 10000)
        whole += event.kind == RLOCK_KEPT_RENEWED && event.expires_ms > 0;
    ok(whole > 10, "no event in the full pipe is cut off");
    end();
}

/*
 * The last event may not be dropped: the thread ends with it, and nothing else tells the reader. A
 * renewer that can't write it stops when it is told to.
 */
static void test_full_pipe(bool is_read)
{
    struct rlock_event event = {.kind = RLOCK_KEPT_RENEWED};

    answer(ANSWERS(GONE));
    need(keep(200, REPLY_MS));
    while (write(renewer.events[1], &event, sizeof event) == (ssize_t)sizeof event)
        continue;
    wait_for_renewals(1);
    if (is_read) {
        poll(NULL, 0, 100); /* time for the renewer to try to write that the lock is lost */
        do {
            event = next_event(events);
        } while (event.kind == RLOCK_KEPT_RENEWED);
        is_int(event.kind, RLOCK_KEPT_LOST, "the loss is written when the pipe has room again");
    }
    end();
    ok(true, "the renewer stops");
}

int main(void)
{
    RUN_ALL(test_renewals, test_troubles, test_late, test_nobody_reads);
    RUN(test_stop(1));
    RUN(test_stop(60000));
    RUN(test_full_pipe(true));
    RUN(test_full_pipe(false));
    return done_testing();
}
