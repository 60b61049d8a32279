/* SPDX-License-Identifier: MIT */
/* test_cmd_renew_daemon: `acquire --bind-pid` leaves a daemon behind, which renews the lease. */
#include "program.h"
#include "supervise/renew_daemon.h"

#include <sys/resource.h>

#define TTL "8s" /* the first renewal comes after 2.7 s, TERM after 6 s if none is confirmed */

static pid_t start_process(void)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

/* tests/cli/acquire.bats shows all that a daemon does. This shows the facts that its log has. */
static void test_loss(void)
{
    pid_t bound = start_process();
    char log[] = "/tmp/rlock-log-XXXXXX";
    int log_fd = mkstemp(log);
    struct program program;
    struct server *server = program_server(&program);
    char line[200];

    server->answers[ASKED_ACQUIRE] = ANSWERS(GRANT);
    server->answers[ASKED_RENEW] = ANSWERS(LOST_TO);
    server->answers[ASKED_RELEASE] = ANSWERS(RELEASED);
    snprintf(line, sizeof line,
             "acquire -k job -t " TTL " --kill-after 1500ms --bind-pid %d --log %s", (int)bound,
             log);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* the test adopts the daemon */
    program_start(&program, line, NULL);
    is_int(program_status(&program), 0, "the lock is bound to a process");
    ok(read(program.out_fd, line, 10) == 10 && strncmp(line, "{\"token\":\"", 10) == 0);
    ok(program_is_closed(program.out_fd) && program_is_closed(program.runs_fd) &&
           program_is_closed(program.said_fd),
       "the daemon doesn't keep what rlock has inherited");
    is_int(child_status(bound), -SIGTERM, "the lock is lost: TERM ends the process");
    for (int i = 0; i < PROGRAM_PATIENCE_MS && program_find(&program, "ended", 0) == NULL; i++) {
        poll(NULL, 0, 1);
        (void)!pread(log_fd, program.said, sizeof program.said - 1, 0);
    }
    snprintf(line, sizeof line, "\"process\":%d,\"term_at\":\"", (int)bound);
    program_has_said(&program, "ended", line);
    program_has_said(&program, "lost", "\"cause\":\"held\",\"holder\":{");
    program_has_said(&program, "lost", "(bound) is being ended: TERM at ");
    program_has_said(&program, "lost", "\"term_at\":\"");
    program_has_said(&program, "lost", "\"kill_at\":\"");
    ok(program_find(&program, "lost", 1) == NULL, "the loss is reported once");
    ok(program_find(&program, "can't be ended", 0) == NULL);
    snprintf(line, sizeof line, "\"pid\":%d,", (int)waitpid(-1, NULL, 0));
    program_has_said(&program, "lost", line);
    is_int(server_count(server, ASKED_RELEASE), 1);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    program.said[0] = '\0';
    program_end(&program);
    close(log_fd);
    unlink(log);
}

/* A daemon that this test has started for a process of its own, and their parts. */
struct started {
    struct renew_daemon daemon;
    struct guard_client guard;
    pid_t bound;
    int guard_fd; /* pidfd of the guard; -1: the kernel has no lists of children */
};

static void start_daemon(struct started *started, int64_t lease_ms)
{
    const struct options options = options_by_default;
    struct session session = {.options = &options,
                              .report = {.level = REPORT_FAILURE},
                              .private_server = {.users_fd = -1, .alive_fd = -1}};
    const struct renew_daemon_log log = {.to = REPORT_TO_LOG, .fd = -1};
    const struct rlock_grant grant = {.expires_ms = rlock_clock_ms() + lease_ms};
    const struct supervise_plan plan = {
        .session = &session, .grant = &grant, .guard = &started->guard};
    FILE *children;
    char path[64];
    int its_guard = 0;

    *started = (struct started){.guard = {.fd = -1}, .bound = start_process(), .guard_fd = -1};
    is_int(proctree_bind(&started->guard.tree, started->bound), 0, "a process is bound");
    is_int(renew_daemon_start(&started->daemon, &plan, started->bound, &log), 0);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)started->daemon.pid,
             (int)started->daemon.pid);
    children = fopen(path, "r");
    if (children == NULL)
        skip("the daemon has a child, the guard", "the kernel has no lists of children");
    else
        ok(fscanf(children, "%d", &its_guard) == 1 && its_guard > 0);
    if (children != NULL)
        fclose(children);
    if (its_guard > 0)
        started->guard_fd = (int)syscall(SYS_pidfd_open, its_guard, 0);
}

/* Ends what start_daemon() has started, and checks that nobody has ended the process before. */
static void lives_on(struct started *started, const char *name)
{
    struct pollfd its_guard = {.fd = started->guard_fd, .events = POLLIN};

    if (started->guard_fd >= 0)
        is_int(poll(&its_guard, 1, PROGRAM_PATIENCE_MS), 1, "the guard ends");
    ok(waitpid(started->bound, NULL, WNOHANG) == 0, name);
    kill(started->bound, SIGKILL);
    waitpid(started->bound, NULL, 0);
    close(started->guard_fd);
}

/* Nothing ends the process for a lock that `rlock acquire` doesn't hand out. */
static void test_cancel(void)
{
    struct started started;

    start_daemon(&started, 60000);
    renew_daemon_cancel(&started.daemon);
    lives_on(&started, "a daemon that is cancelled leaves the process alone");

    start_daemon(&started, 0);
    is_int(renew_daemon_begin(&started.daemon), ETIMEDOUT);
    renew_daemon_cancel(&started.daemon);
    lives_on(&started, "a lease that ended before the daemon began ends no process");

    start_daemon(&started, 500);
    kill(started.daemon.pid, SIGKILL);
    waitid(P_PID, (id_t)started.daemon.pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
    ok(renew_daemon_begin(&started.daemon) != 0, "a daemon that was killed doesn't begin");
    renew_daemon_cancel(&started.daemon);
    lives_on(&started, "a guard whose daemon never began leaves the process alone");
}

/*
 * The daemon asks its guard to begin, and is killed before the guard does. If `rlock acquire` hands
 * the lock out then, the guard ends the process at the end of the lease; if not, nobody does.
 */
static void test_killed_while_beginning(void)
{
    struct started started;
    int failed;
    pid_t killer;

    start_daemon(&started, 2000);
    if (started.guard_fd < 0)
        return;
    syscall(SYS_pidfd_send_signal, started.guard_fd, SIGSTOP, NULL, 0);
    killer = fork();
    if (killer == 0) {
        poll(NULL, 0, 200); /* the guard's request is sent; else the test only shows less */
        kill(started.daemon.pid, SIGKILL);
        syscall(SYS_pidfd_send_signal, started.guard_fd, SIGCONT, NULL, 0);
        _exit(0);
    }
    failed = renew_daemon_begin(&started.daemon);
    waitpid(killer, NULL, 0);
    if (failed != 0) {
        renew_daemon_cancel(&started.daemon);
        lives_on(&started, "the lock isn't handed out, and its process lives on");
        return;
    }
    waitpid(started.daemon.pid, NULL, 0);
    is_int(child_status(started.bound), -SIGKILL);
    close(started.guard_fd);
}

static void test_log(void)
{
    const struct options options = {.log = "-"};
    struct session session = {.options = &options, .report = {.level = REPORT_FAILURE}};
    struct renew_daemon_log log = {.to = REPORT_TO_LOG, .fd = -1};

    is_int(renew_daemon_open_log(&log, &session), REASON_USAGE, "stdout is no log");
}

/* The daemon dies before it can report: it can't read a page that only it needs. */
static void test_dead_daemon(void)
{
    void *log = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct options options = options_by_default;
    struct session session = {.options = &options, .report = {.level = REPORT_FAILURE}};
    const struct rlock_grant grant = {.expires_ms = rlock_clock_ms() + 10000};
    struct guard_client nobody = {.fd = -1};
    const struct supervise_plan plan = {.session = &session, .grant = &grant, .guard = &nobody};
    struct renew_daemon daemon;

    setrlimit(RLIMIT_CORE, &(struct rlimit){.rlim_cur = 0, .rlim_max = 0});
    if (log == MAP_FAILED)
        abort();
    is_int(renew_daemon_start(&daemon, &plan, 0, log), ECHILD);
    ok(kill(daemon.pid, 0) != 0, "the daemon is reaped");
    munmap(log, 1);
}

int main(void)
{
    alarm(500); /* ends this test if rlock hangs */
    prctl(PR_SET_NAME, "bound");
    RUN_ALL(test_loss, test_cancel, test_killed_while_beginning, test_log, test_dead_daemon);
    return done_testing();
}
