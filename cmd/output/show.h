/* SPDX-License-Identifier: MIT */
/* show: how a lock looks, as text for people or JSON for programs. */
#ifndef SHOW_H
#define SHOW_H

#include "output/outbuf.h"
#include "output/terminal.h"

#include <rlock_admin.h>

/* One lock with those who wait for it, as it is put together. Zero is the beginning. */
struct shown {
    bool as_json;
    const struct terminal *terminal;
    struct outbuf lock;
    struct outbuf waiters;
    size_t n_waiters;
    struct outbuf known_by; /* what is to be the same for as long as nothing happens */
};

/* show_lock, show_waiter: of a struct rlock_visitor, with a struct shown for context. */
void show_lock(void *shown, const struct rlock_view *view);
void show_waiter(void *shown, const struct rlock_party *waiter);

/* show_end: all of it, to the end of the page; `known_by` is left. */
void show_end(struct shown *shown, struct outbuf *page);

void show_fini(struct shown *shown);

/* show_as_row: a lock in one line, without its key; as JSON with it. */
void show_as_row(struct outbuf *page, const struct rlock_view *view);
void show_as_json(struct outbuf *page, const struct rlock_view *view);

/* The headings of such rows. */
#define SHOW_HEADINGS "MODE       LEFT      WAITING  HELD FOR  HOLDER"

/* show_key: a key for people, cut where it would fill a terminal. Heap; NULL: no memory. */
char *show_key(const char *key, const struct terminal *terminal);

#endif
