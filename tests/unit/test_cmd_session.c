/* SPDX-License-Identifier: MIT */
/* test_cmd_session: the helper processes of a session end with it, or outlive it if disowned. */
#include "child.h"
#include "session/session.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define N_HELPERS 2

static struct session session;
static struct options options;

static struct password_helper *helper(int i)
{
    return i == 0 ? &session.password_helper : &session.sentinel_password_helper;
}

static void start(pid_t pid[N_HELPERS])
{
    static const struct password_place place = {.name = "password file", .file = "/nowhere"};

    options = options_by_default;
    session_init(&session, &options);
    for (int i = 0; i < N_HELPERS; i++) {
        is_int(password_helper_start(helper(i), &place), 0, "a helper is started");
        pid[i] = helper(i)->pid;
    }
}

static void test_close(void)
{
    pid_t pid[N_HELPERS];

    start(pid);
    session_close(&session);
    for (int i = 0; i < N_HELPERS; i++) {
        is_int(helper(i)->pid, 0, "a closed session has no helper");
        ok(kill(pid[i], 0) != 0 && errno == ESRCH, "its helper has ended, and was reaped");
    }
}

/* Each helper runs on for a process that has the other end of its socket: here a copy of it. */
static void test_disown(void)
{
    pid_t pid[N_HELPERS];
    int copy[N_HELPERS];

    start(pid);
    for (int i = 0; i < N_HELPERS; i++)
        copy[i] = dup(helper(i)->fd);
    session_disown(&session);
    for (int i = 0; i < N_HELPERS; i++)
        ok(helper(i)->pid == 0 && helper(i)->fd == -1, "a disowned helper is not the session's");
    session_close(&session);
    for (int i = 0; i < N_HELPERS; i++) {
        is_int(waitpid(pid[i], NULL, WNOHANG), 0, "the helper runs on after the session's end");
        close(copy[i]);
        is_int(child_status(pid[i]), 0, "without a user it ends");
    }
}

int main(void)
{
    alarm(500);
    RUN_ALL(test_close, test_disown);
    return done_testing();
}
