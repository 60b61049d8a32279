/* SPDX-License-Identifier: MIT */
/*
 * sim: simulated worlds in which the library is used, one for each seed, until the time is over.
 *
 *     sim [--seconds N] [--seed N] [--from N] [--family N] [--seeds FILE] [--jobs N] [--first]
 *
 *   --seconds  run worlds of new seeds for N seconds; by default 60
 *   --from     the first of these seeds; by default it comes from the clock, and is printed
 *   --seed     run only the world of this seed, and print its trace
 *   --family   run only worlds of this family (its number)
 *   --seeds    first run the worlds of the seeds in this file, which have found a fault before
 *   --jobs     how many worlds run at the same time; by default 2
 *   --first    end after the first broken promise
 *
 * Each world runs in a process of its own. TAP: a line for each family of worlds, and for each kept
 * seed. If a promise was broken, sim prints the end of that world's trace, and exits with status 1.
 */
#include "client.h"
#include "engine.h"
#include "faults.h"
#include "oracle.h"
#include "redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAMILIES_MAX 32
#define JOBS_MAX 64
#define TRACE_LINES 80
#define WORLD_SECONDS 600 /* of real time: a world that takes longer hangs */

/* What the worlds report, in memory that all processes share. */
struct counts {
    int64_t n_worlds;
    int64_t n_grants;
    int64_t n_commands;
    int64_t n_failed;
};

static struct counts *counts;
static bool ends_at_first;

static double real_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Runs a world, in a process of its own. Returns 1 if a promise was broken, else 0. */
static int run_world(uint64_t seed, int family)
{
    struct counts *mine = &counts[family];

    alarm(WORLD_SECONDS);
    faults_run_world(seed, family);
    __atomic_add_fetch(&mine->n_worlds, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&mine->n_grants, oracle_n_grants(), __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&mine->n_commands, server_n_commands, __ATOMIC_SEQ_CST);
    fflush(stdout);
    return oracle_has_failed() ? 1 : 0;
}

static pid_t start_world(uint64_t seed, int family)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0)
        _exit(run_world(seed, family));
    return pid;
}

/* Runs once more a world in which a promise was broken, and prints the end of the world's trace. */
static void show_trace(const char *program, uint64_t seed, int family)
{
    char command[600];

    snprintf(command, sizeof command, "%s --seed %llu --family %d | grep '^#' | tail -n %d",
             program, (unsigned long long)seed, family, TRACE_LINES);
    fflush(stdout);
    if (system(command) != 0)
        printf("# no trace of seed %llu\n", (unsigned long long)seed);
}

struct options {
    double seconds;
    uint64_t from;
    uint64_t seed;
    bool has_seed;
    int family; /* -1: all families in turn */
    int jobs;
    const char *seeds;
};

static int family_of(const struct options *options, uint64_t seed)
{
    return options->family >= 0 ? options->family : faults_family_of(seed);
}

static void reap(const char *program, const pid_t *pid, const uint64_t *seed,
                 const struct options *options, int *slot)
{
    int status;
    pid_t ended = wait(&status);
    int i = 0;
    int family;

    while (pid[i] != ended)
        i++;
    *slot = i;
    if (status == 0)
        return;
    family = family_of(options, seed[i]);
    __atomic_add_fetch(&counts[family].n_failed, 1, __ATOMIC_SEQ_CST);
    printf("# seed %llu (%s): %s; again by: make sim SIM_SEED=%llu SIM_FAMILY=%d\n",
           (unsigned long long)seed[i], faults_family_name(family),
           WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "a promise was broken",
           (unsigned long long)seed[i], family);
    show_trace(program, seed[i], family);
}

static bool is_over(const struct options *options, double end)
{
    for (int i = 0; ends_at_first && faults_family_name(i) != NULL; i++)
        if (counts[i].n_failed > 0)
            return true;
    return options->seconds <= 0 || real_seconds() >= end;
}

static void run_worlds(const char *program, const struct options *options)
{
    double end = real_seconds() + options->seconds;
    pid_t pid[JOBS_MAX] = {0};
    uint64_t seed[JOBS_MAX] = {0};
    uint64_t next = options->from;
    int n_running = 0;
    int slot;

    for (;;) {
        slot = n_running;
        if (n_running == options->jobs || is_over(options, end)) {
            if (n_running == 0)
                return;
            reap(program, pid, seed, options, &slot);
            n_running--;
            pid[slot] = pid[n_running];
            seed[slot] = seed[n_running];
            continue;
        }
        seed[slot] = next++;
        pid[slot] = start_world(seed[slot], family_of(options, seed[slot]));
        n_running++;
    }
}

/* Runs the worlds in a file of lines "SEED FAMILY REASON". Returns in how many a promise broke. */
static int run_kept(const char *program, const char *path, int *n_tests)
{
    FILE *file = fopen(path, "r");
    char line[300];
    int n_failed = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long long seed;
        int family;
        int used;
        int status;

        if (sscanf(line, "%llu %d %n", &seed, &family, &used) != 2)
            continue;
        line[strcspn(line, "\n")] = '\0';
        (void)waitpid(start_world(seed, family), &status, 0);
        printf("%sok %d - sim: kept seed %llu: %s\n", status == 0 ? "" : "not ", ++*n_tests, seed,
               line + used);
        if (status != 0)
            show_trace(program, seed, family);
        n_failed += status != 0;
    }
    if (file != NULL)
        fclose(file);
    return n_failed;
}

static int report(int n_tests)
{
    int n_failed = 0;

    for (int i = 0; faults_family_name(i) != NULL; i++) {
        if (counts[i].n_worlds == 0 && counts[i].n_failed == 0)
            continue;
        printf("%sok %d - sim: %s: %lld grants by %lld requests in %lld worlds\n",
               counts[i].n_failed == 0 ? "" : "not ", ++n_tests, faults_family_name(i),
               (long long)counts[i].n_grants, (long long)counts[i].n_commands,
               (long long)counts[i].n_worlds);
        n_failed += counts[i].n_failed > 0;
    }
    printf("1..%d\n", n_tests);
    return n_failed;
}

static void read_options(char **argv, struct options *options)
{
    for (argv++; *argv != NULL; argv++) {
        const char *value = argv[1] != NULL ? argv[1] : "0";

        if (strcmp(*argv, "--first") == 0) {
            ends_at_first = true;
            continue;
        }
        if (strcmp(*argv, "--seconds") == 0)
            options->seconds = atof(value);
        else if (strcmp(*argv, "--from") == 0)
            options->from = strtoull(value, NULL, 10);
        else if (strcmp(*argv, "--family") == 0)
            options->family = atoi(value);
        else if (strcmp(*argv, "--jobs") == 0)
            options->jobs = atoi(value);
        else if (strcmp(*argv, "--seeds") == 0)
            options->seeds = value;
        else if (strcmp(*argv, "--seed") == 0)
            options->seed = strtoull(value, NULL, 10);
        options->has_seed = options->has_seed || strcmp(*argv, "--seed") == 0;
        if (argv[1] != NULL)
            argv++;
    }
    if (options->jobs < 1 || options->jobs > JOBS_MAX)
        options->jobs = 1;
}

int main(int argc, char **argv)
{
    struct options options = {
        .seconds = 60, .from = (uint64_t)time(NULL) * 1000, .family = -1, .jobs = 2};
    int n_tests = 0;
    int n_failed = 0;

    (void)argc;
    read_options(argv, &options);
    counts = mmap(NULL, FAMILIES_MAX * sizeof *counts, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        return 2;
    if (options.has_seed) {
        trace_is_on = true;
        return run_world(options.seed, family_of(&options, options.seed));
    }
    (void)redis_ask("save", 0, 0, NULL, 0, NULL); /* loads redis.lua, once for all worlds */
    if (options.seeds != NULL)
        n_failed = run_kept(argv[0], options.seeds, &n_tests);
    printf("# seeds from %llu\n", (unsigned long long)options.from);
    run_worlds(argv[0], &options);
    n_failed += report(n_tests);
    return n_failed > 0 ? 1 : 0;
}
