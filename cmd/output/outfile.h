/* SPDX-License-Identifier: MIT */
/* outfile: write to descriptors and to files that the user names, without harm to other files. */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * outfile_write: write all bytes to a descriptor. Neither SIGPIPE (the pipe has no reader) nor
 * SIGXFSZ (the file has reached RLIMIT_FSIZE) ends rlock. Returns false on failure; errno says why.
 */
bool outfile_write(int fd, const char *bytes, size_t n);

/*
 * outfile_print: write as outfile_write() does; but if the pipe has no reader, let SIGPIPE end
 * rlock, as it ends other programs in a pipeline.
 */
bool outfile_print(int fd, const char *bytes, size_t n);

/*
 * outfile_offer: write as outfile_write() does; but fail with EAGAIN if a pipe, socket or terminal
 * doesn't accept all bytes within `within_ms`.
 */
bool outfile_offer(int fd, const char *bytes, size_t n, int within_ms);

/*
 * outfile_replace: make these bytes the content of the file `path`. What happens to the file:
 *
 *   regular, or absent   replaced by rename(2), with its owner and mode; or created
 *   a device, a FIFO     written to
 *   a symbolic link      nothing: the call fails with ELOOP
 *
 * "-", /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N name a descriptor that rlock was
 * started with, which is written to.
 *
 * Returns  0 or an errno.
 * Blocks   for up to 1 s, if a pipe or terminal accepts no bytes.
 */
int outfile_replace(const char *path, const char *bytes, size_t n);

/*
 * outfile_rewrite: as outfile_replace(); but write over a regular file that can't be replaced, for
 * lack of a right or as a mount point. During the call, and after a failure, such a file may have
 * old bytes beside new ones.
 */
int outfile_rewrite(const char *path, const char *bytes, size_t n);

/* outfile_append: as outfile_replace(); but append to a regular file, by one write(2). */
int outfile_append(const char *path, const char *bytes, size_t n);

/*
 * outfile_open: open a path for appending, by the rules of outfile_append(). Returns a descriptor
 * with close-on-exec; or -1 with errno.
 */
int outfile_open(const char *path);

/* outfile_error: the text of an errno that a function above returned, for messages. */
const char *outfile_error(int failed);

#endif
