/* SPDX-License-Identifier: MIT */
/*
 * owner: keeps an owner's token, the names of its locks, its lease and its fences.
 *
 * All attempts have the same token. So if a reply was lost, the next attempt finds that the lock is
 * already ours.
 */
#include "lock/owner.h"

#include "base/err.h"
#include "base/random.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum rlock_status open_locks(struct owner *owner, const struct rlock_config *config,
                                    struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    size_t i;
    size_t j;

    if (config->n_keys < 1 || config->n_keys > RLOCK_KEYS_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "keys: 1 to %d are possible", RLOCK_KEYS_MAX);
    owner->lock = calloc(config->n_keys, sizeof *owner->lock);
    if (owner->lock == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    for (i = 0; i < config->n_keys && st == RLOCK_OK; i++) {
        for (j = 0; j < i; j++)
            if (strcmp(config->keys[i], config->keys[j]) == 0)
                return err_set(err, RLOCK_E_USAGE, 0, "the key %.100s is given twice",
                               config->keys[i]);
        owner->n_locks++;
        owner->lock[i].ttl_ms = owner->ttl_ms;
        st = keys_init(&owner->lock[i].keys, config->keys[i], owner->token, err);
    }
    return st;
}

static bool is_token(const char *text)
{
    return strlen(text) == RLOCK_TOKEN_BYTES &&
           strspn(text, "0123456789abcdef") == RLOCK_TOKEN_BYTES;
}

static enum rlock_status set_token(struct owner *owner, const struct rlock_config *config,
                                   struct rlock_error *err)
{
    if (config->token == NULL)
        return random_token(owner->token, err);
    if (!is_token(config->token)) {
        err_set(err, RLOCK_E_USAGE, 0,
                "no lock has such a token: a token has %d hexadecimal digits", RLOCK_TOKEN_BYTES);
        if (err != NULL)
            err->reason = RLOCK_REASON_TOKEN;
        return RLOCK_E_USAGE;
    }
    memcpy(owner->token, config->token, sizeof owner->token);
    owner->is_adopted = true;
    return RLOCK_OK;
}

/* Copies the parent tokens. They may come from the environment, so skips malformed tokens. */
static enum rlock_status copy_parents(struct owner *owner, const struct rlock_config *config,
                                      struct rlock_error *err)
{
    size_t i;

    if (config->n_parents == 0)
        return RLOCK_OK;
    owner->parent = calloc(config->n_parents, sizeof *owner->parent);
    if (owner->parent == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    for (i = 0; i < config->n_parents && i < RLOCK_PARENTS_MAX; i++)
        if (is_token(config->parent_tokens[i]))
            memcpy(owner->parent[owner->n_parents++], config->parent_tokens[i],
                   sizeof *owner->parent);
    return RLOCK_OK;
}

/* A timestamp lock has one key, one exclusive holder, no queue and no done mark. */
static enum rlock_status set_timestamp_mode(struct owner *owner, const struct rlock_config *config,
                                            struct rlock_error *err)
{
    if (config->n_keys != 1 || config->mode != RLOCK_EXCLUSIVE || config->unless_done)
        return err_set(err, RLOCK_E_USAGE, 0,
                       "a timestamp lock has one key and one holder, and can't be marked as done");
    owner->is_timestamp = true;
    owner->queue = RLOCK_QUEUE_NONE;
    snprintf(owner->mode, sizeof owner->mode, "%s",
             config->protocol == RLOCK_PROTOCOL_TIME_S ? "s" : "ms");
    return RLOCK_OK;
}

const char *owner_needs_scripts(const struct owner *owner)
{
    if (owner->n_locks != 1)
        return "a lock of several keys";
    if (owner->is_timestamp)
        return "a timestamp lock";
    if (strcmp(owner->mode, "x") != 0)
        return strcmp(owner->mode, "s") == 0 ? "a shared lock" : "a lock with slots";
    if (owner->unless_done)
        return "a done mark (--once)";
    if (owner->history > 0)
        return "a history";
    return owner->needs_queue ? "a queue" : NULL;
}

void owner_use_commands(struct owner *owner)
{
    owner->without_scripts = true;
    owner->queue = RLOCK_QUEUE_NONE;
}

/* Prepares an owner for RLOCK_SCRIPTS_NO. RLOCK_E_USAGE: the lock needs scripts. */
static enum rlock_status set_without_scripts(struct owner *owner, const struct rlock_config *config,
                                             struct rlock_error *err)
{
    const char *what = config->n_urls > 1 ? "a quorum of servers" : owner_needs_scripts(owner);

    if (what != NULL)
        return err_set(err, RLOCK_E_USAGE, 0, "%s needs scripts on the server", what);
    owner_use_commands(owner);
    return RLOCK_OK;
}

static enum rlock_status set_mode(struct owner *owner, const struct rlock_config *config,
                                  struct rlock_error *err)
{
    if (config->protocol != RLOCK_PROTOCOL_TOKEN)
        return set_timestamp_mode(owner, config, err);
    switch (config->mode) {
    case RLOCK_EXCLUSIVE:
        snprintf(owner->mode, sizeof owner->mode, "x");
        return RLOCK_OK;
    case RLOCK_SHARED:
        snprintf(owner->mode, sizeof owner->mode, "s");
        return RLOCK_OK;
    case RLOCK_SLOTS:
        break;
    }
    if (config->n_slots < 1 || config->n_slots > RLOCK_SLOTS_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "slots: 1 to %d are possible", RLOCK_SLOTS_MAX);
    if (config->n_keys != 1)
        return err_set(err, RLOCK_E_USAGE, 0, "slots: only a single key can have slots");
    snprintf(owner->mode, sizeof owner->mode, "%d", (int)config->n_slots);
    return RLOCK_OK;
}

enum rlock_status owner_open(struct owner *owner, const struct rlock_config *config,
                             struct rlock_error *err)
{
    enum rlock_status st;

    *owner = (struct owner){.ttl_ms = config->timing.ttl_ms,
                            .queue = config->queue,
                            .has_renewer = config->holder.has_renewer,
                            .only_parents = config->only_parents,
                            .unless_done = config->unless_done,
                            .needs_queue = config->needs_queue,
                            .history = config->history};
    if (config->history < 0 || config->history > RLOCK_HISTORY_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "history: 0 to %d entries are possible",
                       RLOCK_HISTORY_MAX);
    st = set_mode(owner, config, err);
    if (st == RLOCK_OK)
        st = set_token(owner, config, err);
    if (st == RLOCK_OK)
        st = copy_parents(owner, config, err);
    if (st == RLOCK_OK)
        st = open_locks(owner, config, err);
    if (st == RLOCK_OK && config->scripts == RLOCK_SCRIPTS_NO)
        st = set_without_scripts(owner, config, err);
    holder_info_write(owner->holder_info, &config->holder, config->history);
    return st;
}

void owner_close(struct owner *owner)
{
    size_t i;

    for (i = 0; i < owner->n_locks; i++)
        keys_fini(&owner->lock[i].keys);
    free(owner->lock);
    if (owner->parent != NULL)
        explicit_bzero(owner->parent, owner->n_parents * sizeof *owner->parent);
    free(owner->parent);
    explicit_bzero(owner, sizeof *owner);
}

void owner_join_quorum(struct owner *owner, const char *members_hash)
{
    size_t used = strlen(owner->holder_info);

    owner->is_in_quorum = members_hash[0] != '\0';
    if (owner->is_in_quorum)
        snprintf(owner->holder_info + used, sizeof owner->holder_info - used, "%smembers=%s",
                 used > 0 ? " " : "", members_hash);
}

/* ---- changing the owner between two requests ---- */

void owner_start_acquire(struct owner *owner, bool is_single_attempt)
{
    owner->is_single_attempt = is_single_attempt;
    owner->ticket = 0;
    owner->began_ms = rlock_clock_ms();
    owner->ended[0] = '\0';
}

void owner_begin_attempt(struct owner *owner)
{
    owner->attempt++;
    owner->waited_ms = rlock_clock_ms() - owner->began_ms;
}

void owner_set_ticket(struct owner *owner, int64_t ticket)
{
    owner->ticket = ticket;
}

void owner_take_grant(struct owner *owner, const struct reply *answer, uint64_t fence)
{
    size_t i;

    owner->slot = isdigit((unsigned char)owner->mode[0]) ? answer->slot : -1;
    for (i = 0; i < owner->n_locks; i++) {
        struct owner_lock *lock = &owner->lock[i];
        bool is_told = i < answer->n_locks && answer->lock[i].parent <= owner->n_parents;

        lock->parent = is_told ? answer->lock[i].parent : 0;
        /* fence 0: if a parent's lock has vanished, a renewal by this owner must not restore it */
        lock->fence = lock->parent > 0 ? 0 : fence;
        lock->ttl_ms = lock->parent > 0 ? answer->lock[i].ttl_ms : owner->ttl_ms;
    }
}

struct owner owner_for_repair(const struct owner *owner)
{
    struct owner repair = *owner;

    repair.attempt++;
    repair.queue = RLOCK_QUEUE_NONE;
    repair.unless_done = false;
    repair.ticket = 0;
    return repair;
}

void owner_set_renewal_ttl(struct owner *owner, int64_t ttl_ms)
{
    size_t i;

    for (i = 0; i < owner->n_locks; i++)
        owner->lock[i].ttl_ms = ttl_ms;
}

void owner_set_ending(struct owner *owner, enum rlock_ending ending, int64_t stay_ms)
{
    owner->ending = ending;
    owner->stay_ms = stay_ms;
}

void owner_set_end(struct owner *owner, const struct rlock_end *end)
{
    if (owner->history > 0)
        snprintf(owner->ended, sizeof owner->ended,
                 "history=%lld status=%d reason=%.40s held=%lld renewals=%lld",
                 (long long)owner->history, end->status, end->reason, (long long)end->held_ms,
                 (long long)end->renewals);
}

/* ---- what the server has granted to the owner ---- */

bool owner_has_own_lock(const struct owner *owner)
{
    size_t i;

    for (i = 0; i < owner->n_locks; i++)
        if (owner->lock[i].parent == 0)
            return true;
    return false;
}

bool owner_has_parent_lock(const struct owner *owner)
{
    return owner_parent_keys(owner) != 0;
}

uint32_t owner_parent_keys(const struct owner *owner)
{
    uint32_t keys = 0;
    size_t i;

    for (i = 0; i < owner->n_locks; i++)
        keys |= (uint32_t)(owner->lock[i].parent > 0) << i;
    return keys;
}

const char *owner_held_token(const struct owner *owner)
{
    return owner_has_own_lock(owner) ? owner->token : owner->parent[owner->lock[0].parent - 1];
}

int64_t owner_granted_ttl_ms(const struct owner *owner)
{
    int64_t shortest = owner->lock[0].ttl_ms;
    size_t i;

    for (i = 1; i < owner->n_locks; i++)
        if (owner->lock[i].ttl_ms < shortest)
            shortest = owner->lock[i].ttl_ms;
    return shortest;
}

uint64_t owner_granted_fence(const struct owner *owner)
{
    uint64_t fence = 0;
    size_t i;

    for (i = 0; i < owner->n_locks; i++)
        if (owner->lock[i].fence > fence)
            fence = owner->lock[i].fence;
    return fence;
}
