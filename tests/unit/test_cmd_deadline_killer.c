/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_deadline_killer: the deadline killer ends the bound process at the deadlines, whether
 * the process that started the killer lives or not, and leaves it alone when it is told to stop.
 */
#include "supervise/deadline_killer.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <rlock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_MS 100000 /* later than the end of this test */
#define SOON_MS 200
#define PATIENCE_MS 20000 /* how long a test waits at most: a busy machine runs processes late */

static struct report report = {.level = REPORT_FAILURE, .key = "key"};
static char said[8192]; /* what the processes of the last test have written to stderr */

/* ---- the bound process ---- */

/*
 * Starts a process that waits for a signal. If it ignores TERM, only KILL ends it. This process
 * ignores TERM during the fork, so that the child does so from its start.
 */
static pid_t start_process(bool ignores_term)
{
    pid_t pid;

    if (ignores_term)
        signal(SIGTERM, SIG_IGN);
    pid = fork();
    if (pid == 0) {
        alarm(100); /* ends this process if the test leaves it behind */
        for (;;)
            pause();
    }
    signal(SIGTERM, SIG_DFL);
    return pid;
}

/* Waits for the end of a child. Returns its status as waitpid(2) tells it; -1: no such child. */
static int status_of(pid_t pid)
{
    int status = -1;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* Returns the signal that has ended the process. */
static int signal_of(pid_t pid)
{
    int status = status_of(pid);

    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static bool lives(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static struct deadlines in_ms(int64_t term_ms, int64_t kill_ms)
{
    return (struct deadlines){rlock_clock_ms() + term_ms, rlock_clock_ms() + kill_ms};
}

static struct bound_process open_process(pid_t pid)
{
    struct bound_process bound;

    is_int(bound_process_open(&bound, pid), 0, "the process is bound");
    return bound;
}

static void close_process(struct bound_process *bound)
{
    close(bound->fd);
    proctree_free(&bound->tree);
}

static void test_bound_process(void)
{
    pid_t pid = start_process(false);
    struct bound_process bound = open_process(pid);
    int64_t began_ms = rlock_clock_ms();

    ok(!bound_process_has_ended(&bound), "a process that lives has not ended");
    is_int(bound_process_end(&bound, rlock_clock_ms() + LONG_MS, 0), 0, "the process is ended");
    ok(bound_process_has_ended(&bound), "the process has ended");
    ok(bound.ending.term_ms >= began_ms && bound.ending.kill_ms == 0 &&
           bound.ending.ended_ms >= bound.ending.term_ms,
       "the process got TERM, and no KILL");
    is_int(signal_of(pid), SIGTERM, "TERM has ended the process");
    close_process(&bound);
    ok(bound_process_open(&bound, pid) == ESRCH, "a process that is gone can't be bound");
    close(bound.fd);

    pid = start_process(false);
    kill(pid, SIGKILL);
    waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
    is_int(bound_process_open(&bound, pid), ESRCH, "a process that has ended can't be bound");
    close(bound.fd);
    signal_of(pid);

    pid = start_process(true);
    bound = open_process(pid);
    began_ms = rlock_clock_ms();
    is_int(bound_process_end(&bound, began_ms, 0), 0, "the deadline for KILL has come");
    ok(bound.ending.term_ms == 0 && bound.ending.kill_ms >= began_ms,
       "the process got KILL, and no TERM");
    is_int(signal_of(pid), SIGKILL, "KILL has ended the process");
    close_process(&bound);

    pid = start_process(true);
    bound = open_process(pid);
    is_int(bound_process_end(&bound, rlock_clock_ms() - 60000, 0), 0,
           "the deadline for KILL was a minute ago, as this process was stopped");
    is_int(signal_of(pid), SIGKILL, "KILL has ended the process all the same");
    close_process(&bound);

    pid = start_process(true);
    bound = open_process(pid);
    bound_process_signal(&bound, SIGTERM);
    bound_process_signal(&bound, SIGINT);
    is_int(signal_of(pid), SIGINT, "a signal is sent to the bound process");
    bound_process_note(&bound, 0);
    ok(!bound.is_noted, "a process that has ended is not noted as a root");
    is_int(bound_process_end(&bound, 0, 0), 0, "a process that has ended need not be ended");
    close_process(&bound);
}

/* ---- without descriptors ---- */

static struct rlimit usual_limit;

/* From now on open(2) fails with EMFILE. */
static void allow_no_descriptors(void)
{
    struct rlimit limit;
    int lowest = dup(0);

    close(lowest);
    getrlimit(RLIMIT_NOFILE, &usual_limit);
    limit = usual_limit;
    limit.rlim_cur = (rlim_t)lowest;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void allow_all_descriptors(int number)
{
    (void)number;
    setrlimit(RLIMIT_NOFILE, &usual_limit);
}

/*
 * Starts a process with a child that ignores TERM, and returns its pid. `*end_fd` is at its end
 * when both have ended.
 */
static pid_t start_family(int *end_fd)
{
    int pair[2];
    pid_t pid;
    char c;

    if (pipe(pair) != 0)
        abort();
    pid = fork();
    if (pid == 0) {
        start_process(true);
        (void)!write(pair[1], "", 1);
        for (;;)
            pause();
    }
    close(pair[1]);
    ok(read(pair[0], &c, 1) == 1, "the process has a child");
    *end_fd = pair[0];
    return pid;
}

static bool have_ended(int end_fd)
{
    struct pollfd end = {.fd = end_fd, .events = POLLIN};
    bool is_at_end = poll(&end, 1, PATIENCE_MS) > 0;

    close(end_fd);
    return is_at_end;
}

/*
 * The bound process has a child. For a moment there is no descriptor free, so that a walk of /proc
 * finds no process. That must not be taken for the end of the child.
 */
static void test_no_descriptors(void)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 50000}};
    struct bound_process bound;
    int end_fd;
    pid_t pid;

    signal(SIGALRM, allow_all_descriptors);
    pid = start_family(&end_fd);
    bound = open_process(pid);
    bound_process_note(&bound, 0);
    kill(pid, SIGKILL);
    signal_of(pid);
    allow_no_descriptors();
    setitimer(ITIMER_REAL, &soon, NULL);
    is_int(bound_process_end(&bound, rlock_clock_ms(), 0), 0,
           "the bound process has ended, its child has not, and there is no descriptor free");
    allow_all_descriptors(0);
    ok(have_ended(end_fd), "the child is ended as soon as there are descriptors again");
    close_process(&bound);

    pid = start_family(&end_fd);
    bound = open_process(pid);
    allow_no_descriptors();
    setitimer(ITIMER_REAL, &soon, NULL);
    is_int(bound_process_end(&bound, rlock_clock_ms() + SOON_MS, 0), 0,
           "the bound process and its child live, and there is no descriptor free");
    allow_all_descriptors(0);
    signal_of(pid);
    ok(have_ended(end_fd), "both are ended");
    close_process(&bound);
    signal(SIGALRM, SIG_DFL);
    alarm(110);
}

static void test_refusals(void)
{
    ok(bound_process_refusal(1) != NULL, "process 1 can't be bound");
    ok(bound_process_refusal(getpid()) != NULL, "rlock itself can't be bound");
    ok(getppid() == 1 || bound_process_refusal(getppid()) == NULL, "rlock's parent can be bound");
    if (proctree_flags(2) & PROCTREE_KERNEL_THREAD)
        ok(bound_process_refusal(2) != NULL, "a thread of the kernel can't be bound");
}

/* ---- the deadline killer ---- */

static int stderr_before = -1;
static int said_fd = -1;

static void begin_to_listen(void)
{
    int pair[2];

    if (pipe(pair) != 0)
        abort();
    stderr_before = dup(STDERR_FILENO);
    dup2(pair[1], STDERR_FILENO);
    close(pair[1]);
    said_fd = pair[0];
}

/* Reads what was said until all processes that could say something have ended. */
static void listen_to_the_end(void)
{
    size_t n = 0;
    ssize_t got;

    dup2(stderr_before, STDERR_FILENO);
    close(stderr_before);
    while (n < sizeof said - 1 && (got = read(said_fd, said + n, sizeof said - 1 - n)) > 0)
        n += (size_t)got;
    said[n] = '\0';
    close(said_fd);
}

static struct deadline_killer start_killer(const struct bound_process *bound,
                                           struct deadlines deadlines)
{
    struct deadline_killer killer;

    is_int(deadline_killer_start(&killer, bound, deadlines, -1, &report), 0, "a killer is started");
    return killer;
}

static void test_deadline(void)
{
    pid_t pid;
    struct bound_process bound;
    struct deadline_killer killer;

    begin_to_listen();
    pid = start_process(true);
    bound = open_process(pid);
    /* the killer sends no TERM if it wakes only when KILL is due */
    killer = start_killer(&bound, in_ms(SOON_MS, SOON_MS + 1500));
    is_int(signal_of(pid), SIGKILL, "the killer ends the process at the deadline for KILL");
    is_int(status_of(killer.pid), 0, "the killer ends after its work");
    deadline_killer_stop(&killer);
    listen_to_the_end();
    ok(strstr(said, "the process that renews the lease is stopped, or got no processor time") &&
           strstr(said, "and its descendants were ended: TERM at ") && strstr(said, ", KILL at "),
       "the killer reports why it has ended the process, and how");
    close_process(&bound);
}

static void test_new_deadlines(void)
{
    pid_t pid;
    struct bound_process bound;
    struct deadline_killer killer;

    begin_to_listen();
    pid = start_process(false);
    bound = open_process(pid);
    killer = start_killer(&bound, in_ms(LONG_MS, LONG_MS));
    ok(deadline_killer_set(&killer, in_ms(LONG_MS, LONG_MS)), "the killer is told new deadlines");
    ok(deadline_killer_end_bound(&killer, in_ms(0, LONG_MS)), "the lock is lost");
    is_int(signal_of(pid), SIGTERM, "the killer acts by the deadlines that it was told last");
    is_int(status_of(killer.pid), 0, "the killer ends after its work");
    listen_to_the_end();
    is_str(said, "", "the starter reports the loss, and the killer doesn't");
    ok(!deadline_killer_set(&killer, in_ms(1, 1)),
       "a killer that has ended can't be told anything");
    deadline_killer_stop(&killer);
    is_int(killer.fd, -1, "the socket to the killer is closed");
    ok(!deadline_killer_set(&killer, in_ms(1, 1)), "without a socket no killer can be told");
    close_process(&bound);
}

static void test_stop(void)
{
    pid_t pid = start_process(false);
    struct bound_process bound = open_process(pid);
    struct deadline_killer killer;
    int pair[2];

    if (pipe(pair) != 0)
        abort();
    killer = start_killer(&bound, in_ms(LONG_MS, LONG_MS));
    close(pair[1]);
    ok(have_ended(pair[0]), "the killer closes what its starter has open");
    ok(lives(killer.pid), "the killer lives");
    deadline_killer_stop(&killer);
    is_int(status_of(killer.pid), 0, "the killer exits when it is told to stop");
    ok(lives(pid), "the bound process lives on");

    killer = start_killer(&bound, in_ms(LONG_MS, LONG_MS));
    kill(pid, SIGINT);
    is_int(status_of(killer.pid), 0, "the killer exits when the bound process has ended by itself");
    is_int(signal_of(pid), SIGINT, "the killer had nothing to end");
    deadline_killer_stop(&killer);
    close_process(&bound);
}

/* The process that starts the killer is a child here, so that it can be killed. */
static void test_dead_starter(void)
{
    pid_t pid;
    pid_t starter;
    struct bound_process bound;
    int ready[2];
    char c;

    begin_to_listen();
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* the killer becomes a child of this process */
    pid = start_process(false);
    bound = open_process(pid);
    if (pipe(ready) != 0)
        abort();
    starter = fork();
    if (starter == 0) {
        struct deadline_killer killer;
        int failed = deadline_killer_start(&killer, &bound, in_ms(SOON_MS, LONG_MS), -1, &report);

        if (failed == 0 && write(ready[1], "r", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    ok(read(ready[0], &c, 1) == 1, "another process has started the killer");
    close(ready[0]);
    kill(starter, SIGKILL);
    is_int(signal_of(starter), SIGKILL, "the process that has started the killer is dead");
    is_int(signal_of(pid), SIGTERM, "the killer ends the bound process all the same");
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    listen_to_the_end();
    ok(strstr(said, "the process that renews the lease was killed"),
       "the killer reports that the process which renews the lease is dead");
    close_process(&bound);
}

int main(void)
{
    alarm(110); /* ends this test if a killer hangs */
    RUN(test_bound_process());
    RUN(test_no_descriptors());
    RUN(test_refusals());
    RUN(test_deadline());
    RUN(test_new_deadlines());
    RUN(test_stop());
    RUN(test_dead_starter());
    return done_testing();
}
