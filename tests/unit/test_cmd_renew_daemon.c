/* SPDX-License-Identifier: MIT */
/* test_cmd_renew_daemon: `acquire --bind-pid` leaves a daemon behind, which renews the lease. */
#include "program.h"
#include "supervise/renew_daemon.h"

#include <sys/resource.h>

#define TTL "8s" /* the first renewal comes after 2.7 s, TERM after 6 s if none is confirmed */

static const char *const granted[] = {GRANT, NULL};
static const char *const renewed[] = {RENEWED, NULL};
static const char *const released[] = {RELEASED, NULL};
static const char *const lost[] = {LOST_TO, NULL};
static const char *const freed[] = {FREED, NULL};

/* A run of rlock, and the process to which it binds the lock. */
struct run {
    struct program program; /* `said` is what the daemon has written to its log */
    pid_t bound;
    char log[64];
};

static pid_t start_process(void)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

/* Starts rlock, and waits until it has left the daemon behind. `stderr_fd` 0: stderr is a pipe. */
static void start(struct run *run, const char *const *renewals, const char *on_lost, bool is_text,
                  int stderr_fd)
{
    struct server *server = program_server(&run->program);
    char token[256] = "";
    char line[200];
    int fd;

    run->program.is_text = is_text;
    run->program.stderr_fd = stderr_fd;
    server->answers[ASKED_ACQUIRE] = granted;
    server->answers[ASKED_RENEW] = renewals;
    server->answers[ASKED_RELEASE] = released;
    snprintf(run->log, sizeof run->log, "/tmp/rlock-log-XXXXXX");
    fd = mkstemp(run->log);
    if (fd < 0)
        abort();
    close(fd);
    run->bound = start_process();
    snprintf(line, sizeof line,
             "acquire -k job -t " TTL " --kill-after 1500ms --on-lost %s --bind-pid %d --log %s",
             on_lost, (int)run->bound, run->log);
    program_start(&run->program, line, NULL);
    is_int(program_status(&run->program), 0, "the lock is bound to a process");
    ok(read(run->program.out_fd, token, sizeof token - 1) > 0 &&
       (is_text ? strlen(token) == 33 : strstr(token, "{\"token\":\"") == token));
}

/* Reads the log until the daemon has written a line with these words. */
static void await_words(struct run *run, const char *words)
{
    char *said = run->program.said;
    int fd = open(run->log, O_RDONLY | O_CLOEXEC);
    const char *at = NULL;
    ssize_t n;

    for (int i = 0; i < PROGRAM_PATIENCE_MS && (at == NULL || strchr(at, '\n') == NULL); i += 5) {
        poll(NULL, 0, 5);
        n = pread(fd, said, sizeof run->program.said - 1, 0);
        said[n > 0 ? n : 0] = '\0';
        at = strstr(said, words);
    }
    if (!okf(at != NULL, "the daemon says: %s", words))
        printf("# %s\n", said);
    close(fd);
}

static void await(struct run *run, const char *event)
{
    char words[64];

    snprintf(words, sizeof words, "{\"event\":\"%s\",", event);
    await_words(run, words);
}

static bool are_asked(const struct run *run, enum asked_for what, int n)
{
    for (int i = 0; i < PROGRAM_PATIENCE_MS && server_count(run->program.server, what) < n; i++)
        poll(NULL, 0, 1);
    return server_count(run->program.server, what) == n;
}

static bool lives(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

/* Returns the signal that ends the bound process. */
static int signal_of(const struct run *run)
{
    int status = 0;

    waitpid(run->bound, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void end(struct run *run)
{
    if (lives(run->bound)) {
        kill(run->bound, SIGKILL);
        waitpid(run->bound, NULL, 0);
    }
    run->program.said[0] = '\0';
    program_end(&run->program);
    program_forget(&run->program);
    unlink(run->log);
}

static void has_said(const struct run *run, const char *event, const char *words)
{
    program_has_said(&run->program, event, words);
}

static void never_said(const struct run *run, const char *event)
{
    okf(program_count(&run->program, event) == 0, "the daemon never says: %s", event);
}

static void check_end(struct run *run)
{
    char words[64];

    ok(program_is_closed(run->program.out_fd) && program_is_closed(run->program.said_fd) &&
           program_is_closed(run->program.runs_fd),
       "the daemon doesn't keep what rlock has inherited");
    await(run, "renewed");
    has_said(run, "renewed", "\"key\":\"job\"");
    is_int(server_count(run->program.server, ASKED_RELEASE), 0, "the lock is held");
    kill(run->bound, SIGUSR1);
    is_int(signal_of(run), SIGUSR1, "the process ends by itself");
    ok(are_asked(run, ASKED_RELEASE, 1), "the daemon releases the lock");
    await(run, "ended");
    snprintf(words, sizeof words, "\"why\":\"process %d (bound) has ended\"", (int)run->bound);
    has_said(run, "ended", words);
    snprintf(words, sizeof words, "\"process\":%d,", (int)run->bound);
    has_said(run, "ended", words);
    never_said(run, "lost");
    end(run);
}

static void check_loss(struct run *run)
{
    char words[64];

    is_int(signal_of(run), SIGTERM, "the lock is lost: TERM ends the process");
    await(run, "ended");
    has_said(run, "lost", "\"cause\":\"held\",\"holder\":{");
    has_said(run, "lost", "(bound) is being ended: TERM at ");
    has_said(run, "lost", "\"term_at\":\"");
    has_said(run, "lost", "\"kill_at\":\"");
    snprintf(words, sizeof words, "\"process\":%d,\"term_at\":\"", (int)run->bound);
    has_said(run, "ended", words);
    never_said(run, "can't be ended");
    is_int(program_count(&run->program, "lost"), 1, "the loss is reported once");
    end(run);
}

static void check_ignored_loss(struct run *run)
{
    await(run, "lost");
    has_said(run, "lost", "(bound) runs on (--on-lost ignore)\"");
    ok(are_asked(run, ASKED_RELEASE, 1), "the daemon is done");
    ok(lives(run->bound), "with --on-lost ignore the process runs on");
    never_said(run, "ended");
    never_said(run, "can't be ended");
    end(run);
}

static void check_release(struct run *run)
{
    int date[3];

    await_words(run, "released: another process released the lock by its token");
    ok(sscanf(run->program.said, "%d-%d-%dT", &date[0], &date[1], &date[2]) == 3);
    ok(lives(run->bound), "a release by the token doesn't end the process");
    ok(strstr(run->program.said, "lost") == NULL, "the lock is not lost");
    is_int(server_count(run->program.server, ASKED_RELEASE), 0, "nothing is left to release");
    end(run);
}

/* Four runs at the same time: each takes until the first renewal. */
static void test_runs(void)
{
    static struct run runs[4];
    int file = memfd_create("stderr", MFD_CLOEXEC); /* the daemon may keep stderr if it is a file */
    off_t end_ofs;

    start(&runs[0], renewed, "kill", false, 0);
    start(&runs[1], lost, "kill", false, 0);
    start(&runs[2], lost, "ignore", false, 0);
    start(&runs[3], freed, "kill", true, file);
    end_ofs = lseek(file, 0, SEEK_END);
    check_end(&runs[0]);
    check_loss(&runs[1]);
    check_ignored_loss(&runs[2]);
    check_release(&runs[3]);
    is_int(lseek(file, 0, SEEK_END), end_ofs, "the daemon writes only to its log");
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
    ok(lives(started->bound), name);
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
    is_int(signal_of(&(struct run){.bound = started.bound}), SIGKILL);
    close(started.guard_fd);
}

static void test_log(void)
{
    struct options options = options_by_default;
    struct session session = {.options = &options, .report = {.level = REPORT_FAILURE}};
    struct renew_daemon_log log = {.to = REPORT_TO_LOG, .fd = -1};

    is_int(renew_daemon_open_log(&log, &session), REASON_GRANTED, "there need not be a log");
    is_int(log.to, REPORT_TO_LOG, "without a log messages go to stderr");
    options.log = "-";
    is_int(renew_daemon_open_log(&log, &session), REASON_USAGE, "stdout is no log");
    options.log = "syslog";
    (void)!renew_daemon_open_log(&log, &session); /* fails where there is no syslog */
    is_int(log.to, REPORT_TO_SYSLOG, "the log is syslog");
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
    RUN_ALL(test_runs, test_cancel, test_killed_while_beginning, test_log, test_dead_daemon);
    return done_testing();
}
