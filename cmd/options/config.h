/* SPDX-License-Identifier: MIT */
/* config: read the configuration file, and other small files such as a password file. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_BYTES_MAX 65536 /* a larger file is refused */

/* Called for each "name = value". False: the line is wrong, `why` says why; reading ends. */
typedef bool config_taker(void *context, char *name, const char *value, char *why, size_t room);

enum config_result { CONFIG_READ, CONFIG_ABSENT, CONFIG_BAD };

/*
 * config_read: read the file at `path`, line by line. Empty lines, lines that begin with '#', and
 * blanks around names and values are ignored. CONFIG_BAD: `why` is "PATH:LINE: reason", or
 * "PATH: reason" if the file can't be read, is too large, belongs to neither the user nor root, or
 * may be written by others than its owner.
 *
 * Only regular files are read, and pipes that rlock was given as a descriptor (/dev/fd/N): to open
 * a FIFO or a device could block for ever. A hung network file system can be interrupted by a
 * signal, as rlock handles no signals yet at that time.
 */
enum config_result config_read(const char *path, config_taker *take, void *context, char *why,
                               size_t room);

/* config_names_descriptor: is the path that of a descriptor of rlock, such as /dev/fd/3? */
bool config_names_descriptor(const char *path);

/*
 * config_first_line: the first line of a file, without its newline. Heap, to be freed by
 * config_forget(), which clears it first, as it may be a password. NULL: `why` is the reason, in
 * memory that stays. The file may belong to anybody. Blocks as config_read() does.
 */
char *config_first_line(const char *path, const char **why);
void config_forget(char *line);

#endif
