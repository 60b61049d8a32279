/* SPDX-License-Identifier: MIT */
/* seen: calls that look at locks, of a scripted server (server.h), and what they tell a visitor. */
#ifndef SEEN_H
#define SEEN_H

#include "server.h"
#include "tap.h"

#include <rlock_admin.h>

static struct {
    int n_locks;
    struct rlock_view view;    /* of the last lock; its pointers are not valid after the callback */
    struct rlock_party holder; /* its first one */
    struct rlock_party waiter; /* the last one; its host is not valid after the callback */
    char name[64];             /* view->name of the last lock */
    char text[512];            /* the keys of the locks and the hosts of holders and waiters */
    char value[128];           /* view->value of the last lock; "": NULL */
    char other[256];           /* the host in view->other of the last lock */
    char wrong[400];           /* view->wrong of the last lock */
    char fault[512];           /* the text of the error */
    char last[300];            /* the words of the last request */
    int n_requests;            /* commands that the server has read */
} seen;                        /* by the last call */

static inline void see_lock(void *context, const struct rlock_view *view)
{
    (void)context;
    seen.n_locks++;
    seen.view = *view;
    snprintf(seen.name, sizeof seen.name, "%s", view->name);
    snprintf(seen.wrong, sizeof seen.wrong, "%s", view->wrong);
    snprintf(seen.value, sizeof seen.value, "%s", view->value != NULL ? view->value : "");
    snprintf(seen.other, sizeof seen.other, "%s", view->other != NULL ? view->other->host : "");
    strcat(strcat(seen.text, view->key), " ");
    if (view->n_holders > 0) {
        seen.holder = view->holders[0];
        strcat(strcat(seen.text, view->holders[0].host), " ");
    }
}

static inline void see_waiter(void *context, const struct rlock_party *waiter)
{
    (void)context;
    seen.waiter = *waiter;
    strcat(strcat(seen.text, waiter->host), " ");
}

static inline void see_last_end(void *context, const char *key, const struct rlock_last_end *end)
{
    char text[80];

    (void)context;
    snprintf(text, sizeof text, "%s:%lld:%d%s ", key, (long long)end->ended_ms, end->status,
             end->is_lost ? ":lost" : "");
    strcat(seen.text, text);
}

enum call { INSPECT, LIST, LIST_ENDS, BREAK };

/*
 * Makes one call about the lock k to a server that sends these replies, one to each command. `name`
 * is the name of the value to break, or the pattern of the locks to list.
 */
static inline enum rlock_status see(enum call what, enum rlock_scripts scripts,
                                    const char *const *answers, const char *name)
{
    struct server server = {.answers = {[ASKED_OTHER] = answers}};
    struct rlock_visitor visitor = {.on_lock = see_lock,
                                    .on_waiter = what == LIST_ENDS ? NULL : see_waiter,
                                    .on_last_end = what == LIST_ENDS ? see_last_end : NULL};
    struct rlock_error err = {.text = ""};
    const struct rlock_config config = {.scripts = scripts, .timing = {.reply_ms = 10000}};
    enum rlock_status st = RLOCK_E_SYSTEM;
    struct rlock *lock = NULL;

    memset(&seen, 0, sizeof seen);
    if (server_open(&server, config, &lock, &err) == RLOCK_OK) {
        if (what == INSPECT)
            st = rlock_inspect(lock, "k", in(20000), &visitor, &err);
        else if (what == BREAK)
            st = rlock_break(lock, "k", name, in(20000), &err);
        else
            st = rlock_list(lock, name, in(20000), &visitor, &err);
    }
    okf((st >= RLOCK_E_USAGE) == (err.text[0] != '\0'),
        "a fault has a text, and nothing else has: \"%s\"", err.text);
    snprintf(seen.fault, sizeof seen.fault, "%s", err.text);
    seen.n_requests = atomic_load(&server.n_log);
    if (seen.n_requests > 0)
        snprintf(seen.last, sizeof seen.last, "%s", server.log[seen.n_requests - 1].text);
    rlock_close(lock);
    server_stop(&server);
    return st;
}

#endif
