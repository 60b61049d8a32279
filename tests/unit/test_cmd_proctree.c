/* SPDX-License-Identifier: MIT */
/* test_cmd_tree: every descendant is found, whatever it does to get away. */
#undef _FORTIFY_SOURCE /* would make open() an inline function */
#include "supervise/proctree.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <rlock.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 40000 /* a loaded machine starts processes slowly */
#define PROCESSES 1100
#define DEEP 300
#define CROWD 1000 /* more than are read at once */

/* Who is there, written by each process itself; 0: reaped. */
static struct {
    atomic_int next;
    atomic_int n;
    atomic_int terms;
    bool forks_at_term;
    atomic_int wanted;   /* a number that somebody is to get */
    atomic_int stranger; /* who has it; -1: that is not allowed */
    pid_t pid[PROCESSES];
} * there;

static struct proctree tree;

/* A kernel without the files that list children (CONFIG_PROC_CHILDREN). */
static bool hides_lists;

/* Whose number is given to somebody else when so a file is opened for so many times. */
static char replaced_at[64];
static pid_t replaced;
static int replaced_time;
static void replace(pid_t pid);

int open(const char *path, int flags, ...)
{
    va_list args;
    int mode;

    va_start(args, flags);
    mode = (flags & O_CREAT) != 0 ? va_arg(args, int) : 0;
    va_end(args);
    if (hides_lists && strstr(path, "/children") != NULL) {
        errno = ENOENT;
        return -1;
    }
    if (replaced != 0 && strcmp(path, replaced_at) == 0 && --replaced_time == 0) {
        replace(replaced);
        replaced = 0;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ---- processes ---- */

static void stay(void)
{
    alarm(100); /* whatever becomes of the test */
    there->pid[atomic_fetch_add(&there->next, 1)] = getpid();
    atomic_fetch_add(&there->n, 1);
    for (;;)
        pause();
}

/* A child that does something and then stays. */
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

static bool await(int n)
{
    int i;

    for (i = 0; i < PATIENCE_MS && atomic_load(&there->n) < n; i++)
        poll(NULL, 0, 1);
    return atomic_load(&there->n) == n;
}

static void with_child(void)
{
    start(NULL);
}

/* It has left its session, and given up its own parent. */
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
    int i;

    for (i = 0; pid > 0 && i < PROCESSES; i++)
        if (there->pid[i] == pid)
            there->pid[i] = 0;
    return pid > 0;
}

/* By their numbers, as what finds them is under test. A number that was reaped is another's. */
static void end_all(void)
{
    int i;

    for (i = 0; i < PROCESSES; i++)
        if (there->pid[i] > 0)
            kill(there->pid[i], SIGKILL);
    while (reap_one(0))
        continue;
    atomic_store(&there->n, 0);
    atomic_store(&there->next, 0);
}

/* ---- who is found ---- */

static int compare(const void *a, const void *b)
{
    return *(const pid_t *)a < *(const pid_t *)b ? -1 : *(const pid_t *)a > *(const pid_t *)b;
}

/* All that have come, and nobody else. */
static bool are_found(int n)
{
    pid_t sorted[PROCESSES];
    pid_t got[PROCESSES];

    if ((int)proctree_look(&tree) != n)
        return false;
    memcpy(sorted, there->pid, (size_t)n * sizeof *sorted);
    memcpy(got, tree.list, (size_t)n * sizeof *got);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    qsort(got, (size_t)n, sizeof *got, compare);
    return memcmp(got, sorted, (size_t)n * sizeof *got) == 0;
}

static atomic_int of_thread;
static int may_end[2];

static void *thread(void *arg)
{
    of_thread = start(NULL);
    (void)!read(may_end[0], &(char){0}, 1);
    return arg;
}

static void test_found(const char *how)
{
    pthread_t id;
    siginfo_t info;
    pid_t dead;

    okf(are_found(0), "nobody (%s)", how);
    start(with_child);
    start(with_odd_name);
    atomic_store(&of_thread, 0);
    if (pipe(may_end) != 0 || pthread_create(&id, NULL, thread, NULL) != 0)
        return;
    ok(await(4), "children, one of them a thread's, and a grandchild");
    dead = fork();
    if (dead == 0)
        _exit(0);
    waitid(P_PID, (id_t)dead, &info, WEXITED | WNOWAIT);
    okf(are_found(4), "all are found, but nobody who is dead (%s)", how);
    okf(are_found(4), "and again (%s)", how);
    ok(write(may_end[1], "", 1) == 1 && pthread_join(id, NULL) == 0, "the thread ends");
    close(may_end[0]);
    close(may_end[1]);
    end_all();
    okf(are_found(0), "and nobody is left (%s)", how);
}

/* ---- signals ---- */

static bool kill_all(void)
{
    return !proctree_kill(&tree, rlock_clock_ms() + PATIENCE_MS, NULL, NULL);
}

static void forget(void)
{
    close(tree.children);
    proctree_set_root(&tree, getpid());
    atomic_store(&there->n, 0);
    atomic_store(&there->next, 0);
}

static void test_kill(const char *how)
{
    pid_t spared[2];
    int alive = 0;
    int i;

    spared[0] = start(with_child);
    spared[1] = start(NULL);
    ok(await(3), "two branches to spare");
    ok(proctree_spare_children(&tree, true), "which are noted");
    start(with_child);
    start(with_daemon);
    ok(await(8), "two more, with children and a daemon that has one");
    if (!hides_lists)
        kill(spared[0], SIGKILL); /* its child is a child of ours from now on */
    okf(kill_all(), "KILL ends all descendants, in other sessions too (%s)", how);
    for (i = 0; i < 8; i++)
        alive += proctree_state(there->pid[i]) == 'S';
    is_int(alive, hides_lists ? 3 : 2, "but none of the branches to spare");
    ok(kill(spared[0], 0) == 0 && kill(spared[1], 0) == 0, "as is seen");
    close(tree.children);
    proctree_set_root(&tree, getpid());
    okf(kill_all(), "with none to spare these end as well (%s)", how);
    ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "and all are reaped");
    forget();
}

static void test_many(void)
{
    int i;

    chain_left = DEEP;
    start(with_chain);
    ok(await(DEEP), "many, each the child of the one before");
    ok(are_found(DEEP), "are all found at once");
    ok(kill_all(), "and ended");
    forget();
    for (i = 0; i < CROWD; i++) /* zombies, which take no room from those that live */
        if (fork() == 0)
            _exit(0);
    for (i = 0; i < CROWD; i++)
        start(NULL);
    ok(await(CROWD), "many children, behind as many that are dead");
    ok(are_found(CROWD), "are all found");
    ok(kill_all(), "and ended");
    forget();
}

/* ---- TERM ---- */

static void on_term(int number)
{
    atomic_fetch_add(&there->terms, number > 0);
    if (there->forks_at_term && fork() == 0)
        stay();
}

static void counting(void)
{
    struct sigaction action = {.sa_handler = on_term};

    sigaction(SIGTERM, &action, NULL);
}

static void counting_with_child(void)
{
    counting();
    start(counting);
}

static bool await_terms(int n)
{
    int i;

    for (i = 0; i < PATIENCE_MS && atomic_load(&there->terms) < n; i++)
        poll(NULL, 0, 1);
    return atomic_load(&there->terms) == n;
}

/* What a handler starts to tidy up is not ended by the TERM that it was started for. */
static void test_term(void)
{
    there->forks_at_term = true;
    start(counting_with_child);
    start(counting);
    ok(await(3), "three that count their TERMs, and start one more at each");
    poll(NULL, 0, 20); /* start times are counted in ticks: what comes is of a later one */
    proctree_term(&tree, RLOCK_NEVER);
    ok(await_terms(3) && await(6), "each gets one");
    poll(NULL, 0, 20);
    proctree_term(&tree, RLOCK_NEVER);
    proctree_term(&tree, RLOCK_NEVER);
    poll(NULL, 0, 50);
    is_int(atomic_load(&there->terms), 3, "and no other, nor do those that came later");
    ok(kill_all(), "KILL ends them all");
    there->forks_at_term = false;
    forget();
}

/* ---- numbers of others ---- */

static void with_reaped_child(void)
{
    signal(SIGCHLD, SIG_IGN); /* so it is reaped at once */
    signal(SIGUSR1, SIG_IGN); /* which ends whoever has its number later */
    start(NULL);
}

/* A process outside of the tree, which starts one with a number that it is told. */
static void provide(void)
{
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid_size = 1};
    pid_t wanted;
    long pid;

    alarm(100);
    atomic_fetch_add(&there->n, 1);
    while ((wanted = atomic_load(&there->wanted)) == 0)
        poll(NULL, 0, 1);
    args.set_tid = (uintptr_t)&wanted;
    do
        pid = syscall(SYS_clone3, &args, sizeof args);
    while (pid < 0 && errno == EEXIST);
    atomic_store(&there->stranger, pid < 0 ? -1 : 1);
    alarm(100);
    for (;;)
        pause();
}

/* 1. C was found. 2. It ends, and is reaped. 3. Somebody else gets its number. 4. We signal it. */
static void replace(pid_t pid)
{
    kill(pid, SIGKILL);
    atomic_store(&there->wanted, pid);
    while (atomic_load(&there->stranger) == 0)
        poll(NULL, 0, 1);
}

static void test_reused(const char *file, int time)
{
    pid_t provider = fork();
    pid_t parent;
    pid_t pid;

    if (provider == 0)
        provide();
    ok(await(1) && proctree_spare(&tree, provider), "somebody outside of the tree");
    atomic_store(&there->n, 0);
    parent = start(with_reaped_child);
    ok(await(2), "a child, and its child");
    pid = there->pid[0] == parent ? there->pid[1] : there->pid[0];
    snprintf(replaced_at, sizeof replaced_at, file, (int)pid, (int)pid);
    replaced = pid;
    replaced_time = time;
    proctree_signal(&tree, SIGUSR1);
    is_int(replaced, 0, "that one's number was given to somebody else meanwhile");
    if (atomic_load(&there->stranger) < 0) {
        okf(true, "# SKIP no right to choose a number");
    } else {
        poll(NULL, 0, 20);
        okf(proctree_state(pid) == 'S', "who was not signalled (%s, %d)", file, time);
        kill(pid, SIGKILL);
    }
    kill(provider, SIGKILL);
    kill(parent, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    atomic_store(&there->wanted, 0);
    atomic_store(&there->stranger, 0);
    forget();
}

static void test_room(void)
{
    FILE *file = fopen("/proc/sys/kernel/pid_max", "r");
    unsigned long pid_max = 0;

    if (file != NULL) {
        (void)!fscanf(file, "%lu", &pid_max);
        fclose(file);
    }
    if (pid_max < 1U << 15)
        pid_max = file == NULL ? 1U << 22 : 1U << 15;
    okf(tree.room >= pid_max && tree.room < 2 * pid_max,
        "there is room for each of %lu pids, and for less than twice as many: %zu", pid_max,
        tree.room);
}

int main(void)
{
    void *shared =
        mmap(NULL, sizeof *there, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (!ok(shared != MAP_FAILED && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "above all processes"))
        return done_testing();
    there = shared;
    is_int(proctree_reserve(&tree), 0, "room for all");
    test_room();
    proctree_set_root(&tree, getpid());
    test_found("by the lists of the kernel");
    test_kill("by the lists of the kernel");
    test_many();
    test_term();
    test_reused("/proc/%d/task/%d/children", 1); /* after it was found */
    test_reused("/proc/%d/stat", 1);             /* after it was listed */
    test_reused("/proc/%d/stat", 2);             /* when we have a descriptor of it */
    hides_lists = true;
    forget();
    test_found("by a search of /proc");
    test_kill("by a search of /proc");
    return done_testing();
}
