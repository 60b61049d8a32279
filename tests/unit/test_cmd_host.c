/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_host: what host finds in a folder that stands for the root of a machine, and what it
 * says of that.
 */
#include "supervise/host.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/test_host.XXXXXX";
static char said[2000]; /* what host_report() has found, a line for each finding */

static void hear(void *context, const struct rlock_finding *finding)
{
    size_t used = strlen(said);

    (void)context;
    snprintf(said + used, sizeof said - used, "%d %s; %s\n", (int)finding->grade, finding->found,
             finding->change != NULL ? finding->change : "");
}

static const char *report(const struct host *host, const struct options *options)
{
    static const struct rlock_examiner examiner = {.on_finding = hear};

    said[0] = '\0';
    host_report(host, options, &examiner);
    return said;
}

/* Makes the file at `path` below the root, and its directories. */
static void write_below(const char *path, const char *text)
{
    char whole[200];
    FILE *file;
    char *at;

    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (at = strchr(whole + strlen(root) + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
    file = fopen(whole, "w");
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

static void test_look(void)
{
    struct host host;

    host_look(&host, root);
    ok(!host.has_proc && host.clock_source[0] == '\0', "an empty root has no /proc and no clock");
    ok(host.clock_step_us > 0 && host.n_descriptors > 0, "the clock's step and a limit are found");
    write_below("/proc/self/stat", "1 (x) R\n");
    write_below("/proc/self/mountinfo", "1 2 0:1 / / rw - ext4 a rw,hidepid=2\n"
                                        "23 28 0:21 / /proc rw,nosuid - proc proc rw\n");
    write_below("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    host_look(&host, root);
    ok(host.has_proc, "/proc is there");
    is_int(host.is_root, geteuid() == 0);
    is_str(host.hidepid, "", "it hides nothing");
    is_str(host.clock_source, "tsc", "the clock source is read");
    write_below("/proc/self/mountinfo",
                "23 28 0:21 / /proc rw,nosuid - proc proc rw,gid=9,hidepid=invisible\n");
    host_look(&host, root);
    is_str(host.hidepid, "hidepid=invisible", "the option that hides processes is found");
    write_below("/proc/self/mountinfo", "22 28 0:21 / /proc rw - proc proc rw,hidepid=2\n"
                                        "23 22 0:21 / /proc rw - proc proc rw\n");
    host_look(&host, root);
    is_str(host.hidepid, "", "only the last of several mounts counts");
    write_below("/proc/self/mountinfo", "23 28 0:21 / /proc rw - proc proc rw,hidepid=off\n");
    host_look(&host, root);
    is_str(host.hidepid, "", "hidepid=off hides nothing");
    host.is_root = false;
    ok(strstr(report(&host, &(struct options){.n_urls = 0}), "/proc is mounted with") == NULL);
}

static void test_report(void)
{
    static const struct host good = {
        .has_proc = true, .n_descriptors = 1024, .clock_source = "tsc", .clock_step_us = 1};
    const struct options use = {.n_urls = 0}; /* the URL is the default, or VALKEY_URL's */
    const struct options frozen = {.needs_cgroup = true};
    const struct options several = {.n_urls = 5};
    struct host host = good;

    ok(report(&good, &frozen)[0] == '0' + RLOCK_GRADE_GOOD && strchr(said, '\n')[1] == '\0');
    host.cgroup_error = ENOSYS;
    snprintf(host.tls_error, sizeof host.tls_error, "none");
    ok(report(&host, &use)[0] == '0' + RLOCK_GRADE_GOOD &&
       strstr(said, "no control group for --cgroup; no OpenSSL for rediss://") != NULL);
    ok(report(&host, &frozen)[0] == '0' + RLOCK_GRADE_WEAK && strstr(said, "71") != NULL);
    host = good;
    host.has_proc = false;
    ok(report(&host, &use)[0] == '0' + RLOCK_GRADE_UNSAFE, "without /proc locks are unsafe");
    host = good;
    snprintf(host.hidepid, sizeof host.hidepid, "hidepid=2");
    ok(report(&host, &use)[0] == '0' + RLOCK_GRADE_WEAK && strstr(said, "hidepid=2") != NULL);
    host.is_root = true;
    ok(report(&host, &use)[0] == '0' + RLOCK_GRADE_GOOD, "from root none is hidden");
    host = good;
    host.n_descriptors = 50; /* enough for 48 without the 4 of one server */
    ok(report(&host, &use)[0] == '0' + RLOCK_GRADE_WEAK && strstr(said, "ulimit -n") != NULL);
    host.n_descriptors = 60;
    ok(strstr(report(&host, &several), "rlock may need 68") != NULL);
    host = good;
    snprintf(host.clock_source, sizeof host.clock_source, "refined-jiffies");
    ok(report(&host, &use)[0] == '0' + RLOCK_GRADE_WEAK, "a coarse clock is weak");
    host.clock_step_us = 0;
    ok(report(&host, &use)[0] == '0' + RLOCK_GRADE_UNSAFE, "no clock is unsafe");
}

int main(void)
{
    char remove[100];

    if (mkdtemp(root) == NULL)
        return 1;
    RUN_ALL(test_look, test_report);
    snprintf(remove, sizeof remove, "rm -rf %s", root);
    return done_testing() | (system(remove) != 0);
}
