/* SPDX-License-Identifier: MIT */
/*
 * printable: text of other programs as the user's terminal can show it, cut to columns.
 *
 * Texts in rlock are UTF-8 without control characters: err_escape() makes them from any bytes.
 * printable_text() is called last, when a text is written for people: it leaves UTF-8 as it is if
 * the user's locale has this encoding, and else escapes all bytes that aren't ASCII.
 */
#ifndef PRINTABLE_H
#define PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * printable_read_locale: find in LC_ALL, LC_CTYPE and LANG whether the user's locale has the
 * encoding UTF-8. Until the program has called this function, printable_text() writes ASCII only.
 */
void printable_read_locale(void);

/* printable_is_utf8: does the user's locale use UTF-8, so that the terminal can show "█"? */
bool printable_is_utf8(void);

/*
 * printable_text: copy a text, which may have \xNN from err_escape(). If `out` (of `room` bytes) is
 * too small, the copy ends in "...".
 */
void printable_text(char *out, size_t room, const char *text);

/* printable_key: escape the bytes of a key by err_escape(), then copy them by printable_text(). */
void printable_key(char *out, size_t room, const char *key);

/* printable_columns: how many columns of a terminal a text takes. An accent takes 0, a 中 2. */
size_t printable_columns(const char *text);

/* printable_fit: cut the text, in place, to `columns`. A cut text ends in "..." if columns > 3. */
void printable_fit(char *text, size_t columns);

#endif
