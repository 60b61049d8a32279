/* SPDX-License-Identifier: MIT */
/* bar: how long a holder has waited for a lock and then held it, as a bar of two parts. */
#include "output/bar.h"

#include "output/printable.h"

static double known(int64_t ms)
{
    return ms > 0 ? (double)ms : 0;
}

double bar_ms(const struct bar *bar)
{
    return known(bar->waited_ms) + known(bar->held_ms);
}

/* How many of `columns` a length of `ms` takes, rounded, if `most_ms` takes all. */
static size_t part(double ms, double most_ms, size_t columns)
{
    return most_ms > 0 ? (size_t)(ms / most_ms * (double)columns + 0.5) : 0;
}

static void repeat(struct outbuf *out, const char *character, size_t n)
{
    while (n-- > 0)
        outbuf_add(out, "%s", character);
}

void bar_add(struct outbuf *out, const struct bar *bar, double most_ms, size_t columns,
             const struct terminal *terminal)
{
    size_t granted = part(known(bar->waited_ms), most_ms, columns);
    size_t ended = part(bar_ms(bar), most_ms, columns);
    const char *hold = printable_is_utf8() ? "█" : "#";

    if (columns == 0)
        return;
    if (granted == columns)
        granted--;
    if (ended <= granted)
        ended = granted + 1;
    outbuf_add(out, "%s", terminal_colour(terminal, COLOUR_YELLOW));
    repeat(out, printable_is_utf8() ? "░" : ".", granted);
    outbuf_add(out, "%s", terminal_colour(terminal, COLOUR_GREEN));
    repeat(out, bar->held_ms < 0 ? "?" : hold, ended - granted);
    outbuf_add(out, "%s%*s", terminal_colour(terminal, COLOUR_NONE), (int)(columns - ended), "");
}

const char *bar_heading(void)
{
    return printable_is_utf8() ? "░WAIT █HOLD" : ".WAIT #HOLD";
}
