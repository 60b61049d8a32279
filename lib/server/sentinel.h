/* SPDX-License-Identifier: MIT */
/* sentinel: ask Sentinels which server is the primary. */
#ifndef SENTINEL_H
#define SENTINEL_H

#include "wire/conn.h"

#include <poll.h>

/* All Sentinels of a URL. They may have another user and password than the primary. */
struct sentinel {
    const struct url *url;         /* borrowed */
    struct conn_settings settings; /* of the connections to the Sentinels */
    struct watcher *watcher;       /* one for each Sentinel of the URL */
    char *question;                /* the encoded request, the same to all */
    size_t question_bytes;
    struct url wrong; /* the server that is no primary, or is gone; host NULL: none */
    struct url named; /* named again though it is `wrong`: the last resort */
    int64_t deadline_ms;
    int64_t patience_ms; /* when `named` is taken, though Sentinels are still to answer */
    bool is_asking;
};

enum rlock_status sentinel_init(struct sentinel *sentinel, const struct url *url,
                                struct rlock_error *err);
void sentinel_fini(struct sentinel *sentinel);

/* sentinel_set_password: what Sentinels are sent; both are borrowed, and may be NULL. */
void sentinel_set_password(struct sentinel *sentinel, const char *password,
                           struct password_source *password_source);

/* sentinel_set_tls: needed for rediss+sentinel:// before sentinel_ask(); borrowed. */
void sentinel_set_tls(struct sentinel *sentinel, struct tls_context *tls);

/* sentinel_clear_passwords: as conn_clear_password(), of everything here. */
void sentinel_clear_passwords(struct sentinel *sentinel);

/* sentinel_ask: begin to ask all Sentinels at once; `deadline_ms` is on rlock_clock_ms(). */
void sentinel_ask(struct sentinel *sentinel, int64_t deadline_ms);

/* What is waited for: descriptors (URL_SENTINELS_MAX at most; returns how many), and a time. */
size_t sentinel_watch(const struct sentinel *sentinel, struct pollfd *watch);
int64_t sentinel_wake_ms(const struct sentinel *sentinel);

/*
 * sentinel_locate: go on asking. RLOCK_OK (the primary is `*to`, which the caller frees with
 * url_fini()), RLOCK_PENDING, or a fault. But for RLOCK_PENDING all requests have ended.
 */
enum rlock_status sentinel_locate(struct sentinel *sentinel, struct url *to,
                                  struct rlock_error *err);

/* sentinel_redirect: `wrong` is no primary, or is gone: prefer a Sentinel that names another. */
void sentinel_redirect(struct sentinel *sentinel, const struct url *wrong);

/* sentinel_stop: abandon all requests. */
void sentinel_stop(struct sentinel *sentinel);

#endif
