/* SPDX-License-Identifier: MIT */
/* test_acquire_loop: what a waiter tells its observer, and when it calls its hooks. */
#include "server.h"
#include "tap.h"

#include <rlock_admin.h>

#define FAR_MS 1000000
#define BLOCKS AFTER(150, NOT_WOKEN) /* time for many refreshes */

static const char *const the_key = "k";

struct seen {
    int n_shown;
    int n_again; /* of these: the same reply once more */
    int n_ends;
    int n_after_end;
    int64_t seen_ms;
    int n_sent;
    int n_unreachable;
};

static void see(void *context, const struct rlock_obstacle *obstacle)
{
    struct seen *seen = context;

    seen->n_after_end += seen->n_ends;
    seen->n_ends += obstacle == NULL;
    if (obstacle == NULL)
        return;
    seen->n_shown++;
    seen->n_again += obstacle->seen_ms == seen->seen_ms;
    seen->seen_ms = obstacle->seen_ms;
}

static void count_sent(void *context)
{
    struct seen *seen = context;

    seen->n_sent++;
}

static void count_unreachable(void *context)
{
    struct seen *seen = context;

    seen->n_unreachable++;
}

/* How an acquire within so many ms ends, and what was seen of it. */
static enum rlock_status wait_for(struct server *server, int64_t ms, struct rlock_observer observer,
                                  struct seen *seen)
{
    const char *url = server->url;
    struct rlock_config config = {
        .urls = &url,
        .n_urls = 1,
        .keys = &the_key,
        .n_keys = 1,
        .timing = {.ttl_ms = 3000, .renew_ms = 1000, .reply_ms = 1000, .kill_margin_ms = 250},
        .connect_ms = 1000,
        .observer = observer,
    };
    struct rlock_hooks hooks = {
        .on_sent = count_sent, .on_unreachable = count_unreachable, .context = seen};
    struct rlock_grant grant;
    struct rlock *lock = NULL;
    enum rlock_status st = RLOCK_E_SYSTEM;

    if (server_start(server) && rlock_open(&lock, &config, NULL) == RLOCK_OK) {
        rlock_set_hooks(lock, &hooks);
        st = rlock_acquire(lock, (struct rlock_deadline){rlock_clock_ms() + ms, -1}, &grant, NULL,
                           NULL);
    }
    rlock_close(lock);
    server_stop(server);
    return st;
}

static void test_nobody_observes(void)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(HELD),
                                        [ASKED_WAKE] = ANSWERS(BLOCKS),
                                        [ASKED_LEAVE] = ANSWERS(":0\r\n")}};
    struct seen seen = {.n_shown = 0};

    is_int(wait_for(&server, 400, (struct rlock_observer){.every_ms = 1}, &seen), RLOCK_TIMEOUT,
           "a wait without an observer");
}

/* A waiter tells of each reply, and of nothing else unless it is to refresh. */
static void test_replies(void)
{
    static const int64_t every_ms[] = {0, FAR_MS};
    size_t i;

    for (i = 0; i < sizeof every_ms / sizeof every_ms[0]; i++) {
        struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(HELD),
                                            [ASKED_WAKE] = ANSWERS(BLOCKS),
                                            [ASKED_LEAVE] = ANSWERS(":0\r\n")}};
        struct seen seen = {.n_shown = 0};
        struct rlock_observer observer = {
            .on_blocked = see, .context = &seen, .every_ms = every_ms[i]};

        is_int(wait_for(&server, 500, observer, &seen), RLOCK_TIMEOUT, "a wait for a held lock");
        ok(seen.n_shown > 0, "its observer is told of a reply at once");
        is_int(seen.n_shown, server_count(&server, ASKED_ACQUIRE), "once for each attempt");
        is_int(seen.n_sent, server_count(&server, ASKED_ACQUIRE), "each of which was sent");
        ok(seen.n_ends == 1 && seen.n_after_end == 0, "and of the end once, at last");
    }
}

static void test_refreshes(void)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(HELD),
                                        [ASKED_WAKE] = ANSWERS(BLOCKS),
                                        [ASKED_LEAVE] = ANSWERS(":0\r\n")}};
    struct seen seen = {.n_shown = 0};
    struct rlock_observer observer = {.on_blocked = see, .context = &seen, .every_ms = 10};

    is_int(wait_for(&server, 500, observer, &seen), RLOCK_TIMEOUT, "a wait with refreshes");
    ok(seen.n_again > 0, "what a reply said is shown again when its time has come");
    is_int(seen.n_shown - seen.n_again, server_count(&server, ASKED_ACQUIRE),
           "for which the server isn't asked");
    ok(seen.n_ends == 1 && seen.n_after_end == 0, "and not after the end");
}

static void test_nothing_seen(void)
{
    struct server server = {
        .answers = {[ASKED_ACQUIRE] = ANSWERS(SILENT), [ASKED_LEAVE] = ANSWERS(SILENT)}};
    struct seen seen = {.n_shown = 0};
    struct rlock_observer observer = {.on_blocked = see, .context = &seen, .every_ms = 1};

    is_int(wait_for(&server, 200, observer, &seen), RLOCK_E_UNREACHABLE, "a server that is silent");
    is_int(seen.n_shown, 0, "before the first reply there is nothing to show");
    is_int(seen.n_ends, 1, "but the end");
}

static void test_unreachable(void)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(CLOSE, GRANT)}};
    struct seen seen = {.n_shown = 0};

    is_int(wait_for(&server, 20000, (struct rlock_observer){.on_blocked = NULL}, &seen), RLOCK_OK,
           "a connection that is cut is made again");
    is_int(seen.n_unreachable, 1, "and a hook is called in between");
}

int main(void)
{
    test_nobody_observes();
    test_replies();
    test_refreshes();
    test_nothing_seen();
    test_unreachable();
    return done_testing();
}
