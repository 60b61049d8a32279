/* SPDX-License-Identifier: MIT */
/* watch: when to tell what is in the way of a lock, and to whom. */
#ifndef WATCH_H
#define WATCH_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

struct watch {
    struct rlock_observer by;
    struct rlock_hooks hooks;
    const struct rlock_obstacle *obstacle; /* borrowed; NULL: nothing was seen yet */
    int64_t next_ms;                       /* when to tell again; RLOCK_NEVER: after a look only */
    bool has_warned;
};

/* Each takes NULL for a watch: nobody is told. */

/* watch_see: tell what a look has shown; NULL: the wait is over. */
void watch_see(struct watch *watch, const struct rlock_obstacle *obstacle);

/* watch_asked: tell that the lock was asked for. */
void watch_asked(const struct watch *watch);

/* watch_unreached: tell that a server was not reached, and is tried again soon. */
void watch_unreached(const struct watch *watch);

/* watch_warn: tell what is wrong though nothing has failed, once. */
void watch_warn(struct watch *watch, const char *text);

/* watch_tick: tell what was seen last once more, if it is time to. */
void watch_tick(struct watch *watch);

/* watch_wake_ms: the earlier of a moment and the next tick. */
int64_t watch_wake_ms(const struct watch *watch, int64_t at_ms);

/* watch_hooks: how a quorum tells a watch; borrowed for as long as they are set. */
struct quorum_hooks watch_hooks(struct watch *watch);

#endif
