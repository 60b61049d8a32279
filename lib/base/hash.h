/* SPDX-License-Identifier: MIT */
/* hash: makes short names of longer texts by FNV-1a, 64 bits. Source: RFC 9923. */
#ifndef HASH_H
#define HASH_H

#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* hash_add: add the text and its NUL, so that "ab", "c" gets another hash than "a", "bc". */
static inline uint64_t hash_add(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    while (*text++ != '\0');
    return hash;
}

#endif
