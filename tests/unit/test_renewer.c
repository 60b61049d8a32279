/* SPDX-License-Identifier: MIT */
/* test_renewer: when the renewer sends a renewal, and which events it writes. */
#include "base/clock.h"
#include "ops/renewer.h"
#include "server.h"
#include "tap.h"

#include <fcntl.h>

static const char *const the_key = "k";

#define TTL_MS 1000
#define LEASE_MS (TTL_MS - TTL_MS / 100 - 2) /* from sent_ms to expires_ms */
#define EVENT_WAIT_MS 20000 /* a busy machine runs the renewer and the server late */
#define REPLY_MS 20000      /* a server that replies late must not cause an event */
#define SILENT_MS 1500      /* the same where the server is to be silent */

struct kept {
    struct server server;
    struct quorum quorum;
    struct owner owner;
    struct renewer renewer;
    int events;
};

/* Starts a renewer for a lease that is granted now. The renewer renews after `renew_ms`. */
static bool keep(struct kept *kept, int64_t renew_ms, int64_t reply_ms)
{
    const char *url = kept->server.url;
    struct rlock_config config = {
        .urls = &url,
        .n_urls = 1,
        .keys = &the_key,
        .n_keys = 1,
        .timing = {.ttl_ms = TTL_MS, .renew_ms = renew_ms, .reply_ms = reply_ms},
        .holder = {.host = "h"},
        .connect_ms = REPLY_MS,
    };

    return server_start(&kept->server) && owner_open(&kept->owner, &config, NULL) == RLOCK_OK &&
           quorum_open(&kept->quorum, &config, NULL) == RLOCK_OK &&
           renewer_start(&kept->renewer, &kept->quorum, &kept->owner, rlock_clock_ms(),
                         &kept->events, NULL) == RLOCK_OK;
}

static void end(struct kept *kept)
{
    renewer_stop(&kept->renewer);
    quorum_close(&kept->quorum);
    owner_close(&kept->owner);
    server_stop(&kept->server);
}

/* Reads the next event. If no event comes within EVENT_WAIT_MS, the kind of the result is -1. */
static struct rlock_event next_event(const struct kept *kept)
{
    struct pollfd look = {.fd = kept->events, .events = POLLIN};
    struct rlock_event event = {.kind = (enum rlock_kept) - 1};

    if (poll(&look, 1, EVENT_WAIT_MS) == 1 && read(kept->events, &event, sizeof event) < 0)
        event.kind = (enum rlock_kept) - 1;
    return event;
}

static void test_renewals(void)
{
    struct kept kept = {.server = {.answers = {[ASKED_RENEW] = ANSWERS(RENEWED, RESTORED, RENEWED),
                                               [ASKED_OTHER] = ANSWERS(":1\r\n")}}};
    static const enum rlock_kept wanted[] = {RLOCK_KEPT_RENEWED, RLOCK_KEPT_RESTORED,
                                             RLOCK_KEPT_RENEWED};
    int64_t started = rlock_clock_ms();
    int64_t before = started;

    need(keep(&kept, 100, REPLY_MS), "a renewer starts");
    ok((fcntl(kept.events, F_GETFD) & FD_CLOEXEC) != 0, "the pipe of events is close-on-exec");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct rlock_event event = next_event(&kept);
        int64_t read_ms = server_read_ms(&kept.server, ASKED_RENEW, (int)i);

        is_int(event.kind, wanted[i], "each renewal writes the event for its reply");
        ok(event.expires_ms >= before + LEASE_MS && event.expires_ms <= read_ms + LEASE_MS);
        is_str(event.text, "", "the event of a successful renewal has no text");
        before = event.expires_ms - LEASE_MS;
    }
    ok(server_count(&kept.server, ASKED_RENEW) <= (rlock_clock_ms() - started) / 89 + 1);
    end(&kept);
    is_str(kept.server.log[1].second, "1000", "a renewal asks for the whole TTL");
    renewer_stop(&kept.renewer);
    ok(!kept.renewer.is_running, "a renewer that was stopped can be stopped once more");
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
    {LOST_TO, RLOCK_KEPT_LOST,
     "the lock is held by another program (\"foreign\", the key's value, not written by rlock)"},
    {"-WRONGTYPE Operation\r\n", RLOCK_KEPT_TROUBLE, "the server says: WRONGTYPE"},
};

static void test_troubles(void)
{
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++) {
        const char *bad = troubles[i].answer;
        struct kept kept = {
            .server = {.answers = {[ASKED_RENEW] = ANSWERS(RENEWED, bad, bad, RENEWED, GONE)}}};
        struct rlock_event event;

        if (!ok(keep(&kept, 20, strcmp(bad, SILENT) == 0 ? SILENT_MS : REPLY_MS)))
            continue;
        is_int(next_event(&kept).kind, RLOCK_KEPT_RENEWED, "the first renewal succeeds");
        event = next_event(&kept);
        okf(event.kind == troubles[i].kind && strstr(event.text, troubles[i].text) != NULL,
            "the reply %s causes the right event, with text: %s", bad, event.text);
        if (event.kind == RLOCK_KEPT_TROUBLE) {
            is_int(next_event(&kept).kind, RLOCK_KEPT_RENEWED);
            is_int(next_event(&kept).kind, RLOCK_KEPT_LOST);
        }
        end(&kept);
        is_int(server_count(&kept.server, ASKED_RENEW),
               troubles[i].kind == RLOCK_KEPT_LOST ? 2 : 5);
        is_int(server_count(&kept.server, ASKED_UNDO) + server_count(&kept.server, ASKED_RELEASE) +
                   server_count(&kept.server, ASKED_LEAVE),
               0, "the renewer never releases a lease");
    }
}

static void test_late(void)
{
    struct kept kept = {
        .server = {.answers = {[ASKED_RENEW] = ANSWERS(RENEWED, LATE, LATE, RENEWED, GONE)}}};
    struct rlock_event event;

    need(keep(&kept, 20, REPLY_MS), "a renewer starts");
    is_int(next_event(&kept).kind, RLOCK_KEPT_RENEWED, "the first renewal succeeds");
    event = next_event(&kept);
    is_int(event.kind, RLOCK_KEPT_RENEWED);
    end(&kept);
    is_int(kept.server.log[1].what, ASKED_RENEW, "the second request is the renewal again");
}

static void test_stop(void)
{
    struct kept kept = {.server = {.answers = {[ASKED_RENEW] = ANSWERS(SILENT)}}};
    int64_t before;

    need(keep(&kept, 1, 60000), "a renewer starts, whose renewal gets no reply");
    while (server_count(&kept.server, ASKED_RENEW) == 0)
        poll(NULL, 0, 1);
    before = rlock_clock_ms();
    end(&kept);
    ok(rlock_clock_ms() - before < 30000, "a renewer that waits for a reply stops at once");

    need(keep(&kept, 60000, 60000), "a renewer starts, whose renewal is not due yet");
    before = rlock_clock_ms();
    end(&kept);
    ok(rlock_clock_ms() - before < 30000);
}

static void test_nobody_reads(void)
{
    struct kept kept = {.server = {.answers = {[ASKED_RENEW] = ANSWERS(RENEWED)}}};
    struct rlock_event event = {.kind = RLOCK_KEPT_RENEWED};
    int whole = 0;

    need(keep(&kept, 1, 1000), "a renewer starts, whose events nobody reads");
    while (server_count(&kept.server, ASKED_RENEW) < 400)
        poll(NULL, 0, 5);
    ok(true, "the renewer goes on when the pipe of events is full");
    while (read(kept.events, &event, sizeof event) == (ssize_t)sizeof event && whole < 10000)
        whole += event.kind == RLOCK_KEPT_RENEWED && event.expires_ms > 0;
    ok(whole > 10, "no event in the full pipe is cut off");
    end(&kept);
}

/* The last event may not be dropped: the thread ends with it, and nothing else tells the reader. */
static void test_full_pipe(void)
{
    struct kept kept = {.server = {.answers = {[ASKED_RENEW] = ANSWERS(GONE)}}};
    struct rlock_event event = {.kind = RLOCK_KEPT_RENEWED};

    need(keep(&kept, 200, REPLY_MS), "a renewer starts, whose pipe of events is filled");
    while (write(kept.renewer.events[1], &event, sizeof event) == (ssize_t)sizeof event)
        continue;
    while (server_count(&kept.server, ASKED_RENEW) == 0)
        poll(NULL, 0, 1);
    poll(NULL, 0, 100); /* time for the renewer to try to write that the lock is lost */
    do {
        event = next_event(&kept);
    } while (event.kind == RLOCK_KEPT_RENEWED);
    is_int(event.kind, RLOCK_KEPT_LOST, "the renewer writes the loss when the pipe has room again");
    end(&kept);

    need(keep(&kept, 200, REPLY_MS), "a renewer starts, whose pipe of events stays full");
    while (write(kept.renewer.events[1], &event, sizeof event) == (ssize_t)sizeof event)
        continue;
    while (server_count(&kept.server, ASKED_RENEW) == 0)
        poll(NULL, 0, 1);
    end(&kept);
    ok(true, "a renewer that can't write the loss stops when it is told to");
}

TESTS(test_renewals, test_troubles, test_late, test_stop, test_nobody_reads, test_full_pipe)
