/* SPDX-License-Identifier: MIT */
/*
 * slot: the Redis Cluster hash slot of a key, and helper keys that share it.
 *
 * Source: Redis Cluster specification, "Key distribution model" and "Hash
 * tags": CRC16 (XMODEM) modulo 16384, of what stands between the first '{' and
 * the first '}' after it if that is not empty, else of the whole key.
 */
#include "server/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of what has `crc` so far and goes on with these bytes. */
static unsigned crc16(unsigned crc, const char *bytes, size_t n)
{
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

    return crc16(0, part, bytes) % SLOT_COUNT;
}

bool slot_is_helper_name(const char *key)
{
    return strncmp(key, "rlock:", 6) == 0 || strstr(key, ":rlock:") != NULL;
}

/* Tries all numbers of so many digits behind what has `crc` so far, in their order. */
static bool find_digits(unsigned slot, unsigned crc, char *digits, size_t at, size_t n)
{
    if (at == n) {
        digits[n] = '\0';
        return crc % SLOT_COUNT == slot;
    }
    for (digits[at] = at == 0 && n > 1 ? '1' : '0'; digits[at] <= '9'; digits[at]++)
        if (find_digits(slot, crc16(crc, digits + at, 1), digits, at + 1, n))
            return true;
    return false;
}

/* The first number that makes a tag hash to the slot; `crc` is that of what the tag begins with. */
static void number_in_slot(unsigned slot, unsigned crc, char number[12])
{
    size_t n = 1;

    while (!find_digits(slot, crc, number, 0, n))
        n++;
}

/* What stands in front of a key, and what between it and a kind, in the name of a helper key. */
struct frame {
    char before[32];
    char behind[32];
};

/*
 * Five forms of names, so that each helper key has the slot of its key, begins with the key or with
 * '{' and the key wherever that is possible, and is no other key's.
 */
static struct frame frame_of(const char *key)
{
    struct frame frame = {.before = "", .behind = ":rlock:"};
    size_t bytes = strlen(key);
    unsigned slot = slot_of(key, bytes);
    const char *tag = hashed_part(key, &bytes);
    const char *open = strchr(key, '{');
    char number[12];

    if (tag == key + 1 &&
        tag[bytes + 1] == '\0') { /* {job}: else it would share its helper keys with job */
        snprintf(frame.behind, sizeof frame.behind, ":rlock:{}:");
    } else if (tag == key && strchr(key, '}') == NULL) { /* job: it becomes a tag */
        snprintf(frame.before, sizeof frame.before, "{");
        snprintf(frame.behind, sizeof frame.behind, "}:rlock:");
    } else if (tag == key && open == NULL) { /* a}b: a number behind it becomes the tag */
        number_in_slot(slot, 0, number);
        snprintf(frame.behind, sizeof frame.behind, ":rlock:{%s}:", number);
    } else if (tag == key && open[1] == '}') { /* a{}b: nothing behind it can be a tag */
        number_in_slot(slot, 0, number);
        snprintf(frame.before, sizeof frame.before, "rlock:{%s}:", number);
    } else if (tag == key) { /* a}b{c: the tag that it opens is shut behind it */
        number_in_slot(slot, crc16(crc16(0, open + 1, strlen(open + 1)), ":rlock:", 7), number);
        snprintf(frame.behind, sizeof frame.behind, ":rlock:%s}:", number);
    } /* else a{b}c: its tag counts whatever follows */
    return frame;
}

char *slot_helper_key(const char *kind, const char *key)
{
    struct frame frame = frame_of(key);
    size_t size = strlen(frame.before) + strlen(key) + strlen(frame.behind) + strlen(kind) + 1;
    char *name = malloc(size);

    if (name != NULL)
        snprintf(name, size, "%s%s%s%s", frame.before, key, frame.behind, kind);
    return name;
}
