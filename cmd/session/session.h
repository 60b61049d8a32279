/* SPDX-License-Identifier: MIT */
/* session: the lock that the options name, on its server. */
#ifndef SESSION_H
#define SESSION_H

#include "options/options.h"
#include "output/progress.h"
#include "output/report.h"
#include "process/signals.h"
#include "session/local.h"
#include "session/password_lookup.h"

struct session {
    const struct options *options; /* borrowed */
    struct report report;
    struct progress progress;
    struct rlock_watch watch; /* for the lock, from the start that of `progress` */
    struct signals signals;   /* fd -1: they do what they always do */
    int number;               /* of the signal that ended the wait; 0: none */
    struct local local;
    struct password_helper password_helper;
    struct password_helper sentinel_password_helper;
    bool has_sentinel_password;
    struct rlock_timing timing;
    struct rlock *lock; /* NULL: not open */
    const char *token;  /* of the lease that it is about; NULL: of one that is to be granted */
    pid_t pid;          /* of who holds it, as others see it; ours where nobody says else */
    bool has_renewer;   /* others may give it back by its token, and somebody wants to know */
    char *keys_shown;   /* of several keys; NULL: there is one, or no memory */
};

/* session_init: a session that can speak, and has nothing open. */
void session_init(struct session *session, const struct options *options);

/*
 * session_open: everything that can be wrong before the server is asked; it is
 * asked for nothing. `program` is the name that others see beside the lock.
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED (`number`), or a fault.
 */
enum rlock_status session_open(struct session *session, const char *program,
                               struct rlock_error *err);

/* session_give_up: say what failed and what can be done; how that is called. */
enum exit_reason session_give_up(const struct session *session, const struct rlock_error *err);

/* session_status: the exit status for how it ended; of a grant, where all is well, 0. */
int session_status(const struct session *session, enum exit_reason reason);

/* session_leave: another process, forked from this one, goes on with it. */
void session_leave(struct session *session);

/* session_hand_over: the same, and the processes that look passwords up let go of our stderr. */
void session_hand_over(struct session *session);

/* session_close: give up the connections; gives no lease back. */
void session_close(struct session *session);

#endif
