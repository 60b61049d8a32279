/* SPDX-License-Identifier: MIT */
/* test_slot: hash slots as a Cluster counts them, and helper keys that stay in them. */
#include "slot.h"
#include "tap.h"

#include <stdlib.h>

/* The Cluster specification's examples, and what CLUSTER KEYSLOT of a server says. */
static const struct {
    const char *key;
    unsigned slot;
} known[] = {
    {"123456789", 0x31c3}, /* the check value of this CRC16 */
    {"", 0},
    {"foo", 12182},
    {"bar", 5061},
    {"hello", 866},
    {"somekey", 11058},
    {"foo{hash_tag}", 2515},
    {"{user1000}.following", 3443},
    {"{user1000}.followers", 3443},
    {"foo{}{bar}", 8363},
    {"foo{{bar}}zap", 4015},
    {"foo{bar}{zap}", 5061},
    {"{}", 15257},
    {"{", 4092},
    {"}", 12090},
    {"}{", 12793},
    {"{a", 10276},
    {"a}", 5921},
    {"{}a}", 4370},
    {"x}{y}", 12222},
    {"{}{y}", 16264},
    {"{a}b}", 15495},
};

#define LETTERS "{}a:"
#define LONGEST 5

static char *made[2 * 1024 * LONGEST];
static size_t n_made;
static bool all_in_slot = true;

static void make_helpers(const char *key)
{
    static const char *const kinds[] = {"fence", "line"};
    size_t i;

    for (i = 0; i < 2; i++) {
        char *helper = slot_helper_key(kinds[i], key);

        if (helper == NULL)
            continue;
        if (slot_of(helper, strlen(helper)) != slot_of(key, strlen(key))) {
            all_in_slot = false;
            printf("# %s is not in the slot of %s\n", helper, key);
        }
        made[n_made++] = helper;
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

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(void)
{
    char key[LONGEST + 1] = "";
    bool is_single = true;
    size_t i;

    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        okf(slot_of(known[i].key, strlen(known[i].key)) == known[i].slot, "slot of \"%s\"",
            known[i].key);
    is_int(slot_of("a\0b{foo}", 8), 12182, "a key is bytes, and not a string");
    is_int(slot_of("foobar", 3), 12182, "no more bytes of it are looked at than were given");

    try_all(key, 0);
    is_int((int64_t)n_made, 2 * (4 + 16 + 64 + 256 + 1024), "helper keys for keys of all forms");
    ok(all_in_slot, "each helper key is in the slot of its key, wherever that has braces");
    qsort(made, n_made, sizeof made[0], compare);
    for (i = 1; i < n_made; i++)
        is_single = is_single && strcmp(made[i - 1], made[i]) != 0;
    ok(is_single, "no two keys share a helper key, and no two kinds do");
    for (i = 0; i < n_made; i++)
        free(made[i]);
    return done_testing();
}
