/* SPDX-License-Identifier: MIT */
/* test_keys: helper keys stay in the slot of their lock, and are no other lock's. */
#include "lock/keys.h"
#include "server/slot.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How the helper keys of each form of name are named. */
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
#define RANDOM_NAMES 300 /* each takes some ms; RLOCK_TEST_NAMES says another number */

static const char *const kinds[] = {"fence",   "queue",       "waiters",
                                    "holders", "holder-info", "wake:0123456789abcdef"};

#define KINDS (sizeof kinds / sizeof kinds[0])

/* A helper key, or a key that can be a lock. */
struct made {
    char *name;
    char *key; /* that it belongs to */
};

static struct made *made;
static size_t n_made;
static size_t n_keys;
static bool all_in_slot = true;
static bool all_have_prefix = true;
static bool all_are_refused = true;

/* All that starts with the key but no further '{' can be a tag: said in the manual. */
static bool is_hashed_whole(const char *key)
{
    const char *open = strchr(key, '{');

    return open != NULL && open[1] == '}';
}

static void keep(char *name, const char *key)
{
    if (n_made % 4096 == 0)
        made = realloc(made, (n_made + 4096) * sizeof *made);
    made[n_made++] = (struct made){name, strdup(key)};
}

static void make_helpers(const char *key)
{
    size_t n = strlen(key);
    size_t i;

    n_keys++;
    for (i = 0; i < KINDS; i++) {
        char *helper = keys_helper_name(kinds[i], key);

        if (slot_of(helper, strlen(helper)) != slot_of(key, n)) {
            all_in_slot = false;
            printf("# %s is not in the slot of %s\n", helper, key);
        }
        if (strncmp(helper, key, n) != 0 &&
            (helper[0] != '{' || strncmp(helper + 1, key, n) != 0) &&
            (!is_hashed_whole(key) || strncmp(helper, "rlock:{", 7) != 0)) {
            all_have_prefix = false;
            printf("# %s begins otherwise than %s\n", helper, key);
        }
        if (!keys_is_helper_name(helper)) {
            all_are_refused = false;
            printf("# %s could be a lock\n", helper);
        }
        keep(helper, key);
    }
}

/* All strings over LETTERS up to LONGEST letters that begin with the first `used` of `key`. */
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

/* Names of any length, some of which have what helper keys are made of. */
static void try_some(unsigned seed)
{
    const char *more = getenv("RLOCK_TEST_NAMES");
    char key[RANDOM_LONGEST + 16];
    size_t used;
    int i;

    srand(seed);
    for (i = 0; i < (more != NULL ? atoi(more) : RANDOM_NAMES); i++) {
        size_t length = 1 + (size_t)rand() % RANDOM_LONGEST;

        for (used = 0; used < length; used++)
            key[used] = RANDOM_LETTERS[rand() % (int)(sizeof RANDOM_LETTERS - 1)];
        key[used] = '\0';
        if (rand() % 4 == 0)
            strcat(key, rand() % 2 ? ":rlock" : "}:rlock:0"); /* the second can't be a lock */
        if (!keys_is_helper_name(key))
            make_helpers(key);
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct made *)a)->name, ((const struct made *)b)->name);
}

/* Whether a name belongs to one key alone, as does the kind that it ends with. */
static bool is_shared(const struct made *a, const struct made *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->key, b->key) != 0;
}

int main(void)
{
    char key[LONGEST + 1] = "";
    unsigned seed = (unsigned)time(NULL);
    bool is_single = true;
    size_t i;

    for (i = 0; i < sizeof named / sizeof named[0]; i++) {
        char *helper = keys_helper_name("fence", named[i].key);

        is_str(helper, named[i].helper, named[i].key);
        free(helper);
    }
    ok(keys_is_helper_name("rlock:x") && keys_is_helper_name("a:rlock:b") &&
           !keys_is_helper_name("rlock") && !keys_is_helper_name("a:rlock") &&
           !keys_is_helper_name("rlocks:a") && !keys_is_helper_name("arlock:b"),
       "what starts with rlock: or contains :rlock: is named as helper keys are");

    try_all(key, 0);
    is_int((int64_t)n_keys, 4 + 16 + 64 + 256 + 1024, "helper keys for keys of all forms");
    try_some(seed);
    okf(n_keys > RANDOM_NAMES / 2, "and for %zu by chance, seed %u", n_keys, seed);
    ok(all_in_slot, "each helper key is in the slot of its key, wherever that has braces");
    ok(all_have_prefix, "each begins with its key, or a brace and its key, where it can");
    ok(all_are_refused, "none of them could be a lock");
    qsort(made, n_made, sizeof made[0], compare);
    for (i = 1; i < n_made; i++)
        if (is_shared(&made[i - 1], &made[i])) {
            is_single = false;
            printf("# %s and %s share %s\n", made[i - 1].key, made[i].key, made[i].name);
        }
    ok(is_single, "no two keys share a helper key");
    for (i = 0; i < n_made; i++) {
        free(made[i].name);
        free(made[i].key);
    }
    free(made);
    return done_testing();
}
