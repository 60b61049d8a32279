/* SPDX-License-Identifier: MIT */
/* test_api: each call of rlock.h against a scripted server, with each of its results. */
#include "fds.h"
#include "server.h"
#include "tap.h"

#include <rlock_admin.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

static const char *const the_key = "k";

static const struct rlock_deadline once = {0, -1};

static struct rlock_config config_for(const char *const *url)
{
    return (struct rlock_config){
        .size = sizeof(struct rlock_config),
        .urls = url,
        .n_urls = 1,
        .keys = &the_key,
        .n_keys = 1,
        .timing = {.ttl_ms = 1000, .renew_ms = 300, .reply_ms = 300, .kill_margin_ms = 250},
        .holder = {.host = "h"},
        .connect_ms = 300,
    };
}

/* Starts the server, and opens a handle on it. Returns NULL if that fails. */
static struct rlock *open_with(struct server *server, struct rlock_config config)
{
    struct rlock *lock;

    return ok(server_open(server, config, &lock, NULL) == RLOCK_OK) ? lock : NULL;
}

static struct rlock *open_at(struct server *server)
{
    return open_with(server, config_for(NULL));
}

static void close_at(struct server *server, struct rlock *lock)
{
    rlock_close(lock);
    server_stop(server);
}

/* The caller may have been compiled with a newer rlock.h than the library. */
static void test_config_size(void)
{
    const char *const urls[] = {"redis://127.0.0.1:1"};
    struct {
        struct rlock_config config;
        int64_t newer_member;
    } newer = {.config = config_for(urls)};
    struct rlock_error err = {.text = ""};
    struct rlock *lock = NULL;

    newer.config.size = 0;
    is_int(rlock_open(&lock, &newer.config, &err), RLOCK_E_USAGE);
    newer.config.size = sizeof newer.config - 1;
    is_int(rlock_open(&lock, &newer.config, &err), RLOCK_E_USAGE);
    newer.config.size = sizeof newer;
    if (is_int(rlock_open(&lock, &newer.config, &err), RLOCK_OK))
        rlock_close(lock);
    newer.newer_member = INT64_C(1) << 40;
    lock = NULL;
    is_int(rlock_open(&lock, &newer.config, &err), RLOCK_E_USAGE);
    ok(lock == NULL && strstr(err.text, RLOCK_VERSION) != NULL);
}

static void test_arguments(void)
{
    static char long_key[RLOCK_KEY_MAX + 2];
    const char *const empty = "";
    const char *const too_long = long_key;
    const char *const good[] = {"redis://127.0.0.1:1", "redis://127.0.0.1:1"};
    const char *const bad[] = {"redis://u:s3cret@127.0.0.1:x"};
    const struct {
        const char *const *keys, *const *urls;
        size_t n_urls;
        const char *token;
        enum rlock_status st;
    } rows[] = {{&empty, good, 1, NULL, RLOCK_E_USAGE},
                {&too_long, good, 1, NULL, RLOCK_E_USAGE},
                {&the_key, good, 0, NULL, RLOCK_E_CONFIG},
                {&the_key, good, 2, NULL, RLOCK_E_CONFIG},
                {&the_key, bad, 1, NULL, RLOCK_E_CONFIG},
                {&the_key, good, 1, "", RLOCK_E_USAGE},
                {&the_key, good, 1, "0123456789abcdef0123456789abcdeg", RLOCK_E_USAGE},
                {&the_key, good, 1, "0123456789abcdef0123456789abcdef0", RLOCK_E_USAGE},
                {&the_key, good, 1, "0123456789ABCDEF0123456789ABCDEF", RLOCK_E_USAGE}};
    struct rlock_config config = config_for(good);
    struct rlock_error err = {.text = ""};
    struct rlock *lock = NULL;
    int before = count_fds();

    memset(long_key, 'k', sizeof long_key - 1);
    config.password = "pw";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        config.keys = rows[i].keys;
        config.urls = rows[i].urls;
        config.n_urls = rows[i].n_urls;
        config.token = rows[i].token;
        okf(rlock_open(&lock, &config, &err) == rows[i].st && lock == NULL &&
                err.status == rows[i].st && err.text[0] != '\0' &&
                strstr(err.text, "s3cret") == NULL,
            "rows[%zu] is refused: %s", i, err.text);
        is_int(err.reason == RLOCK_REASON_TOKEN, rows[i].token != NULL);
        is_int(rlock_open(&lock, &config, NULL), rows[i].st);
    }
    config = config_for(good);
    if (is_int(rlock_open(&lock, &config, &err), RLOCK_OK, "opening a handle needs no server")) {
        is_int(rlock_acquire(lock, once, &(struct rlock_grant){.fence = 0}, NULL, &err),
               RLOCK_E_UNREACHABLE, "an acquire fails if no server listens");
        ok(strstr(err.text, "127.0.0.1:1: connect: ") == err.text);
        rlock_unkeep(lock);
    }
    rlock_close(lock);
    rlock_close(NULL);
    is_int(count_fds(), before, "no descriptor stays open after rlock_close()");
    ok(strstr(rlock_built_with(), "hiredis ") != NULL, "rlock_built_with() names hiredis");
}

static void test_whole(void)
{
    struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(HELD, GRANT),
                                        [ASKED_WAKE] = ANSWERS(WOKEN),
                                        [ASKED_RENEW] = ANSWERS(RENEWED),
                                        [ASKED_RELEASE] = ANSWERS(RELEASED)}};
    int before = count_fds();
    struct rlock_obstacle obstacle = {.left_ms = 0};
    struct rlock_grant grant = {.fence = 0};
    struct rlock *lock = open_at(&server);
    struct rlock_event event;
    int events;

    need(lock != NULL);
    is_int(rlock_acquire(lock, in(10000), &grant, &obstacle, NULL), RLOCK_OK);
    ok(strlen(grant.token) == 32 && grant.fence == 1700000000000000 &&
       grant.expires_ms > rlock_clock_ms() && grant.expires_ms <= rlock_clock_ms() + 1000);
    is_str(obstacle.holder.text, "", "a grant leaves the obstacle empty");
    if (is_int(rlock_keep(lock, &events, NULL), RLOCK_OK, "the renewer starts")) {
        ok(read(events, &event, 0) == 0 &&
           poll(&(struct pollfd){.fd = events, .events = POLLIN}, 1, 5000) == 1 &&
           read(events, &event, sizeof event) == (ssize_t)sizeof event &&
           event.kind == RLOCK_KEPT_RENEWED && event.expires_ms > grant.expires_ms);
        rlock_unkeep(lock);
        rlock_unkeep(lock);
    }
    is_int(rlock_release(lock, in(5000), RLOCK_ENDS_FREE, 0, NULL), RLOCK_OK);
    is_int(rlock_acquire(lock, in(5000), &grant, NULL, NULL), RLOCK_OK);
    is_int(rlock_keep(lock, &events, NULL), RLOCK_OK, "the renewer starts again");
    close_at(&server, lock);
    ok(server_count(&server, ASKED_RELEASE) == 1, "closing a handle releases no lock");
    is_int(count_fds(), before, "closing a handle closes all descriptors");
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
    int stop_fd = eventfd(1, EFD_CLOEXEC);

    need(lock != NULL);
    is_int(rlock_acquire(lock, once, &grant, &obstacle, NULL), RLOCK_BUSY);
    is_int(server_count(&server, ASKED_ACQUIRE), 1);
    is_int(atomic_load(&server.n_log), 1, "with a deadline that has passed nothing else is sent");
    is_int(obstacle.left_ms, 60000, "the obstacle has the time left");
    ok(strstr(obstacle.holder.text, "foreign") != NULL, "the obstacle names the holder");
    is_int(rlock_acquire(lock, in(400), &grant, &obstacle, NULL), RLOCK_TIMEOUT);
    ok(rlock_clock_ms() >= before + 400, "the timeout comes no sooner than the deadline");
    ok(server_count(&server, ASKED_ACQUIRE) > 2);
    is_int(server_count(&server, ASKED_RELEASE), 0);
    is_int(server_count(&server, ASKED_LEAVE), 1, "a waiter that gives up leaves the queue");
    is_int(rlock_acquire(lock, (struct rlock_deadline){RLOCK_NEVER, stop_fd}, &grant, NULL, NULL),
           RLOCK_STOPPED);
    close(stop_fd);
    is_int((int64_t)grant.fence, 77, "`grant` stays unchanged without a grant");
    close_at(&server, lock);
}

static void test_lost_reply(void)
{
    static const struct rlock_deadline *const deadlines[] = {&once, NULL}; /* NULL: 10 s from now */

    for (size_t i = 0; i < 2; i++) {
        struct server server = {.answers = {[ASKED_ACQUIRE] = ANSWERS(CLOSE, GRANT),
                                            [ASKED_RELEASE] = ANSWERS(CLOSE, ":-1\r\n")}};
        struct rlock_grant grant = {.fence = 0};
        struct rlock *lock = open_at(&server);

        need(lock != NULL);
        okf(rlock_acquire(lock, deadlines[i] != NULL ? *deadlines[i] : in(10000), &grant, NULL,
                          NULL) == RLOCK_OK,
            "after a lost reply the acquire is sent again (deadline %zu)", i);
        is_int(rlock_release(lock, in(5000), RLOCK_ENDS_FREE, 0, NULL), RLOCK_OK);
        close_at(&server, lock);
        is_str(server.log[0].first, grant.token, "the first attempt has the token of the grant");
        is_str(server.log[1].first, grant.token, "the second attempt has the same token");
        is_str(server.log[1].second, "2", "the second attempt has the number 2");
    }
}

/* rlock_renew() renews a lease that another process has acquired, by its token alone. */
static void test_renew(void)
{
    static const struct {
        const char *answer;
        enum rlock_status st;
    } rows[] = {{RENEWED, RLOCK_OK}, {FREED, RLOCK_RELEASED}, {SILENT, RLOCK_E_UNREACHABLE}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server server = {.answers = {[ASKED_RENEW] = ANSWERS(rows[i].answer)}};
        struct rlock_config config = config_for(NULL);
        struct rlock *lock;
        int64_t expires_ms = 0;

        config.token = "0123456789abcdef0123456789abcdef";
        lock = open_with(&server, config);
        need(lock != NULL);
        is_int(rlock_renew(lock, 500, in(300), &expires_ms, NULL), RLOCK_E_USAGE);
        okf(rlock_renew(lock, 0, in(300), &expires_ms, NULL) == rows[i].st &&
                (expires_ms != 0) == (rows[i].st == RLOCK_OK),
            "rlock_renew() returns the right status for reply %zu", i);
        close_at(&server, lock);
    }
}

static void test_status_texts(void)
{
    const char *unknown = rlock_status_text((enum rlock_status)(RLOCK_E_SYSTEM + 1));

    for (int i = RLOCK_OK; i <= RLOCK_E_SYSTEM; i++)
        okf(i == 1 || strcmp(rlock_status_text((enum rlock_status)i), unknown) != 0,
            "status %d has a text", i);
    is_str(rlock_status_text((enum rlock_status)1), unknown, "the internal status 1 has no text");
    is_str(rlock_status_text(RLOCK_BUSY), "somebody else holds the lock");
}

/* ---- forgetting passwords ---- */

#define SECRET "5ec3e7"

/* The program is linked with --wrap=send, so each send() of the library calls __wrap_send(). */
ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);

/* The handle whose passwords this thread forgets after it has sent AUTH; NULL: none. */
static _Thread_local struct rlock *forgetful;

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
    ssize_t sent = __real_send(fd, bytes, n, flags);

    if (forgetful != NULL && memmem(bytes, n, "AUTH", strlen("AUTH")) != NULL) {
        rlock_forget_passwords(forgetful);
        forgetful = NULL;
    }
    return sent;
}

/* Starts a lookup that ends when the three members have had the time to connect and wait for it. */
static int ask_password(void *context, int64_t deadline_ms, struct rlock_error *err)
{
    const struct itimerspec soon = {.it_value = {.tv_nsec = 200 * 1000 * 1000}};
    const int *timer = context;

    (void)deadline_ms;
    (void)err;
    return timerfd_settime(*timer, 0, &soon, NULL) == 0 ? *timer : -1;
}

static enum rlock_status take_password(void *context, char *password, size_t room,
                                       struct rlock_error *err)
{
    static bool is_taken;

    (void)context;
    (void)err;
    snprintf(password, room, "%s", is_taken ? "of a later lookup" : SECRET);
    is_taken = true;
    return RLOCK_OK;
}

/*
 * A process may be forked at any time, for example when one of three members has taken a password
 * and the others wait for it. The copy for the others must be forgotten, too.
 */
static void test_forget_passwords(void)
{
    static const char *const granted[] = {GRANT, NULL};
    static const char *const released[] = {RELEASED, NULL};
    static const char *const accepted[] = {"+OK\r\n", NULL};
    static struct server server[SERVERS_MAX];
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    const struct rlock_password_source source = {
        .ask = ask_password, .take = take_password, .context = &timer};
    struct rlock_config config = config_for(NULL);
    struct rlock *lock;
    struct rlock_grant grant;
    int n_heard = 0;

    config.connect_ms = 5000;
    config.password_source = &source;
    for (int i = 0; i < SERVERS_MAX; i++)
        server[i] = (struct server){
            .answers = {
                [ASKED_ACQUIRE] = granted, [ASKED_LEAVE] = released, [ASKED_OTHER] = accepted}};
    need(servers_open(server, SERVERS_MAX, config, &lock, NULL) == RLOCK_OK, "a handle is opened");
    forgetful = lock;
    (void)!rlock_acquire(lock, once, &grant, NULL, NULL);
    ok(forgetful == NULL, "a member gets AUTH, and the passwords are forgotten");
    rlock_close(lock);
    for (int i = 0; i < SERVERS_MAX; i++) {
        server_stop(&server[i]);
        n_heard += strcmp(server[i].log[0].text, "AUTH " SECRET " ") == 0;
    }
    is_int(n_heard, 1, "no other member gets the password that was forgotten");
    close(timer);
}

#define NO_EVAL "-NOPERM this user has no permissions to run the 'eval' command\r\n"
#define NO_SET "-NOPERM this user has no permissions to run the 'set' command\r\n"
/* The replies to commands that read a lock of another program. */
#define LOOK                                                           \
    ":60000\r\n", "+OK\r\n", "*0\r\n", "+OK\r\n", "$7\r\nforeign\r\n", \
        "*2\r\n$10\r\n1700000000\r\n$6\r\n000001\r\n", "$-1\r\n"

/* Where scripts are refused, a handle goes on by commands, if it may and its lock needs none. */
static void test_refused_scripts(void)
{
    static const struct {
        const char *answer; /* to the script */
        enum rlock_scripts scripts;
        enum rlock_mode mode;
        enum rlock_status st;
        int n_scripts; /* that two calls send */
        const char *text;
    } rows[] = {
        {NO_EVAL, RLOCK_SCRIPTS_AUTO, RLOCK_EXCLUSIVE, RLOCK_BUSY, 1, ""},
        {"-ERR unknown command 'EVAL'\r\n", RLOCK_SCRIPTS_AUTO, RLOCK_EXCLUSIVE, RLOCK_BUSY, 1, ""},
        {"-ERR script tried accessing undeclared key\r\n", RLOCK_SCRIPTS_AUTO, RLOCK_EXCLUSIVE,
         RLOCK_BUSY, 1, ""},
        {NO_EVAL, RLOCK_SCRIPTS_AUTO, RLOCK_SHARED, RLOCK_E_UNSUPPORTED, 2,
         "a shared lock needs scripts: 127.0.0.1:"},
        {NO_EVAL, RLOCK_SCRIPTS_YES, RLOCK_EXCLUSIVE, RLOCK_E_REFUSED, 2, "127.0.0.1:"},
        {NO_SET, RLOCK_SCRIPTS_AUTO, RLOCK_EXCLUSIVE, RLOCK_E_REFUSED, 2, "127.0.0.1:"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server server = {
            .answers = {
                [ASKED_ACQUIRE] = ANSWERS(rows[i].answer), [ASKED_OTHER] = ANSWERS(LOOK, LOOK)}};
        struct rlock_config config = config_for(NULL);
        struct rlock_obstacle obstacle = {.left_ms = 0};
        struct rlock_error err = {.text = ""};
        struct rlock *lock;
        struct rlock_grant grant;

        config.timing =
            (struct rlock_timing){.ttl_ms = 60000, .renew_ms = 20000, .reply_ms = 20000};
        config.scripts = rows[i].scripts;
        config.mode = rows[i].mode;
        lock = open_with(&server, config);
        need(lock != NULL);
        okf(rlock_acquire(lock, once, &grant, &obstacle, &err) == rows[i].st &&
                rlock_acquire(lock, once, &grant, &obstacle, &err) == rows[i].st,
            "row %zu: both calls have the right status: %s", i, err.text);
        is_int(server_count(&server, ASKED_ACQUIRE), rows[i].n_scripts);
        ok(strncmp(err.text, rows[i].text, strlen(rows[i].text)) == 0 &&
           (rows[i].st != RLOCK_BUSY || strstr(obstacle.holder.text, "foreign") != NULL));
        close_at(&server, lock);
    }
}

TESTS(test_config_size, test_arguments, test_whole, test_not_had, test_lost_reply, test_renew,
      test_status_texts, test_forget_passwords, test_refused_scripts)
