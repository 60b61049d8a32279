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
 * utf8_is_hidden: is the character a control or format character, U+2028 or U+2029? A terminal may
 * act on such a character, and shows nothing for it.
 */
bool utf8_is_hidden(uint32_t code);

/*
 * utf8_shown_bytes: the length in bytes of the character at the start of `text`, if a terminal may
 * show it; 0: invalid UTF-8, or a hidden character, such as a NUL.
 */
size_t utf8_shown_bytes(const char *text);

/* utf8_cut_bytes: the length, at most `most`, to which `text` can be cut between characters. */
size_t utf8_cut_bytes(const char *text, size_t most);

#endif
