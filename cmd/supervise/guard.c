/* SPDX-License-Identifier: MIT */
/*
 * guard: ends the command and everything it started before its lease ends.
 *
 * The main process may hang, be stopped or be killed, so the guard has a timer of its own. It is
 * the command's parent, and the subreaper of its descendants. It uses no network, and allocates no
 * memory after the start. guard_state.c decides what the guard does. A process bound by
 * `acquire --bind-pid` is no child of the guard: a pidfd tells the end of that process.
 */
#include "supervise/guard.h"

#include "process/dumpable.h"
#include "process/fds.h"
#include "process/timer.h"
#include "supervise/cgroup.h"
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

#define REAPED_AT_ONCE 64    /* how many children reap() reaps before the guard reads requests */
#define OBEYED_AT_ONCE 8     /* how many requests the guard obeys before it looks at the clock */
#define AGAIN_MS 5           /* the pause after a call on the socket has failed */
#define HEARD_WITHIN_MS 1000 /* after this time the guard takes a silent main process for stopped */

/* What the last recv(2) on the socket to the main process has shown. */
enum main_link {
    MAIN_IS_HEARD,
    MAIN_IS_UNHEARD, /* recv(2) failed, but the main process lives: the guard tries again soon */
    MAIN_IS_GONE     /* the main process has closed the socket, or is dead */
};

/* The last process that the guard has reported, because the kernel refuses our signals to it. */
struct refused {
    pid_t pid;     /* 0: none */
    bool was_kill; /* the kernel refused KILL; false: only TERM so far */
};

struct guard {
    const struct guard_plan *plan;
    struct guard_machine machine;
    pid_t main_pid;
    enum main_link link;
    unsigned answered; /* the number of the last request that the guard has read */
    int fd;            /* the socket to the main process */
    int children;      /* signalfd: SIGCHLD */
    int timer;
    int failed; /* errno of a failure in prepare(), which start() reports; 0: none */
    struct proctree *tree;
    pid_t command;      /* 0: the guard has not started the command yet, or has reaped it */
    int64_t exec_ms;    /* just before the exec of the command */
    sigset_t early;     /* signals that the guard had got before it started the command */
    int64_t term_ms;    /* when the guard began to send TERM to the tree; 0: not yet */
    int status;         /* the command's, as of wait(2); valid after the command's end */
    bool has_unreaped;  /* reap() stopped at REAPED_AT_ONCE; more children may have ended */
    bool may_be_frozen; /* the guard has begun to freeze the tree, and has not let it run again */
    struct refused told_refused;
};

static void tell(const struct guard *guard, struct guard_news news)
{
    news.answered = guard->answered;
    (void)!send(guard->fd, &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * Tells the main process whether the tree is frozen, and the deadlines: TERM, which is earlier for
 * a large tree, but the lease's own KILL. Some time after KILL the main process replaces the guard;
 * with an earlier KILL it would replace a guard that is still busy with ending a large tree.
 */
static void tell_state(const struct guard *guard)
{
    const struct guard_machine *machine = &guard->machine;
    bool is_frozen = machine->frozen_since_ms != 0;

    tell(guard, (struct guard_news){.kind = is_frozen ? GUARD_NEWS_PAUSED : GUARD_NEWS_AGREES,
                                    .lease = {machine->due.term_ms, machine->lease.kill_ms},
                                    .stopped_since_ms = machine->frozen_since_ms});
}

const char *guard_command(const struct guard_plan *plan)
{
    return plan->name != NULL ? plan->name : "the command";
}

struct fact guard_subject(const struct guard_plan *plan)
{
    return plan->bound != 0 ? fact_number("process", plan->bound)
                            : fact_text("command", guard_command(plan));
}

static bool is_bound(const struct guard *guard)
{
    return guard->plan->bound != 0;
}

/* ---- a process that the kernel does not let us signal ---- */

/*
 * The guard reports a process once for TERM, but again with each KILL: if these messages stop, the
 * main process knows that the guard hangs.
 */
static void tell_refused(struct guard *guard, bool was_kill)
{
    pid_t pid = guard->tree->refused;
    struct refused *told = &guard->told_refused;
    bool is_told = pid == told->pid && was_kill == told->was_kill;

    if (pid == 0 || (is_told && !was_kill))
        return;
    *told = (struct refused){.pid = pid, .was_kill = was_kill};
    if (guard->link != MAIN_IS_GONE)
        tell(guard,
             (struct guard_news){.kind = GUARD_NEWS_REFUSED, .pid = pid, .was_kill = was_kill});
    else if (!is_told)
        say_refused(guard->plan->report, pid, "the lock is free when its ttl ends");
}

/* ---- carrying out what guard_state.c has decided ---- */

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

/*
 * A process of a bound tree that is orphaned after this count, and before TERM, was left behind on
 * purpose, and is not ended. So the guard forgets the processes that it has counted.
 */
static void count_tree(struct guard *guard)
{
    size_t n_processes = proctree_look(guard->tree);

    proctree_forget(guard->tree);
    note_count(guard, n_processes);
}

/* Without /proc no process of the tree can be found, but the guard knows the command's pid. */
static void send_term(struct guard *guard)
{
    int64_t kill_ms = guard_state_next_ms(&guard->machine, rlock_clock_ms());
    size_t n_processes;

    if (guard->term_ms == 0)
        guard->term_ms = rlock_clock_ms();
    n_processes = proctree_term(guard->tree, kill_ms);
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
        kill(guard->command, SIGKILL); /* by its pid, in case /proc isn't mounted */
    proctree_kill(guard->tree, note_end, guard);
    tell_refused(guard, true);
}

/*
 * Has the kernel frozen the whole tree? A process may have been moved to another cgroup, as
 * pam_systemd(8) does for a login: then the guard never finds the tree frozen, and ends the tree in
 * time. A frozen process can't fork, so a single walk finds all.
 */
static bool is_frozen(const struct guard *guard)
{
    const struct cgroup *cgroup = guard->plan->cgroup;
    size_t i;

    if (!cgroup_is_frozen(cgroup))
        return false;
    proctree_look(guard->tree);
    for (i = 0; i < guard->tree->n; i++)
        if (!cgroup_has(cgroup, guard->tree->list[i]))
            return false;
    return !guard->tree->is_short;
}

static void freeze(struct guard *guard)
{
    guard->may_be_frozen = true;
    if (cgroup_freeze(guard->plan->cgroup, true) && is_frozen(guard))
        handle(guard, GUARD_EVENT_TREE_FROZEN);
}

/* A tree that gets KILL stays frozen: KILL ends a frozen process, which runs no further step. */
static bool has_to_thaw(const struct guard *guard)
{
    enum guard_state state = guard->machine.state;

    return guard->may_be_frozen && state != GUARD_STATE_PAUSED && state != GUARD_STATE_KILLING;
}

/*
 * Does the actions in the order of enum guard_action, but leaves GUARD_ACTION_PASS_SIGNAL, which
 * comes with no other than _TELL, to obey(): that has the request with the signal.
 */
static void perform(struct guard *guard, unsigned actions)
{
    if (actions & GUARD_ACTION_TELL)
        tell_state(guard);
    if (actions & GUARD_ACTION_COUNT)
        count_tree(guard);
    if (actions & GUARD_ACTION_TERM)
        send_term(guard);
    if (actions & GUARD_ACTION_FREEZE)
        freeze(guard);
    if (actions & GUARD_ACTION_KILL)
        send_kill(guard);
}

/* ---- reaping the guard's children ---- */

static void note_command_end(struct guard *guard)
{
    handle(guard,
           WIFSIGNALED(guard->status) ? GUARD_EVENT_COMMAND_KILLED : GUARD_EVENT_COMMAND_EXITED);
}

/*
 * Reaps at most REAPED_AT_ONCE children in one turn of the loop: some thousand may end at the same
 * time, or new ones may end all the time, and the guard has to look at the clock meanwhile.
 */
static void reap(struct guard *guard)
{
    bool command_was_there = guard->command != 0;
    struct signalfd_siginfo seen;
    int n = 0;
    int status;
    pid_t pid;

    while (read(guard->children, &seen, sizeof seen) > 0)
        continue;
    for (pid = 1; pid > 0 && n < REAPED_AT_ONCE; n++) {
        pid = waitpid(-1, &status, WNOHANG | __WALL);
        if (pid > 0)
            note_end(pid, status, guard);
    }
    guard->has_unreaped = pid > 0;
    if (pid < 0 && guard->command == 0) /* no child is left */
        handle(guard, GUARD_EVENT_TREE_EMPTY);
    else if (command_was_there && guard->command == 0)
        note_command_end(guard);
}

/*
 * When a bound process has ended by itself, its descendants run on, as after the exit of a command.
 * The guard can't read its exit status, so each end counts as an exit.
 */
static void look_at_bound(struct guard *guard)
{
    if (!proctree_root_has_ended(guard->tree))
        return;
    if (guard->machine.state == GUARD_STATE_RUNNING)
        handle(guard, GUARD_EVENT_COMMAND_EXITED);
    else if (proctree_look(guard->tree) == 0 && !guard->tree->is_short)
        handle(guard, GUARD_EVENT_TREE_EMPTY);
}

/* ---- receiving the main process's requests ---- */

static bool asks_for_the_end(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

/*
 * Has the terminal, which signals all processes of the job, signalled the command, too? Not if the
 * main process read the signal before the command's exec. Nor if the guard, which blocks all
 * signals, had the signal pending when it started the command: the main process then read it late.
 */
static bool command_has_it(struct guard *guard, const struct guard_request *request)
{
    bool is_early = sigismember(&guard->early, request->signal) > 0;

    if (request->terminal_read_ms == 0)
        return false;
    sigdelset(&guard->early, request->signal); /* the command itself gets the next such signal */
    return request->terminal_read_ms >= guard->exec_ms && !is_early;
}

/*
 * Notes the pending signals for command_has_it(), but only those that ask for the end. Others, such
 * as SIGWINCH, the main process may have read while it waited for the lock.
 */
static void note_early_signals(struct guard *guard)
{
    int number;

    sigpending(&guard->early);
    for (number = 1; number < SIGRTMIN; number++)
        if (!asks_for_the_end(number))
            sigdelset(&guard->early, number);
}

static void pass_signal(struct guard *guard, const struct guard_request *request)
{
    if (command_has_it(guard, request))
        return;
    if (guard->command == 0)
        proctree_signal(guard->tree, request->signal);
    else
        proctree_signal_child(guard->tree, guard->command, request->signal);
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

    guard->answered = request->number;
    perform(guard, actions); /* answers first: to signal a large tree takes time */
    if (actions & GUARD_ACTION_PASS_SIGNAL)
        pass_signal(guard, request);
}

/*
 * Obeys at most OBEYED_AT_ONCE requests in one turn of the loop: signals may come faster than a
 * large tree gets them, and the guard has to look at the clock meanwhile.
 *
 * A failure of recv(2), such as ENOMEM, does not mean that the main process is dead, and that the
 * tree must be killed. So the guard calls recv(2) again as long as the main process is its parent.
 * If the guard misses a renewal meanwhile, the old deadlines end the tree.
 */
static void listen_to_main(struct guard *guard)
{
    struct guard_request request;
    int n_obeyed = 0;
    bool is_closed;
    ssize_t n;

    if (guard->link == MAIN_IS_GONE)
        return;
    do {
        n = recv(guard->fd, &request, sizeof request, MSG_DONTWAIT);
        if (n == (ssize_t)sizeof request)
            obey(guard, &request);
    } while (n == (ssize_t)sizeof request && ++n_obeyed < OBEYED_AT_ONCE);
    is_closed = n == 0 || (n < 0 && errno == ECONNRESET);
    if (n > 0 || is_closed || errno == EAGAIN || errno == EINTR)
        guard->link = MAIN_IS_HEARD;
    else
        guard->link = MAIN_IS_UNHEARD;
    if (is_closed || (guard->link == MAIN_IS_UNHEARD && getppid() != guard->main_pid)) {
        guard->link = MAIN_IS_GONE;
        handle(guard, GUARD_EVENT_MAIN_GONE);
    }
}

/* ---- waiting for the next event ---- */

static int64_t next_ms(const struct guard *guard)
{
    int64_t now = rlock_clock_ms();
    int64_t at_ms = guard->machine.state == GUARD_STATE_KILLING
                        ? proctree_kill_again_ms(guard->tree)
                        : guard_state_next_ms(&guard->machine, now);

    if (guard->has_unreaped)
        return now;
    if ((guard->link == MAIN_IS_UNHEARD || has_to_thaw(guard)) && at_ms > now + AGAIN_MS)
        return now + AGAIN_MS;
    return at_ms;
}

static void wait_for_something(const struct guard *guard)
{
    struct pollfd watch[] = {
        {.fd = guard->link == MAIN_IS_HEARD ? guard->fd : -1, .events = POLLIN},
        /* for a bound process the guard has no child, and reads no SIGCHLD */
        {.fd = is_bound(guard) ? -1 : guard->children, .events = POLLIN},
        {.fd = guard->timer, .events = POLLIN},
        /* a guard that ends the tree looks for the whole tree again and again */
        {.fd = guard->machine.state == GUARD_STATE_RUNNING ? guard->tree->root_fd : -1,
         .events = POLLIN}};
    int64_t at_ms = next_ms(guard);

    timer_set(guard->timer, at_ms);
    poll(watch, sizeof watch / sizeof watch[0], at_ms <= rlock_clock_ms() ? 0 : -1);
}

/* ---- from the start of the guard to its end ---- */

/*
 * The kernel closes the descriptors of a killed process a moment before it gives the children to
 * another parent. So getppid(2) alone may still name a main process that is dying.
 */
static bool main_lives(const struct guard *guard)
{
    return (proctree_flags(guard->main_pid) & PROCTREE_EXITING) == 0 &&
           getppid() == guard->main_pid;
}

static struct ending ending_so_far(const struct guard *guard)
{
    return (struct ending){.term_ms = guard->term_ms,
                           .kill_ms = guard->machine.killing_since_ms,
                           .ended_ms = rlock_clock_ms()};
}

/*
 * Report the loss of the lock in place of the main process, which is dead or stopped, and what the
 * guard has done to the command.
 */
static void say_lost_alone(const struct guard *guard, const char *cause, const char *why,
                           const char *outcome, const char *hint)
{
    struct lost lost = {.cause = cause,
                        .hint = hint,
                        .subject = guard_subject(guard->plan),
                        .ending = ending_so_far(guard)};
    char steps[ENDING_BYTES];
    char text[400];

    ending_text(steps, &lost.ending);
    snprintf(text, sizeof text, "%s, so %.64s %s: %s", why, guard_command(guard->plan), outcome,
             steps);
    lost.why = text;
    say_lost(guard->plan->report, &lost);
}

/* A main process that is dead or stopped can't report what happened, so the guard does. */
static void report_for_main(const struct guard *guard)
{
    struct pollfd main_process = {.fd = guard->fd, .events = POLLIN};

    if (guard->link == MAIN_IS_GONE && main_lives(guard))
        return; /* the main process has closed the socket, and reports by itself */
    if (guard->term_ms == 0 && guard->machine.killing_since_ms == 0)
        return; /* nothing was ended: the bound process of a dead main process ended by itself */
    if (guard->link == MAIN_IS_GONE && guard->told_refused.was_kill)
        say_lost(guard->plan->report,
                 &(struct lost){.cause = "rlock-killed",
                                .why = "rlock was killed while the command ran",
                                .hint = "the lock is free when its ttl ends"});
    else if (guard->link == MAIN_IS_GONE)
        say_lost_alone(guard, "rlock-killed", "rlock was killed", "was ended",
                       "the lock is free when its ttl ends");
    else if (guard->machine.lease_ended_first && poll(&main_process, 1, HEARD_WITHIN_MS) == 0)
        say_lost_alone(guard, "rlock-stopped",
                       "rlock was stopped for too long, or got no processor time",
                       "was ended before the lease ended", "a longer --ttl survives longer stops");
}

/* Main process and guard may descend from the bound process. False: /proc can't be read now. */
static bool spare_ourselves(struct proctree *tree)
{
    return proctree_spare(tree, getpid()) && proctree_spare(tree, getppid()) && !tree->is_short;
}

/* Called before the guard waits for GUARD_REQUEST_START. */
static void prepare(struct guard *guard)
{
    const struct guard_plan *plan = guard->plan;
    sigset_t all;
    sigset_t child;

    prctl(PR_SET_NAME, "rlock-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    guard->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    guard->timer = timer_open();
    guard->failed = guard->children < 0 || guard->timer < 0 ? errno : 0;
    if (!is_bound(guard) && plan->environment == NULL)
        guard->failed = ENOMEM;
    if (is_bound(guard) && !spare_ourselves(guard->tree))
        guard->failed = EMFILE;
    if (plan->lock != NULL)
        rlock_forget_passwords(plan->lock);
    if (!plan->keeps_secrets)
        dumpable_reset();
}

/*
 * The guard closes its copies of descriptors that rlock has opened: with a copy of the socket to
 * the server, that connection would stay open after the main process has exited. Descriptors that
 * rlock was started with stay open for the command.
 */
static void drop_descriptors(const struct guard *guard)
{
    const struct guard_plan *plan = guard->plan;

    fds_drop(true, FDS(guard->fd, guard->children, guard->timer, plan->keep_fd, plan->hook_fd,
                       guard->tree->root_fd, plan->cgroup->parent_fd, plan->cgroup->procs_fd,
                       plan->cgroup->kill_fd, plan->cgroup->freeze_fd, plan->cgroup->events_fd,
                       plan->begun_fd));
}

static void wait_for_start(const struct guard *guard, struct guard_request *request)
{
    ssize_t n;

    while ((n = recv(guard->fd, request, sizeof *request, 0)) < 0 && getppid() == guard->main_pid)
        if (errno != EINTR)
            poll(NULL, 0, AGAIN_MS);
    if (n != (ssize_t)sizeof *request)
        _exit(0);
}

static void start_command(struct guard *guard, struct guard_request *request,
                          struct guard_news *news)
{
    const struct guard_plan *plan = guard->plan;
    struct spawn_plan command = plan->spawn;
    struct spawned spawned;

    command.not_after_ms = request->not_after_ms;
    command.cgroup_fd = plan->cgroup->procs_fd;
    environment_add_grant(plan->environment, request->variables);
    command.envp = plan->environment->all;
    note_early_signals(guard);
    spawned = spawn(&command);
    guard->command = spawned.pid;
    guard->exec_ms = spawned.exec_ms;
    news->error = spawned.error;
    news->is_exec_error = spawned.is_exec_error;
}

/*
 * The guard itself tells `rlock acquire` that it has begun; `rlock acquire` then hands out the
 * lock. The main process (the renew daemon) might be killed before it could tell that: the guard
 * would end a process for a lock that was not handed out. start() tells the main process first.
 */
static void tell_begun(const struct guard *guard)
{
    (void)!send(guard->plan->begun_fd, &(int){0}, sizeof(int), MSG_NOSIGNAL);
}

static void start(struct guard *guard, struct guard_request *request)
{
    const struct guard_plan *plan = guard->plan;
    struct guard_news news = {.kind = GUARD_NEWS_FAILED, .error = guard->failed};

    guard->answered = request->number;
    if (!news.error && !is_bound(guard))
        start_command(guard, request, &news);
    environment_forget(); /* the guard needs no passwords after the start */
    dumpable_reset();
    guard_state_start(&guard->machine,
                      (struct guard_rules){.is_bound = is_bound(guard),
                                           .pauses = plan->pauses,
                                           .wait_all = plan->wait_all,
                                           .grace_ms = request->grace_ms},
                      request->lease, rlock_clock_ms());
    if (news.error) {
        tell(guard, news);
        _exit(0);
    }
    tell_state(guard);
    if (is_bound(guard))
        tell_begun(guard);
    else
        proctree_set_root(guard->tree); /* after spawn(), so that the command starts sooner */
    fds_keep(FDS(guard->fd, plan->keep_fd, plan->hook_fd, guard->children, guard->timer,
                 guard->tree->children, guard->tree->root_fd, plan->cgroup->parent_fd,
                 plan->cgroup->kill_fd, plan->cgroup->freeze_fd, plan->cgroup->events_fd));
    /*
     * If somebody sends KILL to rlock's process group, the guard survives and ends the tree. A
     * group of its own in the same session would not do: at its exit rlock's group could become
     * orphaned, and the kernel would send HUP to stopped processes of it (setpgid(2)).
     */
    setsid();
}

static void obey_clock(struct guard *guard)
{
    enum guard_event due;

    while ((due = guard_state_due(&guard->machine, rlock_clock_ms())) != GUARD_EVENTS)
        handle(guard, due);
    if (has_to_thaw(guard))
        guard->may_be_frozen = !cgroup_freeze(guard->plan->cgroup, false);
    perform(guard, guard_state_work(&guard->machine));
}

static void tell_done(const struct guard *guard)
{
    const struct guard_machine *machine = &guard->machine;

    tell(guard, (struct guard_news){.kind = GUARD_NEWS_DONE,
                                    .status = guard->status,
                                    .stopped_since_ms = machine->frozen_since_ms != 0
                                                            ? machine->frozen_since_ms
                                                            : rlock_clock_ms(),
                                    .ending = ending_so_far(guard),
                                    .lease_ended_first = machine->lease_ended_first,
                                    .main_was_gone = guard->link == MAIN_IS_GONE});
}

_Noreturn void guard_run(const struct guard_plan *plan, struct proctree *tree, int fd)
{
    struct guard guard = {.plan = plan, .main_pid = getppid(), .tree = tree, .fd = fd};
    struct guard_request request;

    prepare(&guard);
    drop_descriptors(&guard);
    wait_for_start(&guard, &request);
    start(&guard, &request);
    while (guard.machine.state != GUARD_STATE_DONE || guard.may_be_frozen) {
        wait_for_something(&guard);
        listen_to_main(&guard);
        if (is_bound(&guard))
            look_at_bound(&guard);
        else
            reap(&guard);
        obey_clock(&guard);
    }
    tell_done(&guard);
    report_for_main(&guard);
    if (guard.link == MAIN_IS_GONE)
        cgroup_remove(plan->cgroup); /* a main process that lives removes the cgroup itself */
    _exit(0);
}
