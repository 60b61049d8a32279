/* SPDX-License-Identifier: MIT */
/* outfile: write to descriptors and to files that the user names, without harm to other files. */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdbool.h>
#include <stddef.h>

/* Beside errno: the path contains a symbolic link of another user, in a folder like /tmp. */
#define OUTFILE_OTHERS_LINK (-1)

/*
 * outfile_write: write all bytes to a descriptor. A closed pipe (SIGPIPE) or a limit of the file
 * size (SIGXFSZ) doesn't end rlock. False: errno says why.
 */
bool outfile_write(int fd, const char *bytes, size_t n);

/* outfile_print: the same, but SIGPIPE ends rlock, as it ends other programs in a pipeline. */
bool outfile_print(int fd, const char *bytes, size_t n);

/*
 * outfile_replace: make these bytes the content of the file `path`.
 *
 *   a regular file, or none   replaced by rename(2), with its owner and mode; or created
 *   a file that is open       appended to: `path` names, by whatever links, a file that rlock was
 *                             started with as a descriptor (stderr to a log, /dev/stdout)
 *   a device, a FIFO          written to
 *   "-"                       stdout
 *
 * Symbolic links are followed, except those of other users in a sticky folder that others may
 * write (/tmp), as with fs.protected_symlinks.
 *
 * Returns  0, an errno, or OUTFILE_OTHERS_LINK.
 * Blocks   for up to 1 s for each PIPE_BUF bytes, if a pipe or terminal takes nothing.
 */
int outfile_replace(const char *path, const char *bytes, size_t n);

/* outfile_append: the same, but a regular file is appended to, with one write(2). */
int outfile_append(const char *path, const char *bytes, size_t n);

/*
 * outfile_open: open such a path for appending; "-" has no meaning here.
 *
 * Returns  a descriptor that closes on exec; or -1, with `*failed` as outfile_replace() returns it.
 */
int outfile_open(const char *path, int *failed);

/* outfile_error: the text for what outfile_replace() returned, for messages. */
const char *outfile_error(int failed);

#endif
