/* SPDX-License-Identifier: MIT */
/*
 * file: a configuration file in memory, for targets that read one.
 *
 * The target calls these functions by --wrap instead of the kernel's. Paths that end in
 * "rlock.conf" or "rlock/config", and FILE_FIFO_PATH, then name the file in memory.
 */
#ifndef FILE_H
#define FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILE_PATH "/nowhere/rlock.conf"
#define FILE_FIFO_PATH "/dev/fd/7" /* rlock reads from a FIFO only if the path names a descriptor */

/* What the file is, or which system call on it fails. */
enum file_case {
    FILE_PLAIN,     /* a regular file, which only its owner may write */
    FILE_FIFO,      /* a FIFO that was opened for rlock */
    FILE_PATH_FIFO, /* a FIFO that rlock would have to open itself */
    FILE_FOLDER,
    FILE_DEVICE,
    FILE_FOREIGN,  /* another user owns the file */
    FILE_WRITABLE, /* the group may write the file */
    FILE_ABSENT,
    FILE_FORBIDDEN, /* open(2) fails: EACCES */
    FILE_BROKEN,    /* read(2) fails: EIO */
    FILE_GROWING,   /* the file has more bytes than fstat(2) says */
    FILE_SLOW,      /* read(2) returns few bytes at a time, and fails with EINTR and EAGAIN */
    FILE_SIZELESS,  /* fstat(2) says 0 bytes, as for a file of /proc */
    FILE_LARGE,     /* the bytes are repeated, to more than CONFIG_BYTES_MAX in all */
    FILE_CASES
};

/* file_set: make the file have these n bytes, which are borrowed. */
void file_set(enum file_case what, const uint8_t *bytes, size_t n);

#endif
