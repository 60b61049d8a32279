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
#include "options/mistake.h"
#include "options/units.h"
#include "output/grade.h"
#include "output/json.h"
#include "output/outbuf.h"
#include "session/credentials.h"
#include "session/environment.h"
#include "session/session.h"
#include "supervise/host.h"
#include "supervise/supervise_state.h"
#include "wire/url.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 2000
#define ORIGIN_BYTES 300
#define COLUMNS 80

extern char **environ;

struct explanation {
    const struct options *options;
    struct session session;
    struct terminal terminal;
    struct outbuf out;
    const char *topic; /* the topic of the last text; NULL: no text was added yet */
    size_t n_warnings; /* checks of doctor whose grade is not "good" */
    bool is_unsafe;    /* the grade of a check is "unsafe" */
};

/* ---- adding sentences to the explanation ---- */

static void begin_topic(struct explanation *e, const char *topic)
{
    if (e->topic == NULL || strcmp(e->topic, topic) != 0)
        outbuf_add(&e->out, "%s%s%s%s:\n", e->topic != NULL ? "\n" : "",
                   terminal_colour(&e->terminal, COLOUR_STRONG), topic,
                   terminal_colour(&e->terminal, COLOUR_NONE));
    e->topic = topic;
}

/* Add a text, broken into lines of at most COLUMNS columns. Each line begins with `indent`. */
static void put_wrapped(struct explanation *e, const char *indent, const char *text)
{
    size_t column = strlen(indent);

    outbuf_add(&e->out, "%s", indent);
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        bool is_first = column == strlen(indent);

        if (!is_first && column + 1 + n > COLUMNS) {
            outbuf_add(&e->out, "\n%*s", (int)strlen(indent), "");
            column = strlen(indent);
            is_first = true;
        }
        outbuf_add(&e->out, "%s%.*s", is_first ? "" : " ", (int)n, text);
        column += n + !is_first;
        text += n + (text[n] == ' ');
    }
    outbuf_add(&e->out, "\n");
}

static void say(struct explanation *e, const char *topic, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct explanation *e, const char *topic, const char *format, ...)
{
    char object[TEXT_BYTES * JSON_BYTES_EACH];
    char text[TEXT_BYTES];
    struct json json;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!e->options->json) {
        begin_topic(e, topic);
        put_wrapped(e, "  ", text);
        return;
    }
    json_begin(&json, object, sizeof object);
    json_string(&json, "topic", topic);
    json_string(&json, "text", text);
    json_end(&json);
    outbuf_add(&e->out, "%s", object);
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
    bool is_found = word == NULL || mistake_is_program(options->argv[0], getenv("PATH"));

    if (options->command != NULL)
        say(e, "command", "/bin/sh would run the text of -c.");
    else if (word == NULL)
        say(e, "command", "No command is given; the rest is the same for every command.");
    else if (is_found)
        say(e, "command", "rlock would run %s, and give the lock back when it has ended.", word);
    else
        say(e, "command", "%s is not found, or can't be executed: status 127 or 126.", word);
    free(word);
    return is_found ? REASON_GRANTED : REASON_NOT_FOUND;
}

/* ---- the topic: the server ---- */

static void explain_choice(struct explanation *e, const struct credentials *credentials)
{
    const struct options *options = e->options;
    char from[ORIGIN_BYTES];
    size_t i;

    for (i = 0; i < credentials->n_urls; i++) {
        char *url = url_masked_copy(credentials->url[i]);

        if (url != NULL)
            say(e, "server", "%s", url);
        free(url);
    }
    if (options->n_urls > 0)
        say(e, "server", "%s given by %s.", credentials->n_urls > 1 ? "The URLs are" : "The URL is",
            origin(e, "url", from));
    else if (credentials->url_variable != NULL)
        say(e, "server", "The URL is given by %s, as no option, RLOCK_URL or file names a server.",
            credentials->url_variable);
    else
        say(e, "server",
            "The URL is the default: no option, variable or file names a server; -u URL would.");
    if (credentials->n_urls > 1)
        say(e, "server", "%zu of these %zu servers must grant the lock.",
            credentials->n_urls / 2 + 1, credentials->n_urls);
    if (options->file != NULL)
        say(e, "server", "The configuration file is %s.", options->file);
    else
        say(e, "server", "There is no configuration file.");
}

static bool has_password_in_url(const struct credentials *credentials)
{
    size_t i;
    size_t n;

    for (i = 0; i < credentials->n_urls; i++)
        if (url_find_password(credentials->url[i], &n) != NULL)
            return true;
    return false;
}

static void explain_login(struct explanation *e, const struct credentials *credentials)
{
    const struct options *options = e->options;
    char from[ORIGIN_BYTES];

    if (has_password_in_url(credentials))
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
}

static void explain_path(struct explanation *e, const struct url *url)
{
    const char *as = url->user != NULL ? ", as user " : "";
    const char *user = url->user != NULL ? url->user : "";

    switch (url->kind) {
    case URL_TCP:
        say(e, "connection", "%s to %s, database %d%s%s.", url->is_tls ? "TLS" : "TCP", url->shown,
            url->db, as, user);
        break;
    case URL_UNIX:
        say(e, "connection", "The Unix socket %s, database %d%s%s.", url->path, url->db, as, user);
        break;
    case URL_SENTINEL:
        say(e, "connection",
            "rlock would ask %zu Sentinel%s which server is the primary of %s, and connect to that "
            "server by %s%s%s.",
            url->n_sentinels, url->n_sentinels == 1 ? "" : "s", url->service,
            url->is_tls ? "TLS" : "TCP", as, user);
        break;
    }
}

static enum exit_reason explain_connection(struct explanation *e,
                                           const struct credentials *credentials)
{
    char limit[UNITS_TEXT_BYTES];
    size_t i;

    for (i = 0; i < credentials->n_urls; i++) {
        struct rlock_error err = {.status = RLOCK_OK};
        struct url url;

        if (url_parse(&url, credentials->url[i], &err) != RLOCK_OK)
            return session_fault(&e->session, &err);
        explain_path(e, &url);
        url_fini(&url);
    }
    explain_login(e, credentials);
    say(e, "connection", "Each connection may take %s to be established (--connect-timeout).",
        duration(limit, e->options->connect_ms));
    return REASON_GRANTED;
}

static void explain_private_server(struct explanation *e)
{
    const char *directory = getenv("RLOCK_LOCAL_DIR");

    say(e, "connection",
        "A private server of this user, on this machine alone. rlock would start one if none "
        "runs%s%s.",
        directory != NULL && *directory != '\0' ? ", in " : "",
        directory != NULL && *directory != '\0' ? directory : "");
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
    char term[UNITS_TEXT_BYTES];
    char kill[UNITS_TEXT_BYTES];
    char end[UNITS_TEXT_BYTES];
    char outage[UNITS_TEXT_BYTES];

    duration(end, timing_expires_ms(timing->ttl_ms, 0));
    if (e->options->on_lost == ON_LOST_IGNORE) {
        say(e, "lease",
            "If renewals fail, the lease ends %s after the last successful one was sent. The "
            "command runs on then, without the lock (--on-lost ignore), and rlock ends with status "
            "76.",
            end);
        return;
    }
    duration(term, at.term_ms);
    duration(kill, at.kill_ms);
    /* whole seconds, rounded down, because the renewal after the outage takes time */
    duration(outage, (at.term_ms - timing->renew_ms) / 1000 * 1000);
    if (e->options->on_lost == ON_LOST_PAUSE)
        say(e, "lease",
            "If renewals fail, the command is frozen %s after the last successful one was sent, "
            "or gets KILL after %s if it isn't frozen by then; the lease ends after %s.",
            term, kill, end);
    else
        say(e, "lease",
            "If renewals fail, the command gets TERM %s after the last successful one was sent, "
            "and KILL after %s; the lease ends after %s.",
            term, kill, end);
    say(e, "lease", "So an outage of the server of up to %s doesn't affect the command.", outage);
}

static void explain_lease(struct explanation *e, const struct rlock_timing *timing)
{
    const struct options *options = e->options;
    char ttl[UNITS_TEXT_BYTES];
    char other[UNITS_TEXT_BYTES];
    char grace[UNITS_TEXT_BYTES];
    char from[ORIGIN_BYTES];

    duration(ttl, timing->ttl_ms);
    say(e, "lease", "The lease lasts %s (%s), and is renewed every %s.", ttl,
        origin(e, "ttl", from), duration(other, timing->renew_ms));
    explain_loss(e, timing);
    say(e, "lease", "If this machine crashes, others can get the lock after at most %s.", ttl);
    if (options->max_hold_ms > 0)
        say(e, "lease", "The command gets TERM %s after the grant (%s), and KILL %s later.",
            duration(other, options->max_hold_ms), origin(e, "max-hold", from),
            duration(grace, timing->grace_ms));
    else
        say(e, "lease", "Nothing limits how long the command may run; --max-hold would.");
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

static void explain_waiting(struct explanation *e)
{
    const struct options *options = e->options;
    struct parent parent = environment_parent(environ);
    char wait[UNITS_TEXT_BYTES];
    char connect[UNITS_TEXT_BYTES];
    char from[ORIGIN_BYTES];

    duration(connect, options->connect_ms);
    if (options->wait_ms < 0)
        say(e, "waiting",
            "If the lock is taken, rlock waits without limit, until it is granted or a signal ends "
            "rlock; -w would set a limit. If no server can be reached at the start, rlock gives up "
            "after %s.",
            connect);
    else if (options->wait_ms == 0)
        say(e, "waiting", "If the lock is taken or no server can be reached, rlock ends at once.");
    else
        say(e, "waiting",
            "If the lock is taken or no server can be reached, rlock waits for at most %s (%s).",
            duration(wait, options->wait_ms), origin(e, "wait", from));
    if (options->wait_ms != 0 && options->queue == RLOCK_QUEUE_NEWEST)
        say(e, "waiting", "If a newer waiter with --queue newest comes, the wait ends as well.");
    else if (options->wait_ms != 0 && options->queue == RLOCK_QUEUE_NONE)
        say(e, "waiting",
            "rlock doesn't join the queue: it retries, and takes the lock when the lock is free.");
    else if (options->wait_ms != 0 && options->n_urls <= 1)
        say(e, "waiting", "Waiters get the lock in the order in which they came.");
    if (parent.n > 0)
        say(e, "waiting",
            "If the lock in RLOCK_TOKEN or RLOCK_PARENT_TOKENS is this one, rlock doesn't wait: "
            "the command runs under that lock.");
    parent_fini(&parent);
}

/* ---- the topic: exit statuses ---- */

/* Write what an exit reason would mean for this run; "" if this run can't end for that reason. */
static void meaning_of(const struct explanation *e, enum exit_reason reason, char text[200])
{
    const struct options *options = e->options;
    char length[UNITS_TEXT_BYTES];

    snprintf(text, 200, "%s", exit_reason_row(reason)->meaning);
    switch (reason) {
    case REASON_DONE:
        if (options->once_ms <= 0)
            text[0] = '\0';
        return;
    case REASON_MAX_HOLD:
        snprintf(text, 200, "the command ran for %s and was ended (--max-hold)",
                 duration(length, options->max_hold_ms));
        if (options->max_hold_ms <= 0)
            text[0] = '\0';
        return;
    case REASON_BUSY:
        if (options->wait_ms != 0)
            text[0] = '\0';
        return;
    case REASON_TIMEOUT:
        snprintf(text, 200, "the lock was not granted within %s",
                 duration(length, options->wait_ms));
        if (options->wait_ms <= 0)
            text[0] = '\0';
        return;
    case REASON_SUPERSEDED:
        if (options->queue != RLOCK_QUEUE_NEWEST || options->wait_ms == 0)
            text[0] = '\0';
        return;
    case REASON_LOST:
        if (options->on_lost == ON_LOST_IGNORE)
            snprintf(text, 200, "the lock was lost while the command ran; the command ran on");
        return;
    case REASON_USAGE:     /* the options have been read */
    case REASON_NOT_YOURS: /* only for verbs that use a token */
        text[0] = '\0';
        return;
    case REASON_GRANTED:
    case REASON_NOT_EXECUTABLE:
    case REASON_NOT_FOUND:
    case REASON_INTERRUPTED:
    case REASON_UNREACHABLE:
    case REASON_SYSTEM:
    case REASON_REFUSED:
    case REASON_MISCONFIGURED:
        return;
    }
}

static void explain_statuses(struct explanation *e)
{
    char text[200];
    int i;

    for (i = 0; i < EXIT_REASONS; i++) {
        int status = exit_reason_row((enum exit_reason)i)->status;

        meaning_of(e, (enum exit_reason)i, text);
        if (text[0] == '\0')
            continue;
        if (status < 0)
            say(e, "exit status", "%s", text);
        else
            say(e, "exit status", "%d: %s", session_status(&e->session, (enum exit_reason)i), text);
    }
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

/* Says what this machine lacks for these options. */
static void examine_host(const struct explanation *e, const struct rlock_examiner *examiner)
{
    const struct host_use use = {.is_root = geteuid() == 0,
                                 .uses_cgroup =
                                     e->options->cgroup || e->options->on_lost == ON_LOST_PAUSE,
                                 .n_servers = e->options->n_urls};
    struct host host;

    host_look(&host, "");
    host_report(&host, &use, examiner);
}

static enum exit_reason examine(struct explanation *e, const struct credentials *credentials)
{
    struct rlock_examiner examiner = {.on_finding = show_finding, .context = e};
    struct rlock_error err = {.status = RLOCK_OK};
    enum exit_reason reason = session_open_with(&e->session, "rlock", credentials);

    if (reason != REASON_GRANTED)
        return reason;
    if (rlock_examine(e->session.lock, e->options->keys[0], deadline_never, &examiner, &err) !=
        RLOCK_OK) {
        say(e, "doctor", "The server could not be examined: %s", err.text);
        return exit_reason_of(err.status);
    }
    examine_host(e, &examiner);
    if (e->n_warnings == 0)
        say(e, "doctor", "Nothing to warn of.");
    return e->is_unsafe ? REASON_MISCONFIGURED : REASON_GRANTED;
}

/* ---- explaining all topics, one after the other ---- */

static enum exit_reason explain_server(struct explanation *e, const struct credentials *credentials)
{
    bool is_private =
        credentials->n_urls == 1 && strcmp(credentials->url[0], OPTIONS_LOCAL_URL) == 0;
    struct rlock_error err = {.status = RLOCK_OK};
    enum exit_reason reason = REASON_GRANTED;
    struct rlock_timing timing;

    if (rlock_timing_fit(e->options->ttl_ms, e->options->kill_after_ms, &timing, &err) != RLOCK_OK)
        return session_fault(&e->session, &err);
    explain_choice(e, credentials);
    if (is_private)
        explain_private_server(e);
    else
        reason = explain_connection(e, credentials);
    if (reason != REASON_GRANTED)
        return reason;
    explain_lease(e, &timing);
    explain_waiting(e);
    explain_statuses(e);
    if (!is_private)
        return examine(e, credentials);
    say(e, "doctor", "The server was not examined: rlock starts a private server only for a lock.");
    return REASON_GRANTED;
}

static enum exit_reason explain(struct explanation *e)
{
    struct rlock_error err = {.status = RLOCK_OK};
    struct credentials credentials;
    enum exit_reason command;
    enum exit_reason server;
    enum exit_reason written;

    if (credentials_read(&credentials, e->options, &err) != RLOCK_OK)
        return session_fault(&e->session, &err);
    say(e, "lock", "%s", e->session.report.key);
    command = explain_command(e);
    server = explain_server(e, &credentials);
    credentials_fini(&credentials);
    written = report_output(&e->session.report, &e->out);
    if (written != REASON_GRANTED)
        return written;
    return server != REASON_GRANTED ? server : command;
}

int cmd_explain(const struct options *options)
{
    struct explanation e = {.options = options};
    enum exit_reason reason;

    session_init(&e.session, options);
    terminal_read_state(&e.terminal);
    reason = explain(&e);
    outbuf_fini(&e.out);
    session_close(&e.session);
    return exit_reason_status(reason);
}
