/* SPDX-License-Identifier: MIT */
/* sha1: the name by which EVALSHA calls a script. Source: RFC 3174, method 1. */
#include "sha1.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static void add_block(uint32_t hash[5], const unsigned char block[64])
{
    uint32_t w[80];
    uint32_t v[5];
    unsigned i;

    for (i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    memcpy(v, hash, sizeof v);
    for (i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((v[1] & v[2]) | (~v[1] & v[3])) + UINT32_C(0x5a827999)
                     : i < 40 ? (v[1] ^ v[2] ^ v[3]) + UINT32_C(0x6ed9eba1)
                     : i < 60
                         ? ((v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])) + UINT32_C(0x8f1bbcdc)
                         : (v[1] ^ v[2] ^ v[3]) + UINT32_C(0xca62c1d6);
        uint32_t next = rotate(v[0], 5) + f + v[4] + w[i];

        v[4] = v[3];
        v[3] = v[2];
        v[2] = rotate(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (i = 0; i < 5; i++)
        hash[i] += v[i];
}

void sha1_hex(struct text text, char hex[SHA1_HEX])
{
    uint32_t hash[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    unsigned char last[128] = {0};
    size_t n_last = text.n % 64 < 56 ? 64 : 128;
    size_t i;

    for (i = 0; i + 64 <= text.n; i += 64)
        add_block(hash, (const unsigned char *)text.at + i);
    memcpy(last, text.at + i, text.n - i);
    last[text.n - i] = 0x80;
    for (i = 0; i < 8; i++)
        last[n_last - 1 - i] = (unsigned char)((uint64_t)text.n * 8 >> (8 * i));
    for (i = 0; i < n_last; i += 64)
        add_block(hash, last + i);
    for (i = 0; i < 5; i++)
        sprintf(hex + 8 * i, "%08x", hash[i]);
}
