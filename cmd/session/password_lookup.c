/* SPDX-License-Identifier: MIT */
/*
 * password_lookup: a helper process that reads the password from a file or a command's output.
 *
 * Why a process of its own: rlock looks the password up again for each new connection, and the
 * renewer's thread makes connections. If that thread read the file itself, it could block without
 * limit, as open(2) on a network file system that hangs can't be interrupted. If the thread ran the
 * command itself, rlock would fork while another thread runs. So rlock forks the helper before it
 * starts a thread. Then only the helper hangs, and the thread waits for the answer by poll(2) with
 * a deadline.
 *
 * The helper exits when all processes that have the other end of its socket have closed it.
 */
#include "session/password_lookup.h"

#include "options/config.h"
#include "process/child.h"
#include "process/dumpable.h"
#include "process/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DETACH INT64_C(-1)   /* a request to close stderr; other requests are a deadline in ms */
#define COMMAND_EACH_MS 1000 /* at most one run in this time on average: wait_for_turn() */
#define POLL_MS 20           /* Linux before 5.3, without pidfd: from one waitpid(2) to the next */
#define STOP_WITHIN_MS 200   /* after this time rlock kills a helper that hangs in open(2) */
#define FOUND '+'            /* the first byte of an answer: the password follows */
#define FOUND_EXPOSED '!'    /* as FOUND, but others may read the file (config_is_exposed()) */
#define NOT_FOUND '-'        /* the first byte of an answer: an error message follows */
#define ANSWER_BYTES (RLOCK_PASSWORD_MAX + 2)

/* What the helper process, which looks the password up, works with. */
struct helper {
    const struct password_place *place;
    char *const *envp;
    int fd;
    int64_t next_ms; /* limits how often the command runs: see wait_for_turn() */
    char answer[ANSWER_BYTES];
};

static void answer_reason(struct helper *h, const char *why)
{
    snprintf(h->answer, sizeof h->answer, "%c%s%s%.150s: %.200s", NOT_FOUND, h->place->name,
             h->place->file != NULL ? " " : "", h->place->file != NULL ? h->place->file : "", why);
}

static void answer_password(struct helper *h, const char *line)
{
    if (*line == '\0')
        answer_reason(h, "the first line is empty");
    else if (strlen(line) > RLOCK_PASSWORD_MAX)
        answer_reason(h, "the first line is longer than a password may be");
    else
        snprintf(h->answer, sizeof h->answer, "%c%s", FOUND, line);
}

static void read_file(struct helper *h)
{
    const char *why;
    char *line = config_first_line(h->place->file, &why);

    if (line == NULL)
        answer_reason(h, why);
    else
        answer_password(h, line);
    if (h->answer[0] == FOUND && config_is_exposed(h->place->file))
        h->answer[0] = FOUND_EXPOSED;
    config_forget(line);
}

/* ---- running the password command ---- */

/*
 * Run the command in a new session: it has no terminal, and the helper can kill its process group.
 */
static _Noreturn void become_command(const struct helper *h, int out, pid_t helper)
{
    char *const argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)h->place->command, NULL};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != helper || setsid() < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(127);
    execve(argv[0], argv, h->envp);
    _exit(127);
}

/* Read some of the command's output, and add its first line to `line`. False: the output ended. */
static bool take_output(int out, char line[ANSWER_BYTES], size_t *used, bool *is_whole)
{
    char bytes[1024];
    ssize_t n = read(out, bytes, sizeof bytes);
    ssize_t i;

    for (i = 0; i < n && !*is_whole; i++) {
        *is_whole = bytes[i] == '\n' || bytes[i] == '\r' || *used + 1 >= ANSWER_BYTES;
        if (!*is_whole)
            line[(*used)++] = bytes[i];
    }
    explicit_bzero(bytes, sizeof bytes);
    return n > 0 || (n < 0 && errno == EINTR);
}

static int ms_until(int64_t at_ms)
{
    int64_t left = at_ms - rlock_clock_ms();

    return left < 0 ? 0 : left < INT32_MAX ? (int)left : INT32_MAX;
}

/*
 * Wait for the end of the command, not for the end of its output: a process that the command leaves
 * behind may keep the pipe open. False: the helper has killed the command, because the deadline
 * came, or because rlock has closed its end of the socket.
 */
static bool await_command(const struct helper *h, pid_t command, int out, int64_t deadline_ms,
                          char line[ANSWER_BYTES], int *status)
{
    struct pollfd watch[] = {
        {.fd = (int)syscall(SYS_pidfd_open, command, 0), .events = POLLIN},
        {.fd = out, .events = POLLIN},
        {.fd = h->fd, .events = POLLRDHUP}, /* rlock has closed its end */
    };
    bool has_pidfd = watch[0].fd >= 0;
    bool is_whole = false;
    bool has_ended = false;
    size_t used = 0;
    int timeout_ms;

    do {
        timeout_ms = ms_until(deadline_ms);
        poll(watch, 3, has_pidfd || timeout_ms < POLL_MS ? timeout_ms : POLL_MS);
        if (watch[1].fd >= 0 && watch[1].revents != 0 && !take_output(out, line, &used, &is_whole))
            watch[1].fd = -1;
        has_ended = waitpid(command, status, WNOHANG) == command;
    } while (!has_ended && watch[2].revents == 0 && rlock_clock_ms() < deadline_ms);
    if (!has_ended) {
        kill(-command, SIGKILL);
        kill(command, SIGKILL); /* before its setsid(2) the command has no group of its own */
        while (waitpid(command, status, 0) < 0 && errno == EINTR)
            continue;
    }
    while (has_ended && !is_whole && take_output(out, line, &used, &is_whole))
        continue;
    line[used] = '\0';
    if (has_pidfd)
        close(watch[0].fd);
    return has_ended;
}

/*
 * If a server refuses every password, rlock asks for one again and again. So the helper runs the
 * command at most once in COMMAND_EACH_MS on average. Each run moves `next_ms` on by
 * COMMAND_EACH_MS. The helper starts the command up to COMMAND_EACH_MS before `next_ms`, so it may
 * run the command twice without a pause.
 */
static void wait_for_turn(struct helper *h)
{
    struct pollfd gone = {.fd = h->fd, .events = POLLRDHUP};
    int64_t now = rlock_clock_ms();

    if (h->next_ms > now + COMMAND_EACH_MS)
        poll(&gone, 1, ms_until(h->next_ms - COMMAND_EACH_MS));
    now = rlock_clock_ms();
    h->next_ms = (h->next_ms > now ? h->next_ms : now) + COMMAND_EACH_MS;
}

static void run_command(struct helper *h, int64_t deadline_ms)
{
    pid_t helper = getpid();
    char line[ANSWER_BYTES];
    int status = 0;
    int out[2];
    char why[64];
    pid_t command;

    wait_for_turn(h);
    if (pipe2(out, O_CLOEXEC) != 0) {
        answer_reason(h, strerror(errno));
        return;
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    command = fork();
    if (command == 0)
        become_command(h, out[1], helper);
    close(out[1]);
    if (command < 0)
        answer_reason(h, strerror(errno));
    else if (!await_command(h, command, out[0], deadline_ms, line, &status))
        answer_reason(h, "the command did not end within --connect-timeout, and was killed");
    else if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) {
        snprintf(why, sizeof why,
                 WIFSIGNALED(status) ? "signal %d ended the command"
                                     : "the command exited with status %d",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        answer_reason(h, why);
    } else {
        answer_password(h, line);
    }
    explicit_bzero(line, sizeof line);
    close(out[0]);
}

/* ---- the helper process ---- */

/* Give up the standard error of rlock's caller, who may wait until no process has it open. */
static void detach(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    dup2(null, STDERR_FILENO);
    close(null);
}

/*
 * Leave rlock's session and descriptors. In a session of its own the helper gets no signal from the
 * terminal, so that it doesn't end before rlock does.
 */
static void leave_session(struct helper *h)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct sigaction as_default = {.sa_handler = SIG_DFL};
    sigset_t none;

    prctl(PR_SET_NAME, "rlock-password");
    sigaction(SIGCHLD, &as_default, NULL); /* if ignored, waitpid(2) would return no status */
    setsid();
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    fds_keep(&h->fd, 1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void run_helper(struct helper *h)
{
    int64_t deadline_ms;

    leave_session(h);
    while (recv(h->fd, &deadline_ms, sizeof deadline_ms, 0) == (ssize_t)sizeof deadline_ms) {
        if (deadline_ms == DETACH) {
            detach();
            continue;
        }
        dumpable_forbid();
        if (h->place->file != NULL)
            read_file(h);
        else
            run_command(h, deadline_ms);
        (void)!send(h->fd, h->answer, strlen(h->answer), MSG_NOSIGNAL);
        explicit_bzero(h->answer, sizeof h->answer);
        dumpable_allow();
    }
    _exit(0);
}

int password_helper_start(struct password_helper *helper, const struct password_place *place,
                          char *const envp[])
{
    struct helper h = {.place = place, .envp = envp};
    pid_t pid = child_fork(&h.fd);
    int failed = errno;

    if (pid == 0)
        run_helper(&h);
    *helper = (struct password_helper){.pid = pid > 0 ? pid : 0, .fd = h.fd};
    return pid < 0 ? failed : 0;
}

/* ---- how rlock asks the helper process ---- */

static enum rlock_status gone(struct rlock_error *err)
{
    *err = (struct rlock_error){.status = RLOCK_E_SYSTEM};
    snprintf(err->text, sizeof err->text,
             "password: the helper process that looks it up was killed");
    return RLOCK_E_SYSTEM;
}

static int ask(void *context, int64_t deadline_ms, struct rlock_error *err)
{
    const struct password_helper *helper = context;

    if (send(helper->fd, &deadline_ms, sizeof deadline_ms, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        return helper->fd;
    (void)!gone(err);
    return -1;
}

static enum rlock_status take(void *context, char *password, size_t room, struct rlock_error *err)
{
    struct password_helper *helper = context;
    ssize_t n;

    dumpable_forbid();
    n = recv(helper->fd, password, room, MSG_DONTWAIT);
    if (n > 0 && (password[0] == FOUND || password[0] == FOUND_EXPOSED)) {
        helper->is_exposed = password[0] == FOUND_EXPOSED;
        memmove(password, password + 1, (size_t)n - 1);
        password[n - 1] = '\0';
        return RLOCK_OK;
    }
    dumpable_allow();
    if (n <= 0)
        return gone(err);
    *err = (struct rlock_error){.status = RLOCK_E_CONFIG, .reason = RLOCK_REASON_PASSWORD_LOOKUP};
    snprintf(err->text, sizeof err->text, "%.*s", (int)n - 1, password + 1);
    return RLOCK_E_CONFIG;
}

static void forgotten(void *context)
{
    (void)context;
    dumpable_allow();
}

struct rlock_password_source password_helper_source(struct password_helper *helper)
{
    if (helper->pid == 0)
        return (struct rlock_password_source){.ask = NULL};
    return (struct rlock_password_source){
        .ask = ask, .take = take, .forgotten = forgotten, .context = helper};
}

void password_helper_detach(const struct password_helper *helper)
{
    int64_t word = DETACH;

    if (helper->pid != 0)
        (void)!send(helper->fd, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void password_helper_stop(struct password_helper *helper)
{
    struct pollfd ended = {.fd = helper->fd, .events = POLLIN};

    if (helper->pid == 0)
        return;
    shutdown(helper->fd, SHUT_WR);
    while (poll(&ended, 1, STOP_WITHIN_MS) > 0 && recv(helper->fd, &(char){0}, 1, 0) > 0)
        continue; /* discard unread answers; recv(2) returns 0 when the helper has ended */
    if (ended.revents == 0)
        kill(helper->pid, SIGKILL);
    while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    password_helper_leave(helper);
}

void password_helper_leave(struct password_helper *helper)
{
    if (helper->pid != 0)
        close(helper->fd);
    *helper = (struct password_helper){.pid = 0, .fd = -1};
}
