/* SPDX-License-Identifier: MIT */
/*
 * store: the keys of a simulated server, with the types of value that the scripts use.
 *
 * The elements of a list, hash or sorted set are an array, in the order in which Redis shows them.
 * Long arrays are slow, but the code is simple enough to be checked against Redis by reading.
 */
#ifndef STORE_H
#define STORE_H

#include "buffer.h"

#include <stdint.h>

enum store_type { STORE_STRING, STORE_LIST, STORE_HASH, STORE_ZSET };

/* An element of a list (value), a hash (name, value) or a sorted set (name, score). */
struct store_item {
    struct buffer name;
    struct buffer value;
    double score;
};

struct store_key {
    struct buffer name;
    enum store_type type;
    int64_t expires_ms; /* Unix time; 0: never */
    struct buffer string;
    struct store_item *item;
    size_t n;
    size_t room;
    bool is_foreign; /* another program's key: no client may change it, and it needs no expiry */
    struct store_key *next;
};

#define STORE_BUCKETS 8 /* so few that keys share buckets in tests: replay.c has 18 keys */

struct store {
    struct store_key *bucket[STORE_BUCKETS];
    int64_t now_ms; /* the server's clock, set before each command; decides what has expired */
    /* The store calls on_change after each change of a key, with NULL for `key` after a deletion.
     * If on_change is NULL, the store calls nothing. */
    void (*on_change)(void *context, struct text name, const struct store_key *key);
    void *context;
};

/* store_find: NULL: no such key. Deletes a key that has expired, and returns NULL for it. */
struct store_key *store_find(struct store *store, struct text name);

/* store_find_or_add: find the key, or add it: without a value, items and an expiry. */
struct store_key *store_find_or_add(struct store *store, struct text name, enum store_type type);

/* store_drop: delete a key as store_delete() does, but don't call on_change. */
void store_drop(struct store *store, struct text name);
bool store_delete(struct store *store, struct text name);
void store_note_change(struct store *store, const struct store_key *key);
void store_clear(struct store *store);
void store_copy(struct store *to, const struct store *from); /* the keys; `to` must be empty */

/* ---- the items of a list, hash or sorted set ---- */

/* store_index: the index of the item with this name, or -1. */
int64_t store_index(const struct store_key *key, struct text name);
struct store_item *store_insert(struct store_key *key, size_t at, struct text name,
                                struct text value, double score);
void store_remove(struct store_key *key, size_t at);

/* store_place_by_score: the index at which to insert a member with this score and name. */
size_t store_place_by_score(const struct store_key *key, double score, struct text name);

struct text store_text(const struct buffer *buffer);
void store_set(struct buffer *buffer, struct text text);

#endif
