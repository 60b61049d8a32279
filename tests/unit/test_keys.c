/* SPDX-License-Identifier: MIT */
/* test_keys: each helper key is in its lock's hash slot, and belongs to no other lock. */
#include "lock/keys.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A lock's key of each form, and the name of its helper key "fence". */
static const struct {
    const char *key;
    const char *helper;
} named[] = {
    {"job:nightly", "{job:nightly}:rlock:fence"},
    {"a{b}c", "a{b}c:rlock:fence"},
    {"{b}", "{b}:rlock:{}:fence"},
    {"{b}c", "{b}c:rlock:fence"},
    {"a{b", "{a{b}:rlock:fence"},
    {"{", "{{}:rlock:fence"},
    {"foo{hash_tag}", "foo{hash_tag}:rlock:fence"},
};

/* Names that look like helper keys, though no lock can have the key that they would tell. */
static const char *const foreign[] = {
    "{rlock:x}:rlock:fence", "{x:rlock:y}:rlock:fence", "a{x}:rlock:y:rlock:fence", "x:rlock:fence",
    ":rlock:fence",          "{}:rlock:fence",          "{x}:rlock:other",
};

#define LETTERS "{}a:"
#define LONGEST 5
#define RANDOM_LETTERS "ab{}:"
#define RANDOM_LONGEST 14
#define RANDOM_NAMES 300

static size_t n_keys; /* keys of locks whose helper keys were checked */

/* The part of a key by which Redis Cluster chooses the slot, as Redis' keyHashSlot() finds it. */
static void put_hashed(char part[100], const char *key)
{
    size_t n = strlen(key);
    size_t s = 0;
    size_t e;

    while (s < n && key[s] != '{')
        s++;
    for (e = s + 1; e < n && key[e] != '}';)
        e++;
    if (s < n && e < n && e != s + 1)
        sprintf(part, "%.*s", (int)(e - s - 1), key + s + 1);
    else
        strcpy(part, key);
}

/* A key with } but without a hash tag has no helper keys in its slot. */
static bool has_helpers(const char *key)
{
    char part[100];

    put_hashed(part, key);
    return !keys_is_helper_name(key) && (strchr(key, '}') == NULL || strcmp(part, key) != 0);
}

/*
 * A helper key is in the slot of its lock, begins with KEY or {KEY, is no key of a lock, and
 * belongs to this lock alone: its name tells the lock's key.
 */
static void check_helper(const char *helper, const char *key)
{
    const char *wake = strstr(helper, ":wake:");
    const char *kind = wake != NULL ? wake + 1 : strrchr(helper, ':') + 1;
    size_t n = strlen(key);
    char *lock = keys_lock_of(kind, helper);
    char part[100];
    char its_part[100];

    put_hashed(part, key);
    put_hashed(its_part, helper);
    if (strcmp(part, its_part) != 0 ||
        (strncmp(helper, key, n) != 0 && (helper[0] != '{' || strncmp(helper + 1, key, n) != 0)) ||
        !keys_is_helper_name(helper) || lock == NULL || strcmp(lock, key) != 0)
        okf(false, "%s is a good helper key of %s", helper, key);
    free(lock);
}

static void check_key(const char *key)
{
    struct rlock_error err = {.sys = 0};
    struct lock_keys keys;
    enum rlock_status st = keys_init(&keys, key, "0123456789abcdef", &err);

    n_keys += st == RLOCK_OK;
    if (st != (has_helpers(key) ? RLOCK_OK : RLOCK_E_USAGE) || err.sys != 0)
        okf(false, "%s is refused if it must be, and only then", key);
    for (int i = KEY_FENCE; st == RLOCK_OK && i < KEYS_PER_LOCK; i++)
        check_helper(keys.name[i], key);
    if (st == RLOCK_OK)
        check_helper(keys.wake, key);
    keys_fini(&keys);
}

/*
 * Checks all strings of LETTERS, of at most LONGEST letters, that begin with the first `used`
 * letters of `key`.
 */
static void try_all(char *key, size_t used)
{
    const char *letter;

    for (letter = LETTERS; used < LONGEST && *letter != '\0'; letter++) {
        key[used] = *letter;
        key[used + 1] = '\0';
        check_key(key);
        try_all(key, used + 1);
    }
}

/* Checks random names. Some names end in a part that helper keys contain. */
static void try_some(unsigned seed)
{
    char key[RANDOM_LONGEST + 16];
    size_t used;

    srand(seed);
    for (int i = 0; i < RANDOM_NAMES; i++) {
        size_t length = 1 + (size_t)rand() % RANDOM_LONGEST;

        for (used = 0; used < length; used++)
            key[used] = RANDOM_LETTERS[rand() % (int)(sizeof RANDOM_LETTERS - 1)];
        key[used] = '\0';
        if (rand() % 4 == 0)
            strcat(key, rand() % 2 ? ":rlock" : "}:rlock:0");
        check_key(key);
    }
}

int main(void)
{
    char key[LONGEST + 1] = "";
    unsigned seed = (unsigned)time(NULL);

    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        struct lock_keys keys;

        is_int(keys_init(&keys, named[i].key, NULL, NULL), RLOCK_OK, named[i].key);
        is_str(keys.name[KEY_FENCE], named[i].helper, named[i].key);
        keys_fini(&keys);
    }
    ok(keys_is_helper_name("rlock:x") && keys_is_helper_name("a:rlock:b") &&
       !keys_is_helper_name("rlock") && !keys_is_helper_name("a:rlock") &&
       !keys_is_helper_name("rlocks:a") && !keys_is_helper_name("arlock:b"));
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        char *lock = keys_lock_of("fence", foreign[i]);

        okf(lock == NULL, "%s is no lock's", foreign[i]);
        free(lock);
    }
    try_all(key, 0);
    try_some(seed);
    okf(n_keys > RANDOM_NAMES, "helper keys were made for %zu keys, seed %u", n_keys, seed);
    return done_testing();
}
