/* crowd: measures what many waiters for one lock cost, and how they are served. */
/*
 *     crowd WAITERS MS REST_S HOOK FOLDER PROGRAM [ARG...]
 *
 * PROGRAM takes a lock and does the work of turn.c, whose three arguments crowd
 * adds to ARG. crowd
 * 1. starts a holder, which has the lock until step 4;
 * 2. starts WAITERS waiters, each when the previous one sleeps, so that crowd
 *    knows in which order they came;
 * 3. measures the processor time of the waiters for REST_S seconds, if that is not 0, and then
 *    their memory;
 * 4. runs the shell command HOOK and ends the holder; each waiter then has the
 *    lock for MS milliseconds. FOLDER gets the log of these turns.
 *
 * Standard output has lines with a name, a tab and a number:
 *
 *     handover_us   from the end of a turn to the start of the next; WAITERS lines
 *     waiter_s      total of the waiters' times from the end of the first turn to their own
 *     inversions    number of pairs of waiters that were not served in their order
 *     overtaken     number of waiters that were served after a later one
 *     pss_kB        mean proportional set size of a waiter and all its children
 *     cpu_us_s      mean processor time of a waiter per second of waiting
 *     cpu_max_us_s  as cpu_us_s, of the waiter that used most
 *
 * If turns overlap or a program fails, crowd ends with a message and status 1.
 */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_WAITERS = 1000,
    MAX_WORDS = 64,
    LOOK_MS = 5,          /* interval at which crowd looks whether a process sleeps */
    LOOKS = 4,            /* crowd concludes that a waiter waits if it sleeps at 4 looks in a row */
    LOOKS_OF_HOLDER = 20, /* as LOOKS, for the holder, which needs time to get the lock */
    REST_LIMIT_MS = 20000,
    DRAIN_LIMIT_S = 120
};

struct turn {
    int number;
    long long start_ns;
    long long end_ns;
};

struct crowd {
    char *words[MAX_WORDS];
    int n_words;
    char log[256];
    char gate[256];
    const char *ms;
    int n;
    pid_t pids[MAX_WAITERS + 1]; /* the first is the holder */
};

/* Processor time and memory of a process and its descendants. */
struct cost {
    long long cpu_ns;
    double pss_kB;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "crowd: %s: %s\n", what, why);
    exit(1);
}

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

/* Reads a file of /proc into a text; false if the process has ended. */
static bool proc_read(char *text, size_t size, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

/* Returns the processor time of the children that `pid` has reaped, in ns. The kernel counts it in
 * clock ticks, mostly of 10 ms. */
static long long reaped_ns(pid_t pid)
{
    long user = 0;
    long system = 0;
    char path[64];
    char text[1024];

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!proc_read(text, sizeof text, path) || strrchr(text, ')') == NULL)
        return 0;
    if (sscanf(strrchr(text, ')') + 2,
               "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %ld %ld", &user, &system) != 2)
        return 0;
    return (user + system) * (1000000000LL / sysconf(_SC_CLK_TCK));
}

static double pss_kB(pid_t pid)
{
    char path[64];
    char text[4096];
    const char *found;

    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    found = proc_read(text, sizeof text, path) ? strstr(text, "\nPss:") : NULL;
    return found == NULL ? 0 : atof(found + 5) * 1.024;
}

/* Adds the costs of a process and of all its descendants that still run. */
static void cost_add(struct cost *cost, pid_t pid, bool with_memory)
{
    char path[320];
    char text[4096];
    struct dirent *entry;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    if (tasks == NULL)
        return;
    cost->cpu_ns += reaped_ns(pid);
    if (with_memory)
        cost->pss_kB += pss_kB(pid);
    while ((entry = readdir(tasks)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", (int)pid, entry->d_name);
        if (proc_read(text, sizeof text, path))
            cost->cpu_ns += atoll(text);
        snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, entry->d_name);
        if (!proc_read(text, sizeof text, path))
            continue;
        char *next = text;
        for (long child = strtol(next, &next, 10); child > 0; child = strtol(next, &next, 10))
            cost_add(cost, (pid_t)child, with_memory);
    }
    closedir(tasks);
}

static struct cost cost_of(pid_t pid, bool with_memory)
{
    struct cost cost = {0};

    cost_add(&cost, pid, with_memory);
    return cost;
}

static bool is_asleep(pid_t pid)
{
    char path[64];
    char text[1024];
    const char *state;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!proc_read(text, sizeof text, path) || (state = strrchr(text, ')')) == NULL)
        return false;
    if (state[2] == 'Z')
        die("a waiter", "ended before its turn");
    return state[2] == 'S';
}

/* Waits until the process sleeps at `looks` looks in a row, using no processor time meanwhile. */
static void wait_until_asleep(pid_t pid, int looks)
{
    long long before = -1;
    int still = 0;

    for (int ms = 0; ms < REST_LIMIT_MS; ms += LOOK_MS) {
        long long cpu_ns = cost_of(pid, false).cpu_ns;
        still = cpu_ns == before && is_asleep(pid) ? still + 1 : 0;
        if (still == looks)
            return;
        before = cpu_ns;
        sleep_ms(LOOK_MS);
    }
    die("a process", "does not stay asleep: it seems not to wait");
}

static pid_t begin(struct crowd *crowd, int number)
{
    char word[16];
    char **end = crowd->words + crowd->n_words;
    pid_t parent = getpid();

    snprintf(word, sizeof word, "%d", number);
    end[0] = crowd->log;
    end[1] = word;
    end[2] = number == 0 ? crowd->gate : (char *)crowd->ms;
    end[3] = NULL;
    pid_t pid = fork();
    if (pid < 0)
        die("fork", strerror(errno));
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int null = open("/dev/null", O_RDWR);
    if (getppid() != parent || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        _exit(71);
    if (null > 2)
        close(null);
    execvp(crowd->words[0], crowd->words);
    _exit(127);
}

static void gather(struct crowd *crowd)
{
    for (int i = 0; i <= crowd->n; i++) {
        crowd->pids[i] = begin(crowd, i);
        wait_until_asleep(crowd->pids[i], i == 0 ? LOOKS_OF_HOLDER : LOOKS);
    }
}

static void rest(const struct crowd *crowd, long rest_s)
{
    static struct cost before[MAX_WAITERS + 1];
    double sum_us = 0;
    double most_us = 0;

    for (int i = 1; i <= crowd->n; i++)
        before[i] = cost_of(crowd->pids[i], false);
    sleep_ms(rest_s * 1000);
    for (int i = 1; i <= crowd->n; i++) {
        struct cost cost = cost_of(crowd->pids[i], false);
        double us = (double)(cost.cpu_ns - before[i].cpu_ns) / 1e3 / (double)rest_s;
        sum_us += us;
        most_us = us > most_us ? us : most_us;
    }
    printf("cpu_us_s\t%.2f\n", sum_us / crowd->n);
    printf("cpu_max_us_s\t%.2f\n", most_us);
}

/* Of a page that several processes share, each counts its part: so the mean depends on how many
 * waiters there are, and also on how many other programs use the same libraries. */
static void weigh(const struct crowd *crowd)
{
    double pss = 0;

    for (int i = 1; i <= crowd->n; i++)
        pss += cost_of(crowd->pids[i], true).pss_kB;
    printf("pss_kB\t%.1f\n", pss / crowd->n);
}

static void drain(const struct crowd *crowd)
{
    int gate = open(crowd->gate, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

    if (gate < 0)
        die("the holder", "does not hold the lock");
    close(gate);
    alarm(DRAIN_LIMIT_S);
    for (int i = 0; i <= crowd->n; i++) {
        int status;
        if (waitpid(crowd->pids[i], &status, 0) < 0 || !WIFEXITED(status) ||
            WEXITSTATUS(status) != 0)
            die("a waiter", "did not end with status 0");
    }
    alarm(0);
}

static int compare(const void *a, const void *b)
{
    const struct turn *x = a;
    const struct turn *y = b;

    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Reads the log of the turns, the holder's included, and sorts it by their starts. */
static void turns_read(const struct crowd *crowd, struct turn *turns)
{
    FILE *f = fopen(crowd->log, "re");
    int n = 0;

    if (f == NULL)
        die(crowd->log, strerror(errno));
    while (n <= crowd->n &&
           fscanf(f, "%d %lld %lld", &turns[n].number, &turns[n].start_ns, &turns[n].end_ns) == 3)
        n++;
    fclose(f);
    if (n != crowd->n + 1)
        die(crowd->log, "a turn is missing");
    qsort(turns, (size_t)n, sizeof *turns, compare);
    if (turns[0].number != 0)
        die("the holder", "was not the first to have the lock");
}

static void tell(const struct turn *turns, int n)
{
    int inversions = 0;
    int overtaken = 0;
    double waiter_s = 0;

    for (int i = 1; i <= n; i++) {
        int before = 0;
        for (int j = 1; j < i; j++)
            before += turns[j].number > turns[i].number;
        inversions += before;
        overtaken += before > 0;
        waiter_s += (double)(turns[i].start_ns - turns[0].end_ns) / 1e9;
        if (turns[i].start_ns < turns[i - 1].end_ns)
            die("turns", "two processes had the lock at the same time");
        printf("handover_us\t%.1f\n", (double)(turns[i].start_ns - turns[i - 1].end_ns) / 1e3);
    }
    printf("waiter_s\t%.3f\ninversions\t%d\novertaken\t%d\n", waiter_s, inversions, overtaken);
}

static void open_folder(struct crowd *crowd, const char *folder)
{
    snprintf(crowd->log, sizeof crowd->log, "%s/turns", folder);
    snprintf(crowd->gate, sizeof crowd->gate, "%s/gate", folder);
    unlink(crowd->log);
    unlink(crowd->gate);
    int log = open(crowd->log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (log < 0 || mkfifo(crowd->gate, 0600) < 0)
        die(folder, strerror(errno));
    close(log);
}

int main(int argc, char **argv)
{
    static struct crowd crowd;
    static struct turn turns[MAX_WAITERS + 2];

    if (argc < 7 || argc - 6 > MAX_WORDS - 4 || argv[5][0] != '/')
        die("usage", "crowd WAITERS MS REST_S HOOK /FOLDER PROGRAM [ARG...]");
    crowd.n = atoi(argv[1]);
    crowd.ms = argv[2];
    if (crowd.n < 1 || crowd.n > MAX_WAITERS)
        die(argv[1], "not a number of waiters");
    crowd.n_words = argc - 6;
    memcpy(crowd.words, argv + 6, (size_t)crowd.n_words * sizeof *argv);
    open_folder(&crowd, argv[5]);

    gather(&crowd);
    if (atol(argv[3]) > 0)
        rest(&crowd, atol(argv[3]));
    weigh(&crowd);
    if (system(argv[4]) != 0)
        die(argv[4], "failed");
    drain(&crowd);
    turns_read(&crowd, turns);
    tell(turns, crowd.n);
    return 0;
}
