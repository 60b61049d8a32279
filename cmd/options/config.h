/* SPDX-License-Identifier: MIT */
/* config: read the configuration file, and other small files such as a password file. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_BYTES_MAX 65536 /* a larger file is refused */

/*
 * config_read() calls this function for each line "name = value"; `line` is the line's number,
 * which starts at 1. If the function returns false, the line is wrong, `why` (of `room` bytes) has
 * the reason, and config_read() stops.
 */
typedef bool config_taker(void *context, int line, char *name, const char *value, char *why,
                          size_t room);

enum config_result { CONFIG_READ, CONFIG_ABSENT, CONFIG_BAD };

/*
 * config_read: read the file at `path`, and pass each name and value to `take`, without the blanks
 * around them. CONFIG_ABSENT: there is no file. CONFIG_BAD: `why` is "PATH:LINE: reason", or "PATH:
 * reason" for a file that can't be read, is larger than CONFIG_BYTES_MAX, may be written by others
 * than the user and root, or is neither regular nor a pipe by /dev/fd/N. Blocks on such a pipe.
 */
enum config_result config_read(const char *path, config_taker *take, void *context, char *why,
                               size_t room);

/* config_names_descriptor: does the path name a descriptor of this process, such as /dev/fd/3? */
bool config_names_descriptor(const char *path);

/*
 * config_is_exposed: true if too many users may read a file with a password. As ssh(1) does for
 * private keys: to a file of the user, neither the group nor others may have any right. A file of
 * another user, such as root, is exposed only if everybody may read it, as its owner may let the
 * group read it for this user's sake.
 */
bool config_is_exposed(const char *path);

/* How long config_first_line() waits for the writer of a pipe, and what ends the wait earlier. */
struct config_wait {
    int64_t ms;  /* RLOCK_NEVER: without limit */
    int stop_fd; /* -1: none */
    /* called when stop_fd is readable, and reads it; false: wait on, for `ms` from now */
    bool (*is_interrupted)(void *context);
    void *context;
};

extern const struct config_wait config_wait_forever; /* no limit, and no stop_fd */

/*
 * config_first_line: read the first line of a file, without its newline, onto the heap. The caller
 * frees the line by secret_free(), as it may be a password. NULL: `*why` is the reason, which the
 * caller doesn't free, or NULL if the wait was interrupted. The file may belong to any user. Blocks
 * until the writer of a pipe has closed the pipe, or as long as `wait` allows.
 */
char *config_first_line(const char *path, const struct config_wait *wait, const char **why);

#endif
