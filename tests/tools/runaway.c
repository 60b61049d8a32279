/* SPDX-License-Identifier: MIT */
/*
 * runaway: chains of processes, each of which starts the next one and ends, as fast as possible.
 *
 * usage: runaway KIND HEADS SECONDS FILE
 *        runaway last FILE
 *
 * HEADS is the number of chains. KIND is fork, vfork (each process execs this program) or clone
 * (CLONE_VM), or one of these behind setsid- or setpgid-: each process has a session or group of
 * its own. The chains end after SECONDS.
 *
 * `last` prints when, in ms of CLOCK_BOOTTIME, a process ran last, and how many ran.
 */
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STACKS = 4096, STACK_BYTES = 4096 };

struct shown {
    atomic_llong last_ms;
    atomic_long generations;
    atomic_llong end_ms;
};

static struct shown *shown;
static const char *kind;
static bool has_session;
static bool has_group;
static char **words;

static long long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void map(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    void *shared;

    if (fd < 0 || ftruncate(fd, sizeof *shown) != 0)
        err(2, "%s", path);
    shared = mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        err(2, "%s", path);
    close(fd);
    shown = shared;
}

/* Writes to FILE that this process runs. False: SECONDS are over, so it must start no process. */
static bool goes_on(void)
{
    long long now = now_ms();

    if (has_session)
        syscall(SYS_setsid);
    if (has_group)
        syscall(SYS_setpgid, 0, 0);
    atomic_store(&shown->last_ms, now);
    atomic_fetch_add(&shown->generations, 1);
    return now < atomic_load(&shown->end_ms);
}

static _Noreturn void leave(void)
{
    for (;;)
        syscall(SYS_exit_group, 0);
}

static _Noreturn void run_fork(void)
{
    while (goes_on())
        if (fork() != 0)
            leave();
    leave();
}

static _Noreturn void run_vfork(void)
{
    if (goes_on() && vfork() == 0) {
        execv("/proc/self/exe", words);
        leave();
    }
    leave();
}

/* A chain's clones use these stacks in turn: when a stack's turn comes, its last user has ended. */
struct head {
    char *stacks;
    unsigned next;
};

static int run_clone(void *context)
{
    struct head *head = context;

    if (goes_on()) {
        head->next = (head->next + 1) % STACKS;
        clone(run_clone, head->stacks + (size_t)(head->next + 1) * STACK_BYTES, CLONE_VM | SIGCHLD,
              head);
    }
    leave();
}

static _Noreturn void run(void)
{
    static struct head head;

    if (strstr(kind, "vfork") != NULL)
        run_vfork();
    if (strstr(kind, "clone") == NULL)
        run_fork();
    head.stacks = mmap(NULL, (size_t)STACKS * STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (head.stacks == MAP_FAILED)
        err(2, "mmap");
    run_clone(&head);
    leave();
}

int main(int argc, char **argv)
{
    int heads;

    if (argc == 3 && strcmp(argv[1], "last") == 0) {
        map(argv[2]);
        printf("%lld %ld\n", shown->last_ms, shown->generations);
        return 0;
    }
    if (argc != 5)
        errx(2, "usage: runaway KIND HEADS SECONDS FILE");
    words = argv;
    kind = argv[1];
    heads = atoi(argv[2]);
    map(argv[4]);
    has_session = strstr(kind, "setsid") != NULL;
    has_group = strstr(kind, "setpgid") != NULL;
    if (heads == 0)
        run(); /* HEADS is 0: run_vfork has exec'd this program for the next process of a chain */
    shown->end_ms = now_ms() + atoi(argv[3]) * 1000LL;
    argv[2] = (char[]){"0"};
    while (heads-- > 0)
        if (fork() == 0)
            run();
    while (now_ms() < shown->end_ms)
        sleep(1);
    return 0;
}
