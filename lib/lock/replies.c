/* SPDX-License-Identifier: MIT */
/*
 * replies: parses the replies of the Lua scripts, and of commands sent instead of scripts.
 *
 * The functions check every element: a reply comes from the network, and parts of it may come from
 * another program that wrote into the lock's key.
 */
#include "lock/replies.h"

#include "base/err.h"
#include "lock/holder_info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US_PER_S INT64_C(1000000)
#define US_OF_16_DIGITS UINT64_C(1000000000000000) /* the least number of 16 digits */

/* Longer times in a reply are cut to this, so that a sum with the clock can't overflow. */
#define LEFT_MAX_MS (INT64_C(1) << 53)
#define BLOCK_MAX_MS 60000
#define NEXT_PLACES 2 /* waiters up to this place in the queue may get the lock at any moment */

/* Parses decimal digits up to the character `stop`. Returns a pointer to `stop`, or NULL. */
static const char *read_digits(const char *text, char stop, uint64_t *number)
{
    char *end;

    if (text == NULL || text[0] < '0' || text[0] > '9')
        return NULL;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return *end == stop && errno == 0 ? end : NULL;
}

/* Parses {code, server's time, ...}: the start of the replies of acquire, confirm and renew. */
static enum rlock_status read_head(const struct resp_value *value, struct reply *reply,
                                   struct rlock_error *err)
{
    int64_t code = resp_int(resp_array_at(value, 0));

    *reply = (struct reply){.code = (enum reply_code)code};
    if (!resp_is_int(resp_array_at(value, 0)) || !resp_is_int(resp_array_at(value, 1)))
        return reply_unexpected_script(err);
    if ((int64_t)reply->code != code)
        return reply_unexpected_script(err);
    reply->server_ms = resp_int(resp_array_at(value, 1));
    return RLOCK_OK;
}

void reply_set_obstacle(struct reply *reply, const char *lock, int64_t left_ms, int64_t now_ms)
{
    struct rlock_obstacle *obstacle = &reply->obstacle;
    struct rlock_party *holder = &obstacle->holder;

    obstacle->seen = holder_info_seen(lock);
    holder_info_parse_lock(lock, holder);
    reply->is_rlock = holder_info_is_rlock(lock);
    holder_info_members_hash(lock, reply->members_hash, sizeof reply->members_hash);
    reply->holder_ttl_ms = holder->ttl_ms <= RLOCK_TTL_MAX_MS ? holder->ttl_ms : 0;
    snprintf(reply->holder_id, sizeof reply->holder_id, "%s", lock);
    if (left_ms < 0)
        left_ms = -1;
    obstacle->left_ms = left_ms < LEFT_MAX_MS ? left_ms : LEFT_MAX_MS;
    holder_info_set_times(holder, now_ms, obstacle->left_ms);
}

/* Parses ms left and the lock's value in {code, time, ms left, value, ...}. */
static enum rlock_status read_obstacle(const struct resp_value *value, struct reply *reply,
                                       struct rlock_error *err)
{
    size_t n;
    const char *lock = resp_string(resp_array_at(value, 3), &n);

    if (lock == NULL || !resp_is_int(resp_array_at(value, 2)))
        return reply_unexpected_script(err);
    reply_set_obstacle(reply, lock, resp_int(resp_array_at(value, 2)), reply->server_ms);
    return RLOCK_OK;
}

/*
 * Parses {code, time, text}. The text is a word and the holder info of the newer waiter, or of
 * whoever has broken the lock; "": the server doesn't know who that is.
 */
static enum rlock_status read_other(const struct resp_value *value, struct reply *reply,
                                    struct rlock_error *err)
{
    size_t n;
    const char *info = resp_string(resp_array_at(value, 2), &n);

    if (info == NULL)
        return reply_unexpected_script(err);
    if (*info != '\0')
        holder_info_parse(info, &reply->obstacle.holder);
    return RLOCK_OK;
}

/* Parses which lock is in the way; the scripts count the locks from 1. */
static enum rlock_status read_key(const struct resp_value *value, struct reply *reply,
                                  struct rlock_error *err)
{
    int64_t key = resp_int(value);

    if (!resp_is_int(value) || key < 1 || key > RLOCK_KEYS_MAX)
        return reply_unexpected_script(err);
    reply->obstacle.key = (size_t)key - 1;
    return RLOCK_OK;
}

/* Parses the last four of {code, time, ms left, value, ms to block, ticket, place, which lock}. */
static enum rlock_status read_wait(const struct resp_value *value, struct reply *reply,
                                   struct rlock_error *err)
{
    const char *ticket;
    size_t n;

    ticket = resp_string(resp_array_at(value, 5), &n);
    if (ticket == NULL || !resp_is_int(resp_array_at(value, 4)) ||
        !resp_is_int(resp_array_at(value, 6)))
        return reply_unexpected_script(err);
    reply->block_ms = resp_int(resp_array_at(value, 4));
    reply->ticket = (int64_t)strtoll(ticket, NULL, 10);
    reply->obstacle.place = resp_int(resp_array_at(value, 6));
    reply->obstacle.is_next = reply->obstacle.place > 0 && reply->obstacle.place <= NEXT_PLACES;
    if (reply->block_ms < 0 || reply->block_ms > BLOCK_MAX_MS || reply->ticket < 0)
        return reply_unexpected_script(err);
    return read_key(resp_array_at(value, 7), reply, err);
}

/* Parses a fence, which is text: Lua's own conversion of a number to text keeps only 14 digits. */
static enum rlock_status read_fence(const struct resp_value *value, uint64_t *fence,
                                    struct rlock_error *err)
{
    size_t n;
    const char *text = resp_string(value, &n);
    const char *end = read_digits(text, '\0', fence);

    return end != NULL && end == text + n && *fence > 0 ? RLOCK_OK : reply_unexpected_script(err);
}

/* Parses "PARENT:FENCE:TTL" of each lock, with a blank between two of them. */
static enum rlock_status read_locks(const struct resp_value *value, struct reply *reply,
                                    struct rlock_error *err)
{
    uint64_t parent;
    uint64_t ttl;
    size_t bytes;
    const char *at = resp_string(value, &bytes);
    const char *text = at;

    while (at != NULL && reply->n_locks < RLOCK_KEYS_MAX) {
        struct granted_lock *lock = &reply->lock[reply->n_locks++];
        const char *behind_parent = read_digits(at, ':', &parent);
        const char *behind_fence =
            behind_parent == NULL ? NULL : read_digits(behind_parent + 1, ':', &lock->fence);

        if (behind_fence == NULL || parent > RLOCK_PARENTS_MAX)
            return reply_unexpected_script(err);
        at = read_digits(behind_fence + 1, ' ', &ttl);
        if (at == NULL && read_digits(behind_fence + 1, '\0', &ttl) != text + bytes)
            return reply_unexpected_script(err);
        if (ttl < RLOCK_TTL_MIN_MS || ttl > RLOCK_TTL_MAX_MS)
            return reply_unexpected_script(err);
        lock->parent = (size_t)parent;
        lock->ttl_ms = (int64_t)ttl;
        if (at == NULL)
            return RLOCK_OK;
        at++;
    }
    return reply_unexpected_script(err);
}

/*
 * Parses {code, time, fence}; or, if the grant includes a slot or a lock of a parent, {code, time,
 * fence, slot, locks}.
 */
static enum rlock_status read_grant(const struct resp_value *value, struct reply *reply,
                                    struct rlock_error *err)
{
    enum rlock_status st = read_fence(resp_array_at(value, 2), &reply->fence, err);

    if (st != RLOCK_OK || resp_array_count(value) == 3)
        return st;
    reply->slot = resp_int(resp_array_at(value, 3));
    if (!resp_is_int(resp_array_at(value, 3)) || reply->slot < 0 || reply->slot >= RLOCK_SLOTS_MAX)
        return reply_unexpected_script(err);
    return read_locks(resp_array_at(value, 4), reply, err);
}

/* Parses the reply of the usual grant: the fence alone, 16 digits, the server's time in us. */
static enum rlock_status read_usual_grant(const struct resp_value *value, struct reply *reply,
                                          struct rlock_error *err)
{
    *reply = (struct reply){.code = REPLY_OK};
    if (read_fence(value, &reply->fence, err) != RLOCK_OK || reply->fence < US_OF_16_DIGITS)
        return reply_unexpected_script(err);
    reply->server_ms = (int64_t)(reply->fence / 1000);
    return RLOCK_OK;
}

enum rlock_status reply_parse_acquire(const struct resp_value *value, struct reply *reply,
                                      struct rlock_error *err)
{
    enum rlock_status st;
    size_t n;

    if (resp_string(value, &n) != NULL)
        return read_usual_grant(value, reply, err);
    st = read_head(value, reply, err);
    if (st != RLOCK_OK)
        return st;
    switch (reply->code) {
    case REPLY_OK:
        return read_grant(value, reply, err);
    case REPLY_HELD:
        st = read_obstacle(value, reply, err);
        return st == RLOCK_OK ? read_wait(value, reply, err) : st;
    case REPLY_DONE:
        return read_obstacle(value, reply, err);
    case REPLY_OTHER_MODE:
        return read_key(resp_array_at(value, 2), reply, err);
    case REPLY_SUPERSEDED:
        return read_other(value, reply, err);
    case REPLY_GONE:
    case REPLY_LATE:
        return RLOCK_OK;
    case REPLY_RELEASED:
    case REPLY_RESTORED:
    case REPLY_BROKEN:
        break;
    }
    return reply_unexpected_script(err);
}

enum rlock_status reply_parse_confirm(const struct resp_value *value, struct reply *reply,
                                      struct rlock_error *err)
{
    enum rlock_status st = read_head(value, reply, err);

    if (st != RLOCK_OK || reply->code == REPLY_GONE)
        return st;
    if (reply->code != REPLY_OK && reply->code != REPLY_LATE)
        return reply_unexpected_script(err);
    return read_fence(resp_array_at(value, 2), &reply->fence, err);
}

/* Parses {code, time, ms left}; timestamp_lock_renew.lua leaves out the third element. */
static enum rlock_status read_left(const struct resp_value *value, struct reply *reply,
                                   struct rlock_error *err)
{
    if (resp_array_count(value) == 2)
        return RLOCK_OK;
    reply->left_ms = resp_int(resp_array_at(value, 2));
    if (!resp_is_int(resp_array_at(value, 2)) || reply->left_ms < 1 || reply->left_ms > LEFT_MAX_MS)
        return reply_unexpected_script(err);
    return RLOCK_OK;
}

enum rlock_status reply_parse_renew(const struct resp_value *value, struct reply *reply,
                                    struct rlock_error *err)
{
    enum rlock_status st = read_head(value, reply, err);

    if (st != RLOCK_OK)
        return st;
    switch (reply->code) {
    case REPLY_OK:
    case REPLY_RESTORED:
        return read_left(value, reply, err);
    case REPLY_HELD:
        return read_obstacle(value, reply, err);
    case REPLY_BROKEN:
        return read_other(value, reply, err);
    case REPLY_GONE:
    case REPLY_LATE:
    case REPLY_RELEASED:
        return RLOCK_OK;
    case REPLY_DONE:
    case REPLY_OTHER_MODE:
    case REPLY_SUPERSEDED:
        break;
    }
    return reply_unexpected_script(err);
}

enum rlock_status reply_parse_release(const struct resp_value *value, struct reply *reply,
                                      struct rlock_error *err)
{
    *reply = (struct reply){.code = REPLY_GONE};
    return reply_parse_break(value, &reply->code, err);
}

enum rlock_status reply_parse_break(const struct resp_value *value, enum reply_code *code,
                                    struct rlock_error *err)
{
    int64_t number = resp_int(value);

    if (!resp_is_int(value) || (number != REPLY_OK && number != REPLY_HELD && number != REPLY_GONE))
        return reply_unexpected_script(err);
    *code = (enum reply_code)number;
    return RLOCK_OK;
}

int64_t reply_soon_ms(const struct resp_value *value)
{
    size_t n;
    const char *why = resp_string(resp_array_at(value, 1), &n);
    int ms;

    return why != NULL && sscanf(why, "soon %5d", &ms) == 1 && ms >= 0 ? ms : -1;
}

/* ---- parsing replies of commands ---- */

enum rlock_status reply_unexpected_script(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_PROTOCOL, 0,
                   "unexpected reply to rlock's script: look at a proxy in between");
}

enum rlock_status reply_unexpected_command(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_PROTOCOL, 0,
                   "unexpected reply to a command: look at a proxy in between");
}

const char *reply_first_error(const struct resp_value *replies, size_t first, size_t end)
{
    size_t i;

    for (i = first; i < end && i < resp_array_count(replies); i++)
        if (resp_error(resp_array_at(replies, i)) != NULL)
            return resp_error(resp_array_at(replies, i));
    return NULL;
}

int64_t reply_time_us(const struct resp_value *reply)
{
    size_t n;
    const char *seconds = resp_string(reply == NULL ? NULL : resp_array_at(reply, 0), &n);
    const char *rest = resp_string(reply == NULL ? NULL : resp_array_at(reply, 1), &n);
    int64_t us;

    if (seconds == NULL || rest == NULL || strlen(seconds) > 11 || strlen(rest) > 6)
        return 0;
    us = strtoll(seconds, NULL, 10) * US_PER_S + strtoll(rest, NULL, 10);
    return us > 0 ? us : 0;
}
