/* SPDX-License-Identifier: MIT */
/*
 * slot: the Redis Cluster hash slot of a key, and helper keys that share it.
 *
 * Source: Redis Cluster specification, "Key distribution model" and "Hash
 * tags": CRC16 (XMODEM) modulo 16384, of what stands between the first '{' and
 * the first '}' after it if that is not empty, else of the whole key.
 */
#include "slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned crc16(const char *bytes, size_t n)
{
    unsigned crc = 0;
    size_t i;
    int bit;

    for (i = 0; i < n; i++) {
        crc ^= (unsigned)(unsigned char)bytes[i] << 8;
        for (bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000) ? (crc << 1) ^ 0x1021 : crc << 1;
    }
    return crc & 0xffff;
}

/* The part of the key that is hashed: its tag, or all of it. */
static const char *hashed_part(const char *key, size_t *bytes)
{
    const char *open = memchr(key, '{', *bytes);
    const char *shut;

    if (open == NULL)
        return key;
    shut = memchr(open, '}', *bytes - (size_t)(open - key));
    if (shut == NULL || shut == open + 1)
        return key;
    *bytes = (size_t)(shut - open) - 1;
    return open + 1;
}

unsigned slot_of(const char *key, size_t bytes)
{
    const char *part = hashed_part(key, &bytes);

    return crc16(part, bytes) % SLOT_COUNT;
}

/* A number that hashes to the slot: for keys that can't stand inside braces. */
static void number_in_slot(unsigned slot, char number[16])
{
    unsigned n = 0;

    do
        snprintf(number, 16, "%u", n++);
    while (slot_of(number, strlen(number)) != slot);
}

char *slot_helper_key(const char *kind, const char *key)
{
    size_t bytes = strlen(key);
    const char *tag = hashed_part(key, &bytes);
    char number[16];
    size_t size;
    char *name;

    if (memchr(tag, '}', bytes) != NULL) {
        number_in_slot(slot_of(key, strlen(key)), number);
        tag = number;
        bytes = strlen(number);
    }
    size = strlen("rlock::{}:") + strlen(kind) + bytes + strlen(key) + 1;
    name = malloc(size);
    if (name != NULL)
        snprintf(name, size, "rlock:%s:{%.*s}:%s", kind, (int)bytes, tag, key);
    return name;
}
