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

static bool name_keys(struct lease_lock *lock, const char *key, const char *token)
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

static enum rlock_status open_locks(struct lease *lease, const struct rlock_config *config,
                                    struct rlock_error *err)
{
    size_t i;
    size_t j;

    if (config->n_keys < 1 || config->n_keys > RLOCK_KEYS_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "1 to %d keys are needed", RLOCK_KEYS_MAX);
    lease->lock = calloc(config->n_keys, sizeof *lease->lock);
    if (lease->lock == NULL)
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
        lease->n++;
        lease->lock[i].ttl_ms = lease->ttl_ms;
        if (!name_keys(&lease->lock[i], key, lease->token))
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
static enum rlock_status set_token(struct lease *lease, const struct rlock_config *config,
                                   struct rlock_error *err)
{
    if (config->token == NULL)
        return random_token(lease->token, err);
    if (!is_token(config->token))
        return err_set(err, RLOCK_LOST, 0, "no lock has such a token: it is %d hexadecimal digits",
                       RLOCK_TOKEN_BYTES);
    memcpy(lease->token, config->token, sizeof lease->token);
    lease->is_adopted = true;
    return RLOCK_OK;
}

static enum rlock_status keep_parent(struct lease *lease, const struct rlock_config *config,
                                     struct rlock_error *err)
{
    size_t i;

    if (config->n_parents == 0)
        return RLOCK_OK;
    lease->parent = calloc(config->n_parents, sizeof *lease->parent);
    if (lease->parent == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    for (i = 0; i < config->n_parents && i < RLOCK_PARENTS_MAX; i++)
        if (is_token(config->parent[i]))
            memcpy(lease->parent[lease->n_parents++], config->parent[i], sizeof *lease->parent);
    return RLOCK_OK;
}

/* The older protocol has no words for anything but one owner of one key. */
static enum rlock_status set_time(struct lease *lease, const struct rlock_config *config,
                                  struct rlock_error *err)
{
    if (config->n_keys != 1 || config->mode != RLOCK_EXCLUSIVE || config->unless_done)
        return err_set(err, RLOCK_E_USAGE, 0,
                       "a lock that is a timestamp is one key, held alone, and never done");
    lease->is_time = true;
    lease->queue = RLOCK_QUEUE_NONE;
    snprintf(lease->wanted, sizeof lease->wanted, "%s",
             config->protocol == RLOCK_PROTOCOL_TIME_S ? "s" : "ms");
    return RLOCK_OK;
}

static enum rlock_status set_mode(struct lease *lease, const struct rlock_config *config,
                                  struct rlock_error *err)
{
    if (config->protocol != RLOCK_PROTOCOL_TOKEN)
        return set_time(lease, config, err);
    switch (config->mode) {
    case RLOCK_EXCLUSIVE:
        snprintf(lease->wanted, sizeof lease->wanted, "x");
        return RLOCK_OK;
    case RLOCK_SHARED:
        snprintf(lease->wanted, sizeof lease->wanted, "s");
        return RLOCK_OK;
    case RLOCK_SLOTS:
        break;
    }
    if (config->n_slots < 1 || config->n_slots > RLOCK_SLOTS_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "slots: 1 to %d are possible", RLOCK_SLOTS_MAX);
    if (config->n_keys != 1)
        return err_set(err, RLOCK_E_USAGE, 0, "slots are those of one key");
    snprintf(lease->wanted, sizeof lease->wanted, "%d", (int)config->n_slots);
    return RLOCK_OK;
}

enum rlock_status lease_open(struct lease *lease, const struct rlock_config *config,
                             struct rlock_error *err)
{
    enum rlock_status st;

    *lease = (struct lease){.ttl_ms = config->timing.ttl_ms,
                            .queue = config->queue,
                            .has_renewer = config->holder.has_renewer,
                            .only_parents = config->only_parents,
                            .unless_done = config->unless_done};
    st = set_mode(lease, config, err);
    if (st == RLOCK_OK)
        st = set_token(lease, config, err);
    if (st == RLOCK_OK)
        st = keep_parent(lease, config, err);
    if (st == RLOCK_OK)
        st = open_locks(lease, config, err);
    holder_info_write(lease->card, &config->holder);
    return st;
}

void lease_close(struct lease *lease)
{
    size_t lock;
    int i;

    for (lock = 0; lock < lease->n; lock++) {
        for (i = 0; i < SCRIPT_KEYS; i++)
            free(lease->lock[lock].key[i]);
        free(lease->lock[lock].wake_key);
    }
    free(lease->lock);
    if (lease->parent != NULL)
        explicit_bzero(lease->parent, lease->n_parents * sizeof *lease->parent);
    free(lease->parent);
    explicit_bzero(lease, sizeof *lease);
}

void lease_join(struct lease *lease, const char *list)
{
    size_t used = strlen(lease->card);

    lease->is_voted = list[0] != '\0';
    if (lease->is_voted)
        snprintf(lease->card + used, sizeof lease->card - used, "%smembers=%s", used > 0 ? " " : "",
                 list);
}

void lease_take(struct lease *lease, const struct answer *answer, uint64_t fence)
{
    size_t i;

    lease->slot = answer->slot;
    for (i = 0; i < lease->n; i++) {
        struct lease_lock *lock = &lease->lock[i];
        bool is_told = i < answer->n_holdings && answer->holding[i].parent <= lease->n_parents;

        lock->parent = is_told ? answer->holding[i].parent : 0;
        lock->fence = lock->parent > 0 ? 0 : fence; /* what is not ours we never put back */
        lock->ttl_ms = lock->parent > 0 ? answer->holding[i].ttl_ms : lease->ttl_ms;
    }
}

bool lease_is_ours(const struct lease *lease)
{
    size_t i;

    for (i = 0; i < lease->n; i++)
        if (lease->lock[i].parent == 0)
            return true;
    return false;
}

bool lease_has_parent(const struct lease *lease)
{
    size_t i;

    for (i = 0; i < lease->n; i++)
        if (lease->lock[i].parent > 0)
            return true;
    return false;
}

uint32_t lease_parent_keys(const struct lease *lease)
{
    uint32_t keys = 0;
    size_t i;

    for (i = 0; i < lease->n && i < RLOCK_KEYS_MAX; i++)
        keys |= (uint32_t)(lease->lock[i].parent > 0) << i;
    return keys;
}

const char *lease_token(const struct lease *lease)
{
    return lease_is_ours(lease) ? lease->token : lease->parent[lease->lock[0].parent - 1];
}

int64_t lease_ttl_ms(const struct lease *lease)
{
    int64_t shortest = lease->lock[0].ttl_ms;
    size_t i;

    for (i = 1; i < lease->n; i++)
        if (lease->lock[i].ttl_ms < shortest)
            shortest = lease->lock[i].ttl_ms;
    return shortest;
}

static const char *way_to_wait(const struct lease *lease)
{
    static const char *const ways[] = {
        [RLOCK_QUEUE_FIFO] = "fifo", [RLOCK_QUEUE_NONE] = "none", [RLOCK_QUEUE_NEWEST] = "newest"};

    if (lease->only_parents)
        return "outer";
    return lease->is_single_attempt && lease->queue != RLOCK_QUEUE_NONE ? "try"
                                                                        : ways[lease->queue];
}

/* A script over all locks, or over those alone that are ours. */
static void begin(const struct lease *lease, struct request *request, enum script script,
                  bool only_ours)
{
    static const enum script of_time[] = {[SCRIPT_ACQUIRE] = SCRIPT_STAMP_ACQUIRE,
                                          [SCRIPT_RENEW] = SCRIPT_STAMP_RENEW,
                                          [SCRIPT_RELEASE] = SCRIPT_STAMP_RELEASE};
    size_t n = 0;
    size_t lock;
    int i;

    for (lock = 0; lock < lease->n; lock++)
        n += !only_ours || lease->lock[lock].parent == 0;
    script_request(request, lease->is_time ? of_time[script] : script, n * SCRIPT_KEYS,
                   lease->attempt > 1 || lease->is_voted);
    for (lock = 0; lock < lease->n; lock++)
        for (i = 0; i < SCRIPT_KEYS && (!only_ours || lease->lock[lock].parent == 0); i++)
            request_add(request, lease->lock[lock].key[i]);
}

void lease_ask_acquire(const struct lease *lease, struct request *request,
                       const struct lease_when *when)
{
    size_t i;

    begin(lease, request, SCRIPT_ACQUIRE, false);
    request_add(request, lease->token);
    request_add_format(request, "%" PRId64, lease->attempt);
    request_add(request, lease->card);
    request_add_format(request, "%" PRId64, lease->ttl_ms);
    request_add_format(request, "%" PRId64, when->not_after_ms);
    request_add(request, way_to_wait(lease));
    if (lease->ticket > 0)
        request_add_format(request, "%" PRId64, lease->ticket);
    else
        request_add(request, "");
    request_add(request, lease->wanted);
    request_add(request, lease->unless_done ? "1" : "");
    for (i = 0; i < lease->n_parents; i++)
        request_add(request, lease->parent[i]);
}

void lease_ask_confirm(const struct lease *lease, struct request *request,
                       const struct lease_when *when)
{
    begin(lease, request, SCRIPT_CONFIRM, true);
    request_add(request, lease->token);
    request_add_format(request, "%" PRIu64, when->fence);
    request_add_format(request, "%" PRId64, lease->ttl_ms);
}

void lease_ask_renew(const struct lease *lease, struct request *request,
                     const struct lease_when *when)
{
    size_t i;

    begin(lease, request, SCRIPT_RENEW, false);
    request_add_format(request, "%" PRId64, when->not_after_ms);
    request_add(request, lease->card);
    request_add(request, lease->wanted);
    request_add_format(request, "%" PRId64, lease->slot);
    for (i = 0; i < lease->n; i++) {
        const struct lease_lock *lock = &lease->lock[i];

        request_add(request, lock->parent > 0 ? lease->parent[lock->parent - 1] : lease->token);
        request_add_format(request, "%" PRId64, lock->ttl_ms);
        request_add_format(request, "%" PRIu64, lock->fence);
    }
}

/* Which value is ours: all that the token wrote, or what one attempt wrote. */
static void add_prefix(struct request *request, const struct lease *lease, bool is_attempt)
{
    if (is_attempt)
        request_add_format(request, "%s v1 try=%" PRId64 " ", lease->token, lease->attempt);
    else
        request_add_format(request, "%s ", lease->token);
}

static uint64_t fence_of(const struct lease *lease)
{
    uint64_t fence = 0;
    size_t i;

    for (i = 0; i < lease->n; i++)
        if (lease->lock[i].fence > fence)
            fence = lease->lock[i].fence;
    return fence;
}

void lease_ask_release(const struct lease *lease, struct request *request,
                       const struct lease_when *when)
{
    static const char *const endings[] = {
        [RLOCK_ENDS_FREE] = "", [RLOCK_ENDS_REST] = "rest", [RLOCK_ENDS_DONE] = "done"};

    (void)when;
    begin(lease, request, SCRIPT_RELEASE, true);
    add_prefix(request, lease, false);
    request_add_format(request, "%" PRIu64, fence_of(lease));
    request_add(request,
                lease->has_renewer || (lease->is_voted && !lease->is_adopted) ? lease->token : "");
    request_add(request, endings[lease->ending]);
    request_add_format(request, "%" PRId64, lease->stay_ms);
    request_add(request, lease->card);
}

/* Take back what was never reported; the leaver leaves the line as well. */
static void ask_back(const struct lease *lease, struct request *request, bool is_attempt)
{
    begin(lease, request, SCRIPT_RELEASE, false);
    add_prefix(request, lease, is_attempt);
    request_add(request, "");
    request_add(request, is_attempt ? "" : lease->token);
    request_add(request, "");
}

void lease_ask_undo(const struct lease *lease, struct request *request,
                    const struct lease_when *when)
{
    (void)when;
    ask_back(lease, request, true);
    request_use_eval(request); /* nobody will be there to hear that it isn't known */
}

void lease_ask_requeue(const struct lease *lease, struct request *request,
                       const struct lease_when *when)
{
    (void)when;
    ask_back(lease, request, true);
    request_add(request, "");
    request_add(request, lease->card);
    request_add_format(request, "%" PRId64, lease->ticket);
    request_add(request, lease->wanted);
}

void lease_ask_leave(const struct lease *lease, struct request *request,
                     const struct lease_when *when)
{
    (void)when;
    ask_back(lease, request, false);
}

int64_t lease_block_ms(const struct lease *lease, int64_t ms)
{
    if (ms < 1)
        ms = 1; /* 0 would be for ever */
    return lease->whole_seconds ? (ms + 999) / 1000 * 1000 : ms;
}

void lease_ask_wake(const struct lease *lease, struct request *request,
                    const struct lease_when *when)
{
    int64_t block_ms = when->block_ms;
    size_t i;

    request_begin(request, "BLPOP");
    for (i = 0; i < lease->n; i++)
        request_add(request, lease->lock[i].wake_key);
    if (block_ms % 1000 == 0)
        request_add_format(request, "%" PRId64, block_ms / 1000);
    else
        request_add_format(request, "%" PRId64 ".%03d", block_ms / 1000, (int)(block_ms % 1000));
}
