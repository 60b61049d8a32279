/* SPDX-License-Identifier: MIT */
/* show: the state of a lock, and doctor's grades, as text for people or JSON for programs. */
#ifndef SHOW_H
#define SHOW_H

#include "output/outbuf.h"
#include "output/terminal.h"

#include <rlock_admin.h>

/* The word and the colour of each enum rlock_grade. */
extern const struct grade {
    const char *word;
    enum colour colour;
} grade_table[RLOCK_GRADE_UNSAFE + 1];

/* One lock and its waiters. The library passes them one by one to show_lock() and show_waiter(). */
struct shown {
    bool as_json;
    const struct terminal *terminal;
    struct outbuf lock;
    struct outbuf waiters;
    size_t n_waiters;
    /* The keys, and who holds and waits. If this text is the same as at the reading before, no
     * holder or waiter has come or gone (--watch). */
    struct outbuf identity;
};

/* show_init: make the struct empty. The terminal is borrowed. */
void show_init(struct shown *shown, bool as_json, const struct terminal *terminal);

/* show_clear: empty the struct, also `identity`. */
void show_clear(struct shown *shown);

/* show_lock, show_waiter: functions for a struct rlock_visitor whose context is a struct shown. */
void show_lock(void *shown, const struct rlock_view *view);
void show_waiter(void *shown, const struct rlock_party *waiter);

/* show_end: append the lock and its waiters to `out`, and clear the struct, but not `identity`. */
void show_end(struct shown *shown, struct outbuf *out);

void show_fini(struct shown *shown);

/*
 * show_as_row: append the cells of a row of a table, separated by tabs: the lock's mode, the time
 * left, the number of waiters, for how long the lock has been held, and the holder. show_as_json:
 * append one object, with the key.
 */
void show_as_row(struct outbuf *out, const struct rlock_view *view);
void show_as_json(struct outbuf *out, const struct rlock_view *view);

/* show_key: append the key as text that a terminal can print, cut to columns; SIZE_MAX: whole. */
void show_key(struct outbuf *out, const char *key, size_t columns);

#endif
