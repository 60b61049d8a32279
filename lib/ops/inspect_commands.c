/* SPDX-License-Identifier: MIT */
/*
 * inspect_commands: lists, reads and breaks locks by commands, without scripts.
 *
 * All lists are made by commands, as a script may only use keys that the request names. To read and
 * break one lock, rlock uses this file where the server or its ACL forbids EVAL and EVALSHA. The
 * server may execute commands of other clients between two commands of this file, so:
 * - To read a lock, this file sends GETRANGE, PTTL and GETRANGE again. If both GETRANGE return the
 *   same value, the time left is that of this value, because each grant writes a value of its own.
 *   Otherwise this file reads the lock again.
 * - To break a lock, this file watches the key (WATCH), compares its value, and deletes it by MULTI
 *   and EXEC. EXEC does nothing if the key has changed since WATCH.
 */
#include "ops/inspect_commands.h"

#include "base/clock.h"
#include "base/err.h"
#include "lock/holder_info.h"
#include "lock/keys.h"
#include "lock/replies.h"
#include "lock/view.h"
#include "server/error_reply.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 1200                     /* the same as VALUE in lib/lua/shared/view.lua */
#define WAITERS_PER_PAGE 28                  /* a reply has up to 64 elements: 2 for each waiter */
#define MEMBER_BYTES (RLOCK_TOKEN_BYTES + 1) /* TOKEN, or -TOKEN, see stay() of release.lua */
#define SCORE_BYTES 32                       /* room for a score of a sorted set, with a NUL */
#define WAITER_LIFE_MS 20000                 /* the same as LIFE_MS in lib/lua/shared/queue.lua */
#define KEYS_PER_SCAN 30 /* SCAN may return some keys more; a reply has up to 64 elements */
#define PEEKS_MAX (REQUEST_COMMANDS - 1) /* most keys in one request of list_written() */
/* The last byte that list_written() reads: a value of rlock begins with 32 digits and " v1 ". */
#define PEEK_LAST "35"
#define ENTRIES_PER_PAGE 50 /* of a history; a reply has up to 64 elements */
#define ENTRIES_READ 200    /* most entries that are searched for the last end of a hold */

/*
 * Returns the fault of a request whose replies aren't as expected: what the first error reply
 * means, or else RLOCK_E_PROTOCOL.
 */
static enum rlock_status fault_of(const struct resp_value *replies, struct rlock_error *err)
{
    const char *error = reply_first_error(replies, 0, SIZE_MAX);
    enum error_reply kind;

    return error != NULL ? error_reply_read(error, NULL, &kind, err)
                         : reply_unexpected_command(err);
}

static void add_command(struct request *request, const char *command, const char *key)
{
    request_add_command(request, command);
    request_add(request, key);
}

static void add_value(struct request *request, const char *key)
{
    add_command(request, "GETRANGE", key);
    request_add(request, "0");
    request_add_format(request, "%d", VALUE_BYTES - 1);
}

static bool has_error(const struct resp_value *reply, const char *start)
{
    const char *error = reply == NULL ? NULL : resp_error(reply);

    return error != NULL && strncmp(error, start, strlen(start)) == 0;
}

/* ---- reading the state of a lock ---- */

/* The state of a lock, from the replies to the commands of add_reading(). */
struct reading {
    bool exists;
    char value[VALUE_BYTES + 1];
    int64_t value_bytes; /* length of the whole value, which may be longer than `value` */
    int64_t left_ms;     /* ms until the key expires; -1: it never does; -2: it doesn't exist */
    int64_t now_us;      /* the server's time, us since 1970 */
    uint64_t fence;      /* the last fence; 0: none is known */
    bool has_bad_fence;  /* the key of the fence holds no valid fence */
    char name[48];       /* identifies the value, for rlock_break() */
};

/* Is the lock shared, or does it have slots? Then other keys list its holders. */
static bool is_of_several(const struct reading *reading)
{
    enum rlock_seen seen = holder_info_seen(reading->value);

    return reading->exists && (seen == RLOCK_SEEN_SHARED || seen == RLOCK_SEEN_SLOTS);
}

/*
 * The name consists of a hash (FNV-1a, RFC 9923) of the beginning of the value, and the length of
 * the value. Each grant writes another token or another time into the value, so two grants have
 * different names.
 */
static void set_name(struct reading *reading)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const char *at;

    for (at = reading->value; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    snprintf(reading->name, sizeof reading->name, "%016" PRIx64 ":%" PRId64, hash,
             reading->value_bytes);
}

/* Copies the value up to its first NUL: no value that rlock writes contains a NUL. */
static bool copy_value(struct reading *reading, const struct resp_value *reply)
{
    size_t n;
    const char *value = resp_string(reply, &n);

    if (value == NULL || n > VALUE_BYTES)
        return false;
    memcpy(reading->value, value, n);
    reading->value[n] = '\0';
    return true;
}

/* Reads the last fence as last_fence() of lib/lua/shared/fence.lua does. */
static void read_fence(struct reading *reading, const struct resp_value *reply)
{
    size_t n;
    const char *last = resp_string(reply, &n);

    reading->has_bad_fence = has_error(reply, "WRONGTYPE");
    if (last == NULL) /* there is no fence, or the user may not read it */
        return;
    reading->has_bad_fence = n == 0 || n > 16 || strspn(last, "0123456789") != n || *last == '0' ||
                             strtoll(last, NULL, 10) > FENCE_MAX;
    if (!reading->has_bad_fence)
        reading->fence = strtoull(last, NULL, 10);
}

/* Adds the commands whose replies read_reading() reads. */
static void add_reading(struct request *request, const struct lock_keys *keys)
{
    add_value(request, keys->name[KEY_LOCK]);
    add_command(request, "STRLEN", keys->name[KEY_LOCK]);
    add_command(request, "PTTL", keys->name[KEY_LOCK]);
    request_add_command(request, "TIME");
    add_command(request, "GET", keys->name[KEY_FENCE]);
}

#define READING_REPLIES 5 /* number of the replies to add_reading() */

static bool read_reading(struct reading *reading, const struct resp_value *replies, size_t first)
{
    const struct resp_value *bytes = resp_array_at(replies, first + 1);
    const struct resp_value *left = resp_array_at(replies, first + 2);

    *reading = (struct reading){.now_us = reply_time_us(resp_array_at(replies, first + 3))};
    if (!copy_value(reading, resp_array_at(replies, first)) || !resp_is_int(bytes) ||
        !resp_is_int(left) || reading->now_us == 0)
        return false;
    read_fence(reading, resp_array_at(replies, first + 4));
    reading->value_bytes = resp_int(bytes);
    reading->left_ms = resp_int(left);
    reading->exists = reading->left_ms != -2;
    set_name(reading);
    return true;
}

/* ---- reading one lock with its queue and holders ---- */

/* The queue and the holders of a lock, read from the keys beside the lock's own key. */
struct around {
    int64_t waiting;      /* length of the queue; -1: not known */
    bool has_bad_queue;   /* the queue's key holds no sorted set */
    bool has_bad_waiters; /* the waiters' key holds no hash */
    struct rlock_party holders[VIEW_HOLDERS_MAX];
    size_t n_holders;
    int64_t n_all; /* number of all holders; -1: the lock is neither shared nor has slots */
};

/* Asks for a sorted set's members from `from` on, with their scores. */
static void add_range(struct request *request, const char *key, const char *from, int n)
{
    add_command(request, "ZRANGEBYSCORE", key);
    request_add(request, from);
    request_add(request, "+inf");
    request_add(request, "WITHSCORES");
    request_add(request, "LIMIT");
    request_add(request, "0");
    request_add_format(request, "%d", n);
}

/*
 * A page of a sorted set, copied from a reply to add_range(): the members that may be tokens, with
 * their scores. Another program may have added longer members to the set; the page lacks these.
 */
struct members_page {
    char member[WAITERS_PER_PAGE][MEMBER_BYTES + 1];
    char score[WAITERS_PER_PAGE][SCORE_BYTES];
    size_t n;
    bool is_full; /* the reply had WAITERS_PER_PAGE members: the set may have more */
    char last_score[SCORE_BYTES]; /* of the reply's last member: the next page begins behind it */
};

/* Copies the reply to add_range(). */
static void copy_page(struct members_page *page, const struct resp_value *reply)
{
    size_t n_read = resp_array_count(reply) / 2;
    size_t i;
    size_t n;

    page->n = 0;
    page->is_full = n_read >= WAITERS_PER_PAGE;
    for (i = 0; i < n_read && i < WAITERS_PER_PAGE; i++) {
        const char *member = resp_string(resp_array_at(reply, 2 * i), &n);
        const char *score = resp_string(resp_array_at(reply, 2 * i + 1), &n);

        if (member == NULL || score == NULL || n >= SCORE_BYTES) {
            page->is_full = false; /* no Redis server sends this reply: read no further page */
            continue;
        }
        strcpy(page->last_score, score);
        if (strlen(member) > MEMBER_BYTES)
            continue;
        strcpy(page->member[page->n], member);
        strcpy(page->score[page->n++], score);
    }
}

/* Fetches the fields of a hash that the members of the page name. */
static enum rlock_status ask_fields(struct quorum *quorum, const char *key,
                                    const struct members_page *page, struct rlock_deadline deadline,
                                    const struct resp_value **reply, struct rlock_error *err)
{
    struct request request;
    size_t i;

    request_begin(&request, "HMGET");
    request_add(&request, key);
    for (i = 0; i < page->n; i++)
        request_add(&request, page->member[i]);
    return quorum_ask(quorum, &request, deadline, reply, err);
}

/*
 * Reads the holders of a shared lock or slots. Leaves out a holder that has released the lock
 * between the two requests, because its holder info is gone.
 */
static enum rlock_status read_holders(struct quorum *quorum, const struct lock_keys *keys,
                                      const struct reading *reading, struct around *around,
                                      struct rlock_deadline deadline, struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    int64_t now_ms = reading->now_us / 1000;
    struct members_page page;
    struct request request;
    enum rlock_status st;
    char from[32];
    size_t i;
    size_t n;

    snprintf(from, sizeof from, "(%" PRId64, now_ms);
    request_begin_empty(&request);
    add_command(&request, "ZCOUNT", keys->name[KEY_HOLDERS]);
    request_add(&request, from);
    request_add(&request, "+inf");
    add_range(&request, keys->name[KEY_HOLDERS], from, VIEW_HOLDERS_MAX);
    st = quorum_ask(quorum, &request, deadline, &reply, err);
    if (st != RLOCK_OK)
        return st;
    if (reply_first_error(reply, 0, SIZE_MAX) != NULL)
        return fault_of(reply, err);
    around->n_all = resp_int(resp_array_at(reply, 0));
    copy_page(&page, resp_array_at(reply, 1));
    if (page.n == 0)
        return RLOCK_OK;
    st = ask_fields(quorum, keys->name[KEY_HOLDER_INFO], &page, deadline, &reply, err);
    for (i = 0; st == RLOCK_OK && i < page.n; i++) {
        const char *info = resp_string(resp_array_at(reply, i), &n);
        struct rlock_party *holder = &around->holders[around->n_holders];

        if (info == NULL)
            continue;
        holder_info_parse(info, holder);
        holder->left_ms = (int64_t)strtod(page.score[i], NULL) - now_ms;
        holder_info_set_times(holder, now_ms, holder->left_ms);
        around->n_holders++;
    }
    return st;
}

/* Writes what is wrong with the helper keys, as view() of lib/lua/shared/view.lua does. */
static void put_problems(char *text, size_t room, const struct lock_keys *keys,
                         const struct reading *reading, const struct around *around)
{
    text[0] = '\0';
    if (reading->has_bad_fence)
        snprintf(text, room, "%.120s is no fence from 1 to 2^53 - 2^32", keys->name[KEY_FENCE]);
    if (around->has_bad_queue)
        snprintf(text + strlen(text), room - strlen(text), "%s%.120s is no sorted set",
                 reading->has_bad_fence ? ", " : "", keys->name[KEY_QUEUE]);
    else if (around->has_bad_waiters)
        snprintf(text + strlen(text), room - strlen(text), "%s%.120s is no hash",
                 reading->has_bad_fence ? ", " : "", keys->name[KEY_WAITERS]);
}

static void show_lock(const char *key, const struct lock_keys *keys, const struct reading *reading,
                      struct around *around, const struct rlock_visitor *visitor)
{
    struct rlock_view view = {.key = key,
                              .name = reading->name,
                              .fence = reading->fence,
                              .waiting = around->waiting,
                              .n_members = 1,
                              .n_alike = 1};
    int64_t now_ms = reading->now_us / 1000;
    char wrong[400];

    put_problems(wrong, sizeof wrong, keys, reading, around);
    view.wrong = wrong;
    if (reading->exists && around->n_all != 0) {
        view_set_value(&view, reading->value, reading->left_ms);
        if (around->n_all > 0)
            view_set_holders(&view, around->holders, around->n_holders, (size_t)around->n_all);
        else
            view_set_party(&view, around->holders, reading->value, now_ms);
    }
    if (visitor->on_lock != NULL)
        visitor->on_lock(visitor->context, &view);
}

/* Shows the waiters of the page that are alive. */
static enum rlock_status show_waiters(struct quorum *quorum, const struct lock_keys *keys,
                                      const struct members_page *page, int64_t now_ms,
                                      struct rlock_deadline deadline,
                                      const struct rlock_visitor *visitor, struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    struct rlock_party waiter;
    enum rlock_status st;
    size_t i;
    size_t n;

    if (page->n == 0) /* HMGET without a field is an error */
        return RLOCK_OK;
    st = ask_fields(quorum, keys->name[KEY_WAITERS], page, deadline, &reply, err);
    for (i = 0; st == RLOCK_OK && i < page->n; i++) {
        const char *info = resp_string(resp_array_at(reply, i), &n);

        if (info == NULL || strtoll(info, NULL, 10) + WAITER_LIFE_MS <= now_ms ||
            visitor->on_waiter == NULL)
            continue;
        holder_info_parse(info, &waiter);
        waiter.since_ms = (int64_t)(strtod(page->score[i], NULL) / 1000);
        if (waiter.since_ms < 0 || waiter.since_ms > VIEW_LEFT_MAX_MS)
            waiter.since_ms = 0;
        holder_info_set_times(&waiter, now_ms, -1);
        visitor->on_waiter(visitor->context, &waiter);
    }
    return st;
}

/* Shows the waiters of the first page, which the caller has read; then reads and shows the rest. */
static enum rlock_status show_more_waiters(struct quorum *quorum, const struct lock_keys *keys,
                                           struct members_page *page, int64_t now_ms,
                                           struct rlock_deadline deadline,
                                           const struct rlock_visitor *visitor,
                                           struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    enum rlock_status st = show_waiters(quorum, keys, page, now_ms, deadline, visitor, err);
    struct request request;
    char from[SCORE_BYTES + 1];

    while (st == RLOCK_OK && page->is_full) {
        snprintf(from, sizeof from, "(%s", page->last_score);
        request_begin_empty(&request);
        add_range(&request, keys->name[KEY_QUEUE], from, WAITERS_PER_PAGE);
        st = quorum_ask(quorum, &request, deadline, &reply, err);
        if (st != RLOCK_OK)
            return st;
        copy_page(page, reply);
        st = show_waiters(quorum, keys, page, now_ms, deadline, visitor, err);
    }
    return st;
}

/*
 * Reads the lock and the first page of its queue. Reads them again as long as the value changes
 * between the two GETRANGE.
 *
 *   stays_here  true: fail if this server doesn't serve the key. The request then begins with TIME,
 *               which every server executes, so that an error such as MOVED is not the first reply.
 *               After an error as the first reply, the member would follow the redirect.
 */
static enum rlock_status read_lock(struct quorum *quorum, const struct lock_keys *keys,
                                   bool stays_here, struct reading *reading, struct around *around,
                                   struct members_page *page, struct rlock_deadline deadline,
                                   struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    const struct resp_value *queue;
    size_t first = stays_here ? 1 : 0;
    struct request request;
    struct reading again;
    enum rlock_status st;

    do {
        request_begin_empty(&request);
        if (stays_here)
            request_add_command(&request, "TIME");
        add_reading(&request, keys);
        add_value(&request, keys->name[KEY_LOCK]);
        add_command(&request, "HMGET", keys->name[KEY_WAITERS]);
        request_add(&request, "newest");
        add_command(&request, "ZCARD", keys->name[KEY_QUEUE]);
        add_range(&request, keys->name[KEY_QUEUE], "-inf", WAITERS_PER_PAGE);
        st = quorum_ask(quorum, &request, deadline, &reply, err);
        if (st != RLOCK_OK)
            return st;
        if (!read_reading(reading, reply, first) ||
            !copy_value(&again, resp_array_at(reply, first + READING_REPLIES)))
            return fault_of(reply, err);
        around->has_bad_waiters =
            has_error(resp_array_at(reply, first + READING_REPLIES + 1), "WRONGTYPE");
        queue = resp_array_at(reply, first + READING_REPLIES + 2);
        around->has_bad_queue = has_error(queue, "WRONGTYPE");
        around->waiting = resp_is_int(queue) ? resp_int(queue) : -1;
        copy_page(page, resp_array_at(reply, first + READING_REPLIES + 3));
    } while (strcmp(reading->value, again.value) != 0);
    around->n_holders = 0;
    around->n_all = -1;
    return is_of_several(reading) ? read_holders(quorum, keys, reading, around, deadline, err)
                                  : RLOCK_OK;
}

enum rlock_status inspect_commands_lock(struct quorum *quorum, const char *key,
                                        struct rlock_deadline deadline,
                                        const struct rlock_visitor *visitor,
                                        struct rlock_error *err)
{
    struct members_page page;
    struct reading reading;
    struct around around;
    struct lock_keys keys;
    enum rlock_status st = keys_init(&keys, key, NULL, err);

    if (st == RLOCK_OK)
        st = read_lock(quorum, &keys, false, &reading, &around, &page, deadline, err);
    if (st == RLOCK_OK) {
        show_lock(key, &keys, &reading, &around, visitor);
        st = show_more_waiters(quorum, &keys, &page, reading.now_us / 1000, deadline, visitor, err);
    }
    keys_fini(&keys);
    return st;
}

/* ---- breaking a lock ---- */

/* Copies the token of the holder. Returns false if the value has no holder's token. */
static bool copy_token(char token[RLOCK_TOKEN_BYTES + 1], const char *value)
{
    if (!holder_info_is_rlock(value) || holder_info_seen(value) != RLOCK_SEEN_EXCLUSIVE)
        return false;
    snprintf(token, RLOCK_TOKEN_BYTES + 1, "%.*s", RLOCK_TOKEN_BYTES, value);
    return true;
}

/*
 * Watches the key of the lock, and compares the name of its value with `name`:
 * 1. MULTI and EXEC with no command between them show that the user may call both. If the server
 *    denied MULTI later, it would execute the DEL of delete_watched() at once.
 * 2. WATCH comes after EXEC, because EXEC ends all watching.
 * 3. The commands of add_reading() read the value.
 * Returns RLOCK_PENDING if the value has this name: `*connection` then watches the key.
 */
static enum rlock_status compare(struct quorum *quorum, const struct lock_keys *keys,
                                 const char *name, struct rlock_deadline deadline,
                                 struct reading *reading, uint64_t *connection,
                                 struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    struct request request;
    enum rlock_status st;

    request_begin(&request, "PTTL"); /* the member follows MOVED only if MOVED is the first reply */
    request_add(&request, keys->name[KEY_LOCK]);
    request_add_command(&request, "MULTI");
    request_add_command(&request, "EXEC");
    add_command(&request, "WATCH", keys->name[KEY_LOCK]);
    add_reading(&request, keys);
    st = quorum_ask(quorum, &request, deadline, &reply, err);
    if (st != RLOCK_OK)
        return st;
    *connection = member_connection(&quorum->members.member[0]);
    if (!resp_is_ok(resp_array_at(reply, 1)) || resp_error(resp_array_at(reply, 2)) != NULL ||
        !resp_is_ok(resp_array_at(reply, 3)) || !read_reading(reading, reply, 4))
        return fault_of(reply, err);
    if (!reading->exists)
        return RLOCK_GONE;
    if (strcmp(reading->name, name) != 0)
        return RLOCK_BUSY;
    if (is_of_several(reading))
        return err_set(err, RLOCK_E_USAGE, 0,
                       "the lock is shared or has slots: without scripts it can't be broken");
    if (reading->has_bad_fence)
        return keys_foreign_fence(keys, err);
    return RLOCK_PENDING;
}

/*
 * Deletes the lock, raises its fence and leaves a note for the holder, as break.lua does. The
 * server does all of this or nothing. RLOCK_PENDING: it did nothing, because the key has changed
 * since compare().
 */
static enum rlock_status delete_watched(struct quorum *quorum, const struct lock_keys *keys,
                                        const struct reading *reading, const char *note,
                                        uint64_t connection, struct rlock_deadline deadline,
                                        struct rlock_error *err)
{
    uint64_t now_us = (uint64_t)reading->now_us;
    const struct resp_value *reply = NULL;
    const struct resp_value *exec;
    struct request request;
    enum rlock_status st;

    request_begin(&request, "MULTI");
    request_bind(&request, connection);
    add_command(&request, "DEL", keys->name[KEY_LOCK]);
    add_command(&request, "SET", keys->name[KEY_FENCE]);
    request_add_format(&request, "%" PRIu64, reading->fence < now_us ? now_us : reading->fence + 1);
    request_add(&request, "PX");
    request_add_format(&request, "%" PRId64, FENCE_LIFE_MS);
    if (keys->wake != NULL) {
        add_command(&request, "SET", keys->wake);
        request_add(&request, note);
        request_add(&request, "PX");
        request_add_format(&request, "%" PRId64,
                           reading->left_ms > 0 ? reading->left_ms : INT64_C(60000));
    }
    request_add_command(&request, "EXEC");
    st = quorum_ask(quorum, &request, deadline, &reply, err);
    if (st != RLOCK_OK && quorum_is_unanswered(quorum))
        err_suffix(err, "the lock may have been broken");
    if (st != RLOCK_OK)
        return st;
    if (reply_first_error(reply, 0, SIZE_MAX) != NULL)
        return fault_of(reply, err);
    exec = resp_array_at(reply, resp_array_count(reply) - 1);
    if (resp_is_nil(exec))
        return RLOCK_PENDING;
    if (!resp_is_int(resp_array_at(exec, 0)))
        return reply_unexpected_command(err);
    /* before Redis 6.0.9, EXEC doesn't notice that the watched key has expired */
    return resp_int(resp_array_at(exec, 0)) == 1 ? RLOCK_OK : RLOCK_GONE;
}

enum rlock_status inspect_commands_break(struct quorum *quorum, const char *key, const char *name,
                                         const char *info, struct rlock_deadline deadline,
                                         struct rlock_error *err)
{
    char note[HOLDER_INFO_BYTES + 16];
    char token[RLOCK_TOKEN_BYTES + 1];
    struct lock_keys with_token = {.wake = NULL};
    struct reading reading;
    struct lock_keys keys;
    uint64_t connection = 0;
    enum rlock_status st = keys_init(&keys, key, NULL, err);
    bool may_go_on = st == RLOCK_OK;

    snprintf(note, sizeof note, "broken %s", info);
    while (may_go_on) {
        st = compare(quorum, &keys, name, deadline, &reading, &connection, err);
        if (st != RLOCK_PENDING)
            break;
        keys_fini(&with_token);
        st = keys_init(&with_token, key, copy_token(token, reading.value) ? token : NULL, err);
        if (st == RLOCK_OK)
            st = delete_watched(quorum, &with_token, &reading, note, connection, deadline, err);
        may_go_on = st == RLOCK_PENDING;
    }
    explicit_bzero(token, sizeof token);
    explicit_bzero(reading.value, sizeof reading.value);
    keys_fini(&with_token);
    keys_fini(&keys);
    return st;
}

/* ---- listing all locks of a server ---- */

static void names_fini(struct inspect_names *names)
{
    while (names->n > 0)
        free(names->name[--names->n]);
}

/* How list_found() has found out that there is a lock. */
enum found_by {
    FOUND_BY_VALUE,  /* rlock wrote the key's value */
    FOUND_BY_FENCE,  /* the lock has a fence */
    FOUND_BY_QUEUE,  /* the lock has a queue */
    FOUND_BY_HISTORY /* the lock has a history, and the visitor wants to know the last end */
};

/*
 * Must the list show this lock, which list_found() has found by `by`? The list shows each lock
 * once: a lock whose value rlock wrote, when its value is found; a lock that another program holds,
 * when its fence is found, or its queue if it has no fence. The list shows a free lock only if the
 * key of the fence holds no valid fence, because nobody can acquire such a lock.
 */
static bool is_to_list(const struct reading *reading, const struct around *around, enum found_by by)
{
    bool is_ours = reading->exists && holder_info_is_rlock(reading->value);

    if (by == FOUND_BY_VALUE)
        return is_ours && around->n_all != 0;
    if (by == FOUND_BY_FENCE)
        return reading->exists ? !is_ours : reading->has_bad_fence;
    return by == FOUND_BY_QUEUE && reading->exists && !is_ours && reading->fence == 0 &&
           !reading->has_bad_fence;
}

static bool tells_end(const char *entry)
{
    return entry != NULL &&
           (strncmp(entry, "end v1 ", 7) == 0 || strncmp(entry, "break v1 ", 9) == 0);
}

/*
 * Reads an entry of a history, see lib/lua/shared/history.lua. A time or a status that rlock never
 * writes counts as not known.
 */
static struct rlock_last_end end_in(const char *entry)
{
    int64_t since_ms = holder_info_number(entry, "fence", 0) / 1000;
    int64_t at_ms = since_ms + holder_info_number(entry, "held", 0);
    int64_t status = holder_info_number(entry, "status", -1);

    at_ms = holder_info_number(entry, "since", at_ms);
    return (struct rlock_last_end){.ended_ms = holder_info_number(entry, "at", at_ms),
                                   .status = status <= 255 ? (int)status : -1,
                                   .is_lost = holder_info_has(entry, "missing", "1")};
}

/*
 * Shows when and how the last hold of a lock ended, if one of the last ENTRIES_READ entries of its
 * history tells it. Most often one of the last two entries is an end.
 */
static enum rlock_status show_last_end(struct quorum *quorum, const struct lock_keys *keys,
                                       struct rlock_deadline deadline,
                                       const struct rlock_visitor *visitor, struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    struct rlock_last_end end = {.ended_ms = 0};
    enum rlock_status st = RLOCK_OK;
    struct request request;
    bool is_found = false;
    size_t count = 2;
    size_t read = 0;
    size_t i;
    size_t n;

    while (st == RLOCK_OK && !is_found && read < ENTRIES_READ) {
        request_begin(&request, "TIME"); /* see stays_here at read_lock() */
        add_command(&request, "LRANGE", keys->name[KEY_HISTORY]);
        request_add_format(&request, "-%zu", read + count);
        request_add_format(&request, "-%zu", read + 1);
        st = quorum_ask(quorum, &request, deadline, &reply, err);
        reply = st == RLOCK_OK ? resp_array_at(reply, 1) : NULL;
        n = reply != NULL ? resp_array_count(reply) : 0; /* 0: it can't be read, or has no more */
        for (i = n; i > 0 && !is_found; i--) {
            const char *entry = resp_string(resp_array_at(reply, i - 1), &(size_t){0});

            is_found = tells_end(entry);
            if (is_found)
                end = end_in(entry);
        }
        read = n < count ? ENTRIES_READ : read + count;
        count = ENTRIES_READ - read < ENTRIES_PER_PAGE ? ENTRIES_READ - read : ENTRIES_PER_PAGE;
    }
    if (is_found && end.ended_ms > 0 && end.ended_ms <= VIEW_LEFT_MAX_MS)
        visitor->on_last_end(visitor->context, keys->name[KEY_LOCK], &end);
    return st;
}

/*
 * Must the list leave out a lock because list_lock() failed to read it? Yes if no lock can have
 * this key (another program wrote the value), if the user may not read the key, if the key has a
 * value of another type, or if the Cluster has moved it to another server.
 */
static bool is_left_out(enum rlock_status st, const struct rlock_error *fault, enum found_by by)
{
    /*
     * With FOUND_BY_VALUE list_written() has read the key before. So the user lacks another right,
     * and the caller reports the fault.
     */
    if (st == RLOCK_E_REFUSED && fault->reason == RLOCK_REASON_NO_RIGHT)
        return by != FOUND_BY_VALUE;
    if (st == RLOCK_E_REFUSED)
        return fault->reason == RLOCK_REASON_KEY_TYPE;
    return st == RLOCK_E_USAGE || (st == RLOCK_E_SERVER && fault->reason == RLOCK_REASON_NONE);
}

/*
 * Reads a lock, and shows it if is_to_list() is true. If the visitor wants to know the last end,
 * shows that of each lock once: when the lock is shown, or, if it is free, when its history is
 * found. If is_left_out() is true, ignores the fault.
 */
static enum rlock_status list_lock(struct quorum *quorum, const char *key, enum found_by by,
                                   struct rlock_deadline deadline,
                                   const struct rlock_visitor *visitor, struct rlock_error *err)
{
    struct rlock_error fault = {.status = RLOCK_OK};
    struct members_page page;
    struct reading reading;
    struct around around;
    struct lock_keys keys;
    enum rlock_status st = keys_init(&keys, key, NULL, &fault);
    bool is_shown = false;

    if (st == RLOCK_OK)
        st = read_lock(quorum, &keys, true, &reading, &around, &page, deadline, &fault);
    if (st == RLOCK_OK && is_to_list(&reading, &around, by)) {
        show_lock(key, &keys, &reading, &around, visitor);
        is_shown = reading.exists;
    }
    if (st == RLOCK_OK && visitor->on_last_end != NULL &&
        (is_shown || (by == FOUND_BY_HISTORY && !reading.exists)))
        st = show_last_end(quorum, &keys, deadline, visitor, &fault);
    keys_fini(&keys);
    if (is_left_out(st, &fault, by))
        return RLOCK_OK;
    if (st >= RLOCK_E_USAGE && err != NULL)
        *err = fault;
    return st;
}

/*
 * Copies the names of strings, and of keys whose type the user may not ask for. A GETRANGE of
 * another type would count among the server's errors, which administrators watch.
 */
static enum rlock_status select_strings(struct quorum *quorum, const struct inspect_names *names,
                                        struct rlock_deadline deadline,
                                        struct inspect_names *strings, struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    struct request request;
    enum rlock_status st;
    size_t i;

    request_begin(&request, "TIME"); /* an error as the first reply would fail the whole request */
    for (i = 0; i < names->n; i++)
        add_command(&request, "TYPE", names->name[i]);
    st = quorum_ask(quorum, &request, deadline, &reply, err);
    for (i = 0; st == RLOCK_OK && i < names->n; i++) {
        const struct resp_value *type = resp_array_at(reply, i + 1);

        if (type != NULL && (resp_is_status(type, "string") || resp_error(type) != NULL))
            strings->name[strings->n++] = names->name[i];
    }
    return st;
}

/* Reads how the values of some keys begin, and shows those that rlock wrote. */
static enum rlock_status list_written(struct quorum *quorum, const struct inspect_names *names,
                                      struct rlock_deadline deadline,
                                      const struct rlock_visitor *visitor, struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    bool is_ours[INSPECT_NAMES_MAX] = {false};
    struct inspect_names strings = {.n = 0};
    enum rlock_status st = select_strings(quorum, names, deadline, &strings, err);
    struct request request;
    size_t bytes;
    size_t i;

    if (st != RLOCK_OK || strings.n == 0)
        return st;
    request_begin(&request, "TIME");
    for (i = 0; i < strings.n; i++) {
        add_command(&request, "GETRANGE", strings.name[i]);
        request_add(&request, "0");
        request_add(&request, PEEK_LAST);
    }
    st = quorum_ask(quorum, &request, deadline, &reply, err);
    for (i = 0; st == RLOCK_OK && i < strings.n; i++) {
        const char *value = resp_string(resp_array_at(reply, i + 1), &bytes);

        is_ours[i] = value != NULL && holder_info_is_rlock(value);
    }
    for (i = 0; st == RLOCK_OK && i < strings.n; i++)
        if (is_ours[i])
            st = list_lock(quorum, strings.name[i], FOUND_BY_VALUE, deadline, visitor, err);
    return st;
}

/* Which locks inspect_commands_list() lists, and the visitor to which it passes them. */
struct search {
    struct quorum *quorum; /* its only member is the server */
    const char *pattern;   /* a glob for the keys of locks; NULL: all locks */
    struct rlock_deadline deadline;
    const struct rlock_visitor *visitor;
};

static bool is_match(const struct search *search, const char *key)
{
    return search->pattern == NULL || fnmatch(search->pattern, key, 0) == 0;
}

/* Lists the lock whose helper key has this name, if the key is one by which locks are found. */
static enum rlock_status list_owner_of(const struct search *search, const char *helper,
                                       struct rlock_error *err)
{
    static const struct {
        enum found_by by;
        char kind[8];
    } kinds[] = {
        {FOUND_BY_FENCE, "fence"}, {FOUND_BY_QUEUE, "queue"}, {FOUND_BY_HISTORY, "history"}};
    size_t n = search->visitor->on_last_end != NULL ? 3 : 2;
    enum rlock_status st = RLOCK_OK;
    size_t i;

    for (i = 0; st == RLOCK_OK && i < n; i++) {
        char *key = keys_lock_of(kinds[i].kind, helper);

        if (key != NULL && is_match(search, key))
            st =
                list_lock(search->quorum, key, kinds[i].by, search->deadline, search->visitor, err);
        free(key);
    }
    return st;
}

/* Lists the locks among the keys that SCAN has found. */
static enum rlock_status list_found(const void *context, const struct inspect_names *found,
                                    struct rlock_error *err)
{
    const struct search *search = context;
    enum rlock_status st = RLOCK_OK;
    struct inspect_names peeked = {.n = 0};
    size_t i;

    for (i = 0; st == RLOCK_OK && i < found->n; i++) {
        if (keys_is_helper_name(found->name[i]))
            st = list_owner_of(search, found->name[i], err);
        else if (is_match(search, found->name[i]))
            peeked.name[peeked.n++] = found->name[i];
        if (st == RLOCK_OK && (peeked.n == PEEKS_MAX || (i + 1 == found->n && peeked.n > 0))) {
            st = list_written(search->quorum, &peeked, search->deadline, search->visitor, err);
            peeked.n = 0;
        }
    }
    return st;
}

/* Copies the names in a reply to SCAN. Leaves out names with a NUL: no lock has one. */
static enum rlock_status copy_names(struct inspect_names *names, const struct resp_value *keys,
                                    struct rlock_error *err)
{
    size_t i;
    size_t n;

    for (i = 0; i < resp_array_count(keys); i++) {
        const char *name = resp_string(resp_array_at(keys, i), &n);

        if (name == NULL || names->n == INSPECT_NAMES_MAX)
            return reply_unexpected_command(err);
        if (strlen(name) != n || n > RLOCK_KEY_MAX)
            continue;
        names->name[names->n] = strdup(name);
        if (names->name[names->n++] == NULL)
            return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    }
    return RLOCK_OK;
}

/*
 * Sends one SCAN, copies the names of the keys that it finds, and moves `cursor`. If these names
 * are too long for a reply, sends SCAN again for as few keys as possible.
 */
static enum rlock_status scan(struct quorum *one, const char *match, char cursor[32],
                              struct rlock_deadline deadline, struct inspect_names *found,
                              struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    int count = KEYS_PER_SCAN;
    enum rlock_status st;
    struct request request;
    const char *next;
    size_t n;

    do {
        request_begin(&request, "SCAN");
        request_add(&request, cursor);
        request_add(&request, "MATCH");
        request_add(&request, match);
        request_add(&request, "COUNT");
        request_add_format(&request, "%d", count);
        st = quorum_ask(one, &request, deadline, &reply, err);
        count = count > 1 ? 1 : 0;
    } while (st == RLOCK_E_PROTOCOL && count > 0);
    if (st != RLOCK_OK)
        return st;
    next = resp_string(resp_array_at(reply, 0), &n);
    if (next == NULL || n == 0 || n >= 32 || resp_array_at(reply, 1) == NULL)
        return reply_unexpected_command(err);
    memcpy(cursor, next, n + 1);
    return copy_names(found, resp_array_at(reply, 1), err);
}

enum rlock_status inspect_commands_scan(struct quorum *one, const char *match,
                                        struct rlock_deadline deadline, inspect_found *on_found,
                                        const void *context, struct rlock_error *err)
{
    struct inspect_names found = {.n = 0};
    char cursor[32] = "0";
    enum rlock_status st;

    do {
        st = scan(one, match, cursor, deadline, &found, err);
        if (st == RLOCK_OK)
            st = on_found(context, &found, err);
        names_fini(&found);
    } while (st == RLOCK_OK && strcmp(cursor, "0") != 0);
    return st;
}

/*
 * A pattern for SCAN that matches the keys of the locks that `pattern` matches, and the names of
 * their helper keys, because the name of a helper key contains the key of its lock. It matches
 * other keys, too. Heap, for the caller to free; NULL: no memory.
 */
static char *with_helpers(const char *pattern)
{
    char *text = malloc(strlen(pattern) + 3);

    if (text != NULL)
        sprintf(text, "*%s*", pattern);
    return text;
}

enum rlock_status inspect_commands_list(struct quorum *quorum, const char *pattern,
                                        struct rlock_deadline deadline,
                                        const struct rlock_visitor *visitor,
                                        struct rlock_error *err)
{
    const struct search search = {
        .quorum = quorum, .pattern = pattern, .deadline = deadline, .visitor = visitor};
    char *match = with_helpers(pattern != NULL ? pattern : "");
    enum rlock_status st = match != NULL ? RLOCK_OK : err_set(err, RLOCK_E_MEMORY, 0, "no memory");

    if (st == RLOCK_OK)
        st = inspect_commands_scan(quorum, match, deadline, list_found, &search, err);
    free(match);
    return st;
}
