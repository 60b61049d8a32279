/* SPDX-License-Identifier: MIT */
/*
 * test_memory: every allocation of a lock's life fails once, and nothing breaks or is left over.
 *
 * The program is linked with --wrap for malloc, calloc, realloc, strdup and free: librlock.a, and
 * hiredis if it is a static library, call the __wrap_ functions of this file. libvalkey's tests do
 * so, too.
 */
#include "server.h"
#include "tap.h"

#include <rlock.h>

static const char *const the_key = "k";

void *__real_malloc(size_t bytes) __attribute__((weak));
void *__real_calloc(size_t n, size_t bytes) __attribute__((weak));
void *__real_realloc(void *old, size_t bytes) __attribute__((weak));
char *__real_strdup(const char *text) __attribute__((weak));
void __real_free(void *old) __attribute__((weak));
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *old);

/* Only the client's allocations fail and are counted: the server's thread has its own `fault`. */
static _Thread_local struct {
    bool is_on;
    bool for_good; /* after the first failed allocation all others fail, too */
    int left;      /* how many allocations succeed before the first one fails */
    int failed;    /* how many allocations have failed */
    int live;      /* blocks that are allocated and not freed */
} fault;

/* How often the client has given the lock back: by a release, or by leaving the queue. */
static int given_back(struct server *server)
{
    return server_count(server, ASKED_RELEASE) + server_count(server, ASKED_LEAVE);
}

static int n_left; /* locks that were asked for, not reported and not given back */

static bool fails(void)
{
    if (!fault.is_on || fault.left-- > 0 || (fault.failed > 0 && !fault.for_good))
        return false;
    fault.failed++;
    return true;
}

static void *counted(void *new)
{
    fault.live += fault.is_on && new != NULL;
    return new;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return fails() ? NULL : counted(__real_calloc(n, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (fails())
        return NULL;
    return old == NULL ? counted(__real_realloc(NULL, bytes)) : __real_realloc(old, bytes);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : counted(__real_strdup(text));
}

void __wrap_free(void *old)
{
    fault.live -= fault.is_on && old != NULL;
    __real_free(old);
}

static bool is_fault(enum rlock_status st)
{
    /* hiredis reports a failed allocation like a malformed reply. */
    return st == RLOCK_E_MEMORY || st == RLOCK_E_PROTOCOL;
}

/*
 * Opens, acquires and releases a lock; allocation `n` fails. True: all went well, or the error was
 * reported.
 */
static bool live(struct server *server, int n, bool for_good)
{
    const char *url = server->url;
    struct rlock_config config = {
        .size = sizeof(struct rlock_config),
        .urls = &url,
        .n_urls = 1,
        .password = "pw",
        .keys = &the_key,
        .n_keys = 1,
        .timing = {.ttl_ms = 30000, .renew_ms = 10000, .reply_ms = 2000},
        .holder = {.host = "h"},
        .connect_ms = 5000,
    };
    struct rlock_error err = {.text = ""};
    struct rlock_grant grant = {.fence = 0};
    struct rlock *lock = NULL;
    int taken = server_count(server, ASKED_ACQUIRE);
    int given = given_back(server);
    enum rlock_status st;
    bool good;

    fault.is_on = true;
    fault.for_good = for_good;
    fault.left = n;
    fault.failed = 0;
    st = rlock_open(&lock, &config, &err);
    if (st == RLOCK_OK) {
        st = rlock_acquire(lock, in(0), &grant, NULL, &err);
        if (st == RLOCK_OK)
            st = rlock_release(lock, in(5000), RLOCK_ENDS_FREE, 0, &err);
        else
            n_left += server_count(server, ASKED_ACQUIRE) > taken && given_back(server) == given;
    }
    good = fault.failed == 0 ? st == RLOCK_OK : st == RLOCK_OK || is_fault(st);
    good = good && (st == RLOCK_OK || (err.status == st && err.text[0] != '\0'));
    rlock_close(lock);
    fault.is_on = false;
    if (!good)
        printf("# allocation %d: status %d: %s\n", n, st, err.text);
    return good;
}

static void test_each(bool for_good, const char *which)
{
    struct server server = {.answers = {[ASKED_OTHER] = ANSWERS("+OK\r\n"),
                                        [ASKED_ACQUIRE] = ANSWERS(GRANT),
                                        [ASKED_UNDO] = ANSWERS(RELEASED),
                                        [ASKED_LEAVE] = ANSWERS(RELEASED),
                                        [ASKED_RELEASE] = ANSWERS(RELEASED)}};
    bool is_good = true;
    int n;

    need(server_start(&server), "the test starts a server");
    for (n = 0; n == 0 || (is_good && fault.failed > 0 && n < 1000); n++) {
        fault.live = 0;
        is_good = live(&server, n, for_good) && fault.live == 0;
        if (fault.live != 0)
            printf("# allocation %d: %d left over\n", n, fault.live);
    }
    okf(is_good, "%s: the library doesn't crash, reports the fault, and leaves no block allocated",
        which);
    okf(n > 10 && fault.failed == 0,
        "allocations 0 to %d have failed, and the next run needed no more", n - 2);
    okf(for_good || n_left == 0, "a lock that was asked for and not reported is given back");
    server_stop(&server);
}

int main(void)
{
    if (!ok(__real_malloc != NULL && __real_free != NULL, "the test is linked with --wrap"))
        return done_testing();
    RUN(test_each(false, "one allocation fails"));
    RUN(test_each(true, "all allocations fail from one on"));
    return done_testing();
}
