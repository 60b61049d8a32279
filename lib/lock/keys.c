/* SPDX-License-Identifier: MIT */
/* keys: the names of the Redis keys that belong to one lock, all in the same Cluster hash slot. */
#include "lock/keys.h"

#include "base/err.h"
#include "server/slot.h"

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

/*
 * Searches, from the least upwards, for a number of n digits with which the key's hash slot becomes
 * `slot`. The digits before the index `at` are fixed; `crc` is the CRC16 of all bytes before that
 * index.
 */
static bool find_digits(unsigned slot, unsigned crc, char *digits, size_t at, size_t n)
{
    if (at == n) {
        digits[n] = '\0';
        return crc % SLOT_COUNT == slot;
    }
    for (digits[at] = at == 0 && n > 1 ? '1' : '0'; digits[at] <= '9'; digits[at]++)
        if (find_digits(slot, slot_crc16(crc, digits + at, 1), digits, at + 1, n))
            return true;
    return false;
}

/*
 * Finds the least number that can end a hash tag so that the tag's hash slot is `slot`. `crc` is
 * the CRC16 of the bytes of the tag before the number.
 */
static void find_number(unsigned slot, unsigned crc, char number[12])
{
    size_t n = 1;

    while (!find_digits(slot, crc, number, 0, n))
        n++;
}

/*
 * The text around the lock's key in the name of a helper key. The name consists of `before`, the
 * lock's key, `behind` and the kind of the helper key, such as "queue".
 */
struct frame {
    char before[32];
    char behind[32];
};

/* Chooses the form of the name: one case for each row of the table at keys_helper_name(). */
static struct frame frame_of(const char *key)
{
    struct frame frame = {.before = "", .behind = ":rlock:"};
    size_t bytes = strlen(key);
    unsigned slot = slot_of(key, bytes);
    const char *tag = slot_hashed_part(key, &bytes);
    const char *open = strchr(key, '{');
    char number[12];

    if (tag == key + 1 && tag[bytes + 1] == '\0') {
        /* A key like {job}: its helper keys must differ from those of the key job. */
        snprintf(frame.behind, sizeof frame.behind, ":rlock:{}:");
    } else if (tag == key && strchr(key, '}') == NULL) {
        /* A key like job. The whole key becomes the hash tag. */
        snprintf(frame.before, sizeof frame.before, "{");
        snprintf(frame.behind, sizeof frame.behind, "}:rlock:");
    } else if (tag == key && open == NULL) {
        /* A key like a}b. Redis hashes the whole key. The hash tag {N} goes behind the key, with a
         * number N that has the same slot. */
        find_number(slot, 0, number);
        snprintf(frame.behind, sizeof frame.behind, ":rlock:{%s}:", number);
    } else if (tag == key && open[1] == '}') {
        /* A key like a{}b. Redis ignores a hash tag behind the {}, so {N} must come first. */
        find_number(slot, 0, number);
        snprintf(frame.before, sizeof frame.before, "rlock:{%s}:", number);
    } else if (tag == key) {
        /* A key like a}b{c. The key's { opens the hash tag, and a number with } closes it. */
        find_number(slot, slot_crc16(slot_crc16(0, open + 1, strlen(open + 1)), ":rlock:", 7),
                    number);
        snprintf(frame.behind, sizeof frame.behind, ":rlock:%s}:", number);
    } /* else a key like a{b}c, which has a hash tag of its own */
    return frame;
}

char *keys_helper_name(const char *kind, const char *key)
{
    struct frame frame = frame_of(key);
    size_t size = strlen(frame.before) + strlen(key) + strlen(frame.behind) + strlen(kind) + 1;
    char *name = malloc(size);

    if (name != NULL)
        snprintf(name, size, "%s%s%s%s", frame.before, key, frame.behind, kind);
    return name;
}

/* Returns a copy of the `n` bytes at `key` if they are the key of the lock with this helper key. */
static char *lock_if(const char *key, size_t n, const char *kind, const char *helper)
{
    char *lock = strndup(key, n);
    char *name = lock != NULL && n > 0 ? keys_helper_name(kind, lock) : NULL;
    bool is_right = name != NULL && strcmp(name, helper) == 0;

    free(name);
    if (is_right)
        return lock;
    free(lock);
    return NULL;
}

char *keys_lock_of(const char *kind, const char *helper)
{
    const char *start = helper;
    const char *end;
    char *lock = NULL;

    if (strncmp(helper, "rlock:{", 7) == 0 && (start = strstr(helper, "}:")) != NULL)
        start += 2;
    end = start != NULL ? strstr(start, ":rlock:") : NULL;
    if (end == NULL)
        return NULL;
    if (start == helper && *start == '{' && end[-1] == '}' && end - start > 2)
        lock = lock_if(start + 1, (size_t)(end - start) - 2, kind, helper);
    return lock != NULL ? lock : lock_if(start, (size_t)(end - start), kind, helper);
}

/* ---- making the names of all keys of one lock ---- */

static char *wake_name(const char *key, const char *token)
{
    char kind[sizeof "wake:" + RLOCK_TOKEN_BYTES];

    snprintf(kind, sizeof kind, "wake:%s", token);
    return keys_helper_name(kind, key);
}

enum rlock_status keys_init(struct lock_keys *keys, const char *key, const char *token,
                            struct rlock_error *err)
{
    bool all;
    int i;

    *keys = (struct lock_keys){.wake = NULL};
    if (key[0] == '\0' || strlen(key) > RLOCK_KEY_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "a key has 1 to %d bytes", RLOCK_KEY_MAX);
    if (keys_is_helper_name(key))
        return err_set(err, RLOCK_E_USAGE, 0,
                       "a key that starts with rlock: or contains :rlock: can't be a lock: the "
                       "helper keys of locks have such names");
    for (all = true, i = 0; i < KEYS_PER_LOCK; i++) {
        keys->name[i] = i == KEY_LOCK ? strdup(key) : keys_helper_name(kinds[i], key);
        all = all && keys->name[i] != NULL;
    }
    if (token != NULL)
        keys->wake = wake_name(key, token);
    if (!all || (token != NULL && keys->wake == NULL))
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    return RLOCK_OK;
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
                   "%.120s is no fence from 1 to 2^53 - 2^32; another program uses this key; look "
                   "at the key, and DEL it if it isn't needed",
                   keys->name[KEY_FENCE]);
}
