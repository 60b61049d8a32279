/* SPDX-License-Identifier: MIT */
/* test_cmd_freeze: a frozen thread doesn't run, not even after SIGCONT; released, it runs again. */
#include "supervise/freeze.h"
#include "tap.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rlock.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 20000 /* how long a test waits at most: a busy machine runs processes late */
#define WATCH_MS 100      /* a counter that doesn't move for this long: its thread doesn't run */
#define COUNTERS 8
#define ALL_FROZEN 9 /* n_started gets this value when freeze_and_stay() has frozen all processes */
#define CROWD 600    /* children, so many that proctree.c reads the list of their pids in pieces */

#ifdef __SANITIZE_THREAD__
#define KEEPS_ALL_SIGNALS false /* ThreadSanitizer delays signals, and keeps one of each number */
#else
#define KEEPS_ALL_SIGNALS true
#endif

/* Memory that this process shares with the processes of the tests. */
static struct {
    atomic_long count[COUNTERS]; /* each running thread adds to its own counter without end */
    atomic_int n_signals;        /* signals that count_signal() has counted */
    atomic_int n_started;        /* threads that have started; a test sets 0 to end them all */
} * shm;

static struct proctree tree;

static bool have_started(int n)
{
    int i;

    for (i = 0; i < PATIENCE_MS && atomic_load(&shm->n_started) < n; i++)
        poll(NULL, 0, 1);
    return atomic_load(&shm->n_started) >= n;
}

static void await_started(int n)
{
    okf(have_started(n), "%d threads have started", n);
}

static void *run_counter(void *counter)
{
    atomic_fetch_add(&shm->n_started, 1);
    while (atomic_load(&shm->n_started) > 0)
        atomic_fetch_add((atomic_long *)counter, 1);
    return NULL;
}

/* Runs n threads; they count in count[first] to count[first + n - 1]. */
static void run_threads(int first, int n)
{
    pthread_t thread;
    int i;

    alarm(60); /* ends this process if the test leaves it behind */
    for (i = 1; i < n; i++)
        pthread_create(&thread, NULL, run_counter, &shm->count[first + i]);
    run_counter(&shm->count[first]);
}

static bool freeze_all(void)
{
    int64_t end = rlock_clock_ms() + PATIENCE_MS;
    int refused = 0;

    while (!freeze_tree(&tree, &refused) && rlock_clock_ms() < end)
        poll(NULL, 0, 1);
    return refused == 0 && freeze_tree(&tree, &refused);
}

/* Releases threads that stopped only after freeze_release(), as the guard does. */
static void release_late_stops(void)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
        if (WIFSTOPPED(status))
            freeze_release_one(pid, RLOCK_NEVER);
}

static void release_all(void)
{
    freeze_release(&tree, RLOCK_NEVER);
    release_late_stops();
}

/* Returns a bit for each counter that moves within WATCH_MS. */
static unsigned moving_counters(void)
{
    long before[COUNTERS];
    unsigned moved = 0;
    int i;

    for (i = 0; i < COUNTERS; i++)
        before[i] = atomic_load(&shm->count[i]);
    poll(NULL, 0, WATCH_MS);
    for (i = 0; i < COUNTERS; i++)
        if (atomic_load(&shm->count[i]) != before[i])
            moved |= 1U << i;
    return moved;
}

/*
 * Waits until each wanted counter has moved, and no other. On few processors the threads get their
 * turns one after the other, so the counters need not move at the same time.
 */
static bool all_have_moved(unsigned wanted)
{
    int64_t end = rlock_clock_ms() + PATIENCE_MS;
    unsigned moved = 0;

    while (moved != wanted && rlock_clock_ms() < end)
        moved |= moving_counters();
    return moved == wanted;
}

static void end_all(void)
{
    while (proctree_kill(&tree, rlock_clock_ms() + PATIENCE_MS, NULL, NULL))
        continue;
    is_int((int64_t)proctree_look(&tree), 0, "after KILL no process of the tree is left");
    atomic_store(&shm->n_started, 0);
}

/* ---- freeze_tree() and freeze_release() ---- */

static void signal_all(int number)
{
    proctree_signal(&tree, number);
}

/* Ends the main thread of this process, while another thread of the process counts. */
static void run_without_leader(int first)
{
    pthread_t thread;

    alarm(60);
    pthread_create(&thread, NULL, run_counter, &shm->count[first]);
    pthread_exit(NULL);
}

static void test_threads(void)
{
    const unsigned all = 0x3f;

    if (fork() == 0) {
        if (fork() == 0)
            run_threads(3, 2);
        run_threads(0, 3);
    }
    if (fork() == 0)
        run_without_leader(5);
    await_started(6);
    ok(all_have_moved(all), "six threads of three processes run");
    ok(freeze_all(), "freeze_tree() freezes all six threads");
    is_int(moving_counters(), 0, "no frozen thread runs");
    signal_all(SIGCONT);
    is_int(moving_counters(), 0, "SIGCONT makes no frozen thread run");
    ok(freeze_all(), "after SIGCONT all threads are still frozen");
    ok(!freeze_release(&tree, rlock_clock_ms()),
       "freeze_release() after not_after_ms says that threads may be left stopped");
    is_int(moving_counters(), 0, "freeze_release() after not_after_ms lets no thread run");
    ok(freeze_release(&tree, RLOCK_NEVER), "freeze_release() in time says that no thread is left");
    release_late_stops();
    ok(all_have_moved(all), "freeze_release() in time lets all six threads run again");
    ok(freeze_all() && moving_counters() == 0, "threads that were released can be frozen again");
    end_all();
}

static void test_stopped_before(void)
{
    pid_t stopped = fork();
    int status;
    pid_t pid;

    if (stopped == 0)
        run_threads(0, 2);
    if (fork() == 0)
        run_threads(2, 1);
    await_started(3);
    kill(stopped, SIGSTOP);
    pid = waitpid(stopped, &status, WUNTRACED);
    ok(pid == stopped && WIFSTOPPED(status), "SIGSTOP stops the first of two processes");
    ok(freeze_all(), "freeze_tree() freezes the stopped process and the running one");
    release_all();
    ok(all_have_moved(0x4), "after freeze_release() the process that ran before runs again");
    is_int(proctree_state(stopped), 'T',
           "after freeze_release() the process that SIGSTOP had stopped is still stopped");
    ok(freeze_all(), "freeze_tree() freezes both processes again");
    kill(stopped, SIGCONT);
    is_int(moving_counters(), 0,
           "SIGCONT for the stopped process does not make it run while it is frozen");
    release_all();
    ok(all_have_moved(0x7), "after freeze_release() the process obeys the SIGCONT and runs");
    end_all();
}

/* Returns how many of n processes are in a state, a letter as in proc(5). */
static int count_states(const pid_t *pid, int n, char state)
{
    int in_state = 0;
    int i;

    for (i = 0; i < n; i++)
        in_state += proctree_state(pid[i]) == state;
    return in_state;
}

static void test_crowd(void)
{
    pid_t crowd[CROWD];
    int i;

    for (i = 0; i < CROWD; i++) {
        crowd[i] = fork();
        if (crowd[i] == 0) {
            alarm(60);
            atomic_fetch_add(&shm->n_started, 1);
            for (;;)
                pause();
        }
    }
    await_started(CROWD);
    ok(freeze_all(), "freeze_tree() freezes 600 children");
    is_int(count_states(crowd, CROWD, 't'), CROWD,
           "each of the 600 children is stopped by its tracer");
    release_all();
    is_int(count_states(crowd, CROWD, 't'), 0,
           "after freeze_release() none of the 600 children is stopped by its tracer");
    end_all();
}

static void count_signal(int number)
{
    atomic_fetch_add(&shm->n_signals, number > 0);
}

static void test_signals(void)
{
    struct sigaction action = {.sa_handler = count_signal};
    union sigval none = {.sival_int = 0};
    pid_t pid = fork();
    int sent = 0;
    int i;

    if (pid == 0) {
        sigaction(SIGRTMIN, &action, NULL);
        run_threads(0, 1);
    }
    await_started(1);
    for (i = 0; i < 200; i++) {
        int refused;

        sent += sigqueue(pid, SIGRTMIN, none) == 0;
        /* The process stops either because of the signal or because of freeze_tree(). */
        freeze_tree(&tree, &refused);
        sent += sigqueue(pid, SIGRTMIN, none) == 0;
        if (i % 2 == 0)
            freeze_tree(&tree, &refused);
        release_all();
    }
    for (i = 0; i < PATIENCE_MS && atomic_load(&shm->n_signals) < sent; i++) {
        release_late_stops();
        poll(NULL, 0, 1);
    }
    ok(sent == 400, "400 signals are sent to a process that is frozen and released 200 times");
    is_int(atomic_load(&shm->n_signals), sent, "the process gets each signal exactly once");
    end_all();
}

/* ---- threads that can't stop, and tracers that end ---- */

static void test_vfork(void)
{
    int go[2];
    int i;

    if (pipe(go) != 0)
        return;
    if (fork() == 0) {
        char byte;
        pid_t child = vfork();

        if (child == 0) {
            atomic_fetch_add(&shm->n_started, 1);
            (void)!read(go[0], &byte, 1);
            _exit(0);
        }
        run_threads(0, 1);
    }
    await_started(1);
    ok(freeze_all(), "a thread that waits in vfork(2) for its frozen child counts as frozen");
    (void)!write(go[1], "", 1);
    is_int(moving_counters(), 0,
           "the frozen child neither reads the byte nor exits, so the parent does not run");
    release_all();
    for (i = 0; i < PATIENCE_MS && atomic_load(&shm->n_started) < 2; i++) {
        release_late_stops();
        poll(NULL, 0, 1);
    }
    ok(atomic_load(&shm->n_started) >= 2 && all_have_moved(0x1),
       "after freeze_release() the child exits and its parent runs");
    ok(!freeze_has_thread(), "the parent is not traced any more");
    ok(freeze_all(), "the parent can be frozen again");
    end_all();
    close(go[0]);
    close(go[1]);
}

/*
 * Makes this process a tracer: it waits until n threads have started, freezes its descendants, and
 * then sets n_started to ALL_FROZEN.
 */
static _Noreturn void freeze_and_stay(int n)
{
    proctree_set_root(&tree, getpid());
    if (have_started(n) && freeze_all())
        atomic_store(&shm->n_started, ALL_FROZEN);
    for (;;)
        pause();
}

static bool tracer_has_frozen_all(void)
{
    int i;

    for (i = 0; i < PATIENCE_MS && atomic_load(&shm->n_started) != ALL_FROZEN; i++)
        poll(NULL, 0, 1);
    return atomic_load(&shm->n_started) == ALL_FROZEN;
}

/*
 * A second rlock inside the command has frozen a process in vfork(2) and its child. The first rlock
 * can't trace these processes, because a thread has one tracer. The first rlock freezes that
 * tracer, and so the processes can't run.
 */
static void test_vfork_inside(void)
{
    pid_t tracer = fork();

    if (tracer == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (fork() == 0) {
            if (vfork() == 0) {
                alarm(60); /* ends this process if the test leaves it behind */
                atomic_fetch_add(&shm->n_started, 1);
                for (;;)
                    pause();
            }
            run_threads(0, 1);
        }
        freeze_and_stay(1);
    }
    ok(tracer_has_frozen_all(), "an inner tracer has frozen a process in vfork(2) and its child");
    ok(freeze_all(), "freeze_tree() freezes the inner tracer, and counts its tracees as frozen");
    is_int(moving_counters(), 0, "no process runs");
    kill(tracer, SIGKILL);
    end_all();
}

/*
 * 1. The guard seizes a process in order to stop it.
 * 2. The process is killed before it stops.
 * 3. It is a zombie until somebody reaps it: freeze_tree() must not wait for it to stop.
 */
static void test_ends_before_stop(void)
{
    pid_t pid = fork();
    int i;

    if (pid == 0)
        run_threads(0, 1);
    await_started(1);
    ok(ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0, "PTRACE_SEIZE of a running process succeeds");
    atomic_store(&shm->n_started, 0);
    kill(pid, SIGKILL);
    for (i = 0; i < PATIENCE_MS && proctree_state(pid) != 'Z'; i++)
        poll(NULL, 0, 1);
    ok(freeze_all(), "the process is killed before it stops: the zombie counts as frozen");
    end_all();
}

static void test_tracer_dies(void)
{
    pid_t tracer = fork();
    int i;

    if (tracer == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (fork() == 0)
            run_threads(0, 2);
        freeze_and_stay(2);
    }
    ok(tracer_has_frozen_all() && moving_counters() == 0,
       "an inner tracer has frozen a process of two threads");
    kill(tracer, SIGKILL);
    is_int(moving_counters(), 0, "after the death of the inner tracer no thread runs");
    for (i = 0; i < PATIENCE_MS && waitpid(-1, NULL, WNOHANG) >= 0; i++)
        poll(NULL, 0, 1);
    is_int(errno, ECHILD, "the process that the inner tracer had frozen has died with the tracer");
    end_all();
}

/* Waits as the guard does at its end, until this process traces no thread. */
static bool let_all_go(void)
{
    int i;

    freeze_release(&tree, RLOCK_NEVER);
    for (i = 0; i < PATIENCE_MS && freeze_has_thread(); i++) {
        release_late_stops();
        poll(NULL, 0, 1);
    }
    return !freeze_has_thread();
}

static void test_has_thread(void)
{
    int refused;
    pid_t pid = fork();
    int i;

    if (pid == 0)
        run_threads(0, 2);
    await_started(2);
    ok(!freeze_has_thread(), "a child that was not told to stop is not traced");
    freeze_tree(&tree, &refused);
    ok(freeze_has_thread(), "freeze_tree() has told threads to stop: they are traced");
    ok(let_all_go(), "each of them is let go, also those that had yet to stop");
    ok(all_have_moved(0x3), "all threads run again");
    ok(waitpid(-1, NULL, WNOHANG | __WALL) == 0, "waitpid(2) reports no stop any more");
    ok(freeze_all() && freeze_has_thread(), "frozen threads are traced");
    kill(pid, SIGKILL);
    for (i = 0; i < PATIENCE_MS && freeze_has_thread(); i++)
        poll(NULL, 0, 1);
    ok(!freeze_has_thread(), "threads that were killed don't count, though nobody has reaped them");
    end_all();
}

/* ---- without descriptors ---- */

static struct rlimit usual_limit;

/* From now on open(2) fails with EMFILE when `n` further descriptors are open. */
static void allow_descriptors(int n)
{
    struct rlimit limit = usual_limit;
    int lowest = dup(0);

    close(lowest);
    limit.rlim_cur = (rlim_t)(lowest + n);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void allow_all_descriptors(int number)
{
    (void)number;
    setrlimit(RLIMIT_NOFILE, &usual_limit);
}

/* With one descriptor a walk lists the threads of a process, but can't read their children. */
static void test_no_descriptors(void)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    int refused = 0;
    bool is_frozen;

    if (fork() == 0)
        run_threads(0, 2);
    await_started(2);
    getrlimit(RLIMIT_NOFILE, &usual_limit);
    allow_descriptors(1);
    is_frozen = freeze_tree(&tree, &refused);
    allow_all_descriptors(0);
    ok(!is_frozen, "freeze_tree() without descriptors does not say that all threads are stopped");
    is_int(refused, ENOMEM, "freeze_tree() without descriptors returns an errno");
    ok(freeze_all(), "freeze_tree() with descriptors freezes both threads");
    while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
        continue; /* as the guard does: so release_late_stops() will release nothing */
    signal(SIGALRM, allow_all_descriptors);
    allow_descriptors(1);
    setitimer(ITIMER_REAL, &soon, NULL);
    release_all();
    ok(all_have_moved(0x3),
       "freeze_release() lets all threads run as soon as it has descriptors again");
    end_all();
}

/* ---- a release that fails ---- */

long __real_ptrace(int request, pid_t pid, void *address, void *data);
long __wrap_ptrace(int request, ...);

static int failing; /* the errno of the next PTRACE_DETACH; 0: it succeeds */

long __wrap_ptrace(int request, ...)
{
    va_list words;
    pid_t pid;
    void *address;
    void *data;

    va_start(words, request);
    pid = va_arg(words, pid_t);
    address = va_arg(words, void *);
    data = va_arg(words, void *);
    va_end(words);
    if (request == PTRACE_DETACH && failing != 0) {
        errno = failing;
        failing = 0;
        return -1;
    }
    return __real_ptrace(request, pid, address, data);
}

static void test_release_fails(void)
{
    const int errnos[] = {ESRCH, EBUSY};
    size_t i;

    if (fork() == 0)
        run_threads(0, 1);
    await_started(1);
    for (i = 0; i < sizeof errnos / sizeof errnos[0]; i++) {
        ok(freeze_all(), "freeze_tree() freezes the thread");
        while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
            continue; /* as the guard does: so nothing tells it of this stop any more */
        failing = errnos[i];
        ok(freeze_release(&tree, RLOCK_NEVER) && failing == 0 && !freeze_has_thread(),
           "freeze_release() tries again if a thread that it could not release is left");
        failing = 0;
    }
    end_all();
}

int main(void)
{
    void *memory =
        mmap(NULL, sizeof *shm, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (!ok(memory != MAP_FAILED && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0,
            "memory is shared, and this process is a subreaper"))
        return done_testing();
    shm = memory;
    is_int(proctree_reserve(&tree), 0, "proctree_reserve() has memory for the tree");
    proctree_set_root(&tree, getpid());
    RUN(test_threads());
    RUN(test_stopped_before());
    RUN(test_crowd());
    if (KEEPS_ALL_SIGNALS)
        RUN(test_signals());
    RUN(test_vfork());
    RUN(test_vfork_inside());
    RUN(test_ends_before_stop());
    RUN(test_tracer_dies());
    RUN(test_has_thread());
    RUN(test_no_descriptors());
    RUN(test_release_fails());
    return done_testing();
}
