/* SPDX-License-Identifier: MIT */
/* test_cmd_run: whole runs of a command under a lock: what rlock does, says and asks the server. */
#include "program.h"
#include "supervise/cgroup.h"
#include "supervise/supervise.h"

#define LONG "30s" /* a ttl that is not renewed during a test */
#define SHORT "3s" /* a ttl that is renewed after a second */
#define SH "/bin/sh", "-c"
#define WAIT_FOR_GO "echo $$ >&9; read go <&8"

static const char *const granted[] = {GRANT, NULL};
static const char *const renewed[] = {RENEWED, NULL};
static const char *const released[] = {RELEASED, NULL};
static const char *const silent[] = {SILENT, NULL};
static const char *const lost[] = {LOST_TO, NULL};
static const char *const failing[] = {LOADING, RENEWED, NULL};
static const char *const late[] = {AFTER(1600, RENEWED), RENEWED, NULL};

static struct program a_program;

/* Makes a program whose server grants, renews and releases the lock. */
static struct program *make(struct program *program)
{
    struct server *server = program_server(program);

    server->answers[ASKED_ACQUIRE] = granted;
    server->answers[ASKED_RENEW] = renewed;
    server->answers[ASKED_RELEASE] = released;
    return program;
}

static void never_said(const struct program *program, const char *event)
{
    if (!okf(program_count(program, event) == 0, "never said: %s", event))
        printf("# %s\n", program->said);
}

/* The words of the first release, which say how long the key stays, or "". */
static const char *release_text(const struct program *program)
{
    for (int i = 0; i < atomic_load(&program->server->n_log); i++)
        if (program->server->log[i].what == ASKED_RELEASE)
            return program->server->log[i].text;
    return "";
}

static void test_plain(void)
{
    struct program *p = make(&a_program);

    program_start(p, "-k", "job", "-t", LONG, "--", SH, "exit 3", NULL);
    is_int(program_end(p), 3, "rlock exits with the command's status");
    is_int(program_count(p, "granted"), 1, "one message says that the lock is granted");
    is_int(program_count(p, "released"), 1, "one message says that the lock is released");
    never_said(p, "ended");
    never_said(p, "lost");
    never_said(p, "max-hold");
    is_int(server_count(p->server, ASKED_ACQUIRE), 1, "the lock was asked for once");
    is_int(server_count(p->server, ASKED_RELEASE), 1, "the lock was released once");
    program_forget(p);
}

static void test_not_started(void)
{
    struct program *p = make(&a_program);

    program_start(p, "-k", "job", "-t", LONG, "--min-hold", "60s", "--", "/nonexistent/x", NULL);
    is_int(program_end(p), 127, "a command that does not exist");
    program_has_said(p, "not-found", "\"why\":\"/nonexistent/x: No such file or directory\"");
    ok(release_text(p)[0] != '\0' && strstr(release_text(p), " rest ") == NULL);
    program_forget(p);

    p = make(&a_program);
    program_start(p, "-k", "job", "-t", LONG, "--min-hold", "60s", "--", "true", NULL);
    is_int(program_end(p), 0, "a command with --min-hold");
    ok(strstr(release_text(p), " rest ") != NULL, "its lock is kept for the rest of --min-hold");
    program_forget(p);
}

static void test_renewed(void)
{
    struct program *p = make(&a_program);

    program_start(p, "-k", "job", "-t", SHORT, "--", SH, WAIT_FOR_GO, NULL);
    ok(program_await(p, "renewed")[0] != '\0', "a renewal is reported");
    program_go(p);
    is_int(program_end(p), 0, "the command ends by itself");
    never_said(p, "ended");
    program_forget(p);
}

static void test_max_hold(void)
{
    struct program *p = make(&a_program);

    program_start(p, "-k", "job", "-t", LONG, "--max-hold", "200ms", "--", SH, WAIT_FOR_GO, NULL);
    is_int(program_end(p), 124, "the command has run for as long as it may");
    program_has_said(p, "max-hold", "\"why\":\"the command ran for 0.2s, the limit\"");
    program_has_said(p, "max-hold", "\"hint\":\"sh is being ended: TERM at ");
    program_has_said(p, "max-hold", "\"limit_ms\":200,\"command\":\"sh\",\"term_at\":\"");
    program_has_said(p, "max-hold", "\"kill_at\":\"");
    program_has_said(p, "ended", "\"why\":\"sh: TERM at ");
    program_has_said(p, "ended", "\"command\":\"sh\",\"term_at\":\"");
    program_has_said(p, "ended", "\"ended_at\":\"");
    ok(server_count(p->server, ASKED_RELEASE) == 1, "the lock is released");
    program_forget(p);
}

/* Two runs at the same time: their first renewal says that another owner has the lock. */
static void test_lost(void)
{
    static struct program other;
    struct program *p = make(&a_program);
    struct program *q = make(&other);

    p->server->answers[ASKED_RENEW] = q->server->answers[ASKED_RENEW] = lost;
    program_start(p, "-k", "job", "-t", SHORT, "--", SH, WAIT_FOR_GO, NULL);
    program_start(q, "-k", "job", "-t", SHORT, "--on-lost", "ignore", "--", SH, WAIT_FOR_GO, NULL);
    is_int(program_end(p), 76, "a renewal says that another owner has the lock");
    program_has_said(p, "lost", "\"cause\":\"held\",\"holder\":{");
    program_has_said(p, "lost", "\"hint\":\"sh is being ended: TERM at ");
    program_has_said(p, "lost", "\"term_at\":\"");
    program_has_said(p, "lost", "\"kill_at\":\"");
    program_has_said(p, "ended", "\"ended_at\":\"");
    never_said(p, "can't be ended");
    program_forget(p);

    program_await(q, "lost");
    program_has_said(q, "lost", ": sh runs on (--on-lost ignore)\"");
    program_go(q);
    is_int(program_end(q), 76, "with --on-lost ignore the command runs to its end");
    never_said(q, "ended");
    program_forget(q);
}

/*
 * 1. rlock is stopped before the lease's TERM.
 * 2. The guard ends the command.
 * 3. rlock goes on, and finds that the command has ended before it could announce its end.
 */
static void test_stopped(void)
{
    struct program *p = make(&a_program);
    pid_t command;

    p->server->answers[ASKED_RENEW] = silent;
    program_start(p, "-k", "job", "-t", "1s", "--", SH, WAIT_FOR_GO, NULL);
    command = program_command(p);
    kill(p->pid, SIGSTOP);
    ok(program_is_gone(command), "the guard ends the command while rlock is stopped");
    kill(p->pid, SIGCONT);
    is_int(program_end(p), 76, "rlock tells that the lock was lost");
    ok(program_count(p, "lost") > 0, "said: lost");
    never_said(p, "ended");
    program_forget(p);
}

/* The kernel refuses TERM and KILL. rlock keeps the lock until the command ends by itself. */
static void test_refused(void)
{
    struct program *p = make(&a_program);
    int status;

    p->refuses_signals = true;
    program_start(p, "-k", "job", "-t", LONG, "--kill-after", "0", "--max-hold", "100ms", "--", SH,
                  WAIT_FOR_GO, NULL);
    program_await(p, "can't be ended");
    program_go(p);
    status = program_end(p);
    if (status == 98) {
        skip("a command that refuses signals is reported", "the kernel allows no filter");
    } else {
        ok(status == 124 || status == 76, "a command that did not end by TERM, or KILL");
        program_has_said(p, "can't be ended", "(sh): Operation not permitted\"");
        program_has_said(p, "can't be ended",
                         "\"hint\":\"rlock keeps the lock until that process ends\"");
        is_int(server_count(p->server, ASKED_RELEASE), 1, "then the lock is released");
    }
    program_forget(p);
}

/* rlock is killed: its guard ends the command, and tells what happened. */
static void test_killed(void)
{
    struct program *p = make(&a_program);
    pid_t command;

    program_start(p, "-k", "job", "-t", LONG, "--", SH, "trap '' TERM; " WAIT_FOR_GO, NULL);
    command = program_command(p);
    kill(p->pid, SIGKILL);
    ok(program_is_gone(command), "the guard ends the command");
    is_int(program_end(p), -SIGKILL, "rlock was killed");
    program_has_said(p, "lost", "\"why\":\"rlock was killed, so sh was ended: KILL at ");
    program_has_said(p, "lost", ", ended at ");
    program_has_said(p, "lost", "\"cause\":\"rlock-killed\",\"command\":\"sh\",\"kill_at\":\"");
    program_has_said(p, "lost", "\"hint\":\"the lock is free when its ttl ends\"");
    program_forget(p);
}

/* A failed renewal is a notice, and so is the next that succeeds, but not the one after it. */
static void test_trouble(void)
{
    struct program *p = make(&a_program);
    const char *line;

    p->server->answers[ASKED_RENEW] = failing;
    program_start(p, "-k", "job", "-t", SHORT, "--", SH, WAIT_FOR_GO, NULL);
    program_await(p, "renewal-failed");
    program_has_said(p, "renewal-failed", "\"level\":\"notice\"");
    program_await(p, "renewed");
    program_has_said(p, "renewed", "\"level\":\"notice\"");
    while ((line = program_find(p, "renewed", 1)) == NULL && program_listen(p))
        continue;
    ok(line != NULL && strstr(line, "\"level\":\"info\"") != NULL);
    program_go(p);
    is_int(program_end(p), 0, "the lock was never lost");
    program_forget(p);
}

/* ^C sends a signal to the command and to rlock, which ends by it, as a shell expects. */
static void test_terminal(void)
{
    struct program *p = make(&a_program);

    p->has_terminal = true;
    program_start(p, "-k", "job", "-t", LONG, "--", SH, WAIT_FOR_GO, NULL);
    ok(program_command(p) > 0, "the command runs in the foreground of a terminal");
    ok(write(p->terminal_fd, "\003", 1) == 1, "^C is typed");
    is_int(program_end(p), -SIGINT, "rlock ends by the signal that the terminal has sent");
    is_int(server_count(p->server, ASKED_RELEASE), 1, "the lock is released");
    program_forget(p);
}

static void test_pause(void)
{
    struct program *p = make(&a_program);
    const char *first_renewed;
    const char *first_resumed;
    struct cgroup cgroup;
    char path[1024];
    int failed = cgroup_make(&cgroup, path, sizeof path);

    cgroup_remove(&cgroup);
    if (failed != 0) {
        skip("--on-lost pause", "no control group can be made here");
        return;
    }
    p->server->answers[ASKED_RENEW] = late;
    program_start(p, "-k", "job", "-t", SHORT, "--on-lost", "pause", "--", SH, WAIT_FOR_GO, NULL);
    program_await(p, "paused");
    program_has_said(p, "paused", "\"why\":\"no renewal was confirmed in time");
    program_await(p, "resumed");
    program_has_said(p, "resumed", "\"why\":\"after ");
    first_renewed = strstr(p->said, "{\"event\":\"renewed\"");
    first_resumed = strstr(p->said, "{\"event\":\"resumed\"");
    ok(first_renewed != NULL && first_renewed < first_resumed);
    program_go(p);
    is_int(program_end(p), 0, "the lock was never lost");
    program_forget(p);
}

/* Returns whether a process that a run has left behind has this name. */
static bool has_left(const char *name)
{
    FILE *children = fopen("/proc/thread-self/children", "r");
    bool found = false;
    char child[32];
    int pid;

    while (children != NULL && !found && fscanf(children, "%d", &pid) == 1) {
        proctree_name(pid, child);
        found = strcmp(child, name) == 0 && proctree_state(pid) != 'Z';
    }
    if (children != NULL)
        fclose(children);
    return found;
}

/* The server doesn't answer the release: a process goes on to release the lock, while it may. */
static void test_not_released(void)
{
    static struct program other;
    struct program *p = make(&a_program);
    struct program *q = make(&other);
    const char *line;
    const char *tries;

    p->server->answers[ASKED_RELEASE] = q->server->answers[ASKED_RELEASE] = silent;
    program_start(p, "-k", "job", "-t", LONG, "--", "true", NULL);
    program_start(q, "-k", "job", "-t", "6s", "--", "true", NULL);
    is_int(program_status(p), 0, "the server does not answer the release");
    ok(program_is_closed(p->runs_fd) && has_left("rlock-release"));
    program_end(p);
    program_has_said(p, "not-released", "or sooner: rlock tries for another 10 s\"");
    is_int(program_end(q), 0, "the server does not answer the release, and the lease ends soon");
    line = program_find(q, "not-released", 0);
    tries = line != NULL ? strstr(line, "tries for another ") : NULL;
    ok(line != NULL && (tries == NULL || atoi(tries + strlen("tries for another ")) <= 4));
    program_forget(p);
    program_forget(q);
}

/* Like cmd_run(), but the lease ends so soon that TERM, 5 s earlier, is due already. */
static int run_too_late(const struct options *options)
{
    static struct session session;
    static struct guard_client guard = {.fd = -1};
    static struct environment environment;
    static struct cgroup cgroup = CGROUP_NONE;
    struct rlock_grant grant;
    struct supervise_result result;
    enum exit_reason reason;
    int64_t granted_ms;
    struct guard_plan guard_plan = {
        .spawn = {.argv = options->argv, .mask = &session.signals.inherited},
        .name = "sh",
        .environment = &environment,
        .cgroup = &cgroup,
        .keep_fd = -1,
        .hook_fd = -1,
        .report = &session.report};
    struct supervise_plan plan = {
        .session = &session, .grant = &grant, .guard = &guard, .guard_plan = &guard_plan};

    session_init(&session, options);
    if (session_open_signals(&session) != REASON_GRANTED ||
        session_open(&session, "sh") != REASON_GRANTED ||
        !environment_make(&environment, "job", (char *[]){NULL}, true) ||
        session_acquire(&session, NULL, &grant, &granted_ms) != REASON_GRANTED)
        return 98;
    plan.granted_ms = granted_ms;
    grant.sent_ms = rlock_clock_ms();
    grant.expires_ms = grant.sent_ms + 3000;
    reason = supervise(&plan, &result);
    session_close(&session);
    guard_client_reap(&guard);
    environment_fini(&environment);
    return session_status(&session, reason);
}

static void test_too_late(void)
{
    struct program *p = make(&a_program);

    p->body = run_too_late;
    program_start(p, "-k", "job", "-t", LONG, "--", SH, "echo >&9; exit 0", NULL);
    is_int(program_end(p), 76, "a lease whose TERM is due starts no command");
    ok(strstr(p->said, "\"why\":\"the lease ended before the command was started\"") != NULL);
    program_forget(p);
}

/* Ends the processes that a run has left behind, which have become children of this process. */
static void end_children(void)
{
    FILE *children = fopen("/proc/thread-self/children", "r");
    int pid;

    while (children != NULL && fscanf(children, "%d", &pid) == 1)
        kill(pid, SIGKILL);
    if (children != NULL)
        fclose(children);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

int main(void)
{
    alarm(500); /* ends this test if rlock hangs */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    RUN_ALL(test_plain, test_not_started, test_renewed, test_max_hold, test_lost, test_stopped,
            test_refused, test_killed, test_trouble, test_terminal, test_pause, test_not_released,
            test_too_late);
    end_children();
    return done_testing();
}
