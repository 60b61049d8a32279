/* SPDX-License-Identifier: MIT */
/*
 * job: the command that clients of the soak test run under a lock; reports other jobs that run at
 * the same time although their locks exclude each other.
 *
 * usage: job LOG RUN MODE WORK_MS CHILDREN LOCK...
 *
 * LOCK is a directory for each lock that the client RUN holds, MODE how it holds them: `x` (alone),
 * `s` (shared) or `n` (a slot, whose number is in RLOCK_SLOT). With CHILDREN = 1 the job also
 * starts a process in a session of its own, which rlock has to end if the job is killed.
 *
 * Each process creates a marker in each LOCK, a file whose name tells mode, run and process, and
 * then looks every 20 ms at the markers of other runs, so of two processes at least one sees the
 * other. A conflict with a process that exists, and isn't stopped, frozen or about to get STOP or
 * KILL, is an overlap: a stopped one looks itself when it continues. LOG gets lines, times in us
 * since boot:
 *
 *     begin RUN FENCE SLOT TIME
 *     end RUN TIME
 *     overlap RUN MARKER TIME      where MARKER is the name of the other process's marker
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 20 };

static int log_fd;
static const char *run;
static char mode;
static int slot;
static char **locks; /* ends with NULL */
static char marker[128];
static bool has_reported;

static long long now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

/* Reads a file of a process in /proc; returns false if there is no such process. */
static bool read_proc(int pid, const char *name, char *text, size_t size)
{
    char path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, size - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return true;
}

/* Reads the state and the start time of a process; returns false if there is no such process. */
static bool read_process(int pid, char *state, unsigned long long *started)
{
    char text[1024];
    const char *field;

    if (!read_proc(pid, "stat", text, sizeof text))
        return false;
    field = strrchr(text, ')'); /* the name of the program may contain spaces */
    if (field == NULL)
        return false;
    *state = field[2];
    for (int i = 0; i < 20 && field != NULL; i++) /* from field 2 to field 22 */
        field = strchr(field + 1, ' ');
    *started = field != NULL ? strtoull(field, NULL, 10) : 0;
    return true;
}

/* Returns whether STOP or KILL is on its way to the process, or the process has ended. */
static bool is_stopping(int pid)
{
    const unsigned long long stop_or_kill = 1ULL << (SIGSTOP - 1) | 1ULL << (SIGKILL - 1);
    const unsigned exits = 4; /* PF_EXITING of include/linux/sched.h */
    unsigned long long own = 0, shared = 0;
    unsigned flags = 0;
    char text[4096];
    const char *at;

    if (!read_proc(pid, "status", text, sizeof text))
        return true; /* it has ended */
    if ((at = strstr(text, "\nSigPnd:")) != NULL)
        sscanf(at, " SigPnd: %llx ShdPnd: %llx", &own, &shared);
    if (!read_proc(pid, "stat", text, sizeof text) || (at = strrchr(text, ')')) == NULL)
        return true;
    sscanf(at, ") %*c %*d %*d %*d %*d %*d %u", &flags);
    return ((own | shared) & stop_or_kill) != 0 || (flags & exits) != 0;
}

/* Returns whether the cgroup (v2) of the process is frozen, as rlock does with --on-lost pause. */
static bool is_frozen(int pid)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char text[4096], path[4200];
    char *at;
    ssize_t n = 0;

    if (!read_proc(pid, "cgroup", text, sizeof text) || (at = strstr(text, "0::/")) == NULL)
        return false;
    at[strcspn(at, "\n")] = '\0';
    for (size_t i = 0; i < 2 && n <= 0; i++) {
        int fd;

        snprintf(path, sizeof path, "%s%s/cgroup.events", mounts[i], at + 3);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        n = read(fd, path, sizeof path - 1);
        close(fd);
    }
    path[n > 0 ? n : 0] = '\0';
    return strstr(path, "frozen 1") != NULL;
}

static bool is_compatible(char other_mode, int other_slot)
{
    return mode == other_mode && (mode == 's' || (mode == 'n' && slot != other_slot));
}

/* Checks the marker `name` in the directory `at`. Removes the marker if its process is dead. */
static void look_at(int at, const char *name)
{
    char other_mode, other_run[32], state;
    unsigned long long started, now_started;
    int other_slot, pid;

    if (sscanf(name, "%c.%d.%31[0-9].%d.%llu", &other_mode, &other_slot, other_run, &pid,
               &started) != 5 ||
        strcmp(other_run, run) == 0 || is_compatible(other_mode, other_slot))
        return;
    if (!read_process(pid, &state, &now_started) || now_started != started)
        unlinkat(at, name, 0);
    else if (strchr("ZXTt", state) == NULL && !is_stopping(pid) && !is_frozen(pid) &&
             !has_reported) {
        dprintf(log_fd, "overlap %s %s-%c %lld\n", run, name, state, now_us());
        has_reported = true;
    }
}

static void look(void)
{
    struct dirent *entry;
    char **lock;
    DIR *dir;

    for (lock = locks; *lock != NULL; lock++) {
        dir = opendir(*lock);
        if (dir == NULL)
            err(2, "%s", *lock);
        while ((entry = readdir(dir)) != NULL)
            look_at(dirfd(dir), entry->d_name);
        closedir(dir);
    }
}

static void set_markers(void)
{
    unsigned long long started;
    char path[4096], state;
    char **lock;
    int fd;

    if (!read_process(getpid(), &state, &started))
        errx(2, "/proc: not mounted");
    snprintf(marker, sizeof marker, "%c.%d.%s.%d.%llu", mode, slot, run, (int)getpid(), started);
    for (lock = locks; *lock != NULL; lock++) {
        snprintf(path, sizeof path, "%s/%s", *lock, marker);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0)
            err(2, "%s", path);
        close(fd);
    }
}

static void remove_markers(void)
{
    char path[4096];
    char **lock;

    for (lock = locks; *lock != NULL; lock++) {
        snprintf(path, sizeof path, "%s/%s", *lock, marker);
        unlink(path);
    }
}

/* Works until `until_us`: looks at the markers in all locks, again and again. */
static void work(long long until_us)
{
    struct timespec step = {.tv_nsec = STEP_MS * 1000000L};

    do {
        look();
        nanosleep(&step, NULL);
    } while (now_us() < until_us);
    look();
}

static pid_t start_child(void)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    setsid();
    set_markers();
    for (;;)
        work(0);
}

int main(int argc, char **argv)
{
    const char *fence = getenv("RLOCK_FENCE"), *slot_text = getenv("RLOCK_SLOT");
    long long until_us, end_us;
    pid_t child = 0;

    if (argc < 7)
        errx(2, "usage: job LOG RUN MODE WORK_MS CHILDREN LOCK...");
    log_fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log_fd < 0)
        err(2, "%s", argv[1]);
    run = argv[2];
    mode = argv[3][0];
    slot = mode == 'n' && slot_text != NULL ? atoi(slot_text) : 0;
    until_us = now_us() + atoll(argv[4]) * 1000;
    locks = argv + 6;

    set_markers();
    dprintf(log_fd, "begin %s %s %d %lld\n", run, fence != NULL ? fence : "0", slot, now_us());
    if (strcmp(argv[5], "1") == 0)
        child = start_child();
    work(until_us);
    end_us = now_us();
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    remove_markers();
    dprintf(log_fd, "end %s %lld\n", run, end_us);
    return 0;
}
