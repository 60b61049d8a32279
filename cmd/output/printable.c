/* SPDX-License-Identifier: MIT */
/* printable: text of other programs as the user's terminal can show it, cut to columns. */
#include "output/printable.h"

#include "base/err.h"
#include "base/utf8.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#define DOTS "..."
#define KEY_BYTES 1024 /* a longer key is cut */

/* ---- which characters the user's locale can show ---- */

static bool is_utf8_locale;

/*
 * Reads the encoding from the end of the locale's name ("de_DE.UTF-8"). This function doesn't call
 * setlocale(3), which reads the locale's files at each start, and fails if the locale isn't
 * installed. In containers LANG often names such a locale, although the terminal shows UTF-8.
 */
void printable_read_locale(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"}; /* in this order */
    const char *name = NULL;
    size_t i;

    for (i = 0; i < 3 && (name == NULL || *name == '\0'); i++)
        name = getenv(variables[i]);
    name = name == NULL ? NULL : strchr(name, '.');
    is_utf8_locale =
        name != NULL && (strncasecmp(name, ".utf-8", 6) == 0 || strncasecmp(name, ".utf8", 5) == 0);
}

bool printable_is_utf8(void)
{
    return is_utf8_locale;
}

/* How many bytes the first character has, if it may be written as it is; else 0. */
static size_t plain_bytes(const char *text)
{
    size_t n = utf8_shown_bytes(text);

    return n == 1 || is_utf8_locale ? n : 0;
}

void printable_text(char *out, size_t room, const char *text)
{
    size_t used = 0;
    size_t n;

    while (*text != '\0' && used + 8 < room) {
        n = plain_bytes(text);
        if (n > 0)
            memcpy(out + used, text, n);
        else
            snprintf(out + used, room - used, "\\x%02x", (unsigned char)*text);
        used += n > 0 ? n : 4;
        text += n > 0 ? n : 1;
    }
    snprintf(out + used, room - used, "%s", *text == '\0' ? "" : DOTS);
}

void printable_key(char *out, size_t room, const char *key)
{
    char text[KEY_BYTES];

    err_escape(text, sizeof text, key);
    printable_text(out, room, text);
}

/* ---- counting the columns that a text takes ---- */

/*
 * Returns a locale in which wcwidth(3) knows the widths of characters; NULL: this machine has none.
 * The program's own locale stays "C", because lib/ compares words of the protocol with functions
 * that depend on the locale.
 */
static locale_t width_locale(void)
{
    static locale_t found;

    if (found == NULL)
        found = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
    if (found == NULL)
        found = newlocale(LC_CTYPE_MASK, "", NULL);
    return found;
}

/* Returns the columns that a character of n bytes takes: 1 if the C library doesn't know it. */
static size_t width_of(const char *text, size_t n)
{
    locale_t before;
    int width = 1;

    if (n > 1 && width_locale() != NULL) {
        before = uselocale(width_locale());
        width = wcwidth((wchar_t)utf8_code(text, n));
        uselocale(before);
    }
    return width < 0 ? 1 : (size_t)width;
}

/* Returns how many bytes from the start of `text` fit into `columns`; they take `*taken`. */
static size_t bytes_within(const char *text, size_t columns, size_t *taken)
{
    size_t used = 0;

    *taken = 0;
    while (text[used] != '\0') {
        size_t n = utf8_bytes(text + used);
        size_t width;

        n = n > 0 ? n : 1;
        width = width_of(text + used, n);
        if (*taken + width > columns)
            break;
        *taken += width;
        used += n;
    }
    return used;
}

size_t printable_columns(const char *text)
{
    size_t taken;

    bytes_within(text, SIZE_MAX, &taken);
    return taken;
}

void printable_fit(char *text, size_t columns)
{
    size_t dots = columns > strlen(DOTS) ? strlen(DOTS) : 0;
    size_t taken;
    size_t n = bytes_within(text, columns, &taken);

    if (text[n] == '\0')
        return;
    n = bytes_within(text, columns - dots, &taken);
    snprintf(text + n, strlen(text + n) + 1, "%.*s", (int)dots, DOTS);
}
