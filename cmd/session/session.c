/* SPDX-License-Identifier: MIT */
/* session: what a verb needs for its lock: the messages, the server, the library's handle. */
#include "session/session.h"

#include "base/err.h"
#include "options/config.h"
#include "process/dumpable.h"
#include "process/user.h"
#include "session/credentials.h"
#include "session/environment.h"
#include "wire/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static enum report_level level_of(const struct options *options)
{
    if (options->quiet)
        return REPORT_FAILURE;
    return options->verbose ? REPORT_STEP : REPORT_NOTICE;
}

void session_init(struct session *session, const struct options *options)
{
    char *keys_shown = options->n_keys > 1 ? options_keys(options, ' ') : NULL;
    const char *first_key = options->n_keys > 0 ? options->keys[0] : NULL;

    *session = (struct session){
        .options = options,
        .report = {.level = level_of(options),
                   .json = options->json != 0,
                   .key = keys_shown != NULL ? keys_shown : first_key,
                   .start_ms = rlock_clock_ms()},
        .signals = {.fd = -1, .stop_fd = -1},
        .private_server = PRIVATE_SERVER_NONE,
        .password_helper = {.fd = -1},
        .sentinel_password_helper = {.fd = -1},
        .holder_pid = getpid(),
        .keys_shown = keys_shown,
    };
    progress_init(&session->progress, &session->report);
}

enum exit_reason session_open_signals(struct session *session)
{
    int failed = signals_open(&session->signals);

    return failed ? report_fault(&session->report, REASON_SYSTEM, "signalfd", failed)
                  : REASON_GRANTED;
}

void session_set_holder(struct session *session, pid_t holder_pid, bool has_renewer)
{
    session->holder_pid = holder_pid;
    session->has_renewer = has_renewer;
}

bool session_is_interrupted(struct session *session)
{
    return signals_end(&session->signals, &session->interrupted_by);
}

/* ---- hooks: the library calls these while it waits for the lock ---- */

static void blocked(void *context, const struct rlock_obstacle *obstacle)
{
    struct session *session = context;

    if (session->hooks != NULL && session->hooks->blocked != NULL)
        session->hooks->blocked(session->hooks->context, obstacle);
    progress_show(&session->progress, obstacle);
}

static void sent(void *context)
{
    const struct session *session = context;

    if (session->hooks != NULL && session->hooks->sent != NULL)
        session->hooks->sent(session->hooks->context);
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

    if (session->hooks != NULL && session->hooks->unreachable != NULL)
        session->hooks->unreachable(session->hooks->context);
    private_server_reopen(&session->private_server, session->signals.stop_fd,
                          session->options->connect_ms);
}

/* ---- the handle ---- */

static const char *user_name(void)
{
    const struct passwd *user = user_entry();

    return user == NULL ? NULL : user->pw_name;
}

static enum rlock_status open_lock(struct session *session, const char *program,
                                   const struct credentials *credentials, struct rlock_error *err)
{
    const struct options *options = session->options;
    bool is_local = session->private_server.users_fd >= 0;
    bool has_token = session->token != NULL;
    const char *private_url = session->private_server.url;
    struct parent parent = has_token ? (struct parent){.n = 0} : environment_parent(environ);
    struct utsname host;
    enum rlock_status st;
    const struct rlock_hooks hooks = {
        .on_sent = sent, .on_unreachable = unreachable, .context = session};
    const struct rlock_password_source password_source =
        password_helper_source(&session->password_helper);
    const struct rlock_password_source sentinel_password_source =
        password_helper_source(&session->sentinel_password_helper);
    struct rlock_config config = {
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
        .keys = options->keys,
        .n_keys = verb_table[options->verb].has_no_lease ? 0 : options->n_keys,
        /* a lease that exists keeps its protocol and mode, whatever the options say */
        .protocol = has_token ? RLOCK_PROTOCOL_TOKEN : options->protocol,
        .mode = has_token ? RLOCK_EXCLUSIVE : options->mode,
        .n_slots = options->slots,
        .unless_done = options->once_ms > 0,
        .parent_tokens = parent.token,
        .n_parents = parent.n,
        .only_parents = options->nested != 0 && !has_token,
        .token = session->token,
        .timing = session->timing,
        .holder = {.host = uname(&host) == 0 ? host.nodename : NULL,
                   .user = user_name(),
                   .command = program,
                   .label = options->label,
                   .pid = session->holder_pid,
                   .has_renewer = session->has_renewer},
        .connect_ms = options->connect_ms,
        .replicas = options->replicas,
        .queue = (enum rlock_queue)options->queue,
        .observer = {.on_blocked = blocked,
                     .on_warning = warn,
                     .context = session,
                     .every_ms = progress_every_ms(&session->progress)},
    };

    st = rlock_open(&session->lock, &config, err);
    if (st == RLOCK_OK)
        rlock_set_hooks(session->lock, &hooks);
    parent_fini(&parent);
    return st;
}

/* ---- passwords ---- */

static enum rlock_status start_helper(struct password_helper *helper,
                                      const struct password_place *place, struct rlock_error *err)
{
    char **envp;
    int failed;

    if (place->name == NULL)
        return RLOCK_OK;
    envp = environment_plain(environ);
    failed = envp == NULL ? ENOMEM : password_helper_start(helper, place, envp);
    free(envp);
    if (failed == 0)
        return RLOCK_OK;
    return err_set(err, RLOCK_E_SYSTEM, failed, "password: no helper process could be started");
}

static enum rlock_status start_helpers(struct session *session,
                                       const struct credentials *credentials,
                                       struct rlock_error *err)
{
    enum rlock_status st;

    session->has_sentinel_password =
        credentials->sentinel_password != NULL || credentials->sentinel_place.name != NULL;
    st = start_helper(&session->password_helper, &credentials->place, err);
    if (st == RLOCK_OK)
        st = start_helper(&session->sentinel_password_helper, &credentials->sentinel_place, err);
    return st;
}

static bool has_password(const struct credentials *credentials)
{
    size_t i;
    size_t n;

    for (i = 0; i < credentials->n_urls; i++)
        if (url_find_password(credentials->url[i], &n) != NULL)
            return true;
    return credentials->password != NULL || credentials->sentinel_password != NULL;
}

/*
 * Clear the passwords in the options and the environment, as the library has copied them. With
 * --pass-credentials the environment keeps its passwords, for the command.
 */
static void forget_passwords(const struct session *session, bool has_password)
{
    const struct options *options = session->options;
    size_t i;

    for (i = 0; i < options->n_texts; i++)
        if (strstr(options->texts[i], "://") != NULL)
            url_mask(options->texts[i]);
    if (has_password) /* never allowed again: the library keeps the password */
        dumpable_forbid();
    if (!options->pass_credentials)
        environment_forget(environ);
}

/* ---- the private server ---- */

static void say_warning(const struct session *session, const char *why)
{
    report_say(&session->report, REPORT_NOTICE, (struct message){.what = "warning", .why = why});
}

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

static void warn_of_few_clients(const struct session *session)
{
    char why[160];

    if (session->private_server.clients_max <= 0)
        return;
    snprintf(why, sizeof why,
             "local: the limit of open files (ulimit -Hn) allows the private server %lld "
             "connections; each rlock needs two",
             (long long)session->private_server.clients_max);
    say_warning(session, why);
}

/*
 * Use the private server. While processes still use a server that has ended (RLOCK_BUSY), no new
 * server may be started. A verb that waits for a lock waits for those processes, too, as long as
 * --wait allows. Other verbs wait only --connect-timeout.
 */
static enum rlock_status open_private_server(struct session *session, struct rlock_error *err)
{
    const struct options *options = session->options;
    bool waits = session->token == NULL && !verb_table[options->verb].has_no_lease;
    int64_t connect_by_ms = session->report.start_ms + options->connect_ms;
    int64_t wait_by_ms =
        options->wait_ms >= 0 ? session->report.start_ms + options->wait_ms : RLOCK_NEVER;
    enum rlock_status st = open_private_server_by(session, connect_by_ms, err);

    if (st == RLOCK_BUSY && waits && wait_by_ms > connect_by_ms) {
        say_warning(session, err->text);
        st = open_private_server_by(session, wait_by_ms, err);
    }
    if (st == RLOCK_BUSY)
        st = err->status = RLOCK_E_UNREACHABLE;
    if (st == RLOCK_OK)
        warn_of_few_clients(session);
    return st;
}

/* ---- opening ---- */

static enum rlock_status open_server(struct session *session, const struct credentials *credentials,
                                     struct rlock_error *err)
{
    const struct options *options = session->options;
    enum rlock_status st =
        rlock_timing_fit(options->ttl_ms, session->token != NULL ? -1 : options->kill_after_ms,
                         &session->timing, err);

    if (st != RLOCK_OK)
        return st;
    if (credentials->n_urls == 1 && strcmp(credentials->url[0], PRIVATE_SERVER_URL) == 0)
        return open_private_server(session, err);
    return start_helpers(session, credentials, err);
}

enum exit_reason session_open(struct session *session, const char *program)
{
    struct rlock_error err = {.status = RLOCK_OK};
    struct credentials credentials;
    enum rlock_status st = credentials_read(&credentials, session->options, &err);

    if (st != RLOCK_OK)
        return session_fault(session, &err);
    st = open_server(session, &credentials, &err);
    if (st == RLOCK_OK)
        st = open_lock(session, program, &credentials, &err);
    forget_passwords(session, has_password(&credentials));
    credentials_fini(&credentials);
    if (st == RLOCK_OK)
        return REASON_GRANTED;
    if (st == RLOCK_STOPPED)
        return REASON_INTERRUPTED;
    if (st == RLOCK_E_USAGE && err.reason == RLOCK_REASON_TOKEN) /* the text is no token */
        return report_fault(&session->report, REASON_NOT_YOURS, err.text, 0);
    return session_fault(session, &err);
}

/* ---- the token of a lease that exists ---- */

static enum exit_reason read_token_file(struct session *session, const char *path)
{
    const char *failed = NULL;
    char why[256];

    session->token_from_file = config_first_line(path, &failed);
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

static enum exit_reason read_token(struct session *session)
{
    const struct options *options = session->options;
    const char *inherited = getenv("RLOCK_TOKEN");

    /* RLOCK_TOKEN outranks a token file that the configuration file names */
    if (options->token_file != NULL && (options->token_file_from > FROM_FILE || inherited == NULL))
        return read_token_file(session, options->token_file);
    session->token = inherited;
    if (inherited == NULL)
        return report_fault(&session->report, REASON_USAGE,
                            "no token: set RLOCK_TOKEN, or name a file with --token-file", 0);
    if (*inherited == '\0')
        return report_fault(&session->report, REASON_USAGE,
                            "RLOCK_TOKEN is empty: the rlock acquire that should have set it has "
                            "probably failed",
                            0);
    return REASON_GRANTED;
}

/* ---- asking for the lock ---- */

/* Report why the lock was not granted. With several keys, name the key that was not free. */
static enum exit_reason report_busy(const struct session *session, enum exit_reason reason,
                                    const struct rlock_obstacle *obstacle)
{
    const struct options *options = session->options;
    char key[100] = "";
    char why[500];

    if (options->n_keys > 1 && obstacle->key < options->n_keys)
        err_escape(key, sizeof key, options->keys[obstacle->key]);
    if (obstacle->trouble.status != RLOCK_OK)
        progress_trouble(why, sizeof why, obstacle, rlock_clock_ms());
    else if (obstacle->holder[0] == '\0')
        snprintf(why, sizeof why, "not granted in time");
    else if (obstacle->left_ms < 0)
        snprintf(why, sizeof why, "%s%sheld by %s, never expires", key, *key ? " is " : "",
                 obstacle->holder);
    else
        snprintf(why, sizeof why, "%s%sheld by %s, expires in %lld.%01d s unless renewed", key,
                 *key ? " is " : "", obstacle->holder, (long long)(obstacle->left_ms / 1000),
                 (int)(obstacle->left_ms % 1000 / 100));
    report_say(&session->report, REPORT_NOTICE,
               (struct message){.what = exit_reason_row(reason)->name, .why = why});
    return reason;
}

static enum exit_reason report_done(const struct session *session,
                                    const struct rlock_obstacle *obstacle)
{
    time_t at = (time_t)(obstacle->since_ms / 1000);
    char when[40] = "";
    char why[400];
    struct tm utc;

    if (gmtime_r(&at, &utc) != NULL)
        strftime(when, sizeof when, ", at %Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(why, sizeof why, "by %s%s", obstacle->holder, when);
    report_say(&session->report, REPORT_NOTICE,
               (struct message){.what = exit_reason_row(REASON_DONE)->name,
                                .why = why,
                                .who = obstacle->holder,
                                .at_ms = obstacle->since_ms});
    return REASON_DONE;
}

enum exit_reason session_acquire(struct session *session, const struct session_hooks *hooks,
                                 struct rlock_grant *grant, int64_t *granted_at_ms)
{
    struct rlock_deadline deadline = {RLOCK_NEVER, session->signals.stop_fd};
    struct rlock_obstacle obstacle = {.left_ms = -1};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st;

    if (session->options->wait_ms >= 0)
        deadline.at_ms = session->report.start_ms + session->options->wait_ms;
    session->hooks = hooks;
    do
        st = rlock_acquire(session->lock, deadline, grant, &obstacle, &err);
    while (st == RLOCK_STOPPED && !session_is_interrupted(session));
    session->hooks = NULL;
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
            "--nested: no parent lock holds this key: it is gone, or has another key", 0);
    return session_fault(session, &err);
}

/* ---- the exit status ---- */

static const char *hint_for(const struct session *session, const struct rlock_error *err)
{
    if (exit_reason_of(err->status) == REASON_UNREACHABLE &&
        session->options->url_from == FROM_DEFAULT)
        return "name your server with -u URL, or use -u local: for locks on this machine alone";
    if (err->reason == RLOCK_REASON_SENTINEL_LOGIN && !session->has_sentinel_password)
        return "name the file with the password for the Sentinels with --sentinel-password-file";
    if (err->status == RLOCK_E_REFUSED && credentials_were_stripped())
        return "a parent rlock removed passwords from the environment: use a configuration file, "
               "or give the parent rlock --pass-credentials";
    return NULL;
}

enum exit_reason session_fault(const struct session *session, const struct rlock_error *err)
{
    enum exit_reason reason = exit_reason_of(err->status);

    report_say(&session->report, REPORT_FAILURE,
               (struct message){.what = exit_reason_row(reason)->name,
                                .why = err->text,
                                .hint = hint_for(session, err)});
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

void session_quiet_helpers(const struct session *session)
{
    password_helper_detach(&session->password_helper);
    password_helper_detach(&session->sentinel_password_helper);
}

void session_disown(struct session *session)
{
    password_helper_leave(&session->password_helper);
    password_helper_leave(&session->sentinel_password_helper);
}

void session_close(struct session *session)
{
    rlock_close(session->lock);
    session->lock = NULL;
    password_helper_stop(&session->password_helper);
    password_helper_stop(&session->sentinel_password_helper);
    private_server_close(&session->private_server);
    config_forget(session->token_from_file);
    session->token_from_file = NULL;
    session->token = NULL;
    free(session->keys_shown);
    session->keys_shown = NULL;
}

int session_with_token(const struct options *options, session_act *act)
{
    struct session session;
    enum exit_reason reason;

    session_init(&session, options);
    reason = read_token(&session);
    if (reason == REASON_GRANTED)
        reason = session_open(&session, NULL);
    if (reason == REASON_GRANTED)
        reason = act(&session);
    session_close(&session);
    return session_status(&session, reason);
}
