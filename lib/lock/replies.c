/* SPDX-License-Identifier: MIT */
/* replies: what the replies of the scripts mean. */
#include "lock/replies.h"

#include "base/err.h"
#include "lock/holder_info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT_MAX_MS (INT64_C(1) << 53) /* more than anybody means, and safe to add to */
#define BLOCK_MAX_MS 60000
#define NEXT_PLACES 2   /* whose turn may come at any moment without a word before it */
#define CODE_FIRST (-5) /* of those that the scripts return */
#define CODE_LAST 3

static enum rlock_status unexpected(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: not what the script returns");
}

/* Decimal digits up to `end`, and nothing else. NULL if there are none; else where they stop. */
static const char *read_digits(const char *text, char stop, uint64_t *number)
{
    char *end;

    if (text == NULL || text[0] < '0' || text[0] > '9')
        return NULL;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return *end == stop && errno == 0 ? end : NULL;
}

/* Who is in the way, since when and for how long yet. */
static enum rlock_status read_obstacle(const struct resp_value *reply, struct answer *answer,
                                       struct rlock_error *err)
{
    struct rlock_obstacle *obstacle = &answer->obstacle;
    struct rlock_party holder;
    const char *value;
    int64_t left;
    size_t n;

    value = resp_string(resp_array_at(reply, 3), &n);
    if (value == NULL || !resp_is_int(resp_array_at(reply, 2)))
        return unexpected(err);
    holder_info_holder(value, &holder);
    snprintf(obstacle->holder, sizeof obstacle->holder, "%s", holder.text);
    obstacle->since_ms = holder.since_ms;
    answer->is_written = holder_info_is_ours(value);
    holder_info_list(value, answer->list, sizeof answer->list);
    answer->holder_ttl_ms = holder.ttl_ms <= RLOCK_TTL_MAX_MS ? holder.ttl_ms : 0;
    snprintf(answer->owner, sizeof answer->owner, "%s", value);
    left = resp_int(resp_array_at(reply, 2));
    if (left < 0)
        left = -1;
    obstacle->left_ms = left < LEFT_MAX_MS ? left : LEFT_MAX_MS;
    return RLOCK_OK;
}

/* Who asked for the lock and is to wait for it also learns how. */
static enum rlock_status read_wait(const struct resp_value *reply, struct answer *answer,
                                   struct rlock_error *err)
{
    int64_t key = resp_int(resp_array_at(reply, 7));
    const char *ticket;
    size_t n;

    ticket = resp_string(resp_array_at(reply, 5), &n);
    if (ticket == NULL || !resp_is_int(resp_array_at(reply, 4)) ||
        !resp_is_int(resp_array_at(reply, 6)))
        return unexpected(err);
    answer->block_ms = resp_int(resp_array_at(reply, 4));
    answer->ticket = (int64_t)strtoll(ticket, NULL, 10);
    answer->obstacle.place = resp_int(resp_array_at(reply, 6));
    answer->obstacle.is_next = answer->obstacle.place > 0 && answer->obstacle.place <= NEXT_PLACES;
    if (answer->block_ms < 0 || answer->block_ms > BLOCK_MAX_MS || answer->ticket < 0)
        return unexpected(err);
    if (!resp_is_int(resp_array_at(reply, 7)) || key < 1 || key > RLOCK_KEYS_MAX)
        return unexpected(err);
    answer->obstacle.key = (size_t)key - 1;
    return RLOCK_OK;
}

/* A fence comes as text: it is greater than what Lua's numbers convert to exactly everywhere. */
static enum rlock_status read_fence(const struct resp_value *reply, uint64_t *fence,
                                    struct rlock_error *err)
{
    size_t n;
    const char *text = resp_string(reply, &n);
    const char *end = read_digits(text, '\0', fence);

    return end != NULL && end == text + n && *fence > 0 ? RLOCK_OK : unexpected(err);
}

/* "OUTER:FENCE:TTL" of each lock, with blanks between them. */
static enum rlock_status read_holdings(const struct resp_value *reply, struct answer *answer,
                                       struct rlock_error *err)
{
    uint64_t parent;
    uint64_t ttl;
    size_t bytes;
    const char *at = resp_string(reply, &bytes);
    const char *text = at;

    while (at != NULL && answer->n_holdings < RLOCK_KEYS_MAX) {
        struct holding *holding = &answer->holding[answer->n_holdings++];
        const char *fence = read_digits(at, ':', &parent);
        const char *length = fence == NULL ? NULL : read_digits(fence + 1, ':', &holding->fence);

        if (length == NULL || parent > RLOCK_PARENTS_MAX)
            return unexpected(err);
        at = read_digits(length + 1, ' ', &ttl);
        if (at == NULL && read_digits(length + 1, '\0', &ttl) != text + bytes)
            return unexpected(err);
        if (ttl < RLOCK_TTL_MIN_MS || ttl > RLOCK_TTL_MAX_MS)
            return unexpected(err);
        holding->parent = (size_t)parent;
        holding->ttl_ms = (int64_t)ttl;
        if (at == NULL)
            return RLOCK_OK;
        at++;
    }
    return unexpected(err);
}

static enum rlock_status read_granted(const struct resp_value *reply, struct answer *answer,
                                      struct rlock_error *err)
{
    enum rlock_status st = read_fence(resp_array_at(reply, 2), &answer->fence, err);

    if (st != RLOCK_OK || resp_array_count(reply) == 3)
        return st;
    answer->slot = resp_int(resp_array_at(reply, 3));
    if (!resp_is_int(resp_array_at(reply, 3)) || answer->slot < 0 ||
        answer->slot >= RLOCK_SLOTS_MAX)
        return unexpected(err);
    return read_holdings(resp_array_at(reply, 4), answer, err);
}

/* What every answer to an acquire or a renewal begins with, and who is in the way if anybody is. */
static enum rlock_status read_answer(const struct resp_value *reply, struct answer *answer,
                                     struct rlock_error *err)
{
    static const enum answer_kind kinds[] = {ANSWER_RELEASED, ANSWER_OTHER_MODE, ANSWER_SUPERSEDED,
                                             ANSWER_LATE,     ANSWER_GONE,       ANSWER_HELD,
                                             ANSWER_GRANTED,  ANSWER_RESTORED,   ANSWER_DONE};
    int64_t code = resp_int(resp_array_at(reply, 0));

    *answer = (struct answer){.kind = ANSWER_GRANTED};
    if (!resp_is_int(resp_array_at(reply, 0)) || !resp_is_int(resp_array_at(reply, 1)))
        return unexpected(err);
    if (code < CODE_FIRST || code > CODE_LAST)
        return unexpected(err);
    answer->server_ms = resp_int(resp_array_at(reply, 1));
    answer->kind = kinds[code - CODE_FIRST];
    if (answer->kind == ANSWER_HELD || answer->kind == ANSWER_DONE)
        return read_obstacle(reply, answer, err);
    return RLOCK_OK;
}

enum rlock_status answer_read_grant(const struct resp_value *reply, struct answer *answer,
                                    struct rlock_error *err)
{
    enum rlock_status st = read_answer(reply, answer, err);
    int64_t key;

    if (st != RLOCK_OK)
        return st;
    switch (answer->kind) {
    case ANSWER_GRANTED:
        return read_granted(reply, answer, err);
    case ANSWER_HELD:
        return read_wait(reply, answer, err);
    case ANSWER_OTHER_MODE:
        key = resp_int(resp_array_at(reply, 2));
        if (!resp_is_int(resp_array_at(reply, 2)) || key < 1 || key > RLOCK_KEYS_MAX)
            return unexpected(err);
        answer->obstacle.key = (size_t)key - 1;
        return RLOCK_OK;
    case ANSWER_RELEASED:
    case ANSWER_RESTORED:
        return unexpected(err);
    case ANSWER_DONE:
    case ANSWER_GONE:
    case ANSWER_LATE:
    case ANSWER_SUPERSEDED:
        break;
    }
    return RLOCK_OK;
}

enum rlock_status answer_read_confirmation(const struct resp_value *reply, struct answer *answer,
                                           struct rlock_error *err)
{
    enum rlock_status st = read_answer(reply, answer, err);

    if (st != RLOCK_OK || answer->kind == ANSWER_GONE)
        return st;
    if (answer->kind != ANSWER_GRANTED && answer->kind != ANSWER_LATE)
        return unexpected(err);
    return read_fence(resp_array_at(reply, 2), &answer->fence, err);
}

static bool is_renewed(const struct answer *answer)
{
    return answer->kind == ANSWER_GRANTED || answer->kind == ANSWER_RESTORED;
}

enum rlock_status answer_read_renewal(const struct resp_value *reply, struct answer *answer,
                                      struct rlock_error *err)
{
    enum rlock_status st = read_answer(reply, answer, err);

    if (st == RLOCK_OK && (answer->kind == ANSWER_SUPERSEDED || answer->kind == ANSWER_DONE ||
                           answer->kind == ANSWER_OTHER_MODE))
        return unexpected(err);
    if (st != RLOCK_OK || !is_renewed(answer) || resp_array_count(reply) == 2)
        return st;
    answer->left_ms = resp_int(resp_array_at(reply, 2));
    if (!resp_is_int(resp_array_at(reply, 2)) || answer->left_ms < 1 ||
        answer->left_ms > LEFT_MAX_MS)
        return unexpected(err);
    return RLOCK_OK;
}

enum rlock_status answer_read_release(const struct resp_value *reply, struct answer *answer,
                                      struct rlock_error *err)
{
    static const enum answer_kind kinds[] = {ANSWER_GONE, ANSWER_HELD, ANSWER_GRANTED,
                                             ANSWER_GRANTED};
    int64_t what = resp_int(reply);

    *answer = (struct answer){.kind = ANSWER_GONE, .is_passed_on = what == 2};
    if (!resp_is_int(reply) || what < -1 || what > 2)
        return unexpected(err);
    answer->kind = kinds[what + 1];
    return RLOCK_OK;
}

int64_t answer_soon_ms(const struct resp_value *reply)
{
    size_t n;
    const char *why = resp_string(resp_array_at(reply, 1), &n);
    int ms;

    return why != NULL && sscanf(why, "soon %5d", &ms) == 1 ? ms : -1;
}
