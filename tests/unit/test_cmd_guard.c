/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_guard: a real guard and real commands: what the guard tells the program, and when.
 *
 * Most commands are shell scripts. Each has the writing end of a pipe as its descriptor 9: it
 * writes a line when it is ready, and all of its processes have ended once the pipe is at its end.
 */
#include "child.h"
#include "refuse.h"
#include "supervise/cgroup.h"
#include "supervise/guard_client.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 40000 /* a busy machine runs processes late */
#define LONG_MS 100000    /* a lease that lasts for longer than the test */
#define SOON_MS 300
#define GRACE_MS 1500 /* from TERM to KILL, where a test needs the guard to wake between them */
#define READY_FD 9
#define INPUT_FD 8 /* from which the commands of some tests read */

extern char **environ;

static struct report report = {.level = REPORT_FAILURE};
static struct environment environment;
static struct cgroup cgroup = CGROUP_NONE;
static sigset_t no_signals;
static struct guard_client guard = {.fd = -1};
static struct guard_plan plan;
static char *argv[] = {"/bin/sh", "-c", NULL, NULL};
static int null_fd;       /* stands at READY_FD and INPUT_FD, so that no other descriptor does */
static int ready_fd;      /* the reading end of the command's pipe */
static char parent[1024]; /* the directory of the cgroup that this test runs in */

/* Makes a plan to run a shell script; a test may change the plan. */
static void make_plan(const char *script)
{
    argv[2] = (char *)(uintptr_t)script;
    plan = (struct guard_plan){.spawn = {.argv = argv, .mask = &no_signals},
                               .name = "sh",
                               .environment = &environment,
                               .keeps_secrets = true,
                               .cgroup = &cgroup,
                               .keep_fd = -1,
                               .hook_fd = -1,
                               .report = &report};
}

static struct deadlines in_ms(int64_t term_ms, int64_t kill_ms)
{
    return (struct deadlines){rlock_clock_ms() + term_ms, rlock_clock_ms() + kill_ms};
}

static struct guard_request start_now(void)
{
    struct deadlines lease = in_ms(LONG_MS, LONG_MS);
    struct guard_request start = {.kind = GUARD_REQUEST_START,
                                  .lease = lease,
                                  .not_after_ms = lease.kill_ms,
                                  .grace_ms = 200};

    memcpy(start.variables, "RLOCK_FENCE=7\0", sizeof "RLOCK_FENCE=7\0");
    return start;
}

/* Opens the command's pipe. A guard that is forked now gets it, and gives it to its command. */
static void open_pipe(void)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) != 0 || dup2(pair[1], READY_FD) < 0)
        abort();
    close(pair[1]);
    ready_fd = pair[0];
}

static struct guard_news hear(void)
{
    struct pollfd socket = {.fd = guard.fd, .events = POLLIN};
    struct guard_news news = {.kind = GUARD_NEWS_FAILED, .error = -999};

    poll(&socket, 1, PATIENCE_MS);
    guard_client_hear(&guard, &news);
    return news;
}

/* Asks for the command of `plan`, and forks the guard if there is none yet. */
static void ask_to_start(struct guard_request request)
{
    is_int(guard_client_start(&guard, &plan, &request), 0, "the guard is started");
    dup3(null_fd, READY_FD, O_CLOEXEC);
}

static void hear_begun(void)
{
    struct guard_news news = hear();

    ok(news.kind == GUARD_NEWS_AGREES && news.answered == guard.asked, "the guard has begun");
}

static void start_with_pipe(struct guard_request request)
{
    ask_to_start(request);
    hear_begun();
}

static void start(struct guard_request request)
{
    open_pipe();
    start_with_pipe(request);
}

static bool is_ready(void)
{
    struct pollfd ready = {.fd = ready_fd, .events = POLLIN};
    char c;

    return poll(&ready, 1, PATIENCE_MS) > 0 && read(ready_fd, &c, 1) == 1;
}

/* Returns whether all processes of the command end. */
static bool ends(void)
{
    while (is_ready())
        continue;
    return poll(&(struct pollfd){.fd = ready_fd, .events = POLLIN}, 1, 0) > 0;
}

static struct guard_news hear_done(const char *name)
{
    struct guard_news news;

    do
        news = hear();
    while (news.kind == GUARD_NEWS_AGREES); /* the answer to a signal, or to a request to end */
    is_int(news.kind, GUARD_NEWS_DONE, name);
    is_int(news.answered, guard.asked, "the guard has read all requests");
    return news;
}

static void extend(struct deadlines lease)
{
    struct guard_news news;

    guard_client_extend(&guard, lease);
    news = hear();
    ok(news.kind == GUARD_NEWS_AGREES && news.lease.term_ms == lease.term_ms &&
           news.lease.kill_ms == lease.kill_ms && news.answered == guard.asked,
       "the guard agrees to another lease");
}

static void stop(void)
{
    guard_client_dismiss(&guard);
    while (guard.pid != 0 && waitpid(guard.pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    guard.pid = 0;
    close(ready_fd);
}

/* ---- starts ---- */

/* Starts a guard that tells of a failure, and no command. */
static struct guard_news fail(struct guard_request request)
{
    struct guard_news news;

    open_pipe();
    ask_to_start(request);
    news = hear();
    is_int(news.kind, GUARD_NEWS_FAILED);
    ok(!is_ready(), "the command has not run");
    stop();
    return news;
}

static void test_failed_start(void)
{
    struct guard_request late = start_now();
    struct guard_news news;

    make_plan("");
    plan.spawn.argv = (char *[]){"/nonexistent/command", NULL};
    news = fail(start_now());
    ok(news.error == ENOENT && news.is_exec_error);

    make_plan("echo >&9");
    late.not_after_ms = rlock_clock_ms();
    is_int(fail(late).error, SPAWN_TOO_LATE);

    cgroup.procs_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    news = fail(start_now());
    ok(news.error == ENOSPC && !news.is_exec_error);
    close(cgroup.procs_fd);
    cgroup.procs_fd = -1;

    plan.environment = NULL;
    news = fail(start_now());
    ok(news.error == ENOMEM && !news.is_exec_error);
}

/* ---- runs of a command, all at the same time ---- */

#define WAIT_FOR_EVER "echo >&9; while :; do sleep 0.02; done"

enum act {
    NOTHING,
    PASS_USR1,
    PASS_BOTH,  /* USR1, which the terminal has sent to the command, too, then USR2 */
    END,        /* by a request to end the command, KILL comes later */
    END_SOON,   /* KILL comes soon */
    LEASE_SOON, /* by a lease of which TERM and KILL come soon */
    LEASE_TERM  /* KILL comes later */
};

static const struct run {
    const char *name, *script;
    enum act act;
    int status; /* below 0: minus the signal that ends the command */
    bool wait_all, is_lease, gets_term, gets_kill;
} runs[] = {
    {"an exit", "[ \"$RLOCK_FENCE\" = 7 ] && echo >&9; exit 3", NOTHING, 3, .wait_all = false},
    {"a signal that is passed on", "trap 'exit 5' USR1; " WAIT_FOR_EVER, PASS_USR1, 5,
     .wait_all = false},
    {"a signal from the terminal", "trap 'exit 5' USR1; trap 'exit 6' USR2; " WAIT_FOR_EVER,
     PASS_BOTH, 6, .wait_all = false},
    {"a request", WAIT_FOR_EVER, END, -SIGTERM, .gets_term = true},
    {"a request, TERM is ignored", "trap '' TERM; " WAIT_FOR_EVER, END_SOON, -SIGKILL,
     .gets_term = true, .gets_kill = true},
    {"the lease's end, TERM is ignored", "trap '' TERM; " WAIT_FOR_EVER, LEASE_SOON, -SIGKILL,
     .is_lease = true, .gets_term = true, .gets_kill = true},
    {"a shorter lease", WAIT_FOR_EVER, LEASE_TERM, -SIGTERM, .is_lease = true, .gets_term = true},
    /* The guard has no command any more: a kill(0, SIGKILL) would end this test, too. */
    {"the lease's end after the command's", "trap '' TERM; (" WAIT_FOR_EVER ") & exit 7",
     LEASE_SOON, 7, .wait_all = true, .is_lease = true, .gets_term = true, .gets_kill = true},
};

#define RUNS (sizeof runs / sizeof runs[0])

/* Returns the deadlines that the guard has to keep. */
static struct deadlines act(enum act act)
{
    struct deadlines lease = in_ms(act == LEASE_SOON ? SOON_MS : 0,
                                   act == LEASE_TERM || act == END ? LONG_MS : SOON_MS + GRACE_MS);

    if (act == PASS_USR1 || act == PASS_BOTH)
        guard_client_signal(&guard, SIGUSR1, act == PASS_BOTH);
    if (act == PASS_BOTH)
        guard_client_signal(&guard, SIGUSR2, false);
    if (act == END || act == END_SOON)
        guard_client_end(&guard, lease.kill_ms);
    if (act == LEASE_SOON || act == LEASE_TERM)
        extend(lease);
    return lease;
}

static void check_end(const struct run *run, struct deadlines due)
{
    struct guard_news news = hear_done(run->name);
    struct ending ending = news.ending;

    is_int(WIFSIGNALED(news.status) ? -WTERMSIG(news.status) : WEXITSTATUS(news.status),
           run->status, run->name);
    okf(news.lease_ended_first == run->is_lease && !news.main_was_gone, "%s", run->name);
    okf(ending.ended_ms > 0 &&
            (run->gets_term ? ending.term_ms >= due.term_ms && ending.term_ms < due.kill_ms
                            : ending.term_ms == 0) &&
            (run->gets_kill ? ending.kill_ms >= due.kill_ms : ending.kill_ms == 0),
        "%s: TERM and KILL come at their time, or not at all", run->name);
    ok(ends(), "no process is left");
    poll(&(struct pollfd){.fd = guard.fd, .events = POLLIN}, 1, PATIENCE_MS);
    is_int(guard_client_hear(&guard, &news), -1, "the guard exits after the command");
}

static void test_runs(void)
{
    struct {
        struct guard_client guard;
        int ready_fd;
        struct deadlines due;
    } started[RUNS];

    for (size_t i = 0; i < RUNS; i++) {
        make_plan(runs[i].script);
        plan.wait_all = runs[i].wait_all;
        start(start_now());
        okf(is_ready(), "%s: the command runs", runs[i].name);
        started[i].due = act(runs[i].act);
        started[i].guard = guard;
        started[i].ready_fd = ready_fd;
        guard = (struct guard_client){.fd = -1};
    }
    for (size_t i = 0; i < RUNS; i++) {
        guard = started[i].guard;
        ready_fd = started[i].ready_fd;
        check_end(&runs[i], started[i].due);
        stop();
    }
    guard = (struct guard_client){.fd = -1};
}

/* ---- signals ---- */

/*
 * Of two signals that the terminal sends, the first comes before the start of the command, but the
 * program reads it after the start. The guard, which is in the same job, gets each as well. It has
 * also got a SIGWINCH while the program waited for the lock, and the window changes once more.
 */
static void test_early_signal(void)
{
    sigset_t early;
    struct guard_news news;

    sigemptyset(&early);
    sigaddset(&early, SIGHUP);
    sigaddset(&early, SIGWINCH);
    sigprocmask(SIG_BLOCK, &early, NULL); /* until the guard has blocked all signals */
    make_plan("trap 'n=$((n + 1)); echo >&9' HUP; trap 'n=$((n + 10))' WINCH; "
              "trap 'exit $n' USR2; " WAIT_FOR_EVER);
    open_pipe();
    is_int(guard_client_prepare(&guard, &plan), 0, "the guard is forked ahead of its start");
    kill(guard.pid, SIGWINCH);
    kill(guard.pid, SIGHUP);
    start_with_pipe(start_now());
    sigprocmask(SIG_UNBLOCK, &early, NULL);
    ok(is_ready(), "the command runs");
    guard_client_signal(&guard, SIGWINCH, true);
    guard_client_signal(&guard, SIGHUP, true);
    ok(is_ready(), "the guard passes on a signal that came before the command");
    guard_client_signal(&guard, SIGHUP, true);
    guard_client_signal(&guard, SIGUSR2, false);
    news = hear_done("the command ends by the last signal");
    is_int(WEXITSTATUS(news.status), 1);
    stop();
}

/*
 * The kernel refuses all signals that the guard sends. The command ends when it reads a line from
 * INPUT_FD.
 */
static int be_refused(void)
{
    struct guard_request request = start_now();
    struct guard_news news;
    pid_t refused;
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) != 0 || dup2(pair[0], INPUT_FD) < 0)
        abort();
    make_plan("read line <&8; exit 3");
    if (!refuse(SYS_kill, EPERM) || !refuse(SYS_pidfd_send_signal, EPERM))
        return CHILD_CANT_RUN;
    if (guard_client_start(&guard, &plan, &request) != 0)
        return 3;
    guard_client_signal(&guard, SIGTERM, false);
    if (hear().kind != GUARD_NEWS_AGREES || hear().kind != GUARD_NEWS_AGREES) /* START, SIGNAL */
        return 7;
    news = hear();
    refused = news.pid;
    if (news.kind != GUARD_NEWS_REFUSED || news.was_kill || refused <= 0)
        return 4;
    guard_client_end(&guard, rlock_clock_ms() + SOON_MS);
    if (hear().kind != GUARD_NEWS_AGREES)
        return 8;
    for (int n = 0; (news = hear()).kind == GUARD_NEWS_REFUSED; n++) {
        if (!news.was_kill || news.pid != refused)
            return 5;
        if (n == 2)
            (void)!write(pair[1], "go\n", 3);
    }
    return news.kind == GUARD_NEWS_DONE && WEXITSTATUS(news.status) == 3 ? 0 : 6;
}

/* The guard's recv(2) fails, as for lack of memory, while it waits for the start. */
static int be_unheard(void)
{
    int status;

    make_plan("");
    if (!refuse(SYS_recvfrom, ENOMEM))
        return CHILD_CANT_RUN;
    if (guard_client_prepare(&guard, &plan) != 0)
        return 3;
    poll(NULL, 0, 200);
    status = waitpid(guard.pid, NULL, WNOHANG) == 0 ? 0 : 4;
    guard_client_reap(&guard);
    return status;
}

static void in_child(int (*body)(void), const char *name)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(body());
    child_passes(pid, name, "the kernel allows no filter");
}

/* ---- --on-lost pause ---- */

static void test_pause(void)
{
    struct guard_news news;
    int64_t since_ms;

    make_plan("trap 'exit 5' USR1; " WAIT_FOR_EVER);
    plan.pauses = true;
    start(start_now());
    ok(is_ready(), "the command runs");
    extend(in_ms(0, LONG_MS)); /* not before the command has written its first line */
    news = hear();
    ok(news.kind == GUARD_NEWS_PAUSED && news.stopped_since_ms > 0);
    since_ms = news.stopped_since_ms;
    extend(in_ms(LONG_MS, LONG_MS));
    guard_client_signal(&guard, SIGUSR1, false);
    news = hear_done("the command runs again, and ends by a signal");
    is_int(WEXITSTATUS(news.status), 5, "the command was not killed");
    ok(news.stopped_since_ms >= since_ms, "the guard tells until when the command was not frozen");
    stop();
}

/*
 * The command has moved itself to the cgroup of this test, where the guard can't freeze it, and
 * exits before the tree is frozen: what it has left behind in its cgroup runs again.
 */
static void test_exit_outside(void)
{
    int64_t end = rlock_clock_ms() + PATIENCE_MS;
    struct guard_news news;
    char script[1400];
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) != 0 || dup2(pair[0], INPUT_FD) < 0)
        abort();
    close(pair[0]);
    snprintf(script, sizeof script,
             "(read line <&8; echo >&9) & echo 0 >'%s/cgroup.procs'; trap 'exit 5' USR1; echo >&9; "
             "wait",
             parent);
    make_plan(script);
    plan.pauses = true;
    start(start_now());
    dup3(null_fd, INPUT_FD, O_CLOEXEC);
    ok(is_ready(), "the command has left its cgroup");
    extend(in_ms(0, LONG_MS)); /* not before the command has written its first line */
    while (!cgroup_is_frozen(&cgroup) && rlock_clock_ms() < end)
        poll(NULL, 0, 1);
    ok(cgroup_is_frozen(&cgroup), "what is in the cgroup is frozen");
    ok(poll(&(struct pollfd){.fd = guard.fd, .events = POLLIN}, 1, 200) == 0,
       "the guard doesn't say that the command is frozen");
    guard_client_signal(&guard, SIGUSR1, false);
    do
        news = hear();
    while (news.kind == GUARD_NEWS_AGREES || news.kind == GUARD_NEWS_PAUSED);
    is_int(news.kind, GUARD_NEWS_DONE, "the command exits");
    is_int(WEXITSTATUS(news.status), 5, "the guard passes on its status");
    (void)!write(pair[1], "\n", 1);
    ok(is_ready(), "the process that it has left behind runs again");
    close(pair[1]);
    stop();
}

/* ---- the end of the tree, and of the program ---- */

static void no_survivor(void *context, pid_t refused)
{
    (void)context;
    (void)refused;
}

/* ---- a process that runs already ---- */

/* Starts a guard for a child of this test. Returns the child's pid. */
static pid_t start_bound(bool ignores_term)
{
    struct guard_request request = start_now();
    pid_t pid;

    signal(SIGTERM, ignores_term ? SIG_IGN : SIG_DFL);
    pid = fork();
    if (pid == 0) {
        alarm(500); /* ends this process if the test leaves it behind */
        for (;;)
            pause();
    }
    signal(SIGTERM, SIG_DFL);
    make_plan("");
    plan.bound = pid;
    plan.environment = NULL;
    guard = (struct guard_client){.fd = -1};
    is_int(proctree_bind(&guard.tree, pid), 0, "a process is bound");
    is_int(guard_client_start(&guard, &plan, &request), 0, "its guard is started");
    is_int(guard_client_await(&guard, rlock_clock_ms() + PATIENCE_MS), 0, "and acts by the lease");
    return pid;
}

static void stop_bound(void)
{
    guard_client_reap(&guard);
    guard = (struct guard_client){.fd = -1};
}

static void test_bound(void)
{
    pid_t pid = start_bound(true);
    struct guard_news news;

    proctree_signal_root(&guard.tree, SIGTERM);
    extend(in_ms(SOON_MS, SOON_MS + GRACE_MS));
    news = hear_done("the guard ends the bound process before the lease ends");
    ok(news.lease_ended_first && news.ending.term_ms > 0 && news.ending.kill_ms > 0);
    is_int(child_status(pid), -SIGKILL, "KILL has ended the process");
    stop_bound();

    pid = start_bound(false);
    ok(proctree_signal_root(&guard.tree, SIGUSR1), "the kernel allows a signal");
    news = hear_done("the bound process has ended by itself");
    ok(!news.lease_ended_first && news.ending.term_ms == 0 && news.ending.kill_ms == 0);
    is_int(child_status(pid), -SIGUSR1, "a signal was passed on to the process");
    stop_bound();

    pid = start_bound(false);
    extend(in_ms(0, LONG_MS));
    hear_done("after TERM the guard waits no longer than the process runs");
    is_int(child_status(pid), -SIGTERM, "TERM has ended the process");
    stop_bound();

    pid = start_bound(false);
    guard_client_extend(&guard, in_ms(SOON_MS, LONG_MS));
    guard_client_dismiss(&guard);
    is_int(child_status(pid), -SIGTERM, "the guard of a dead rlock sends TERM at the lease's time");
    stop_bound();

    pid = start_bound(true);
    kill(guard.pid, SIGSTOP);
    guard_client_replace(&guard, no_survivor, NULL);
    is_int(child_status(pid), -SIGKILL, "who replaces a guard that is stopped ends the process");
    stop_bound();
}

/*
 * The body of a descendant of the bound process, which ignores TERM. It starts the guard, and then
 * exits or, if `replaces`, replaces the guard.
 */
static _Noreturn void be_program_below(pid_t bound, bool replaces)
{
    struct guard_request request = start_now();

    make_plan("");
    plan.bound = bound;
    guard = (struct guard_client){.fd = -1};
    if (proctree_bind(&guard.tree, bound) != 0 ||
        guard_client_start(&guard, &plan, &request) != 0 ||
        guard_client_await(&guard, rlock_clock_ms() + PATIENCE_MS) != 0)
        _exit(1);
    guard_client_extend(&guard, in_ms(0, SOON_MS));
    if (replaces)
        guard_client_replace(&guard, no_survivor, NULL);
    _exit(0);
}

/*
 * `rlock acquire --bind-pid $$` has left the program and its guard behind, and the bound shell is a
 * subreaper: so both descend from the shell. Neither must kill itself before it kills the shell.
 */
static void test_below_bound(bool replaces)
{
    pid_t pid = fork();

    if (pid == 0) {
        pid_t bound = getpid();

        alarm(PATIENCE_MS / 1000);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        signal(SIGTERM, SIG_IGN);
        if (fork() == 0)
            be_program_below(bound, replaces);
        for (;;)
            pause();
    }
    is_int(child_status(pid), -SIGKILL);
}

/* ---- a guard that fails ---- */

/* For how many ns has the guard run, and how often? */
static void read_use(long long *ns, long long *n)
{
    char name[40];
    long long waited;
    FILE *file;

    snprintf(name, sizeof name, "/proc/%d/schedstat", (int)guard.pid);
    file = fopen(name, "r");
    if (file == NULL || fscanf(file, "%lld %lld %lld", ns, &waited, n) != 3)
        *ns = *n = 0;
    if (file != NULL)
        fclose(file);
}

/* A guard that has nothing to do sleeps: it does not look again and again. */
static void check_idle(void)
{
    long long ns[2];
    long long n[2];

    extend(in_ms(LONG_MS, LONG_MS));
    read_use(&ns[0], &n[0]);
    poll(NULL, 0, 300);
    read_use(&ns[1], &n[1]);
    okf(ns[1] - ns[0] < 20000000 && n[1] - n[0] < 10, "the guard slept: %lld ns, woken %lld times",
        ns[1] - ns[0], n[1] - n[0]);
}

static void test_fate(void)
{
    char text[200];
    struct guard_news news;

    make_plan(WAIT_FOR_EVER);
    start(start_now());
    ok(is_ready(), "the command runs");
    guard_client_fate(&guard, text, sizeof text);
    is_str(text, "has neither answered nor ended the command in time", "the guard lives");
    is_int(guard_client_hear(&guard, &news), 0, "a guard that lives has nothing to tell yet");
    check_idle();
    ok(!guard.is_gone, "a guard that has nothing to tell is not gone");
    kill(guard.pid, SIGSTOP);
    waitid(P_PID, (id_t)guard.pid, &(siginfo_t){0}, WSTOPPED | WNOWAIT);
    guard_client_fate(&guard, text, sizeof text);
    is_str(text, "does not answer: it is stopped", "the guard is stopped");
    is_int(guard_client_await(&guard, 0), ETIMEDOUT,
           "a guard that tells nothing in time is killed");
    waitid(P_PID, (id_t)guard.pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
    is_int(guard_client_hear(&guard, &news), -1, "a dead guard is noticed");
    guard_client_fate(&guard, text, sizeof text);
    is_str(text, "was ended by signal 9 (Killed)", "the guard was killed");
    guard_client_replace(&guard, no_survivor, NULL);
    ok(ends(), "the program kills the processes that a dead guard has left");
    is_int(guard.pid, 0, "the guard is reaped");
    stop();

    make_plan("exit 0");
    start(start_now());
    hear_done("the command ends");
    guard_client_dismiss(&guard);
    guard.is_gone = true;
    waitid(P_PID, (id_t)guard.pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
    guard_client_fate(&guard, text, sizeof text);
    is_str(text, "ended with status 0", "a guard that was dismissed ends with 0");
    stop();
}

int main(void)
{
    alarm(500); /* ends this test if a guard hangs */
    sigemptyset(&no_signals);
    null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup3(null_fd, READY_FD, O_CLOEXEC);
    dup3(null_fd, INPUT_FD, O_CLOEXEC);
    if (!environment_make(&environment, "key", (char *[]){NULL}, true))
        return 1;
    RUN_ALL(test_failed_start, test_runs, test_early_signal);
    in_child(be_refused, "a refused TERM is reported once, a refused KILL again and again");
    in_child(be_unheard, "a guard that can't hear its program goes on trying");
    if (cgroup_make(&cgroup, parent, sizeof parent) == 0) {
        RUN_ALL(test_pause, test_exit_outside);
        cgroup_remove(&cgroup);
    } else {
        skip("--on-lost pause", "no control group can be made here");
    }
    RUN(test_bound());
    RUN(test_below_bound(false));
    RUN(test_below_bound(true));
    RUN(test_fate());
    environment_fini(&environment);
    return done_testing();
}
