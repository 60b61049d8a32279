/* SPDX-License-Identifier: MIT */
/* test_cmd_proctree: proctree finds and ends every descendant, also daemons and orphans. */
#undef _FORTIFY_SOURCE /* with it, fcntl.h defines open(), which this file defines itself */
#include "child.h"
#include "refuse.h"
#include "supervise/proctree.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <rlock.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 40000 /* a loaded machine starts processes slowly */
#define PROCESSES 1100    /* the most processes that a test starts */
#define NOBODY 65534      /* a user who may not signal the processes of root */
#define CHAIN_LENGTH 300
#define CROWD 1000 /* children, so many that proctree.c reads the list of their pids in pieces */

/* Memory that this process shares with the processes of the tests. */
static struct {
    atomic_int n_taken;        /* entries of pid[] that processes have taken */
    atomic_int n_ready;        /* processes that have started, and entered their pid */
    atomic_int n_terms;        /* TERMs that on_term() has counted */
    bool forks_at_term;        /* on_term() forks a helper */
    atomic_int wanted_pid;     /* the pid that a process outside the tree must get; 0: none yet */
    atomic_int stranger_state; /* 1: stranger has wanted_pid; -1: the kernel refused; 0: not yet */
    pid_t pid[PROCESSES];      /* the pids that the processes entered; 0: the process is reaped */
} * shm;

static struct proctree tree;

/* open() behaves as on a kernel without /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN). */
static bool hides_children_files;

/* open() behaves as if /proc didn't show this process (mount option hidepid); 0: it shows all. */
static pid_t hidden_pid;

/*
 * When proctree opens reuse_file for the reuse_opens_left-th time, open() ends the process
 * reuse_pid and gives that pid to a process outside of the tree. open() gives away only one pid,
 * and then sets reuse_pid to 0.
 */
static char reuse_file[64];
static pid_t reuse_pid;
static int reuse_opens_left;
static void give_pid_away(pid_t pid);

int open(const char *path, int flags, ...)
{
    char hidden[32];
    va_list args;
    int mode;

    va_start(args, flags);
    mode = (flags & O_CREAT) != 0 ? va_arg(args, int) : 0;
    va_end(args);
    snprintf(hidden, sizeof hidden, "/proc/%d/", (int)hidden_pid);
    if ((hidden_pid != 0 && strncmp(path, hidden, strlen(hidden)) == 0) ||
        (hides_children_files && strstr(path, "/children") != NULL)) {
        errno = ENOENT;
        return -1;
    }
    if (reuse_pid != 0 && strcmp(path, reuse_file) == 0 && --reuse_opens_left == 0) {
        give_pid_away(reuse_pid);
        reuse_pid = 0;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ---- starting and ending processes of the tests ---- */

/* Enters the pid of this process in `shm`, and waits for a signal that ends the process. */
static void stay(void)
{
    alarm(500); /* ends this process if the test leaves it behind */
    shm->pid[atomic_fetch_add(&shm->n_taken, 1)] = getpid();
    atomic_fetch_add(&shm->n_ready, 1);
    for (;;)
        pause();
}

/* Starts a child, which calls body() and then stay(). Returns its pid. */
static pid_t start(void (*body)(void))
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    if (body != NULL)
        body();
    stay();
    return 0;
}

static bool await(const atomic_int *counter, int n)
{
    for (int i = 0; i < PATIENCE_MS && atomic_load(counter) < n; i++)
        poll(NULL, 0, 1);
    return atomic_load(counter) == n;
}

static bool await_ready(int n)
{
    return await(&shm->n_ready, n);
}

/* Of two processes that have entered their pids, the one that isn't `parent`. */
static pid_t child_of(pid_t parent)
{
    return shm->pid[0] == parent ? shm->pid[1] : shm->pid[0];
}

static void with_child(void)
{
    start(NULL);
}

/* Starts a daemon with a child: the daemon is in a new session, and its parent has exited. */
static void with_daemon(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            setpgid(0, 0);
            with_child();
            stay();
        }
        _exit(0);
    }
}

/* A wrong parser takes this name for the fields behind it in /proc/PID/stat: state R, parent 1. */
static void with_odd_name(void)
{
    prctl(PR_SET_NAME, "a) R 1 (b");
}

static int chain_left;

static void with_chain(void)
{
    if (--chain_left > 0)
        start(with_chain);
}

static bool reap_one(int flags)
{
    pid_t pid = waitpid(-1, NULL, flags);

    for (int i = 0; pid > 0 && i < PROCESSES; i++)
        if (shm->pid[i] == pid)
            shm->pid[i] = 0;
    return pid > 0;
}

/*
 * Kills the processes by the pids that they entered, as proctree is under test. The pid of a
 * process that was reaped may be another's now: reap_one() has set that entry to 0.
 */
static void end_all(void)
{
    for (int i = 0; i < PROCESSES; i++)
        if (shm->pid[i] > 0)
            kill(shm->pid[i], SIGKILL);
    while (reap_one(0))
        continue;
    atomic_store(&shm->n_ready, 0);
    atomic_store(&shm->n_taken, 0);
}

/* ---- tests of which processes are found ---- */

static int compare(const void *a, const void *b)
{
    return *(const pid_t *)a < *(const pid_t *)b ? -1 : *(const pid_t *)a > *(const pid_t *)b;
}

/* True if proctree_look() finds the n processes that have entered their pids, and no other. */
static bool are_found(int n)
{
    pid_t sorted[PROCESSES], got[PROCESSES];

    if ((int)proctree_look(&tree) != n)
        return false;
    memcpy(sorted, shm->pid, (size_t)n * sizeof *sorted);
    memcpy(got, tree.list, (size_t)n * sizeof *got);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    qsort(got, (size_t)n, sizeof *got, compare);
    return memcmp(got, sorted, (size_t)n * sizeof *got) == 0;
}

static int thread_may_end[2];

static void *fork_in_thread(void *arg)
{
    start(NULL);
    (void)!read(thread_may_end[0], &(char){0}, 1);
    return arg;
}

static void *stay_in_thread(void *arg)
{
    stay();
    return arg;
}

/* Ends the main thread: /proc/PID/stat says Z, as of a zombie, but a second thread runs. */
static void without_main_thread(void)
{
    pthread_t id;

    if (pthread_create(&id, NULL, stay_in_thread, NULL) == 0)
        syscall(SYS_exit, 0);
}

static bool await_state(pid_t pid, char state)
{
    for (int i = 0; i < PATIENCE_MS && proctree_state(pid) != state; i++)
        poll(NULL, 0, 1);
    return proctree_state(pid) == state;
}

static void test_found(void)
{
    pthread_t id;
    siginfo_t info;
    pid_t dead;

    ok(are_found(0), "no process is found where there is none");
    ok(await_state(start(without_main_thread), 'Z') && await_ready(1));
    ok(are_found(1), "a process without its main thread is found");
    end_all();
    start(with_child);
    start(with_odd_name);
    need(pipe(thread_may_end) == 0 && pthread_create(&id, NULL, fork_in_thread, NULL) == 0);
    ok(await_ready(4));
    dead = fork();
    if (dead == 0)
        _exit(0);
    waitid(P_PID, (id_t)dead, &info, WEXITED | WNOWAIT);
    ok(are_found(4) && are_found(4), "all four descendants are found twice, and no zombie");
    ok(write(thread_may_end[1], "", 1) == 1 && pthread_join(id, NULL) == 0);
    close(thread_may_end[0]);
    close(thread_may_end[1]);
    end_all();
    ok(are_found(0), "after the processes have ended, none is found");
}

/* ---- tests of KILL ---- */

static bool kill_all(void)
{
    int64_t end_ms = rlock_clock_ms() + PATIENCE_MS;
    bool is_any;

    while ((is_any = proctree_kill(&tree, NULL, NULL)) && rlock_clock_ms() < end_ms)
        continue;
    return !is_any;
}

/* Forgets all processes of the test before, also those that proctree.c spares. */
static void reset(void)
{
    close(tree.children);
    proctree_set_root(&tree);
    atomic_store(&shm->n_ready, 0);
    atomic_store(&shm->n_taken, 0);
}

static void test_kill(void)
{
    struct proctree small = tree;
    pid_t spared[2];
    int alive = 0;

    spared[0] = start(with_child);
    spared[1] = start(NULL);
    ok(await_ready(3));
    small.room = 1;
    is_int((int64_t)proctree_look(&small), 1, "of three processes that share a place one is found");
    ok(!proctree_spare_children(&small, true), "three processes don't fit into one place");
    ok(proctree_spare_children(&tree, true));
    start(with_child);
    start(with_daemon);
    ok(await_ready(8), "two more children have started, with a child and a daemon below them");
    if (!hides_children_files)
        kill(spared[0], SIGKILL); /* the killed process's child becomes ours, and stays spared */
    errno = EPERM;                /* of an earlier call: it must not count */
    ok(kill_all(), "KILL ends all descendants that are not spared, in all sessions");
    is_int(tree.refused, 0, "no process has refused KILL");
    for (int i = 0; i < 8; i++)
        alive += proctree_state(shm->pid[i]) == 'S';
    is_int(alive, hides_children_files ? 3 : 2, "KILL has ended no process that is spared");
    ok(kill(spared[0], 0) == 0 && kill(spared[1], 0) == 0);
    close(tree.children);
    proctree_set_root(&tree);
    ok(kill_all(), "KILL ends the spared processes when none is spared any more");
    ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    reset();
}

static void test_many(void)
{
    chain_left = CHAIN_LENGTH;
    start(with_chain);
    ok(await_ready(CHAIN_LENGTH) && are_found(CHAIN_LENGTH) && kill_all());
    reset();
    for (int i = 0; i < CROWD; i++) /* zombies: the kernel lists them before the living children */
        if (fork() == 0)
            _exit(0);
    for (int i = 0; i < CROWD; i++)
        start(NULL);
    ok(await_ready(CROWD) && are_found(CROWD) && kill_all());
    reset();
}

/* ---- tests of TERM ---- */

static void on_term(int number)
{
    atomic_fetch_add(&shm->n_terms, number > 0);
    if (shm->forks_at_term && fork() == 0)
        stay();
}

static void with_term_counter(void)
{
    struct sigaction action = {.sa_handler = on_term};

    sigaction(SIGTERM, &action, NULL);
}

static void with_term_counter_and_child(void)
{
    with_term_counter();
    start(with_term_counter);
}

/* A process that tidies up at TERM may start helpers: proctree_term() must send them no TERM. */
static void test_term(void)
{
    shm->forks_at_term = true;
    start(with_term_counter_and_child);
    start(with_term_counter);
    ok(await_ready(3));
    /* The kernel gives start times in ticks of 10 ms. Wait, so that helpers get a later tick. */
    poll(NULL, 0, 20);
    proctree_term(&tree, RLOCK_NEVER);
    ok(await(&shm->n_terms, 3) && await_ready(6),
       "each of the three gets one TERM, and forks one helper");
    poll(NULL, 0, 20);
    proctree_term(&tree, RLOCK_NEVER);
    proctree_term(&tree, RLOCK_NEVER);
    poll(NULL, 0, 50);
    is_int(atomic_load(&shm->n_terms), 3);
    ok(kill_all());
    shm->forks_at_term = false;
    reset();
}

/* Two processes share a place: the second gets TERM when a walk finds the first no more. */
static void test_term_shared(void)
{
    struct proctree small = tree;
    pid_t pid[] = {start(NULL), start(NULL)};
    pid_t first;

    small.room = 1;
    ok(await_ready(2));
    proctree_term(&small, RLOCK_NEVER);
    first = waitpid(-1, NULL, 0);
    proctree_term(&small, RLOCK_NEVER);
    ok(await_state(first == pid[0] ? pid[1] : pid[0], 'Z'), "TERM ends both processes");
    ok(kill_all());
    reset();
}

/*
 * A process of the tree forks after a walk has listed it. The helper is not spared, although it is
 * a child of a process in the list.
 */
static void test_spare_after_walk(void)
{
    pid_t parent;

    start(NULL);
    ok(await_ready(1) && proctree_spare_children(&tree, true), "a child is spared");
    shm->forks_at_term = true;
    parent = start(with_term_counter);
    ok(await_ready(2), "another child has started");
    is_int((int64_t)proctree_look(&tree), 1, "a walk finds it");
    kill(parent, SIGTERM);
    ok(await_ready(3), "it forks a helper");
    ok(proctree_spare_children(&tree, false), "processes that are spared already are spared again");
    ok(kill_all(), "KILL ends all that is not spared");
    is_int(shm->pid[2] > 0 && kill(shm->pid[2], 0) == 0, 0, "the helper has ended");
    ok(kill(shm->pid[0], 0) == 0, "the spared child lives");
    shm->forks_at_term = false;
    end_all();
    reset();
}

/*
 * A child of a spared child forks after it was spared. The helper is spared by the next call: else
 * it would get KILL once its parent has ended, as it is a child of this process then.
 */
static void test_spare_again(void)
{
    pid_t parent = start(with_term_counter_and_child);
    pid_t child;

    ok(await_ready(2) && proctree_spare_children(&tree, true), "a child and its child are spared");
    child = child_of(parent);
    shm->forks_at_term = true;
    kill(child, SIGTERM);
    ok(await_ready(3), "the child's child forks a helper");
    ok(proctree_spare_children(&tree, false), "all descendants of the child are spared again");
    kill(child, SIGKILL);
    ok(await_state(child, 'Z') && kill_all(), "the helper's parent ends");
    is_int(proctree_state(shm->pid[2]), 'S', "the helper lives");
    shm->forks_at_term = false;
    end_all();
    reset();
}

/* ---- priority ---- */

static void note_policy(pid_t pid, int status, void *context)
{
    (void)pid;
    (void)status;
    *(int *)context = sched_getscheduler(0);
}

static void test_priority(void)
{
    const struct sched_param lowest = {.sched_priority = 1};
    int policy = -1;

    start(NULL);
    ok(await_ready(1), "a child has started");
    if (sched_getscheduler(0) != SCHED_OTHER || sched_setscheduler(0, SCHED_FIFO, &lowest) != 0) {
        skip("KILL is sent with real-time priority", "this process may not have it");
    } else {
        sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){.sched_priority = 0});
        while (proctree_kill(&tree, note_policy, &policy))
            continue;
        is_int(policy, SCHED_FIFO, "KILL is sent with real-time priority");
        is_int(sched_getscheduler(0), SCHED_OTHER, "then the priority is the usual one again");
    }
    ok(kill_all(), "KILL ends the child");
    reset();
}

/* ---- a tree whose root is another process ---- */

static struct proctree own; /* `tree`, while the root is another process */

static int bind_to(pid_t pid)
{
    struct proctree other;
    int failed = proctree_bind(&other, pid);

    if (failed)
        return failed;
    own = tree;
    tree = other;
    return 0;
}

static void unbind(void)
{
    tree = own;
}

static pid_t start_root(void (*body)(void))
{
    pid_t pid = start(body);

    ok(await_ready(body == NULL ? 1 : 2));
    is_int(bind_to(pid), 0, "the child becomes the root of another tree");
    return pid;
}

/* The child's main thread has ended: a signal must be for the process, and not for that thread. */
static void with_odd_child(void)
{
    start(without_main_thread);
}

static void test_other_root(void)
{
    pid_t parent = start_root(with_odd_child);

    is_int((int64_t)proctree_look(&tree), 2, "the root and its child are found");
    kill(child_of(parent), SIGSTOP);
    proctree_signal_root(&tree, SIGSTOP);
    ok(await_state(parent, 'T'), "a signal for the root alone");
    ok(!proctree_root_has_ended(&tree), "the root lives");
    ok(kill_all(), "KILL ends both, and then proctree_kill() is done");
    ok(proctree_root_has_ended(&tree), "the root has ended");
    is_int(child_status(parent), -SIGKILL, "KILL has ended the root");
    unbind();
    is_int(bind_to(parent), ESRCH, "a process that is gone can't be the root");
    while (reap_one(WNOHANG))
        continue;
    reset();

    parent = start_root(NULL);
    proctree_term(&tree, rlock_clock_ms() + PATIENCE_MS);
    is_int(child_status(parent), -SIGTERM, "the root gets TERM");
    unbind();
    parent = start(NULL);
    hidden_pid = parent;
    is_int(bind_to(parent), EACCES, "a process whose children can't be found can't be the root");
    hidden_pid = 0;
    kill(parent, SIGKILL);
    waitid(P_PID, (id_t)parent, &(siginfo_t){0}, WEXITED | WNOWAIT);
    is_int(bind_to(parent), ESRCH, "a process that has ended can't be the root");
    child_status(parent);
    reset();

    parent = start_root(with_child);
    is_int((int64_t)proctree_look(&tree), 2, "the root and its child are found");
    proctree_signal_root(&tree, SIGKILL);
    child_status(parent);
    is_int((int64_t)proctree_look(&tree), 1, "an orphan that was found before is in the tree");
    proctree_forget(&tree);
    is_int((int64_t)proctree_look(&tree), 0, "unless it was forgotten");
    unbind();
    ok(kill_all());
    reset();
}

/*
 * While a walk may miss processes for lack of a descriptor, the root gets no TERM: its children
 * couldn't be found after its end. KILL doesn't wait. If the child was found before, it still
 * counts; if not, the walk can't tell that no process is left.
 */
static int be_short(bool was_found)
{
    pid_t parent = start(with_child);
    struct rlimit usual, none;
    int lowest;

    if (!await_ready(2) || bind_to(parent) != 0 || getrlimit(RLIMIT_NOFILE, &usual) != 0)
        return CHILD_CANT_RUN;
    if (was_found)
        proctree_look(&tree);
    lowest = dup(0);
    close(lowest);
    none = (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = usual.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    proctree_term(&tree, rlock_clock_ms() + PATIENCE_MS);
    poll(NULL, 0, 50);
    if (waitpid(parent, NULL, WNOHANG) != 0)
        return 3;
    if (!proctree_kill(&tree, NULL, NULL))
        return 4;
    if (child_status(parent) != -SIGKILL || !proctree_kill(&tree, NULL, NULL))
        return 5;
    setrlimit(RLIMIT_NOFILE, &usual);
    if (!was_found)
        kill(child_of(parent), SIGKILL);
    return kill_all() && (!was_found || waitpid(-1, NULL, 0) > 0) ? 0 : 6;
}

static int bound_without_descriptors(void)
{
    return be_short(true);
}

static int bound_without_descriptors_from_the_start(void)
{
    return be_short(false);
}

/* ---- failures of the kernel ---- */

/* Calls the function in a child, which is the root of the tree meanwhile. */
static void in_child(int (*body)(void), const char *name)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        close(tree.children);
        proctree_set_root(&tree);
        _exit(body());
    }
    child_passes(pid, name, "this system does not allow it");
    while (reap_one(WNOHANG)) /* what the child has left behind */
        continue;
    reset();
}

static int look_short(void)
{
    proctree_look(&tree);
    return tree.is_short ? 0 : 1;
}

static int without_getdents(void)
{
    return refuse(SYS_getdents64, ENOMEM) ? look_short() : CHILD_CANT_RUN;
}

static int without_descriptors(void)
{
    return setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}) == 0 ? look_short() : CHILD_CANT_RUN;
}

/* As on Linux before 5.3. The signal reaches a process that is no child of this one. */
static int without_pidfd(void)
{
    pid_t parent = start(with_child);
    pid_t pid;

    if (!await_ready(2) || !refuse(SYS_pidfd_open, ENOSYS))
        return CHILD_CANT_RUN;
    pid = child_of(parent);
    proctree_signal(&tree, SIGSTOP);
    return await_state(pid, 'T') && kill_all() ? 0 : 1;
}

static void as_nobody(void)
{
    (void)!setresuid(NOBODY, NOBODY, NOBODY);
}

/* While a process is spared, children are reaped one by one, also one that refuses KILL. */
static int refused_by_a_zombie(void)
{
    pid_t spared = geteuid() == 0 ? start(as_nobody) : 0;
    pid_t pid;

    if (spared == 0 || !await_ready(1) || !proctree_spare_children(&tree, true))
        return CHILD_CANT_RUN;
    pid = fork();
    if (pid == 0)
        _exit(0);
    /* in state Z alone it could have a thread that TSan has started, and not be reaped yet */
    if (waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT) != 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) != 0)
        return CHILD_CANT_RUN;
    if (!kill_all() || tree.refused != 0)
        return 1;
    return kill(spared, SIGKILL) == 0 ? 0 : 2;
}

/* There is memory for three quarters of the places that the array should have. */
static int without_memory(void)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return CHILD_CANT_RUN;
#else
    size_t bytes = tree.room * 20; /* what proctree.c needs for each place */
    size_t half = tree.room / 2;
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    struct rlimit limit;
    int failed;

    if (file == NULL || fscanf(file, "%lu", &pages) != 1)
        return CHILD_CANT_RUN;
    limit.rlim_cur = limit.rlim_max = pages * (size_t)sysconf(_SC_PAGESIZE) + bytes / 4 * 3;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return CHILD_CANT_RUN;
    failed = proctree_reserve(&tree);
    if (half < 1U << 15)
        return failed == ENOMEM ? 0 : 1;
    return failed == 0 && tree.room == half ? 0 : 1;
#endif
}

/* ---- a pid that the kernel gives to another process ---- */

static void with_reaped_child(void)
{
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps the child at once, and its pid is free */
    signal(SIGUSR1, SIG_IGN); /* the tree ignores the signal, which would end a stranger */
    start(NULL);
}

/*
 * The body of a process outside of the tree, which waits for wanted_pid, and starts a stranger with
 * that pid, also outside of the tree. The kernel allows that only with CAP_CHECKPOINT_RESTORE or
 * CAP_SYS_ADMIN.
 */
static void provide_stranger(void)
{
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid_size = 1};
    pid_t wanted;
    long pid;

    alarm(500);
    atomic_fetch_add(&shm->n_ready, 1);
    while ((wanted = atomic_load(&shm->wanted_pid)) == 0)
        poll(NULL, 0, 1);
    args.set_tid = (uintptr_t)&wanted;
    do
        pid = syscall(SYS_clone3, &args, sizeof args);
    while (pid < 0 && errno == EEXIST);
    atomic_store(&shm->stranger_state, pid < 0 ? -1 : 1);
    alarm(500);
    for (;;)
        pause();
}

/*
 * Takes steps 2 and 3 of a race:
 * 1. proctree finds a process.
 * 2. The process ends and is reaped.
 * 3. A stranger gets its pid.
 * 4. proctree signals that pid, and must not hit the stranger.
 */
static void give_pid_away(pid_t pid)
{
    kill(pid, SIGKILL);
    atomic_store(&shm->wanted_pid, pid);
    while (atomic_load(&shm->stranger_state) == 0)
        poll(NULL, 0, 1);
}

/*
 * When proctree opens `file` of a process for the n_opens-th time, a stranger gets the pid of that
 * process. With `root_is_other` the root of the tree is a child of this process, as with
 * --bind-pid, and an earlier walk has found the pid.
 */
static void test_reused(const char *file, int n_opens, bool root_is_other)
{
    pid_t provider = fork();
    pid_t parent, pid;

    if (provider == 0)
        provide_stranger();
    ok(await_ready(1) && proctree_spare(&tree, provider));
    atomic_store(&shm->n_ready, 0);
    parent = start(with_reaped_child);
    ok(await_ready(2), "a child and its child have started");
    pid = child_of(parent);
    if (root_is_other) {
        /*
         * The walk notes start times, which the kernel gives in ticks of 10 ms. The stranger that
         * gets the child's child's pid must start in a later tick than the child's child did.
         */
        poll(NULL, 0, 20);
        is_int(bind_to(parent), 0, "the child becomes the root of another tree");
        is_int((int64_t)proctree_look(&tree), 2, "the first walk finds the child's child");
    }
    snprintf(reuse_file, sizeof reuse_file, file, (int)pid, (int)pid);
    reuse_pid = pid;
    reuse_opens_left = n_opens;
    proctree_signal(&tree, SIGUSR1);
    is_int(reuse_pid, 0, "proctree opens the file, and the pid of the grandchild is given away");
    if (atomic_load(&shm->stranger_state) < 0) {
        skip("the stranger gets no signal", "the kernel allows this user to choose no pid");
    } else {
        /* A stranger that waits for a processor is in state R. SIGUSR1 would end it. */
        for (int i = 0; i < 1000 && proctree_state(pid) == 'R'; i++)
            poll(NULL, 0, 10);
        poll(NULL, 0, 20);
        okf(proctree_state(pid) == 'S', "the stranger gets no signal (%s, opened %d times)", file,
            n_opens);
        kill(pid, SIGKILL);
    }
    kill(provider, SIGKILL);
    kill(parent, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    atomic_store(&shm->wanted_pid, 0);
    atomic_store(&shm->stranger_state, 0);
    if (root_is_other)
        unbind();
    reset();
}

static void test_memory(void)
{
    FILE *file = fopen("/proc/sys/kernel/pid_max", "r");
    unsigned long pid_max = 1U << 22;

    is_int(proctree_reserve(&tree), 0);
    if (file != NULL) {
        (void)!fscanf(file, "%lu", &pid_max);
        fclose(file);
    }
    pid_max = pid_max < 1U << 15 ? 1U << 15 : pid_max;
    okf(tree.room >= pid_max && tree.room < 2 * pid_max,
        "there is room for each of %lu pids, and for less than twice as many: %zu", pid_max,
        tree.room);
    proctree_set_root(&tree);
}

int main(void)
{
    void *memory =
        mmap(NULL, sizeof *shm, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (!ok(memory != MAP_FAILED && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0))
        return done_testing();
    shm = memory;
    RUN_ALL(test_memory, test_priority, test_found, test_kill, test_many, test_term,
            test_term_shared, test_spare_after_walk, test_spare_again, test_other_root);
    in_child(without_getdents, "a walk that can't read a directory is not complete");
    in_child(without_pidfd, "without pidfd_open(2) a grandchild gets its signal");
    in_child(without_descriptors, "a walk without a descriptor tells so");
    in_child(bound_without_descriptors,
             "without a descriptor another process as the root gets KILL, and no TERM before");
    in_child(bound_without_descriptors_from_the_start,
             "without a descriptor the tree of another process never counts as empty");
    in_child(refused_by_a_zombie, "a zombie that refuses KILL is reaped, and not reported");
    in_child(without_memory, "with less memory the array has half as many places");
    /* A stranger gets the pid after proctree has ... */
    test_reused("/proc/%d/task/%d/children", 1, false); /* found the process */
    test_reused("/proc/%d/stat", 1, false);             /* listed the pid */
    test_reused("/proc/%d/stat", 2, false);             /* opened the pidfd */
    test_reused("/proc/%d/stat", 1, true);              /* walked the tree once */
    test_reused("/proc/%d/stat", 2, true);              /* checked the pid in its second walk */
    hides_children_files = true;
    reset();
    RUN_AS("test_found, by a search of /proc", test_found());
    RUN_AS("test_kill, by a search of /proc", test_kill());
    return done_testing();
}
