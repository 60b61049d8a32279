/* SPDX-License-Identifier: MIT */
/*
 * commands: reads, acquires, renews, releases and breaks one exclusive lock without scripts.
 *
 * The keys and the values are those of the scripts, so that rlocks with and without scripts keep
 * each other out and can read each other's values. Each operation begins with STEP_LOOK, and
 * decides by what it has read (decide_acquire() and so on).
 *
 * To change or delete a value, the operation watches the key (WATCH) before it reads the value, and
 * makes the change by MULTI and EXEC: EXEC does nothing if the key has changed since, and the
 * operation looks again.
 *
 * How an acquire draws its fence:
 * 1. SET ... NX writes our value. From here until the lease ends nobody else holds the lock.
 * 2. INCR draws the fence.
 * 3. The same request then reads the value. If the value is still ours, INCR was executed while we
 *    held the lock, so fences grow in the order of the grants. If not, the lease has ended since
 *    step 1, most likely because this process was stopped: the grant and its fence don't count.
 * docs/design.md has the whole argument.
 */
#include "lock/commands.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define NOTE_MS 60000 /* how long a note lasts if the lock's key never expires */

/* The parts that an operation has: it skips the commands in table[] that have another part. */
enum part {
    CHANGES = 1,       /* the operation may change or delete the value */
    READS = 2,         /* the operation only reads */
    HAS_NOTE = 4,      /* STEP_LOOK reads the note for the owner's token */
    LEAVES_NOTE = 8,   /* STEP_COMMIT leaves a note for the holder's token */
    RAISES_FENCE = 16, /* STEP_COMMIT raises the last fence: no late renewal puts the lock back */
    EXTENDS = 32,      /* STEP_COMMIT sets a new TTL */
    WRITES = 64,       /* STEP_COMMIT writes another value, with its TTL */
    DELETES = 128,     /* STEP_COMMIT deletes the key */
    ON_WAKE = 256      /* STEP_TRY asks about the owner's list, `wake`, instead of the other keys */
};

/*
 * What each step sends. In the arguments a capital letter stands for
 *     K, F, Q, W  the names of the lock's key, of its fence, of its queue, of the key for a note
 *     E           the last byte of the value that is read
 *     V, T        the value to write, and its TTL
 *     N, L        the number to write as the last fence, and for how long the fence is kept
 *     M, R        the note, and its TTL: how long the lease would have lasted
 *
 * STEP_LOOK: rlock follows a MOVED or ASK only if it is the first reply, so PTTL comes first. MULTI
 * and EXEC before WATCH ask only whether the user may call them: if the server denied MULTI in
 * STEP_COMMIT, it would execute the commands after MULTI at once, even if the value has changed.
 * After TIME come commands that may fail: see find_refusal().
 *
 * STEP_FENCE: the first PEXPIRE keeps the last fence from expiring before INCR. If the server has
 * no last fence, SET with NX writes the server's time in microseconds, which was read while the
 * lock was ours: so it is greater than the fences drawn before. The second PEXPIRE is for a key
 * that INCR has made, because the last fence was evicted after the SET.
 *
 * STEP_COMMIT: if another process renews the lease, its next renewal finds the note: the lock was
 * released, or who broke it. The command about the lock's key comes last, see read_commit().
 * EXTENDS sends PEXPIRE, as a server whose memory is full refuses SET.
 *
 * STEP_TRY: the server refuses or queues the commands between MULTI and DISCARD. If the server
 * denies DISCARD, that error makes EXEC execute nothing.
 */
static const struct {
    enum commands_step step;
    unsigned only_with; /* parts; the operation needs all of them */
    const char *command;
    const char *arguments;
} table[] = {
    {STEP_TRY, 0, "MULTI", ""},

    {STEP_LOOK, 0, "PTTL", "K"},
    {STEP_LOOK, CHANGES, "MULTI", ""},
    {STEP_LOOK, CHANGES, "EXEC", ""},
    {STEP_LOOK, CHANGES, "WATCH", "K"},
    {STEP_LOOK, 0, "GETRANGE", "K 0 E"},
    {STEP_LOOK, 0, "TIME", ""},
    {STEP_LOOK, 0, "GET", "F"},
    {STEP_LOOK, HAS_NOTE, "GET", "W"},
    {STEP_LOOK, READS, "ZCARD", "Q"},

    {STEP_CLAIM, 0, "SET", "K V NX PX T"},
    {STEP_CLAIM, 0, "TIME", ""},

    {STEP_FENCE, 0, "PEXPIRE", "F L"},
    {STEP_FENCE, 0, "SET", "F N NX PX L"},
    {STEP_FENCE, 0, "INCR", "F"},
    {STEP_FENCE, 0, "PEXPIRE", "F L"},
    {STEP_FENCE, 0, "GETRANGE", "K 0 E"},

    {STEP_COMMIT, CHANGES, "MULTI", ""},
    {STEP_COMMIT, RAISES_FENCE, "SET", "F N PX L"},
    {STEP_COMMIT, LEAVES_NOTE, "SET", "W M PX R"},
    {STEP_COMMIT, EXTENDS, "PEXPIRE", "K T"},
    {STEP_COMMIT, WRITES, "SET", "K V XX PX T"},
    {STEP_COMMIT, DELETES, "DEL", "K"},
    {STEP_COMMIT, CHANGES, "EXEC", ""},

    {STEP_TRY, 0, "DISCARD", ""},
    {STEP_TRY, 0, "EXEC", ""},

    {STEP_UNDO, 0, "DELIFEQ", "K V"},
    {STEP_UNDO, 0, "DELEX", "K IFEQ V"},
};

/* ---- building requests ---- */

static void add_argument(const struct commands *commands, struct request *request,
                         const char *argument, size_t n)
{
    const struct lock_keys *keys = commands->keys;
    bool on_wake = (commands->parts & ON_WAKE) != 0;
    const struct {
        char letter;
        const char *word; /* NULL: the argument is `number` */
        int64_t number;
    } letters[] = {
        {'K', on_wake ? keys->wake : keys->name[KEY_LOCK], 0},
        {'F', on_wake ? keys->wake : keys->name[KEY_FENCE], 0},
        {'Q', keys->name[KEY_QUEUE], 0},
        {'W', commands->holder.wake != NULL ? commands->holder.wake : keys->wake, 0},
        {'V', commands->value, 0},
        {'M', commands->note, 0},
        {'E', NULL, COMMANDS_VALUE_BYTES - 2},
        {'T', NULL, commands->ttl_ms},
        {'N', NULL, commands->number},
        {'L', NULL, keys_fence_life_ms(commands->ttl_ms)},
        {'R', NULL, commands->left_ms > 0 ? commands->left_ms : NOTE_MS},
    };
    size_t i = 0;

    while (i < COUNT(letters) && (n != 1 || letters[i].letter != *argument))
        i++;
    if (i == COUNT(letters))
        request_add_format(request, "%.*s", (int)n, argument);
    else if (letters[i].word != NULL)
        request_add(request, letters[i].word);
    else
        request_add_format(request, "%" PRId64, letters[i].number);
}

static void build(const struct commands *commands, enum commands_step step, struct request *request)
{
    const char *at;
    size_t i;

    request_begin_empty(request);
    for (i = 0; i < COUNT(table); i++) {
        bool is_tried = step == STEP_TRY && table[i].step < STEP_TRY;

        if ((table[i].step != step && !is_tried) || (table[i].only_with & ~commands->parts) != 0)
            continue;
        request_add_command(request, table[i].command);
        for (at = table[i].arguments; *at != '\0'; at += strspn(at, " ")) {
            add_argument(commands, request, at, strcspn(at, " "));
            at += strcspn(at, " ");
        }
    }
}

bool commands_build(const struct commands *commands, struct request *request)
{
    build(commands, commands->step, request);
    if (commands->step == STEP_COMMIT)
        request_bind(request, commands->watched_on);
    if (commands->stays)
        request_stay(request);
    return commands->step != STEP_LOOK;
}

bool commands_build_undo(const struct commands *commands, struct request *request)
{
    if (commands->task != COMMANDS_ACQUIRE || commands->parent > 0 || *commands->value == '\0')
        return false;
    build(commands, STEP_UNDO, request);
    return true;
}

/* ---- the values that an operation reads and writes ---- */

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
static void make_value(struct commands *commands)
{
    const struct owner *owner = commands->owner;

    snprintf(commands->value, sizeof commands->value,
             "%s v1 try=%" PRId64 " ttl=%" PRId64 " %s since=%" PRId64, owner->token,
             owner->attempt, owner->ttl_ms, owner->holder_info, commands->now_us / 1000);
}

/*
 * Makes the value that a release writes if the lock must stay taken for a while (RLOCK_ENDS_REST or
 * RLOCK_ENDS_DONE). The token in this value is 32 zeros, which no owner has, so nobody holds the
 * lock.
 */
static void make_stay_value(struct commands *commands)
{
    const struct owner *owner = commands->owner;

    snprintf(commands->value, sizeof commands->value, "%0*d v1 mode=%s %s since=%" PRId64,
             RLOCK_TOKEN_BYTES, 0, owner->ending == RLOCK_ENDS_DONE ? "done" : "rest",
             owner->holder_info, commands->now_us / 1000);
}

/* Returns the TTL that the holder has noted in the lock's value; 0: it has noted none. */
static int64_t noted_ttl_ms(const char *value)
{
    struct rlock_party party;

    holder_info_parse_lock(value, &party);
    return party.ttl_ms > 0 && party.ttl_ms <= RLOCK_TTL_MAX_MS ? party.ttl_ms : 0;
}

static bool has_several_holders(const struct commands *commands)
{
    enum rlock_seen seen = holder_info_seen(commands->seen);

    return seen == RLOCK_SEEN_SHARED || seen == RLOCK_SEEN_SLOTS;
}

/* Copies the reply to GETRANGE into `seen`, which has room for any value that rlock writes. */
static bool read_value(struct commands *commands, const struct resp_value *reply)
{
    size_t n;
    const char *value = resp_string(reply, &n);

    if (value == NULL || n >= sizeof commands->seen)
        return false;
    memcpy(commands->seen, value, n);
    commands->seen[n] = '\0';
    return true;
}

/* Reads the last fence as last_fence() of lib/lua/shared/fence.lua does. */
static void read_last_fence(struct commands *commands, const struct resp_value *reply)
{
    size_t n = 0;
    const char *last = resp_string(reply, &n);

    commands->fence = last != NULL && n <= 16 ? strtoull(last, NULL, 10) : 0;
    commands->has_bad_fence = last == NULL
                                  ? !resp_is_nil(reply)
                                  : strspn(last, "0123456789") != n || *last == '0' ||
                                        commands->fence == 0 || commands->fence > FENCE_MAX;
    if (commands->has_bad_fence)
        commands->fence = 0;
}

/* Returns the index of the reply to GETRANGE in STEP_LOOK; the replies to TIME and GET F follow. */
static size_t value_at(const struct commands *commands)
{
    return (commands->parts & CHANGES) != 0 ? 4 : 1;
}

/* ---- going on, and ending ---- */

static enum rlock_status go_on(struct commands *commands, enum commands_step step)
{
    commands->step = step;
    return RLOCK_PENDING;
}

static enum rlock_status commit(struct commands *commands, unsigned parts)
{
    commands->parts |= parts;
    return go_on(commands, STEP_COMMIT);
}

/*
 * Extends the lease whose value was read. If the new TTL is longer than the one noted in the value,
 * writes the value with the new TTL.
 */
static enum rlock_status extend(struct commands *commands)
{
    static const char word[] = " ttl=";
    const char *at = strstr(commands->seen, word);

    if (at == NULL || commands->ttl_ms <= noted_ttl_ms(commands->seen))
        return commit(commands, EXTENDS);
    at += strlen(word);
    snprintf(commands->value, sizeof commands->value, "%.*s%" PRId64 "%s",
             (int)(at - commands->seen), commands->seen, commands->ttl_ms,
             at + strspn(at, "0123456789"));
    return commit(commands, WRITES);
}

static enum rlock_status end(struct reply *answer, enum reply_code code)
{
    answer->code = code;
    return RLOCK_OK;
}

/* Ends with REPLY_HELD; RLOCK_E_USAGE: of several holders one may be the owner, or its parent. */
static enum rlock_status end_held(struct commands *commands, struct reply *answer,
                                  struct rlock_error *err)
{
    bool may_be_ours = commands->task != COMMANDS_ACQUIRE || commands->owner->n_parents > 0;

    if (has_several_holders(commands) && may_be_ours)
        return err_set(
            err, RLOCK_E_USAGE, 0,
            "the lock is shared or has slots: without scripts rlock can't find out who holds it");
    reply_set_obstacle(answer, commands->seen, commands->left_ms, commands->now_us / 1000);
    return end(answer, REPLY_HELD);
}

/* ---- STEP_LOOK: reading the lock, and deciding what to do ---- */

static enum rlock_status decide_read(struct commands *commands, const struct resp_value *more,
                                     struct reply *answer, struct rlock_error *err)
{
    (void)err;
    commands->waiting = resp_is_int(more) ? resp_int(more) : -1;
    if (commands->has_bad_fence)
        snprintf(commands->note, sizeof commands->note, "%.120s is no number from 1 to 2^53 - 2^32",
                 commands->keys->name[KEY_FENCE]);
    return end(answer, REPLY_OK);
}

/* Returns which of the owner's parents holds the lock, counted from 1; 0: none. */
static size_t holding_parent(const struct commands *commands)
{
    const struct owner *owner = commands->owner;
    size_t i = owner->n_parents;

    while (i > 0 && !has_token(commands->seen, owner->parent[i - 1]))
        i--;
    return i;
}

/*
 * If a parent of the owner holds the lock, renews the parent's lease, so that it surely lasts for
 * its TTL from when the renewal was sent. If the value is our own, an earlier attempt was granted,
 * and its reply lost; or read_fence() has gone back to STEP_LOOK.
 */
static enum rlock_status decide_acquire(struct commands *commands, const struct resp_value *more,
                                        struct reply *answer, struct rlock_error *err)
{
    const struct owner *owner = commands->owner;

    (void)more;
    commands->parent = holding_parent(commands);
    if (commands->parent > 0) {
        commands->ttl_ms = noted_ttl_ms(commands->seen);
        return commands->ttl_ms > 0 ? extend(commands) : reply_unexpected_command(err);
    }
    if (owner->only_parents && !has_several_holders(commands))
        return end(answer, REPLY_GONE);
    if (commands->exists && !has_token(commands->seen, owner->token))
        return end_held(commands, answer, err);
    if (commands->has_bad_fence)
        return keys_foreign_fence(commands->keys, err);
    make_value(commands);
    commands->ttl_ms = owner->ttl_ms;
    return commands->exists ? commit(commands, RAISES_FENCE | WRITES) : go_on(commands, STEP_CLAIM);
}

/* Ends a renewal whose token does not hold the lock any more, by the note for the token. */
static enum rlock_status end_by_note(struct commands *commands, const struct resp_value *note,
                                     struct reply *answer, struct rlock_error *err)
{
    size_t n;
    const char *word = resp_string(note, &n);

    if (word != NULL && strcmp(word, "released") == 0)
        return end(answer, REPLY_RELEASED);
    if (word != NULL && strncmp(word, "broken ", strlen("broken ")) == 0) {
        holder_info_parse(word, &answer->obstacle.holder);
        return end(answer, REPLY_BROKEN);
    }
    return commands->exists ? end_held(commands, answer, err) : end(answer, REPLY_GONE);
}

/*
 * Doesn't shorten a lease, as other processes may count on its end. But a lease that lasts longer
 * than its noted TTL allows was granted before the server's clock was set back: it gets the noted
 * TTL, or the new one if that is longer.
 */
static enum rlock_status decide_renew(struct commands *commands, const struct resp_value *more,
                                      struct reply *answer, struct rlock_error *err)
{
    const struct owner_lock *lock = &commands->owner->lock[0];
    const char *token =
        lock->parent > 0 ? commands->owner->parent[lock->parent - 1] : commands->owner->token;
    int64_t noted_ms = noted_ttl_ms(commands->seen);

    if (!has_token(commands->seen, token))
        return end_by_note(commands, more, answer, err);
    commands->ttl_ms = lock->ttl_ms > 0 ? lock->ttl_ms : noted_ms;
    if (commands->ttl_ms == 0)
        return reply_unexpected_command(err);
    if (commands->left_ms > commands->ttl_ms) /* extend_lease() in lock.lua decides the same */
        commands->ttl_ms = commands->left_ms <= noted_ms + 1000
                               ? commands->left_ms
                               : clock_later(commands->ttl_ms, noted_ms);
    return extend(commands);
}

static enum rlock_status decide_release(struct commands *commands, const struct resp_value *more,
                                        struct reply *answer, struct rlock_error *err)
{
    const struct owner *owner = commands->owner;
    bool is_ours = has_token(commands->seen, owner->token);
    char start[RLOCK_TOKEN_BYTES + 40];

    (void)more;
    snprintf(start, sizeof start, "%s v1 try=%" PRId64 " ", owner->token, owner->attempt);
    if (commands->task == COMMANDS_UNDO)
        is_ours = strncmp(commands->seen, start, strlen(start)) == 0;
    if (!is_ours && !commands->exists)
        return end(answer, REPLY_GONE);
    if (!is_ours && commands->task == COMMANDS_UNDO)
        return end(answer, REPLY_HELD);
    if (!is_ours)
        return end_held(commands, answer, err);
    if (commands->left_ms > 0 && owner->is_adopted && holder_info_has(commands->seen, "kept", "1"))
        commands->parts |= commands->fence > 0 ? RAISES_FENCE | LEAVES_NOTE : LEAVES_NOTE;
    snprintf(commands->note, sizeof commands->note, "released");
    if (commands->task == COMMANDS_UNDO || owner->ending == RLOCK_ENDS_FREE)
        return commit(commands, DELETES);
    commands->ttl_ms = owner->stay_ms;
    make_stay_value(commands);
    return commit(commands, WRITES);
}

/* Breaks the lock as break.lua does. Leaves a note if the value has a holder's token. */
static enum rlock_status decide_break(struct commands *commands, const struct resp_value *more,
                                      struct reply *answer, struct rlock_error *err)
{
    char token[RLOCK_TOKEN_BYTES + 1];
    enum rlock_status st;

    (void)more;
    if (!commands->exists || strcmp(commands->name, commands->to_break) != 0)
        return end(answer, commands->exists ? REPLY_HELD : REPLY_GONE);
    if (has_several_holders(commands))
        return err_set(err, RLOCK_E_USAGE, 0,
                       "the lock is shared or has slots: without scripts it can't be broken");
    if (commands->has_bad_fence)
        return keys_foreign_fence(commands->keys, err);
    if (holder_info_seen(commands->seen) != RLOCK_SEEN_EXCLUSIVE)
        return commit(commands, RAISES_FENCE | DELETES);
    snprintf(token, sizeof token, "%.*s", RLOCK_TOKEN_BYTES, commands->seen);
    keys_fini(&commands->holder);
    st = keys_init(&commands->holder, commands->keys->name[KEY_LOCK], token, err);
    explicit_bzero(token, sizeof token);
    return st == RLOCK_OK ? commit(commands, RAISES_FENCE | LEAVES_NOTE | DELETES) : st;
}

static enum rlock_status read_look(struct commands *commands, const struct resp_value *replies,
                                   struct reply *answer, struct rlock_error *err)
{
    static enum rlock_status (*const decide[])(struct commands *, const struct resp_value *,
                                               struct reply *, struct rlock_error *) = {
        [COMMANDS_READ] = decide_read,    [COMMANDS_ACQUIRE] = decide_acquire,
        [COMMANDS_RENEW] = decide_renew,  [COMMANDS_RELEASE] = decide_release,
        [COMMANDS_UNDO] = decide_release, [COMMANDS_BREAK] = decide_break,
    };
    const struct resp_value *left = resp_array_at(replies, 0);
    size_t at = value_at(commands);

    commands->parts &= CHANGES | READS | HAS_NOTE;
    commands->now_us = reply_time_us(resp_array_at(replies, at + 1));
    if (!resp_is_int(left) || !read_value(commands, resp_array_at(replies, at)) ||
        commands->now_us == 0)
        return reply_unexpected_command(err);
    commands->left_ms = resp_int(left);
    commands->exists = commands->left_ms != -2 || *commands->seen != '\0';
    read_last_fence(commands, resp_array_at(replies, at + 2));
    commands->number = commands->now_us;
    if (commands->number <= (int64_t)commands->fence)
        commands->number = (int64_t)commands->fence + 1;
    /* each grant writes another token or another time, so two grants have different names */
    snprintf(commands->name, sizeof commands->name, "%016" PRIx64,
             hash_add(HASH_START, commands->seen));
    return decide[commands->task](commands, resp_array_at(replies, at + 3), answer, err);
}

/* ---- the other steps ---- */

/* Did the reply say that the key was written or deleted? */
static bool is_done(const struct resp_value *reply)
{
    return reply != NULL && (resp_is_ok(reply) || resp_int(reply) == 1);
}

static enum rlock_status read_claim(struct commands *commands, const struct resp_value *replies,
                                    struct reply *answer, struct rlock_error *err)
{
    const struct resp_value *set = resp_array_at(replies, 0);

    (void)answer;
    commands->number = reply_time_us(resp_array_at(replies, 1));
    if (commands->number == 0 || !(is_done(set) || resp_is_nil(set)))
        return reply_unexpected_command(err);
    return go_on(commands, is_done(set) ? STEP_FENCE : STEP_LOOK);
}

/*
 * A fence that isn't greater than the last one doesn't count: the fence's key vanished before INCR.
 * Then STEP_LOOK finds our value, STEP_COMMIT writes a greater number, and STEP_FENCE draws again.
 */
static enum rlock_status read_fence(struct commands *commands, const struct resp_value *replies,
                                    struct reply *answer, struct rlock_error *err)
{
    bool was_missing = is_done(resp_array_at(replies, 1));
    int64_t last = was_missing ? commands->number : (int64_t)commands->fence;
    int64_t fence = resp_int(resp_array_at(replies, 2));

    if (!resp_is_int(resp_array_at(replies, 2)) || !read_value(commands, resp_array_at(replies, 4)))
        return reply_unexpected_command(err);
    if (fence < 1 || fence > FENCE_MAX)
        return keys_foreign_fence(commands->keys, err);
    if (fence <= last)
        return go_on(commands, STEP_LOOK);
    answer->fence = (uint64_t)fence;
    return end(answer, strcmp(commands->seen, commands->value) == 0 ? REPLY_OK : REPLY_LATE);
}

/* Ends an operation whose change was made; or, after an acquire, goes on to draw the fence. */
static enum rlock_status finish_change(struct commands *commands, struct reply *answer)
{
    if (commands->task == COMMANDS_ACQUIRE && commands->parent == 0)
        return go_on(commands, STEP_FENCE);
    if (commands->task == COMMANDS_ACQUIRE) {
        answer->n_locks = 1;
        answer->lock[0] = (struct granted_lock){
            .parent = commands->parent, .fence = commands->fence, .ttl_ms = commands->ttl_ms};
        answer->fence = commands->fence > 0 ? commands->fence : 1;
    }
    if (commands->task == COMMANDS_RENEW)
        answer->left_ms = commands->ttl_ms;
    return end(answer, REPLY_OK);
}

/*
 * The reply to EXEC, which comes last, is nil if the watched key has changed. A key that has only
 * expired since then counts as changed from Redis 6.0.9 on. Older servers execute the commands, and
 * PEXPIRE and DEL return 0, SET with XX nil. So the change was made only if the last command before
 * EXEC replied 1 or OK.
 */
static enum rlock_status read_commit(struct commands *commands, const struct resp_value *replies,
                                     struct reply *answer, struct rlock_error *err)
{
    const struct resp_value *exec = resp_array_at(replies, resp_array_count(replies) - 1);
    size_t n = exec != NULL ? resp_array_count(exec) : 0;

    if (exec == NULL || (n == 0 && !resp_is_nil(exec)) || reply_first_error(exec, 0, n) != NULL)
        return reply_unexpected_command(err);
    if (n == 0 || !is_done(resp_array_at(exec, n - 1)))
        return go_on(commands, STEP_LOOK);
    return finish_change(commands, answer);
}

/* ---- going from step to step ---- */

void commands_begin(struct commands *commands, enum commands_task task, const struct owner *owner)
{
    *commands = (struct commands){.task = task,
                                  .step = STEP_LOOK,
                                  .parts = CHANGES | (task == COMMANDS_RENEW ? HAS_NOTE : 0),
                                  .owner = owner,
                                  .keys = &owner->lock[0].keys,
                                  .ttl_ms = owner->ttl_ms};
}

void commands_begin_read(struct commands *commands, const struct lock_keys *keys, bool stays)
{
    *commands =
        (struct commands){.task = COMMANDS_READ, .parts = READS, .keys = keys, .stays = stays};
}

void commands_begin_break(struct commands *commands, const struct lock_keys *keys, const char *name,
                          const char *info)
{
    *commands =
        (struct commands){.task = COMMANDS_BREAK, .parts = CHANGES, .keys = keys, .to_break = name};
    snprintf(commands->note, sizeof commands->note, "broken %s", info);
}

void commands_begin_try(struct commands *commands, const struct lock_keys *keys, bool on_wake)
{
    *commands = (struct commands){.step = STEP_TRY, .keys = keys, .ttl_ms = 1, .number = 1};
    if (on_wake)
        commands->parts =
            ON_WAKE | HAS_NOTE | LEAVES_NOTE | RAISES_FENCE | EXTENDS | WRITES | DELETES;
}

void commands_end(struct commands *commands)
{
    keys_fini(&commands->holder);
    explicit_bzero(commands, sizeof *commands);
}

/*
 * Returns the error reply that ends the operation, or NULL. The replies to STEP_LOOK about the
 * fence, and those after it, may be WRONGTYPE: the lock can be read all the same.
 */
static const char *find_refusal(const struct commands *commands, const struct resp_value *replies)
{
    size_t n = resp_array_count(replies);
    size_t at = value_at(commands) + 2; /* the reply about the fence */
    const char *error = NULL;

    if (resp_error(replies) != NULL)
        return resp_error(replies);
    if (commands->step != STEP_LOOK)
        return reply_first_error(replies, 0, n);
    error = reply_first_error(replies, 0, at);
    for (; error == NULL && at < n; at++)
        if ((error = resp_error(resp_array_at(replies, at))) != NULL &&
            strncmp(error, "WRONGTYPE", strlen("WRONGTYPE")) == 0)
            error = NULL;
    return error;
}

enum rlock_status commands_read(struct commands *commands, const struct resp_value *replies,
                                uint64_t connection, struct reply *answer, const char **refusal,
                                struct rlock_error *err)
{
    static enum rlock_status (*const read[])(struct commands *, const struct resp_value *,
                                             struct reply *, struct rlock_error *) = {
        [STEP_LOOK] = read_look,
        [STEP_CLAIM] = read_claim,
        [STEP_FENCE] = read_fence,
        [STEP_COMMIT] = read_commit,
    };

    *answer = (struct reply){.code = REPLY_OK};
    *refusal = find_refusal(commands, replies);
    if (*refusal != NULL)
        return RLOCK_E_REFUSED;
    if (commands->step == STEP_LOOK)
        commands->watched_on = connection;
    return read[commands->step](commands, replies, answer, err);
}
