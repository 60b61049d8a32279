/* SPDX-License-Identifier: MIT */
/*
 * slot: computes the hash slot of a key, as Redis Cluster does.
 *
 * The slot is the CRC16 (XMODEM) modulo 16384 of the text between the first '{' and the first '}'
 * after it, or of the whole key if there is no such text. Source: Redis Cluster specification, "Key
 * distribution model" and "Hash tags".
 */
#include "server/slot.h"

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

const char *slot_hashed_part(const char *key, size_t *bytes)
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
    const char *part = slot_hashed_part(key, &bytes);

    return crc16(part, bytes) % SLOT_COUNT;
}
