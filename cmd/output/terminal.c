/* SPDX-License-Identifier: MIT */
/* terminal: colours, the size of the screen, and questions to the user. */
#include "output/terminal.h"

#include "options/units.h"
#include "output/printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define COLUMNS_MAX 10000

bool terminal_knows_escapes(void)
{
    const char *kind = getenv("TERM");

    return kind != NULL && *kind != '\0' && strcmp(kind, "dumb") != 0;
}

void terminal_read_state(struct terminal *terminal)
{
    const char *refused = getenv("NO_COLOR");
    struct winsize size = {.ws_row = 0};

    *terminal = (struct terminal){.is_terminal = isatty(STDOUT_FILENO) != 0};
    if (!terminal->is_terminal)
        return;
    terminal->can_draw = terminal_knows_escapes();
    terminal->has_colours = terminal->can_draw && (refused == NULL || *refused == '\0');
    terminal->columns = (int)terminal_width(STDOUT_FILENO);
    terminal->lines =
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

size_t terminal_width(int fd)
{
    struct winsize size;

    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

size_t terminal_columns(void)
{
    const char *wanted = getenv("COLUMNS");
    int64_t columns = 0;

    if (wanted != NULL && units_number(wanted, COLUMNS_MAX, &columns) && columns > 0)
        return (size_t)columns;
    return terminal_width(STDOUT_FILENO);
}

const char *terminal_colour(const struct terminal *terminal, enum colour colour)
{
    static const char *const codes[] = {
        [COLOUR_NONE] = "\x1b[0m",    [COLOUR_STRONG] = "\x1b[1m", [COLOUR_GREEN] = "\x1b[32m",
        [COLOUR_YELLOW] = "\x1b[33m", [COLOUR_RED] = "\x1b[31m",
    };

    return terminal->has_colours ? codes[colour] : "";
}

bool terminal_can_ask(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool terminal_ask(const char *question)
{
    char shown[2048];
    char answer[64];
    size_t used = 0;
    char c;

    tcflush(STDIN_FILENO, TCIFLUSH); /* drop what the user typed before the question appeared */
    printable_text(shown, sizeof shown, question);
    fprintf(stderr, "%s [y/N] ", shown);
    while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
        if (used + 1 < sizeof answer)
            answer[used++] = c;
    answer[used] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}
