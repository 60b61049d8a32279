/* SPDX-License-Identifier: MIT */
/*
 * store: the keys of a simulated server, with the types of value that the scripts use.
 *
 * Lists of values are arrays in the order in which Redis shows them. That is slow for long ones,
 * and simple: the model is to be right before all else.
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

#define STORE_BUCKETS 1024

struct store {
    struct store_key *bucket[STORE_BUCKETS];
    int64_t now_ms; /* the server's clock, set before each command; decides what has expired */
    /* called after a change of a key (`key` NULL: its deletion). NULL: not called */
    void (*on_change)(void *context, struct text name, const struct store_key *key);
    void *context;
};

/* store_find: NULL: there is no such key, or it has expired and is deleted. */
struct store_key *store_find(struct store *store, struct text name);

/* store_find_or_add: a new key has no value, no items and no expiry. */
struct store_key *store_find_or_add(struct store *store, struct text name, enum store_type type);

/* store_drop: delete a key as store_delete() does, but don't call on_change. */
void store_drop(struct store *store, struct text name);
bool store_delete(struct store *store, struct text name);
void store_note_change(struct store *store, const struct store_key *key);
void store_clear(struct store *store);
void store_copy(struct store *to, const struct store *from); /* keys only; `to` is empty */

/* ---- items ---- */

/* The place of an item by its name, or -1. */
int64_t store_index(const struct store_key *key, struct text name);
struct store_item *store_insert(struct store_key *key, size_t at, struct text name,
                                struct text value, double score);
void store_remove(struct store_key *key, size_t at);

/* store_place_by_score: where a member with this score belongs in a sorted set. */
size_t store_place_by_score(const struct store_key *key, double score, struct text name);

struct text store_text(const struct buffer *buffer);
void store_set(struct buffer *buffer, struct text text);

#endif
