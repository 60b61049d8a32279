/* SPDX-License-Identifier: MIT */
/*
 * list: lists all locks of a server, and finds keys by SCAN.
 *
 * A script may only use keys that the request names, so commands find the keys: those whose value
 * rlock wrote, and the helper keys of locks that other programs hold. Each lock that may be there
 * is then read as rlock_inspect() reads it. Meanwhile other clients may change the lock.
 */
#include "ops/list.h"

#include "base/err.h"
#include "lock/holder_info.h"
#include "lock/replies.h"
#include "ops/inspect.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_PER_SCAN 30 /* SCAN may return some keys more; a reply has up to 64 elements */
/* The last byte that list_written() reads: a value of rlock begins with 32 digits and " v1 ". */
#define PEEK_LAST "35"
#define ENTRIES_PER_PAGE 10 /* of a history */
#define ENTRIES_READ 200    /* most entries that are searched for the last end of a hold */

static void add_command(struct request *request, const char *command, const char *key)
{
    request_add_command(request, command);
    request_add(request, key);
}

/* ---- the last end of a hold, from the lock's history ---- */

static bool tells_end(const char *entry)
{
    return entry != NULL &&
           (strncmp(entry, "end v1 ", 7) == 0 || strncmp(entry, "break v1 ", 9) == 0);
}

/*
 * Reads an entry of a history, see lib/lua/shared/history.lua. A status above 255, which rlock
 * never writes, counts as not known.
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
static enum rlock_status show_last_end(const struct list_search *search,
                                       const struct lock_keys *keys, struct rlock_error *err)
{
    const struct rlock_visitor *visitor = search->visitor;
    const struct resp_value *reply = NULL;
    struct rlock_last_end end = {.ended_ms = 0};
    enum rlock_status st = RLOCK_OK;
    struct request request;
    size_t read;
    size_t n;

    for (read = 0; end.ended_ms == 0 && read < ENTRIES_READ; read += ENTRIES_PER_PAGE) {
        request_begin(&request, "TIME"); /* an error as the first reply would be a fault */
        request_stay(&request);
        add_command(&request, "LRANGE", keys->name[KEY_HISTORY]);
        request_add_format(&request, "-%zu", read + ENTRIES_PER_PAGE);
        request_add_format(&request, "-%zu", read + 1);
        st = quorum_ask(search->one, &request, search->deadline, &reply, err);
        reply = st == RLOCK_OK ? resp_array_at(reply, 1) : NULL;
        n = reply != NULL ? resp_array_count(reply) : 0;
        if (n == 0)
            return st;
        for (; end.ended_ms == 0 && n > 0; n--) {
            const char *entry = resp_string(resp_array_at(reply, n - 1), &(size_t){0});

            if (tells_end(entry))
                end = end_in(entry);
        }
    }
    if (end.ended_ms > 0 && end.ended_ms <= VIEW_LEFT_MAX_MS)
        visitor->on_last_end(visitor->context, keys->name[KEY_LOCK], &end);
    return RLOCK_OK;
}

/* ---- one lock that was found ---- */

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
 * when its fence is found, or its queue if it has no fence. The list shows a free lock only if a
 * helper key is another program's, because nobody can acquire such a lock.
 */
static bool is_to_list(const struct rlock_view *view, enum found_by by)
{
    bool is_free = view->seen == RLOCK_SEEN_FREE;
    bool is_foreign = view->seen == RLOCK_SEEN_FOREIGN;
    bool is_wrong = *view->wrong != '\0';

    if (by == FOUND_BY_VALUE)
        return !is_free && !is_foreign;
    if (by == FOUND_BY_FENCE)
        return is_free ? is_wrong : is_foreign;
    return by == FOUND_BY_QUEUE && is_foreign && view->fence == 0 && !is_wrong;
}

/*
 * Must the list leave out a lock that list_lock() failed to read? Yes if no lock can have this key
 * (another program wrote the value), if the user may not read the key, if the key has a value of
 * another type, or if the Cluster has moved the key to another server.
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
static enum rlock_status list_lock(const struct list_search *search, const char *key,
                                   enum found_by by, struct rlock_error *err)
{
    const struct rlock_visitor *visitor = search->visitor;
    struct rlock_error fault = {.status = RLOCK_OK};
    struct inspected lock;
    struct lock_keys keys;
    enum rlock_status st = keys_init(&keys, key, NULL, &fault);
    bool is_ended = false;

    if (st == RLOCK_OK)
        st = inspect_read(search->one, &keys, true, &lock, search->deadline, &fault);
    if (st == RLOCK_OK) {
        bool is_free = lock.view.seen == RLOCK_SEEN_FREE;
        bool is_shown = is_to_list(&lock.view, by);

        if (is_shown && visitor->on_lock != NULL)
            visitor->on_lock(visitor->context, &lock.view);
        is_ended = is_free ? by == FOUND_BY_HISTORY : is_shown;
    }
    if (is_ended && visitor->on_last_end != NULL)
        st = show_last_end(search, &keys, &fault);
    keys_fini(&keys);
    if (is_left_out(st, &fault, by))
        return RLOCK_OK;
    if (st >= RLOCK_E_USAGE && err != NULL)
        *err = fault;
    return st;
}

/* ---- the keys of a server ---- */

bool list_is_match(const struct list_search *search, const char *key)
{
    return search->pattern == NULL || fnmatch(search->pattern, key, 0) == 0;
}

/* An error as the first reply would fail the whole request, so TIME comes first. */
enum rlock_status list_ask_each(const struct list_search *search, char *const *name, size_t n,
                                const char *command, const char *const *more,
                                const struct resp_value **reply, struct rlock_error *err)
{
    struct request request;
    size_t i;
    size_t j;

    request_begin(&request, "TIME");
    for (i = 0; i < n; i++) {
        add_command(&request, command, name[i]);
        for (j = 0; more[j] != NULL; j++)
            request_add(&request, more[j]);
    }
    return quorum_ask(search->one, &request, search->deadline, reply, err);
}

/*
 * Reads how the values of some keys begin, and shows those that rlock wrote. Asks for their types
 * before: a GETRANGE of another type would count among the server's errors, which administrators
 * watch. But reads a key if the user may not ask for its type.
 */
static enum rlock_status list_written(const struct list_search *search,
                                      const struct list_names *names, struct rlock_error *err)
{
    static const char *const nothing[] = {NULL};
    static const char *const range[] = {"0", PEEK_LAST, NULL};
    const struct resp_value *reply = NULL;
    struct list_names strings = {.n = 0};
    struct list_names ours = {.n = 0};
    enum rlock_status st =
        list_ask_each(search, names->name, names->n, "TYPE", nothing, &reply, err);
    size_t bytes;
    size_t i;

    for (i = 0; st == RLOCK_OK && i < names->n; i++) {
        const struct resp_value *type = resp_array_at(reply, i + 1);

        if (type != NULL && (resp_is_status(type, "string") || resp_error(type) != NULL))
            strings.name[strings.n++] = names->name[i];
    }
    if (st == RLOCK_OK && strings.n > 0)
        st = list_ask_each(search, strings.name, strings.n, "GETRANGE", range, &reply, err);
    for (i = 0; st == RLOCK_OK && i < strings.n; i++) {
        const char *value = resp_string(resp_array_at(reply, i + 1), &bytes);

        if (value != NULL && holder_info_is_rlock(value))
            ours.name[ours.n++] = strings.name[i];
    }
    for (i = 0; st == RLOCK_OK && i < ours.n; i++)
        st = list_lock(search, ours.name[i], FOUND_BY_VALUE, err);
    return st;
}

/* Lists the lock whose fence, queue or (for on_last_end()) history has this name. */
static enum rlock_status list_owner_of(const struct list_search *search, const char *helper,
                                       struct rlock_error *err)
{
    static const struct {
        enum found_by by;
        char kind[8];
    } kinds[] = {
        {FOUND_BY_FENCE, "fence"}, {FOUND_BY_QUEUE, "queue"}, {FOUND_BY_HISTORY, "history"}};
    const struct rlock_visitor *visitor = search->visitor;
    size_t n = visitor->on_last_end != NULL ? 3 : 2;
    enum rlock_status st = RLOCK_OK;
    size_t i;

    for (i = 0; st == RLOCK_OK && i < n; i++) {
        char *key = keys_lock_of(kinds[i].kind, helper);

        if (key != NULL && list_is_match(search, key))
            st = list_lock(search, key, kinds[i].by, err);
        free(key);
    }
    return st;
}

/* Lists the locks among the keys that SCAN has found. */
static enum rlock_status list_found(const struct list_search *search,
                                    const struct list_names *found, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    struct list_names peeked = {.n = 0};
    size_t i;

    for (i = 0; st == RLOCK_OK && i < found->n; i++) {
        if (keys_is_helper_name(found->name[i]))
            st = list_owner_of(search, found->name[i], err);
        else if (list_is_match(search, found->name[i]))
            peeked.name[peeked.n++] = found->name[i];
        if (st == RLOCK_OK && (peeked.n == LIST_ASK_MAX || (i + 1 == found->n && peeked.n > 0))) {
            st = list_written(search, &peeked, err);
            peeked.n = 0;
        }
    }
    return st;
}

/* Copies the names in a reply to SCAN. Leaves out names with a NUL: the key of a lock has none. */
static enum rlock_status copy_names(struct list_names *names, const struct resp_value *keys,
                                    struct rlock_error *err)
{
    size_t i;
    size_t n;

    for (i = 0; i < resp_array_count(keys); i++) {
        const char *name = resp_string(resp_array_at(keys, i), &n);

        if (name == NULL || names->n == LIST_NAMES_MAX)
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
                              struct rlock_deadline deadline, struct list_names *found,
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

static void names_fini(struct list_names *names)
{
    while (names->n > 0)
        free(names->name[--names->n]);
}

static enum rlock_status search_server(struct quorum *one, const void *context,
                                       struct rlock_deadline deadline, struct rlock_error *err)
{
    struct list_search search = *(const struct list_search *)context;
    struct list_names found = {.n = 0};
    char cursor[32] = "0";
    enum rlock_status st;

    search.one = one;
    do {
        st = scan(one, search.match, cursor, deadline, &found, err);
        if (st == RLOCK_OK)
            st = search.on_found(&search, &found, err);
        names_fini(&found);
    } while (st == RLOCK_OK && strcmp(cursor, "0") != 0);
    return st;
}

enum rlock_status list_search(struct quorum *quorum, const struct list_search *search,
                              struct rlock_error *err)
{
    return inspect_each_server(quorum, search_server, search, search->deadline, err);
}

/*
 * The names of helper keys contain the key of their lock, so the pattern for SCAN is "*PATTERN*",
 * which matches other keys, too. PATTERN ends there before the first character that fnmatch(3) may
 * read otherwise: SCAN negates a class by ^ only, and its ? is a byte, not a character.
 */
enum rlock_status list_locks(struct quorum *quorum, const char *pattern,
                             struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                             struct rlock_error *err)
{
    struct list_search search = {
        .pattern = pattern, .deadline = deadline, .on_found = list_found, .visitor = visitor};
    enum rlock_status st;
    const char *all = pattern != NULL ? pattern : "";
    char *match;

    if (asprintf(&match, "*%.*s*", (int)strcspn(all, "[\\?"), all) < 0)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    search.match = match;
    st = list_search(quorum, &search, err);
    free(match);
    return st;
}
