/* SPDX-License-Identifier: MIT */
/* test_utf8: which bytes are valid characters, and which are not. */
#include "base/utf8.h"
#include "tap.h"

/* Texts, and the length in bytes and code point of their first character; 0: not valid UTF-8. */
static const struct {
    const char *text;
    size_t n;
    uint32_t code;
} characters[] = {
    {"", 1, 0},
    {"a", 1, 'a'},
    {"\x1b[2J", 1, 0x1b},
    {"\xc3\xa9", 2, 0xe9},
    {"\xe2\x82\xac", 3, 0x20ac},
    {"\xf0\x9f\x94\x92", 4, 0x1f512},
    {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
    {"\xe2\x82", 0, 0},         /* cut off */
    {"\xe2\x82x", 0, 0},        /* another character instead of the last byte */
    {"\x80", 0, 0},             /* the second byte of a character */
    {"\xc0\xaf", 0, 0},         /* '/' in two bytes (overlong) */
    {"\xe0\x80\xaf", 0, 0},     /* '/' in three bytes (overlong) */
    {"\xf0\x80\x80\xaf", 0, 0}, /* '/' in four bytes (overlong) */
    {"\xed\xa0\x80", 0, 0},     /* a surrogate */
    {"\xf4\x90\x80\x80", 0, 0}, /* above U+10FFFF */
    {"\xff", 0, 0},
};

int main(void)
{
    for (size_t i = 0; i < sizeof characters / sizeof characters[0]; i++) {
        size_t n = utf8_bytes(characters[i].text);

        is_int((long long)n, (long long)characters[i].n);
        if (n > 0)
            is_int(utf8_code(characters[i].text, n), characters[i].code);
    }
    is_int((long long)utf8_shown_bytes("\xe2\x82\xac"), 3, "a sign may be shown");
    is_int((long long)utf8_shown_bytes("\xe2\x80\xae"), 0, "a direction override may not be shown");
    is_int((long long)utf8_shown_bytes("\xff"), 0, "an invalid byte may not be shown");
    is_int((long long)utf8_shown_bytes(""), 0, "the end of the text may not be shown");
    is_int((long long)utf8_cut_bytes("a\xe2\x82\xac", 3), 1);
    is_int((long long)utf8_cut_bytes("a\xe2\x82\xac", 9), 4);
    is_int((long long)utf8_cut_bytes("a\xff\xff", 2), 2);
    return done_testing();
}
