/* SPDX-License-Identifier: MIT */
/* renewer_client: starts the renewer's thread, receives its events and reports them to the user. */
#ifndef RENEWER_CLIENT_H
#define RENEWER_CLIENT_H

#include "output/report.h"

/* Only renewer_client.c writes the fields. */
struct renewer_client {
    struct rlock *lock;          /* borrowed */
    const struct report *report; /* borrowed */
    int events;        /* readable when the thread has sent an event; -1: no thread runs */
    char trouble[512]; /* why the last renewal failed; "": it succeeded */
};

/* renewer_client_init: the thread is not started yet. */
void renewer_client_init(struct renewer_client *renewer, struct rlock *lock,
                         const struct report *report);

/*
 * renewer_client_start: start the thread. Until renewer_client_stop() the caller must not fork, as
 * the child would have no thread, but locks and connections that the thread was using.
 */
enum rlock_status renewer_client_start(struct renewer_client *renewer, struct rlock_error *err);

/* renewer_client_stop: end the thread, if it runs. Blocks until the thread has ended. */
void renewer_client_stop(struct renewer_client *renewer);

/* renewer_client_next_event: read the thread's next event. False: there is none. Never blocks. */
bool renewer_client_next_event(const struct renewer_client *renewer, struct rlock_event *event);

/*
 * renewer_client_report: report a confirmed or failed renewal. Act upon the event before this call,
 * which may block for 200 ms on stderr.
 */
void renewer_client_report(struct renewer_client *renewer, const struct rlock_event *event);

/*
 * renewer_client_overdue_text: write the text "no renewal was confirmed in time" to `text`,
 * followed by the error of the last renewal, if it failed, and by `more`.
 */
void renewer_client_overdue_text(const struct renewer_client *renewer, const char *more, char *text,
                                 size_t room);

#endif
