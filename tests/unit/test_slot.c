/* SPDX-License-Identifier: MIT */
/* test_slot: slot_of() returns the same hash slots as Redis Cluster. */
#include "server/slot.h"
#include "tap.h"

#include <string.h>

/* Examples of the Redis Cluster specification, and replies of a server to CLUSTER KEYSLOT. */
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

int main(void)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        okf(slot_of(known[i].key, strlen(known[i].key)) == known[i].slot,
            "slot_of() returns the right slot of \"%s\"", known[i].key);
    is_int(slot_of("a\0b{foo}", 8), 12182, "a key may contain NUL bytes");
    is_int(slot_of("foobar", 3), 12182, "slot_of() reads only the given number of bytes");
    return done_testing();
}
