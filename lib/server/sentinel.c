/* SPDX-License-Identifier: MIT */
/*
 * sentinel: asks Sentinels which server is the primary.
 *
 * All Sentinels are asked at the same time, and the first reply counts. If that reply names a
 * server that was just found to be down or no primary, rlock waits a moment for the other replies.
 * Source: "Guidelines for Redis clients with support for Redis Sentinel".
 */
#include "server/sentinel.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/reason.h"
#include "server/error_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* if a Sentinel names the wrong server, the others get this time from sentinel_ask() on */
#define PATIENCE_MS 250

/* One of the Sentinels. */
struct watcher {
    struct conn conn;
    enum rlock_status state; /* of the request: RLOCK_PENDING, RLOCK_OK (answered) or a fault */
    struct rlock_error err;  /* set if `state` is a fault */
};

enum rlock_status sentinel_init(struct sentinel *sentinel, const struct url *url,
                                struct rlock_error *err)
{
    struct request request;
    size_t i;

    *sentinel = (struct sentinel){.url = url};
    sentinel->watcher = calloc(url->n_sentinels, sizeof *sentinel->watcher);
    if (sentinel->watcher == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    for (i = 0; i < url->n_sentinels; i++)
        conn_init(&sentinel->watcher[i].conn, &url->sentinel[i]);
    request_begin(&request, "SENTINEL");
    request_add(&request, "get-master-addr-by-name");
    request_add(&request, url->service);
    return request_encode(&request, &sentinel->question, &sentinel->question_bytes, err);
}

void sentinel_set_password(struct sentinel *sentinel, const char *password,
                           struct password_source *password_source)
{
    sentinel->settings.password = password;
    sentinel->settings.password_source = password_source;
}

void sentinel_set_tls(struct sentinel *sentinel, struct tls_context *tls)
{
    sentinel->settings.tls = tls;
}

void sentinel_clear_passwords(struct sentinel *sentinel)
{
    size_t i;

    url_clear_password(&sentinel->wrong);
    url_clear_password(&sentinel->named);
    for (i = 0; i < sentinel->url->n_sentinels; i++)
        conn_clear_password(&sentinel->watcher[i].conn);
}

void sentinel_fini(struct sentinel *sentinel)
{
    size_t i;

    for (i = 0; sentinel->watcher != NULL && i < sentinel->url->n_sentinels; i++)
        conn_fini(&sentinel->watcher[i].conn);
    free(sentinel->watcher);
    free(sentinel->question);
    url_fini(&sentinel->wrong);
    url_fini(&sentinel->named);
}

void sentinel_stop(struct sentinel *sentinel)
{
    size_t i;

    for (i = 0; i < sentinel->url->n_sentinels; i++)
        conn_abandon(&sentinel->watcher[i].conn, NULL);
    sentinel->is_asking = false;
}

void sentinel_ask(struct sentinel *sentinel, int64_t deadline_ms)
{
    size_t i;

    sentinel->deadline_ms = deadline_ms;
    sentinel->wait_until_ms = rlock_clock_ms() + PATIENCE_MS;
    sentinel->is_asking = true;
    url_fini(&sentinel->named);
    for (i = 0; i < sentinel->url->n_sentinels; i++) {
        struct watcher *watcher = &sentinel->watcher[i];

        conn_configure(&watcher->conn, &sentinel->settings);
        watcher->state = conn_start_request(&watcher->conn, CONN_NO_PREAMBLE, sentinel->question,
                                            sentinel->question_bytes, deadline_ms, &watcher->err);
    }
}

size_t sentinel_watch(const struct sentinel *sentinel, struct pollfd *watch)
{
    size_t i;

    for (i = 0; i < sentinel->url->n_sentinels; i++) {
        const struct watcher *watcher = &sentinel->watcher[i];

        watch[i].fd = watcher->state == RLOCK_PENDING ? conn_fd(&watcher->conn) : -1;
        watch[i].events = conn_events(&watcher->conn);
    }
    return i;
}

int64_t sentinel_wake_ms(const struct sentinel *sentinel)
{
    int64_t wake = sentinel->deadline_ms;
    size_t i;

    if (sentinel->named.host != NULL && sentinel->wait_until_ms < wake)
        wake = sentinel->wait_until_ms;
    for (i = 0; i < sentinel->url->n_sentinels; i++) {
        const struct watcher *watcher = &sentinel->watcher[i];

        if (watcher->state == RLOCK_PENDING && conn_wake_ms(&watcher->conn) < wake)
            wake = conn_wake_ms(&watcher->conn);
    }
    return wake;
}

/*
 * Reads a Sentinel's error reply. A refused password or a missing permission stays RLOCK_E_REFUSED;
 * after any other error the Sentinel counts as unreachable.
 */
static enum rlock_status read_error(const char *reply, const char *password,
                                    struct rlock_error *err)
{
    enum error_reply kind;
    enum rlock_status st = error_reply_read(reply, password, &kind, err);

    if (reason_is_login(err->reason))
        err_set_reason(err, RLOCK_REASON_SENTINEL_LOGIN);
    if (st == RLOCK_E_REFUSED)
        return st;
    err->status = RLOCK_E_UNREACHABLE;
    err_prefix(err, "Sentinel");
    return RLOCK_E_UNREACHABLE;
}

/* Reads the reply: {host, port}; nil: this Sentinel doesn't know the service. */
static enum rlock_status read_answer(const struct sentinel *sentinel, const struct conn *conn,
                                     const struct resp_value *reply, struct url *to,
                                     struct rlock_error *err)
{
    size_t n;
    const char *host = resp_string(resp_array_at(reply, 0), &n);
    const char *port = resp_string(resp_array_at(reply, 1), &n);

    if (resp_error(reply) != NULL)
        return read_error(resp_error(reply), conn_password(conn), err);
    if (resp_is_nil(reply))
        return err_set(
            err, RLOCK_E_UNSUPPORTED, 0,
            "the Sentinel doesn't know this service; SENTINEL MASTERS lists those that it knows");
    if (host == NULL || port == NULL)
        return err_set(err, RLOCK_E_PROTOCOL, 0,
                       "unexpected reply to a question for Sentinels; name Sentinels in the URL");
    return url_at(to, sentinel->url, host, NULL, port, err);
}

/* Continues to ask one Sentinel. RLOCK_OK: the reply names another server than sentinel->wrong. */
static enum rlock_status step(struct sentinel *sentinel, struct watcher *watcher, struct url *to)
{
    const struct resp_value *reply = NULL;
    struct url named = {.host = NULL};
    enum rlock_status st = conn_step(&watcher->conn, &reply, &watcher->err);

    if (st == RLOCK_OK)
        st = read_answer(sentinel, &watcher->conn, reply, &named, &watcher->err);
    else if (st > RLOCK_PENDING && reason_is_login(watcher->err.reason))
        err_set_reason(&watcher->err, RLOCK_REASON_SENTINEL_LOGIN);
    watcher->state = st;
    if (st != RLOCK_OK)
        return st;
    if (!url_is_same(&named, &sentinel->wrong)) {
        url_move(to, &named);
        return RLOCK_OK;
    }
    url_fini(&sentinel->named);
    url_move(&sentinel->named, &named);
    return RLOCK_PENDING;
}

/* Can only the user mend the fault, such as a wrong password or an untrusted certificate? */
static bool needs_user(const struct watcher *watcher)
{
    return watcher->state == RLOCK_E_REFUSED || watcher->state == RLOCK_E_CONFIG;
}

/* Reports why no Sentinel has named a primary, by the most helpful of the Sentinels' faults. */
static enum rlock_status fault(const struct sentinel *sentinel, struct rlock_error *err)
{
    const struct watcher *worst = &sentinel->watcher[0];
    enum rlock_status st;
    size_t i;

    /* report "doesn't know the service" only if all Sentinels say so: the others might know it */
    for (i = 1; i < sentinel->url->n_sentinels; i++)
        if (worst->state == RLOCK_E_UNSUPPORTED && sentinel->watcher[i].state != worst->state)
            worst = &sentinel->watcher[i];
    /* prefer a fault that the user must mend to one that may pass by itself */
    for (i = 0; i < sentinel->url->n_sentinels; i++)
        if (needs_user(&sentinel->watcher[i]) && !needs_user(worst))
            worst = &sentinel->watcher[i];
    if (worst->state == RLOCK_PENDING)
        err_set(err, RLOCK_E_UNREACHABLE, 0, "%s", conn_timeout_text(&worst->conn));
    else if (worst->state == RLOCK_OK)
        err_set(err, RLOCK_E_UNREACHABLE, 0, "names a primary that has failed");
    else if (err != NULL)
        *err = worst->err;
    err_prefix(err, worst->conn.url->shown);
    st = worst->state == RLOCK_E_UNSUPPORTED || needs_user(worst) ? worst->state
                                                                  : RLOCK_E_UNREACHABLE;
    return st;
}

enum rlock_status sentinel_locate(struct sentinel *sentinel, struct url *to,
                                  struct rlock_error *err)
{
    enum rlock_status st = RLOCK_PENDING;
    int64_t now = rlock_clock_ms();
    bool is_waiting = false;
    size_t i;

    for (i = 0; st != RLOCK_OK && i < sentinel->url->n_sentinels; i++) {
        struct watcher *watcher = &sentinel->watcher[i];

        if (watcher->state == RLOCK_PENDING)
            st = step(sentinel, watcher, to);
        is_waiting = is_waiting || watcher->state == RLOCK_PENDING;
    }
    if (st == RLOCK_OK) {
        sentinel_stop(sentinel);
        return st;
    }
    if (sentinel->named.host != NULL && (!is_waiting || now >= sentinel->wait_until_ms)) {
        url_move(to, &sentinel->named);
        sentinel_stop(sentinel);
        return RLOCK_OK;
    }
    if (is_waiting && now < sentinel->deadline_ms)
        return RLOCK_PENDING;
    st = fault(sentinel, err);
    sentinel_stop(sentinel);
    if (err != NULL)
        err->status = st;
    return st;
}

void sentinel_avoid(struct sentinel *sentinel, const struct url *wrong)
{
    url_fini(&sentinel->wrong);
    (void)!url_copy(&sentinel->wrong, wrong, NULL);
}
