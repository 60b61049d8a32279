/* SPDX-License-Identifier: MIT */
/* test_cmd_help: the text of --help for each verb and each width. */
#include "options/help.h"
#include "tap.h"

#include <stdlib.h>

/* Returns the number of lines of the text, and the columns of its longest line. */
static int lines_of(const char *text, size_t *longest)
{
    int n = 0;

    for (*longest = 0; *text != '\0'; n++) {
        size_t bytes = strcspn(text, "\n");

        *longest = bytes > *longest ? bytes : *longest;
        text += bytes + (text[bytes] == '\n');
    }
    return n;
}

__attribute__((noinline)) static char *printed(enum verb verb, size_t columns, bool is_whole)
{
    char *text;
    size_t bytes;
    const struct page page = {open_memstream(&text, &bytes), columns};

    help_print(&page, verb, is_whole);
    fclose(page.out);
    return text;
}

/* On a narrow terminal the text of a row begins in column 6, below the option. */
static void test_narrow(void)
{
    char *text = printed(VERB_RUN, 40, true);
    const char *row = strstr(text, "\n  -k, --key KEY\n");

    ok(row != NULL, "on a narrow terminal the option has a line of its own");
    ok(row != NULL && strspn(row + strlen("\n  -k, --key KEY\n"), " ") == 6);
    free(text);
}

static void test_widths(void)
{
    size_t longest;
    int n_wide = 0;

    for (int verb = 0; verb < VERB_COUNT; verb++)
        for (size_t columns = 60; columns <= 120; columns += 20) {
            char *text = printed((enum verb)verb, columns, true);

            if (lines_of(text, &longest) < 3 || longest > columns)
                n_wide++;
            free(text);
        }
    is_int(n_wide, 0, "no line of --help is longer than the terminal is wide");
}

TESTS(test_narrow, test_widths)
