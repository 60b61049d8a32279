/* SPDX-License-Identifier: MIT */
/* test_cmd_run: whole runs of a command under a lock: what rlock does, says and asks the server. */
#include "program.h"
#include "supervise/cgroup.h"
#include "supervise/proctree.h"

#define WAIT_FOR_GO "echo $$ >&9; read go <&8"

/* The kernel refuses TERM and KILL: rlock keeps the lock until the command ends by itself. */
static void is_kept(struct program *p)
{
    is_int(server_count(p->server, ASKED_RELEASE), 0, "the lock is kept");
}

/* A failed renewal is a notice, and so is the next that succeeds, but not the one after it. */
static void is_renewed_twice(struct program *p)
{
    const char *line;

    while ((line = program_find(p, "renewed", 1)) == NULL && program_listen(p))
        continue;
    ok(line != NULL && strstr(line, "\"level\":\"info\"") != NULL);
}

static void is_renewed_first(struct program *p)
{
    const char *first_renewed = strstr(p->said, "{\"event\":\"renewed\"");

    if (!ok(first_renewed != NULL && first_renewed < strstr(p->said, "{\"event\":\"resumed\"")))
        printf("# %s\n", p->said);
}

/*
 * 1. rlock is stopped before the lease's TERM.
 * 2. The guard ends the command.
 * 3. rlock goes on, and finds that the command has ended before it could announce its end.
 */
static void stop_rlock(struct program *p)
{
    pid_t command = program_command(p);

    kill(p->pid, SIGSTOP);
    ok(program_is_gone(command), "the guard ends the command while rlock is stopped");
    kill(p->pid, SIGCONT);
}

static void kill_rlock(struct program *p)
{
    pid_t command = program_command(p);

    kill(p->pid, SIGKILL);
    ok(program_is_gone(command), "the guard ends the command");
}

static void type_interrupt(struct program *p)
{
    ok(program_command(p) > 0 && write(p->terminal_fd, "\003", 1) == 1, "^C is typed");
    poll(NULL, 0, 50); /* rlock reads the signal before the command ends; else this shows less */
}

/* A ttl of 30 s is not renewed during a test, one of 3 s after a second. */
static const struct run {
    const char *line;
    const char *script;            /* NULL: it waits for program_go() */
    void (*act)(struct program *); /* what happens while the command runs; NULL: nothing */
    const char *until;             /* the message after which act() is called, and it may go on */
    const char *const *renewals;   /* the server's answers; NULL: RENEWED */
    int status;                    /* below 0: minus the signal that ends rlock */
    struct {
        const char *event, *words;
    } said[11];
    const char *never_said[4];
    bool has_terminal, refuses_signals;
} runs[] = {
    {"-k job -t 30s", "exit 3", .status = 3, .said = {{"granted", ""}, {"released", ""}},
     .never_said = {"ended", "lost", "max-hold"}},
    {"-k job -t 3s", .until = "renewed", .said = {{"renewed", ""}}, .never_said = {"ended"}},
    {"-k job -t 30s --max-hold 200ms --kill-after 200ms", "trap '' TERM; " WAIT_FOR_GO,
     .status = 124,
     .said = {{"max-hold", "\"why\":\"the command ran for 0.2s, the limit\""},
              {"max-hold", "\"hint\":\"sh is being ended: TERM at "},
              {"max-hold", "\"limit_ms\":200,\"command\":\"sh\",\"term_at\":\""},
              {"max-hold", "\"kill_at\":\""},
              {"ended", "\"why\":\"sh: TERM at "},
              {"ended", ", KILL at "},
              {"ended", ", ended at "},
              {"ended", "\"command\":\"sh\",\"term_at\":\""},
              {"ended", "\"kill_at\":\""},
              {"ended", "\"ended_at\":\""}}},
    {"-k job -t 3s", .renewals = ANSWERS(LOST_TO), .status = 76,
     .said = {{"lost", "\"cause\":\"held\",\"holder\":{"},
              {"lost", "\"hint\":\"sh is being ended: TERM at "},
              {"lost", "\"term_at\":\""},
              {"lost", "\"kill_at\":\""},
              {"ended", "\"ended_at\":\""}},
     .never_said = {"can't be ended"}},
    {"-k job -t 3s --on-lost ignore", .until = "lost", .renewals = ANSWERS(LOST_TO), .status = 76,
     .said = {{"lost", ": sh runs on (--on-lost ignore)\""}}, .never_said = {"ended"}},
    {"-k job -t 1s", .act = stop_rlock, .renewals = ANSWERS(SILENT), .status = 76,
     .said = {{"lost", ""}}, .never_said = {"ended"}},
    {"-k job -t 30s --kill-after 0 --max-hold 100ms", .act = is_kept, .until = "can't be ended",
     .refuses_signals = true, .status = 76,
     .said = {{"can't be ended", "(sh): Operation not permitted"},
              {"can't be ended", "\"hint\":\"rlock keeps the lock until that process ends\""}}},
    {"-k job -t 30s", "trap '' TERM; " WAIT_FOR_GO, kill_rlock, .status = -SIGKILL,
     .said = {{"lost", "\"why\":\"rlock was killed, so sh was ended: KILL at "},
              {"lost", ", ended at "},
              {"lost", "\"cause\":\"rlock-killed\",\"command\":\"sh\",\"kill_at\":\""},
              {"lost", "\"hint\":\"the lock is free when its ttl ends\""}}},
    {"-k job -t 3s", .act = is_renewed_twice, .until = "renewed",
     .renewals = ANSWERS(LOADING, RENEWED),
     .said = {{"renewal-failed", "\"level\":\"notice\""}, {"renewed", "\"level\":\"notice\""}}},
    /* a shell expects that rlock ends by the signal that the terminal has sent to both */
    {"-k job -t 30s",
     "trap 'read go <&8; trap - INT; kill -INT $$' INT; echo $$ >&9; while :; do sleep 0.1; done",
     type_interrupt, .has_terminal = true, .status = -SIGINT},
    {"-k job -t 3s --on-lost pause", .act = is_renewed_first, .until = "resumed",
     .renewals = ANSWERS(AFTER(1600, RENEWED), RENEWED),
     .said = {{"paused", "\"why\":\"no renewal was confirmed in time"},
              {"resumed", "\"why\":\"after "}}},
};

#define RUNS (sizeof runs / sizeof runs[0])

/* Starts rlock with a server that grants the lock, and answers the release by `release`. */
static void start(struct program *p, const char *line, const char *script,
                  const char *const *renewals, const char *release)
{
    p->server->answers[ASKED_ACQUIRE] = ANSWERS(GRANT);
    p->server->answers[ASKED_RENEW] = renewals != NULL ? renewals : ANSWERS(RENEWED);
    p->server->answers[ASKED_RELEASE] = ANSWERS(release);
    program_start(p, line, script);
}

static void start_run(struct program *p, const struct run *run)
{
    program_server(p);
    p->has_terminal = run->has_terminal;
    p->refuses_signals = run->refuses_signals;
    start(p, run->line, run->script != NULL ? run->script : WAIT_FOR_GO, run->renewals, RELEASED);
}

static void finish_run(struct program *p, const struct run *run)
{
    int status;

    if (run->until != NULL)
        program_await(p, run->until);
    if (run->act != NULL)
        run->act(p);
    if (run->until != NULL || run->has_terminal)
        program_go(p);
    status = program_end(p);
    if (status == PROGRAM_NO_FILTER) {
        skip(run->line, "the kernel allows no filter");
        return;
    }
    okf(status == run->status || (run->refuses_signals && status == 124), "%s: status %d",
        run->line, status); /* 124: the command ended after TERM, but before KILL was refused */
    for (size_t i = 0; run->said[i].event != NULL; i++)
        program_has_said(p, run->said[i].event, run->said[i].words);
    for (size_t i = 0; run->never_said[i] != NULL; i++)
        okf(program_find(p, run->never_said[i], 0) == NULL, "%s: never said: %s", run->line,
            run->never_said[i]);
    is_int(server_count(p->server, ASKED_ACQUIRE), 1, "the lock was asked for once");
    is_int(server_count(p->server, ASKED_RELEASE), run->status != -SIGKILL, "and released once");
}

/* Runs that take long run at the same time. */
static bool is_long(const struct run *run)
{
    return strstr(run->line, "-t 3s") != NULL;
}

static void test_runs(void)
{
    static struct program programs[RUNS];
    struct cgroup cgroup;
    char path[1024];
    size_t n = cgroup_make(&cgroup, path, sizeof path) == 0 ? RUNS : RUNS - 1;

    cgroup_remove(&cgroup);
    if (n < RUNS)
        skip("--on-lost pause", "no control group can be made here");
    for (size_t i = 0; i < n; i++)
        if (is_long(&runs[i]))
            start_run(&programs[i], &runs[i]);
    for (size_t i = 0; i < n; i++) {
        if (!is_long(&runs[i]))
            start_run(&programs[i], &runs[i]);
        finish_run(&programs[i], &runs[i]);
    }
}

/* Returns the words of the release that follows a command, which say how long the key stays. */
static const char *release_after(struct program *p, const char *line, int status)
{
    program_server(p);
    start(p, line, NULL, NULL, RELEASED);
    is_int(program_end(p), status, line);
    for (int i = 0; i < atomic_load(&p->server->n_log); i++)
        if (p->server->log[i].what == ASKED_RELEASE)
            return p->server->log[i].text;
    return "";
}

static void test_min_hold(void)
{
    static struct program p;
    const char *text = release_after(&p, "-k job --min-hold 60s -- /nonexistent/x", 127);

    program_has_said(&p, "not-found", "\"why\":\"/nonexistent/x: No such file or directory\"");
    ok(text[0] != '\0' && strstr(text, " rest ") == NULL, "nothing ran: the lock is free at once");
    text = release_after(&p, "-k job --min-hold 60s -- true", 0);
    ok(strstr(text, " rest ") != NULL, "the lock is kept for the rest of --min-hold");
}

/* Kills the processes of this name that runs have left behind. Returns whether there is one. */
static bool have_left(const char *name)
{
    FILE *children = fopen("/proc/thread-self/children", "r");
    bool found = false;
    char child[32];
    int pid;

    while (children != NULL && fscanf(children, "%d", &pid) == 1) {
        proctree_name(pid, child);
        if (strcmp(child, name) == 0 && proctree_state(pid) != 'Z')
            found = kill(pid, SIGKILL) == 0;
    }
    if (children != NULL)
        fclose(children);
    return found;
}

/* The server doesn't answer the release: a process goes on to release the lock, while it may. */
static void test_not_released(void)
{
    static struct program p;
    static struct program q;
    const char *line;
    const char *tries;

    program_server(&p);
    program_server(&q);
    start(&p, "-k job -t 30s --once 20h -- true", NULL, NULL, SILENT);
    start(&q, "-k job -t 6s -- true", NULL, NULL, SILENT);
    is_int(program_status(&p), 0, "the server does not answer the release");
    is_int(program_end(&q), 0, "the server does not answer the release, and the lease ends soon");
    ok(program_is_closed(p.runs_fd) && have_left("rlock-release"));
    program_end(&p);
    program_has_said(&p, "not-released",
                     "the work may not be marked as done, so another run may repeat it; the lock "
                     "is free when its ttl ends, or sooner: rlock tries for another 10 s\"");
    line = program_find(&q, "not-released", 0);
    tries = line != NULL ? strstr(line, "tries for another ") : NULL;
    ok(line != NULL && strstr(line, "marked") == NULL &&
       (tries == NULL || atoi(tries + strlen("tries for another ")) <= 4));
}

int main(void)
{
    alarm(500); /* ends this test if rlock hangs */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    RUN_ALL(test_runs, test_min_hold, test_not_released);
    return done_testing();
}
