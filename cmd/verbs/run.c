/* SPDX-License-Identifier: MIT */
/* run: hold a lock for as long as a command runs. */
#include "cmd.h"

#include "base/err.h"
#include "output/outfile.h"
#include "session/environment.h"
#include "session/session.h"
#include "supervise/cgroup.h"
#include "supervise/supervise.h"
#include "wire/url.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct run {
    const struct options *options;
    struct session session;
    struct rlock_grant grant;
    int64_t granted_at_ms; /* when session_acquire() returned; 0: it was not called */
    struct supervise_result result;
    char *program;  /* heap, of program_name(); or NULL */
    char *shell[4]; /* with -c: the arguments /bin/sh, -c, STRING */
    struct guard_plan guard_plan;
    struct guard_client guard;
    struct environment environment; /* of the command; `all` is NULL until it is made */
    struct cgroup cgroup;           /* control group of the command, if it needs one */
    bool has_prepared;              /* prepare() has tried to fork the guard */
    bool has_warned_of_parent;      /* rlock has warned that the lock of RLOCK_TOKEN is gone */
};

static int status_of(const struct run *run, enum exit_reason reason)
{
    int status = run->result.status;

    if (reason != REASON_GRANTED)
        return session_status(&run->session, reason);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void write_summary(const struct run *run, const char *path, enum outfile_how how,
                          const struct summary *summary)
{
    int failed = path != NULL ? report_file(&run->session.report, path, how, summary) : 0;
    char why[300];

    if (failed == 0)
        return;
    snprintf(why, sizeof why, "%.200s: %s", path, outfile_error(failed));
    report_say(
        &run->session.report, REPORT_NOTICE,
        (struct message){.what = EVENT_NO_REPORT, .why = why, .facts = {fact_text("path", path)}});
}

static void write_report(const struct run *run, enum exit_reason reason)
{
    int64_t now = rlock_clock_ms();
    struct summary summary = {
        .reason = reason,
        .status = status_of(run, reason),
        .waited_ms =
            (run->granted_at_ms > 0 ? run->granted_at_ms : now) - run->session.report.start_ms,
        .held_ms = run->grant.fence != 0 ? now - run->granted_at_ms : 0,
        .renewals = run->result.renewals,
        .paused_ms = run->result.paused_ms,
        .fence = run->grant.fence,
    };
    write_summary(run, run->options->report, OUTFILE_OVERWRITES, &summary);
    write_summary(run, run->options->report_append, OUTFILE_APPENDS, &summary);
}

/* ---- forking the guard while the reply to the request is on its way ---- */

/* Make the command's environment; environment_put_grant() will add what comes from the grant. */
static void make_environment(struct run *run)
{
    const struct options *options = run->options;
    char *keys = options_keys(options, '\n');

    if (keys != NULL && !environment_make(&run->environment, keys, run->session.same_server.entries,
                                          options->pass_credentials != 0))
        environment_fini(&run->environment);
    free(keys);
}

/*
 * Called before the guard is forked, and once more when the lock is granted, because the
 * descriptors that the guard has to keep may have changed.
 */
static void plan_guard(struct run *run)
{
    const struct options *options = run->options;

    if (run->environment.all == NULL)
        make_environment(run);
    run->shell[0] = "/bin/sh";
    run->shell[1] = "-c";
    run->shell[2] = (char *)options->command;
    run->guard_plan = (struct guard_plan){
        .spawn = {.argv = options->command != NULL ? run->shell : options->argv,
                  .mask = &run->session.signals.inherited,
                  .ignore_child = run->session.signals.ignores_child},
        .name = run->program,
        .environment = run->environment.all != NULL ? &run->environment : NULL,
        .keeps_secrets = options->pass_credentials != 0,
        .pauses = options->on_lost == ON_LOST_PAUSE,
        .cgroup = &run->cgroup,
        .wait_all = options->wait_all != 0,
        .keep_fd = run->session.private_server.users_fd,
        .hook_fd = run->session.event_hook.fd,
        .lock = run->session.lock,
        .report = &run->session.report,
    };
}

/* Fork the guard, if there is none. After a failure supervise() tries again, and reports it. */
static void prepare_guard(struct run *run)
{
    plan_guard(run);
    (void)!guard_client_prepare(&run->guard, &run->guard_plan);
}

/*
 * session_acquire() calls this when it has sent a request: while the reply is on its way, forking
 * the guard delays nothing.
 */
static void prepare(void *context)
{
    struct run *run = context;

    if (!run->has_prepared)
        prepare_guard(run);
    run->has_prepared = true;
}

/*
 * session_acquire() calls this when no server was reached. The private server (-u local:) may have
 * ended, and another server will replace it. So end a guard that was forked before: its copy of
 * the old server's users_fd would keep that server in use.
 */
static void unreachable(void *context)
{
    struct run *run = context;

    guard_client_reap(&run->guard);
    run->has_prepared = false;
}

/*
 * By RLOCK_TOKEN a parent rlock holds this key, or maybe another key; by the server that token
 * doesn't hold this key. So this run acquires a lock of its own. Warn once, because the user may
 * rely on the parent lock.
 */
static void warn_of_lost_parent(struct run *run, size_t key)
{
    const struct options *options = run->options;
    enum parent_says says = environment_says(options->keys[key]);
    char name[100];
    char why[200];

    if (says == PARENT_SAYS_NO || run->has_warned_of_parent || run->session.has_other_server ||
        options->protocol != RLOCK_PROTOCOL_TOKEN)
        return;
    run->has_warned_of_parent = true;
    err_escape(name, sizeof name, options->keys[key]);
    snprintf(why, sizeof why,
             says == PARENT_SAYS_YES
                 ? "the token in RLOCK_TOKEN no longer holds %s"
                 : "the token in RLOCK_TOKEN doesn't hold %s, or holds it no longer",
             name);
    report_event(&run->session.report, REPORT_NOTICE, EVENT_WARNING, why,
                 "this run takes a lock of its own; with --nested it would exit with 76");
}

static void warn_of_lost_parents(struct run *run)
{
    size_t i;

    for (i = 0; i < run->options->n_keys; i++)
        if ((run->grant.parent_keys >> i & 1) == 0)
            warn_of_lost_parent(run, i);
}

/*
 * session_acquire() calls this while the lock is not free. If rlock is the next to be granted the
 * lock, fork the guard. If not, end the guard, which would use memory during a long wait.
 */
static void blocked(void *context, const struct rlock_obstacle *obstacle)
{
    struct run *run = context;

    if (obstacle == NULL || obstacle->gives_up_ms != 0) /* no server has answered yet */
        return;
    if (obstacle->holder.text[0] != '\0' && obstacle->trouble.status == RLOCK_OK)
        warn_of_lost_parent(run, obstacle->key);
    if (obstacle->is_next)
        prepare_guard(run);
    else
        guard_client_reap(&run->guard);
}

/* ---- carrying out the verb ---- */

static enum exit_reason run_command(struct run *run)
{
    struct supervise_plan plan = {
        .kind = SUPERVISE_COMMAND,
        .max_hold_ms = run->options->max_hold_ms,
        .session = &run->session,
        .grant = &run->grant,
        .granted_ms = run->granted_at_ms,
        .guard = &run->guard,
        .guard_plan = &run->guard_plan,
        .timer = -1,
    };

    plan_guard(run);
    return supervise(&plan, &run->result);
}

/* The name that others see beside the lock: the last part of the command's path. Heap, or NULL. */
static char *program_name(const struct options *options)
{
    char *name = url_masked_copy(options->command != NULL ? "sh" : options->argv[0]);
    const char *slash = name != NULL ? strrchr(name, '/') : NULL;

    if (slash != NULL)
        memmove(name, slash + 1, strlen(slash));
    return name;
}

/*
 * If a signal ended rlock before the command was started, or the command by a key such as ^C on the
 * terminal, end rlock by this signal, too, so that the caller's shell sees the signal.
 */
static void end_by_same_signal(const struct run *run, enum exit_reason reason)
{
    int status = run->result.status;

    if (reason == REASON_INTERRUPTED)
        signals_yield(run->session.interrupted_by);
    if (reason == REASON_GRANTED && WIFSIGNALED(status) &&
        WTERMSIG(status) == run->result.from_terminal)
        signals_yield(run->result.from_terminal);
}

/* What to do if a control group can't be made below the one that rlock was started in. */
static const char *cgroup_hint(int failed)
{
    if (failed == EROFS)
        return "to start a container with writable control groups: "
               "docker run --security-opt writable-cgroups=true, or "
               "podman run --security-opt unmask=/sys/fs/cgroup";
    if (failed == EACCES || failed == EPERM)
        return "to start rlock in a delegated control group: "
               "systemd-run --user --scope -p Delegate=yes rlock ..., or Delegate=yes in the unit";
    return NULL;
}

/* Make the control group before the guard is forked, because the guard inherits its descriptors. */
static enum exit_reason make_cgroup(struct run *run)
{
    const char *option = run->options->cgroup ? "--cgroup" : "--on-lost pause";
    static char path[PATH_MAX]; /* static: gcc touches large frames in each run */
    char why[500];
    bool is_denied;
    int failed;

    cgroup_remove_old(); /* first, as there may be no room for more (cgroup.max.descendants) */
    failed = cgroup_make(&run->cgroup, path, sizeof path);
    is_denied = failed == EACCES || failed == EPERM;
    if (failed == 0)
        return REASON_GRANTED;
    if (failed == ENOSYS)
        snprintf(why, sizeof why, "%s: needs Linux 5.14 or later, and cgroup v2 mounted", option);
    else
        snprintf(why, sizeof why, "%s: no control group can be made in %.200s%s: %s", option, path,
                 is_denied ? ", which isn't delegated to this user" : "", strerror(failed));
    report_event(&run->session.report, REPORT_FAILURE, EVENT_SYSTEM, why, cgroup_hint(failed));
    return REASON_SYSTEM;
}

static enum exit_reason run_all(struct run *run)
{
    const struct rlock_observer observer = {
        .on_blocked = blocked, .on_sent = prepare, .on_unreachable = unreachable, .context = run};
    struct session *session = &run->session;
    enum exit_reason reason = session_open_signals(session);

    if (reason != REASON_GRANTED)
        return reason;
    session_start_hook(session);
    run->program = program_name(run->options);
    reason = session_open(session, run->program);
    if (reason != REASON_GRANTED)
        return reason;
    if (run->options->needs_cgroup) {
        reason = make_cgroup(run);
        if (reason != REASON_GRANTED)
            return reason;
    }
    if (run->options->nested && !environment_has_parent())
        return report_fault(&session->report, REASON_LOST,
                            "--nested: RLOCK_TOKEN is not set, so there is no parent lock", 0);
    reason = session_acquire(session, &observer, &run->grant, &run->granted_at_ms);
    if (reason == REASON_GRANTED) {
        warn_of_lost_parents(run);
        return run_command(run);
    }
    guard_client_dismiss(&run->guard);
    return reason;
}

int cmd_run(const struct options *options)
{
    struct run run = {.options = options, .guard = {.fd = -1}, .cgroup = CGROUP_NONE};
    enum exit_reason reason;

    session_init(&run.session, options);
    reason = run_all(&run);
    write_report(&run, reason);
    session_check_hook(&run.session);
    /* a process that supervise() has forked still releases the lock, and may need the password
     * helpers: let these run on, but without output to the user's terminal */
    if (run.result.is_releasing)
        session_disown(&run.session);
    session_close(&run.session);
    guard_client_reap(&run.guard); /* late, as the guard has mostly ended by now */
    cgroup_remove(&run.cgroup);
    free(run.program);
    environment_fini(&run.environment);
    end_by_same_signal(&run, reason);
    return status_of(&run, reason);
}
