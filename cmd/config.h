/* SPDX-License-Identifier: MIT */
/* config: read a file of "name = value" lines. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>

/* Called for each line; a complaint in `why` and false end the reading. */
typedef bool config_taker(void *context, char *name, const char *value, char *why, size_t room);

enum config_result { CONFIG_READ, CONFIG_ABSENT, CONFIG_BAD };

/*
 * config_read: read the file at `path`. Empty lines and lines whose first
 * character is '#' are passed over; blanks around names and values don't
 * count. CONFIG_BAD fills `why` with "PATH:LINE: what is wrong".
 */
enum config_result config_read(const char *path, config_taker *take, void *context, char *why,
                               size_t room);

/* config_first_line: the first line of a file, without its newline; heap. NULL: errno says why. */
char *config_first_line(const char *path);

#endif
