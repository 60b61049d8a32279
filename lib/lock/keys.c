/* SPDX-License-Identifier: MIT */
/* keys: the names of the Redis keys that belong to one lock, all in the same Cluster hash slot. */
#include "lock/keys.h"

#include "base/err.h"
#include "server/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[KEYS_PER_LOCK] = {
    [KEY_FENCE] = "fence",
    [KEY_QUEUE] = "queue",
    [KEY_WAITERS] = "waiters",
    [KEY_HOLDERS] = "holders",
    [KEY_HOLDER_INFO] = "holder-info",
};

/* ---- names of helper keys ---- */

bool keys_is_helper_name(const char *key)
{
    return strncmp(key, "rlock:", 6) == 0 || strstr(key, ":rlock:") != NULL;
}

/*
 * Searches for a number of n digits that makes the hash slot `slot`, from the least number upwards.
 * The digits before the index `at` are fixed; `crc` is the CRC16 of all bytes before that index.
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
 * Finds the least number that, at the end of a hash tag, makes the slot `slot`. `crc` is the CRC16
 * of the bytes of the tag before the number.
 */
static void find_number(unsigned slot, unsigned crc, char number[12])
{
    size_t n = 1;

    while (!find_digits(slot, crc, number, 0, n))
        n++;
}

/* The name of a helper key is: before, the lock's key, behind, the kind. */
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

    if (tag == key + 1 &&
        tag[bytes + 1] == '\0') { /* {job}: must not have the same helper keys as job */
        snprintf(frame.behind, sizeof frame.behind, ":rlock:{}:");
    } else if (tag == key && strchr(key, '}') == NULL) { /* job: the key becomes the hash tag */
        snprintf(frame.before, sizeof frame.before, "{");
        snprintf(frame.behind, sizeof frame.behind, "}:rlock:");
    } else if (tag == key && open == NULL) {
        /* a}b: Redis hashes the whole key. The hash tag {N} goes behind it, with a number N that
         * has the same slot. */
        find_number(slot, 0, number);
        snprintf(frame.behind, sizeof frame.behind, ":rlock:{%s}:", number);
    } else if (tag == key && open[1] == '}') { /* a{}b: the hash tag must come before the key */
        find_number(slot, 0, number);
        snprintf(frame.before, sizeof frame.before, "rlock:{%s}:", number);
    } else if (tag == key) { /* a}b{c: the key opens the hash tag, and a number closes it */
        find_number(slot, slot_crc16(slot_crc16(0, open + 1, strlen(open + 1)), ":rlock:", 7),
                    number);
        snprintf(frame.behind, sizeof frame.behind, ":rlock:%s}:", number);
    } /* else a{b}c: the key has a hash tag of its own */
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

/* ---- the keys of one lock ---- */

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
}
