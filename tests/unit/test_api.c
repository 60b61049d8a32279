/* SPDX-License-Identifier: MIT */
/* test_api: the calls of rlock.h against a scripted server: every way they can end. */
#include "server.h"
#include "tap.h"

#include <dirent.h>
#include <rlock_admin.h>

static const char *const the_key = "k";

static const struct rlock_deadline once = {0, -1};

static struct rlock_config config_for(const char *const *url)
{
    return (struct rlock_config){
        .urls = url,
        .n_urls = 1,
        .keys = &the_key,
        .n_keys = 1,
        .timing = {.ttl_ms = 1000, .renew_ms = 300, .reply_ms = 300, .kill_margin_ms = 250},
        .holder = {.host = "h"},
        .connect_ms = 300,
    };
}

static struct rlock_deadline in(int64_t ms)
{
    return (struct rlock_deadline){rlock_clock_ms() + ms, -1};
}

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        closedir(dir);
    return n;
}

static struct rlock *open_at(struct server *server)
{
    const char *url = server->url;
    struct rlock_config config = config_for(&url);
    struct rlock *lock = NULL;

    if (!ok(server_start(server) && rlock_open(&lock, &config, NULL) == RLOCK_OK, "a handle"))
        return NULL;
    return lock;
}

static void close_at(struct server *server, struct rlock *lock)
{
    rlock_close(lock);
    server_stop(server);
}

static void test_arguments(void)
{
    static char long_key[RLOCK_KEY_MAX + 2];
    const char *const good[] = {"redis://127.0.0.1:1", "redis://127.0.0.1:1"};
    const char *const bad[] = {"redis://u:s3cret@127.0.0.1:x"};
    struct rlock_config config = config_for(good);
    struct rlock_error err = {.text = ""};
    struct rlock *none = NULL;
    struct rlock *lock = none;
    int before = open_descriptors();

    memset(long_key, 'k', sizeof long_key - 1);
    config.keys = (const char *const[]){""};
    is_int(rlock_open(&lock, &config, &err), RLOCK_E_USAGE, "no key");
    is_int(rlock_open(&lock, &config, NULL), RLOCK_E_USAGE, "the same without a text");
    config.keys = (const char *const[]){long_key};
    is_int(rlock_open(&lock, &config, &err), RLOCK_E_USAGE, "a key of more than 64 KiB");
    config = config_for(good);
    config.n_urls = 0;
    is_int(rlock_open(&lock, &config, &err), RLOCK_E_CONFIG, "no server");
    config.n_urls = 2;
    is_int(rlock_open(&lock, &config, &err), RLOCK_E_CONFIG, "more servers than are possible");
    config = config_for(bad);
    config.password = "pw";
    is_int(rlock_open(&lock, &config, &err), RLOCK_E_CONFIG, "an address that can't be meant");
    ok(err.status == RLOCK_E_CONFIG && err.text[0] != '\0' && strstr(err.text, "s3cret") == NULL,
       "is explained, without its password");
    ok(lock == none, "nothing is given out on failure");
    config = config_for(good);
    if (is_int(rlock_open(&lock, &config, &err), RLOCK_OK, "opening sends nothing")) {
        is_int(rlock_acquire(lock, once, &(struct rlock_grant){.fence = 0}, NULL, &err),
               RLOCK_E_UNREACHABLE,
               "so that nobody needs to be there before the lock is asked for");
        ok(strstr(err.text, "127.0.0.1:1: connect: ") == err.text, "then it is told who isn't");
        rlock_unkeep(lock);
    }
    rlock_close(lock);
    rlock_close(NULL);
    is_int(open_descriptors(), before, "no descriptor stays behind");
    ok(strstr(rlock_built_with(), "hiredis ") != NULL, "it says with what it was built");
}

static void test_whole(void)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(HELD, GRANT),
                                        [ASKED_WAKE] = ANSWERS(WOKEN),
                                        [ASKED_RENEW] = ANSWERS(RENEWED),
                                        [ASKED_RELEASE] = ANSWERS(RELEASED)}};
    int before = open_descriptors();
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant grant = {.fence = 0};
    struct rlock *lock = open_at(&server);
    struct rlock_event event;
    int events;

    if (lock == NULL)
        return;
    is_int(rlock_acquire(lock, in(10000), &grant, &obstacle, NULL), RLOCK_OK,
           "who waits has the lock when it is free");
    ok(strlen(grant.token) == 32 && grant.fence == 1700000000000000 &&
           grant.expires_ms > rlock_clock_ms() && grant.expires_ms <= rlock_clock_ms() + 1000,
       "with token, fence and end");
    is_str(obstacle.holder, "", "nothing is in the way");
    if (is_int(rlock_keep(lock, &events, NULL), RLOCK_OK, "the renewer starts")) {
        ok(read(events, &event, 0) == 0 &&
               poll(&(struct pollfd){.fd = events, .events = POLLIN}, 1, 5000) == 1 &&
               read(events, &event, sizeof event) == (ssize_t)sizeof event &&
               event.kind == RLOCK_KEPT_RENEWED && event.expires_ms > grant.expires_ms,
           "and renews");
        rlock_unkeep(lock);
        rlock_unkeep(lock);
    }
    is_int(rlock_release(lock, in(5000), RLOCK_ENDS_FREE, 0, NULL), RLOCK_OK,
           "the lock is given back");
    is_int(rlock_acquire(lock, in(5000), &grant, NULL, NULL), RLOCK_OK, "and taken again");
    is_int(rlock_keep(lock, &events, NULL), RLOCK_OK, "and kept");
    close_at(&server, lock);
    ok(server_count(&server, ASKED_RELEASE) == 1, "closing a handle gives no lock back");
    is_int(open_descriptors(), before, "but all descriptors");
}

static void test_not_had(void)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(BUSY, HELD),
                                        [ASKED_WAKE] = ANSWERS(NOT_WOKEN),
                                        [ASKED_LEAVE] = ANSWERS(":0\r\n")}};
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant grant = {.fence = 77};
    struct rlock *lock = open_at(&server);
    int64_t before = rlock_clock_ms();
    int stop[2];

    if (lock == NULL)
        return;
    is_int(rlock_acquire(lock, once, &grant, &obstacle, NULL), RLOCK_BUSY, "asked once: busy");
    is_int(server_count(&server, ASKED_ACQUIRE), 1, "asked once and not more");
    is_int(atomic_load(&server.n_log), 1, "without a place in line to leave");
    is_int(obstacle.left_ms, 60000, "for so long");
    ok(strstr(obstacle.holder, "foreign") != NULL, "by somebody");
    is_int(rlock_acquire(lock, in(400), &grant, &obstacle, NULL), RLOCK_TIMEOUT,
           "in time: a time-out");
    ok(rlock_clock_ms() >= before + 400, "when the time is over and not before");
    ok(server_count(&server, ASKED_ACQUIRE) > 2, "until then it was asked again");
    is_int(server_count(&server, ASKED_RELEASE), 0, "what was never had isn't given back");
    is_int(server_count(&server, ASKED_LEAVE), 1, "but the place in line is");
    if (pipe(stop) == 0) {
        ok(write(stop[1], "", 1) == 1 &&
               rlock_acquire(lock, (struct rlock_deadline){RLOCK_NEVER, stop[0]}, &grant, NULL,
                             NULL) == RLOCK_STOPPED,
           "for ever: until a descriptor says stop");
        close(stop[0]);
        close(stop[1]);
    }
    is_int((int64_t)grant.fence, 77, "nothing is given out but a grant");
    close_at(&server, lock);
}

/* An attempt whose reply was lost is asked for again with the same token. */
static void test_lost_reply(void)
{
    static const struct rlock_deadline *const untils[] = {&once, NULL};
    size_t i;

    for (i = 0; i < 2; i++) {
        struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(CLOSE, GRANT),
                                            [ASKED_RELEASE] = ANSWERS(CLOSE, ":-1\r\n")}};
        struct rlock_grant grant = {.fence = 0};
        struct rlock *lock = open_at(&server);

        if (lock == NULL)
            continue;
        okf(rlock_acquire(lock, untils[i] != NULL ? *untils[i] : in(10000), &grant, NULL, NULL) ==
                RLOCK_OK,
            "replies that were lost are asked for again (%zu)", i);
        is_int(rlock_release(lock, in(5000), RLOCK_ENDS_FREE, 0, NULL), RLOCK_OK,
               "a release whose reply was lost is done when the lock is gone");
        close_at(&server, lock);
        is_str(server.log[0].first, grant.token, "the token was the same");
        is_str(server.log[1].first, grant.token, "in each");
        is_str(server.log[1].second, "2", "each attempt has its number");
    }
}

/* A lock that may be taken is given back before anybody hears that it wasn't had. */
static void test_doubt(void)
{
    struct server server = {
        .answers = {[ASKED_ACQUIRE] = ANSWERS(CLOSE), [ASKED_LEAVE] = ANSWERS(RELEASED, CLOSE)}};
    struct rlock_error err = {.text = ""};
    struct rlock *lock = open_at(&server);
    struct rlock_grant grant;

    if (lock == NULL)
        return;
    is_int(rlock_acquire(lock, once, &grant, NULL, &err), RLOCK_E_UNREACHABLE, "no answer at all");
    is_int(server_count(&server, ASKED_LEAVE), 1, "so what it may have done is taken back");
    ok(strstr(err.text, "may stay taken") == NULL, "which is the end of it");
    is_int(rlock_acquire(lock, once, &grant, NULL, &err), RLOCK_E_UNREACHABLE, "once more");
    ok(strstr(err.text, "may stay taken") != NULL, "where that has no answer either it is told");
    close_at(&server, lock);
}

static void test_release(void)
{
    static const struct {
        const char *answer;
        enum rlock_status st;
    } rows[] = {{RELEASED, RLOCK_OK},         {NOT_OURS, RLOCK_LOST},
                {":-1\r\n", RLOCK_GONE},      {"-NOPERM no\r\n", RLOCK_E_REFUSED},
                {":9\r\n", RLOCK_E_PROTOCOL}, {"-READONLY no\r\n", RLOCK_E_SERVER},
                {SILENT, RLOCK_E_UNREACHABLE}};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server server = {
            .answers = {
                [ASKED_ACQUIRE] = ANSWERS(GRANT), [ASKED_RELEASE] = ANSWERS(rows[i].answer)}};
        struct rlock *lock = open_at(&server);
        struct rlock_grant grant;

        if (lock == NULL)
            continue;
        okf(rlock_acquire(lock, in(5000), &grant, NULL, NULL) == RLOCK_OK &&
                rlock_release(lock, in(300), RLOCK_ENDS_FREE, 0, NULL) == rows[i].st,
            "a release answered %s", rows[i].answer);
        close_at(&server, lock);
        is_str(server.log[1].second, "1700000000000000", "it tells the fence of the grant");
    }
}

/* The lease of a token that came from elsewhere. */
static void test_renew(void)
{
    static const struct {
        const char *answer;
        enum rlock_status st;
        int64_t left_ms; /* at the most */
    } rows[] = {{RENEWED, RLOCK_OK, 988},
                {"*3\r\n:1\r\n:1700000000000\r\n:60000\r\n", RLOCK_OK, 59398},
                {GONE, RLOCK_GONE, 0},
                {LOST_TO, RLOCK_LOST, 0},
                {"*2\r\n:-5\r\n:1700000000000\r\n", RLOCK_RELEASED, 0},
                {LOADING, RLOCK_E_SERVER, 0},
                {SILENT, RLOCK_E_UNREACHABLE, 0}};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server server = {.answers = {[ASKED_RENEW] = ANSWERS(rows[i].answer)}};
        const char *url = server.url;
        struct rlock_config config = config_for(&url);
        struct rlock *lock = NULL;
        int64_t expires_ms = 0;

        config.token = "0123456789abcdef0123456789abcdef";
        if (!ok(server_start(&server) && rlock_open(&lock, &config, NULL) == RLOCK_OK, "by token"))
            continue;
        is_int(rlock_renew(lock, 500, in(300), &expires_ms, NULL), RLOCK_E_USAGE, "half a second");
        okf(rlock_renew(lock, 0, in(300), &expires_ms, NULL) == rows[i].st, "renewal %zu", i);
        okf(expires_ms == 0 ? rows[i].left_ms == 0
                            : expires_ms - rlock_clock_ms() <= rows[i].left_ms &&
                                  expires_ms - rlock_clock_ms() > rows[i].left_ms - 5000,
            "for as long as the server says, less what is not certain");
        close_at(&server, lock);
    }
}

static void test_tokens(void)
{
    static const char *const bad[] = {"", "0", "0123456789abcdef0123456789abcdeg",
                                      "0123456789abcdef0123456789abcdef0",
                                      "0123456789ABCDEF0123456789ABCDEF"};
    const char *url = "redis://127.0.0.1:1";
    struct rlock_config config = config_for(&url);
    struct rlock_error err = {.text = ""};
    struct rlock *lock = NULL;
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        config.token = bad[i];
        okf(rlock_open(&lock, &config, &err) == RLOCK_E_USAGE && lock == NULL &&
                err.reason == RLOCK_REASON_TOKEN,
            "no token: \"%s\"", bad[i]);
    }
}

/* Each status has words of its own, also the last one, and no other number has any. */
static void test_status_texts(void)
{
    const char *unknown = rlock_status_text((enum rlock_status)(RLOCK_E_SYSTEM + 1));
    int i;
    int j;

    for (i = RLOCK_OK; i <= RLOCK_E_SYSTEM; i++)
        for (j = RLOCK_BUSY; j < i; j++)
            okf(strcmp(rlock_status_text((enum rlock_status)i),
                       rlock_status_text((enum rlock_status)j)) != 0,
                "statuses %d and %d differ in words", i, j);
    is_str(rlock_status_text((enum rlock_status)1), unknown, "that of the library inside has none");
    is_str(rlock_status_text(RLOCK_BUSY), "somebody else holds the lock", "busy");
}

/* What looks like a grant and isn't: the number that nobody else has is missing. */
static void test_malformed_grants(void)
{
    static const char *const rows[] = {RENEWED, RESTORED, "*3\r\n:1\r\n:1\r\n$1\r\n0\r\n"};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server server = {
            .answers = {[ASKED_ACQUIRE] = ANSWERS(rows[i]), [ASKED_LEAVE] = ANSWERS(RELEASED)}};
        struct rlock *lock = open_at(&server);
        struct rlock_grant grant = {.fence = 77};

        if (lock == NULL)
            continue;
        okf(rlock_acquire(lock, once, &grant, NULL, NULL) == RLOCK_E_PROTOCOL && grant.fence == 77,
            "an answer without a fence is no grant: %s", rows[i]);
        close_at(&server, lock);
        is_int(server_count(&server, ASKED_LEAVE), 1, "what it may have been is taken back");
    }
}

#define MIN "-9223372036854775808"
#define MAX "9223372036854775807"
#define ABSURD(NOW, LEFT, BLOCK, TICKET, PLACE)                                            \
    "*8\r\n:0\r\n:" NOW "\r\n:" LEFT "\r\n$1\r\nx\r\n:" BLOCK "\r\n$" TICKET "\r\n:" PLACE \
    "\r\n:1\r\n"

/* The last of this file: under UBSan an overflow ends the program. */
static void test_absurd_answers(void)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(
                                            ABSURD(MIN, MAX, "0", "1\r\n0", MIN),
                                            ABSURD(MAX, MIN, "0", "19\r\n" MAX, MAX),
                                            ABSURD(MAX, MAX, "60000", "38\r\n" MAX MAX, "1"), HELD),
                                        [ASKED_WAKE] = ANSWERS(NOT_WOKEN),
                                        [ASKED_LEAVE] = ANSWERS(RELEASED)}};
    struct rlock *lock = open_at(&server);
    struct rlock_grant grant;

    if (lock == NULL)
        return;
    is_int(rlock_acquire(lock, in(600), &grant, NULL, NULL), RLOCK_TIMEOUT,
           "a server may say any time, for any time");
    close_at(&server, lock);
}

int main(void)
{
    test_arguments();
    test_whole();
    test_not_had();
    test_lost_reply();
    test_doubt();
    test_release();
    test_renew();
    test_tokens();
    test_status_texts();
    test_malformed_grants();
    test_absurd_answers();
    return done_testing();
}
