/* SPDX-License-Identifier: MIT */
/* test_cmd_spawn: when spawn() started a command, or that no process can be started. */
#include "child.h"
#include "supervise/spawn.h"
#include "tap.h"

#include <errno.h>
#include <rlock.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static sigset_t no_signals;

static struct spawned spawn_true(void)
{
    struct spawn_plan plan = {.argv = (char *[]){"/bin/true", NULL},
                              .envp = (char *[]){NULL},
                              .mask = &no_signals,
                              .not_after_ms = RLOCK_NEVER,
                              .cgroup_fd = -1};

    return spawn(&plan);
}

static void test_spawn(void)
{
    int64_t before_ms = rlock_clock_ms();
    struct spawned spawned = spawn_true();

    ok(spawned.pid > 0 && child_status(spawned.pid) == 0);
    is_int(spawned.error, 0, "there was no error");
    ok(spawned.exec_ms >= before_ms && spawned.exec_ms <= rlock_clock_ms(), "the time of the exec");
}

/* In a child, as an ordinary user that may start no process. */
static int spawn_without_processes(void)
{
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    struct spawned spawned;

    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setresuid(65534, 65534, 65534)))
        return CHILD_CANT_RUN;
    spawned = spawn_true();
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
