/* SPDX-License-Identifier: MIT */
/* test_cmd_freeze: what is frozen doesn't run, whoever wants it to, and then goes on as it was. */
#include "supervise/freeze.h"
#include "tap.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rlock.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 20000
#define LOOK_MS 100
#define COUNTERS 8
#define HELD 9    /* for those who have come: they are held */
#define CROWD 600 /* more than are read at once */

#ifdef __SANITIZE_THREAD__
#define COUNTS_SIGNALS false /* ThreadSanitizer keeps one of a kind until it has time for it */
#else
#define COUNTS_SIGNALS true
#endif

/* What runs counts in a place of its own. */
static struct {
    atomic_long count[COUNTERS];
    atomic_int signals;
    atomic_int here; /* those who have come so far */
} * seen;

static struct proctree tree;

static bool have_come(int n)
{
    int i;

    for (i = 0; i < PATIENCE_MS && atomic_load(&seen->here) < n; i++)
        poll(NULL, 0, 1);
    return atomic_load(&seen->here) >= n;
}

static void wait_for_come(int n)
{
    okf(have_come(n), "%d have come", n);
}

static void *run(void *counter)
{
    atomic_fetch_add(&seen->here, 1);
    while (atomic_load(&seen->here) > 0)
        atomic_fetch_add((atomic_long *)counter, 1);
    return NULL;
}

static void run_threads(int first, int n)
{
    pthread_t thread;
    int i;

    alarm(60); /* whatever becomes of the test */
    for (i = 1; i < n; i++)
        pthread_create(&thread, NULL, run, &seen->count[first + i]);
    run(&seen->count[first]);
}

static bool freeze_all(void)
{
    int64_t end = rlock_clock_ms() + PATIENCE_MS;
    int refused = 0;

    while (!freeze_tree(&tree, &refused) && rlock_clock_ms() < end)
        poll(NULL, 0, 1);
    return refused == 0 && freeze_tree(&tree, &refused);
}

/* As the guard does: one that stopped late is let go now. */
static void reap_stops(void)
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
    reap_stops();
}

/* Which counters move; a bit for each. */
static unsigned moving(void)
{
    long before[COUNTERS];
    unsigned moved = 0;
    int i;

    for (i = 0; i < COUNTERS; i++)
        before[i] = atomic_load(&seen->count[i]);
    poll(NULL, 0, LOOK_MS);
    for (i = 0; i < COUNTERS; i++)
        if (atomic_load(&seen->count[i]) != before[i])
            moved |= 1U << i;
    return moved;
}

/* All that should move do so in the end, one after the other where there are few processors. */
static bool all_move(unsigned wanted)
{
    int64_t end = rlock_clock_ms() + PATIENCE_MS;
    unsigned moved = 0;

    while (moved != wanted && rlock_clock_ms() < end)
        moved |= moving();
    return moved == wanted;
}

static void end_all(void)
{
    while (proctree_kill(&tree, rlock_clock_ms() + PATIENCE_MS, NULL, NULL))
        continue;
    is_int((int64_t)proctree_look(&tree), 0, "nothing is left");
    atomic_store(&seen->here, 0);
}

/* ---- what runs ---- */

static void to_all(int number)
{
    proctree_signal(&tree, number);
}

/* One whose first thread has ended, while another runs. */
static void run_without_leader(int first)
{
    pthread_t thread;

    alarm(60);
    pthread_create(&thread, NULL, run, &seen->count[first]);
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
    wait_for_come(6);
    ok(all_move(all), "processes and threads run");
    ok(freeze_all(), "all are frozen");
    is_int(moving(), 0, "and none runs");
    to_all(SIGCONT);
    is_int(moving(), 0, "nor does one that is told to go on by a signal");
    ok(freeze_all(), "all are still frozen");
    freeze_release(&tree, rlock_clock_ms());
    is_int(moving(), 0, "nor is one let go when it is too late");
    release_all();
    ok(all_move(all), "they go on when they are let go");
    ok(freeze_all() && moving() == 0, "they can be frozen again");
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
    wait_for_come(3);
    kill(stopped, SIGSTOP);
    pid = waitpid(stopped, &status, WUNTRACED);
    ok(pid == stopped && WIFSTOPPED(status), "one is stopped");
    ok(freeze_all(), "it is frozen, and another one");
    release_all();
    ok(all_move(0x4), "the other one goes on");
    is_int(proctree_state(stopped), 'T', "what was stopped before is stopped still");
    ok(freeze_all(), "it is frozen again");
    kill(stopped, SIGCONT);
    is_int(moving(), 0, "and told to go on meanwhile, which it doesn't");
    release_all();
    ok(all_move(0x7), "until it is let go");
    end_all();
}

/* How many of them are in a state. */
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
            atomic_fetch_add(&seen->here, 1);
            for (;;)
                pause();
        }
    }
    wait_for_come(CROWD);
    ok(freeze_all(), "a crowd of children is frozen");
    is_int(count_states(crowd, CROWD, 't'), CROWD, "to the last");
    release_all();
    is_int(count_states(crowd, CROWD, 't'), 0, "and let go");
    end_all();
}

static void count_signal(int number)
{
    atomic_fetch_add(&seen->signals, number > 0);
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
    wait_for_come(1);
    for (i = 0; i < 200; i++) {
        int refused;

        sent += sigqueue(pid, SIGRTMIN, none) == 0;
        freeze_tree(&tree, &refused); /* it may be met by the signal, or by us */
        sent += sigqueue(pid, SIGRTMIN, none) == 0;
        if (i % 2 == 0)
            freeze_tree(&tree, &refused);
        release_all();
    }
    for (i = 0; i < PATIENCE_MS && atomic_load(&seen->signals) < sent; i++) {
        reap_stops();
        poll(NULL, 0, 1);
    }
    ok(sent == 400, "signals are sent to one that is frozen and let go");
    is_int(atomic_load(&seen->signals), sent, "each is delivered once");
    end_all();
}

/* ---- what can't stop ---- */

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
            atomic_fetch_add(&seen->here, 1);
            (void)!read(go[0], &byte, 1);
            _exit(0);
        }
        run_threads(0, 1);
    }
    wait_for_come(1);
    ok(freeze_all(), "who waits for the child of its vfork is as good as frozen");
    (void)!write(go[1], "", 1);
    is_int(moving(), 0, "it doesn't run, as that child doesn't");
    release_all();
    for (i = 0; i < PATIENCE_MS && atomic_load(&seen->here) < 2; i++) {
        reap_stops();
        poll(NULL, 0, 1);
    }
    ok(atomic_load(&seen->here) >= 2 && all_move(0x1), "both go on when they are let go");
    ok(freeze_all(), "and can be frozen again");
    end_all();
    close(go[0]);
    close(go[1]);
}

/* Another process that holds all below it, once so many have come; and that it does. */
static _Noreturn void hold_all(int n)
{
    proctree_set_root(&tree, getpid());
    if (have_come(n) && freeze_all())
        atomic_store(&seen->here, HELD);
    for (;;)
        pause();
}

static bool is_all_held(void)
{
    int i;

    for (i = 0; i < PATIENCE_MS && atomic_load(&seen->here) != HELD; i++)
        poll(NULL, 0, 1);
    return atomic_load(&seen->here) == HELD;
}

/* As by another rlock inside: who waits for the child of its vfork is held, and who holds it. */
static void test_vfork_inside(void)
{
    pid_t holder = fork();

    if (holder == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (fork() == 0) {
            if (vfork() == 0) {
                alarm(60); /* whatever becomes of the test */
                atomic_fetch_add(&seen->here, 1);
                for (;;)
                    pause();
            }
            run_threads(0, 1);
        }
        hold_all(1);
    }
    ok(is_all_held(), "somebody holds who waits for the child of its vfork");
    ok(freeze_all(), "and is held, as that is");
    is_int(moving(), 0, "nothing runs");
    kill(holder, SIGKILL);
    end_all();
}

/* One that was told to stop, and ended first: it is there until somebody reaps it. */
static void test_ends_instead(void)
{
    pid_t pid = fork();
    int i;

    if (pid == 0)
        run_threads(0, 1);
    wait_for_come(1);
    ok(ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0, "one is about to be frozen");
    atomic_store(&seen->here, 0);
    kill(pid, SIGKILL);
    for (i = 0; i < PATIENCE_MS && proctree_state(pid) != 'Z'; i++)
        poll(NULL, 0, 1);
    ok(freeze_all(), "and dies: it doesn't run");
    end_all();
}

static void test_holder_dies(void)
{
    pid_t holder = fork();
    int i;

    if (holder == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (fork() == 0)
            run_threads(0, 2);
        hold_all(2);
    }
    ok(is_all_held() && moving() == 0, "somebody holds what ran");
    kill(holder, SIGKILL);
    is_int(moving(), 0, "it dies, and nothing goes on");
    for (i = 0; i < PATIENCE_MS && waitpid(-1, NULL, WNOHANG) >= 0; i++)
        poll(NULL, 0, 1);
    is_int(errno, ECHILD, "what was held died with it");
    end_all();
}

static void test_end(void)
{
    int refused;

    if (fork() == 0)
        run_threads(0, 2);
    wait_for_come(2);
    freeze_tree(&tree, &refused);
    freeze_end(&tree);
    ok(all_move(0x3), "at the end all are let go, also those that had yet to stop");
    ok(waitpid(-1, NULL, WNOHANG | __WALL) == 0, "none is held any more");
    end_all();
}

int main(void)
{
    void *shared =
        mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (!ok(shared != MAP_FAILED && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "above all processes"))
        return done_testing();
    seen = shared;
    is_int(proctree_reserve(&tree), 0, "room for all");
    proctree_set_root(&tree, getpid());
    test_threads();
    test_stopped_before();
    test_crowd();
    if (COUNTS_SIGNALS)
        test_signals();
    test_vfork();
    test_vfork_inside();
    test_ends_instead();
    test_holder_dies();
    test_end();
    return done_testing();
}
