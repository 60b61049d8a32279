/* SPDX-License-Identifier: MIT */
/* store: the keys of a simulated server, with the types of value that the scripts use. */
#include "store.h"

#include <stdlib.h>
#include <string.h>

struct text store_text(const struct buffer *buffer)
{
    return (struct text){buffer->at, buffer->n};
}

void store_set(struct buffer *buffer, struct text text)
{
    struct buffer fresh = {.at = NULL};

    buffer_add(&fresh, text.at, text.n);
    buffer_free(buffer);
    *buffer = fresh;
}

static struct store_key **place_of(struct store *store, struct text name)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    struct store_key **place;

    for (size_t i = 0; i < name.n; i++)
        hash = (hash ^ (unsigned char)name.at[i]) * UINT32_C(16777619);
    place = &store->bucket[hash % STORE_BUCKETS];
    while (*place != NULL && text_compare(store_text(&(*place)->name), name) != 0)
        place = &(*place)->next;
    return place;
}

static void free_items(struct store_key *key)
{
    while (key->n > 0) {
        key->n--;
        buffer_free(&key->item[key->n].name);
        buffer_free(&key->item[key->n].value);
    }
    free(key->item);
    key->item = NULL;
    key->room = 0;
}

static void remove_at(struct store_key **place)
{
    struct store_key *key = *place;

    *place = key->next;
    free_items(key);
    buffer_free(&key->string);
    buffer_free(&key->name);
    free(key);
}

struct store_key *store_find(struct store *store, struct text name)
{
    struct store_key **place = place_of(store, name);

    if (*place != NULL && (*place)->expires_ms != 0 && (*place)->expires_ms < store->now_ms) {
        remove_at(place); /* now *place is the next key of the bucket, not the key `name` */
        return NULL;
    }
    return *place;
}

struct store_key *store_find_or_add(struct store *store, struct text name, enum store_type type)
{
    struct store_key *key = store_find(store, name);

    if (key != NULL)
        return key;
    key = calloc(1, sizeof *key);
    if (key == NULL)
        abort();
    buffer_add(&key->name, name.at, name.n);
    key->type = type;
    *place_of(store, name) = key;
    return key;
}

void store_drop(struct store *store, struct text name)
{
    if (store_find(store, name) != NULL)
        remove_at(place_of(store, name));
}

bool store_delete(struct store *store, struct text name)
{
    if (store_find(store, name) == NULL)
        return false;
    remove_at(place_of(store, name));
    if (store->on_change != NULL)
        store->on_change(store->context, name, NULL);
    return true;
}

void store_note_change(struct store *store, const struct store_key *key)
{
    if (store->on_change != NULL)
        store->on_change(store->context, store_text(&key->name), key);
}

void store_clear(struct store *store)
{
    for (size_t i = 0; i < STORE_BUCKETS; i++)
        while (store->bucket[i] != NULL)
            remove_at(&store->bucket[i]);
}

void store_copy(struct store *to, const struct store *from)
{
    const struct store_key *key;

    for (size_t i = 0; i < STORE_BUCKETS; i++)
        for (key = from->bucket[i]; key != NULL; key = key->next) {
            struct store_key *copy = store_find_or_add(to, store_text(&key->name), key->type);

            copy->expires_ms = key->expires_ms;
            copy->is_foreign = key->is_foreign;
            store_set(&copy->string, store_text(&key->string));
            for (size_t j = 0; j < key->n; j++)
                store_insert(copy, j, store_text(&key->item[j].name),
                             store_text(&key->item[j].value), key->item[j].score);
        }
}

/* ---- the items of a list, hash or sorted set ---- */

int64_t store_index(const struct store_key *key, struct text name)
{
    for (size_t i = 0; i < key->n; i++)
        if (text_compare(store_text(&key->item[i].name), name) == 0)
            return (int64_t)i;
    return -1;
}

struct store_item *store_insert(struct store_key *key, size_t at, struct text name,
                                struct text value, double score)
{
    struct store_item *item;

    if (key->n == key->room) {
        key->room = key->room == 0 ? 8 : key->room * 2;
        key->item = realloc(key->item, key->room * sizeof *key->item);
        if (key->item == NULL)
            abort();
    }
    memmove(&key->item[at + 1], &key->item[at], (key->n - at) * sizeof *key->item);
    key->n++;
    item = &key->item[at];
    *item = (struct store_item){.score = score};
    buffer_add(&item->name, name.at, name.n);
    buffer_add(&item->value, value.at, value.n);
    return item;
}

void store_remove(struct store_key *key, size_t at)
{
    buffer_free(&key->item[at].name);
    buffer_free(&key->item[at].value);
    key->n--;
    memmove(&key->item[at], &key->item[at + 1], (key->n - at) * sizeof *key->item);
}

size_t store_place_by_score(const struct store_key *key, double score, struct text name)
{
    size_t i = 0;

    while (i < key->n &&
           (key->item[i].score < score || (!(key->item[i].score > score) &&
                                           text_compare(store_text(&key->item[i].name), name) < 0)))
        i++;
    return i;
}
