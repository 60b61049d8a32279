/* SPDX-License-Identifier: MIT */
/* utf8: finds the characters of UTF-8 text, and those that no terminal should get. */
#ifndef UTF8_H
#define UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * utf8_bytes: the length in bytes of the UTF-8 character (RFC 3629) at the start of `text`; 0: the
 * bytes there are not valid UTF-8. A NUL is a character of one byte.
 */
size_t utf8_bytes(const char *text);

/* utf8_code: the code point of a valid character of n bytes. */
uint32_t utf8_code(const char *text, size_t n);

/*
 * utf8_is_hidden: is the code point a control or format character? A terminal acts on some of
 * these, and shows none of them.
 */
bool utf8_is_hidden(uint32_t code);

/*
 * utf8_shown_bytes: the length of the character at the start of `text` if a terminal may get it;
 * 0: its bytes are invalid, or it is hidden, as a NUL is.
 */
size_t utf8_shown_bytes(const char *text);

/*
 * utf8_cut_bytes: the length to which a caller can cut `text`, at most `most` bytes, without
 * splitting a character.
 */
size_t utf8_cut_bytes(const char *text, size_t most);

#endif
