/* SPDX-License-Identifier: MIT */
/* terminal: what the person at it can be shown, and asked. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>

struct terminal {
    bool is_there;    /* it is one */
    bool can_draw;    /* and understands where to write */
    bool has_colours; /* and they are wanted */
    int lines;
    int columns;
};

enum colour { COLOUR_NONE, COLOUR_STRONG, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_RED };

/* terminal_look: at standard output. */
void terminal_look(struct terminal *terminal);

/* terminal_colour: what to write to change it; "" where there are none. */
const char *terminal_colour(const struct terminal *terminal, enum colour colour);

/* What to write to begin at the top, with lines cut at the width; to end each; to end it all. */
#define TERMINAL_TOP "\x1b[H\x1b[?7l"
#define TERMINAL_LINE_END "\x1b[K\n"
#define TERMINAL_END "\x1b[J\x1b[?7h"

/* terminal_can_ask: is there anybody to answer? */
bool terminal_can_ask(void);

/* terminal_ask: a question, to which anything but y or yes means no. */
bool terminal_ask(const char *question);

#endif
