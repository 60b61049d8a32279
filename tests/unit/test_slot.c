/* SPDX-License-Identifier: MIT */
/* test_slot: hash slots as a Cluster counts them. */
#include "server/slot.h"
#include "tap.h"

#include <string.h>

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

int main(void)
{
    size_t i;

    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        okf(slot_of(known[i].key, strlen(known[i].key)) == known[i].slot, "slot of \"%s\"",
            known[i].key);
    is_int(slot_of("a\0b{foo}", 8), 12182, "a key is bytes, and not a string");
    is_int(slot_of("foobar", 3), 12182, "no more bytes of it are looked at than were given");
    return done_testing();
}
