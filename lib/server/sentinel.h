/* SPDX-License-Identifier: MIT */
/* sentinel: asks Sentinels which server is the primary. */
#ifndef SENTINEL_H
#define SENTINEL_H

#include "wire/conn.h"

#include <poll.h>

/* All Sentinels of a URL, whose user and password may differ from those of the primary. */
struct sentinel {
    const struct url *url;         /* names the Sentinels; borrowed */
    struct conn_settings settings; /* of the connections to the Sentinels */
    struct watcher *watcher;       /* one for each Sentinel of the URL */
    char *question;                /* the encoded request, the same for all Sentinels */
    size_t question_bytes;
    struct url wrong;    /* the server that was found to be down or no primary; host NULL: none */
    struct url named;    /* the server `wrong`, if a Sentinel has named it again; else host NULL */
    int64_t deadline_ms; /* when sentinel_locate() gives up */
    int64_t wait_until_ms; /* when `named` is returned, even if other Sentinels have not replied */
    bool is_asking;        /* requests to Sentinels are pending */
};

enum rlock_status sentinel_init(struct sentinel *sentinel, const struct url *url,
                                struct rlock_error *err);
void sentinel_fini(struct sentinel *sentinel);

/* sentinel_set_password: set the password for the Sentinels, or its source; borrowed, or NULL. */
void sentinel_set_password(struct sentinel *sentinel, const char *password,
                           struct password_source *password_source);

/* sentinel_set_tls: set the TLS context, which is borrowed; rediss+sentinel:// needs one. */
void sentinel_set_tls(struct sentinel *sentinel, struct tls_context *tls);

/* sentinel_clear_passwords: as conn_clear_password(), for the connections to all Sentinels. */
void sentinel_clear_passwords(struct sentinel *sentinel);

/* sentinel_ask: begin to ask all Sentinels at once; `deadline_ms` is on rlock_clock_ms(). */
void sentinel_ask(struct sentinel *sentinel, int64_t deadline_ms);

/*
 * The caller calls sentinel_locate() when poll(2) reports an event of a descriptor in `watch`, or
 * at the time of sentinel_wake_ms(), on rlock_clock_ms(). sentinel_watch() fills at most
 * URL_SENTINELS_MAX entries of `watch`, and returns how many.
 */
size_t sentinel_watch(const struct sentinel *sentinel, struct pollfd *watch);
int64_t sentinel_wake_ms(const struct sentinel *sentinel);

/*
 * sentinel_locate: continue to ask. Returns RLOCK_OK (the primary is `*to`, which the caller frees
 * with url_fini()), RLOCK_PENDING, or a fault. After RLOCK_OK and a fault no request is pending.
 */
enum rlock_status sentinel_locate(struct sentinel *sentinel, struct url *to,
                                  struct rlock_error *err);

/* sentinel_avoid: prefer replies that don't name `wrong`, which is down or no primary. */
void sentinel_avoid(struct sentinel *sentinel, const struct url *wrong);

/* sentinel_stop: abandon all requests. */
void sentinel_stop(struct sentinel *sentinel);

#endif
