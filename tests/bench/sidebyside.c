/* sidebyside: measures how long several programs, in turn, take to run the same command. */
/*
 *     sidebyside ROUNDS COMMAND SAMPLES <PROGRAMS >SUMMARY
 *
 * PROGRAMS has a line for each program: its name, then the words that come
 * before COMMAND, separated by tabs. Every round runs each program once, in a
 * new random order. So two disturbances affect all programs alike: a second in
 * which the machine is slow, and the state in which a program leaves caches and
 * servers to the next program. The first rounds don't count, as they fill the
 * caches. If a program fails, sidebyside ends: the time until a failure says
 * nothing about a lock.
 *
 * SUMMARY has a line for each program: its times in microseconds, and two ratios
 * to the first program: the ratio of the medians, and the median of the ratios
 * of each round with the bounds of its 95 % interval. SAMPLES has all times, a
 * line for each round.
 *
 * A time begins before the spawn and ends after the wait, so it includes the
 * loading of the program.
 */
/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum {
    MAX_PROGRAMS = 16,
    MAX_WORDS = 32, /* a program's name, the words of its argv, and NULL */
    MAX_ROUNDS = 100000,
    WARM_UP_ROUNDS = 10
};

struct program {
    char *line;             /* the line of PROGRAMS; the words point into it */
    char *words[MAX_WORDS]; /* the name, then argv, then NULL */
    double *us;             /* the time of each round */
};

extern char **environ;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "sidebyside: %s: %s\n", what, why);
    exit(1);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/*
 * Returns a pseudo-random number below n, by which the rounds are shuffled. Each run of sidebyside
 * has the same sequence of numbers (xorshift, Marsaglia 2003).
 */
static size_t random_below(size_t n)
{
    static uint64_t x = 88172645463325252u;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (size_t)(x % n);
}

static void shuffle(size_t *order, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = random_below(i);
        size_t t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

static void program_parse(struct program *p, char *command, size_t rounds)
{
    size_t n = 0;

    for (char *word = strtok(p->line, "\t\n"); word; word = strtok(NULL, "\t\n")) {
        if (n == MAX_WORDS - 2)
            die(p->words[0], "too many words");
        p->words[n++] = word;
    }
    if (n < 2)
        die("standard input", "a line without a name and a program");
    p->words[n++] = command;
    p->words[n] = NULL;
    p->us = calloc(rounds, sizeof *p->us);
    if (!p->us)
        die(p->words[0], strerror(errno));
}

static size_t programs_read(struct program *programs, char *command, size_t rounds)
{
    size_t n = 0;
    size_t size = 0;

    for (;;) {
        char *line = NULL;
        if (getline(&line, &size, stdin) < 0) {
            free(line);
            break;
        }
        size = 0;
        if (n == MAX_PROGRAMS)
            die("standard input", "too many programs");
        programs[n].line = line;
        program_parse(&programs[n++], command, rounds);
    }
    if (n == 0)
        die("standard input", "no program");
    return n;
}

static double run_once(const struct program *p, const posix_spawn_file_actions_t *silence)
{
    double start = now_us();
    pid_t pid;
    int status;

    int error = posix_spawnp(&pid, p->words[1], silence, NULL, p->words + 1, environ);
    if (error)
        die(p->words[0], strerror(error));
    if (waitpid(pid, &status, 0) < 0)
        die(p->words[0], strerror(errno));
    double end = now_us();

    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die(p->words[0], "did not end with status 0");
    return end - start;
}

static void measure(struct program *programs, size_t n, size_t rounds)
{
    posix_spawn_file_actions_t silence;
    size_t order[MAX_PROGRAMS];

    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        die("/dev/null", strerror(errno));
    posix_spawn_file_actions_init(&silence);
    posix_spawn_file_actions_adddup2(&silence, null, 0);
    posix_spawn_file_actions_adddup2(&silence, null, 1);

    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t round = 0; round < WARM_UP_ROUNDS + rounds; round++) {
        shuffle(order, n);
        for (size_t i = 0; i < n; i++) {
            struct program *p = &programs[order[i]];
            double us = run_once(p, &silence);
            if (round >= WARM_UP_ROUNDS)
                p->us[round - WARM_UP_ROUNDS] = us;
        }
    }
    posix_spawn_file_actions_destroy(&silence);
}

static void print_samples(const char *path, const struct program *programs, size_t n, size_t rounds)
{
    FILE *f = fopen(path, "we");

    if (!f)
        die(path, strerror(errno));
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s%c", programs[i].words[0], i + 1 < n ? '\t' : '\n');
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < n; i++)
            fprintf(f, "%.1f%c", programs[i].us[round], i + 1 < n ? '\t' : '\n');
    if (fclose(f) != 0)
        die(path, strerror(errno));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the quantile q, from 0 to 1, of n sorted values (nearest rank). */
static double quantile(const double *sorted, size_t n, double q)
{
    double rank = ceil(q * (double)n);

    return sorted[rank < 1 ? 0 : rank > (double)n ? n - 1 : (size_t)rank - 1];
}

static void print_summary(struct program *programs, size_t n, size_t rounds)
{
    double *ratio = calloc(n * rounds, sizeof *ratio);
    double first = 0;
    /* The true median is between the quantiles 0.5 - spread and 0.5 + spread 95 times of 100. */
    double spread = 0.98 / sqrt((double)rounds);

    if (!ratio)
        die("summary", strerror(errno));
    for (size_t i = 0; i < n; i++)
        for (size_t round = 0; round < rounds; round++)
            ratio[i * rounds + round] = programs[i].us[round] / programs[0].us[round];

    puts("name\tmedian_us\tp90_us\tp99_us\tratio_of_medians\tmedian_of_ratios\tat_least\tat_most");
    for (size_t i = 0; i < n; i++) {
        double *us = programs[i].us;
        double *r = ratio + i * rounds;
        qsort(us, rounds, sizeof *us, compare);
        qsort(r, rounds, sizeof *r, compare);
        double median = quantile(us, rounds, 0.5);
        if (i == 0)
            first = median;
        printf("%s\t%.1f\t%.1f\t%.1f\t%.3f", programs[i].words[0], median,
               quantile(us, rounds, 0.9), quantile(us, rounds, 0.99), median / first);
        printf("\t%.3f\t%.3f\t%.3f\n", quantile(r, rounds, 0.5), quantile(r, rounds, 0.5 - spread),
               quantile(r, rounds, 0.5 + spread));
    }
    free(ratio);
}

int main(int argc, char **argv)
{
    struct program programs[MAX_PROGRAMS] = {0};

    if (argc != 4)
        die("usage", "sidebyside ROUNDS COMMAND SAMPLES <PROGRAMS >SUMMARY");
    char *rest;
    long rounds = strtol(argv[1], &rest, 10);
    if (*rest || rounds < 1 || rounds > MAX_ROUNDS)
        die(argv[1], "not a number of rounds");

    size_t n = programs_read(programs, argv[2], (size_t)rounds);
    measure(programs, n, (size_t)rounds);
    print_samples(argv[3], programs, n, (size_t)rounds);
    print_summary(programs, n, (size_t)rounds);

    for (size_t i = 0; i < n; i++) {
        free(programs[i].line);
        free(programs[i].us);
    }
    if (fflush(stdout) != 0)
        die("standard output", strerror(errno));
    return 0;
}
