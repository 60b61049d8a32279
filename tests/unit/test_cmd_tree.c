/* SPDX-License-Identifier: MIT */
/* test_cmd_tree: every descendant is found, whatever it does to get away. */
#undef _FORTIFY_SOURCE /* would make open() an inline function */
#include "tap.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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
#define PROCESSES 400
#define DEEP 270 /* deeper than tree.c goes at once */

/* Who is there, written by each process itself; 0: reaped. */
static struct {
    atomic_int next;
    atomic_int n;
    pid_t pid[PROCESSES];
} * there;

/* A kernel without the files that list children (CONFIG_PROC_CHILDREN). */
static bool hides_lists;

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

/* As we are the subreaper all that were started come to us in the end: waits for so many. */
static bool reap(int n)
{
    int i;

    for (i = 0; i < PATIENCE_MS && n > 0; i++) {
        while (reap_one(WNOHANG))
            n--;
        if (n > 0)
            poll(NULL, 0, 1);
    }
    return n == 0;
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

/* ---- children ---- */

static int compare(const void *a, const void *b)
{
    return *(const pid_t *)a < *(const pid_t *)b ? -1 : *(const pid_t *)a > *(const pid_t *)b;
}

static bool are_children(const pid_t *wanted, size_t n)
{
    pid_t got[TREE_CHILDREN_MAX];
    pid_t sorted[PROCESSES];

    memcpy(sorted, wanted, n * sizeof *wanted);
    qsort(sorted, n, sizeof *sorted, compare);
    if (tree_children(getpid(), got, TREE_CHILDREN_MAX) != n)
        return false;
    qsort(got, n, sizeof *got, compare);
    return memcmp(got, sorted, n * sizeof *got) == 0;
}

static atomic_int of_thread;
static int may_end[2];

static void *thread(void *arg)
{
    of_thread = start(NULL);
    (void)!read(may_end[0], &(char){0}, 1);
    return arg;
}

static void test_children(const char *how)
{
    pid_t child[4] = {0};
    pid_t room[3] = {0, 0, -1};
    siginfo_t info;
    pthread_t id;

    okf(are_children(child, 0), "no children (%s)", how);
    child[0] = start(with_child);
    child[1] = start(with_odd_name);
    atomic_store(&of_thread, 0);
    if (pipe(may_end) != 0 || pthread_create(&id, NULL, thread, NULL) != 0)
        return;
    okf(await(4), "children, one of them a thread's, and a grandchild");
    while ((child[2] = atomic_load(&of_thread)) == 0)
        poll(NULL, 0, 1);
    child[3] = fork();
    if (child[3] == 0)
        _exit(0);
    waitid(P_PID, (id_t)child[3], &info, WEXITED | WNOWAIT);
    okf(are_children(child, 4), "all children are told, one that is dead as well (%s)", how);
    is_int((int64_t)tree_children(getpid(), room, 2), 2, "no more than there is room for");
    is_int(room[2], -1, "and not behind it");
    is_int((int64_t)tree_children(child[1], room, 2), 0, "those of one that has none");
    ok(write(may_end[1], "", 1) == 1 && pthread_join(id, NULL) == 0, "the thread ends");
    close(may_end[0]);
    close(may_end[1]);
    end_all();
    is_int((int64_t)tree_children(child[0], room, 2), 0, "those of one that isn't there");
}

/* ---- signals ---- */

static void test_signal(const char *how)
{
    pid_t spared[2];
    int alive = 0;
    int i;

    spared[0] = start(with_child);
    spared[1] = start(NULL);
    ok(await(3), "two branches to spare");
    start(with_child);
    start(with_daemon);
    ok(await(8), "two more, with children and a daemon that has one");
    tree_signal(getpid(), SIGKILL, spared, 2);
    okf(reap(6), "a signal reaches all descendants, in other sessions too (%s)", how);
    for (i = 0; i < 3; i++)
        alive += kill(there->pid[i], 0) == 0;
    is_int(alive, 3, "but none of the branches to spare");
    ok(!reap_one(WNOHANG), "as is seen");
    tree_signal(getpid(), SIGKILL, NULL, 0);
    okf(reap(3), "with none to spare these end as well (%s)", how);
    end_all();
}

static void test_deep(void)
{
    int left = DEEP;
    int i;

    chain_left = 20;
    start(with_chain);
    ok(await(20), "twenty, each the child of the one before");
    tree_signal(getpid(), SIGKILL, NULL, 0);
    ok(reap(20), "are reached at once");
    end_all();

    chain_left = DEEP;
    start(with_chain);
    ok(await(DEEP), "many, each the child of the one before");
    for (i = 0; i < PATIENCE_MS && left > 0; i++) {
        tree_signal(getpid(), SIGKILL, NULL, 0);
        while (reap_one(WNOHANG))
            left--;
        poll(NULL, 0, 1);
    }
    is_int(left, 0, "are all reached, again and again until nothing is left");
    end_all();
}

int main(void)
{
    void *shared =
        mmap(NULL, sizeof *there, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (!ok(shared != MAP_FAILED && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "above all processes"))
        return done_testing();
    there = shared;
    test_children("by the lists of the kernel");
    test_signal("by the lists of the kernel");
    test_deep();
    hides_lists = true;
    test_children("by a search of /proc");
    test_signal("by a search of /proc");
    return done_testing();
}
