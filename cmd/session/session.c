/* SPDX-License-Identifier: MIT */
/* session: the lock that the options name, on its server. */
#include "session/session.h"

#include "process/secret.h"
#include "process/user.h"
#include "session/credentials.h"
#include "session/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
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
    *session =
        (struct session){.options = options,
                         .report = {.level = level_of(options),
                                    .json = options->json != 0,
                                    .key = options->n_keys > 0 ? options->keys[0] : NULL,
                                    .start_ms = rlock_clock_ms()},
                         .signals = {.fd = -1, .stop_fd = -1},
                         .local = LOCAL_NONE,
                         .password_helper = {.fd = -1},
                         .sentinel_password_helper = {.fd = -1},
                         .pid = getpid(),
                         .keys_shown = options->n_keys > 1 ? options_keys(options, ' ') : NULL};
    if (session->keys_shown != NULL)
        session->report.key = session->keys_shown;
    progress_init(&session->progress, &session->report);
    session->watch = progress_watch(&session->progress);
}

static const char *user_name(void)
{
    const struct passwd *user = user_entry();

    return user == NULL ? NULL : user->pw_name;
}

/* ---- who is told of the wait, and who looks after `local:` meanwhile ---- */

static void see(void *context, const struct rlock_obstacle *obstacle)
{
    const struct session *session = context;

    if (session->watch.see != NULL)
        session->watch.see(session->watch.context, obstacle);
}

static void asked(void *context)
{
    const struct session *session = context;

    if (session->watch.asked != NULL)
        session->watch.asked(session->watch.context);
}

static void warn(void *context, const char *text)
{
    const struct session *session = context;

    if (session->watch.warn != NULL)
        session->watch.warn(session->watch.context, text);
}

static void unreached(void *context)
{
    struct session *session = context;

    if (session->watch.unreached != NULL)
        session->watch.unreached(session->watch.context);
    local_reopen(&session->local, session->signals.stop_fd, session->options->connect_ms);
}

static struct rlock_watch watch_of(struct session *session)
{
    if (session->local.fd < 0)
        return session->watch;
    return (struct rlock_watch){.see = see,
                                .asked = asked,
                                .warn = warn,
                                .unreached = unreached,
                                .context = session,
                                .every_ms = session->watch.every_ms};
}

static enum rlock_status open_lock(struct session *session, const char *program,
                                   const struct credentials *credentials, struct rlock_error *err)
{
    const struct options *options = session->options;
    bool is_local = session->local.fd >= 0;
    struct utsname host;
    const char *local = session->local.url;
    struct parent parent =
        session->token == NULL ? environment_parent(environ) : (struct parent){.n = 0};
    enum rlock_status st;
    struct rlock_config config = {
        .urls = is_local ? &local : (const char *const *)credentials->url,
        .n_urls = credentials->n_urls,
        .password = is_local ? NULL : credentials->password,
        .password_source = password_helper_source(&session->password_helper),
        .sentinel_user = options->sentinel_user,
        .sentinel_password = credentials->sentinel_password,
        .sentinel_password_source = password_helper_source(&session->sentinel_password_helper),
        .tls_ca = options->tls_ca,
        .tls_name = options->tls_name,
        .tls_cert = options->tls_cert,
        .tls_key = options->tls_key,
        .keys = options->keys,
        .n_keys = verb_table[options->verb].only_looks ? 0 : options->n_keys,
        .protocol = !options->is_time ? RLOCK_PROTOCOL_TOKEN
                    : options->is_ms  ? RLOCK_PROTOCOL_TIME_MS
                                      : RLOCK_PROTOCOL_TIME_S,
        .mode = options->mode,
        .n_slots = options->slots,
        .unless_done = options->once_ms > 0,
        .parent = parent.token,
        .n_parents = parent.n,
        .only_parents = options->nested != 0 && session->token == NULL,
        .token = session->token,
        .timing = session->timing,
        .holder = {.host = uname(&host) == 0 ? host.nodename : NULL,
                   .user = user_name(),
                   .command = program,
                   .label = options->label,
                   .pid = session->pid,
                   .has_renewer = session->has_renewer},
        .connect_ms = options->connect_ms,
        .replicas = options->replicas,
        .queue = (enum rlock_queue)options->queue,
        .watch = watch_of(session),
    };

    if (session->token != NULL) { /* it is as it was granted, whatever else is wanted */
        config.protocol = RLOCK_PROTOCOL_TOKEN;
        config.mode = RLOCK_EXCLUSIVE;
    }
    st = rlock_open(&session->lock, &config, err);
    parent_fini(&parent);
    return st;
}

static enum rlock_status start_helper(struct password_helper *helper,
                                      const struct password_place *place, struct rlock_error *err)
{
    char **envp = place->name != NULL ? environment_plain(environ) : NULL;
    int failed = 0;

    if (place->name != NULL)
        failed = envp == NULL ? ENOMEM : password_helper_start(helper, place, envp);
    free(envp);
    if (failed == 0)
        return RLOCK_OK;
    *err = (struct rlock_error){.status = RLOCK_E_SYSTEM, .sys = failed};
    snprintf(err->text, sizeof err->text, "no process can look the password up: %s",
             strerror(failed));
    return RLOCK_E_SYSTEM;
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

/* What the library knows by now, nobody else needs to, but a command that is to be told. */
static void forget_passwords(const struct session *session, bool has_password)
{
    const struct options *options = session->options;
    size_t i;

    for (i = 0; i < options->n_texts; i++)
        if (strstr(options->texts[i], "://") != NULL)
            secret_hide(options->texts[i]);
    if (has_password) /* for as long as the handle may need it for another connection */
        secret_is_known(true);
    if (!options->pass_credentials)
        environment_forget(environ);
}

static bool has_password(const struct credentials *credentials)
{
    size_t i;
    size_t n;

    for (i = 0; i < credentials->n_urls; i++)
        if (secret_in_url(credentials->url[i], &n) != NULL)
            return true;
    return credentials->password != NULL || credentials->sentinel_password != NULL;
}

/* A signal that doesn't end us only cuts the wait short. */
static enum rlock_status open_local_by(struct session *session, int64_t expires_ms,
                                       struct rlock_error *err)
{
    struct rlock_deadline deadline = {expires_ms, session->signals.stop_fd};
    enum rlock_status st;

    do
        st = local_open(&session->local, deadline, session->options->connect_ms, err);
    while (st == RLOCK_STOPPED && !signals_end(&session->signals, &session->number));
    return st;
}

static void say(const struct session *session, enum report_level level, const char *why)
{
    report_say(&session->report, level, (struct message){.what = "warning", .why = why});
}

/* Who waits for a lock waits for who used a server that has ended, too. */
static enum rlock_status open_local(struct session *session, struct rlock_error *err)
{
    const struct options *options = session->options;
    bool waits = session->token == NULL && !verb_table[options->verb].only_looks;
    int64_t expires_ms = session->report.start_ms + options->connect_ms;
    int64_t wait_ms = RLOCK_NEVER;
    enum rlock_status st = open_local_by(session, expires_ms, err);
    char why[160];

    if (options->wait_ms >= 0)
        wait_ms = session->report.start_ms + options->wait_ms;
    if (st == RLOCK_BUSY && waits && wait_ms > expires_ms) {
        say(session, REPORT_NOTICE, err->text);
        st = open_local_by(session, wait_ms, err);
    }
    if (st == RLOCK_BUSY)
        st = err->status = RLOCK_E_UNREACHABLE;
    if (st == RLOCK_OK && session->local.clients > 0) {
        snprintf(why, sizeof why,
                 "local: its server can serve %lld connections only, two for each rlock, by the "
                 "limit of open files here (ulimit -Hn)",
                 (long long)session->local.clients);
        say(session, REPORT_NOTICE, why);
    }
    return st;
}

enum rlock_status session_open(struct session *session, const char *program,
                               struct rlock_error *err)
{
    const struct options *options = session->options;
    struct credentials credentials;
    enum rlock_status st;

    st = credentials_read(&credentials, options, err);
    if (st != RLOCK_OK)
        return st;
    st = rlock_timing_fit(options->ttl_ms, session->token != NULL ? -1 : options->kill_after_ms,
                          &session->timing, err);
    if (st == RLOCK_OK && credentials.n_urls == 1 && strcmp(credentials.url[0], LOCAL_URL) == 0)
        st = open_local(session, err);
    else if (st == RLOCK_OK)
        st = start_helpers(session, &credentials, err);
    if (st == RLOCK_OK)
        st = open_lock(session, program, &credentials, err);
    forget_passwords(session, has_password(&credentials));
    credentials_fini(&credentials);
    return st;
}

static const char *hint_for(const struct session *session, const struct rlock_error *err)
{
    if (exit_reason_of(err->status) == REASON_UNREACHABLE &&
        session->options->url_from == FROM_DEFAULT)
        return "-u URL names another server, and -u local: is one for this machine alone";
    if (err->reason == RLOCK_REASON_SENTINEL_LOGIN && !session->has_sentinel_password)
        return "--sentinel-password-file names the file with the password of the Sentinels";
    if (err->status == RLOCK_E_REFUSED && credentials_were_stripped())
        return "an outer rlock took passwords out of the environment: use a configuration file, "
               "or --pass-credentials there";
    return NULL;
}

enum exit_reason session_give_up(const struct session *session, const struct rlock_error *err)
{
    enum exit_reason reason = exit_reason_of(err->status);

    report_say(&session->report, REPORT_FAILURE,
               (struct message){.what = exit_reason_row(reason)->name,
                                .why = err->text,
                                .hint = hint_for(session, err)});
    return reason;
}

int session_status(const struct session *session, enum exit_reason reason)
{
    if (reason == REASON_GRANTED)
        return 0;
    if (reason == REASON_INTERRUPTED)
        return 128 + session->number;
    if (exit_reason_row(reason)->status == exit_reason_row(REASON_BUSY)->status)
        return (int)session->options->conflict_status;
    return exit_reason_row(reason)->status;
}

void session_leave(struct session *session)
{
    password_helper_leave(&session->password_helper);
    password_helper_leave(&session->sentinel_password_helper);
}

void session_hand_over(struct session *session)
{
    password_helper_detach(&session->password_helper);
    password_helper_detach(&session->sentinel_password_helper);
    session_leave(session);
}

void session_close(struct session *session)
{
    rlock_close(session->lock);
    session->lock = NULL;
    password_helper_stop(&session->password_helper);
    password_helper_stop(&session->sentinel_password_helper);
    local_close(&session->local);
    free(session->keys_shown);
    session->keys_shown = NULL;
}
