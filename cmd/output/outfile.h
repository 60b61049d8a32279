/* SPDX-License-Identifier: MIT */
/* outfile: write to descriptors and to files that the user names, without harm to other files. */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The functions below return this value instead of an errno if the path contains a symbolic link of
 * another user in a sticky folder that others may write, such as /tmp.
 */
#define OUTFILE_OTHERS_LINK (-1)

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
 * outfile_offer: write as outfile_write() does, at most PIPE_BUF bytes; but fail with EAGAIN if a
 * pipe, socket or terminal doesn't accept them within `within_ms`.
 */
bool outfile_offer(int fd, const char *bytes, size_t n, int within_ms);

/*
 * outfile_replace: make these bytes the content of the file `path`. What happens to the file:
 *
 *   regular, or absent   replaced by rename(2), with its owner and mode; or created
 *   inherited            appended to, if `path` leads to a file that rlock was started with as a
 *                        descriptor (stderr that was sent to a log, /dev/stdout)
 *   a device, a FIFO     written to
 *   "-"                  stdout is written to
 *
 * Symbolic links are followed, except those of other users in a sticky folder that others may write
 * (/tmp), as with fs.protected_symlinks.
 *
 * Returns  0, an errno, or OUTFILE_OTHERS_LINK.
 * Blocks   for up to 1 s for each PIPE_BUF bytes, if a pipe or terminal accepts none.
 */
int outfile_replace(const char *path, const char *bytes, size_t n);

/*
 * outfile_replace_synced: as outfile_replace(); but the content of a new file is on the disk before
 * the file gets its name, so that a crash of the machine leaves either the old or the new content.
 */
int outfile_replace_synced(const char *path, const char *bytes, size_t n);

/*
 * outfile_append: write to the file `path` as outfile_replace() does, with one difference: a
 * regular file is not replaced, but the bytes are appended to it by one write(2).
 */
int outfile_append(const char *path, const char *bytes, size_t n);

/*
 * outfile_open: open a path for appending, by the rules of outfile_append(). Here "-" is not
 * stdout, but a file with the name "-".
 *
 * Returns  a descriptor with close-on-exec; or -1, and `*failed` is what outfile_replace() returns.
 */
int outfile_open(const char *path, int *failed);

/* outfile_error: returns the text of an error that outfile_replace() returned, for messages. */
const char *outfile_error(int failed);

#endif
