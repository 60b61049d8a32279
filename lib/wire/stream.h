/* SPDX-License-Identifier: MIT */
/* stream: bytes out and in over a connected descriptor, never blocking. */
#ifndef STREAM_H
#define STREAM_H

#include "base/err.h"

struct stream {
    int fd; /* non-blocking, close on exec; -1: none */
};

#define STREAM_EMPTY \
    {                \
        .fd = -1     \
    }

/*
 * stream_write, stream_read: as many bytes as go now; `*done` is out.
 * Return RLOCK_OK, RLOCK_PENDING (nothing goes now) or RLOCK_E_UNREACHABLE.
 */
enum rlock_status stream_write(struct stream *stream, const char *bytes, size_t n, size_t *done,
                               struct rlock_error *err);
enum rlock_status stream_read(struct stream *stream, char *bytes, size_t n, size_t *done,
                              struct rlock_error *err);

/*
 * stream_reset: close so that nothing still under way is delivered: what the
 * kernel holds is dropped instead of being sent again for minutes, when it
 * might be executed long after we gave up.
 */
void stream_reset(struct stream *stream);

#endif
