/* SPDX-License-Identifier: MIT */
/* outfile: write to descriptors and to files that the user names, without harm to other files. */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * outfile_write: write all bytes to a descriptor. Neither SIGPIPE (the pipe has no reader) nor
 * SIGXFSZ (the file has reached RLIMIT_FSIZE) ends rlock. Returns false on failure; errno says why:
 * EAGAIN if a pipe, socket or terminal doesn't accept all bytes within `within_ms`; -1: for ever.
 */
bool outfile_write(int fd, const char *bytes, size_t n, int within_ms);

/*
 * outfile_print: write as outfile_write() does, for ever; but if the pipe has no reader, let
 * SIGPIPE end rlock, as it ends other programs in a pipeline.
 */
bool outfile_print(int fd, const char *bytes, size_t n);

/* What outfile_put() does to a regular file. */
enum outfile_how {
    OUTFILE_REPLACES, /* rename(2) replaces the file by one that has its owner and mode */
    /* the same; but a file that can't be replaced is written over, as the directory may not be
     * written, or the file is a mount point. Until the call returns, and if it fails, the file may
     * have old bytes beside new ones */
    OUTFILE_OVERWRITES,
    OUTFILE_APPENDS /* one write(2) appends the bytes */
};

/*
 * outfile_put: write bytes to the file `path`. What happens to the file:
 *
 *   regular, or absent   as `how` says; or created
 *   a device, a FIFO     written to
 *   a symbolic link      nothing: the call fails with ELOOP
 *
 * "-", /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N name a descriptor that rlock was
 * started with, which is written to.
 *
 * Returns  0 or an errno.
 * Blocks   for up to 1 s, if a pipe or terminal accepts no bytes.
 */
int outfile_put(const char *path, enum outfile_how how, const char *bytes, size_t n);

/*
 * outfile_open: open a path for appending, by the rules of outfile_put(). Returns a descriptor with
 * close-on-exec; or -1 with errno.
 */
int outfile_open(const char *path);

/* outfile_error: the text of an errno that a function above returned, for messages. */
const char *outfile_error(int failed);

#endif
