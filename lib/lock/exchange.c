/* SPDX-License-Identifier: MIT */
/*
 * exchange: acquires, renews and releases one exclusive lock by commands, without scripts.
 *
 * The keys and the values are those of the scripts, so that rlocks with and without scripts keep
 * each other out and can read each other's values. How an acquire takes its fence:
 * 1. SET ... NX writes our value. From here until the lease ends nobody else holds the lock.
 * 2. INCR draws the fence.
 * 3. The same request then reads the value. If the value is still ours, the lease had not ended
 *    when INCR was executed: the fence was drawn while we held the lock, so fences grow in the
 *    order of the grants. If the value isn't ours, the lease has ended since step 1, most likely
 *    because this process was stopped: the grant doesn't count, and the number that INCR drew stays
 *    unused.
 * docs/design.md has the whole argument.
 *
 * Before an exchange changes or deletes a value, it must be sure that the key still has the value
 * that it has read. If the server has SET ... IFEQ, DELIFEQ or DELEX, this command compares the
 * value byte for byte. Otherwise the exchange sends WATCH before it reads the value, and makes the
 * change by MULTI and EXEC.
 */
#include "lock/exchange.h"

#include "base/err.h"
#include "server/error_reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *key_of(const struct exchange *exchange, enum lock_key kind)
{
    return exchange->owner->lock[0].keys.name[kind];
}

static void add_int(struct request *request, int64_t number)
{
    request_add_format(request, "%" PRId64, number);
}

static void add_getrange(const struct exchange *exchange, struct request *request)
{
    request_add_command(request, "GETRANGE");
    request_add(request, key_of(exchange, KEY_LOCK));
    request_add(request, "0");
    add_int(request, EXCHANGE_VALUE_BYTES - 2);
}

/* ---- the values that an exchange writes ---- */

/*
 * Is `value` that of a holder with this token? Attempt 0 marks a waiter: a script has reserved the
 * free lock for this waiter, which doesn't hold the lock yet.
 */
static bool has_token(const char *value, const char *token)
{
    size_t n = strlen(token);

    return strncmp(value, token, n) == 0 && value[n] == ' ' &&
           strncmp(value + n, " v1 try=0 ", strlen(" v1 try=0 ")) != 0;
}

/* Makes the value that the owner's attempt writes, the same as take_alone() of acquire.lua. */
static void make_value(struct exchange *exchange)
{
    const struct owner *owner = exchange->owner;

    snprintf(exchange->value, sizeof exchange->value,
             "%s v1 try=%" PRId64 " ttl=%" PRId64 " %s since=%" PRId64, owner->token,
             owner->attempt, owner->ttl_ms, owner->holder_info, exchange->server_ms);
}

/*
 * Makes the value that a release writes if the lock must stay taken for a while (RLOCK_ENDS_REST or
 * RLOCK_ENDS_DONE). The token in this value is 32 zeros, which no owner has, so nobody holds the
 * lock.
 */
static void make_stay_value(struct exchange *exchange)
{
    const struct owner *owner = exchange->owner;

    snprintf(exchange->value, sizeof exchange->value, "%0*d v1 mode=%s %s since=%" PRId64,
             RLOCK_TOKEN_BYTES, 0, owner->ending == RLOCK_ENDS_DONE ? "done" : "rest",
             owner->holder_info, exchange->server_ms);
}

/* Returns the TTL that the holder has noted in the lock's value; 0: it has noted none. */
static int64_t noted_ttl_ms(const char *value)
{
    struct rlock_party party;

    holder_info_parse_lock(value, &party);
    return party.ttl_ms > 0 && party.ttl_ms <= RLOCK_TTL_MAX_MS ? party.ttl_ms : 0;
}

/*
 * Makes the value that a renewal writes: the value that was read. If the new TTL is longer than the
 * one noted in it, the new TTL replaces the noted one.
 */
static void make_renewed_value(struct exchange *exchange)
{
    static const char word[] = " ttl=";
    const char *at = strstr(exchange->seen, word);
    size_t before;

    if (at == NULL || exchange->ttl_ms <= noted_ttl_ms(exchange->seen)) {
        memcpy(exchange->value, exchange->seen, sizeof exchange->value);
        return;
    }
    at += strlen(word);
    before = (size_t)(at - exchange->seen);
    snprintf(exchange->value, sizeof exchange->value, "%.*s%" PRId64 "%s", (int)before,
             exchange->seen, exchange->ttl_ms, at + strspn(at, "0123456789"));
}

/* ---- reading replies, and ending an exchange ---- */

static const struct resp_value *reply_at(const struct resp_value *replies, size_t i)
{
    return resp_array_at(replies, i);
}

/* Copies the reply to GETRANGE into `seen`, which has room for any value that rlock writes. */
static bool read_value(struct exchange *exchange, const struct resp_value *reply)
{
    size_t n;
    const char *value = resp_string(reply, &n);

    if (value == NULL || n >= sizeof exchange->seen)
        return false;
    memcpy(exchange->seen, value, n);
    memset(exchange->seen + n, '\0', sizeof exchange->seen - n);
    return true;
}

static bool has_several_holders(const struct exchange *exchange)
{
    enum rlock_seen seen = holder_info_seen(exchange->seen);

    return seen == RLOCK_SEEN_SHARED || seen == RLOCK_SEEN_SLOTS;
}

/* Ends the exchange: another owner holds the lock. */
static enum rlock_status end_held(struct exchange *exchange, struct reply *answer,
                                  struct rlock_error *err)
{
    bool may_be_ours = exchange->task != EXCHANGE_ACQUIRE || exchange->owner->n_parents > 0;

    if (has_several_holders(exchange) && may_be_ours)
        return err_set(
            err, RLOCK_E_USAGE, 0,
            "the lock is shared or has slots: without scripts rlock can't find out who holds it");
    answer->code = REPLY_HELD;
    reply_set_obstacle(answer, exchange->seen, exchange->left_ms, exchange->server_ms);
    return RLOCK_OK;
}

static enum rlock_status end(struct reply *answer, enum reply_code code)
{
    answer->code = code;
    return RLOCK_OK;
}

/* ---- STEP_TIME: ask for the server's time ---- */

static void build_time(const struct exchange *exchange, const struct exchange_server *server,
                       struct request *request)
{
    (void)exchange;
    (void)server;
    request_begin(request, "TIME");
}

static enum rlock_status read_time(struct exchange *exchange, const struct resp_value *replies,
                                   struct exchange_server *server, struct reply *answer,
                                   struct rlock_error *err)
{
    (void)server;
    (void)answer;
    exchange->server_ms = reply_time_us(replies) / 1000;
    exchange->step = STEP_SET;
    make_value(exchange);
    return exchange->server_ms > 0 ? RLOCK_PENDING : reply_unexpected_command(err);
}

/* ---- STEP_SET: write the value if the key doesn't exist ---- */

static void build_set(const struct exchange *exchange, const struct exchange_server *server,
                      struct request *request)
{
    (void)server;
    request_begin(request, "SET");
    request_add(request, key_of(exchange, KEY_LOCK));
    request_add(request, exchange->value);
    request_add(request, "NX");
    request_add(request, "PX");
    add_int(request, exchange->ttl_ms);
    request_add_command(request, "TIME");
    add_getrange(exchange, request);
    request_add_command(request, "PTTL");
    request_add(request, key_of(exchange, KEY_LOCK));
}

/* Does the value that was read have the token of the owner, or of a parent? */
static bool is_ours_or_parents(const struct exchange *exchange)
{
    const struct owner *owner = exchange->owner;
    size_t i;

    for (i = 0; i < owner->n_parents; i++)
        if (has_token(exchange->seen, owner->parent[i]))
            return true;
    return has_token(exchange->seen, owner->token);
}

static enum rlock_status read_set(struct exchange *exchange, const struct resp_value *replies,
                                  struct exchange_server *server, struct reply *answer,
                                  struct rlock_error *err)
{
    const struct resp_value *left = reply_at(replies, 3);
    int64_t now_us = reply_time_us(reply_at(replies, 1));

    (void)server;
    if (now_us == 0 || !resp_is_int(left) || !read_value(exchange, reply_at(replies, 2)))
        return reply_unexpected_command(err);
    exchange->server_ms = now_us / 1000;
    exchange->fence = (uint64_t)now_us;
    answer->server_ms = exchange->server_ms;
    exchange->left_ms = resp_int(left);
    if (resp_is_ok(reply_at(replies, 0))) {
        exchange->has_written = true;
        exchange->step = STEP_FENCE;
        return RLOCK_PENDING;
    }
    if (!resp_is_nil(reply_at(replies, 0)))
        return reply_unexpected_command(err);
    if (is_ours_or_parents(exchange)) {
        exchange->step = STEP_LOOK;
        return RLOCK_PENDING;
    }
    /* The key existed at the SET, and had expired when it was read: the caller asks again. */
    if (exchange->left_ms == -2)
        return end(answer, REPLY_LATE);
    return end_held(exchange, answer, err);
}

/* ---- STEP_FENCE: draw a fence ---- */

/*
 * The SET with NX writes the server's time in microseconds as the last fence, only if the server
 * has no last fence, for example because the last fence has expired. This time is greater than
 * every fence that the server has drawn before.
 */
static void build_fence(const struct exchange *exchange, const struct exchange_server *server,
                        struct request *request)
{
    (void)server;
    request_begin(request, "SET");
    request_add(request, key_of(exchange, KEY_FENCE));
    request_add_format(request, "%" PRIu64, exchange->fence);
    request_add(request, "NX");
    request_add(request, "PX");
    add_int(request, keys_fence_life_ms(exchange->ttl_ms));
    request_add_command(request, "INCR");
    request_add(request, key_of(exchange, KEY_FENCE));
    request_add_command(request, "PEXPIRE");
    request_add(request, key_of(exchange, KEY_FENCE));
    add_int(request, keys_fence_life_ms(exchange->ttl_ms));
    add_getrange(exchange, request);
}

static enum rlock_status read_fence(struct exchange *exchange, const struct resp_value *replies,
                                    struct exchange_server *server, struct reply *answer,
                                    struct rlock_error *err)
{
    int64_t fence = resp_int(reply_at(replies, 1));

    (void)server;
    if (!resp_is_int(reply_at(replies, 1)) || !read_value(exchange, reply_at(replies, 3)))
        return reply_unexpected_command(err);
    if (fence < 1 || fence > FENCE_MAX)
        return keys_foreign_fence(&exchange->owner->lock[0].keys, err);
    if (strcmp(exchange->seen, exchange->value) != 0)
        return end(answer, REPLY_LATE);
    answer->fence = (uint64_t)fence;
    return end(answer, REPLY_OK);
}

/* ---- STEP_LOOK: read the value ---- */

/*
 * May STEP_COMMIT be needed, because the server may lack the command for STEP_COMPARE? Then
 * STEP_LOOK has to WATCH the key.
 */
static bool may_need_commit(const struct exchange *exchange, const struct exchange_server *server)
{
    if (!exchange->deletes)
        return server->set_ifeq != SUPPORT_YES;
    return server->delifeq != SUPPORT_YES && server->delex != SUPPORT_YES;
}

/* The indexes of the replies to MULTI and WATCH in the replies to a STEP_LOOK with WATCH. */
#define LOOK_MULTI 1
#define LOOK_WATCH 3

/*
 * MULTI and EXEC before WATCH do nothing, but their replies tell whether the user may call them. If
 * the server denied MULTI in STEP_COMMIT, it would execute the commands that follow at once, also
 * if the key has got another value.
 *
 * For an acquire of a lock that a parent holds, GET reads the last fence. For a renewal, GET reads
 * the note that a break, or a release by another process, has left for this token.
 */
static void build_look(const struct exchange *exchange, const struct exchange_server *server,
                       struct request *request)
{
    request_begin(request, "PTTL");
    request_add(request, key_of(exchange, KEY_LOCK));
    if (may_need_commit(exchange, server)) {
        request_add_command(request, "MULTI");
        request_add_command(request, "EXEC");
        request_add_command(request, "WATCH");
        request_add(request, key_of(exchange, KEY_LOCK));
    }
    add_getrange(exchange, request);
    request_add_command(request, "TIME");
    if (exchange->task != EXCHANGE_ACQUIRE && exchange->task != EXCHANGE_RENEW)
        return;
    request_add_command(request, "GET");
    request_add(request, exchange->task == EXCHANGE_ACQUIRE ? key_of(exchange, KEY_FENCE)
                                                            : exchange->owner->lock[0].keys.wake);
}

/* Goes on to write or delete the key, on condition that it still has the value that was read. */
static enum rlock_status start_change(struct exchange *exchange,
                                      const struct exchange_server *server)
{
    bool has_command = exchange->deletes
                           ? server->delifeq != SUPPORT_NO || server->delex != SUPPORT_NO
                           : server->set_ifeq != SUPPORT_NO;

    exchange->step = has_command ? STEP_COMPARE : STEP_COMMIT;
    return RLOCK_PENDING;
}

/*
 * If a parent of the owner holds the lock, the exchange renews the parent's lease, so that the
 * lease surely lasts for its TTL from when the renewal was sent.
 */
static enum rlock_status look_to_acquire(struct exchange *exchange, const struct resp_value *fence,
                                         const struct exchange_server *server, struct reply *answer,
                                         struct rlock_error *err)
{
    const struct owner *owner = exchange->owner;
    size_t n;
    const char *last = resp_string(fence, &n);

    for (exchange->parent = owner->n_parents; exchange->parent > 0; exchange->parent--)
        if (has_token(exchange->seen, owner->parent[exchange->parent - 1]))
            break;
    if (exchange->parent > 0) {
        exchange->fence = last != NULL ? strtoull(last, NULL, 10) : 0;
        exchange->ttl_ms = noted_ttl_ms(exchange->seen);
        make_renewed_value(exchange);
        return exchange->ttl_ms > 0 ? start_change(exchange, server)
                                    : reply_unexpected_command(err);
    }
    if (owner->only_parents && has_several_holders(exchange))
        return end_held(exchange, answer, err);
    if (owner->only_parents)
        return end(answer, REPLY_GONE);
    if (has_token(exchange->seen, owner->token)) {
        make_value(exchange);
        return start_change(exchange, server);
    }
    return end(answer, REPLY_LATE); /* the lock has changed since STEP_SET: the caller asks again */
}

static enum rlock_status look_to_renew(struct exchange *exchange, const struct resp_value *note,
                                       const struct exchange_server *server, struct reply *answer,
                                       struct rlock_error *err)
{
    const struct owner_lock *lock = &exchange->owner->lock[0];
    const char *token =
        lock->parent > 0 ? exchange->owner->parent[lock->parent - 1] : exchange->owner->token;
    int64_t noted_ms = noted_ttl_ms(exchange->seen);
    size_t n;
    const char *word = resp_string(note, &n);

    if (!has_token(exchange->seen, token)) {
        if (word != NULL && strcmp(word, "released") == 0)
            return end(answer, REPLY_RELEASED);
        if (word != NULL && strncmp(word, "broken ", strlen("broken ")) == 0) {
            holder_info_parse(word, &answer->obstacle.holder);
            return end(answer, REPLY_BROKEN);
        }
        return exchange->left_ms == -2 ? end(answer, REPLY_GONE) : end_held(exchange, answer, err);
    }
    exchange->ttl_ms = lock->ttl_ms > 0 ? lock->ttl_ms : noted_ms;
    if (exchange->ttl_ms == 0)
        return reply_unexpected_command(err);
    /* Doesn't shorten a lease, as other processes may count on its end. But a lease that ends later
     * than its noted TTL allows was granted before the server's clock was set back. */
    if (exchange->left_ms > exchange->ttl_ms && exchange->left_ms <= noted_ms + 1000)
        exchange->ttl_ms = exchange->left_ms;
    make_renewed_value(exchange);
    return start_change(exchange, server);
}

static enum rlock_status look_to_release(struct exchange *exchange, const struct resp_value *note,
                                         const struct exchange_server *server, struct reply *answer,
                                         struct rlock_error *err)
{
    const struct owner *owner = exchange->owner;
    bool is_ours = has_token(exchange->seen, owner->token);
    char start[RLOCK_TOKEN_BYTES + 40];

    (void)note;
    snprintf(start, sizeof start, "%s v1 try=%" PRId64 " ", owner->token, owner->attempt);
    if (exchange->task == EXCHANGE_UNDO)
        is_ours = strncmp(exchange->seen, start, strlen(start)) == 0;
    if (!is_ours && exchange->left_ms == -2)
        return end(answer, REPLY_GONE);
    if (!is_ours && exchange->task == EXCHANGE_UNDO)
        return end(answer, REPLY_HELD);
    if (!is_ours)
        return end_held(exchange, answer, err);
    exchange->ttl_ms = owner->stay_ms;
    exchange->tells_renewer =
        exchange->left_ms > 0 && owner->is_adopted && holder_info_has(exchange->seen, "kept", "1");
    make_stay_value(exchange);
    return start_change(exchange, server);
}

static enum rlock_status read_look(struct exchange *exchange, const struct resp_value *replies,
                                   struct exchange_server *server, struct reply *answer,
                                   struct rlock_error *err)
{
    static enum rlock_status (*const next[])(
        struct exchange *, const struct resp_value *, const struct exchange_server *,
        struct reply *, struct rlock_error *) = {[EXCHANGE_ACQUIRE] = look_to_acquire,
                                                 [EXCHANGE_RENEW] = look_to_renew,
                                                 [EXCHANGE_RELEASE] = look_to_release,
                                                 [EXCHANGE_UNDO] = look_to_release};
    bool watches = may_need_commit(exchange, server);
    size_t at = watches ? LOOK_WATCH + 1 : 1;
    int64_t now_us = reply_time_us(reply_at(replies, at + 1));

    if (!resp_is_int(reply_at(replies, 0)) || !read_value(exchange, reply_at(replies, at)) ||
        now_us == 0)
        return reply_unexpected_command(err);
    exchange->may_not_watch = reply_first_error(replies, LOOK_MULTI, at) != NULL;
    exchange->is_watched = watches && !exchange->may_not_watch;
    exchange->left_ms = resp_int(reply_at(replies, 0));
    exchange->server_ms = now_us / 1000;
    return next[exchange->task](exchange, reply_at(replies, at + 2), server, answer, err);
}

/* ---- STEP_COMPARE: write or delete by one command that compares the value ---- */

/*
 * If another process renews the lease, leaves the note "released" for that process, as release.lua
 * does: without the note, the process would report a lost lock.
 */
static void add_note(const struct exchange *exchange, struct request *request)
{
    if (!exchange->tells_renewer)
        return;
    request_add_command(request, "SET");
    request_add(request, exchange->owner->lock[0].keys.wake);
    request_add(request, "released");
    request_add(request, "PX");
    add_int(request, exchange->left_ms);
}

static void add_delifeq(const struct exchange *exchange, struct request *request, const char *value)
{
    request_add_command(request, "DELIFEQ");
    request_add(request, key_of(exchange, KEY_LOCK));
    request_add(request, value);
}

static void add_delex(const struct exchange *exchange, struct request *request, const char *value)
{
    request_add_command(request, "DELEX");
    request_add(request, key_of(exchange, KEY_LOCK));
    request_add(request, "IFEQ");
    request_add(request, value);
}

/*
 * Points `used` to the fields of `server` for the commands that STEP_COMPARE sends. To delete,
 * STEP_COMPARE sends both DELIFEQ and DELEX until a reply has told which of them the server has: no
 * server has both. Returns how many commands STEP_COMPARE sends.
 */
static size_t commands_used(const struct exchange *exchange, struct exchange_server *server,
                            enum exchange_support *used[2])
{
    size_t n = 0;

    if (!exchange->deletes) {
        used[0] = &server->set_ifeq;
        return 1;
    }
    if (server->delifeq != SUPPORT_NO && server->delex != SUPPORT_YES)
        used[n++] = &server->delifeq;
    if (server->delex != SUPPORT_NO && server->delifeq != SUPPORT_YES)
        used[n++] = &server->delex;
    return n;
}

/* Sends the note before the delete: a renewal that finds no key must already find the note. */
static void build_compare(const struct exchange *exchange, const struct exchange_server *server,
                          struct request *request)
{
    struct exchange_server known = *server;
    enum exchange_support *used[2];
    size_t n = commands_used(exchange, &known, used);
    size_t i;

    request_begin_empty(request);
    add_note(exchange, request);
    for (i = 0; exchange->deletes && i < n; i++)
        (used[i] == &known.delex ? add_delex : add_delifeq)(exchange, request, exchange->seen);
    if (exchange->deletes)
        return;
    request_add_command(request, "SET");
    request_add(request, key_of(exchange, KEY_LOCK));
    request_add(request, exchange->value);
    request_add(request, "IFEQ");
    request_add(request, exchange->seen);
    request_add(request, "PX");
    add_int(request, exchange->ttl_ms);
}

/* The change was made: ends the exchange, or goes on to draw the fence of a grant. */
static enum rlock_status finish_change(struct exchange *exchange, struct reply *answer)
{
    exchange->has_written = true;
    if (exchange->task == EXCHANGE_ACQUIRE && exchange->parent == 0) {
        exchange->fence = (uint64_t)exchange->server_ms * 1000;
        exchange->step = STEP_FENCE;
        return RLOCK_PENDING;
    }
    if (exchange->task == EXCHANGE_ACQUIRE) {
        answer->n_locks = 1;
        answer->lock[0] = (struct granted_lock){
            .parent = exchange->parent, .fence = exchange->fence, .ttl_ms = exchange->ttl_ms};
        answer->fence = exchange->fence > 0 ? exchange->fence : 1;
    }
    if (exchange->task == EXCHANGE_RENEW)
        answer->left_ms = exchange->ttl_ms;
    return end(answer, REPLY_OK);
}

/* Goes back to STEP_LOOK: the key no longer has the value that was read. */
static enum rlock_status look_again(struct exchange *exchange)
{
    exchange->step = STEP_LOOK;
    return RLOCK_PENDING;
}

/*
 * Finds out from the error reply to a command (NULL: it succeeded) whether the server has that
 * command. "ERR unknown command" and "ERR syntax error" say no. So does an error about a missing
 * right. Any other error, such as MOVED, is about the key or the state of the server.
 */
static enum exchange_support support_of(const char *error)
{
    struct rlock_error meaning;
    enum error_reply kind;

    if (error == NULL)
        return SUPPORT_YES;
    if (strncmp(error, "ERR ", 4) == 0)
        return SUPPORT_NO;
    (void)error_reply_read(error, NULL, &kind, &meaning);
    return meaning.reason == RLOCK_REASON_NO_RIGHT ? SUPPORT_NO : SUPPORT_UNKNOWN;
}

/* Did the reply say that the key was written or deleted? */
static bool is_done(const struct resp_value *reply)
{
    return reply != NULL && (resp_is_ok(reply) || resp_int(reply) == 1);
}

/*
 * If the server lacks all commands of STEP_COMPARE, goes on with STEP_COMMIT if the key is watched,
 * or else with STEP_LOOK, which will watch the key. Does the same after OOM: a server whose memory
 * is full refuses SET, but allows PEXPIRE in STEP_COMMIT.
 */
static enum rlock_status read_compare(struct exchange *exchange, const struct resp_value *replies,
                                      struct exchange_server *server, struct reply *answer,
                                      const char **refusal)
{
    enum exchange_support *used[2];
    size_t n = commands_used(exchange, server, used);
    size_t first = exchange->tells_renewer ? 1 : 0;
    bool has_worked = false;
    size_t i;

    for (i = 0; i < n; i++) {
        const struct resp_value *reply = first + n > 1 ? reply_at(replies, first + i) : replies;
        const char *error = reply == NULL ? "" : resp_error(reply);

        *used[i] = support_of(error);
        has_worked = has_worked || error == NULL;
        if (is_done(reply))
            return finish_change(exchange, answer);
        if (*used[i] == SUPPORT_UNKNOWN &&
            (exchange->may_not_watch || strncmp(error, "OOM", 3) != 0)) {
            *refusal = error;
            return RLOCK_E_REFUSED;
        }
    }
    if (has_worked || !exchange->is_watched)
        return look_again(exchange);
    exchange->step = STEP_COMMIT;
    return RLOCK_PENDING;
}

/* ---- STEP_COMMIT: write or delete by MULTI and EXEC ---- */

static void build_commit(const struct exchange *exchange, const struct exchange_server *server,
                         struct request *request)
{
    bool keeps_value = strcmp(exchange->value, exchange->seen) == 0;

    (void)server;
    request_begin(request, "MULTI");
    add_note(exchange, request);
    request_add_command(request, exchange->deletes ? "DEL" : keeps_value ? "PEXPIRE" : "SET");
    request_add(request, key_of(exchange, KEY_LOCK));
    if (!exchange->deletes && !keeps_value) {
        request_add(request, exchange->value);
        request_add(request, "XX");
        request_add(request, "PX");
    }
    if (!exchange->deletes)
        add_int(request, exchange->ttl_ms);
    request_add_command(request, "EXEC");
}

/*
 * The reply to EXEC, which comes last, is nil if the watched key has changed. A key that has only
 * expired since then counts as changed from Redis 6.0.9 on. Older servers execute the commands, and
 * PEXPIRE and DEL return 0, SET with XX nil. So the change was made only if the last command before
 * EXEC replied 1 or OK.
 */
static enum rlock_status read_commit(struct exchange *exchange, const struct resp_value *replies,
                                     struct exchange_server *server, struct reply *answer,
                                     struct rlock_error *err)
{
    const struct resp_value *exec = reply_at(replies, resp_array_count(replies) - 1);

    (void)server;
    if (exec == NULL || (!resp_is_nil(exec) && resp_array_count(exec) == 0))
        return reply_unexpected_command(err);
    if (resp_is_nil(exec) || !is_done(reply_at(exec, resp_array_count(exec) - 1)))
        return look_again(exchange);
    return finish_change(exchange, answer);
}

/* ---- going from step to step by the table of steps ---- */

static const struct {
    void (*build)(const struct exchange *exchange, const struct exchange_server *server,
                  struct request *request);
    /* NULL: exchange_read() calls read_compare(), which also gets error replies */
    enum rlock_status (*read)(struct exchange *exchange, const struct resp_value *replies,
                              struct exchange_server *server, struct reply *answer,
                              struct rlock_error *err);
} steps[] = {
    [STEP_TIME] = {build_time, read_time},    [STEP_SET] = {build_set, read_set},
    [STEP_FENCE] = {build_fence, read_fence}, [STEP_LOOK] = {build_look, read_look},
    [STEP_COMPARE] = {build_compare, NULL},   [STEP_COMMIT] = {build_commit, read_commit},
};

void exchange_begin(struct exchange *exchange, enum exchange_task task, const struct owner *owner,
                    int64_t server_ms)
{
    *exchange =
        (struct exchange){.task = task,
                          .step = STEP_LOOK,
                          .owner = owner,
                          .server_ms = server_ms,
                          .ttl_ms = owner->ttl_ms,
                          .deletes = task == EXCHANGE_UNDO || (task == EXCHANGE_RELEASE &&
                                                               owner->ending == RLOCK_ENDS_FREE)};
    if (task != EXCHANGE_ACQUIRE || owner->only_parents)
        return;
    exchange->step = server_ms > 0 ? STEP_SET : STEP_TIME;
    if (server_ms > 0)
        make_value(exchange);
}

void exchange_end(struct exchange *exchange)
{
    explicit_bzero(exchange, sizeof *exchange);
}

void exchange_build(const struct exchange *exchange, const struct exchange_server *server,
                    struct request *request)
{
    steps[exchange->step].build(exchange, server, request);
}

/*
 * Returns the first error reply that ends the exchange, or NULL. An error reply to MULTI, EXEC or
 * WATCH in STEP_LOOK does not end the exchange: only STEP_COMMIT needs these commands, and many
 * exchanges end without STEP_COMMIT.
 */
static const char *find_refusal(const struct exchange *exchange,
                                const struct exchange_server *server,
                                const struct resp_value *replies)
{
    size_t n = resp_array_count(replies);
    const char *error;

    if (resp_error(replies) != NULL)
        return resp_error(replies);
    if (exchange->step != STEP_LOOK || !may_need_commit(exchange, server))
        return reply_first_error(replies, 0, n);
    error = reply_first_error(replies, 0, LOOK_MULTI);
    return error != NULL ? error : reply_first_error(replies, LOOK_WATCH + 1, n);
}

enum rlock_status exchange_read(struct exchange *exchange, const struct resp_value *replies,
                                struct exchange_server *server, uint64_t connection,
                                struct reply *answer, const char **refusal, struct rlock_error *err)
{
    const char *error = find_refusal(exchange, server, replies);
    enum rlock_status st;

    *answer = (struct reply){.code = REPLY_OK};
    *refusal = NULL;
    if (steps[exchange->step].read == NULL)
        return read_compare(exchange, replies, server, answer, refusal);
    /* INCR fails with one of these errors if the value is no number. */
    if (error != NULL && exchange->step == STEP_FENCE &&
        (strncmp(error, "WRONGTYPE", 9) == 0 || strncmp(error, "ERR ", 4) == 0))
        return keys_foreign_fence(&exchange->owner->lock[0].keys, err);
    if (error != NULL) {
        *refusal = error;
        exchange->has_written =
            exchange->has_written || (exchange->step == STEP_SET && is_done(reply_at(replies, 0)));
        return RLOCK_E_REFUSED;
    }
    if (exchange->step == STEP_LOOK)
        exchange->watched_on = connection;
    st = steps[exchange->step].read(exchange, replies, server, answer, err);
    if (st == RLOCK_PENDING && exchange->step == STEP_COMMIT && !exchange->is_watched) {
        *refusal = reply_first_error(replies, LOOK_MULTI, LOOK_WATCH + 1);
        return RLOCK_E_REFUSED;
    }
    return st;
}

bool exchange_needs_connection(const struct exchange *exchange)
{
    return exchange->task != EXCHANGE_NONE && exchange->step == STEP_COMMIT;
}

bool exchange_may_have_written(const struct exchange *exchange)
{
    return exchange->has_written || (exchange->step != STEP_TIME && exchange->step != STEP_LOOK);
}

bool exchange_build_undo(const struct exchange *exchange, struct request *request)
{
    if (exchange->task != EXCHANGE_ACQUIRE || exchange->parent > 0 || exchange->value[0] == '\0')
        return false;
    request_begin_empty(request);
    add_delifeq(exchange, request, exchange->value);
    add_delex(exchange, request, exchange->value);
    return true;
}
