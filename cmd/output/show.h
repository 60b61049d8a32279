/* SPDX-License-Identifier: MIT */
/* show: the state of a lock, as text for people or JSON for programs. */
#ifndef SHOW_H
#define SHOW_H

#include "output/outbuf.h"
#include "output/terminal.h"

#include <rlock_admin.h>

/* One lock and its waiters, while the library shows them one by one. */
struct shown {
    bool as_json;
    const struct terminal *terminal;
    struct outbuf lock;
    struct outbuf waiters;
    size_t n_waiters;
    struct outbuf identity; /* names the holders and waiters, without times: it is the same as
                               long as nobody comes or goes */
};

/* show_init: an empty one. It borrows the terminal. */
void show_init(struct shown *shown, bool as_json, const struct terminal *terminal);

/* show_clear: forget the lock and the waiters, also `identity`, before they are shown again. */
void show_clear(struct shown *shown);

/* show_lock, show_waiter: for a struct rlock_visitor whose context is a struct shown. */
void show_lock(void *shown, const struct rlock_view *view);
void show_waiter(void *shown, const struct rlock_party *waiter);

/* show_end: append the lock and its waiters to `out`; only `identity` stays. */
void show_end(struct shown *shown, struct outbuf *out);

void show_fini(struct shown *shown);

/* show_as_row: one line for a table, without the key. show_as_json: one object, with the key. */
void show_as_row(struct outbuf *out, const struct rlock_view *view);
void show_as_json(struct outbuf *out, const struct rlock_view *view);

/* The headings of the columns of show_as_row(). */
#define SHOW_HEADINGS "MODE       LEFT      WAITING  HELD FOR  HOLDER"

/* show_key: a key as printable ASCII, on a terminal cut to 64 columns. Heap; NULL: no memory. */
char *show_key(const char *key, const struct terminal *terminal);

#endif
