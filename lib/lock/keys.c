/* SPDX-License-Identifier: MIT */
/* keys: the names of the Redis keys that belong to one lock, all in the same Cluster hash slot. */
#include "lock/keys.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FENCE_LIFE_TTLS 10 /* as in fence_life() of lib/lua/shared/fence.lua */

static const char *const kinds[KEYS_PER_LOCK] = {
    [KEY_FENCE] = "fence",
    [KEY_QUEUE] = "queue",
    [KEY_WAITERS] = "waiters",
    [KEY_HOLDERS] = "holders",
    [KEY_HOLDER_INFO] = "holder-info",
    [KEY_HISTORY] = "history",
};

/* ---- making the names of helper keys ---- */

bool keys_is_helper_name(const char *key)
{
    return strncmp(key, "rlock:", 6) == 0 || strstr(key, ":rlock:") != NULL;
}

/* The name of a helper key is `before`, the lock's key, `behind`, and its kind, such as "queue". */
struct frame {
    const char *before;
    const char *behind;
};

/*
 * Returns the start of the part of a key that decides its hash slot: the text between the first '{'
 * and the first '}' after it, or the whole key if there is no such text. `*n`: its length.
 */
static const char *hashed_part(const char *key, size_t *n)
{
    const char *open = strchr(key, '{');
    size_t inside = open != NULL ? strcspn(open + 1, "}") : 0;
    bool has_tag = inside > 0 && open[1 + inside] == '}';

    *n = has_tag ? inside : strlen(key);
    return has_tag ? open + 1 : key;
}

/*
 * Chooses a frame that puts the helper keys into the hash slot of `key`. False: none does, because
 * `key` has a '}', but no hash tag.
 */
static bool frame_of(const char *key, struct frame *frame)
{
    size_t bytes;
    const char *tag = hashed_part(key, &bytes);

    if (tag == key)
        *frame = (struct frame){"{", "}:rlock:"};
    else if (tag == key + 1 && tag[bytes + 1] == '\0') /* the helper keys of "{job}" aren't job's */
        *frame = (struct frame){"", ":rlock:{}:"};
    else
        *frame = (struct frame){"", ":rlock:"};
    return tag != key || strchr(key, '}') == NULL;
}

/* Returns the name of a helper key, see keys.h. On the heap; NULL: no memory. */
static char *helper_name(const struct frame *frame, const char *kind, const char *key)
{
    size_t size = strlen(frame->before) + strlen(key) + strlen(frame->behind) + strlen(kind) + 1;
    char *name = malloc(size);

    if (name != NULL)
        snprintf(name, size, "%s%s%s%s", frame->before, key, frame->behind, kind);
    return name;
}

/*
 * Returns a copy of the `n` bytes at `key`, on the heap, if they are a lock's key, and the name of
 * this lock's helper key `kind` is `helper`; else NULL.
 */
static char *lock_if(const char *key, size_t n, const char *kind, const char *helper)
{
    char *lock = strndup(key, n);
    struct frame frame;
    bool may_be = lock != NULL && n > 0 && !keys_is_helper_name(lock) && frame_of(lock, &frame);
    char *name = may_be ? helper_name(&frame, kind, lock) : NULL;
    bool is_right = name != NULL && strcmp(name, helper) == 0;

    free(name);
    if (is_right)
        return lock;
    free(lock);
    return NULL;
}

char *keys_lock_of(const char *kind, const char *helper)
{
    const char *at = helper;
    const char *end = helper;
    char *lock = NULL;
    size_t n;

    /* the last ":rlock:", as a key that ends in ":rlock" makes an earlier one */
    while ((at = strstr(at, ":rlock:")) != NULL)
        end = at++;
    n = (size_t)(end - helper);
    if (n > 2 && *helper == '{')
        lock = lock_if(helper + 1, n - 2, kind, helper);
    return lock != NULL ? lock : lock_if(helper, n, kind, helper);
}

/* ---- making the names of all keys of one lock ---- */

static enum rlock_status check_key(const char *key, struct frame *frame, struct rlock_error *err)
{
    if (key[0] == '\0' || strlen(key) > RLOCK_KEY_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "a key has 1 to %d bytes", RLOCK_KEY_MAX);
    if (keys_is_helper_name(key))
        return err_set(err, RLOCK_E_USAGE, 0,
                       "a key that starts with rlock: or contains :rlock: can't be a lock: the "
                       "helper keys of locks have such names");
    if (!frame_of(key, frame))
        return err_set(err, RLOCK_E_USAGE, 0,
                       "a key with } can't be a lock unless it has a hash tag, as in {job} or "
                       "a{job}b: its helper keys would be in other slots of a Cluster");
    return RLOCK_OK;
}

enum rlock_status keys_init(struct lock_keys *keys, const char *key, const char *token,
                            struct rlock_error *err)
{
    char wake[sizeof "wake:" + RLOCK_TOKEN_BYTES];
    struct frame frame;
    enum rlock_status st;
    bool all = true;
    int i;

    *keys = (struct lock_keys){.wake = NULL};
    st = check_key(key, &frame, err);
    if (st != RLOCK_OK)
        return st;
    for (i = 0; i < KEYS_PER_LOCK; i++) {
        keys->name[i] = i == KEY_LOCK ? strdup(key) : helper_name(&frame, kinds[i], key);
        all = all && keys->name[i] != NULL;
    }
    if (token != NULL) {
        snprintf(wake, sizeof wake, "wake:%s", token);
        keys->wake = helper_name(&frame, wake, key);
        all = all && keys->wake != NULL;
    }
    return all ? RLOCK_OK : err_set(err, RLOCK_E_MEMORY, 0, "no memory");
}

void keys_fini(struct lock_keys *keys)
{
    int i;

    for (i = 0; i < KEYS_PER_LOCK; i++)
        free(keys->name[i]);
    free(keys->wake);
}

void keys_add(const struct lock_keys *keys, struct request *request)
{
    int i;

    for (i = 0; i < KEYS_PER_LOCK; i++)
        request_add(request, keys->name[i]);
    if (keys->wake != NULL)
        request_add(request, keys->wake);
}

int64_t keys_fence_life_ms(int64_t ttl_ms)
{
    return ttl_ms > FENCE_LIFE_MS / FENCE_LIFE_TTLS ? ttl_ms * FENCE_LIFE_TTLS : FENCE_LIFE_MS;
}

enum rlock_status keys_foreign_fence(const struct lock_keys *keys, struct rlock_error *err)
{
    return err_set(err, RLOCK_E_REFUSED, 0,
                   "%.120s is no number from 1 to 2^53 - 2^32; another program uses this key; look "
                   "at the key, and DEL it if it isn't needed",
                   keys->name[KEY_FENCE]);
}
