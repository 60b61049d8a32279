/* SPDX-License-Identifier: MIT */
/* outfile: write bytes to descriptors and files, and harm no file that is somebody else's. */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdbool.h>
#include <stddef.h>

/* No errno: the path leads by a symbolic link that another user has put in its way. */
#define OUTFILE_OTHERS_LINK (-1)

/*
 * outfile_write: all bytes to a descriptor, where neither a reader that is gone (SIGPIPE) nor a
 * limit of the file's size (SIGXFSZ) ends us. False: errno says why.
 */
bool outfile_write(int fd, const char *bytes, size_t n);

/* outfile_print: the same, but a reader that is gone ends us as it would end any program. */
bool outfile_print(int fd, const char *bytes, size_t n);

/*
 * outfile_replace: make these bytes all that is in the file `path`, which is replaced in one
 * step, keeps its mode and is created if need be. "-" is stdout. What rlock was started with
 * as an open descriptor, by whichever path, is appended to; a device or a FIFO is written to.
 * Symbolic links are followed, but not those of other users in a sticky folder that they may
 * write. Blocks for a second at most where nobody reads.
 *
 * Returns  0, an errno, or OUTFILE_OTHERS_LINK.
 */
int outfile_replace(const char *path, const char *bytes, size_t n);

/* outfile_append: the same, but a file is appended to by one write(2) for all bytes. */
int outfile_append(const char *path, const char *bytes, size_t n);

/*
 * outfile_open: the same path, open for appending, as a descriptor that closes on exec. It is
 * not for "-".
 *
 * Returns  the descriptor; else -1, with `*failed` as outfile_replace() returns it.
 */
int outfile_open(const char *path, int *failed);

/* outfile_error: what outfile_replace() returned, in words. */
const char *outfile_error(int failed);

#endif
