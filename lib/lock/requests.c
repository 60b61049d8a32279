/* SPDX-License-Identifier: MIT */
/*
 * requests: builds the requests that an owner sends.
 *
 * The head of each script describes its KEYS and ARGV. The value that acquire.lua writes has the
 * number of the attempt: an undo of attempt N removes only what attempt N has written, even if a
 * later one was granted the lock meanwhile.
 */
#include "lock/requests.h"

#include "lock/scripts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Returns the argument POLICY of acquire.lua. */
static const char *policy_word(const struct owner *owner)
{
    static const char *const words[] = {
        [RLOCK_QUEUE_FIFO] = "fifo", [RLOCK_QUEUE_NONE] = "none", [RLOCK_QUEUE_NEWEST] = "newest"};

    if (owner->only_parents)
        return "parents";
    if (owner->is_single_attempt && owner->queue != RLOCK_QUEUE_NONE)
        return "try";
    return words[owner->queue];
}

enum which { ALL_LOCKS, OWN_LOCKS };

/* Begins the request that runs `script` on all locks, or only on those that no parent holds. */
static void begin(const struct owner *owner, struct request *request, enum script script,
                  enum which which)
{
    static const enum script of_timestamps[] = {[SCRIPT_ACQUIRE] = SCRIPT_TIMESTAMP_LOCK_ACQUIRE,
                                                [SCRIPT_RENEW] = SCRIPT_TIMESTAMP_LOCK_RENEW,
                                                [SCRIPT_RELEASE] = SCRIPT_TIMESTAMP_LOCK_RELEASE};
    size_t n = 0;
    size_t i;

    for (i = 0; i < owner->n_locks; i++)
        n += which == ALL_LOCKS || owner->lock[i].parent == 0;
    script_request(request, owner->is_timestamp ? of_timestamps[script] : script,
                   n * (KEYS_PER_LOCK + 1));
    for (i = 0; i < owner->n_locks; i++)
        if (which == ALL_LOCKS || owner->lock[i].parent == 0)
            keys_add(&owner->lock[i].keys, request);
}

static void add_int(struct request *request, int64_t number)
{
    request_add_format(request, "%" PRId64, number);
}

static void add_fence(struct request *request, uint64_t fence)
{
    request_add_format(request, "%" PRIu64, fence);
}

/* Adds the argument START of acquire.lua. If there is a history, START has the time waited. */
static void add_start(const struct owner *owner, struct request *request)
{
    char waited[40] = "";

    if (owner->history > 0)
        snprintf(waited, sizeof waited, "waited=%" PRId64 " ", owner->waited_ms);
    request_add_format(request, "%s v1 try=%" PRId64 " ttl=%" PRId64 " %s%s", owner->token,
                       owner->attempt, owner->ttl_ms, waited, owner->holder_info);
}

void requests_acquire(const struct owner *owner, struct request *request,
                      const struct requests_params *params)
{
    /* If the last arguments of a first attempt have their usual values, the request leaves them
     * out: the script then assumes these values. */
    bool is_usual = owner->attempt == 1 && params->not_after_ms == 0 && owner->ticket == 0 &&
                    strcmp(owner->mode, "x") == 0 && !owner->unless_done && owner->n_parents == 0;
    /* In a quorum confirm.lua notes the grant in the history. */
    bool is_noted = owner->history > 0 && !owner->is_in_quorum;
    size_t i;

    begin(owner, request, SCRIPT_ACQUIRE, ALL_LOCKS);
    add_start(owner, request);
    add_int(request, owner->ttl_ms);
    request_add(request, policy_word(owner));
    if (is_noted)
        add_int(request, owner->history);
    else if (!is_usual)
        request_add(request, "");
    if (is_usual)
        return;
    add_int(request, params->not_after_ms);
    if (owner->ticket > 0)
        add_int(request, owner->ticket);
    else
        request_add(request, "");
    request_add(request, owner->mode);
    request_add(request, owner->unless_done ? "1" : "");
    for (i = 0; i < owner->n_parents; i++)
        request_add(request, owner->parent[i]);
}

void requests_confirm(const struct owner *owner, struct request *request,
                      const struct requests_params *params)
{
    begin(owner, request, SCRIPT_CONFIRM, OWN_LOCKS);
    request_add(request, owner->token);
    add_fence(request, params->fence);
    add_int(request, owner->ttl_ms);
    add_fence(request, params->drawn);
}

void requests_renew(const struct owner *owner, struct request *request,
                    const struct requests_params *params)
{
    size_t i;

    begin(owner, request, SCRIPT_RENEW, ALL_LOCKS);
    add_int(request, params->not_after_ms);
    request_add(request, owner->holder_info);
    request_add(request, owner->mode);
    add_int(request, owner->slot);
    for (i = 0; i < owner->n_locks; i++) {
        const struct owner_lock *lock = &owner->lock[i];

        request_add(request, lock->parent > 0 ? owner->parent[lock->parent - 1] : owner->token);
        add_int(request, lock->ttl_ms);
        add_fence(request, lock->fence);
    }
}

/* Which values a release removes: all values of the token, or only those of its last attempt. */
enum written_by { BY_TOKEN, BY_LAST_ATTEMPT };

static void add_value_start(struct request *request, const struct owner *owner, enum written_by by)
{
    if (by == BY_LAST_ATTEMPT)
        request_add_format(request, "%s v1 try=%" PRId64 " ", owner->token, owner->attempt);
    else
        request_add_format(request, "%s ", owner->token);
}

/* Holder info: for the history, if only the token is known, and for a lock that stays taken. */
void requests_release(const struct owner *owner, struct request *request,
                      const struct requests_params *params)
{
    static const char *const endings[] = {
        [RLOCK_ENDS_FREE] = "", [RLOCK_ENDS_REST] = "rest", [RLOCK_ENDS_DONE] = "done"};
    bool may_be_queued = owner->has_renewer || (owner->is_in_quorum && !owner->is_adopted);
    bool knows_token_alone = owner_granted_fence(owner) == 0;
    bool is_usual = !may_be_queued && !knows_token_alone && owner->ending == RLOCK_ENDS_FREE;

    (void)params;
    begin(owner, request, SCRIPT_RELEASE, OWN_LOCKS);
    add_value_start(request, owner, BY_TOKEN);
    add_fence(request, owner_granted_fence(owner));
    if (owner->history > 0 && *owner->ended == '\0' && !knows_token_alone)
        request_add_format(request, "history=%" PRId64, owner->history);
    else if (!is_usual || *owner->ended != '\0')
        request_add(request, owner->ended);
    if (!is_usual) {
        request_add(request, may_be_queued ? owner->token : "");
        request_add(request, endings[owner->ending]);
        add_int(request, owner->stay_ms);
        request_add(request, owner->holder_info);
    }
}

/*
 * Begins a call of release.lua that removes what the owner may have been granted: in its last
 * attempt, or in all attempts, see `by`. The empty FENCE marks an undo: no hold ends, so the script
 * doesn't raise the fence.
 */
static void begin_undo(const struct owner *owner, struct request *request, enum written_by by)
{
    begin(owner, request, SCRIPT_RELEASE, ALL_LOCKS);
    add_value_start(request, owner, by);
    request_add(request, "");
}

void requests_undo(const struct owner *owner, struct request *request,
                   const struct requests_params *params)
{
    (void)params;
    begin_undo(owner, request, BY_LAST_ATTEMPT);
}

void requests_requeue(const struct owner *owner, struct request *request,
                      const struct requests_params *params)
{
    (void)params;
    begin_undo(owner, request, BY_LAST_ATTEMPT);
    request_add(request, "");
    request_add(request, "");
    request_add(request, "");
    request_add(request, "");
    request_add(request, owner->holder_info);
    add_int(request, owner->ticket);
    request_add(request, owner->mode);
}

void requests_leave(const struct owner *owner, struct request *request,
                    const struct requests_params *params)
{
    (void)params;
    begin_undo(owner, request, BY_TOKEN);
    request_add(request, "");
    request_add(request, owner->token);
}

/* BLPOP takes a timeout in seconds. */
void requests_wait(const struct owner *owner, struct request *request,
                   const struct requests_params *params)
{
    int64_t block_ms = params->block_ms;
    size_t i;

    request_begin(request, "BLPOP");
    for (i = 0; i < owner->n_locks; i++)
        request_add(request, owner->lock[i].keys.wake);
    if (block_ms % 1000 == 0)
        add_int(request, block_ms / 1000);
    else
        request_add_format(request, "%" PRId64 ".%03d", block_ms / 1000, (int)(block_ms % 1000));
}
