/* SPDX-License-Identifier: MIT */
/* test_cmd_printable: texts are shown by the user's locale, and cut to columns of a terminal. */
#include "files.h"
#include "output/printable.h"
#include "tap.h"

#define UMLAUT "\xc3\xb6"            /* one column */
#define CJK "\xe6\x97\xa5"           /* two columns */
#define ACCENT "\xcc\x81"            /* no column: it is drawn over the character before it */
#define LOCK_SIGN "\xf0\x9f\x94\x92" /* two columns */
#define BIDI_OVERRIDE "\xe2\x80\xae" /* reverses the direction of the text behind it */

static const struct {
    const char *lc_all, *lc_ctype, *lang;
    bool is_utf8;
} locales[] = {
    {NULL, NULL, NULL, false},
    {NULL, NULL, "C.UTF-8", true},
    {NULL, NULL, "de_DE.utf8", true},
    {NULL, NULL, "de_DE.utf8@euro", true},
    {NULL, NULL, "de_DE", false},
    {NULL, NULL, "de_DE.ISO-8859-1", false},
    {NULL, "C", "C.UTF-8", false},
    {"", "", "C.UTF-8", true},
    {"POSIX", "C.UTF-8", "C.UTF-8", false},
    {"en_US.UTF-8", "C", "C", true},
};

static void test_locales(void)
{
    char out[100];

    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        set_variable("LC_ALL", locales[i].lc_all);
        set_variable("LC_CTYPE", locales[i].lc_ctype);
        set_variable("LANG", locales[i].lang);
        printable_read_locale();
        printable_text(out, sizeof out, "a" UMLAUT "\\x1b");
        is_str(out, locales[i].is_utf8 ? "a" UMLAUT "\\x1b" : "a\\xc3\\xb6\\x1b");
    }
}

static void test_hostile(void)
{
    char out[100];

    setenv("LC_ALL", "C.UTF-8", 1);
    printable_read_locale();
    printable_text(out, sizeof out, "a\x1b[2J" BIDI_OVERRIDE "\xff");
    is_str(out, "a\\x1b[2J\\xe2\\x80\\xae\\xff", "controls, overrides and other bytes are escaped");
    printable_key(out, sizeof out, "\\x1b" CJK);
    is_str(out, "\\x5cx1b" CJK, "in a key a backslash is escaped, too");
    printable_text(out, 12, CJK CJK CJK CJK);
    is_str(out, CJK CJK "...", "a text that is too long for its room isn't cut within a character");
}

static const struct {
    const char *text;
    size_t columns;
} widths[] = {
    {"", 0}, {"abc", 3}, {UMLAUT "x", 2}, {CJK "x", 3}, {"e" ACCENT "x", 2}, {LOCK_SIGN, 2},
};

static const struct {
    const char *text;
    size_t columns;
    const char *wanted;
} fits[] = {
    {"job:nightly", 11, "job:nightly"},
    {"job:nightly", 10, "job:nig..."},
    {"job:nightly", 4, "j..."},
    {"job:nightly", 3, "job"},
    {"job:nightly", 0, ""},
    {CJK CJK CJK, 6, CJK CJK CJK},
    {CJK CJK CJK, 5, CJK "..."},
    {CJK CJK CJK CJK, 6, CJK "..."}, /* a second CJK would end in column 7 */
    {"e" ACCENT "e" ACCENT "abc", 4, "e" ACCENT "..."},
    {"e" ACCENT "e" ACCENT, 2, "e" ACCENT "e" ACCENT},
};

static void test_columns(void)
{
    char text[100];

    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        is_int((long long)printable_columns(widths[i].text), (long long)widths[i].columns);
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        snprintf(text, sizeof text, "%s", fits[i].text);
        printable_fit(text, fits[i].columns);
        is_str(text, fits[i].wanted, "printable_fit() cuts the text to the columns");
    }
}

TESTS(test_locales, test_hostile, test_columns)
