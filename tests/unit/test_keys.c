/* SPDX-License-Identifier: MIT */
/* test_keys: each helper key is in its lock's hash slot, and belongs to no other lock. */
#include "lock/keys.h"
#include "server/slot.h"
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

#define LETTERS "{}a:"
#define LONGEST 5
#define RANDOM_LETTERS "ab{}:"
#define RANDOM_LONGEST 14
#define RANDOM_NAMES 300

struct helper {
    char *name;
    char *key; /* the key of the lock that the helper key belongs to */
};

static struct helper *helpers; /* all helper keys that this program has made */
static size_t n_helpers;
static size_t n_keys;
static bool all_in_slot = true;
static bool all_have_prefix = true;
static bool all_are_refused = true;

static void keep(char *name, const char *key)
{
    if (n_helpers % 4096 == 0)
        helpers = realloc(helpers, (n_helpers + 4096) * sizeof *helpers);
    helpers[n_helpers++] = (struct helper){name, strdup(key)};
}

/* A key with } but without a hash tag has no helper keys in its slot. */
static bool has_helpers(const char *key)
{
    size_t n = strlen(key);

    return !keys_is_helper_name(key) &&
           (strchr(key, '}') == NULL || slot_hashed_part(key, &n) != key);
}

static void check_helper(const char *helper, const char *key)
{
    size_t n = strlen(key);

    if (slot_of(helper, strlen(helper)) != slot_of(key, n)) {
        all_in_slot = false;
        printf("# %s is not in the slot of %s\n", helper, key);
    }
    if (strncmp(helper, key, n) != 0 && (helper[0] != '{' || strncmp(helper + 1, key, n) != 0)) {
        all_have_prefix = false;
        printf("# %s doesn't begin with %s or {%s\n", helper, key, key);
    }
    if (!keys_is_helper_name(helper)) {
        all_are_refused = false;
        printf("# %s is not refused as the key of a lock\n", helper);
    }
    keep(strdup(helper), key);
}

static void make_helpers(const char *key)
{
    struct rlock_error err;
    struct lock_keys keys;
    enum rlock_status st = keys_init(&keys, key, "0123456789abcdef", &err);

    n_keys += st == RLOCK_OK;
    if (st != (has_helpers(key) ? RLOCK_OK : RLOCK_E_USAGE))
        okf(false, "%s is refused if it must be, and only then", key);
    for (int i = KEY_FENCE; st == RLOCK_OK && i < KEYS_PER_LOCK; i++)
        check_helper(keys.name[i], key);
    if (st == RLOCK_OK)
        check_helper(keys.wake, key);
    keys_fini(&keys);
}

/*
 * Makes the helper keys of all strings of LETTERS, of at most LONGEST letters, that begin with the
 * first `used` letters of `key`.
 */
static void try_all(char *key, size_t used)
{
    const char *letter;

    for (letter = LETTERS; used < LONGEST && *letter != '\0'; letter++) {
        key[used] = *letter;
        key[used + 1] = '\0';
        make_helpers(key);
        try_all(key, used + 1);
    }
}

/* Makes the helper keys of random names. Some names end in a part that helper keys contain. */
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
        make_helpers(key);
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct helper *)a)->name, ((const struct helper *)b)->name);
}

/* Do two locks have the same helper key? */
static bool is_shared(const struct helper *a, const struct helper *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->key, b->key) != 0;
}

int main(void)
{
    char key[LONGEST + 1] = "";
    unsigned seed = (unsigned)time(NULL);
    bool is_single = true; /* each helper key belongs to a single lock */

    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        struct rlock_error err;
        struct lock_keys keys;
        char *key_again;

        is_int(keys_init(&keys, named[i].key, NULL, &err), RLOCK_OK, named[i].key);
        is_str(keys.name[KEY_FENCE], named[i].helper, named[i].key);
        key_again = keys_lock_of("fence", keys.name[KEY_FENCE]);
        is_str(key_again, named[i].key, named[i].helper);
        free(key_again);
        keys_fini(&keys);
    }
    ok(keys_is_helper_name("rlock:x") && keys_is_helper_name("a:rlock:b") &&
       !keys_is_helper_name("rlock") && !keys_is_helper_name("a:rlock") &&
       !keys_is_helper_name("rlocks:a") && !keys_is_helper_name("arlock:b"));

    try_all(key, 0);
    try_some(seed);
    okf(n_keys > RANDOM_NAMES, "helper keys were made for %zu keys, seed %u", n_keys, seed);
    ok(all_in_slot, "each helper key is in the hash slot of its lock, wherever the key has braces");
    ok(all_have_prefix, "each helper key begins with KEY or {KEY");
    ok(all_are_refused, "no helper key is accepted as the key of a lock");
    qsort(helpers, n_helpers, sizeof helpers[0], compare);
    for (size_t i = 1; i < n_helpers; i++)
        if (is_shared(&helpers[i - 1], &helpers[i])) {
            is_single = false;
            printf("# %s and %s share %s\n", helpers[i - 1].key, helpers[i].key, helpers[i].name);
        }
    ok(is_single, "no two locks share a helper key");
    for (size_t i = 0; i < n_helpers; i++) {
        free(helpers[i].name);
        free(helpers[i].key);
    }
    free(helpers);
    return done_testing();
}
