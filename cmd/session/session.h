/* SPDX-License-Identifier: MIT */
/*
 * session: what a verb needs for its lock: the messages, the server, the library's handle.
 *
 * A verb makes these calls, in this order:
 *
 *     session_init           store the options; from now on the verb can write messages
 *     session_open_signals   block signals; only for a verb that waits or starts processes
 *     session_open           find the password, start the private server, open the handle
 *     session_acquire        wait for the lock; only for a verb that acquires one
 *     session_close
 *
 * A function that returns an enum exit_reason has reported it, unless it is REASON_GRANTED or
 * REASON_INTERRUPTED.
 */
#ifndef SESSION_H
#define SESSION_H

#include "options/options.h"
#include "output/progress.h"
#include "output/report.h"
#include "output/service_status.h"
#include "process/signals.h"
#include "session/credentials.h"
#include "session/event_hook.h"
#include "session/holds.h"
#include "session/password_lookup.h"
#include "session/private_server.h"
#include "session/same_server.h"
#include "wire/url.h"

#include <rlock_admin.h>

struct session {
    const struct options *options; /* borrowed */
    struct report report;
    struct progress progress;
    struct service_status service_status;
    struct rlock_observer observer;         /* the verb's, while session_acquire() waits */
    struct signals signals;                 /* fd -1: signals aren't blocked, and act by default */
    int interrupted_by;                     /* the signal that ends rlock before the command runs */
    struct private_server private_server;   /* of -u local:; users_fd -1: no such server is used */
    struct password_helper password_helper; /* looks up the password of the servers */
    struct password_helper sentinel_password_helper;
    struct same_server same_server;
    struct event_hook event_hook; /* runs the command of --on-event; fd -1: there is none */
    char url_place[300]; /* what names the server: "RLOCK_URL"; "": -u, or nothing (the default) */
    char cli_options[URL_CLI_BYTES]; /* options of redis-cli that name the server; "": not known */
    bool has_other_server;   /* rlock has warned: a parent rlock's lock is on another server */
    const char *secret_file; /* borrowed: the file that has the password; NULL: none */
    /* secret_file is the configuration file, and others than its owner may read it */
    bool is_secret_exposed;
    bool has_warned_of_secret;
    struct rlock_timing timing;
    struct rlock *lock;      /* NULL: not open */
    const char *token;       /* the token of the lease to renew or release; NULL: for other verbs */
    char *token_from_file;   /* heap: the token, if --token-file has it; else NULL */
    const char *const *keys; /* the keys of the handle; borrowed from the options */
    size_t n_keys;
    struct holds holds; /* the user's holds of the keys; n 0: there are none, or none are needed */
    int64_t hold_ms;    /* how long a person holds the lock (rlock hold); 0: a process holds it */
    pid_t holder_pid;   /* the process that other rlocks show as the holder; ours by default */
    bool has_renewer;   /* a renew daemon will renew the lease (acquire --bind-pid, hold --renew) */
    char *keys_shown;   /* heap: all keys, for messages; NULL: one key, none, or no memory */
};

/* session_init: fill the session from the options, which are borrowed. Can't fail. */
void session_init(struct session *session, const struct options *options);

/*
 * session_open_signals: block the signals that rlock handles, see signals_open(). Returns
 * REASON_GRANTED, or the reason that was reported.
 */
enum exit_reason session_open_signals(struct session *session);

/*
 * session_set_holder: before session_open(), set what other rlocks show as the holder instead of
 * this process: the process `holder_pid`; or, if `hold_ms` isn't 0, the user, for `hold_ms`.
 * `has_renewer`: a renew daemon will renew the lease.
 */
void session_set_holder(struct session *session, pid_t holder_pid, int64_t hold_ms,
                        bool has_renewer);

/*
 * session_read_holds: read the user's holds of the keys on the server of `credentials`. Returns
 * REASON_GRANTED, or the reason that was reported.
 *
 *   creates  create the directory of the holds if it doesn't exist, as a new hold will be stored
 */
enum exit_reason session_read_holds(struct session *session, const struct credentials *credentials,
                                    bool creates);

/*
 * session_read_credentials: call credentials_read(), which waits for a pipe for --connect-timeout.
 * Returns REASON_GRANTED (the caller calls credentials_fini()), REASON_INTERRUPTED, or the reason
 * that was reported.
 */
enum exit_reason session_read_credentials(struct session *session, struct credentials *credentials);

/*
 * session_open: find the password or start the process that looks it up, start the private server
 * of -u local: if it doesn't run, and open the library's handle. Sends no request to the server
 * yet. `program` is the name of the command, which other rlocks show beside the holder.
 *
 * Returns  REASON_GRANTED, REASON_INTERRUPTED (`interrupted_by` is the signal), or the reason that
 * was reported.
 *
 * Blocks   only for each password file that is a pipe, at most --connect-timeout, and for the
 *          private server, at most as long as rlock may wait for the lock.
 */
enum exit_reason session_open(struct session *session, const char *program);

/*
 * session_open_with: as session_open(), for a caller that has read the credentials itself. The
 * credentials are borrowed; the caller frees them.
 */
enum exit_reason session_open_with(struct session *session, const char *program,
                                   const struct credentials *credentials);

/*
 * session_adopt: open the handle anew, for the lease with this token on these keys; `token` NULL:
 * for a new lease. All pointers are borrowed. The handle then renews the lease as `rlock renew`
 * does. Returns REASON_GRANTED, or the reason that was reported.
 */
enum exit_reason session_adopt(struct session *session, const struct credentials *credentials,
                               const char *token, const char *const *keys, size_t n_keys);

/*
 * session_with_token: carry out a verb on a lease that exists: open a session for the lease whose
 * token is in a file, in RLOCK_TOKEN or in the user's holds, call `act`, close the session. Returns
 * the exit status.
 */
typedef enum exit_reason session_act(struct session *session);
int session_with_token(const struct options *options, session_act *act);

/*
 * session_acquire: request the lock, and wait for it as long as the options allow.
 *
 *   observer       called during the wait, and must not block; NULL: none. Of its functions
 *                  on_warning is not called.
 *   grant          out, on REASON_GRANTED only
 *   granted_at_ms  out, always: when the call ended, on rlock_clock_ms()
 *
 * Returns  REASON_GRANTED, REASON_INTERRUPTED (`interrupted_by` is the signal), or the reason that
 * was reported.
 */
enum exit_reason session_acquire(struct session *session, const struct rlock_observer *observer,
                                 struct rlock_grant *grant, int64_t *granted_at_ms);

/*
 * session_end_hold: remove the files of the user's hold, whose lease has ended. Does nothing if the
 * token is not that of a hold.
 */
void session_end_hold(const struct session *session);

/*
 * session_not_held: report that the token doesn't hold all of the keys, and why; or, if the token
 * is that of a hold, how the hold has ended, and remove its files. Returns REASON_NOT_YOURS.
 */
enum exit_reason session_not_held(const struct session *session, const char *why);

/*
 * session_hold_over_text: write into `why` how a hold has ended that this process didn't end: at
 * the end of its time, or earlier.
 */
#define HOLD_OVER_BYTES 200
void session_hold_over_text(char why[HOLD_OVER_BYTES], const struct hold *hold);

#define SESSION_RELEASE_MS 2000 /* how long rlock tries to release a lock before it exits */

/*
 * session_give_back: release a lock that was granted, but can't be handed out. If that fails,
 * report that the lock stays taken until its TTL ends.
 */
void session_give_back(const struct session *session);

/*
 * session_is_interrupted: read the signals received so far. A signal that stops rlock stops it in
 * this call. True if one of the signals ends rlock; `interrupted_by` is that signal.
 */
bool session_is_interrupted(struct session *session);

/*
 * session_wait_for_stdout: wait until stdout has room for what is written there. A signal ends the
 * wait (REASON_INTERRUPTED), and so does the time `until_ms` on rlock_clock_ms(), at which the
 * lease ends (REASON_LOST, which was reported). Else returns REASON_GRANTED.
 */
enum exit_reason session_wait_for_stdout(struct session *session, int64_t until_ms);

/*
 * session_fault: report an error of the library, with a hint where one is known. Returns the reason
 * with which rlock exits.
 */
enum exit_reason session_fault(const struct session *session, const struct rlock_error *err);

/*
 * session_deadline: returns the deadline of a single request: --connect-timeout from now. A verb
 * that sends several requests passes deadline_never instead: then the library limits each request.
 */
struct rlock_deadline session_deadline(const struct session *session);

/*
 * session_status: the exit status for a reason: 0 for REASON_GRANTED, 128 plus the signal for
 * REASON_INTERRUPTED, and --conflict-exit-code instead of 75.
 */
int session_status(const struct session *session, enum exit_reason reason);

/*
 * session_secret_is_exposed: may others read `secret_file`? The password helper checks the file
 * when it reads the password, so the answer is known only after a request was sent.
 */
bool session_secret_is_exposed(const struct session *session);

/*
 * session_start_hook: start the process that runs the command of --on-event, if that option is
 * given. Call it between session_open_signals() and session_open(). A failure is only a warning.
 *
 * session_check_hook: warn if that command or that process has failed. Doesn't block.
 */
void session_start_hook(struct session *session);
void session_check_hook(struct session *session);

/*
 * session_disown: let the password helpers run on after session_close(), as a process that was
 * forked from this one still uses them. What a --password-command writes to stderr is discarded.
 */
void session_disown(struct session *session);

/* session_close: close the connections, and end the helpers. Doesn't release the lease. */
void session_close(struct session *session);

#endif
