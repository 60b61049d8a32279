/* SPDX-License-Identifier: MIT */
/* test_renewer: the thread that renews, and what it reports. */
#include "base/clock.h"
#include "ops/renewer.h"
#include "server.h"
#include "tap.h"

#include <fcntl.h>

static const char *const the_key = "k";

#define TTL_MS 1000
#define LENGTH_MS (TTL_MS - TTL_MS / 100 - 2) /* of a lease */
#define PATIENCE_MS 5000

struct kept {
    struct server server;
    struct quorum quorum;
    struct owner owner;
    struct renewer renewer;
    int events;
};

/* A renewer of a lease that was granted now, renewed every so often. */
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
        .connect_ms = 300,
    };

    return server_start(&kept->server) && owner_open(&kept->owner, &config, NULL) == RLOCK_OK &&
           members_open(&kept->quorum, &config, NULL) == RLOCK_OK &&
           renewer_start(&kept->renewer, &kept->quorum, &kept->owner, rlock_clock_ms(),
                         &kept->events, NULL) == RLOCK_OK;
}

static void end(struct kept *kept)
{
    renewer_stop(&kept->renewer);
    members_close(&kept->quorum);
    owner_close(&kept->owner);
    server_stop(&kept->server);
}

/* The next event; of kind -1 if none comes. */
static struct rlock_event next(const struct kept *kept)
{
    struct pollfd look = {.fd = kept->events, .events = POLLIN};
    struct rlock_event event = {.kind = (enum rlock_kept) - 1};

    if (poll(&look, 1, PATIENCE_MS) == 1 && read(kept->events, &event, sizeof event) < 0)
        event.kind = (enum rlock_kept) - 1;
    return event;
}

static void test_renewals(void)
{
    struct kept kept = {
        .server = {.answers = {[ASKED_RENEW] = ANSWERS(RENEWED, RESTORED, RENEWED)}}};
    static const enum rlock_kept wanted[] = {RLOCK_KEPT_RENEWED, RLOCK_KEPT_RESTORED,
                                             RLOCK_KEPT_RENEWED};
    int64_t started = rlock_clock_ms();
    int64_t before = started;
    size_t i;

    if (!ok(keep(&kept, 100, 1000), "a renewer"))
        return;
    ok((fcntl(kept.events, F_GETFD) & FD_CLOEXEC) != 0, "its events are no command's business");
    for (i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct rlock_event event = next(&kept);
        int64_t read_ms = server_read_ms(&kept.server, ASKED_RENEW, (int)i);

        is_int(event.kind, wanted[i], "an event for each renewal");
        ok(event.expires_ms >= before + LENGTH_MS && event.expires_ms <= read_ms + LENGTH_MS,
           "the new end is counted from before the request was sent");
        is_str(event.text, "", "nothing is wrong");
        before = event.expires_ms - LENGTH_MS;
    }
    ok(server_count(&kept.server, ASKED_RENEW) <= (rlock_clock_ms() - started) / 89 + 1,
       "a renewal comes no sooner than its time after the last, less a tenth");
    end(&kept);
    is_str(kept.server.log[0].second, "1000", "the whole TTL is asked for");
    renewer_stop(&kept.renewer);
    ok(!kept.renewer.is_running, "it can be stopped again");
}

/* One answer that is not good; what is reported, and whether the renewer goes on. */
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
    {GONE, RLOCK_KEPT_LOST, "it is gone from the server"},
    {LOST_TO, RLOCK_KEPT_LOST, "it is held by another program (\"foreign\")"},
    {"-WRONGTYPE Operation\r\n", RLOCK_KEPT_TROUBLE, "the server says: WRONGTYPE"},
};

static void test_troubles(void)
{
    size_t i;

    for (i = 0; i < sizeof troubles / sizeof troubles[0]; i++) {
        const char *bad = troubles[i].answer;
        struct kept kept = {
            .server = {.answers = {[ASKED_RENEW] = ANSWERS(RENEWED, bad, bad, RENEWED, GONE)}}};
        struct rlock_event event;

        if (!ok(keep(&kept, 20, 300), "a renewer"))
            continue;
        is_int(next(&kept).kind, RLOCK_KEPT_RENEWED, "a renewal");
        event = next(&kept);
        okf(event.kind == troubles[i].kind && strstr(event.text, troubles[i].text) != NULL,
            "then %s: %s", bad, event.text);
        if (event.kind == RLOCK_KEPT_TROUBLE) {
            is_int(next(&kept).kind, RLOCK_KEPT_RENEWED, "told once, and tried until it is over");
            is_int(next(&kept).kind, RLOCK_KEPT_LOST, "and told when it is lost after all");
        }
        end(&kept);
        is_int(server_count(&kept.server, ASKED_RENEW), troubles[i].kind == RLOCK_KEPT_LOST ? 2 : 5,
               "what is lost isn't asked for again");
        is_int(server_count(&kept.server, ASKED_UNDO) + server_count(&kept.server, ASKED_RELEASE) +
                   server_count(&kept.server, ASKED_LEAVE),
               0, "and is left alone");
    }
}

static void test_late(void)
{
    struct kept kept = {
        .server = {.answers = {[ASKED_RENEW] = ANSWERS(RENEWED, LATE, LATE, RENEWED, GONE)}}};
    struct rlock_event event;

    if (!ok(keep(&kept, 20, 1000), "a renewer"))
        return;
    is_int(next(&kept).kind, RLOCK_KEPT_RENEWED, "a renewal");
    event = next(&kept);
    is_int(event.kind, RLOCK_KEPT_RENEWED, "one that came too late is sent again without a word");
    end(&kept);
    is_int(kept.server.log[1].what, ASKED_RENEW, "until it is executed");
}

static void test_stop(void)
{
    struct kept kept = {.server = {.answers = {[ASKED_RENEW] = ANSWERS(SILENT)}}};
    int64_t before;

    if (!ok(keep(&kept, 1, 60000), "a renewer that waits for an answer"))
        return;
    while (server_count(&kept.server, ASKED_RENEW) == 0)
        poll(NULL, 0, 1);
    before = rlock_clock_ms();
    end(&kept);
    ok(rlock_clock_ms() - before < 30000, "is stopped at once");

    if (!ok(keep(&kept, 60000, 60000), "one that sleeps"))
        return;
    before = rlock_clock_ms();
    end(&kept);
    ok(rlock_clock_ms() - before < 30000, "as well");
}

static void test_nobody_listens(void)
{
    struct kept kept = {.server = {.answers = {[ASKED_RENEW] = ANSWERS(RENEWED)}}};
    struct rlock_event event = {.kind = RLOCK_KEPT_RENEWED};
    int whole = 0;

    if (!ok(keep(&kept, 1, 1000), "a renewer whose events nobody reads"))
        return;
    while (server_count(&kept.server, ASKED_RENEW) < 400)
        poll(NULL, 0, 5);
    ok(true, "goes on renewing when no more of them fit");
    while (read(kept.events, &event, sizeof event) == (ssize_t)sizeof event && whole < 10000)
        whole += event.kind == RLOCK_KEPT_RENEWED && event.expires_ms > 0;
    ok(whole > 10, "and those that did fit are whole");
    end(&kept);
}

int main(void)
{
    test_renewals();
    test_troubles();
    test_late();
    test_stop();
    test_nobody_listens();
    return done_testing();
}
