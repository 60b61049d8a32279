/* SPDX-License-Identifier: MIT */
/* test_cmd_spawn: spawn() starts a command, or tells why it can't. */
#include "supervise/spawn.h"
#include "tap.h"

#include <errno.h>
#include <rlock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char *argv_true[] = {"/bin/true", NULL};
static char *argv_nothing[] = {"/nonexistent/command", NULL};
static char *no_environment[] = {NULL};
static sigset_t no_signals;

static pid_t spawn_it(char **argv, bool *is_exec_error, int *error)
{
    struct spawn_plan plan = {.argv = argv,
                              .envp = no_environment,
                              .mask = &no_signals,
                              .not_after_ms = RLOCK_NEVER,
                              .cgroup_fd = -1};

    *error = 77;
    *is_exec_error = false;
    return spawn(&plan, is_exec_error, error);
}

static void test_spawn(void)
{
    bool is_exec_error;
    int error;
    int status = -1;
    pid_t pid = spawn_it(argv_true, &is_exec_error, &error);

    ok(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "the command has run");
    is_int(error, 0, "there was no error");
    is_int(spawn_it(argv_nothing, &is_exec_error, &error), 0, "a command that does not exist");
    ok(is_exec_error && error == ENOENT, "exec has failed, and why");
}

/* In a child, as an ordinary user that may start no process. Returns 2 if that is not possible. */
static int spawn_without_processes(void)
{
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    bool is_exec_error;
    int error;

    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setresuid(65534, 65534, 65534)))
        return 2;
    return spawn_it(argv_true, &is_exec_error, &error) == 0 && error == EAGAIN && !is_exec_error
               ? 0
               : 1;
}

static void test_no_process(void)
{
    const char *name = "if no process can be started, spawn() tells so";
    pid_t pid = fork();
    int status = -1;

    if (pid == 0)
        _exit(spawn_without_processes());
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        skip(name, "this process can't become an ordinary user");
    else
        is_int(status, 0, name);
}

int main(void)
{
    sigemptyset(&no_signals);
    test_spawn();
    test_no_process();
    return done_testing();
}
