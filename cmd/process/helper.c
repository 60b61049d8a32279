/* SPDX-License-Identifier: MIT */
/*
 * helper: a process that runs short shell commands for rlock, each with a time limit.
 *
 * rlock must not fork beside the renewer's thread, and a shell command that hangs must delay
 * neither a renewal nor the release. So rlock forks helpers before it starts a thread, and sends
 * requests to them by a socket, without waiting. guard_client.c spares the helpers when the tree of
 * rlock's command is ended. A helper is a subreaper: processes that its shell commands leave behind
 * become its children, and aren't killed with that tree.
 */
#include "process/helper.h"

#include "base/clock.h"
#include "process/child.h"
#include "process/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t helper_fork(int *fd, const char *name)
{
    pid_t pid = child_fork(fd);

    if (pid != 0)
        return pid;
    (void)!child_leave_session(name, STDERR_FILENO);
    child_reset_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    fds_keep(fd, 1);
    return 0;
}

/* If the helper dies, the kernel kills the command: nobody else would, at the deadline. */
static _Noreturn void become_command(const char *text, int out, pid_t helper)
{
    char *const argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)text, NULL};
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != helper || setsid() < 0 || (out >= 0 && dup2(out, STDOUT_FILENO) < 0))
        _exit(127);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execv(argv[0], argv);
    _exit(127);
}

/* Reads what the command has printed, and stores it in command->output as long as there is room. */
static void take_output(const struct helper_command *command, int out, size_t *used)
{
    char rest[1024];
    size_t left = command->room - *used;
    bool is_full = left <= 1;
    ssize_t n =
        read(out, is_full ? rest : command->output + *used, is_full ? sizeof rest : left - 1);

    if (n > 0 && !is_full)
        *used += (size_t)n;
    explicit_bzero(rest, sizeof rest);
}

/* False: the helper has killed the command: the deadline was over, or the client is gone. */
static bool await(const struct helper_command *command, pid_t pid, int out, int *status)
{
    struct rlock_deadline deadline = {command->deadline_ms, -1};
    sigset_t child;
    struct signalfd_siginfo ended;
    struct pollfd watch[] = {
        {.events = POLLIN},
        {.fd = out, .events = POLLIN},
        {.fd = command->client_fd, .events = POLLRDHUP},
    };
    bool has_ended = false;
    size_t used = 0;

    fcntl(out, F_SETFL, O_NONBLOCK);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    watch[0].fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    do {
        poll(watch, 3, deadline_poll_ms(deadline));
        (void)!read(watch[0].fd, &ended, sizeof ended);
        has_ended = waitpid(pid, status, WNOHANG) == pid;
        take_output(command, out, &used);
    } while (!has_ended && watch[2].revents == 0 && !deadline_has_passed(deadline));
    close(watch[0].fd);
    if (has_ended)
        return true;
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL); /* before its setsid(2) the command has no group of its own */
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        continue;
    return false;
}

static void reap_others(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

bool helper_run(const struct helper_command *command, char why[HELPER_WHY_BYTES])
{
    pid_t helper = getpid();
    int out[2] = {-1, -1};
    bool has_ended = false;
    int status;
    pid_t pid = -1;

    if (command->room == 0 || pipe2(out, O_CLOEXEC) == 0)
        pid = fork();
    if (pid == 0)
        become_command(command->text, out[1], helper);
    if (pid < 0)
        snprintf(why, HELPER_WHY_BYTES, "the command can't be started: %s", strerror(errno));
    else if (!(has_ended = await(command, pid, out[0], &status)))
        snprintf(why, HELPER_WHY_BYTES, "the command did not end within %s, and was killed",
                 command->limit);
    else if (WIFSIGNALED(status))
        snprintf(why, HELPER_WHY_BYTES, "the command was ended by signal %d", WTERMSIG(status));
    else
        snprintf(why, HELPER_WHY_BYTES, "the command ended with status %d", WEXITSTATUS(status));
    close(out[0]);
    close(out[1]);
    reap_others();
    return has_ended && status == 0;
}
