/* SPDX-License-Identifier: MIT */
/* renewals: what the renewer's thread reports, received and told to people. */
#ifndef RENEWALS_H
#define RENEWALS_H

#include "output/report.h"

/* Written by renewals.c only. */
struct renewals {
    struct rlock *lock;          /* borrowed */
    const struct report *report; /* borrowed */
    int events;                  /* readable when there is an event; -1: no renewer runs */
    char trouble[256];           /* why the last renewal failed; "": it did not fail */
};

/* renewals_init: no renewer runs yet. */
void renewals_init(struct renewals *renewals, struct rlock *lock, const struct report *report);

/* renewals_start: start the renewer. No process may be forked before renewals_stop(). */
enum rlock_status renewals_start(struct renewals *renewals, struct rlock_error *err);

/* renewals_stop: end the renewer, if one runs. Blocks until its thread has ended. */
void renewals_stop(struct renewals *renewals);

/* renewals_next: the next event, if there is one. Never blocks. */
bool renewals_next(const struct renewals *renewals, struct rlock_event *event);

/*
 * renewals_say: tell of a renewal that was confirmed or that failed. To be called after the event
 * was acted upon: a message may have to wait for whoever reads stderr.
 */
void renewals_say(struct renewals *renewals, const struct rlock_event *event);

/* renewals_missing: "no renewal was confirmed in time", why, and `more`, as text. */
void renewals_missing(const struct renewals *renewals, const char *more, char *why, size_t room);

#endif
