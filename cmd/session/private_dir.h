/* SPDX-License-Identifier: MIT */
/* private_dir: opens directories that no other user can change. */
#ifndef PRIVATE_DIR_H
#define PRIVATE_DIR_H

#include <rlock.h>
#include <stdbool.h>

/* Words for the messages of failures: "WHAT: PATH: reason; OTHERWISE". */
struct private_dir_words {
    const char *what;      /* what needs the directory: "local" */
    const char *otherwise; /* how the user chooses another directory */
};

/*
 * private_dir_open: open the directory with this absolute path, if it belongs to this user, gives
 * others no rights, and can't be renamed by others.
 *
 *   creates  create the directory if it doesn't exist
 *   words    for messages; borrowed
 *   fd       out, on RLOCK_OK only: the directory, which closes on exec
 *
 * Returns  RLOCK_OK; RLOCK_GONE (it doesn't exist, and `creates` is false); or RLOCK_E_CONFIG
 *          (others may access or rename the directory, or it can't be opened).
 */
enum rlock_status private_dir_open(const char *path, bool creates,
                                   const struct private_dir_words *words, int *fd,
                                   struct rlock_error *err);

/*
 * private_dir_open_home: as private_dir_open(), for ~/.local/state/rlock/NAME in the home that the
 * user database names. RLOCK_PENDING: the user has no home.
 */
enum rlock_status private_dir_open_home(const char *name, bool creates,
                                        const struct private_dir_words *words, int *fd,
                                        struct rlock_error *err);

/* private_dir_path: write the path of an open directory, for messages; "" if it isn't known. */
void private_dir_path(int dir, char *path, size_t room);

#endif
