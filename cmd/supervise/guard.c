/* SPDX-License-Identifier: MIT */
/*
 * guard: ends the command and everything it started before its lease ends.
 *
 * Why a process of its own: the program may hang, be stopped or be killed. The guard has its own
 * copy of the lease's end and its own timer, so that none of these lets the command run on after
 * another host got the lock.
 *
 * The guard is the command's parent, and the subreaper of all processes that come of the command.
 * The guard has no network, allocates nothing after the start of the command, and waits in one
 * poll for its children, its timer and the program's messages. What to do is decided by
 * guard_state.c; this file does it.
 */
#include "supervise/guard.h"

#include "process/dumpable.h"
#include "process/fds.h"
#include "process/timer.h"
#include "supervise/cgroup.h"
#include "supervise/freeze.h"
#include "supervise/guard_state.h"

#include <errno.h>
#include <poll.h>
#include <rlock_admin.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define REAPED_AT_ONCE 64
#define AGAIN_MS 5           /* between two tries of a call that failed */
#define AGAIN_REFUSED_MS 100 /* between KILLs, if one was refused: the process may leave orphans */
#define KILL_AT_ONCE_MS 20   /* of KILL again and again, before the guard looks at its messages */
#define HEARD_WITHIN_MS 1000 /* a program that is not stopped closes the socket in that time */

/* What is known of the program, at the other end of the socket. */
enum program_link {
    PROGRAM_IS_HEARD,
    PROGRAM_IS_UNHEARD, /* the socket failed last time, but the program lives: ask again soon */
    PROGRAM_IS_GONE
};

/* A process that may not be signalled, of which the program or the user was told. */
struct refused {
    pid_t pid;     /* 0: none */
    bool was_kill; /* told when it came to KILL, and not only for TERM */
};

struct guard {
    const struct guard_plan *plan;
    struct guard_machine machine;
    pid_t program;
    enum program_link link;
    int fd;       /* the socket to the program */
    int children; /* signalfd: SIGCHLD */
    int timer;
    int failed;                     /* why the guard can't start a command: an errno; 0: it can */
    struct environment environment; /* the command's */
    struct proctree *tree;
    pid_t command;      /* 0: it was not started, or it has ended and was reaped */
    int64_t started_ms; /* when the command was */
    int status;         /* the command's, once it was reaped */
    bool has_unreaped;  /* reap() stopped at its limit */
    int freeze_error;   /* the errno of a thread that can't be frozen; 0: none */
    struct refused told_refused;
};

static void tell(const struct guard *guard, struct guard_news news)
{
    (void)!send(guard->fd, &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * The program takes the guard for hung when the guard is silent for some time after KILL. That time
 * counts from the lease's own KILL: an earlier KILL is sent because the end takes that much longer.
 */
static void tell_deadlines(const struct guard *guard)
{
    const struct guard_machine *machine = &guard->machine;

    tell(guard, (struct guard_news){.kind = GUARD_NEWS_AGREES,
                                    .lease = {machine->due.term_ms, machine->lease.kill_ms}});
}

static void tell_paused(const struct guard *guard)
{
    tell(guard, (struct guard_news){.kind = GUARD_NEWS_PAUSED,
                                    .frozen_since_ms = guard->machine.frozen_since_ms});
}

/* ---- a process that can't be ended ---- */

void guard_say_refused(const struct report *report, pid_t pid, const char *hint)
{
    char name[32];
    char why[128];

    proctree_name(pid, name);
    snprintf(why, sizeof why, "pid %d (%s): %s", (int)pid, name, strerror(EPERM));
    report_say(report, REPORT_FAILURE,
               (struct message){.what = "can't be ended", .why = why, .hint = hint});
}

/* Once for TERM and once for KILL: after a KILL that fails the program waits for no end. */
static void tell_refused(struct guard *guard, bool was_kill)
{
    pid_t pid = guard->tree->refused;
    struct refused *told = &guard->told_refused;

    if (pid == 0 || (pid == told->pid && was_kill == told->was_kill))
        return;
    *told = (struct refused){.pid = pid, .was_kill = was_kill};
    if (guard->link == PROGRAM_IS_GONE)
        guard_say_refused(guard->plan->report, pid, "the lock is free when its ttl ends");
    else
        tell(guard,
             (struct guard_news){.kind = GUARD_NEWS_REFUSED, .pid = pid, .was_kill = was_kill});
}

/* ---- what guard_state.c decides on ---- */

static void perform(struct guard *guard, unsigned actions);

static void handle(struct guard *guard, enum guard_event event)
{
    perform(guard, guard_state_handle(&guard->machine, event,
                                      (struct guard_input){.now_ms = rlock_clock_ms()}));
}

static void note_count(struct guard *guard, size_t n_processes)
{
    struct guard_input in = {.now_ms = rlock_clock_ms(), .n_processes = n_processes};

    perform(guard, guard_state_handle(&guard->machine, GUARD_EVENT_TREE_COUNTED, in));
}

/* Without /proc the command is the only process of the tree that is known. */
static void send_term(struct guard *guard)
{
    int64_t kill_ms = guard_state_next_ms(&guard->machine, rlock_clock_ms());
    size_t n_processes = proctree_term(guard->tree, kill_ms);

    if (n_processes == 0 && guard->command != 0)
        kill(guard->command, SIGTERM);
    tell_refused(guard, false);
    note_count(guard, n_processes);
}

static void note_end(pid_t pid, int status, void *context)
{
    struct guard *guard = context;

    if (pid != guard->command)
        return;
    guard->status = status;
    guard->command = 0;
}

static void send_kill(struct guard *guard)
{
    if (guard->command != 0)
        kill(guard->command, SIGKILL); /* without /proc it is all that is known */
    proctree_kill(guard->tree, rlock_clock_ms() + KILL_AT_ONCE_MS, note_end, guard);
    tell_refused(guard, true);
}

static void freeze(struct guard *guard)
{
    int failed;

    if (freeze_tree(guard->tree, &failed))
        handle(guard, GUARD_EVENT_TREE_STOPPED);
    else if (failed != 0)
        guard->freeze_error = failed;
}

/* In the order of enum guard_action, without GUARD_ACTION_PASS_SIGNAL, which needs the signal. */
static void perform(struct guard *guard, unsigned actions)
{
    if (actions & GUARD_ACTION_TELL_DEADLINES)
        tell_deadlines(guard);
    if (actions & GUARD_ACTION_TELL_PAUSED)
        tell_paused(guard);
    if (actions & GUARD_ACTION_COUNT)
        note_count(guard, proctree_look(guard->tree));
    if (actions & GUARD_ACTION_THAW)
        freeze_release(guard->tree, guard->machine.lease.term_ms);
    if (actions & GUARD_ACTION_LET_GO)
        freeze_end(guard->tree);
    if (actions & GUARD_ACTION_TERM)
        send_term(guard);
    if (actions & GUARD_ACTION_FREEZE)
        freeze(guard);
    if (actions & GUARD_ACTION_KILL)
        send_kill(guard);
}

/* ---- the children ---- */

/* Asked to stop while the tree was being frozen, and stopped only after the tree was let go. */
static void release_late(struct guard *guard, pid_t pid)
{
    if (!guard_state_is_held(&guard->machine))
        freeze_release_one(pid, guard->machine.lease.term_ms);
}

static void note_command_end(struct guard *guard)
{
    handle(guard,
           WIFSIGNALED(guard->status) ? GUARD_EVENT_COMMAND_KILLED : GUARD_EVENT_COMMAND_EXITED);
}

/*
 * A few at once: with some thousand frozen children each waitpid(2) makes the kernel look at all
 * of them. If all were waited for at once, the answer that they are frozen would come too late.
 */
static void reap(struct guard *guard)
{
    bool command_was_there = guard->command != 0;
    struct signalfd_siginfo seen;
    bool has_ended = false;
    int n = 0;
    int status;
    pid_t pid;

    while (read(guard->children, &seen, sizeof seen) > 0)
        continue;
    for (pid = 1; pid > 0 && n < REAPED_AT_ONCE; n++) {
        pid = waitpid(-1, &status, WNOHANG | __WALL);
        if (pid > 0 && WIFSTOPPED(status)) {
            release_late(guard, pid);
        } else if (pid > 0) {
            note_end(pid, status, guard);
            has_ended = true;
        }
    }
    guard->has_unreaped = pid > 0;
    if (has_ended)
        handle(guard, GUARD_EVENT_PROCESS_ENDED);
    if (pid < 0 && guard->command == 0) /* no child is left */
        handle(guard, GUARD_EVENT_TREE_EMPTY);
    else if (command_was_there && guard->command == 0)
        note_command_end(guard);
}

/* ---- what the program says ---- */

static bool asks_for_the_end(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

static void pass_signal(struct guard *guard, const struct guard_request *request)
{
    if (request->terminal_sent_ms > guard->started_ms)
        return; /* the command was of the job by then, and got the signal from the terminal */
    if (guard->command == 0)
        proctree_signal(guard->tree, request->signal);
    else if (kill(guard->command, request->signal) != 0 && errno == EPERM)
        guard->tree->refused = guard->command;
    if (asks_for_the_end(request->signal))
        tell_refused(guard, false);
}

static enum guard_event event_of(const struct guard_request *request)
{
    if (request->kind == GUARD_REQUEST_EXTEND)
        return GUARD_EVENT_LEASE_EXTENDED;
    if (request->kind == GUARD_REQUEST_END)
        return GUARD_EVENT_END_ASKED;
    return asks_for_the_end(request->signal) ? GUARD_EVENT_END_SIGNAL : GUARD_EVENT_SIGNAL;
}

static void obey(struct guard *guard, const struct guard_request *request)
{
    struct guard_input in = {
        .now_ms = rlock_clock_ms(), .lease = request->lease, .kill_ms = request->lease.kill_ms};
    unsigned actions = guard_state_handle(&guard->machine, event_of(request), in);

    if (actions & GUARD_ACTION_PASS_SIGNAL)
        pass_signal(guard, request);
    perform(guard, actions);
}

/*
 * A socket that fails once is no sign of the program's death, for which the tree would be killed:
 * as long as the program is our parent we listen again. What the program says meanwhile is heard
 * late, and if a renewal is not heard of in time the tree ends by the lease that we know.
 */
static void listen_to_program(struct guard *guard)
{
    struct guard_request request;
    bool is_closed;
    ssize_t n;

    if (guard->link == PROGRAM_IS_GONE)
        return;
    while ((n = recv(guard->fd, &request, sizeof request, MSG_DONTWAIT)) == (ssize_t)sizeof request)
        obey(guard, &request);
    is_closed = n == 0 || (n < 0 && errno == ECONNRESET);
    if (n > 0 || is_closed || errno == EAGAIN || errno == EINTR)
        guard->link = PROGRAM_IS_HEARD;
    else
        guard->link = PROGRAM_IS_UNHEARD;
    if (is_closed || (guard->link == PROGRAM_IS_UNHEARD && getppid() != guard->program)) {
        guard->link = PROGRAM_IS_GONE;
        handle(guard, GUARD_EVENT_PROGRAM_GONE);
    }
}

/* ---- waiting ---- */

static int64_t next_ms(const struct guard *guard)
{
    int64_t now = rlock_clock_ms();
    int64_t at_ms = guard_state_next_ms(&guard->machine, now);

    if (guard->has_unreaped)
        return now;
    if (at_ms > now && guard->told_refused.was_kill)
        return now + AGAIN_REFUSED_MS;
    if (guard->link == PROGRAM_IS_UNHEARD && at_ms > now + AGAIN_MS)
        return now + AGAIN_MS;
    return at_ms;
}

static void wait_for_something(const struct guard *guard)
{
    struct pollfd watch[] = {
        {.fd = guard->link == PROGRAM_IS_HEARD ? guard->fd : -1, .events = POLLIN},
        {.fd = guard->children, .events = POLLIN},
        {.fd = guard->timer, .events = POLLIN}};
    int64_t at_ms = next_ms(guard);

    timer_set(guard->timer, at_ms);
    poll(watch, sizeof watch / sizeof watch[0], at_ms <= rlock_clock_ms() ? 0 : -1);
}

/* ---- the life of a guard ---- */

/* A process that is killed closes its descriptors a moment before it stops being our parent. */
static bool program_lives(const struct guard *guard)
{
    return (proctree_flags(guard->program) & PROCTREE_EXITING) == 0 && getppid() == guard->program;
}

/* Reports what happened if the program can't, as it is dead or stopped. */
static void report_for_program(const struct guard *guard)
{
    struct pollfd program = {.fd = guard->fd, .events = POLLIN};

    if (guard->link == PROGRAM_IS_GONE && program_lives(guard))
        return; /* the program closed the socket itself, and knows why */
    if (guard->link == PROGRAM_IS_GONE)
        report_say(guard->plan->report, REPORT_FAILURE,
                   (struct message){.what = "lost",
                                    .why = guard->told_refused.was_kill
                                               ? "rlock was killed while the command ran"
                                               : "rlock was killed, so the command was ended",
                                    .hint = "the lock is free when its ttl ends"});
    else if (guard->machine.lease_ended_first && poll(&program, 1, HEARD_WITHIN_MS) == 0)
        report_say(guard->plan->report, REPORT_FAILURE,
                   (struct message){.what = "lost",
                                    .why = "rlock was stopped for too long, or did not get to run, "
                                           "so the command was ended before the lease"});
}

/*
 * Before the start. The guard closes its copies of what rlock has opened: a copy of the socket to
 * the server would keep that connection open when rlock exits. Descriptors that rlock was started
 * with stay open, for the command.
 */
static void prepare(struct guard *guard)
{
    const struct guard_plan *plan = guard->plan;
    sigset_t all;
    sigset_t child;

    prctl(PR_SET_NAME, "rlock-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    fds_drop_ours((int[]){guard->fd, plan->keep_fd, plan->cgroup->parent_fd, plan->cgroup->procs_fd,
                          plan->cgroup->kill_fd},
                  5);
    proctree_set_root(guard->tree, getpid());
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    guard->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    guard->timer = timer_open();
    guard->failed = guard->children < 0 || guard->timer < 0 ? errno : 0;
    if (plan->keys == NULL ||
        !environment_make(&guard->environment, environ, plan->keys, plan->keeps_secrets))
        guard->failed = ENOMEM;
    if (plan->lock != NULL)
        rlock_forget_passwords(plan->lock);
    if (!plan->keeps_secrets)
        dumpable_reset();
}

static void wait_for_start(const struct guard *guard, struct guard_request *request)
{
    ssize_t n;

    while ((n = recv(guard->fd, request, sizeof *request, 0)) < 0 && getppid() == guard->program)
        if (errno != EINTR)
            poll(NULL, 0, AGAIN_MS);
    if (n != (ssize_t)sizeof *request)
        _exit(0);
}

static void start(struct guard *guard, const struct guard_request *request)
{
    const struct guard_plan *plan = guard->plan;
    struct guard_news news = {.kind = GUARD_NEWS_FAILED, .error = guard->failed};
    struct spawn_plan command = plan->spawn;

    command.not_after_ms = request->not_after_ms;
    command.cgroup_fd = plan->cgroup->procs_fd;
    if (!news.error && !environment_grant(&guard->environment, &request->grant, plan->has_slot))
        news.error = ENOMEM;
    command.envp = guard->environment.all;
    if (!news.error)
        guard->command = spawn(&command, &news.is_exec_error, &news.error);
    environment_forget(environ); /* secrets that the command has got by now */
    dumpable_reset();
    guard->started_ms = rlock_clock_ms();
    guard_state_start(&guard->machine,
                      (struct guard_rules){.pauses = plan->pauses,
                                           .wait_all = plan->wait_all,
                                           .grace_ms = request->grant.timing.grace_ms},
                      request->lease, guard->started_ms);
    if (guard->command == 0) {
        tell(guard, news);
        _exit(0);
    }
    fds_keep((int[]){guard->fd, plan->keep_fd, guard->children, guard->timer, guard->tree->children,
                     plan->cgroup->parent_fd, plan->cgroup->kill_fd},
             7);
    /*
     * The guard leaves rlock's process group, so that a KILL to the whole group leaves somebody to
     * clean up. It leaves the session, too. Otherwise:
     * 1. the guard, in the same session, keeps rlock's group from being orphaned, see setpgid(2);
     * 2. the guard exits, and the group becomes orphaned;
     * 3. if a process of the group is stopped just then, the kernel sends HUP to the whole group.
     */
    setsid();
}

/*
 * The kernel needs some time to tear down a process. The guard exits only when the program has
 * closed the socket, so that the release of the lock does not share a processor with that.
 */
static void wait_for_dismissal(const struct guard *guard)
{
    struct guard_request request;

    while (recv(guard->fd, &request, sizeof request, 0) > 0)
        continue;
}

static void obey_clock(struct guard *guard)
{
    enum guard_event due;

    while ((due = guard_state_due(&guard->machine, rlock_clock_ms())) != GUARD_EVENTS)
        handle(guard, due);
    perform(guard, guard_state_work(&guard->machine));
}

static void tell_done(const struct guard *guard)
{
    const struct guard_machine *machine = &guard->machine;

    tell(guard, (struct guard_news){.kind = GUARD_NEWS_DONE,
                                    .status = guard->status,
                                    .frozen_since_ms = machine->frozen_since_ms != 0
                                                           ? machine->frozen_since_ms
                                                           : rlock_clock_ms(),
                                    .lease_ended_first = machine->lease_ended_first,
                                    .program_was_gone = guard->link == PROGRAM_IS_GONE,
                                    .freeze_error = guard->freeze_error});
}

_Noreturn void guard_run(const struct guard_plan *plan, struct proctree *tree, int fd)
{
    struct guard guard = {.plan = plan, .program = getppid(), .tree = tree, .fd = fd};
    struct guard_request request;

    prepare(&guard);
    wait_for_start(&guard, &request);
    start(&guard, &request);
    while (guard.machine.state != GUARD_STATE_DONE) {
        wait_for_something(&guard);
        listen_to_program(&guard);
        reap(&guard);
        obey_clock(&guard);
    }
    tell_done(&guard);
    report_for_program(&guard);
    if (guard.link == PROGRAM_IS_GONE)
        cgroup_remove(plan->cgroup); /* otherwise the program removes the cgroup */
    wait_for_dismissal(&guard);
    _exit(0);
}
