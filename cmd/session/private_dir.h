/* SPDX-License-Identifier: MIT */
/* private_dir: opens directories that no other user can change. */
#ifndef PRIVATE_DIR_H
#define PRIVATE_DIR_H

#include <rlock.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Words for the messages of failures: "WHAT: PATH: reason; OTHERWISE". */
struct private_dir_words {
    const char *what;      /* what needs the directory: "local" */
    const char *otherwise; /* how the user chooses another directory */
};

/*
 * Each of the first three functions opens a directory of mode 0700 that belongs to this user.
 *
 *   words  for messages; borrowed
 *   fd     out, on RLOCK_OK only: the directory, which closes on exec
 *
 * Returns  RLOCK_OK or RLOCK_E_CONFIG (another user may change the directory, or it can't be
 *          opened).
 *
 * private_dir_open: open the directory `name` in the directory `above`. `path` is for messages.
 * private_dir_open_path: open the directory with this absolute path; if it doesn't exist and
 * `creates`, create it.
 * private_dir_open_state: open ~/.local/state/rlock, in the home of the user database; if it
 * doesn't exist and `creates`, create it. RLOCK_PENDING: the user has no home.
 */
enum rlock_status private_dir_open(int above, const char *name, const char *path,
                                   const struct private_dir_words *words, int *fd,
                                   struct rlock_error *err);
enum rlock_status private_dir_open_path(const char *path, bool creates,
                                        const struct private_dir_words *words, int *fd,
                                        struct rlock_error *err);
enum rlock_status private_dir_open_state(bool creates, const struct private_dir_words *words,
                                         int *fd, struct rlock_error *err);

/* private_dir_is_ours_alone: is it a directory of this user, to which no other user has a right? */
bool private_dir_is_ours_alone(const struct stat *is);

#endif
