/* SPDX-License-Identifier: MIT */
/* holds: the files that keep the tokens of a person's holds, one for each key and server. */
#ifndef HOLDS_H
#define HOLDS_H

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a file says of one hold. */
struct hold {
    char token[RLOCK_TOKEN_BYTES + 1]; /* "": there is no file */
    int64_t until_ms;                  /* when the hold is to end, in ms since 1970 */
    bool has_renewer;                  /* a process renews a short lease until `until_ms` */
};

struct holds {
    int dir;                 /* the directory of the files; -1: there is none */
    char *server;            /* heap: the name of the server, or of all servers of a quorum */
    const char *const *keys; /* borrowed */
    size_t n_keys;
    struct hold hold[RLOCK_KEYS_MAX]; /* the hold of each key */
    size_t n;                         /* how many of the keys had a file */
};

/*
 * holds_open: open the directory of the files, and read the file of each key.
 *
 *   holds    out, always; the caller ends it by holds_fini()
 *   server   on the heap, and freed by holds_fini(); NULL: no memory
 *   keys     borrowed
 *   creates  create the directory if it doesn't exist
 *
 * Returns  RLOCK_OK, also if there is no directory or no file; RLOCK_E_MEMORY; or RLOCK_E_CONFIG
 *          (the directory can't be created or is unsafe; or a file can't be read or has no token).
 */
enum rlock_status holds_open(struct holds *holds, char *server, const char *const *keys,
                             size_t n_keys, bool creates, struct rlock_error *err);

/*
 * holds_write: store the same hold for each of the keys, in place of older files. A reader finds an
 * older file or a whole new one. Returns 0, or an errno: some of the new files may be missing.
 */
int holds_write(struct holds *holds, const struct hold *hold);

/* holds_remove: remove the keys' files that have this token. */
void holds_remove(const struct holds *holds, const char *token);

void holds_fini(struct holds *holds);

#endif
