/* SPDX-License-Identifier: MIT */
/* test_password_source: lookups that connections share, and what becomes of the passwords. */
#include "base/err.h"
#include "tap.h"
#include "wire/password_source.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

static int n_asked, n_forgotten;
static int ended[2];             /* a pipe: holds a byte when the lookup has ended */
static enum rlock_status answer; /* of take(); RLOCK_PENDING: the lookup has not ended */
static const char *answered;     /* the password */

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

static void forgotten(void *context)
{
    (void)context;
    n_forgotten++;
}

static struct password_source begin(enum rlock_status then)
{
    struct rlock_password_source callbacks = {.ask = ask, .take = take, .forgotten = forgotten};
    struct password_source source;

    n_asked = n_forgotten = 0;
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

    ok(!password_source_is_set(NULL) && password_source_is_set(&source), "there is a source");
    ok(password_source_request(&source, &err) == RLOCK_OK &&
           password_source_request(&source, &err) == RLOCK_OK && n_asked == 1,
       "two connections share a lookup");
    is_int(password_source_take(&source, &one, &err), RLOCK_PENDING, "which has not ended");
    is_int(password_source_fd(&source), ended[0], "and can be waited for");
    set_answer(RLOCK_OK);
    is_int(password_source_take(&source, &one, &err), RLOCK_OK, "the first has its result");
    is_int(password_source_fd(&source), -1, "the second needn't wait");
    is_int(password_source_take(&source, &two, &err), RLOCK_OK, "and has it, too");
    is_str(one, "first", "a copy");
    is_str(two, "first", "another copy");
    ok(source.password == NULL, "nobody waits: none is kept");
    password_source_give_back(&source, &one);
    is_int(n_forgotten, 0, "a copy is left");
    password_source_give_back(&source, &two);
    password_source_give_back(&source, &two);
    ok(one == NULL && two == NULL && n_forgotten == 1, "forgotten once, as it was found once");
    password_source_fini(&source);
}

static void test_two_lookups(void)
{
    struct password_source source = begin(RLOCK_OK);
    char *one = NULL;
    char *two = NULL;

    ok(password_source_request(&source, NULL) == RLOCK_OK &&
           password_source_take(&source, &one, NULL) == RLOCK_OK,
       "a connection has a password");
    answered = "second";
    ok(password_source_request(&source, NULL) == RLOCK_OK &&
           password_source_take(&source, &two, NULL) == RLOCK_OK && n_asked == 2,
       "one that comes later looks it up anew");
    is_str(two, "second", "and has the new one");
    password_source_give_back(&source, &one);
    is_int(n_forgotten, 0, "while a copy is left none is told as forgotten");
    password_source_give_back(&source, &two);
    is_int(n_forgotten, 2, "two were found: forgotten is called twice");
    password_source_fini(&source);
    is_int(n_forgotten, 2, "and no more");
}

static void test_abandoned(void)
{
    struct password_source source = begin(RLOCK_PENDING);
    char *one = NULL;

    ok(password_source_request(&source, NULL) == RLOCK_OK, "a connection waits");
    password_source_abandon(&source);
    ok(password_source_request(&source, NULL) == RLOCK_OK && n_asked == 1,
       "the lookup that it abandoned serves for the next");
    ok(password_source_request(&source, NULL) == RLOCK_OK, "and for one more");
    set_answer(RLOCK_OK);
    is_int(password_source_take(&source, &one, NULL), RLOCK_OK, "which has the password");
    is_int(n_forgotten, 0, "it is kept for the other");
    password_source_give_back(&source, &one);
    is_int(n_forgotten, 0, "also when that copy is gone");
    password_source_abandon(&source);
    is_int(n_forgotten, 1, "until the other waits no longer");
    password_source_fini(&source);
}

static void test_faults(void)
{
    struct password_source source = begin(RLOCK_E_SYSTEM);
    struct rlock_error err;
    char *one = NULL;

    is_int(password_source_request(&source, &err), RLOCK_E_SYSTEM, "no lookup can be started");
    is_str(err.text, "ask: none", "it is said why");
    set_answer(RLOCK_E_CONFIG);
    ok(password_source_request(&source, &err) == RLOCK_OK, "the next one can");
    is_int(password_source_take(&source, &one, &err), RLOCK_E_CONFIG, "but finds nothing");
    ok(one == NULL && strcmp(err.text, "take: none") == 0, "which is told");
    set_answer(RLOCK_OK);
    ok(password_source_request(&source, &err) == RLOCK_OK &&
           password_source_take(&source, &one, &err) == RLOCK_OK && n_asked == 3,
       "a fault is not kept: the next connection asks again");
    password_source_give_back(&source, &one);
    password_source_fini(&source);
    is_int(n_forgotten, 1, "only what was found is forgotten");
}

int main(void)
{
    if (!is_int(pipe(ended), 0, "a pipe"))
        return done_testing();
    test_shared();
    test_two_lookups();
    test_abandoned();
    test_faults();
    return done_testing();
}
