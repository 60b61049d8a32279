/* SPDX-License-Identifier: MIT */
/* api: implements the calls of rlock.h and rlock_admin.h by the layers below. */
#include "base/clock.h"
#include "base/err.h"
#include "base/reason.h"
#include "base/secret.h"
#include "doctor/doctor.h"
#include "ops/acquire_loop.h"
#include "ops/history.h"
#include "ops/inspect.h"
#include "ops/list.h"
#include "ops/renewer.h"
#include "rlock_admin.h"
#include "wire/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rlock {
    char caller_info[HOLDER_INFO_BYTES]; /* who breaks a lock by rlock_break(), for its holders */
    bool keeps_history;                  /* config.history isn't 0 */
    struct owner owner;
    struct quorum quorum;
    struct renewer renewer;
    struct rlock_grant grant;
    struct rlock_observer observer;
    char *password;
    char *sentinel_password;
};

/* ---- the calls of rlock.h ---- */

const char *rlock_status_text(enum rlock_status status)
{
    static const char *const texts[] = {
        [RLOCK_OK] = "done",
        [RLOCK_BUSY] = "somebody else holds the lock",
        [RLOCK_TIMEOUT] = "the lock was not granted in time",
        [RLOCK_STOPPED] = "the call was stopped",
        [RLOCK_LOST] = "the lease has ended, and another owner has the lock",
        [RLOCK_GONE] = "the lease is not on the server",
        [RLOCK_RELEASED] = "the lease was released by its token",
        [RLOCK_SUPERSEDED] = "a newer waiter came",
        [RLOCK_DONE] = "the work was done already",
        [RLOCK_E_USAGE] = "a value is outside its range",
        [RLOCK_E_CONFIG] = "an address, a file or a certificate is wrong",
        [RLOCK_E_UNREACHABLE] = "the server doesn't answer",
        [RLOCK_E_PROTOCOL] = "the reply is not Redis' protocol",
        [RLOCK_E_SERVER] = "the server can't execute the request now",
        [RLOCK_E_UNSUPPORTED] = "the server can't execute the request",
        [RLOCK_E_REFUSED] = "the server refused",
        [RLOCK_E_NO_QUORUM] = "too few servers granted the lock",
        [RLOCK_E_REPLICAS] = "too few replicas had the grant in time",
        [RLOCK_E_MEMORY] = "no memory",
        [RLOCK_E_SYSTEM] = "a system call failed",
    };
    const char *text = status < sizeof texts / sizeof texts[0] ? texts[status] : NULL;

    return text != NULL ? text : "unknown status";
}

/* Copies the passwords into the handle: its connections use them until rlock_close(). */
static enum rlock_status copy_passwords(struct rlock *l, struct rlock_config *config,
                                        struct rlock_error *err)
{
    if (config->password != NULL && (l->password = strdup(config->password)) == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    if (config->sentinel_password != NULL &&
        (l->sentinel_password = strdup(config->sentinel_password)) == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    config->password = l->password;
    config->sentinel_password = l->sentinel_password;
    return RLOCK_OK;
}

/*
 * Copies the caller's config, whose size may be that of a newer rlock.h. A member that only a newer
 * header has must be zero: this library can't do what the member asks for.
 */
static enum rlock_status copy_config(struct rlock_config *copy, const struct rlock_config *config,
                                     struct rlock_error *err)
{
    const char *bytes = (const char *)config;

    if (config->size < sizeof *config)
        return err_set(err, RLOCK_E_USAGE, 0, "config: size must be sizeof(struct rlock_config)");
    for (size_t i = sizeof *config; i < config->size; i++)
        if (bytes[i] != 0)
            return err_set(err, RLOCK_E_USAGE, 0,
                           "config: a member is set that this librlock (%s) doesn't have",
                           RLOCK_VERSION);
    *copy = *config;
    copy->size = sizeof *copy;
    return RLOCK_OK;
}

enum rlock_status rlock_open(struct rlock **lock, const struct rlock_config *config,
                             struct rlock_error *err)
{
    struct rlock_config own_config;
    enum rlock_status st = copy_config(&own_config, config, err);
    struct rlock *l = NULL;

    if (st != RLOCK_OK)
        return st;
    l = calloc(1, sizeof *l);
    if (l == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    l->observer = own_config.observer;
    l->keeps_history = own_config.history != 0;
    holder_info_write(l->caller_info, &own_config.holder, own_config.history);
    st = copy_passwords(l, &own_config, err);
    if (st == RLOCK_OK && own_config.n_keys > 0)
        st = owner_open(&l->owner, &own_config, err);
    if (st == RLOCK_OK)
        st = quorum_open(&l->quorum, &own_config, err);
    if (st == RLOCK_OK && own_config.n_keys > 0)
        owner_join_quorum(&l->owner, l->quorum.members.hash);
    if (st == RLOCK_OK)
        *lock = l;
    else
        rlock_close(l);
    return st;
}

/* ---- going on by commands where the server refuses scripts ---- */

/* What the handle's lock needs scripts for; NULL: for nothing, or the handle has no lock. */
static const char *lock_needs_scripts(const struct rlock *lock)
{
    return lock->owner.n_locks > 0 ? owner_needs_scripts(&lock->owner) : NULL;
}

/*
 * Call this after a call that may have run scripts. If the server refused them, and the handle may
 * use commands instead (RLOCK_SCRIPTS_AUTO), switches the handle to commands, and returns true:
 * call again. But if `what` needs scripts, sets `fault`, and returns false. What the server has
 * executed before has our token, so the commands find it.
 */
static bool goes_on(struct rlock *lock, const char *what, enum rlock_status *st,
                    struct rlock_error *fault)
{
    bool is_refused = (*st == RLOCK_E_REFUSED || *st == RLOCK_E_UNSUPPORTED) &&
                      reason_is_about_scripts(fault->reason);
    char text[60];

    if (!is_refused || !lock->quorum.may_use_commands)
        return false;
    if (what == NULL) {
        quorum_use_commands(&lock->quorum);
        owner_use_commands(&lock->owner);
        return true;
    }
    snprintf(text, sizeof text, "%s needs scripts", what);
    err_prefix(fault, text);
    *st = fault->status = RLOCK_E_UNSUPPORTED;
    return false;
}

static void give(struct rlock_error *err, enum rlock_status st, const struct rlock_error *fault)
{
    if (err != NULL && st != RLOCK_OK)
        *err = *fault;
}

/* Warns the caller of rlock_acquire() that the lock was acquired by plain commands. */
static void warn_of_commands(const struct rlock *lock, const struct rlock_error *fault)
{
    char text[sizeof fault->text + 400];

    if (lock->observer.on_warning == NULL)
        return;
    snprintf(text, sizeof text,
             "%s refuses rlock's scripts (%s), so the lock was taken with plain commands (SET): "
             "exclusive as ever, but waiters get it in no particular order",
             lock->quorum.members.member[0].url.shown,
             fault->said > 0 ? fault->text + fault->said : fault->text);
    lock->observer.on_warning(lock->observer.context, text);
}

enum rlock_status rlock_acquire(struct rlock *lock, struct rlock_deadline deadline,
                                struct rlock_grant *grant, struct rlock_obstacle *obstacle,
                                struct rlock_error *err)
{
    struct rlock_obstacle seen = {.left_ms = -1};
    struct rlock_error fault = {.status = RLOCK_OK};
    struct rlock_error refusal;
    enum rlock_status st;

    st = acquire_loop_run(&lock->quorum, &lock->owner, deadline, &lock->grant, &seen,
                          &lock->observer, &fault);
    if (goes_on(lock, lock_needs_scripts(lock), &st, &fault)) {
        refusal = fault;
        seen = (struct rlock_obstacle){.left_ms = -1};
        st = acquire_loop_run(&lock->quorum, &lock->owner, deadline, &lock->grant, &seen,
                              &lock->observer, &fault);
        if (st == RLOCK_OK)
            warn_of_commands(lock, &refusal);
    }
    give(err, st, &fault);
    if (st == RLOCK_OK)
        *grant = lock->grant;
    else if (obstacle != NULL)
        *obstacle = seen;
    return st;
}

enum rlock_status rlock_keep(struct rlock *lock, int *events, struct rlock_error *err)
{
    return renewer_start(&lock->renewer, &lock->quorum, &lock->owner, lock->grant.sent_ms, events,
                         err);
}

void rlock_unkeep(struct rlock *lock)
{
    renewer_stop(&lock->renewer);
}

enum rlock_status rlock_renew(struct rlock *lock, int64_t ttl_ms, struct rlock_deadline deadline,
                              int64_t *expires_ms, struct rlock_error *err)
{
    struct rlock_error fault = {.status = RLOCK_OK};
    int64_t sent_ms = rlock_clock_ms();
    enum rlock_status st;

    if (ttl_ms != 0 && (ttl_ms < RLOCK_TTL_MIN_MS || ttl_ms > RLOCK_TTL_MAX_MS))
        return err_set(err, RLOCK_E_USAGE, 0, "ttl must be from 1s to 30d");
    if (ttl_ms != 0 || lock->owner.is_adopted) /* else the owner knows its last TTL */
        owner_set_renewal_ttl(&lock->owner, ttl_ms);
    do {
        st = renew_loop_run(&lock->quorum, &lock->owner, deadline, expires_ms, &fault);
    } while (goes_on(lock, lock_needs_scripts(lock), &st, &fault));
    give(err, st, &fault);
    if (st == RLOCK_OK) /* a later rlock_keep() renews this lease */
        lock->grant.sent_ms = sent_ms;
    return st;
}

enum rlock_status rlock_release(struct rlock *lock, struct rlock_deadline deadline,
                                enum rlock_ending ending, int64_t stay_ms, struct rlock_error *err)
{
    struct rlock_error fault = {.status = RLOCK_OK};
    enum rlock_status st;

    if (ending != RLOCK_ENDS_FREE && (stay_ms < 1 || stay_ms > RLOCK_TTL_MAX_MS))
        return err_set(err, RLOCK_E_USAGE, 0, "stay_ms must be from 1ms to 30d");
    if (!owner_has_own_lock(&lock->owner))
        return RLOCK_OK;
    owner_set_ending(&lock->owner, ending, stay_ms);
    do {
        st = release_loop_run(&lock->quorum, &lock->owner, deadline, &fault);
    } while (goes_on(lock, lock_needs_scripts(lock), &st, &fault));
    give(err, st, &fault);
    return st;
}

void rlock_close(struct rlock *lock)
{
    if (lock == NULL)
        return;
    renewer_stop(&lock->renewer);
    quorum_close(&lock->quorum);
    owner_close(&lock->owner);
    secret_free(lock->password);
    secret_free(lock->sentinel_password);
    free(lock);
}

/* ---- the calls of rlock_admin.h ---- */

enum rlock_status rlock_inspect(struct rlock *lock, const char *key, struct rlock_deadline deadline,
                                const struct rlock_visitor *visitor, struct rlock_error *err)
{
    struct rlock_error fault = {.status = RLOCK_OK};
    enum rlock_status st;

    do {
        st = inspect_lock(&lock->quorum, key, deadline, visitor, &fault);
    } while (goes_on(lock, lock_needs_scripts(lock), &st, &fault));
    give(err, st, &fault);
    return st;
}

enum rlock_status rlock_list(struct rlock *lock, const char *pattern,
                             struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                             struct rlock_error *err)
{
    struct rlock_error fault = {.status = RLOCK_OK};
    enum rlock_status st;

    do {
        st = list_locks(&lock->quorum, pattern, deadline, visitor, &fault);
    } while (goes_on(lock, lock_needs_scripts(lock), &st, &fault));
    give(err, st, &fault);
    return st;
}

enum rlock_status rlock_break(struct rlock *lock, const char *key, const char *name,
                              struct rlock_deadline deadline, struct rlock_error *err)
{
    struct rlock_error fault = {.status = RLOCK_OK};
    enum rlock_status st;

    do {
        st = inspect_break(&lock->quorum, key, name, lock->caller_info, deadline, &fault);
    } while (goes_on(lock, lock_needs_scripts(lock), &st, &fault));
    give(err, st, &fault);
    return st;
}

enum rlock_status rlock_examine(struct rlock *lock, const char *key, struct rlock_deadline deadline,
                                const struct rlock_examiner *examiner, struct rlock_error *err)
{
    return doctor_examine(&lock->quorum, key, lock->keeps_history, lock_needs_scripts(lock),
                          deadline, examiner, err);
}

void rlock_forget_passwords(struct rlock *lock)
{
    size_t i;

    secret_clear(lock->password);
    secret_clear(lock->sentinel_password);
    for (i = 0; i < lock->quorum.members.n; i++)
        member_forget_password(&lock->quorum.members.member[i]);
    password_source_clear_password(&lock->quorum.members.password_source);
    password_source_clear_password(&lock->quorum.members.sentinel_password_source);
}

enum rlock_status rlock_history(struct rlock *lock, const char *key, int64_t window_ms,
                                struct rlock_deadline deadline,
                                const struct rlock_history_visitor *visitor,
                                struct rlock_error *err)
{
    struct rlock_error fault = {.status = RLOCK_OK};
    enum rlock_status st = history_read(&lock->quorum, key, window_ms, deadline, visitor, &fault);

    (void)goes_on(lock, "a history", &st, &fault);
    give(err, st, &fault);
    return st;
}

enum rlock_status rlock_history_keys(struct rlock *lock, const char *pattern,
                                     struct rlock_deadline deadline,
                                     const struct rlock_history_visitor *visitor,
                                     struct rlock_error *err)
{
    return history_keys(&lock->quorum, pattern, deadline, visitor, err);
}

void rlock_set_end(struct rlock *lock, const struct rlock_end *end)
{
    owner_set_end(&lock->owner, end);
}

const char *rlock_built_with(void)
{
    return resp_built_with(tls_is_built());
}
