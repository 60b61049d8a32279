/* SPDX-License-Identifier: MIT */
/* test_cmd_bar: a wait and a hold are drawn as a bar that is as long as they were. */
#include "output/bar.h"
#include "output/printable.h"
#include "tap.h"

#include <stdlib.h>

#define HOUR INT64_C(3600000)

static const struct {
    int64_t waited_ms, held_ms;
    double most_ms;
    size_t columns;
    const char *wanted;
    const char *name;
} bars[] = {
    {3000, 7000, 10000, 10, "...#######", "the longest bar takes all columns"},
    {3000, 2000, 10000, 10, "...##     ", "blanks follow a shorter bar"},
    {0, 10000, 10000, 4, "####", "who has not waited has only a hold"},
    {1, 24 * HOUR, 24 * HOUR + 1, 8, "########", "a wait of less than half a column isn't drawn"},
    {0, 0, 10000, 4, "#   ", "a hold of no time has one column"},
    {0, 0, 0, 4, "#   ", "a hold of no time has one column, also if no hold is longer"},
    {10000, 1, 10001, 4, "...#", "a hold behind a long wait has the last column"},
    {5000, -1, 10000, 4, "..? ", "a hold of unknown length is a question mark"},
    {10000, -1, 10000, 4, "...?", "a question mark behind a long wait has the last column"},
    {-1, 5000, 10000, 4, "##  ", "a wait of unknown length isn't drawn"},
    {-1, -1, 0, 4, "?   ", "nothing is known"},
    {INT64_MAX, INT64_MAX, 2.0 * (double)INT64_MAX, 4, "..##", "no length overflows"},
    {3000, 7000, 10000, 1, "#", "one column has the hold"},
    {3000, 7000, 10000, 0, "", "no column has nothing"},
};

static void is_bar(size_t i, const struct terminal *terminal, const char *wanted, const char *name)
{
    const struct bar bar = {.waited_ms = bars[i].waited_ms, .held_ms = bars[i].held_ms};
    struct outbuf out = {.text = NULL};

    bar_add(&out, &bar, bars[i].most_ms, bars[i].columns, terminal);
    is_str(outbuf_text(&out), wanted, name);
    outbuf_fini(&out);
}

static void test_lengths(void)
{
    const struct terminal plain = {.is_terminal = true};

    for (size_t i = 0; i < sizeof bars / sizeof *bars; i++)
        is_bar(i, &plain, bars[i].wanted, bars[i].name);
    ok(bar_ms(&(struct bar){.waited_ms = -1, .held_ms = 5}) == 5, "what isn't known has no length");
}

static void test_looks(void)
{
    const struct terminal plain = {.is_terminal = true};
    const struct terminal coloured = {.is_terminal = true, .has_colours = true};

    is_bar(1, &coloured, "\x1b[33m...\x1b[32m##\x1b[0m     ", "the parts have colours");
    is_str(bar_heading(), ".WAIT #HOLD", "the heading explains both parts");
    setenv("LC_ALL", "C.UTF-8", 1);
    printable_read_locale();
    is_bar(1, &plain, "░░░██     ", "with UTF-8 the parts are blocks");
    is_str(bar_heading(), "░WAIT █HOLD", "the heading has blocks, too");
}

TESTS(test_lengths, test_looks)
