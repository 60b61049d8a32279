/* SPDX-License-Identifier: MIT */
/*
 * explain: say what a run would do with these options and this server, and run nothing.
 *
 * Times are computed by the functions that a run uses: rlock_timing_fit() divides the TTL into the
 * times of renewals, TERM and KILL, and supervise_state_deadlines() says when these come. The
 * server is only read, by the checks of `rlock doctor`.
 */
#include "cmd.h"

#include "base/clock.h"
#include "lock/timing.h"
#include "options/help.h"
#include "options/mistake.h"
#include "options/units.h"
#include "output/json.h"
#include "output/printable.h"
#include "output/show.h"
#include "session/credentials.h"
#include "session/environment.h"
#include "session/private_server_process.h"
#include "session/session.h"
#include "supervise/host.h"
#include "supervise/supervise_state.h"
#include "wire/url.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 2000
#define ORIGIN_BYTES 300
#define COLUMNS 80
#define INDENT 2

struct explanation {
    const struct options *options;
    struct session session;
    struct terminal terminal;
    const char *topic; /* of the sentence printed last; "": none yet */
    size_t n_warnings; /* how many findings of doctor aren't "good" */
    bool is_unsafe;    /* a finding of doctor is "unsafe" */
    bool lacks_cgroup; /* the run needs a control group, and none can be made */
};

/* ---- printing a sentence ---- */

static void say(struct explanation *e, const char *topic, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct explanation *e, const char *topic, const char *format, ...)
{
    const struct page page = {stdout, COLUMNS};
    char object[TEXT_BYTES * JSON_BYTES_EACH];
    char text[TEXT_BYTES];
    struct json json;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (e->options->json) {
        json_begin(&json, object, sizeof object);
        json_string(&json, "topic", topic);
        json_string(&json, "text", text);
        json_end(&json);
        printf("%s", object);
        return;
    }
    if (strcmp(e->topic, topic) != 0)
        printf("%s%s%s%s:\n", *e->topic != '\0' ? "\n" : "",
               terminal_colour(&e->terminal, COLOUR_STRONG), topic,
               terminal_colour(&e->terminal, COLOUR_NONE));
    e->topic = topic;
    printf("%*s", INDENT, "");
    help_words(&page, INDENT, INDENT, text);
}

/* Write a duration: below a minute as seconds with a tenth, such as "24.4s" or "10s". */
static const char *duration(char text[UNITS_TEXT_BYTES], int64_t ms)
{
    int64_t tenths = (ms + 50) / 100;

    if (ms >= 60000)
        units_text(text, ms);
    else if (tenths % 10 == 0)
        snprintf(text, UNITS_TEXT_BYTES, "%" PRId64 "s", tenths / 10);
    else
        snprintf(text, UNITS_TEXT_BYTES, "%" PRId64 ".%ds", tenths / 10, (int)(tenths % 10));
    return text;
}

/* Write where the value of an option comes from: "--ttl", "/etc/rlock.conf:3", "the default". */
static const char *origin(const struct explanation *e, const char *name, char text[ORIGIN_BYTES])
{
    options_name_origin(e->options, name, text, ORIGIN_BYTES);
    return text;
}

/* ---- the topic: the command ---- */

static enum exit_reason explain_command(struct explanation *e)
{
    const struct options *options = e->options;
    char *word = options->command == NULL && options->argv[0] != NULL
                     ? url_masked_copy(options->argv[0])
                     : NULL;
    int failed = word == NULL ? 0 : mistake_program_error(options->argv[0], getenv("PATH"));
    enum exit_reason reason = failed == 0        ? REASON_GRANTED
                              : failed == ENOENT ? REASON_NOT_FOUND
                                                 : REASON_NOT_EXECUTABLE;

    if (options->command != NULL)
        say(e, "command", "/bin/sh would run the text of -c.");
    else if (word == NULL)
        say(e, "command", "No command is given; the rest is the same for every command.");
    else if (failed == 0)
        say(e, "command", "rlock would run %s, and give the lock back when it has ended.", word);
    else
        say(e, "command", "%s %s: status %d.", word,
            failed == ENOENT ? "is not found" : "can't be executed", exit_reason_status(reason));
    free(word);
    return reason;
}

/* ---- the topic: the server ---- */

static void explain_choice(struct explanation *e, const struct credentials *credentials)
{
    const struct options *options = e->options;
    const char *variable = credentials->url_variable; /* NULL: origin() tells */
    char from[ORIGIN_BYTES];
    size_t i;

    for (i = 0; i < credentials->n_urls; i++) {
        char *url = url_masked_copy(credentials->url[i]);

        if (url != NULL)
            say(e, "server", "%s", url);
        free(url);
    }
    say(e, "server", "Given by %s.", variable != NULL ? variable : origin(e, "url", from));
    if (credentials->n_urls > 1)
        say(e, "server", "%zu of these %zu servers must grant the lock.",
            credentials->n_urls / 2 + 1, credentials->n_urls);
    if (options->file != NULL)
        say(e, "server", "The configuration file is %s.", options->file);
    else
        say(e, "server", "There is no configuration file.");
}

static bool names_private_server(const struct credentials *credentials)
{
    return credentials->n_urls == 1 && strcmp(credentials->url[0], OPTIONS_LOCAL_URL) == 0;
}

static void explain_login(struct explanation *e, const struct credentials *credentials)
{
    const struct options *options = e->options;
    char from[ORIGIN_BYTES];
    char limit[UNITS_TEXT_BYTES];

    if (credentials_in_urls(credentials) > 0)
        say(e, "connection", "The password is in the URL.");
    else if (credentials->password_variable != NULL)
        say(e, "connection", "The password is in %s.", credentials->password_variable);
    else if (options->password_file != NULL)
        say(e, "connection", "The password is the first line of %s (%s).", options->password_file,
            origin(e, "password-file", from));
    else if (options->password_command != NULL)
        say(e, "connection", "The password is what the password command prints (%s).",
            origin(e, "password-command", from));
    else
        say(e, "connection", "No password is known.");
    say(e, "connection", "Each connection may take %s to be established (--connect-timeout).",
        duration(limit, options->connect_ms));
}

static void explain_private_server(struct explanation *e)
{
    const char *directory = getenv("RLOCK_LOCAL_DIR");

    say(e, "connection",
        "A private server of this user, on this machine alone. rlock would start one if none "
        "runs%s%s.",
        directory != NULL && *directory != '\0' ? ", in " : "",
        directory != NULL && *directory != '\0' ? directory : "");
    if (!private_server_process_is_installed(getenv("PATH")))
        say(e, "connection",
            "But neither valkey-server nor redis-server can be run: status 69, unless a private "
            "server runs already.");
}

/* ---- the topic: the lease ---- */

/* Returns when the guard would act if a renewal was sent at time 0, and no later one succeeded. */
static struct deadlines deadlines_of(const struct explanation *e, const struct rlock_timing *timing)
{
    const struct supervision run = {
        .on_lost = (enum on_lost)e->options->on_lost,
        .timing = *timing,
        .expires_ms = timing_expires_ms(timing->ttl_ms, 0),
    };

    return supervise_state_deadlines(&run);
}

static void explain_loss(struct explanation *e, const struct rlock_timing *timing)
{
    struct deadlines at = deadlines_of(e, timing);
    bool is_paused = e->options->on_lost == ON_LOST_PAUSE;
    char term[UNITS_TEXT_BYTES];
    char kill[UNITS_TEXT_BYTES];
    char end[UNITS_TEXT_BYTES];

    duration(end, timing_expires_ms(timing->ttl_ms, 0));
    if (e->options->on_lost == ON_LOST_IGNORE) {
        say(e, "lease",
            "If renewals fail, the lease ends %s after the last successful one was sent. The "
            "command runs on then, without the lock (--on-lost ignore), and rlock ends with status "
            "76.",
            end);
        return;
    }
    say(e, "lease",
        "If renewals fail, the command %s %s after the last successful one was sent, %s KILL after "
        "%s%s; the lease ends after %s.",
        is_paused ? "is frozen" : "gets TERM", duration(term, at.term_ms),
        is_paused ? "or gets" : "and", duration(kill, at.kill_ms),
        is_paused ? " if it isn't frozen by then" : "", end);
    /* rounded down to seconds, because the renewal after the outage needs time, too */
    say(e, "lease", "So an outage of the server of up to %s doesn't affect the command.",
        duration(end, (at.term_ms - timing->renew_ms) / 1000 * 1000));
}

static void explain_lease(struct explanation *e, const struct rlock_timing *timing)
{
    const struct options *options = e->options;
    char ttl[UNITS_TEXT_BYTES];
    char other[UNITS_TEXT_BYTES];
    char from[ORIGIN_BYTES];

    duration(ttl, timing->ttl_ms);
    say(e, "lease", "The lease lasts %s (%s), and is renewed every %s.", ttl,
        origin(e, "ttl", from), duration(other, timing->renew_ms));
    explain_loss(e, timing);
    say(e, "lease", "If this machine crashes, others can get the lock after at most %s.", ttl);
    if (options->max_hold_ms > 0)
        say(e, "lease", "If the command still runs %s after the grant (%s), rlock ends it.",
            duration(other, options->max_hold_ms), origin(e, "max-hold", from));
    if (options->min_hold_ms > 0)
        say(e, "lease", "The lock stays taken for at least %s (%s).",
            duration(other, options->min_hold_ms), origin(e, "min-hold", from));
    if (options->history > 0)
        say(e, "lease",
            "The server notes this grant and its end, among the last %" PRId64
            " events of the lock (%s); rlock history shows them.",
            options->history, origin(e, "history", from));
}

/* ---- the topic: waiting for the lock ---- */

static bool lacks_parent(const struct options *options)
{
    return options->nested && !environment_has_parent();
}

static void explain_waiting(struct explanation *e)
{
    static const char *const queues[] = {
        [RLOCK_QUEUE_FIFO] = "Waiters get the lock in the order in which they came.",
        [RLOCK_QUEUE_NONE] =
            "rlock doesn't join a queue: it retries, and takes the lock when the lock is free.",
        [RLOCK_QUEUE_NEWEST] =
            "If a newer waiter with --queue newest comes, the wait ends as well."};
    const struct options *options = e->options;
    bool has_queue =
        options->scripts != RLOCK_SCRIPTS_NO && options->protocol == RLOCK_PROTOCOL_TOKEN;
    char length[UNITS_TEXT_BYTES];
    char from[ORIGIN_BYTES];

    if (options->nested) {
        say(e, "waiting",
            lacks_parent(options)
                ? "RLOCK_TOKEN is not set, so there is no parent lock: status 76 (--nested)."
                : "If the lock in RLOCK_TOKEN or RLOCK_PARENT_TOKENS is this one, the command runs "
                  "under that lock; else rlock ends with status 76 (--nested).");
        return;
    }
    if (options->wait_ms < 0)
        say(e, "waiting",
            "If the lock is taken, rlock waits without limit, until it is granted or a signal ends "
            "rlock; -w would set a limit. If no server can be reached at the start, rlock gives up "
            "after %s.",
            duration(length, options->connect_ms));
    else if (options->wait_ms == 0)
        say(e, "waiting",
            "If the lock is taken, rlock ends at once. If no server answers, it gives up after %s.",
            duration(length, options->connect_ms));
    else
        say(e, "waiting",
            "If the lock is taken or no server can be reached, rlock waits for at most %s (%s).",
            duration(length, options->wait_ms), origin(e, "wait", from));
    if (options->wait_ms != 0 && (options->queue != RLOCK_QUEUE_FIFO || options->n_urls <= 1))
        say(e, "waiting", "%s", queues[has_queue ? options->queue : RLOCK_QUEUE_NONE]);
    if (environment_has_parent())
        say(e, "waiting",
            "If the lock in RLOCK_TOKEN or RLOCK_PARENT_TOKENS is this one, rlock doesn't wait: "
            "the command runs under that lock.");
}

/* ---- the topic: what doctor would warn of ---- */

static void show_finding(void *context, const struct rlock_finding *finding)
{
    struct explanation *e = context;

    if (finding->grade == RLOCK_GRADE_GOOD)
        return;
    e->n_warnings++;
    e->is_unsafe = e->is_unsafe || finding->grade == RLOCK_GRADE_UNSAFE;
    say(e, "doctor", "%s %s%s%s: %s%s%s", grade_table[finding->grade].word,
        e->options->n_urls > 1 ? finding->server : "", e->options->n_urls > 1 ? ": " : "",
        finding->check, finding->found, finding->change != NULL ? "; " : "",
        finding->change != NULL ? finding->change : "");
}

static enum exit_reason examine_server(struct explanation *e, const struct credentials *credentials,
                                       const struct rlock_examiner *examiner)
{
    struct rlock_error err = {.status = RLOCK_OK};
    enum exit_reason reason;

    if (names_private_server(credentials)) {
        say(e, "doctor",
            "The server was not examined: rlock starts a private server only for a lock.");
        return private_server_process_is_installed(getenv("PATH")) ? REASON_GRANTED
                                                                   : REASON_UNREACHABLE;
    }
    reason = session_open_with(&e->session, "rlock", credentials);
    if (reason != REASON_GRANTED)
        return reason;
    if (rlock_examine(e->session.lock, e->options->keys[0], deadline_never, examiner, &err) !=
        RLOCK_OK)
        say(e, "doctor", "The server could not be examined: %s", err.text);
    return exit_reason_of(err.status);
}

static enum exit_reason examine(struct explanation *e, const struct credentials *credentials)
{
    const struct rlock_examiner examiner = {.on_finding = show_finding, .context = e};
    enum exit_reason reason = examine_server(e, credentials, &examiner);
    struct host host;

    if (reason != REASON_GRANTED && e->session.lock == NULL) /* the run would end at once */
        return reason;
    host_look(&host, "");
    host_report(&host, e->options, &examiner);
    e->lacks_cgroup = e->options->needs_cgroup && host.cgroup_error != 0;
    if (reason == REASON_GRANTED && e->session.lock != NULL && e->n_warnings == 0)
        say(e, "doctor", "Nothing to warn of.");
    return reason;
}

/* ---- explaining all topics, one after the other ---- */

static enum exit_reason explain_server(struct explanation *e, const struct credentials *credentials)
{
    struct rlock_error err = {.status = RLOCK_OK};
    struct rlock_timing timing;

    if (rlock_timing_fit(e->options->ttl_ms, e->options->kill_after_ms, &timing, &err) != RLOCK_OK)
        return session_fault(&e->session, &err);
    explain_choice(e, credentials);
    if (names_private_server(credentials))
        explain_private_server(e);
    else
        explain_login(e, credentials);
    explain_lease(e, &timing);
    explain_waiting(e);
    return examine(e, credentials);
}

/*
 * Returns the reason that decides the exit status: what doctor calls unsafe, else what would end
 * the run first. `server` and `command` are what examine() and explain_command() returned.
 */
static enum exit_reason verdict(const struct explanation *e, enum exit_reason server,
                                enum exit_reason command)
{
    if (e->is_unsafe)
        return REASON_MISCONFIGURED;
    if (e->lacks_cgroup)
        return REASON_SYSTEM;
    if (lacks_parent(e->options))
        return REASON_LOST;
    return server != REASON_GRANTED ? server : command;
}

static enum exit_reason explain(struct explanation *e)
{
    struct credentials credentials;
    enum exit_reason command = session_read_credentials(&e->session, &credentials);
    enum exit_reason server;
    enum exit_reason printed;
    char key[TEXT_BYTES];

    if (command != REASON_GRANTED)
        return command;
    printable_key(key, sizeof key, e->session.report.key);
    say(e, "lock", "%s", key);
    command = explain_command(e);
    server = explain_server(e, &credentials);
    credentials_fini(&credentials);
    printed = report_printed(&e->session.report);
    return printed != REASON_GRANTED ? printed : verdict(e, server, command);
}

int cmd_explain(const struct options *options)
{
    struct explanation e = {.options = options, .topic = ""};
    enum exit_reason reason;

    session_init(&e.session, options);
    terminal_read_state(&e.terminal);
    reason = explain(&e);
    session_close(&e.session);
    return exit_reason_status(reason);
}
