/* SPDX-License-Identifier: MIT */
/*
 * lease: what is asked of one server about one lock, and what its answers mean.
 *
 * One token serves every attempt, so that an attempt whose reply was lost is
 * recognised as ours. The value also says which attempt wrote it: the undo of
 * a given-up attempt can then delete only what that attempt left behind, never
 * what a later one was granted.
 */
#include "lease.h"

#include "err.h"
#include "random.h"
#include "slot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT_MAX_MS (INT64_C(1) << 53) /* more than anybody means, and safe to add to */
#define BLOCK_MAX_MS 60000
#define CODE_FIRST (-3) /* of those that the scripts return */
#define CODE_LAST 2

static const char *const key_kinds[SCRIPT_KEYS] = {
    [KEY_FENCE] = "fence", [KEY_LINE] = "line", [KEY_WAITERS] = "waiters"};

static bool name_keys(struct lease *lease, const char *key)
{
    size_t bytes;
    bool all;
    int i;

    lease->key[KEY_LOCK] = strdup(key);
    all = lease->key[KEY_LOCK] != NULL;
    for (i = KEY_FENCE; i < SCRIPT_KEYS; i++) {
        lease->key[i] = slot_helper_key(key_kinds[i], key);
        all = all && lease->key[i] != NULL;
    }
    lease->wake_prefix = slot_helper_key("wake", key);
    if (!all || lease->wake_prefix == NULL)
        return false;
    bytes = strlen(lease->wake_prefix) + RLOCK_TOKEN_BYTES + 1;
    lease->wake_key = malloc(bytes);
    if (lease->wake_key != NULL)
        snprintf(lease->wake_key, bytes, "%s%s", lease->wake_prefix, lease->token);
    return lease->wake_key != NULL;
}

enum rlock_status lease_open(struct lease *lease, const struct rlock_config *config,
                             struct rlock_error *err)
{
    enum rlock_status st;

    *lease = (struct lease){.ttl_ms = config->timing.ttl_ms, .queue = config->queue};
    if (config->key[0] == '\0' || strlen(config->key) > RLOCK_KEY_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "a key has 1 to %d bytes", RLOCK_KEY_MAX);
    card_write(lease->card, &config->holder);
    st = random_token(lease->token, err);
    if (st == RLOCK_OK && !name_keys(lease, config->key))
        st = err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    return st;
}

void lease_close(struct lease *lease)
{
    int i;

    for (i = 0; i < SCRIPT_KEYS; i++)
        free(lease->key[i]);
    free(lease->wake_prefix);
    free(lease->wake_key);
    explicit_bzero(lease, sizeof *lease);
}

static const char *way_to_wait(const struct lease *lease)
{
    static const char *const ways[] = {
        [RLOCK_QUEUE_FIFO] = "fifo", [RLOCK_QUEUE_NONE] = "none", [RLOCK_QUEUE_NEWEST] = "newest"};

    return lease->is_once && lease->queue != RLOCK_QUEUE_NONE ? "try" : ways[lease->queue];
}

void lease_ask_acquire(const struct lease *lease, struct request *request,
                       struct lease_words *words)
{
    snprintf(words->attempt, sizeof words->attempt, "%" PRId64, lease->attempt);
    snprintf(words->ttl, sizeof words->ttl, "%" PRId64, lease->ttl_ms);
    snprintf(words->not_after, sizeof words->not_after, "%" PRId64, words->not_after_ms);
    snprintf(words->ticket, sizeof words->ticket, "%" PRId64, lease->ticket);
    script_request(request, SCRIPT_ACQUIRE, lease->key);
    request_add(request, lease->wake_prefix);
    request_add(request, lease->token);
    request_add(request, words->attempt);
    request_add(request, lease->card);
    request_add(request, words->ttl);
    request_add(request, words->not_after);
    request_add(request, way_to_wait(lease));
    request_add(request, lease->ticket > 0 ? words->ticket : "");
}

void lease_ask_renew(const struct lease *lease, struct request *request, struct lease_words *words)
{
    snprintf(words->ttl, sizeof words->ttl, "%" PRId64, lease->ttl_ms);
    snprintf(words->fence, sizeof words->fence, "%" PRIu64, lease->fence);
    snprintf(words->not_after, sizeof words->not_after, "%" PRId64, words->not_after_ms);
    script_request(request, SCRIPT_RENEW, lease->key);
    request_add(request, lease->token);
    request_add(request, words->ttl);
    request_add(request, words->fence);
    request_add(request, lease->card);
    request_add(request, words->not_after);
}

/* Release in its three forms: which value is ours, which fence ends, who leaves the line. */
static void ask_release(const struct lease *lease, struct request *request, const char *prefix,
                        const char *fence, const char *leaver)
{
    script_request(request, SCRIPT_RELEASE, lease->key);
    request_add(request, lease->wake_prefix);
    request_add(request, prefix);
    request_add(request, fence);
    request_add(request, leaver);
}

void lease_ask_release(const struct lease *lease, struct request *request,
                       struct lease_words *words)
{
    snprintf(words->prefix, sizeof words->prefix, "%s ", lease->token);
    snprintf(words->fence, sizeof words->fence, "%" PRIu64, lease->fence);
    ask_release(lease, request, words->prefix, words->fence, "");
}

void lease_ask_undo(const struct lease *lease, struct request *request, struct lease_words *words)
{
    snprintf(words->prefix, sizeof words->prefix, "%s v1 try=%" PRId64 " ", lease->token,
             lease->attempt);
    ask_release(lease, request, words->prefix, "", "");
}

void lease_ask_leave(const struct lease *lease, struct request *request, struct lease_words *words)
{
    snprintf(words->prefix, sizeof words->prefix, "%s ", lease->token);
    ask_release(lease, request, words->prefix, "", lease->token);
}

void lease_ask_wake(const struct lease *lease, struct request *request, struct lease_words *words)
{
    int64_t block_ms = words->block_ms > 0 ? words->block_ms : 1; /* 0 would be for ever */

    if (lease->whole_seconds)
        block_ms = (block_ms + 999) / 1000 * 1000;
    if (block_ms % 1000 == 0)
        snprintf(words->seconds, sizeof words->seconds, "%" PRId64, block_ms / 1000);
    else
        snprintf(words->seconds, sizeof words->seconds, "%" PRId64 ".%03d", block_ms / 1000,
                 (int)(block_ms % 1000));
    request->n = 0;
    request_add(request, "BLPOP");
    request_add(request, lease->wake_key);
    request_add(request, words->seconds);
}

static enum rlock_status unexpected(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: not what the script returns");
}

static enum rlock_status read_held(const struct reply *reply, struct lease_answer *answer,
                                   struct rlock_error *err)
{
    struct rlock_obstacle *obstacle = &answer->obstacle;
    const char *value;
    int64_t left;
    size_t n;

    value = reply_text(reply_at(reply, 3), &n);
    if (value == NULL || !reply_is_int(reply_at(reply, 2)))
        return unexpected(err);
    card_describe(obstacle->holder, sizeof obstacle->holder, value);
    left = reply_int(reply_at(reply, 2));
    if (left < 0)
        left = -1;
    obstacle->left_ms = left < LEFT_MAX_MS ? left : LEFT_MAX_MS;
    return RLOCK_OK;
}

/* Who asked for the lock and is to wait for it also learns how. */
static enum rlock_status read_wait(const struct reply *reply, struct lease_answer *answer,
                                   struct rlock_error *err)
{
    const char *ticket;
    size_t n;

    ticket = reply_text(reply_at(reply, 5), &n);
    if (ticket == NULL || !reply_is_int(reply_at(reply, 4)) || !reply_is_int(reply_at(reply, 6)))
        return unexpected(err);
    answer->block_ms = reply_int(reply_at(reply, 4));
    answer->ticket = (int64_t)strtoll(ticket, NULL, 10);
    answer->obstacle.place = reply_int(reply_at(reply, 6));
    if (answer->block_ms < 0 || answer->block_ms > BLOCK_MAX_MS || answer->ticket < 0)
        return unexpected(err);
    return RLOCK_OK;
}

/* A fence comes as text: it is greater than what Lua's numbers convert to exactly everywhere. */
static enum rlock_status read_fence(const struct reply *reply, uint64_t *fence,
                                    struct rlock_error *err)
{
    size_t n;
    const char *text = reply_text(reply, &n);
    char *end;

    if (text == NULL || text[0] < '0' || text[0] > '9')
        return unexpected(err);
    errno = 0;
    *fence = strtoull(text, &end, 10);
    return end == text + n && errno == 0 && *fence > 0 ? RLOCK_OK : unexpected(err);
}

/* What every answer to an acquire or a renewal begins with, and who holds the lock if held. */
static enum rlock_status read_answer(const struct reply *reply, struct lease_answer *answer,
                                     struct rlock_error *err)
{
    static const enum lease_kind kinds[] = {LEASE_SUPERSEDED, LEASE_LATE,    LEASE_GONE,
                                            LEASE_HELD,       LEASE_GRANTED, LEASE_RESTORED};
    int64_t code = reply_int(reply_at(reply, 0));

    *answer = (struct lease_answer){.kind = LEASE_GRANTED};
    if (!reply_is_int(reply_at(reply, 0)) || !reply_is_int(reply_at(reply, 1)))
        return unexpected(err);
    if (code < CODE_FIRST || code > CODE_LAST)
        return unexpected(err);
    answer->server_ms = reply_int(reply_at(reply, 1));
    answer->kind = kinds[code - CODE_FIRST];
    return answer->kind == LEASE_HELD ? read_held(reply, answer, err) : RLOCK_OK;
}

enum rlock_status lease_read_grant(const struct reply *reply, struct lease_answer *answer,
                                   struct rlock_error *err)
{
    enum rlock_status st = read_answer(reply, answer, err);

    if (st != RLOCK_OK)
        return st;
    if (answer->kind == LEASE_GRANTED)
        return read_fence(reply_at(reply, 2), &answer->fence, err);
    if (answer->kind == LEASE_HELD)
        return read_wait(reply, answer, err);
    return answer->kind == LEASE_RESTORED ? unexpected(err) : RLOCK_OK;
}

enum rlock_status lease_read_renewal(const struct reply *reply, struct lease_answer *answer,
                                     struct rlock_error *err)
{
    enum rlock_status st = read_answer(reply, answer, err);

    return st == RLOCK_OK && answer->kind == LEASE_SUPERSEDED ? unexpected(err) : st;
}

enum rlock_status lease_read_release(const struct reply *reply, struct lease_answer *answer,
                                     struct rlock_error *err)
{
    static const enum lease_kind kinds[] = {LEASE_GONE, LEASE_HELD, LEASE_GRANTED};
    int64_t what = reply_int(reply);

    *answer = (struct lease_answer){.kind = LEASE_GONE};
    if (!reply_is_int(reply) || what < -1 || what > 1)
        return unexpected(err);
    answer->kind = kinds[what + 1];
    return RLOCK_OK;
}
