/* SPDX-License-Identifier: MIT */
/* utf8: finds the characters of UTF-8 text, and those that no terminal should get. */
#include "base/utf8.h"

size_t utf8_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t n;
    size_t i;

    if (at[0] < 0x80)
        n = 1;
    else if (at[0] >= 0xc2 && at[0] <= 0xdf)
        n = 2;
    else if (at[0] >= 0xe0 && at[0] <= 0xef)
        n = 3;
    else if (at[0] >= 0xf0 && at[0] <= 0xf4)
        n = 4;
    else
        return 0;
    if (at[0] == 0xe0)
        low = 0xa0; /* a smaller second byte would be an overlong form */
    if (at[0] == 0xf0)
        low = 0x90;
    if (at[0] == 0xed)
        high = 0x9f; /* a greater second byte would be a surrogate */
    if (at[0] == 0xf4)
        high = 0x8f; /* a greater second byte would be above U+10FFFF */
    for (i = 1; i < n; i++) {
        if (at[i] < low || at[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return n;
}

/*
 * Control characters, also U+0080 to U+009F: a terminal reads U+009B as the start of an escape
 * sequence. Format characters (category Cf of Unicode 15.1): invisible, or reverse the direction of
 * text. U+2028 and U+2029: some programs read them as the end of a line.
 */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x600, 0x605},
    {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
    {0x8e2, 0x8e2},     {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},
    {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0001, 0xe007f},
};

bool utf8_is_hidden(uint32_t code)
{
    size_t i;

    for (i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (code >= hidden[i].first && code <= hidden[i].last)
            return true;
    return false;
}

uint32_t utf8_code(const char *text, size_t n)
{
    uint32_t code = n == 1 ? (unsigned char)*text : (unsigned char)*text & (0x7fU >> n);
    size_t i;

    for (i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3fU);
    return code;
}

size_t utf8_shown_bytes(const char *text)
{
    size_t n = utf8_bytes(text);

    return n > 0 && !utf8_is_hidden(utf8_code(text, n)) ? n : 0;
}

size_t utf8_cut_bytes(const char *text, size_t most)
{
    size_t used = 0;
    size_t n;

    while (text[used] != '\0') {
        n = utf8_bytes(text + used);
        n = n > 0 ? n : 1;
        if (used + n > most)
            break;
        used += n;
    }
    return used;
}
