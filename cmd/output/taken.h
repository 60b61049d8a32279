/* SPDX-License-Identifier: MIT */
/* taken: says why a lock is not free: who holds it, or why it is taken without a holder. */
#ifndef TAKEN_H
#define TAKEN_H

#include "output/report.h"

#include <rlock.h>

#define TAKEN_BYTES 480

/* A lock that is not free, as a server has reported it. */
struct taken {
    enum rlock_seen seen;
    const struct rlock_party *party; /* whom taken_role() names, mostly the holder; borrowed */
    int64_t left_ms;                 /* until the lock's key expires; below 0: never */
    int64_t age_ms;                  /* how long ago the server has reported the lock */
};

/* taken_of_obstacle: describe an obstacle, which must live as long as the result. */
struct taken taken_of_obstacle(const struct rlock_obstacle *obstacle, int64_t now_ms);

/*
 * taken_of_view: describe a lock that rlock_inspect() has reported, and that is not free. If the
 * lock has several holders, `party` is the first of them.
 */
struct taken taken_of_view(const struct rlock_view *view);

/*
 * taken_text: describe the lock for people, such as "held for 3m41s by tar of backup@web1, pid
 * 4711; renewed 4s ago" or "held for 3m41s by ann on build1 (incident 42), until 18:00:00"; if
 * nobody holds the lock, such as "marked as done ...".
 */
void taken_text(char out[TAKEN_BYTES], const struct taken *taken);

/*
 * taken_row: describe the lock in few words: how long the lease, or a person's hold, still lasts,
 * and for whom or what: "18s left, for tar of backup@web1, pid 4711".
 */
void taken_row(char *out, size_t room, const struct taken *taken);

/* taken_add_facts: add the members `mode`, the party and `left_ms` to a message, for programs. */
void taken_add_facts(struct message *message, const struct taken *taken);

/* taken_mode: the word for the state of a lock in JSON: "exclusive", "done" and so on. */
const char *taken_mode(enum rlock_seen seen);

/* taken_role: what `party` is to the lock, as JSON names it: "holder", "done_by" and so on. */
const char *taken_role(enum rlock_seen seen);

#endif
