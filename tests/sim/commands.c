/* SPDX-License-Identifier: MIT */
/* commands: executes the Redis commands that rlock's scripts call, on a struct store. */
#include "commands.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_AN_INTEGER "-ERR value is not an integer or out of range\r\n"
#define SYNTAX_ERROR "-ERR syntax error\r\n"
#define NO_EXPIRY 0

/* The Redis command that is being executed: its words, the store it works on, and its reply. */
struct call {
    struct store *store;
    const struct text *word;
    size_t n;
    struct buffer *reply;
};

static struct text no_text(void)
{
    return (struct text){"", 0};
}

/* ---- writing replies ---- */

static void reply_line(struct call *call, const char *line)
{
    buffer_add(call->reply, line, strlen(line));
}

static void reply_int(struct call *call, int64_t number)
{
    buffer_add_format(call->reply, ":%lld\r\n", (long long)number);
}

void commands_bulk(struct buffer *reply, struct text text)
{
    buffer_add_format(reply, "$%zu\r\n", text.n);
    buffer_add(reply, text.at, text.n);
    buffer_add(reply, "\r\n", 2);
}

static void reply_bulk(struct call *call, struct text text)
{
    commands_bulk(call->reply, text);
}

static void reply_nil(struct call *call)
{
    reply_line(call, "$-1\r\n");
}

static void reply_array(struct call *call, size_t n)
{
    buffer_add_format(call->reply, "*%zu\r\n", n);
}

static void reply_score(struct call *call, double score)
{
    char text[64];

    snprintf(text, sizeof text, "%.17g", score);
    reply_bulk(call, text_of(text));
}

/* ---- reading the words of a command ---- */

static bool to_int(struct text text, int64_t *number)
{
    char digits[32];
    char *end;

    if (text.n == 0 || text.n >= sizeof digits || text.at[0] == ' ' || text.at[0] == '+')
        return false;
    memcpy(digits, text.at, text.n);
    digits[text.n] = '\0';
    errno = 0;
    *number = strtoll(digits, &end, 10);
    return *end == '\0' && errno == 0;
}

static bool to_double(struct text text, double *number)
{
    char digits[64];
    char *end;

    if (text.n == 0 || text.n >= sizeof digits || text.at[0] == ' ')
        return false;
    memcpy(digits, text.at, text.n);
    digits[text.n] = '\0';
    *number = strtod(digits, &end);
    return *end == '\0' && !isnan(*number);
}

/* ---- commands on keys of any type ---- */

/* Finds the command's key; NULL: no such key. False: it has another type; replies WRONGTYPE. */
static bool find(struct call *call, enum store_type type, struct store_key **key)
{
    *key = store_find(call->store, call->word[1]);
    if (*key == NULL || (*key)->type == type)
        return true;
    reply_line(call, COMMANDS_WRONG_TYPE);
    return false;
}

static void changed(struct call *call, struct store_key *key)
{
    if (key->type != STORE_STRING && key->n == 0)
        store_delete(call->store, call->word[1]);
    else
        store_note_change(call->store, key);
}

static void run_del(struct call *call)
{
    int64_t n = 0;

    for (size_t i = 1; i < call->n; i++)
        n += store_delete(call->store, call->word[i]);
    reply_int(call, n);
}

static void run_exists(struct call *call)
{
    int64_t n = 0;

    for (size_t i = 1; i < call->n; i++)
        n += store_find(call->store, call->word[i]) != NULL;
    reply_int(call, n);
}

static void run_type(struct call *call)
{
    static const char *const names[] = {[STORE_STRING] = "+string\r\n",
                                        [STORE_LIST] = "+list\r\n",
                                        [STORE_HASH] = "+hash\r\n",
                                        [STORE_ZSET] = "+zset\r\n"};
    const struct store_key *key = store_find(call->store, call->word[1]);

    reply_line(call, key == NULL ? "+none\r\n" : names[key->type]);
}

static void run_pttl(struct call *call)
{
    const struct store_key *key = store_find(call->store, call->word[1]);

    if (key == NULL)
        reply_int(call, -2);
    else
        reply_int(call, key->expires_ms == NO_EXPIRY ? -1 : key->expires_ms - call->store->now_ms);
}

static void run_pexpire(struct call *call)
{
    struct store_key *key = store_find(call->store, call->word[1]);
    int64_t ms;

    if (!to_int(call->word[2], &ms)) {
        reply_line(call, NOT_AN_INTEGER);
        return;
    }
    reply_int(call, key != NULL);
    if (key != NULL && ms <= 0) {
        store_delete(call->store, call->word[1]);
    } else if (key != NULL) {
        key->expires_ms = call->store->now_ms + ms;
        store_note_change(call->store, key);
    }
}

/* ---- commands on strings ---- */

static void run_get(struct call *call)
{
    struct store_key *key;

    if (!find(call, STORE_STRING, &key))
        return;
    if (key == NULL)
        reply_nil(call);
    else
        reply_bulk(call, store_text(&key->string));
}

struct set_options {
    bool if_absent;
    bool if_present;
    int64_t ttl_ms; /* 0: none */
};

static bool read_set_options(struct call *call, struct set_options *options)
{
    *options = (struct set_options){.ttl_ms = 0};
    for (size_t i = 3; i < call->n; i++) {
        bool is_ms = text_is_word(call->word[i], "PX");

        if (text_is_word(call->word[i], "NX") && !options->if_present) {
            options->if_absent = true;
        } else if (text_is_word(call->word[i], "XX") && !options->if_absent) {
            options->if_present = true;
        } else if ((is_ms || text_is_word(call->word[i], "EX")) && i + 1 < call->n &&
                   options->ttl_ms == 0) {
            if (!to_int(call->word[++i], &options->ttl_ms)) {
                reply_line(call, NOT_AN_INTEGER);
                return false;
            }
            if (options->ttl_ms <= 0) {
                reply_line(call, "-ERR invalid expire time in 'set' command\r\n");
                return false;
            }
            options->ttl_ms *= is_ms ? 1 : 1000;
        } else {
            reply_line(call, SYNTAX_ERROR);
            return false;
        }
    }
    return true;
}

static void run_set(struct call *call)
{
    struct store_key *key = store_find(call->store, call->word[1]);
    struct set_options options;

    if (!read_set_options(call, &options))
        return;
    if ((options.if_absent && key != NULL) || (options.if_present && key == NULL)) {
        reply_nil(call);
        return;
    }
    if (key != NULL && key->type != STORE_STRING)
        store_delete(call->store, call->word[1]);
    key = store_find_or_add(call->store, call->word[1], STORE_STRING);
    store_set(&key->string, call->word[2]);
    key->expires_ms = options.ttl_ms > 0 ? call->store->now_ms + options.ttl_ms : NO_EXPIRY;
    changed(call, key);
    reply_line(call, "+OK\r\n");
}

static void run_incr(struct call *call)
{
    struct store_key *key;
    int64_t number = 0;
    char text[32];

    if (!find(call, STORE_STRING, &key))
        return;
    if (key != NULL && !to_int(store_text(&key->string), &number)) {
        reply_line(call, NOT_AN_INTEGER);
        return;
    }
    if (number == INT64_MAX) {
        reply_line(call, "-ERR increment or decrement would overflow\r\n");
        return;
    }
    key = store_find_or_add(call->store, call->word[1], STORE_STRING);
    snprintf(text, sizeof text, "%lld", (long long)number + 1);
    store_set(&key->string, text_of(text));
    changed(call, key);
    reply_int(call, number + 1);
}

/*
 * Returns how many of n elements are between the indexes `first` and `last`, and sets *from to the
 * first of these. A negative index counts from the end: -1 is the last element.
 */
static size_t range(int64_t n, int64_t first, int64_t last, size_t *from)
{
    first = first < 0 ? first + n : first;
    last = last < 0 ? last + n : last;
    first = first < 0 ? 0 : first;
    last = last >= n ? n - 1 : last;
    *from = (size_t)first;
    return first > last || first >= n ? 0 : (size_t)(last - first + 1);
}

static void run_getrange(struct call *call)
{
    struct store_key *key;
    int64_t first;
    int64_t last;
    size_t from;
    size_t n;

    if (!to_int(call->word[2], &first) || !to_int(call->word[3], &last)) {
        reply_line(call, NOT_AN_INTEGER);
        return;
    }
    if (!find(call, STORE_STRING, &key))
        return;
    n = key == NULL || (first < 0 && last < 0 && first > last)
            ? 0
            : range((int64_t)key->string.n, first, last < -(int64_t)key->string.n ? 0 : last,
                    &from);
    reply_bulk(call, n == 0 ? no_text() : (struct text){key->string.at + from, n});
}

static void run_strlen(struct call *call)
{
    struct store_key *key;

    if (find(call, STORE_STRING, &key))
        reply_int(call, key == NULL ? 0 : (int64_t)key->string.n);
}

/* ---- commands on hashes ---- */

static void run_hset(struct call *call)
{
    struct store_key *key;
    int64_t n_new = 0;

    if (call->n % 2 != 0) {
        reply_line(call, "-ERR wrong number of arguments for 'hset' command\r\n");
        return;
    }
    if (!find(call, STORE_HASH, &key))
        return;
    key = store_find_or_add(call->store, call->word[1], STORE_HASH);
    for (size_t i = 2; i < call->n; i += 2) {
        int64_t at = store_index(key, call->word[i]);

        if (at >= 0)
            store_set(&key->item[at].value, call->word[i + 1]);
        else
            store_insert(key, key->n, call->word[i], call->word[i + 1], 0);
        n_new += at < 0;
    }
    changed(call, key);
    reply_int(call, n_new);
}

static void run_hget(struct call *call)
{
    struct store_key *key;
    int64_t at;

    if (!find(call, STORE_HASH, &key))
        return;
    at = key == NULL ? -1 : store_index(key, call->word[2]);
    if (at < 0)
        reply_nil(call);
    else
        reply_bulk(call, store_text(&key->item[at].value));
}

static void run_hvals(struct call *call)
{
    struct store_key *key;

    if (!find(call, STORE_HASH, &key))
        return;
    reply_array(call, key == NULL ? 0 : key->n);
    for (size_t i = 0; key != NULL && i < key->n; i++)
        reply_bulk(call, store_text(&key->item[i].value));
}

/* HDEL and ZREM: remove items by their names. */
static void remove_items(struct call *call, enum store_type type)
{
    struct store_key *key;
    int64_t n = 0;

    if (!find(call, type, &key))
        return;
    for (size_t i = 2; key != NULL && i < call->n; i++) {
        int64_t at = store_index(key, call->word[i]);

        if (at >= 0)
            store_remove(key, (size_t)at);
        n += at >= 0;
    }
    if (n > 0)
        changed(call, key);
    reply_int(call, n);
}

static void run_hdel(struct call *call)
{
    remove_items(call, STORE_HASH);
}

/* ---- commands on lists ---- */

static void run_rpush(struct call *call)
{
    struct store_key *key;

    if (!find(call, STORE_LIST, &key))
        return;
    key = store_find_or_add(call->store, call->word[1], STORE_LIST);
    for (size_t i = 2; i < call->n; i++)
        store_insert(key, key->n, no_text(), call->word[i], 0);
    reply_int(call, (int64_t)key->n);
    changed(call, key);
}

/* ---- commands on sorted sets ---- */

static void run_zadd(struct call *call)
{
    struct store_key *key;
    double score = 0;
    int64_t n_new = 0;

    if (call->n % 2 != 0) {
        reply_line(call, SYNTAX_ERROR);
        return;
    }
    for (size_t i = 2; i < call->n; i += 2)
        if (!to_double(call->word[i], &score)) {
            reply_line(call, "-ERR value is not a valid float\r\n");
            return;
        }
    if (!find(call, STORE_ZSET, &key))
        return;
    key = store_find_or_add(call->store, call->word[1], STORE_ZSET);
    for (size_t i = 2; i < call->n; i += 2) {
        struct text name = call->word[i + 1];
        int64_t at = store_index(key, name);

        to_double(call->word[i], &score);
        n_new += at < 0;
        if (at >= 0)
            store_remove(key, (size_t)at);
        store_insert(key, store_place_by_score(key, score, name), name, no_text(), score);
    }
    changed(call, key);
    reply_int(call, n_new);
}

static void run_zrem(struct call *call)
{
    remove_items(call, STORE_ZSET);
}

static void run_zcard(struct call *call)
{
    struct store_key *key;

    if (find(call, STORE_ZSET, &key))
        reply_int(call, key == NULL ? 0 : (int64_t)key->n);
}

/* Returns the index of the member that word 2 names. -1: no such member; the reply is written. */
static int64_t find_member(struct call *call, struct store_key **key)
{
    int64_t at;

    if (!find(call, STORE_ZSET, key))
        return -1;
    at = *key == NULL ? -1 : store_index(*key, call->word[2]);
    if (at < 0)
        reply_nil(call);
    return at;
}

static void run_zscore(struct call *call)
{
    struct store_key *key;
    int64_t at = find_member(call, &key);

    if (at >= 0)
        reply_score(call, key->item[at].score);
}

static void run_zrank(struct call *call)
{
    struct store_key *key;
    int64_t at = find_member(call, &key);

    if (at >= 0)
        reply_int(call, at);
}

static void reply_members(struct call *call, const struct store_key *key, size_t from, size_t n,
                          bool with_scores)
{
    reply_array(call, with_scores ? 2 * n : n);
    for (size_t i = from; i < from + n; i++) {
        reply_bulk(call, store_text(&key->item[i].name));
        if (with_scores)
            reply_score(call, key->item[i].score);
    }
}

static void run_zrange(struct call *call)
{
    bool with_scores = call->n > 4 && text_is_word(call->word[4], "WITHSCORES");
    struct store_key *key;
    int64_t first;
    int64_t last;
    size_t from = 0;
    size_t n;

    if (!to_int(call->word[2], &first) || !to_int(call->word[3], &last)) {
        reply_line(call, NOT_AN_INTEGER);
        return;
    }
    if (!find(call, STORE_ZSET, &key))
        return;
    n = key == NULL ? 0 : range((int64_t)key->n, first, last, &from);
    reply_members(call, key, from, n, with_scores);
}

/* A bound of ZRANGEBYSCORE: a score; with "(" before it, the score itself is not included. */
struct bound {
    double score;
    bool is_open;
};

static bool to_bound(struct text text, struct bound *bound)
{
    bound->is_open = text.n > 0 && text.at[0] == '(';
    if (bound->is_open)
        text = (struct text){text.at + 1, text.n - 1};
    return to_double(text, &bound->score);
}

/* Returns how many members have scores between the bounds; *from is the index of the first. */
static size_t between(const struct store_key *key, struct bound low, struct bound high,
                      size_t *from)
{
    size_t i = 0;
    size_t end;

    while (i < key->n &&
           (low.is_open ? !(key->item[i].score > low.score) : key->item[i].score < low.score))
        i++;
    for (end = i; end < key->n && (high.is_open ? key->item[end].score < high.score
                                                : !(key->item[end].score > high.score));)
        end++;
    *from = i;
    return end - i;
}

static bool find_between(struct call *call, struct store_key **key, size_t *from, size_t *n)
{
    struct bound low;
    struct bound high;

    if (!to_bound(call->word[2], &low) || !to_bound(call->word[3], &high)) {
        reply_line(call, "-ERR min or max is not a float\r\n");
        return false;
    }
    if (!find(call, STORE_ZSET, key))
        return false;
    *from = 0;
    *n = *key == NULL ? 0 : between(*key, low, high, from);
    return true;
}

static void run_zcount(struct call *call)
{
    struct store_key *key;
    size_t from;
    size_t n;

    if (find_between(call, &key, &from, &n))
        reply_int(call, (int64_t)n);
}

static void run_zrangebyscore(struct call *call)
{
    bool with_scores = false;
    int64_t offset = 0;
    int64_t limit = -1;
    struct store_key *key;
    size_t from;
    size_t n;

    for (size_t i = 4; i < call->n; i++) {
        if (text_is_word(call->word[i], "WITHSCORES")) {
            with_scores = true;
        } else if (text_is_word(call->word[i], "LIMIT") && i + 2 < call->n) {
            if (!to_int(call->word[i + 1], &offset) || !to_int(call->word[i + 2], &limit)) {
                reply_line(call, NOT_AN_INTEGER);
                return;
            }
            i += 2;
        } else {
            reply_line(call, SYNTAX_ERROR);
            return;
        }
    }
    if (!find_between(call, &key, &from, &n))
        return;
    if (offset > 0) {
        offset = offset < (int64_t)n ? offset : (int64_t)n;
        from += (size_t)offset;
        n -= (size_t)offset;
    }
    if (limit >= 0 && (size_t)limit < n)
        n = (size_t)limit;
    reply_members(call, key, from, n, with_scores);
}

/* ---- finding the function that executes a command ---- */

static const struct {
    const char *name;
    size_t least; /* the fewest words of the command, its name included */
    size_t most;  /* the most words; 0: any number */
    void (*run)(struct call *);
} commands[] = {
    {"DEL", 2, 0, run_del},       {"EXISTS", 2, 0, run_exists},
    {"GET", 2, 2, run_get},       {"GETRANGE", 4, 4, run_getrange},
    {"HDEL", 3, 0, run_hdel},     {"HGET", 3, 3, run_hget},
    {"HSET", 4, 0, run_hset},     {"HVALS", 2, 2, run_hvals},
    {"INCR", 2, 2, run_incr},     {"PEXPIRE", 3, 3, run_pexpire},
    {"PTTL", 2, 2, run_pttl},     {"RPUSH", 3, 0, run_rpush},
    {"SET", 3, 0, run_set},       {"STRLEN", 2, 2, run_strlen},
    {"TYPE", 2, 2, run_type},     {"ZADD", 4, 0, run_zadd},
    {"ZCARD", 2, 2, run_zcard},   {"ZCOUNT", 4, 4, run_zcount},
    {"ZRANGE", 4, 5, run_zrange}, {"ZRANGEBYSCORE", 4, 0, run_zrangebyscore},
    {"ZRANK", 3, 3, run_zrank},   {"ZREM", 3, 0, run_zrem},
    {"ZSCORE", 3, 3, run_zscore},
};

static void reply_wrong_count(struct buffer *reply, const char *name)
{
    char lower[32];
    size_t i;

    for (i = 0; name[i] != '\0'; i++)
        lower[i] = (char)(name[i] | 0x20);
    lower[i] = '\0';
    buffer_add_format(reply, "-ERR wrong number of arguments for '%s' command\r\n", lower);
}

bool commands_run(struct store *store, const struct text *word, size_t n, struct buffer *reply)
{
    struct call call = {.store = store, .word = word, .n = n, .reply = reply};

    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (!text_is_word(word[0], commands[i].name))
            continue;
        if (n < commands[i].least || (commands[i].most > 0 && n > commands[i].most))
            reply_wrong_count(reply, commands[i].name);
        else
            commands[i].run(&call);
        return true;
    }
    return false;
}
