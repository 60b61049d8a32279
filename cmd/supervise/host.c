/* SPDX-License-Identifier: MIT */
/*
 * host: looks whether this machine has what rlock needs beside the server.
 *
 * The guard finds the processes of the command in /proc, keeps times on CLOCK_BOOTTIME, and with
 * --cgroup and --on-lost pause kills or freezes a control group.
 */
#include "supervise/host.h"

#include "output/report.h"
#include "supervise/cgroup.h"
#include "wire/tls.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define DESCRIPTORS 48           /* what rlock and its guard open at most, without servers */
#define DESCRIPTORS_PER_SERVER 4 /* two connections, a lookup of its name, and a password's pipe */
#define STEP_MAX_US 10000        /* a clock that moves on in steps of more is too coarse */

static FILE *open_below(const char *root, const char *path)
{
    char whole[PATH_MAX];

    snprintf(whole, sizeof whole, "%s%s", root, path);
    return fopen(whole, "re");
}

/* Writes how the last mount on /proc hides processes: "hidepid=2", proc(5); "": it hides none. */
static void find_hidepid(char *hidepid, size_t room, FILE *mounts)
{
    char *line = NULL;
    size_t size = 0;
    const char *at;

    while (getline(&line, &size, mounts) > 0) {
        if (strstr(line, " /proc ") == NULL || strstr(line, " - proc ") == NULL)
            continue;
        at = strstr(line, "hidepid=");
        snprintf(hidepid, room, "%s", at != NULL ? at : "");
        hidepid[strcspn(hidepid, ", \n")] = '\0';
    }
    free(line);
    if (strcmp(hidepid, "hidepid=0") == 0 || strcmp(hidepid, "hidepid=off") == 0)
        hidepid[0] = '\0';
}

static void look_at_clock(struct host *host, const char *root)
{
    FILE *source = open_below(root, CLOCK_SOURCE);
    struct timespec step;

    if (clock_getres(CLOCK_BOOTTIME, &step) == 0)
        host->clock_step_us = (size_t)step.tv_sec * 1000000 + (size_t)(step.tv_nsec + 999) / 1000;
    if (source == NULL)
        return;
    if (fgets(host->clock_source, sizeof host->clock_source, source) != NULL)
        host->clock_source[strcspn(host->clock_source, "\n")] = '\0';
    fclose(source);
}

static void look_at_tls(struct host *host)
{
    const struct rlock_config none = {.tls_ca = NULL};
    struct tls_context *tls = NULL;
    struct rlock_error err = {.text = ""};

    (void)!tls_context_new(&tls, &none, &err);
    snprintf(host->tls_error, sizeof host->tls_error, "%.190s", err.text);
    tls_context_free(tls);
}

void host_look(struct host *host, const char *root)
{
    FILE *stat = open_below(root, "/proc/self/stat");
    FILE *mounts = open_below(root, "/proc/self/mountinfo");
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    struct cgroup cgroup = CGROUP_NONE;
    char path[PATH_MAX];

    *host = (struct host){.is_root = geteuid() == 0, .has_proc = stat != NULL && mounts != NULL};
    if (mounts != NULL)
        find_hidepid(host->hidepid, sizeof host->hidepid, mounts);
    host->cgroup_error = cgroup_make(&cgroup, path, sizeof path);
    if (host->cgroup_error == 0)
        cgroup_remove(&cgroup);
    getrlimit(RLIMIT_NOFILE, &limit);
    host->n_descriptors = limit.rlim_cur < SIZE_MAX ? (size_t)limit.rlim_cur : SIZE_MAX;
    look_at_clock(host, root);
    look_at_tls(host);
    if (stat != NULL)
        fclose(stat);
    if (mounts != NULL)
        fclose(mounts);
}

static void tell(const struct rlock_examiner *examiner, enum rlock_grade grade, const char *change,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
static void tell(const struct rlock_examiner *examiner, enum rlock_grade grade, const char *change,
                 const char *format, ...)
{
    char found[400];
    const struct rlock_finding finding = {.server = "this machine",
                                          .check = "host",
                                          .grade = grade,
                                          .found = found,
                                          .change = change};
    va_list args;

    va_start(args, format);
    vsnprintf(found, sizeof found, format, args);
    va_end(args);
    examiner->on_finding(examiner->context, &finding);
}

/* Tells what is wrong with /proc and control groups. Returns how many findings that makes. */
static int tell_of_processes(const struct host *host, const struct options *options,
                             const struct rlock_examiner *examiner)
{
    bool is_hidden = host->has_proc && host->hidepid[0] != '\0' && !host->is_root;
    bool lacks_cgroup = options->needs_cgroup && host->cgroup_error != 0;

    if (!host->has_proc)
        tell(examiner, RLOCK_GRADE_UNSAFE, "mount it: mount -t proc proc /proc",
             "/proc can't be read, in which rlock finds the processes of the command");
    if (is_hidden)
        tell(examiner, RLOCK_GRADE_WEAK,
             "use --cgroup, or add the user to the group that /proc's option gid names",
             "/proc is mounted with %s: rlock doesn't see processes of the command that change "
             "their user",
             host->hidepid);
    if (lacks_cgroup)
        tell(examiner, RLOCK_GRADE_WEAK,
             host->cgroup_error == EROFS
                 ? "start the container with writable control groups"
                 : "start rlock in a delegated control group: systemd-run --user --scope -p "
                   "Delegate=yes rlock ...",
             "no control group can be made (%s), so --cgroup and --on-lost pause end with 71",
             strerror(host->cgroup_error));
    return !host->has_proc + is_hidden + lacks_cgroup;
}

/* Tells what is wrong with the clock. Returns how many findings that makes. */
static int tell_of_clock(const struct host *host, const struct rlock_examiner *examiner)
{
    bool has_clock = host->clock_step_us > 0;
    bool is_coarse =
        strstr(host->clock_source, "jiffies") != NULL || host->clock_step_us > STEP_MAX_US;

    if (!has_clock)
        tell(examiner, RLOCK_GRADE_UNSAFE, "use a kernel that has it",
             "the kernel has no CLOCK_BOOTTIME, by which leases end");
    else if (is_coarse)
        tell(examiner, RLOCK_GRADE_WEAK,
             "choose another clock source in /sys/devices/system/clocksource/clocksource0",
             "the clock source %s moves on in coarse steps", host->clock_source);
    return !has_clock || is_coarse;
}

void host_report(const struct host *host, const struct options *options,
                 const struct rlock_examiner *examiner)
{
    /* VALKEY_URL, REDIS_URL and the default name one server */
    size_t n_servers = options->n_urls > 0 ? options->n_urls : 1;
    size_t needed = DESCRIPTORS + DESCRIPTORS_PER_SERVER * n_servers;
    bool has_few = host->n_descriptors < needed;
    int n = tell_of_processes(host, options, examiner) + tell_of_clock(host, examiner);

    if (has_few)
        tell(examiner, RLOCK_GRADE_WEAK, REPORT_MORE_FILES,
             "a process may open %zu descriptors, and rlock may need %zu", host->n_descriptors,
             needed);
    if (n == 0 && !has_few)
        tell(examiner, RLOCK_GRADE_GOOD, NULL, "/proc, clock%s%s, descriptors%s%s",
             host->clock_source[0] != '\0' ? " " : "", host->clock_source,
             host->cgroup_error == 0 ? ", control groups" : "; no control group for --cgroup",
             host->tls_error[0] == '\0' ? ", OpenSSL" : "; no OpenSSL for rediss://");
}
