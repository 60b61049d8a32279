/* SPDX-License-Identifier: MIT */
/*
 * event_hook: a process that runs the command of --on-event for each event of a run.
 *
 * Why a process of its own: rlock can't fork beside its renewer's thread, and a command that hangs
 * must delay neither the renewal nor the release. So rlock forks this process before it starts a
 * thread, and sends it each event by a socket, without waiting. The socket is also the queue: the
 * process runs the command for one event after the other, each time for at most HOOK_MS.
 *
 * The process doesn't belong to the tree that the guard ends: it is a child of the main process,
 * and guard_client.c spares the children that the main process has before it forks the guard. The
 * process is a subreaper: processes that the command leaves behind become its children, not those
 * of the main process, which might kill them with the tree.
 *
 * The process exits when all processes that have the other end of the socket have closed it: the
 * main process, and the guard, which tells of a lock that was lost because rlock was killed.
 */
#include "session/event_hook.h"

#include "process/child.h"
#include "process/fds.h"
#include "session/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOOK_MS 10000 /* how long the command may run for one event */
#define VARIABLES 6   /* how many variables environment_for() adds */
#define NOT_FOR_COMMAND "RLOCK_ON_EVENT="
#define FAILURE_BYTES 256

extern char **environ;

enum hook_event { HOOK_GRANTED, HOOK_WAITING_LONG, HOOK_LOST, HOOK_BUSY, HOOK_RELEASED };

static const char *const names[] = {[HOOK_GRANTED] = "granted",
                                    [HOOK_WAITING_LONG] = "waiting-long",
                                    [HOOK_LOST] = "lost",
                                    [HOOK_BUSY] = "busy",
                                    [HOOK_RELEASED] = "released"};

/* The packet that tells the process of an event. Neither text contains a token. */
struct hook_news {
    enum hook_event event;
    int64_t fence;     /* HOOK_GRANTED: the fence of the grant; else 0 */
    int64_t waited_ms; /* how long rlock has waited; -1: not known */
    char holder[256];  /* who holds the lock; "": not known */
    char why[512];     /* `why` of the message; "": it has none */
};

struct hook_process {
    int fd;
    char *command;
    char *keys;
    const sigset_t *mask;
    char **envp;     /* what the command inherits, without passwords and tokens */
    unsigned told;   /* bit i is set if the process has run the command for enum hook_event i */
    int64_t fence;   /* the fence of the grant; 0: the lock is not granted yet */
    bool has_failed; /* the command has failed, and the process has sent rlock the reason */
};

/* ---- what the forked process does ---- */

/* Tell rlock why the command failed, only the first time. If rlock has ended, nobody learns why. */
static void tell_failure(struct hook_process *h, const struct hook_news *news, const char *what)
{
    char why[FAILURE_BYTES];

    if (h->has_failed)
        return;
    h->has_failed = true;
    snprintf(why, sizeof why, "--on-event: for %s the command %s", names[news->event], what);
    (void)!send(h->fd, why, strlen(why) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * Leave rlock's session, so that the terminal sends this process no signal, and close rlock's
 * descriptors. This process may outlive rlock. If stderr is a pipe, its reader would then wait for
 * this process, so the process closes stderr.
 */
static void leave_session(struct hook_process *h)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t child;

    prctl(PR_SET_NAME, "rlock-hook");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setsid();
    if (!report_keeps_stderr())
        dup2(null, STDERR_FILENO);
    dup2(null, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    fds_keep(&h->fd, 1);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &child, NULL); /* SIGCHLD is blocked, for sigtimedwait(2) */
}

/*
 * Make the command's environment, without RLOCK_ON_EVENT: the command may start an rlock, and that
 * rlock must not start the command again. Returns a heap array; NULL: no memory.
 */
static char **environment_for(const struct hook_process *h, const struct hook_news *news)
{
    size_t n = 0;
    size_t i;
    char waited[32] = "";
    char fence[32] = "";
    char **all;
    bool is_whole;

    while (h->envp[n] != NULL)
        n++;
    all = calloc(n + VARIABLES + 1, sizeof *all);
    if (all == NULL)
        return NULL;
    for (i = 0, n = 0; h->envp[i] != NULL; i++)
        if (strncmp(h->envp[i], NOT_FOR_COMMAND, strlen(NOT_FOR_COMMAND)) != 0)
            all[n++] = h->envp[i];
    if (news->waited_ms >= 0)
        snprintf(waited, sizeof waited, "%" PRId64, news->waited_ms);
    if (h->fence != 0)
        snprintf(fence, sizeof fence, "%" PRId64, h->fence);
    is_whole = asprintf(&all[n++], "RLOCK_EVENT=%s", names[news->event]) >= 0 &&
               asprintf(&all[n++], "RLOCK_KEY=%s", h->keys) >= 0 &&
               asprintf(&all[n++], "RLOCK_FENCE=%s", fence) >= 0 &&
               asprintf(&all[n++], "RLOCK_EVENT_WAITED_MS=%s", waited) >= 0 &&
               asprintf(&all[n++], "RLOCK_EVENT_HOLDER=%s", news->holder) >= 0 &&
               asprintf(&all[n++], "RLOCK_EVENT_WHY=%s", news->why) >= 0;
    return is_whole ? all : NULL;
}

/*
 * Runs in the child, and does not return. The command gets a session and a process group of its
 * own, so that await_command() can kill the group. The kernel kills the command if its parent dies,
 * because nobody else would end the command after HOOK_MS.
 */
static _Noreturn void become_command(const struct hook_process *h, const struct hook_news *news,
                                     pid_t parent)
{
    char *const argv[] = {(char *)"/bin/sh", (char *)"-c", h->command, NULL};
    char **envp = environment_for(h, news);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (envp == NULL || getppid() != parent || setsid() < 0)
        _exit(127);
    sigprocmask(SIG_SETMASK, h->mask, NULL);
    execve(argv[0], argv, envp);
    _exit(127);
}

/* Wait for the command's end. After HOOK_MS, kill the command's process group, and return false. */
static bool await_command(pid_t command, int *status)
{
    int64_t deadline_ms = rlock_clock_ms() + HOOK_MS;
    struct timespec left = {0, 0};
    int64_t left_ms;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (waitpid(command, status, WNOHANG) != command) {
        left_ms = deadline_ms - rlock_clock_ms();
        if (left_ms <= 0) {
            kill(-command, SIGKILL);
            kill(command, SIGKILL); /* before its setsid(2) the command has no group of its own */
            while (waitpid(command, status, 0) < 0 && errno == EINTR)
                continue;
            return false;
        }
        left.tv_sec = (time_t)(left_ms / 1000);
        left.tv_nsec = (long)(left_ms % 1000 * 1000000);
        sigtimedwait(&child, NULL, &left);
    }
    return true;
}

static void run_command(struct hook_process *h, const struct hook_news *news)
{
    pid_t parent = getpid();
    pid_t command = fork();
    char what[100];
    int status = 0;

    if (command == 0)
        become_command(h, news, parent);
    if (command < 0) {
        snprintf(what, sizeof what, "can't be started: %s", strerror(errno));
        tell_failure(h, news, what);
        return;
    }
    if (!await_command(command, &status))
        snprintf(what, sizeof what, "ran for %d s, and was killed", HOOK_MS / 1000);
    else if (WIFSIGNALED(status))
        snprintf(what, sizeof what, "was ended by signal %d", WTERMSIG(status));
    else
        snprintf(what, sizeof what, "ended with status %d", WEXITSTATUS(status));
    if (status != 0)
        tell_failure(h, news, what);
    while (waitpid(-1, &status, WNOHANG) > 0) /* processes that a command has left behind */
        continue;
}

/*
 * Must the process run the command for this event? HOOK_LOST may come twice: from the guard, which
 * takes a stopped rlock for dead, and later from rlock itself, when it continues. A lock that was
 * never granted can't be lost: the message `lost` then only says why rlock ends.
 */
static bool is_new(struct hook_process *h, const struct hook_news *news)
{
    unsigned bit = 1U << news->event;

    if ((h->told & bit) != 0 || (news->event == HOOK_LOST && h->fence == 0))
        return false;
    h->told |= bit;
    return true;
}

static _Noreturn void run_process(struct hook_process *h, const struct event_hook_plan *plan)
{
    struct hook_news news;

    leave_session(h);
    h->command = strdup(plan->options->on_event);
    h->keys = strdup(plan->keys);
    h->envp = environment_plain(environ);
    options_mask_urls(plan->options);
    environment_forget(environ);
    if (h->command == NULL || h->keys == NULL || h->envp == NULL)
        _exit(1);
    while (recv(h->fd, &news, sizeof news, 0) == (ssize_t)sizeof news) {
        if (news.event == HOOK_GRANTED)
            h->fence = news.fence;
        if (is_new(h, &news))
            run_command(h, &news);
    }
    _exit(0);
}

/* ---- what rlock itself does ---- */

int event_hook_start(struct event_hook *hook, const struct event_hook_plan *plan)
{
    struct hook_process h = {.mask = plan->mask};
    pid_t pid = child_fork(&h.fd);
    int failed = pid < 0 ? errno : 0;

    if (pid == 0)
        run_process(&h, plan);
    hook->fd = h.fd;
    return failed;
}

/* Find the event of --on-event that the message is about. False: it is about no such event. */
static bool event_of(const struct message *message, enum hook_event *event)
{
    static const struct {
        enum event what;
        enum hook_event event;
    } rows[] = {{EVENT_GRANTED, HOOK_GRANTED},
                {EVENT_WAITING_LONG, HOOK_WAITING_LONG},
                {EVENT_LOST, HOOK_LOST},
                {EVENT_RELEASED, HOOK_RELEASED}};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].what == message->what) {
            *event = rows[i].event;
            return true;
        }
    *event = HOOK_BUSY; /* all reasons with the exit status of `busy`: also timeout, superseded */
    return (int)message->what < EXIT_REASONS &&
           exit_reason_row((enum exit_reason)message->what)->status ==
               exit_reason_row(REASON_BUSY)->status;
}

void event_hook_tell(void *context, const struct message *message)
{
    const struct event_hook *hook = context;
    struct hook_news news = {.waited_ms = -1};
    size_t i;

    if (hook->fd < 0 || !event_of(message, &news.event))
        return;
    for (i = 0; i < MESSAGE_FACTS; i++) {
        const struct fact *fact = &message->facts[i];

        if (fact->kind == FACT_NUMBER && strcmp(fact->name, "fence") == 0)
            news.fence = fact->number;
        else if (fact->kind == FACT_NUMBER && strcmp(fact->name, "waited_ms") == 0)
            news.waited_ms = fact->number;
        else if (fact->kind == FACT_PARTY && strcmp(fact->name, "holder") == 0)
            snprintf(news.holder, sizeof news.holder, "%s", fact->party->text);
    }
    snprintf(news.why, sizeof news.why, "%s", message->why != NULL ? message->why : "");
    (void)!send(hook->fd, &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool event_hook_failure(struct event_hook *hook, char *why, size_t room)
{
    char text[FAILURE_BYTES];
    ssize_t n = hook->fd < 0 ? 0 : recv(hook->fd, text, sizeof text, MSG_DONTWAIT);

    if (hook->fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return false;
    if (n > 0) {
        snprintf(why, room, "%.*s", (int)n - 1, text);
        return true;
    }
    event_hook_stop(hook);
    snprintf(why, room, "--on-event: the process that runs the command was killed");
    return true;
}

void event_hook_stop(struct event_hook *hook)
{
    if (hook->fd >= 0)
        close(hook->fd);
    hook->fd = -1;
}
