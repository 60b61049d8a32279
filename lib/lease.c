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
#include "script.h"
#include "slot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT_MAX_MS (INT64_C(1) << 53) /* more than anybody means, and safe to add to */

enum rlock_status lease_open(struct lease *lease, const struct rlock_config *config,
                             struct rlock_error *err)
{
    *lease = (struct lease){.ttl_ms = config->timing.ttl_ms};
    if (config->key[0] == '\0' || strlen(config->key) > RLOCK_KEY_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "a key has 1 to %d bytes", RLOCK_KEY_MAX);
    lease->key = strdup(config->key);
    lease->fence_key = slot_helper_key("fence", config->key);
    if (lease->key == NULL || lease->fence_key == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    card_write(lease->card, &config->holder);
    return random_token(lease->token, err);
}

void lease_close(struct lease *lease)
{
    free(lease->key);
    free(lease->fence_key);
    explicit_bzero(lease, sizeof *lease);
}

void lease_ask_acquire(const struct lease *lease, struct request *request,
                       struct lease_words *words, int64_t not_after_ms)
{
    snprintf(words->attempt, sizeof words->attempt, "%" PRId64, lease->attempt);
    snprintf(words->ttl, sizeof words->ttl, "%" PRId64, lease->ttl_ms);
    snprintf(words->not_after, sizeof words->not_after, "%" PRId64, not_after_ms);
    script_request(request, SCRIPT_ACQUIRE, lease->key, lease->fence_key);
    request_add(request, lease->token);
    request_add(request, words->attempt);
    request_add(request, lease->card);
    request_add(request, words->ttl);
    request_add(request, words->not_after);
}

void lease_ask_renew(const struct lease *lease, struct request *request, struct lease_words *words,
                     int64_t not_after_ms)
{
    snprintf(words->ttl, sizeof words->ttl, "%" PRId64, lease->ttl_ms);
    snprintf(words->fence, sizeof words->fence, "%" PRIu64, lease->fence);
    snprintf(words->not_after, sizeof words->not_after, "%" PRId64, not_after_ms);
    script_request(request, SCRIPT_RENEW, lease->key, lease->fence_key);
    request_add(request, lease->token);
    request_add(request, words->ttl);
    request_add(request, words->fence);
    request_add(request, lease->card);
    request_add(request, words->not_after);
}

void lease_ask_release(const struct lease *lease, struct request *request,
                       struct lease_words *words)
{
    snprintf(words->prefix, sizeof words->prefix, "%s ", lease->token);
    snprintf(words->fence, sizeof words->fence, "%" PRIu64, lease->fence);
    script_request(request, SCRIPT_RELEASE, lease->key, lease->fence_key);
    request_add(request, words->prefix);
    request_add(request, words->fence);
}

void lease_ask_undo(const struct lease *lease, struct request *request, struct lease_words *words)
{
    snprintf(words->prefix, sizeof words->prefix, "%s v1 try=%" PRId64 " ", lease->token,
             lease->attempt);
    script_request(request, SCRIPT_RELEASE, lease->key, lease->fence_key);
    request_add(request, words->prefix);
    request_add(request, "");
}

static enum rlock_status unexpected(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: not what the script returns");
}

static enum rlock_status read_obstacle(const struct reply *reply, struct rlock_obstacle *obstacle,
                                       struct rlock_error *err)
{
    size_t n = 0;
    const char *value = reply_text(reply_at(reply, 3), &n);
    int64_t left;

    if (value == NULL || !reply_is_int(reply_at(reply, 2)))
        return unexpected(err);
    card_describe(obstacle->holder, sizeof obstacle->holder, value);
    left = reply_int(reply_at(reply, 2));
    if (left < 0)
        left = -1;
    obstacle->left_ms = left < LEFT_MAX_MS ? left : LEFT_MAX_MS;
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

/* What the answers to an acquire and a renewal have in common: all but what 1 and 2 mean. */
static enum rlock_status read_answer(const struct reply *reply, struct lease_answer *answer,
                                     struct rlock_error *err)
{
    *answer = (struct lease_answer){.kind = LEASE_GRANTED};
    if (!reply_is_int(reply_at(reply, 0)) || !reply_is_int(reply_at(reply, 1)))
        return unexpected(err);
    answer->server_ms = reply_int(reply_at(reply, 1));
    switch (reply_int(reply_at(reply, 0))) {
    case 0:
        answer->kind = LEASE_HELD;
        return read_obstacle(reply, &answer->obstacle, err);
    case -1:
        answer->kind = LEASE_GONE;
        return RLOCK_OK;
    case -2:
        answer->kind = LEASE_LATE;
        return RLOCK_OK;
    default:
        return unexpected(err);
    }
}

enum rlock_status lease_read_grant(const struct reply *reply, struct lease_answer *answer,
                                   struct rlock_error *err)
{
    if (reply_int(reply_at(reply, 0)) != 1)
        return read_answer(reply, answer, err);
    if (!reply_is_int(reply_at(reply, 1)))
        return unexpected(err);
    *answer =
        (struct lease_answer){.kind = LEASE_GRANTED, .server_ms = reply_int(reply_at(reply, 1))};
    return read_fence(reply_at(reply, 2), &answer->fence, err);
}

enum rlock_status lease_read_renewal(const struct reply *reply, struct lease_answer *answer,
                                     struct rlock_error *err)
{
    int64_t what = reply_int(reply_at(reply, 0));

    if (what != 1 && what != 2)
        return read_answer(reply, answer, err);
    if (!reply_is_int(reply_at(reply, 1)))
        return unexpected(err);
    *answer = (struct lease_answer){.kind = what == 1 ? LEASE_GRANTED : LEASE_RESTORED,
                                    .server_ms = reply_int(reply_at(reply, 1))};
    return RLOCK_OK;
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
