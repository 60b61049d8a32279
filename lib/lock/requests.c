/* SPDX-License-Identifier: MIT */
/*
 * requests: what is asked of one server about the locks of one owner.
 *
 * One token serves every attempt, so that an attempt whose reply was lost is
 * recognised as ours. The value also says which attempt wrote it: the undo of
 * a given-up attempt can then delete only what that attempt left behind, never
 * what a later one was granted.
 */
#include "lock/requests.h"

#include "base/err.h"
#include "base/random.h"
#include "server/slot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const key_kinds[SCRIPT_KEYS] = {
    [KEY_FENCE] = "fence",     [KEY_LINE] = "queue",        [KEY_WAITERS] = "waiters",
    [KEY_HOLDERS] = "holders", [KEY_CARDS] = "holder-info",
};

static bool name_keys(struct owner_lock *lock, const char *key, const char *token)
{
    char *prefix = slot_helper_key("wake:", key);
    size_t bytes = prefix == NULL ? 0 : strlen(prefix) + RLOCK_TOKEN_BYTES + 1;
    bool all = prefix != NULL;
    int i;

    lock->key[KEY_LOCK] = strdup(key);
    all = all && lock->key[KEY_LOCK] != NULL;
    for (i = KEY_FENCE; i < SCRIPT_KEYS; i++) {
        lock->key[i] = slot_helper_key(key_kinds[i], key);
        all = all && lock->key[i] != NULL;
    }
    lock->wake_key = all ? malloc(bytes) : NULL;
    if (lock->wake_key != NULL)
        snprintf(lock->wake_key, bytes, "%s%s", prefix, token);
    free(prefix);
    return lock->wake_key != NULL;
}

static enum rlock_status open_locks(struct owner *owner, const struct rlock_config *config,
                                    struct rlock_error *err)
{
    size_t i;
    size_t j;

    if (config->n_keys < 1 || config->n_keys > RLOCK_KEYS_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "1 to %d keys are needed", RLOCK_KEYS_MAX);
    owner->lock = calloc(config->n_keys, sizeof *owner->lock);
    if (owner->lock == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    for (i = 0; i < config->n_keys; i++) {
        const char *key = config->keys[i];

        if (key[0] == '\0' || strlen(key) > RLOCK_KEY_MAX)
            return err_set(err, RLOCK_E_USAGE, 0, "a key has 1 to %d bytes", RLOCK_KEY_MAX);
        if (slot_is_helper_name(key))
            return err_set(err, RLOCK_E_USAGE, 0,
                           "a key that starts with rlock: or contains :rlock: can't be a lock: the "
                           "helper keys of locks have such names");
        for (j = 0; j < i; j++)
            if (strcmp(key, config->keys[j]) == 0)
                return err_set(err, RLOCK_E_USAGE, 0, "one key is given twice");
        owner->n++;
        owner->lock[i].ttl_ms = owner->ttl_ms;
        if (!name_keys(&owner->lock[i], key, owner->token))
            return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    }
    return RLOCK_OK;
}

static bool is_token(const char *text)
{
    return strlen(text) == RLOCK_TOKEN_BYTES &&
           strspn(text, "0123456789abcdef") == RLOCK_TOKEN_BYTES;
}

/* A token of our own, or that of a lease which was granted elsewhere. */
static enum rlock_status set_token(struct owner *owner, const struct rlock_config *config,
                                   struct rlock_error *err)
{
    if (config->token == NULL)
        return random_token(owner->token, err);
    if (!is_token(config->token))
        return err_set(err, RLOCK_LOST, 0, "no lock has such a token: it is %d hexadecimal digits",
                       RLOCK_TOKEN_BYTES);
    memcpy(owner->token, config->token, sizeof owner->token);
    owner->is_adopted = true;
    return RLOCK_OK;
}

static enum rlock_status keep_parent(struct owner *owner, const struct rlock_config *config,
                                     struct rlock_error *err)
{
    size_t i;

    if (config->n_parents == 0)
        return RLOCK_OK;
    owner->parent = calloc(config->n_parents, sizeof *owner->parent);
    if (owner->parent == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    for (i = 0; i < config->n_parents && i < RLOCK_PARENTS_MAX; i++)
        if (is_token(config->parent[i]))
            memcpy(owner->parent[owner->n_parents++], config->parent[i], sizeof *owner->parent);
    return RLOCK_OK;
}

/* The older protocol has no words for anything but one owner of one key. */
static enum rlock_status set_time(struct owner *owner, const struct rlock_config *config,
                                  struct rlock_error *err)
{
    if (config->n_keys != 1 || config->mode != RLOCK_EXCLUSIVE || config->unless_done)
        return err_set(err, RLOCK_E_USAGE, 0,
                       "a lock that is a timestamp is one key, held alone, and never done");
    owner->is_time = true;
    owner->queue = RLOCK_QUEUE_NONE;
    snprintf(owner->wanted, sizeof owner->wanted, "%s",
             config->protocol == RLOCK_PROTOCOL_TIME_S ? "s" : "ms");
    return RLOCK_OK;
}

static enum rlock_status set_mode(struct owner *owner, const struct rlock_config *config,
                                  struct rlock_error *err)
{
    if (config->protocol != RLOCK_PROTOCOL_TOKEN)
        return set_time(owner, config, err);
    switch (config->mode) {
    case RLOCK_EXCLUSIVE:
        snprintf(owner->wanted, sizeof owner->wanted, "x");
        return RLOCK_OK;
    case RLOCK_SHARED:
        snprintf(owner->wanted, sizeof owner->wanted, "s");
        return RLOCK_OK;
    case RLOCK_SLOTS:
        break;
    }
    if (config->n_slots < 1 || config->n_slots > RLOCK_SLOTS_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "slots: 1 to %d are possible", RLOCK_SLOTS_MAX);
    if (config->n_keys != 1)
        return err_set(err, RLOCK_E_USAGE, 0, "slots are those of one key");
    snprintf(owner->wanted, sizeof owner->wanted, "%d", (int)config->n_slots);
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
                            .unless_done = config->unless_done};
    st = set_mode(owner, config, err);
    if (st == RLOCK_OK)
        st = set_token(owner, config, err);
    if (st == RLOCK_OK)
        st = keep_parent(owner, config, err);
    if (st == RLOCK_OK)
        st = open_locks(owner, config, err);
    holder_info_write(owner->card, &config->holder);
    return st;
}

void owner_close(struct owner *owner)
{
    size_t lock;
    int i;

    for (lock = 0; lock < owner->n; lock++) {
        for (i = 0; i < SCRIPT_KEYS; i++)
            free(owner->lock[lock].key[i]);
        free(owner->lock[lock].wake_key);
    }
    free(owner->lock);
    if (owner->parent != NULL)
        explicit_bzero(owner->parent, owner->n_parents * sizeof *owner->parent);
    free(owner->parent);
    explicit_bzero(owner, sizeof *owner);
}

void owner_join_quorum(struct owner *owner, const char *list)
{
    size_t used = strlen(owner->card);

    owner->is_voted = list[0] != '\0';
    if (owner->is_voted)
        snprintf(owner->card + used, sizeof owner->card - used, "%smembers=%s", used > 0 ? " " : "",
                 list);
}

void owner_take_grant(struct owner *owner, const struct answer *answer, uint64_t fence)
{
    size_t i;

    owner->slot = answer->slot;
    for (i = 0; i < owner->n; i++) {
        struct owner_lock *lock = &owner->lock[i];
        bool is_told = i < answer->n_holdings && answer->holding[i].parent <= owner->n_parents;

        lock->parent = is_told ? answer->holding[i].parent : 0;
        lock->fence = lock->parent > 0 ? 0 : fence; /* what is not ours we never put back */
        lock->ttl_ms = lock->parent > 0 ? answer->holding[i].ttl_ms : owner->ttl_ms;
    }
}

bool owner_has_own_lock(const struct owner *owner)
{
    size_t i;

    for (i = 0; i < owner->n; i++)
        if (owner->lock[i].parent == 0)
            return true;
    return false;
}

bool owner_has_parent_lock(const struct owner *owner)
{
    size_t i;

    for (i = 0; i < owner->n; i++)
        if (owner->lock[i].parent > 0)
            return true;
    return false;
}

uint32_t owner_parent_keys(const struct owner *owner)
{
    uint32_t keys = 0;
    size_t i;

    for (i = 0; i < owner->n && i < RLOCK_KEYS_MAX; i++)
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

    for (i = 1; i < owner->n; i++)
        if (owner->lock[i].ttl_ms < shortest)
            shortest = owner->lock[i].ttl_ms;
    return shortest;
}

static const char *way_to_wait(const struct owner *owner)
{
    static const char *const ways[] = {
        [RLOCK_QUEUE_FIFO] = "fifo", [RLOCK_QUEUE_NONE] = "none", [RLOCK_QUEUE_NEWEST] = "newest"};

    if (owner->only_parents)
        return "outer";
    return owner->is_single_attempt && owner->queue != RLOCK_QUEUE_NONE ? "try"
                                                                        : ways[owner->queue];
}

/* A script over all locks, or over those alone that are ours. */
static void begin(const struct owner *owner, struct request *request, enum script script,
                  bool only_ours)
{
    static const enum script of_time[] = {[SCRIPT_ACQUIRE] = SCRIPT_STAMP_ACQUIRE,
                                          [SCRIPT_RENEW] = SCRIPT_STAMP_RENEW,
                                          [SCRIPT_RELEASE] = SCRIPT_STAMP_RELEASE};
    size_t n = 0;
    size_t lock;
    int i;

    for (lock = 0; lock < owner->n; lock++)
        n += !only_ours || owner->lock[lock].parent == 0;
    script_request(request, owner->is_time ? of_time[script] : script, n * SCRIPT_KEYS,
                   owner->attempt > 1 || owner->is_voted);
    for (lock = 0; lock < owner->n; lock++)
        for (i = 0; i < SCRIPT_KEYS && (!only_ours || owner->lock[lock].parent == 0); i++)
            request_add(request, owner->lock[lock].key[i]);
}

void requests_acquire(const struct owner *owner, struct request *request,
                      const struct requests_params *when)
{
    size_t i;

    begin(owner, request, SCRIPT_ACQUIRE, false);
    request_add(request, owner->token);
    request_add_format(request, "%" PRId64, owner->attempt);
    request_add(request, owner->card);
    request_add_format(request, "%" PRId64, owner->ttl_ms);
    request_add_format(request, "%" PRId64, when->not_after_ms);
    request_add(request, way_to_wait(owner));
    if (owner->ticket > 0)
        request_add_format(request, "%" PRId64, owner->ticket);
    else
        request_add(request, "");
    request_add(request, owner->wanted);
    request_add(request, owner->unless_done ? "1" : "");
    for (i = 0; i < owner->n_parents; i++)
        request_add(request, owner->parent[i]);
}

void requests_confirm(const struct owner *owner, struct request *request,
                      const struct requests_params *when)
{
    begin(owner, request, SCRIPT_CONFIRM, true);
    request_add(request, owner->token);
    request_add_format(request, "%" PRIu64, when->fence);
    request_add_format(request, "%" PRId64, owner->ttl_ms);
}

void requests_renew(const struct owner *owner, struct request *request,
                    const struct requests_params *when)
{
    size_t i;

    begin(owner, request, SCRIPT_RENEW, false);
    request_add_format(request, "%" PRId64, when->not_after_ms);
    request_add(request, owner->card);
    request_add(request, owner->wanted);
    request_add_format(request, "%" PRId64, owner->slot);
    for (i = 0; i < owner->n; i++) {
        const struct owner_lock *lock = &owner->lock[i];

        request_add(request, lock->parent > 0 ? owner->parent[lock->parent - 1] : owner->token);
        request_add_format(request, "%" PRId64, lock->ttl_ms);
        request_add_format(request, "%" PRIu64, lock->fence);
    }
}

/* Which value is ours: all that the token wrote, or what one attempt wrote. */
static void add_prefix(struct request *request, const struct owner *owner, bool is_attempt)
{
    if (is_attempt)
        request_add_format(request, "%s v1 try=%" PRId64 " ", owner->token, owner->attempt);
    else
        request_add_format(request, "%s ", owner->token);
}

static uint64_t fence_of(const struct owner *owner)
{
    uint64_t fence = 0;
    size_t i;

    for (i = 0; i < owner->n; i++)
        if (owner->lock[i].fence > fence)
            fence = owner->lock[i].fence;
    return fence;
}

void requests_release(const struct owner *owner, struct request *request,
                      const struct requests_params *when)
{
    static const char *const endings[] = {
        [RLOCK_ENDS_FREE] = "", [RLOCK_ENDS_REST] = "rest", [RLOCK_ENDS_DONE] = "done"};

    (void)when;
    begin(owner, request, SCRIPT_RELEASE, true);
    add_prefix(request, owner, false);
    request_add_format(request, "%" PRIu64, fence_of(owner));
    request_add(request,
                owner->has_renewer || (owner->is_voted && !owner->is_adopted) ? owner->token : "");
    request_add(request, endings[owner->ending]);
    request_add_format(request, "%" PRId64, owner->stay_ms);
    request_add(request, owner->card);
}

/* Take back what was never reported; the leaver leaves the line as well. */
static void ask_back(const struct owner *owner, struct request *request, bool is_attempt)
{
    begin(owner, request, SCRIPT_RELEASE, false);
    add_prefix(request, owner, is_attempt);
    request_add(request, "");
    request_add(request, is_attempt ? "" : owner->token);
    request_add(request, "");
}

void requests_undo(const struct owner *owner, struct request *request,
                   const struct requests_params *when)
{
    (void)when;
    ask_back(owner, request, true);
    request_use_eval(request); /* nobody will be there to hear that it isn't known */
}

void requests_requeue(const struct owner *owner, struct request *request,
                      const struct requests_params *when)
{
    (void)when;
    ask_back(owner, request, true);
    request_add(request, "");
    request_add(request, owner->card);
    request_add_format(request, "%" PRId64, owner->ticket);
    request_add(request, owner->wanted);
}

void requests_leave(const struct owner *owner, struct request *request,
                    const struct requests_params *when)
{
    (void)when;
    ask_back(owner, request, false);
}

int64_t owner_block_ms(const struct owner *owner, int64_t ms)
{
    if (ms < 1)
        ms = 1; /* 0 would be for ever */
    return owner->whole_seconds ? (ms + 999) / 1000 * 1000 : ms;
}

void requests_wait(const struct owner *owner, struct request *request,
                   const struct requests_params *when)
{
    int64_t block_ms = when->block_ms;
    size_t i;

    request_begin(request, "BLPOP");
    for (i = 0; i < owner->n; i++)
        request_add(request, owner->lock[i].wake_key);
    if (block_ms % 1000 == 0)
        request_add_format(request, "%" PRId64, block_ms / 1000);
    else
        request_add_format(request, "%" PRId64 ".%03d", block_ms / 1000, (int)(block_ms % 1000));
}
