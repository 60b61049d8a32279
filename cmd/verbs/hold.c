/* SPDX-License-Identifier: MIT */
/*
 * hold: hold a lock for a person, without a command, until a time or until it is released.
 *
 * Without the token, which is only in a file of the user, nobody can release the lock. So rlock
 * acquires a short lease first. When it has stored the token, it renews the lease for the whole
 * length of the hold; or, with --renew, forks a process that renews the lease again and again.
 */
#include "cmd.h"

#include "base/err.h"
#include "options/mistake.h"
#include "options/units.h"
#include "output/json.h"
#include "output/outbuf.h"
#include "output/show.h"
#include "output/wall_time.h"
#include "process/fds.h"
#include "session/session.h"
#include "supervise/renew_daemon.h"
#include "wire/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hold_verb {
    struct session session;
    struct credentials credentials;
    struct guard_client nobody; /* a hold has no process to guard */
    struct renew_daemon_log log;
    struct rlock_grant grant;
    int64_t granted_at_ms;
    struct hold hold; /* the new hold, as rlock stores it in the user's file */
};

/* ---- what rlock tells the user ---- */

/* Append a word so that a shell reads it as this word. */
static void add_shell_word(struct outbuf *out, const char *word)
{
    bool is_plain = mistake_needs_no_quotes(word);

    outbuf_add(out, is_plain ? " " : " '");
    for (; *word != '\0'; word++)
        outbuf_add(out, *word == '\'' ? "'\"'\"'" : "%c", *word);
    if (!is_plain)
        outbuf_add(out, "'");
}

/* Append the command that ends the hold of these keys, with -u if the user gave -u. */
static void add_release(struct outbuf *out, const struct hold_verb *h, const char *const *keys,
                        size_t n_keys)
{
    const struct options *options = h->session.options;
    size_t i;

    outbuf_add(out, "rlock release");
    for (i = 0; options->url_from == FROM_COMMAND_LINE && i < h->credentials.n_urls; i++) {
        char *url = strdup(h->credentials.url[i]);

        if (url == NULL) {
            outbuf_fail(out);
            return;
        }
        url_remove_password(url);
        outbuf_add(out, " -u");
        add_shell_word(out, url);
        free(url);
    }
    for (i = 0; i < n_keys; i++) {
        outbuf_add(out, " -k");
        add_shell_word(out, keys[i]);
    }
}

static void put_text(struct outbuf *out, const struct hold_verb *h, pid_t renewer)
{
    const struct session *session = &h->session;
    struct outbuf release = {.text = NULL};
    char until[WALL_TIME_BYTES];
    char left[UNITS_TEXT_BYTES];

    add_release(&release, h, session->options->keys, session->options->n_keys);
    wall_time_local(until, h->hold.until_ms);
    units_text(left, session->hold_ms);
    show_key(out, session->report.key, SIZE_MAX);
    outbuf_add(out, ": held by you\n");
    if (h->grant.slot >= 0)
        outbuf_add(out, "    slot     %" PRId64 "\n", h->grant.slot);
    outbuf_add(out, "    until    %s, for %s\n", until, left);
    if (renewer != 0)
        outbuf_add(out, "    renewed  by process %d\n", (int)renewer);
    outbuf_add(out, "    to end   ");
    show_key(out, outbuf_text(&release), SIZE_MAX); /* a terminal must not act on bytes of keys */
    outbuf_add(out, "\n");
    if (release.has_failed)
        outbuf_fail(out);
    outbuf_fini(&release);
}

static void put_json(struct outbuf *out, const struct hold_verb *h, pid_t renewer)
{
    char text[512];
    struct json json;

    json_begin(&json, text, sizeof text);
    json_time(&json, "until", h->hold.until_ms);
    json_number(&json, "left_ms", h->hold.until_ms - wall_time_now_ms());
    json_unsigned(&json, "fence", h->grant.fence);
    if (h->grant.slot >= 0)
        json_number(&json, "slot", h->grant.slot);
    if (renewer != 0)
        json_number(&json, "renewed_by", renewer);
    json_end(&json);
    outbuf_add(out, "%s", text);
}

/* `renewer` is the process that renews the lease; 0: none. */
static enum exit_reason print_hold(void *verb, pid_t renewer)
{
    struct hold_verb *h = verb;
    struct outbuf out = {.text = NULL};
    enum exit_reason reason = session_wait_for_stdout(
        &h->session, renewer != 0 ? h->grant.expires_ms : h->granted_at_ms + h->session.hold_ms);

    if (reason != REASON_GRANTED)
        return reason;
    (h->session.options->json ? put_json : put_text)(&out, h, renewer);
    reason = out.has_failed ? report_fault(&h->session.report, REASON_SYSTEM, "no memory", 0)
                            : report_result(&h->session.report, outbuf_text(&out));
    outbuf_fini(&out);
    return reason;
}

/* ---- checking whether the user holds a key already ---- */

/* Report that the user holds this key already, by the stored token. */
static enum exit_reason report_held(const struct hold_verb *h, size_t key)
{
    const struct options *options = h->session.options;
    struct outbuf hint = {.text = NULL};
    char until[WALL_TIME_BYTES];
    char name[128] = "it";
    char why[WALL_TIME_BYTES + sizeof name + 64];

    if (options->n_keys > 1)
        err_escape(name, sizeof name, options->keys[key]);
    wall_time_local(until, h->session.holds.hold[key].until_ms);
    snprintf(why, sizeof why, "you hold %s already, until %s", name, until);
    outbuf_add(&hint, "to end that hold: ");
    add_release(&hint, h, &options->keys[key], 1);
    report_event(&h->session.report, REPORT_NOTICE, EVENT_BUSY, why, outbuf_text(&hint));
    outbuf_fini(&hint);
    return REASON_BUSY;
}

/*
 * Ask the server whether the stored token still holds this key, by a renewal for the shortest TTL,
 * which doesn't move the end of the hold, as a renewal doesn't shorten a lease. A file whose token
 * holds nothing is stale: the new hold's file will replace it.
 */
static enum exit_reason check_key(struct hold_verb *h, size_t key)
{
    struct session *session = &h->session;
    const struct hold *hold = &session->holds.hold[key];
    struct rlock_error err = {.status = RLOCK_OK};
    char why[HOLD_OVER_BYTES];
    int64_t expires_ms;
    enum exit_reason reason =
        session_adopt(session, &h->credentials, hold->token, &session->options->keys[key], 1);
    enum rlock_status st;

    if (reason != REASON_GRANTED)
        return reason;
    st = rlock_renew(session->lock, RLOCK_TTL_MIN_MS, session_deadline(session), &expires_ms, &err);
    if (st == RLOCK_OK)
        return report_held(h, key);
    if (st != RLOCK_LOST && st != RLOCK_GONE && st != RLOCK_RELEASED)
        return session_fault(session, &err);
    session_hold_over_text(why, hold);
    report_event(&session->report, REPORT_NOTICE, EVENT_WARNING, why, NULL);
    return REASON_GRANTED;
}

/*
 * Check the user's holds of the keys. check_key() opens the session's handle for the token of an
 * older hold, so check_held() then opens the handle anew, for the lease of the new hold.
 */
static enum exit_reason check_held(struct hold_verb *h)
{
    struct session *session = &h->session;
    const struct options *options = session->options;
    enum exit_reason reason = REASON_GRANTED;
    size_t i;

    for (i = 0; reason == REASON_GRANTED && i < options->n_keys; i++)
        if (session->holds.hold[i].token[0] != '\0')
            reason = check_key(h, i);
    if (reason == REASON_GRANTED && session->holds.n > 0)
        reason = session_adopt(session, &h->credentials, NULL, options->keys, options->n_keys);
    return reason;
}

/* ---- storing and printing the new hold ---- */

static enum exit_reason store(struct hold_verb *h)
{
    int failed;

    h->hold = (struct hold){.until_ms = wall_time_now_ms() + h->session.hold_ms,
                            .has_renewer = h->session.options->renews != 0};
    snprintf(h->hold.token, sizeof h->hold.token, "%s", h->grant.token);
    failed = holds_write(&h->session.holds, &h->hold);
    return failed == 0
               ? REASON_GRANTED
               : report_fault(
                     &h->session.report, REASON_SYSTEM,
                     "the token could not be stored (RLOCK_HOLD_DIR), so the lock is given back",
                     failed);
}

/* Renew the lease for the length of the hold. */
static enum exit_reason extend_and_print(struct hold_verb *h)
{
    struct session *session = &h->session;
    struct rlock_error err = {.status = RLOCK_OK};
    int64_t expires_ms;

    return rlock_renew(session->lock, session->hold_ms, session_deadline(session), &expires_ms,
                       &err) == RLOCK_OK
               ? print_hold(h, 0)
               : session_fault(session, &err);
}

static enum exit_reason take(struct hold_verb *h)
{
    struct session *session = &h->session;
    const struct supervise_plan plan = {.max_hold_ms = session->hold_ms,
                                        .session = session,
                                        .grant = &h->grant,
                                        .granted_ms = h->granted_at_ms,
                                        .guard = &h->nobody};
    enum exit_reason reason;

    if (h->grant.parent_keys != 0) {
        reason = report_fault(&session->report, REASON_USAGE,
                              "the token in RLOCK_TOKEN holds this key already", 0);
    } else {
        reason = store(h);
        if (reason == REASON_GRANTED) {
            progress_say_granted(&session->progress, rlock_clock_ms(), h->grant.fence);
            reason = session->options->renews ? renew_daemon_stay(&plan, 0, &h->log, print_hold, h)
                                              : extend_and_print(h);
        }
        if (reason != REASON_GRANTED)
            holds_remove(&session->holds, h->grant.token);
    }
    if (reason != REASON_GRANTED)
        session_give_back(session);
    return reason;
}

static enum exit_reason open_session(struct hold_verb *h)
{
    struct session *session = &h->session;
    enum exit_reason reason = session_open_signals(session);

    session_set_holder(session, 0, session->options->hold_ms, session->options->renews != 0);
    if (reason == REASON_GRANTED)
        reason = renew_daemon_open_log(&h->log, session);
    if (reason == REASON_GRANTED)
        reason = session_read_credentials(session, &h->credentials);
    if (reason == REASON_GRANTED)
        reason = session_read_holds(session, &h->credentials, true);
    return reason == REASON_GRANTED ? session_open_with(session, NULL, &h->credentials) : reason;
}

int cmd_hold(const struct options *options)
{
    struct hold_verb h = {.nobody = {.fd = -1}, .log = {.to = REPORT_TO_LOG, .fd = -1}};
    enum exit_reason reason;

    session_init(&h.session, options);
    reason = open_session(&h);
    if (reason == REASON_GRANTED)
        reason = check_held(&h);
    if (reason == REASON_GRANTED)
        reason = session_acquire(&h.session, NULL, &h.grant, &h.granted_at_ms);
    if (reason == REASON_GRANTED)
        reason = take(&h);
    fds_close(&h.log.fd);
    session_close(&h.session);
    credentials_fini(&h.credentials);
    if (reason == REASON_INTERRUPTED)
        signals_yield(h.session.interrupted_by);
    return session_status(&h.session, reason);
}
