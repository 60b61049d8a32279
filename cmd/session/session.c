/* SPDX-License-Identifier: MIT */
/* session: what a verb needs for its lock: the messages, the server, the library's handle. */
#include "session/session.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/reason.h"
#include "base/secret.h"
#include "options/config.h"
#include "options/mistake.h"
#include "options/units.h"
#include "output/taken.h"
#include "output/wall_time.h"
#include "process/dumpable.h"
#include "process/user.h"
#include "session/credentials.h"
#include "session/environment.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define HINT_BYTES 400
#define CLI "redis-cli "

static enum report_level level_of(const struct options *options)
{
    if (options->quiet)
        return REPORT_FAILURE;
    return options->verbose ? REPORT_STEP : REPORT_NOTICE;
}

void session_init(struct session *session, const struct options *options)
{
    char *keys_shown = options->n_keys > 1 ? options_keys(options, ' ') : NULL;

    *session = (struct session){
        .options = options,
        .report = report_begin(options, level_of(options)),
        .signals = {.fd = -1, .stop_fd = -1},
        .private_server = PRIVATE_SERVER_NONE,
        .password_helper = {.fd = -1},
        .sentinel_password_helper = {.fd = -1},
        .event_hook = {.fd = -1},
        .holder_pid = getpid(),
        .holds = {.dir = -1},
        .keys = options->keys,
        .n_keys = options->n_keys,
        .keys_shown = keys_shown,
    };
    if (keys_shown != NULL)
        report_set_key(&session->report, keys_shown);
    progress_init(&session->progress, &session->report, options->connect_ms, options->warn_wait_ms);
}

enum exit_reason session_open_signals(struct session *session)
{
    int failed = signals_open(&session->signals);

    return failed
               ? report_fault(&session->report, REASON_SYSTEM, "signals can't be received", failed)
               : REASON_GRANTED;
}

void session_set_holder(struct session *session, pid_t holder_pid, int64_t hold_ms,
                        bool has_renewer)
{
    session->holder_pid = holder_pid;
    session->hold_ms = hold_ms;
    session->has_renewer = has_renewer;
}

bool session_is_interrupted(struct session *session)
{
    return signals_end(&session->signals, &session->interrupted_by);
}

/* ---- what the library calls while it waits for the lock ---- */

static void blocked(void *context, const struct rlock_obstacle *obstacle)
{
    struct session *session = context;

    if (session->observer.on_blocked != NULL)
        session->observer.on_blocked(session->observer.context, obstacle);
    session_check_hook(session);
    progress_show(&session->progress, obstacle);
    service_status_show(&session->service_status, &session->report, obstacle);
}

bool session_secret_is_exposed(const struct session *session)
{
    return session->is_secret_exposed || session->password_helper.is_exposed;
}

static void warn_of_secret(struct session *session)
{
    char why[400];

    if (session->has_warned_of_secret || !session_secret_is_exposed(session))
        return;
    session->has_warned_of_secret = true;
    snprintf(why, sizeof why,
             "%.300s has a password, and others than its owner may read it: chmod go= this file",
             session->secret_file);
    progress_warn(&session->progress, why);
}

static void sent(void *context)
{
    struct session *session = context;

    warn_of_secret(session);
    if (session->observer.on_sent != NULL)
        session->observer.on_sent(session->observer.context);
}

static void warn(void *context, const char *text)
{
    struct session *session = context;

    progress_warn(&session->progress, text);
}

/* If the private server has ended, start the next one, in case no other process does. */
static void unreachable(void *context)
{
    struct session *session = context;

    if (session->observer.on_unreachable != NULL)
        session->observer.on_unreachable(session->observer.context);
    private_server_reopen(&session->private_server, session->signals.stop_fd,
                          session->options->connect_ms);
}

/* ---- starting the command of --on-event ---- */

void session_start_hook(struct session *session)
{
    const struct options *options = session->options;
    char why[100];
    int failed;

    /* RLOCK_EVENT is set: the command of --on-event runs this rlock, which must not run it again */
    if (options->on_event == NULL || getenv("RLOCK_EVENT") != NULL)
        return;
    failed = event_hook_start(&session->event_hook, options);
    report_set_listener(&session->report, event_hook_tell, &session->event_hook);
    if (failed == 0)
        return;
    snprintf(why, sizeof why, "--on-event: no process can be started: %s", strerror(failed));
    progress_warn(&session->progress, why);
}

void session_check_hook(struct session *session)
{
    char why[300];

    if (event_hook_failure(&session->event_hook, why, sizeof why))
        progress_warn(&session->progress, why);
}

/* ---- opening the library's handle ---- */

static const char *user_name(void)
{
    const struct passwd *user = user_entry();

    return user == NULL ? NULL : user->pw_name;
}

/* Does the verb acquire a lock? Else options for new locks, which a file may set, don't count. */
static bool takes_lock(const struct session *session)
{
    return session->token == NULL && !verb_table[session->options->verb].has_no_lease;
}

static enum rlock_status open_lock(struct session *session, const char *program,
                                   const struct credentials *credentials, struct rlock_error *err)
{
    const struct options *options = session->options;
    bool is_local = session->private_server.users_fd >= 0;
    bool has_token = session->token != NULL;
    const char *private_url = session->private_server.url;
    struct parent parent = has_token ? (struct parent){.n = 0} : environment_parent();
    struct utsname host;
    enum rlock_status st;
    const struct rlock_password_source password_source =
        password_helper_source(&session->password_helper);
    const struct rlock_password_source sentinel_password_source =
        password_helper_source(&session->sentinel_password_helper);
    struct rlock_config config = {
        .size = sizeof(struct rlock_config),
        .urls = is_local ? &private_url : (const char *const *)credentials->url,
        .n_urls = credentials->n_urls,
        .password = is_local ? NULL : credentials->password,
        .password_source = &password_source,
        .sentinel_user = options->sentinel_user,
        .sentinel_password = credentials->sentinel_password,
        .sentinel_password_source = &sentinel_password_source,
        .tls_ca = options->tls_ca,
        .tls_name = options->tls_name,
        .tls_cert = options->tls_cert,
        .tls_key = options->tls_key,
        .keys = session->keys,
        .n_keys = verb_table[options->verb].has_no_lease ? 0 : session->n_keys,
        .protocol = takes_lock(session) ? options->protocol : RLOCK_PROTOCOL_TOKEN,
        .mode = takes_lock(session) ? options->mode : RLOCK_EXCLUSIVE,
        .n_slots = options->slots,
        .unless_done = options->once_ms > 0,
        .parent_tokens = parent.token,
        .n_parents = parent.n,
        .only_parents = options->nested != 0 && options->verb == VERB_RUN,
        .token = session->token,
        .timing = session->timing,
        .holder = {.host = uname(&host) == 0 ? host.nodename : NULL,
                   .user = user_name(),
                   .command = program,
                   .label = options->label,
                   .pid = session->holder_pid,
                   .has_renewer = session->has_renewer,
                   .hold_ms = session->hold_ms},
        .connect_ms = options->connect_ms,
        .replicas = options->replicas,
        .history = has_token ? 0 : options->history, /* the server was told at the grant */
        .queue = (enum rlock_queue)options->queue,
        .observer = {.on_blocked = blocked,
                     .on_warning = warn,
                     .on_sent = sent,
                     .on_unreachable = unreachable,
                     .context = session,
                     .every_ms = PROGRESS_EVERY_MS},
        .scripts = (enum rlock_scripts)options->scripts,
        .needs_queue = options->needs_queue,
    };

    st = rlock_open(&session->lock, &config, err);
    parent_fini(&parent);
    return st;
}

/* ---- starting the password helpers, and clearing passwords ---- */

static bool has_password(const struct credentials *credentials)
{
    return credentials_in_urls(credentials) > 0 || credentials->password != NULL ||
           credentials->sentinel_password != NULL;
}

static enum rlock_status start_helpers(struct session *session,
                                       const struct credentials *credentials,
                                       struct rlock_error *err)
{
    int failed;

    session->secret_file = credentials->place.file;
    if (credentials->password == NULL && credentials->sentinel_password == NULL &&
        has_password(credentials) && session->options->url_from == FROM_FILE) {
        session->secret_file = session->options->file;
        session->is_secret_exposed = config_is_exposed(session->secret_file);
    }
    failed = password_helper_start(&session->password_helper, &credentials->place);
    if (failed == 0)
        failed =
            password_helper_start(&session->sentinel_password_helper, &credentials->sentinel_place);
    return failed == 0 ? RLOCK_OK
                       : err_set(err, RLOCK_E_SYSTEM, failed,
                                 "password: no helper process could be started");
}

/*
 * Clear the passwords in the options and the environment, as the library has copied them. With
 * --pass-credentials the environment keeps its passwords, for the command.
 */
static void forget_passwords(const struct session *session, bool has_password)
{
    const struct options *options = session->options;

    options_mask_urls(options);
    if (has_password) /* until rlock ends, the library keeps a copy of the password */
        dumpable_forbid();
    if (!options->pass_credentials)
        environment_forget();
}

/* ---- using the private server of -u local: ---- */

/*
 * Use the private server. A signal that stops rlock interrupts the wait; when rlock continues, wait
 * again.
 */
static enum rlock_status open_private_server_by(struct session *session, int64_t deadline_ms,
                                                struct rlock_error *err)
{
    struct rlock_deadline deadline = {deadline_ms, session->signals.stop_fd};
    enum rlock_status st;

    do
        st = private_server_open(&session->private_server, deadline, session->options->connect_ms,
                                 err);
    while (st == RLOCK_STOPPED && !session_is_interrupted(session));
    return st;
}

/*
 * Use the private server. While processes still use a server that has ended (RLOCK_BUSY), no new
 * server may be started. A verb that waits for a lock waits for those processes, too, as long as
 * --wait allows. Other verbs wait only --connect-timeout.
 */
static enum rlock_status open_private_server(struct session *session, struct rlock_error *err)
{
    const struct options *options = session->options;
    int64_t connect_by_ms = session->report.start_ms + options->connect_ms;
    int64_t wait_by_ms =
        options->wait_ms >= 0 ? session->report.start_ms + options->wait_ms : RLOCK_NEVER;
    enum rlock_status st = open_private_server_by(session, connect_by_ms, err);

    if (st == RLOCK_BUSY && takes_lock(session) && wait_by_ms > connect_by_ms) {
        report_event(&session->report, REPORT_NOTICE, EVENT_WARNING, err->text, NULL);
        st = open_private_server_by(session, wait_by_ms, err);
    }
    if (st == RLOCK_BUSY)
        st = err->status = RLOCK_E_UNREACHABLE;
    return st;
}

/* ---- opening the session ---- */

static void warn_of_other_url(const struct session *session, const struct credentials *credentials)
{
    if (credentials->has_other_url)
        report_event(&session->report, REPORT_NOTICE, EVENT_WARNING,
                     "VALKEY_URL and REDIS_URL differ, and rlock uses VALKEY_URL",
                     "locks on different servers don't exclude each other: set RLOCK_URL");
}

/*
 * The TTL to acquire the lock with. A person's hold begins with a short lease, which rlock extends
 * when it has stored the token. If rlock is killed before that, nobody can release the lock, but it
 * soon becomes free.
 */
static int64_t first_ttl_ms(const struct session *session)
{
    const struct options *options = session->options;
    int64_t ttl_ms =
        session->hold_ms > 0 && !options->renews ? options_by_default.ttl_ms : options->ttl_ms;

    return session->hold_ms > 0 && session->hold_ms < ttl_ms ? session->hold_ms : ttl_ms;
}

static enum rlock_status open_server(struct session *session, const struct credentials *credentials,
                                     struct rlock_error *err)
{
    const struct options *options = session->options;
    bool ends_command = takes_lock(session) && session->hold_ms == 0;
    enum rlock_status st = rlock_timing_fit(
        first_ttl_ms(session), ends_command ? options->kill_after_ms : -1, &session->timing, err);

    if (st != RLOCK_OK)
        return st;
    if (credentials->n_urls == 1 && strcmp(credentials->url[0], OPTIONS_LOCAL_URL) == 0)
        return open_private_server(session, err);
    return start_helpers(session, credentials, err);
}

/*
 * Prepare the variables that tell an rlock in the command which server we use. Warn if we run under
 * the lock of an rlock that uses another server: the two locks exclude nobody from each other.
 */
static void tell_servers(struct session *session, const struct credentials *credentials)
{
    const char *parents;
    char why[500];

    same_server_init(&session->same_server, session->options, credentials);
    parents = same_server_differs(&session->same_server);
    if (parents == NULL || verb_table[session->options->verb].has_no_lease)
        return;
    session->has_other_server = true;
    snprintf(why, sizeof why,
             "this rlock uses the server %.200s, but the rlock that it runs under uses %.200s",
             session->same_server.names, parents);
    report_event(&session->report, REPORT_NOTICE, EVENT_WARNING, why,
                 "see RLOCK_URL and -u: locks on different servers don't exclude each other");
}

/* Note how messages about a fault name the server. */
static void note_server(struct session *session, const struct credentials *credentials)
{
    enum source from = session->options->url_from;

    if (credentials->url_variable != NULL)
        snprintf(session->url_place, sizeof session->url_place, "%s", credentials->url_variable);
    else if (from == FROM_ENVIRONMENT || from == FROM_FILE)
        options_name_origin(session->options, "url", session->url_place, sizeof session->url_place);
    if (credentials->n_urls == 1)
        url_cli_options(credentials->url[0], session->cli_options);
}

enum exit_reason session_open_with(struct session *session, const char *program,
                                   const struct credentials *credentials)
{
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st;

    warn_of_other_url(session, credentials);
    st = open_server(session, credentials, &err);
    note_server(session, credentials);
    if (st == RLOCK_OK)
        st = open_lock(session, program, credentials, &err);
    if (st == RLOCK_OK)
        tell_servers(session, credentials);
    forget_passwords(session, has_password(credentials));
    if (st == RLOCK_OK)
        return REASON_GRANTED;
    if (st == RLOCK_STOPPED)
        return REASON_INTERRUPTED;
    if (st == RLOCK_E_USAGE && err.reason == RLOCK_REASON_TOKEN) /* the text is no token */
        return report_fault(&session->report, REASON_NOT_YOURS, err.text, 0);
    return session_fault(session, &err);
}

static bool is_interrupted(void *session)
{
    return session_is_interrupted(session);
}

enum exit_reason session_read_credentials(struct session *session, struct credentials *credentials)
{
    const struct config_wait wait = {session->options->connect_ms, session->signals.stop_fd,
                                     is_interrupted, session};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st = credentials_read(credentials, session->options, &wait, &err);

    if (st == RLOCK_STOPPED)
        return REASON_INTERRUPTED;
    return st == RLOCK_OK ? REASON_GRANTED : session_fault(session, &err);
}

enum exit_reason session_open(struct session *session, const char *program)
{
    struct credentials credentials;
    enum exit_reason reason = session_read_credentials(session, &credentials);

    if (reason != REASON_GRANTED)
        return reason;
    reason = session_open_with(session, program, &credentials);
    credentials_fini(&credentials);
    return reason;
}

enum exit_reason session_adopt(struct session *session, const struct credentials *credentials,
                               const char *token, const char *const *keys, size_t n_keys)
{
    struct rlock_error err = {.status = RLOCK_OK};

    rlock_close(session->lock);
    session->lock = NULL;
    session->token = token;
    session->keys = keys;
    session->n_keys = n_keys;
    return open_lock(session, NULL, credentials, &err) == RLOCK_OK ? REASON_GRANTED
                                                                   : session_fault(session, &err);
}

/* ---- the token of a lease that exists ---- */

enum exit_reason session_read_holds(struct session *session, const struct credentials *credentials,
                                    bool creates)
{
    const struct options *options = session->options;
    struct rlock_error err = {.status = RLOCK_OK};
    char *server = same_server_names(credentials->url, credentials->n_urls);

    if (holds_open(&session->holds, server, options->keys, options->n_keys, creates, &err) ==
        RLOCK_OK)
        return REASON_GRANTED;
    return session_fault(session, &err);
}

/*
 * Use the token of the user's hold. One hold must have all of the keys: of two holds, rlock would
 * not know which one the user means.
 */
static enum exit_reason use_hold(struct session *session)
{
    const struct holds *holds = &session->holds;
    size_t i;

    if (holds->n == 0)
        return report_fault(&session->report, REASON_USAGE,
                            "no token: set RLOCK_TOKEN, or name a file with --token-file, or take "
                            "the lock by rlock hold",
                            0);
    for (i = 0; i < holds->n_keys; i++)
        if (strcmp(holds->hold[i].token, holds->hold[0].token) != 0)
            return report_fault(&session->report, REASON_USAGE,
                                "no token: none of your holds has all of these keys: name the "
                                "keys of one hold",
                                0);
    session->token = holds->hold[0].token;
    return REASON_GRANTED;
}

static enum exit_reason read_token_file(struct session *session, const char *path)
{
    const struct config_wait wait = {.ms = session->options->connect_ms, .stop_fd = -1};
    const char *failed = NULL;
    char why[256];

    session->token_from_file = config_first_line(path, &wait, &failed);
    session->token = session->token_from_file;
    if (session->token == NULL) {
        snprintf(why, sizeof why, "token file %.150s: %s", path, failed);
        return report_fault(&session->report, REASON_MISCONFIGURED, why, 0);
    }
    if (session->token[0] == '\0') {
        snprintf(why, sizeof why, "no token: the first line of %.150s is empty", path);
        return report_fault(&session->report, REASON_USAGE, why, 0);
    }
    return REASON_GRANTED;
}

void session_end_hold(const struct session *session)
{
    if (session->token != NULL)
        holds_remove(&session->holds, session->token);
}

void session_hold_over_text(char why[HOLD_OVER_BYTES], const struct hold *hold)
{
    char until[WALL_TIME_BYTES];

    wall_time_local(until, hold->until_ms);
    if (wall_time_now_ms() >= hold->until_ms)
        snprintf(why, HOLD_OVER_BYTES, "your hold has ended at %s, when its time was over", until);
    else
        snprintf(why, HOLD_OVER_BYTES,
                 "your hold, which was to last until %s, has ended early: it was broken, released "
                 "by another process, or lost by the server",
                 until);
}

enum exit_reason session_not_held(const struct session *session, const char *why)
{
    char over[HOLD_OVER_BYTES];

    if (session->holds.n > 0) {
        session_hold_over_text(over, &session->holds.hold[0]);
        session_end_hold(session);
        why = over;
    }
    return report_fault(&session->report, REASON_NOT_YOURS, why, 0);
}

/* Read the token that the user gives; session->token stays NULL if there is none. */
static enum exit_reason read_token(struct session *session)
{
    const struct options *options = session->options;
    const char *inherited = getenv("RLOCK_TOKEN");

    /* RLOCK_TOKEN outranks a token file that the configuration file names */
    if (options->token_file != NULL &&
        (options_origin(options, "token-file")->from > FROM_FILE || inherited == NULL))
        return read_token_file(session, options->token_file);
    session->token = inherited;
    if (inherited != NULL && *inherited == '\0')
        return report_fault(&session->report, REASON_USAGE,
                            "RLOCK_TOKEN is empty: the rlock acquire that should have set it has "
                            "probably failed",
                            0);
    return REASON_GRANTED;
}

/* Open the session for the token that the user gives, or else for the user's hold of the keys. */
static enum exit_reason open_by_token(struct session *session)
{
    struct credentials credentials;
    enum exit_reason reason = read_token(session);

    if (reason == REASON_GRANTED)
        reason = session_read_credentials(session, &credentials);
    if (reason != REASON_GRANTED)
        return reason;
    if (session->token == NULL) {
        reason = session_read_holds(session, &credentials, false);
        if (reason == REASON_GRANTED)
            reason = use_hold(session);
    }
    if (reason == REASON_GRANTED)
        reason = session_open_with(session, NULL, &credentials);
    credentials_fini(&credentials);
    return reason;
}

/* ---- acquiring the lock, and releasing it ---- */

/* With several keys, write which of them is not free: "job:c is ". */
static void put_key(char text[100], const struct session *session,
                    const struct rlock_obstacle *obstacle)
{
    const struct options *options = session->options;
    char key[90];

    text[0] = '\0';
    if (options->n_keys <= 1 || obstacle->key >= options->n_keys)
        return;
    err_escape(key, sizeof key, options->keys[obstacle->key]);
    snprintf(text, 100, "%s is ", key);
}

/*
 * Report why the lock was not granted: busy, timeout, or superseded by a newer waiter. If another
 * owner has the lock, the message is a notice, which --quiet suppresses. If the server could not be
 * reached, the message is a failure.
 */
static enum exit_reason report_busy(const struct session *session, enum exit_reason reason,
                                    const struct rlock_obstacle *obstacle)
{
    int64_t now_ms = rlock_clock_ms();
    struct taken taken = taken_of_obstacle(obstacle, now_ms);
    struct message message = {.what = event_of_reason(reason)};
    int64_t waited_ms = now_ms - session->report.start_ms;
    bool is_trouble = progress_is_trouble(obstacle, now_ms);
    bool has_party = obstacle->holder.text[0] != '\0';
    char words[PROGRESS_WHY_BYTES];
    char waited[UNITS_TEXT_BYTES];
    char key[100] = "";
    char why[sizeof words + 200];

    progress_why(words, obstacle, now_ms);
    if (has_party && !is_trouble)
        put_key(key, session, obstacle);
    units_tenths(waited, waited_ms);
    if (reason == REASON_BUSY)
        snprintf(why, sizeof why, "%s%s", key, words);
    else if (reason == REASON_TIMEOUT)
        snprintf(why, sizeof why, "after %s: %s%s", waited, key, words);
    else
        snprintf(why, sizeof why, "after %s by a newer waiter%s%s", waited, has_party ? ": " : "",
                 obstacle->holder.text);
    if (reason != REASON_BUSY)
        message_add(&message, fact_number("waited_ms", waited_ms));
    if (reason != REASON_SUPERSEDED)
        taken_add_facts(&message, &taken);
    else if (has_party)
        message_add(&message, fact_party("superseded_by", &obstacle->holder, NULL));
    if (is_trouble)
        message_add(&message, fact_time("trouble_since", wall_time_of(obstacle->trouble_ms)));
    message.why = why;
    report_say(&session->report, is_trouble ? REPORT_FAILURE : REPORT_NOTICE, message);
    return reason;
}

static enum exit_reason report_done(const struct session *session,
                                    const struct rlock_obstacle *obstacle)
{
    struct message message = {.what = EVENT_DONE};
    struct taken taken = taken_of_obstacle(obstacle, rlock_clock_ms());
    char when[WALL_TIME_BYTES];
    char why[400];

    wall_time_local(when, obstacle->holder.since_ms);
    snprintf(why, sizeof why, "by %s, at %s", obstacle->holder.text, when);
    message.why = why;
    taken_add_facts(&message, &taken);
    report_say(&session->report, REPORT_NOTICE, message);
    return REASON_DONE;
}

enum exit_reason session_wait_for_stdout(struct session *session, int64_t until_ms)
{
    struct rlock_deadline until = {until_ms, session->signals.stop_fd};
    struct pollfd fds[] = {{.fd = STDOUT_FILENO, .events = POLLOUT},
                           {.fd = until.stop_fd, .events = POLLIN}};

    while (fds[0].revents == 0) {
        if (session_is_interrupted(session))
            return REASON_INTERRUPTED;
        if (deadline_has_passed(until))
            return report_fault(
                &session->report, REASON_LOST,
                "nobody has read standard output, so the lease ended before the result was written",
                0);
        poll(fds, 2, deadline_poll_ms(until));
    }
    return REASON_GRANTED;
}

enum exit_reason session_acquire(struct session *session, const struct rlock_observer *observer,
                                 struct rlock_grant *grant, int64_t *granted_at_ms)
{
    struct rlock_deadline deadline = {RLOCK_NEVER, session->signals.stop_fd};
    struct rlock_obstacle obstacle = {.left_ms = -1, .holder = {.slot = -1, .renewed_ms = -1}};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st;

    if (session->options->wait_ms >= 0)
        deadline.at_ms = session->report.start_ms + session->options->wait_ms;
    if (observer != NULL)
        session->observer = *observer;
    do
        st = rlock_acquire(session->lock, deadline, grant, &obstacle, &err);
    while (st == RLOCK_STOPPED && !session_is_interrupted(session));
    session->observer = (struct rlock_observer){.context = NULL};
    *granted_at_ms = rlock_clock_ms();
    if (st == RLOCK_OK)
        return REASON_GRANTED;
    if (st == RLOCK_STOPPED)
        return REASON_INTERRUPTED;
    if (st == RLOCK_BUSY || st == RLOCK_TIMEOUT || st == RLOCK_SUPERSEDED)
        return report_busy(session, exit_reason_of(st), &obstacle);
    if (st == RLOCK_DONE)
        return report_done(session, &obstacle);
    if (st == RLOCK_GONE)
        return report_fault(
            &session->report, REASON_LOST,
            "--nested: no parent rlock holds this key: its lock has ended, or has another key", 0);
    return session_fault(session, &err);
}

void session_give_back(const struct session *session)
{
    struct rlock_deadline deadline = deadline_in(deadline_never, SESSION_RELEASE_MS);
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st = rlock_release(session->lock, deadline, RLOCK_ENDS_FREE, 0, &err);

    if (st >= RLOCK_E_USAGE)
        report_event(&session->report, REPORT_NOTICE, EVENT_NOT_RELEASED, err.text,
                     "the lock is free when its ttl ends");
}

/* ---- faults, exit statuses, and the end of the session ---- */

/* Replace the first `words` of the hint, if it has them. */
static void replace(char hint[HINT_BYTES], const char *words, const char *by)
{
    char *at = strstr(hint, words);
    char rest[HINT_BYTES];

    if (at == NULL)
        return;
    snprintf(rest, sizeof rest, "%s", at + strlen(words));
    snprintf(at, (size_t)(hint + HINT_BYTES - at), "%s%s", by, rest);
}

/*
 * Write the advice `help` so that a shell can run the command in it: with our key in place of KEY,
 * and with redis-cli's options for our server.
 */
static void put_help(char hint[HINT_BYTES], const struct session *session, const char *help)
{
    const char *key = session->options->n_keys == 1 ? session->options->keys[0] : "";
    const char *quote = mistake_needs_no_quotes(key) ? "" : "'";
    char by[HINT_BYTES];

    snprintf(hint, HINT_BYTES, "%s", help != NULL ? help : "");
    snprintf(by, sizeof by, "%s%s%s", quote, key, quote);
    if (*key != '\0' && strlen(key) < HINT_BYTES / 2 && strchr(key, '\'') == NULL)
        replace(hint, "KEY", by);
    snprintf(by, sizeof by, CLI "%s ", session->cli_options);
    if (session->cli_options[0] != '\0')
        replace(hint, CLI, by);
}

/*
 * The words that name an option which the user may leave out, so that the lock needs no scripts.
 * "": there is none, or the option protects the work: a second key, or the mark that it is done.
 */
static const char *way_without_scripts(const struct options *options)
{
    if (options->verb == VERB_HISTORY || options->n_keys > 1 || options->once_ms > 0)
        return "";
    if (options->mode != RLOCK_EXCLUSIVE)
        return options->mode == RLOCK_SHARED ? ", or lock without -s" : ", or lock without --slots";
    return options->history > 0 ? ", or lock without --history" : "";
}

static const char *hint_for(char room[HINT_BYTES], const struct session *session,
                            const struct rlock_error *err)
{
    bool is_mute = exit_reason_of(err->status) == REASON_UNREACHABLE &&
                   err->status != RLOCK_E_REPLICAS && err->said == 0;
    bool is_about_scripts = reason_is_about_scripts(err->reason);
    bool has_place = session->url_place[0] != '\0';
    size_t used;

    if (err->sys == EMFILE)
        return REPORT_MORE_FILES;
    if (err->status == RLOCK_E_SYSTEM && err->sys == EAGAIN) /* of fork() or a thread's start */
        return "look at the limit ulimit -u";
    if (is_mute && err->sys == ECONNRESET)
        return "the connection was lost: try again, or look at a proxy in between";
    if (is_mute && session->url_place[0] != '\0') {
        snprintf(room, HINT_BYTES, "%s names %s", session->url_place,
                 session->options->n_urls > 1 ? "these servers" : "this server");
        return room;
    }
    if (is_mute && session->options->url_from == FROM_DEFAULT)
        return "name your server with -u URL, or use -u local: for locks on this machine alone";
    if (err->status == RLOCK_E_REFUSED && credentials_were_stripped())
        return "a parent rlock removed passwords from the environment: use a configuration file, "
               "or give the parent rlock --pass-credentials";
    if (session->options->scripts == RLOCK_SCRIPTS_YES && is_about_scripts)
        return "use --scripts auto, with which rlock takes locks with plain commands there: "
               "exclusive ones of one key";
    put_help(room, session,
             err->status == RLOCK_E_REPLICAS
                 ? "look at the replicas: redis-cli INFO replication, or lower --replicas"
                 : rlock_reason_help(err->reason));
    used = strlen(room);
    if (is_about_scripts && err->reason != RLOCK_REASON_SCRIPTS_DENIED)
        snprintf(room + used, HINT_BYTES - used, "%s%s%s%s", has_place ? " (" : "",
                 has_place ? session->url_place : "", has_place ? " names this one)" : "",
                 way_without_scripts(session->options));
    return *room != '\0' ? room : NULL;
}

enum exit_reason session_fault(const struct session *session, const struct rlock_error *err)
{
    enum exit_reason reason = exit_reason_of(err->status);
    bool is_unable = err->status == RLOCK_E_SERVER || err->status == RLOCK_E_REPLICAS ||
                     err->status == RLOCK_E_NO_QUORUM;
    char why[sizeof err->text];
    char hint[HINT_BYTES];

    snprintf(why, sizeof why, "%s", err->text);
    if (err->said > strlen("; "))
        why[err->said - strlen("; ")] = '\0';
    report_say(&session->report, REPORT_FAILURE,
               (struct message){.what = event_of_reason(reason),
                                .word = is_unable ? progress_trouble_words(err->status) : NULL,
                                .why = why,
                                .hint = hint_for(hint, session, err),
                                .said = err->said > 0 ? err->text + err->said : NULL});
    return reason;
}

struct rlock_deadline session_deadline(const struct session *session)
{
    return (struct rlock_deadline){rlock_clock_ms() + session->options->connect_ms, -1};
}

int session_status(const struct session *session, enum exit_reason reason)
{
    if (reason == REASON_INTERRUPTED)
        return 128 + session->interrupted_by;
    if (exit_reason_row(reason)->status == exit_reason_row(REASON_BUSY)->status)
        return (int)session->options->conflict_status;
    return exit_reason_status(reason);
}

void session_disown(struct session *session)
{
    password_helper_leave(&session->password_helper);
    password_helper_leave(&session->sentinel_password_helper);
}

void session_close(struct session *session)
{
    event_hook_stop(&session->event_hook);
    rlock_close(session->lock);
    session->lock = NULL;
    password_helper_stop(&session->password_helper);
    password_helper_stop(&session->sentinel_password_helper);
    private_server_close(&session->private_server);
    same_server_fini(&session->same_server);
    secret_free(session->token_from_file);
    session->token_from_file = NULL;
    session->token = NULL;
    holds_fini(&session->holds);
    free(session->keys_shown);
    session->keys_shown = NULL;
}

int session_with_token(const struct options *options, session_act *act)
{
    struct session session;
    enum exit_reason reason;

    session_init(&session, options);
    reason = open_by_token(&session);
    if (reason == REASON_GRANTED)
        reason = act(&session);
    session_close(&session);
    return session_status(&session, reason);
}
