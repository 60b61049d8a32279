/* SPDX-License-Identifier: MIT */
/* config: read a file of "name = value" lines. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_BYTES_MAX 65536 /* of a file */

/* Called for each line; a complaint in `why` and false end the reading. */
typedef bool config_taker(void *context, char *name, const char *value, char *why, size_t room);

enum config_result { CONFIG_READ, CONFIG_ABSENT, CONFIG_BAD };

/*
 * Only regular files are read, and pipes that we were given as descriptors
 * (/dev/fd/N); other kinds of files are refused at once. A signal whose default
 * action is to end rlock ends it while it reads.
 *
 * config_read: read the file at `path`. Empty lines and lines whose first
 * character is '#' are passed over; blanks around names and values don't
 * count. CONFIG_BAD fills `why` with "PATH:LINE: what is wrong", or "PATH: ..."
 * where it is too large, or others than its owner, who is the user or root, may
 * write it.
 */
enum config_result config_read(const char *path, config_taker *take, void *context, char *why,
                               size_t room);

/* config_names_descriptor: is it a descriptor's path, such as /dev/fd/3? */
bool config_names_descriptor(const char *path);

/*
 * config_first_line: the first line of a file, without its newline, to be given
 * back by config_forget(), which clears it; NULL: `why` says why.
 */
char *config_first_line(const char *path, const char **why);
void config_forget(char *line);

#endif
