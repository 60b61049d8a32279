/* SPDX-License-Identifier: MIT */
/* terminal: colours, the size of the screen, and questions to the user. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>

/* What standard output is. */
struct terminal {
    bool is_terminal; /* it is one; if not, all that follows is false and 0 */
    bool can_draw;    /* it understands escape sequences that move the cursor */
    bool has_colours; /* the same, and the user doesn't refuse colours (NO_COLOR) */
    int lines;
    int columns;
};

enum colour { COLOUR_NONE, COLOUR_STRONG, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_RED };

/* terminal_read_state: fill it; to be called again where the window may have changed its size. */
void terminal_read_state(struct terminal *terminal);

/* terminal_colour: the escape sequence that switches to a colour; "" without colours. */
const char *terminal_colour(const struct terminal *terminal, enum colour colour);

/*
 * Escape sequences to draw a screen over the last one: before the first line (cursor home, don't
 * wrap long lines), at the end of each (erase its rest), after the last (erase the rest, wrap).
 */
#define TERMINAL_TOP "\x1b[H\x1b[?7l"
#define TERMINAL_LINE_END "\x1b[K\n"
#define TERMINAL_END "\x1b[J\x1b[?7h"

/* terminal_can_ask: are stdin and stderr a terminal, so that somebody can answer? */
bool terminal_can_ask(void);

/* terminal_ask: ask a question on stderr. True: the user typed y or yes. Blocks until a newline. */
bool terminal_ask(const char *question);

#endif
