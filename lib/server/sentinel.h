/* SPDX-License-Identifier: MIT */
/* sentinel: which server is the primary, as Sentinels say. */
#ifndef SENTINEL_H
#define SENTINEL_H

#include "wire/conn.h"

#include <poll.h>

/* Some Sentinels, and how they answer. They are told their own user and password, if any. */
struct sentinel {
    const struct url *url;                   /* borrowed */
    const char *password;                    /* borrowed; NULL: none, or one that is looked up */
    struct password_source *password_source; /* borrowed; NULL: no password is looked up */
    struct tls_context *tls;                 /* borrowed; for rediss+sentinel:// */
    struct watcher *watcher;
    char *question;
    size_t question_bytes;
    struct url wrong; /* the address that was found to be no primary; host NULL: none */
    struct url named; /* the same, named again: believed when nobody names another */
    int64_t deadline_ms;
    int64_t patience_ms; /* when `named` is believed */
    bool is_asking;
};

enum rlock_status sentinel_open(struct sentinel *sentinel, const struct url *url,
                                struct rlock_error *err);
void sentinel_close(struct sentinel *sentinel);

/* sentinel_set_password: the password for them, or what looks it up; borrowed; NULL: none. */
void sentinel_set_password(struct sentinel *sentinel, const char *password,
                           struct password_source *password_source);

/* sentinel_clear_password: as conn_clear_password. */
void sentinel_clear_password(struct sentinel *sentinel);

/* sentinel_ask: begin to ask all of them, until a moment at the latest. */
void sentinel_ask(struct sentinel *sentinel, int64_t deadline_ms);

/* What the answers wait for: descriptors (returns how many), and a time to look again. */
size_t sentinel_watch(const struct sentinel *sentinel, struct pollfd *watch);
int64_t sentinel_wake_ms(const struct sentinel *sentinel);

/*
 * sentinel_locate: go on. RLOCK_OK (`*to` is the caller's), RLOCK_PENDING or a
 * fault; but for RLOCK_PENDING nobody is being asked any more.
 */
enum rlock_status sentinel_locate(struct sentinel *sentinel, struct url *to,
                                  struct rlock_error *err);

/* sentinel_redirect: `wrong` is not the primary, or is gone: whoever names another is preferred. */
void sentinel_redirect(struct sentinel *sentinel, const struct url *wrong);

/* sentinel_stop: ask no more. */
void sentinel_stop(struct sentinel *sentinel);

#endif
