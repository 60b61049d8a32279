/* SPDX-License-Identifier: MIT */
/* test_cmd_spawn: spawn() starts a command, or tells why it can't. */
#include "child.h"
#include "supervise/spawn.h"
#include "tap.h"

#include <errno.h>
#include <rlock.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static char *argv_true[] = {"/bin/true", NULL};
static char *argv_nothing[] = {"/nonexistent/command", NULL};
static char *no_environment[] = {NULL};
static sigset_t no_signals;

static struct spawned spawn_it(char **argv)
{
    struct spawn_plan plan = {.argv = argv,
                              .envp = no_environment,
                              .mask = &no_signals,
                              .not_after_ms = RLOCK_NEVER,
                              .cgroup_fd = -1};

    return spawn(&plan);
}

static void test_spawn(void)
{
    int64_t before_ms = rlock_clock_ms();
    struct spawned spawned = spawn_it(argv_true);

    ok(spawned.pid > 0 && child_status(spawned.pid) == 0);
    is_int(spawned.error, 0, "there was no error");
    ok(spawned.exec_ms >= before_ms && spawned.exec_ms <= rlock_clock_ms(), "the time of the exec");
    spawned = spawn_it(argv_nothing);
    is_int(spawned.pid, 0, "a command that does not exist");
    ok(spawned.is_exec_error && spawned.error == ENOENT, "exec has failed, and why");
    is_int(spawned.exec_ms, 0, "there was no exec");
}

/* In a child, as an ordinary user that may start no process. */
static int spawn_without_processes(void)
{
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    struct spawned spawned;

    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setresuid(65534, 65534, 65534)))
        return CHILD_CANT_RUN;
    spawned = spawn_it(argv_true);
    return spawned.pid == 0 && spawned.error == EAGAIN && !spawned.is_exec_error ? 0 : 1;
}

static void test_no_process(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(spawn_without_processes());
    child_passes(pid, "if no process can be started, spawn() tells so",
                 "this process can't become an ordinary user");
}

int main(void)
{
    sigemptyset(&no_signals);
    RUN_ALL(test_spawn, test_no_process);
    return done_testing();
}
