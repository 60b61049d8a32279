/* SPDX-License-Identifier: MIT */
/*
 * session: what a verb needs for its lock: the messages, the server, the library's handle.
 *
 *     session_init           fill it from the options; it can report from now on
 *     session_open_signals   only for verbs that wait or start processes
 *     session_open           password, private server, handle
 *     session_acquire        wait for the lock
 *     session_close
 *
 * What fails in any of these is reported by them, and returned as the reason to exit with.
 */
#ifndef SESSION_H
#define SESSION_H

#include "options/options.h"
#include "output/progress.h"
#include "output/report.h"
#include "process/signals.h"
#include "session/password_lookup.h"
#include "session/private_server.h"

#include <rlock_admin.h>

/* What a verb does besides while the lock is waited for; each may be NULL. None of them blocks. */
struct session_hooks {
    /* The lock is not free: the obstacle is what stands in the way. NULL: the wait has ended. */
    void (*blocked)(void *context, const struct rlock_obstacle *obstacle);
    /* The request for the lock was sent, and its reply is on the way. */
    void (*asked)(void *context);
    /* No server was reached; it is tried again soon. */
    void (*unreached)(void *context);
    void *context;
};

struct session {
    const struct options *options; /* borrowed */
    struct report report;
    struct progress progress;
    const struct session_hooks *hooks; /* borrowed during session_acquire(); NULL: none */
    struct signals signals;            /* fd -1: not open, signals have their default actions */
    int interrupted_by;                /* the signal that ended the wait; 0: none */
    struct private_server
        private_server; /* the private server of -u local:, fd -1: another server is used */
    struct password_helper password_helper; /* looks up the password of the Redis servers */
    struct password_helper sentinel_password_helper;
    bool has_sentinel_password;
    struct rlock_timing timing;
    struct rlock *lock;    /* NULL: not open */
    const char *token;     /* of a lease that exists (renew, release); NULL: it is to be granted */
    char *token_from_file; /* heap: what `token` points to, if it was read from a file */
    pid_t holder_pid;      /* the process that others see as the holder; ours by default */
    bool has_renewer;      /* a process stays behind that renews (acquire --bind-pid) */
    char *keys_shown;      /* heap: all keys, for messages; NULL: there is one, or no memory */
};

/* session_init: nothing is open yet, and nothing can fail. The options are borrowed. */
void session_init(struct session *session, const struct options *options);

/* session_open_signals: block the signals that rlock handles. REASON_GRANTED, or reported. */
enum exit_reason session_open_signals(struct session *session);

/*
 * session_set_holder: which process the lock is for, if not for this one, and whether a process
 * stays behind that renews it. Before session_open().
 */
void session_set_holder(struct session *session, pid_t holder_pid, bool has_renewer);

/*
 * session_open: find the password, start what looks passwords up, start or join the private server
 * of -u local:, and open the handle. No request is sent to the server yet. `program` is the name
 * that others see beside the lock.
 *
 * Returns  REASON_GRANTED, REASON_INTERRUPTED (`interrupted_by`), or what was reported.
 * Blocks   only for the private server, as long as the wait for the lock may last.
 */
enum exit_reason session_open(struct session *session, const char *program);

/*
 * session_with_token: carry out a verb on a lease that exists: open a session for the lease whose
 * token is in a file or in RLOCK_TOKEN, call `act`, close the session. Returns the exit status.
 */
typedef enum exit_reason session_act(const struct session *session);
int session_with_token(const struct options *options, session_act *act);

/*
 * session_acquire: ask for the lock, and wait for it as long as the options allow.
 *
 *   hooks          called meanwhile; NULL: none
 *   grant          out, on REASON_GRANTED only
 *   granted_at_ms  out, always: when the answer came, on rlock_clock_ms()
 *
 * Returns  REASON_GRANTED, REASON_INTERRUPTED (`interrupted_by`), or what was reported.
 */
enum exit_reason session_acquire(struct session *session, const struct session_hooks *hooks,
                                 struct rlock_grant *grant, int64_t *granted_at_ms);

/*
 * session_is_interrupted: take all signals received so far. If one of them stops rlock, rlock stops
 * in this call. True if one of them ends rlock; `interrupted_by` is that signal.
 */
bool session_is_interrupted(struct session *session);

/* session_fault: report what the library could not do, and what helps; returns the reason. */
enum exit_reason session_fault(const struct session *session, const struct rlock_error *err);

/* session_deadline: returns the deadline of a single request: --connect-timeout from now. */
struct rlock_deadline session_deadline(const struct session *session);

/* session_status: the exit status; 0 for REASON_GRANTED, --conflict-exit-code where it is 75. */
int session_status(const struct session *session, enum exit_reason reason);

/* session_quiet_helpers: what a --password-command prints to stderr goes to /dev/null from now. */
void session_quiet_helpers(const struct session *session);

/* session_disown: a process forked from this one uses the password helpers: leave them running. */
void session_disown(struct session *session);

/* session_close: close connections and end the helpers. The lease is not released. */
void session_close(struct session *session);

#endif
