/* SPDX-License-Identifier: MIT */
/*
 * crowd: many processes that only wait, and count the TERMs they get.
 *
 * usage: crowd FILE ZOMBIES CHILDREN DEPTH [COMMAND...]
 *        crowd states FILE
 *        crowd terms FILE
 *        crowd end FILE
 *
 * Starts ZOMBIES children that end at once and are never reaped, CHILDREN children that wait, and a
 * chain of DEPTH processes that wait, each the child of the previous one. The processes that wait
 * write their pids to FILE, and end by KILL or after LIFE_S seconds. When all pids are in FILE,
 * crowd creates FILE.ready. Then crowd waits as well, or execs COMMAND, which becomes the parent of
 * these processes.
 *
 * `states` prints a line "PROCESSES STATE" for each state of proc(5): how many processes of FILE
 * are in this state. `states` leaves out dead processes. `terms` prints a line "PROCESSES TERMS"
 * for each number of TERMs: how many processes of FILE have received that number of TERMs. `end`
 * kills the processes.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PLACES = 20000, LIFE_S = 120, TERMS_SHOWN = 10 };
enum { FORK_TRIES = 1000, FORK_PAUSE_MS = 20 };

struct place {
    pid_t pid;
    atomic_int terms;
    unsigned long started; /* in ticks since boot, see proc_pid_stat(5) */
};

static struct {
    atomic_int taken;
    atomic_int here;
    atomic_int failed; /* an errno of fork(2), or 0 */
    struct place place[PLACES];
} * crowd;

static struct place *mine;

static void count(int number)
{
    atomic_fetch_add(&mine->terms, number > 0);
}

static void map(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0666);
    void *shared;

    if (fd < 0 || ((flags & O_CREAT) != 0 && ftruncate(fd, sizeof *crowd) != 0))
        err(2, "%s", path);
    shared = mmap(NULL, sizeof *crowd, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        err(2, "%s", path);
    close(fd);
    crowd = shared;
}

/*
 * Returns the state of a process, as in proc(5), and the time at which it was started. Returns 0 if
 * there is no such process.
 */
static char read_state(pid_t pid, unsigned long *started)
{
    char path[64];
    char text[512];
    const char *name_end;
    char state = 0;
    ssize_t n;
    int fd;

    *started = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    name_end = strrchr(text, ')');
    /* after the name: the state, 18 fields that crowd doesn't need, the start time */
    if (name_end == NULL || sscanf(name_end + 1,
                                   " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                                   " %*s %*s %*s %*s %lu",
                                   &state, started) != 2)
        return 0;
    return state;
}

static void take_place(void)
{
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    int at = atomic_fetch_add(&crowd->taken, 1);

    if (at >= PLACES)
        errx(2, "more than %d", PLACES);
    mine = &crowd->place[at];
    mine->pid = getpid();
    if (read_state(mine->pid, &mine->started) == 0)
        errx(2, "/proc/%d/stat can't be read", (int)mine->pid);
    alarm(LIFE_S); /* the process ends even if the test is killed */
    sigaction(SIGTERM, &action, NULL);
    atomic_fetch_add(&crowd->here, 1);
}

static _Noreturn void stay(void)
{
    for (;;)
        pause();
}

/*
 * Forks. Other tests start thousands of processes as well: if the system has no process number
 * left, start() tries again for 20 s. If no process can be started, crowd->failed tells the process
 * that waits until all have started.
 */
static pid_t start(void)
{
    pid_t pid;

    for (int tries = 1; (pid = fork()) < 0 && errno == EAGAIN && tries < FORK_TRIES; tries++)
        poll(NULL, 0, FORK_PAUSE_MS);
    if (pid < 0) {
        atomic_store(&crowd->failed, errno);
        err(2, "fork");
    }
    return pid;
}

/*
 * Execs this program again in a forked child, which starts the rest of the chain. Without the exec
 * each fork would take longer than the previous one, as the kernel links a child's memory to the
 * memory of all its ancestors.
 */
static void become_link(char *file, int depth)
{
    char text[16];

    snprintf(text, sizeof text, "%d", depth);
    execv("/proc/self/exe", (char *[]){"crowd", "link", file, text, NULL});
    err(2, "exec");
}

static _Noreturn void be_link(char *file, int depth)
{
    take_place();
    if (depth > 1 && start() == 0)
        become_link(file, depth - 1);
    stay();
}

static void fill(char *file, int zombies, int children, int depth)
{
    for (int i = 0; i < zombies; i++)
        if (start() == 0)
            _exit(0);
    for (int i = 0; i < children; i++)
        if (start() == 0) {
            take_place();
            stay();
        }
    if (depth > 0 && start() == 0)
        become_link(file, depth);
    while (atomic_load(&crowd->here) < children + depth) {
        if (atomic_load(&crowd->failed))
            errx(2, "not all processes could be started");
        poll(NULL, 0, 1);
    }
}

static void say_ready(const char *file)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof path, "%s.ready", file);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, "ready\n", 6) != 6)
        err(2, "%s", path);
    close(fd);
}

/*
 * Returns the state of the process that has taken this place, as in proc(5). Returns 0 if the
 * process has ended. Its pid may then belong to any other process, also to this one, and a walk
 * through FILE would count this process, or kill it. A process that began at another time is not
 * the one that took the place.
 */
static char state_of(const struct place *place)
{
    unsigned long started;
    char state = read_state(place->pid, &started);

    return started != place->started || state == 'Z' || state == 'X' ? 0 : state;
}

static void show_states(void)
{
    int in_state[128] = {0};

    for (int i = 0; i < crowd->taken; i++)
        in_state[state_of(&crowd->place[i]) & 127]++;
    for (int i = 'A'; i <= 'z'; i++)
        if (in_state[i] > 0)
            printf("%d %c\n", in_state[i], i);
}

/* Kills by pidfd: the process may end, and another one get its pid, before kill(2) is called. */
static void end_all(void)
{
    for (int i = 0; i < crowd->taken; i++) {
        int fd = (int)syscall(SYS_pidfd_open, crowd->place[i].pid, 0);

        if (fd < 0)
            continue;
        if (state_of(&crowd->place[i]) != 0)
            syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
        close(fd);
    }
}

static void show_terms(void)
{
    int with[TERMS_SHOWN] = {0};
    int terms;

    for (int i = 0; i < crowd->taken; i++) {
        terms = crowd->place[i].terms;
        with[terms < TERMS_SHOWN ? terms : TERMS_SHOWN - 1]++;
    }
    for (int i = 0; i < TERMS_SHOWN; i++)
        if (with[i] > 0)
            printf("%d %d\n", with[i], i);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        map(argv[2], O_RDWR);
        if (strcmp(argv[1], "states") == 0)
            show_states();
        else if (strcmp(argv[1], "terms") == 0)
            show_terms();
        else
            end_all();
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "link") == 0) {
        map(argv[2], O_RDWR);
        be_link(argv[2], atoi(argv[3]));
    }
    if (argc < 5)
        errx(2, "usage: crowd FILE ZOMBIES CHILDREN DEPTH [COMMAND...]");
    map(argv[1], O_RDWR | O_CREAT | O_TRUNC);
    fill(argv[1], atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    if (argc == 5)
        take_place();
    say_ready(argv[1]);
    if (argc == 5)
        stay();
    execvp(argv[5], argv + 5);
    err(2, "%s", argv[5]);
}
