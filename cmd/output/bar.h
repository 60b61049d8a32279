/* SPDX-License-Identifier: MIT */
/* bar: how long a holder has waited for a lock and then held it, as a bar of two parts. */
#ifndef BAR_H
#define BAR_H

#include "output/outbuf.h"
#include "output/terminal.h"

#include <stdint.h>

struct bar {
    int64_t waited_ms; /* less than 0: not known; the bar then begins with the hold */
    int64_t held_ms;   /* less than 0: not known; the bar then shows '?' for the hold */
};

/* bar_ms: the whole length of the bar, in ms. A double, so that no sum of two lengths overflows. */
double bar_ms(const struct bar *bar);

/*
 * bar_add: append the bar, and blanks up to `columns` columns. A bar of `most_ms`, the longest one,
 * takes all columns. A hold takes at least one; a wait that is shorter than half a column takes
 * none. The two parts differ in their characters, and also in colour if the terminal has colours.
 */
void bar_add(struct outbuf *out, const struct bar *bar, double most_ms, size_t columns,
             const struct terminal *terminal);

/* bar_heading: the heading of a column of bars, which explains both parts. */
const char *bar_heading(void);

#endif
