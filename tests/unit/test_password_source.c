/* SPDX-License-Identifier: MIT */
/* test_password_source: connections that need a password at the same time share a lookup. */
#include "base/err.h"
#include "base/secret.h"
#include "tap.h"
#include "wire/password_source.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

static int n_asked;
static int ended[2];             /* a pipe that contains a byte when the lookup has ended */
static enum rlock_status answer; /* what take() returns; RLOCK_PENDING: the lookup has not ended */
static const char *answered;     /* the password that take() finds */

static void set_answer(enum rlock_status st)
{
    struct pollfd full = {.fd = ended[0], .events = POLLIN};
    char byte = 0;

    answer = st;
    if (poll(&full, 1, 0) > 0)
        (void)!read(ended[0], &byte, 1);
    if (st != RLOCK_PENDING)
        (void)!write(ended[1], &byte, 1);
}

static int ask(void *context, int64_t deadline_ms, struct rlock_error *err)
{
    (void)context;
    n_asked++;
    if (answer != RLOCK_E_SYSTEM)
        return deadline_ms > rlock_clock_ms() ? ended[0] : -1;
    (void)err_set(err, RLOCK_E_SYSTEM, 0, "ask: none");
    return -1;
}

static enum rlock_status take(void *context, char *password, size_t room, struct rlock_error *err)
{
    (void)context;
    if (answer == RLOCK_OK)
        snprintf(password, room, "%s", answered);
    else
        (void)err_set(err, answer, 0, "take: none");
    return answer;
}

static struct password_source begin(enum rlock_status then)
{
    struct rlock_password_source callbacks = {.ask = ask, .take = take};
    struct password_source source;

    n_asked = 0;
    set_answer(then);
    answered = "first";
    password_source_init(&source, &callbacks, 1000);
    return source;
}

static void test_shared(void)
{
    struct password_source source = begin(RLOCK_PENDING);
    struct rlock_error err;
    char *one = NULL;
    char *two = NULL;

    ok(!password_source_is_set(NULL) && password_source_is_set(&source));
    ok(password_source_request(&source, &err) == RLOCK_OK &&
       password_source_request(&source, &err) == RLOCK_OK && n_asked == 1);
    is_int(password_source_take(&source, &one, &err), RLOCK_PENDING);
    is_int(password_source_fd(&source), ended[0]);
    set_answer(RLOCK_OK);
    is_int(password_source_take(&source, &one, &err), RLOCK_OK);
    is_int(password_source_fd(&source), -1, "password_source_fd() is -1 when the result is there");
    is_int(password_source_take(&source, &two, &err), RLOCK_OK);
    is_str(one, "first", "the first connection has a copy");
    is_str(two, "first", "the second connection has a copy");
    ok(source.password == NULL, "the source keeps no password when no connection waits");
    secret_free(one);
    secret_free(two);
    password_source_fini(&source);
}

static void test_two_lookups(void)
{
    struct password_source source = begin(RLOCK_OK);
    char *one = NULL;
    char *two = NULL;

    ok(password_source_request(&source, NULL) == RLOCK_OK &&
       password_source_take(&source, &one, NULL) == RLOCK_OK);
    answered = "second";
    ok(password_source_request(&source, NULL) == RLOCK_OK &&
       password_source_take(&source, &two, NULL) == RLOCK_OK && n_asked == 2);
    is_str(two, "second", "the later connection takes the new password");
    secret_free(one);
    secret_free(two);
    password_source_fini(&source);
}

static void test_abandoned(void)
{
    struct password_source source = begin(RLOCK_PENDING);
    char *one = NULL;

    ok(password_source_request(&source, NULL) == RLOCK_OK);
    password_source_abandon(&source);
    ok(password_source_request(&source, NULL) == RLOCK_OK && n_asked == 1);
    ok(password_source_request(&source, NULL) == RLOCK_OK);
    set_answer(RLOCK_OK);
    is_int(password_source_take(&source, &one, NULL), RLOCK_OK);
    is_str(source.password, "first", "the source keeps the password for the other connection");
    secret_free(one);
    password_source_abandon(&source);
    ok(source.password == NULL, "the source keeps no password when the last one has abandoned it");
    password_source_fini(&source);
}

static void test_faults(void)
{
    struct password_source source = begin(RLOCK_E_SYSTEM);
    struct rlock_error err;
    char *one = NULL;

    is_int(password_source_request(&source, &err), RLOCK_E_SYSTEM);
    is_str(err.text, "ask: none", "the error is the one of ask()");
    set_answer(RLOCK_E_CONFIG);
    ok(password_source_request(&source, &err) == RLOCK_OK, "the next request starts a lookup");
    is_int(password_source_take(&source, &one, &err), RLOCK_E_CONFIG);
    ok(one == NULL && strcmp(err.text, "take: none") == 0);
    set_answer(RLOCK_OK);
    ok(password_source_request(&source, &err) == RLOCK_OK &&
       password_source_take(&source, &one, &err) == RLOCK_OK && n_asked == 3);
    secret_free(one);
    password_source_fini(&source);
}

int main(void)
{
    if (!is_int(pipe(ended), 0, "the test makes a pipe"))
        return done_testing();
    RUN_ALL(test_shared, test_two_lookups, test_abandoned, test_faults);
    return done_testing();
}
