/* SPDX-License-Identifier: MIT */
/* terminal: colours, the size of the screen, and questions to the user. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* What kind of terminal standard output is. */
struct terminal {
    bool is_terminal; /* false: the other fields are false or 0, too */
    bool can_draw;    /* the terminal understands escape sequences that move the cursor */
    bool has_colours; /* can_draw, and the user hasn't set NO_COLOR */
    int lines;
    int columns;
};

enum colour { COLOUR_NONE, COLOUR_STRONG, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_RED };

/* terminal_knows_escapes: does the terminal that TERM names understand escape sequences? */
bool terminal_knows_escapes(void);

/* terminal_read_state: fill the struct; to be called again before drawing, as sizes may change. */
void terminal_read_state(struct terminal *terminal);

/* terminal_width: how many columns a row of the terminal `fd` has; 80 if that is unknown. */
size_t terminal_width(int fd);

/* terminal_columns: the width for texts on stdout: the variable COLUMNS, else terminal_width(). */
size_t terminal_columns(void);

/* terminal_colour: the escape sequence that switches to a colour; "": the terminal has none. */
const char *terminal_colour(const struct terminal *terminal, enum colour colour);

/*
 * Escape sequences to draw a screen over the one before: before its first line, cursor home and
 * don't wrap long lines; at the end of each line, erase its rest; after the last, erase the rest of
 * the screen and wrap again. NO_WRAP comes before a line that is drawn where the cursor is.
 */
#define TERMINAL_NO_WRAP "\x1b[?7l"
#define TERMINAL_TOP "\x1b[H" TERMINAL_NO_WRAP
#define TERMINAL_LINE_END "\x1b[K\n"
#define TERMINAL_END "\x1b[J\x1b[?7h"

/* terminal_can_ask: can the user read a question on stderr, and answer on stdin? */
bool terminal_can_ask(void);

/* terminal_ask: ask on stderr. True: the user typed y or yes. Blocks until the user answers. */
bool terminal_ask(const char *question);

#endif
