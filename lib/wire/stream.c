/* SPDX-License-Identifier: MIT */
/* stream: bytes out and in over a connected descriptor, never blocking. */
#include "wire/stream.h"

#include "base/err.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

static bool not_now(int sys)
{
    return sys == EAGAIN || sys == EWOULDBLOCK || sys == EINTR;
}

enum rlock_status stream_write(struct stream *stream, const char *bytes, size_t n, size_t *done,
                               struct rlock_error *err)
{
    ssize_t sent = send(stream->fd, bytes, n, MSG_NOSIGNAL);

    if (sent >= 0) {
        *done = (size_t)sent;
        return RLOCK_OK;
    }
    if (not_now(errno))
        return RLOCK_PENDING;
    return err_set(err, RLOCK_E_UNREACHABLE, errno, "send");
}

enum rlock_status stream_read(struct stream *stream, char *bytes, size_t n, size_t *done,
                              struct rlock_error *err)
{
    ssize_t got = recv(stream->fd, bytes, n, 0);

    if (got > 0) {
        *done = (size_t)got;
        return RLOCK_OK;
    }
    if (got == 0)
        return err_set(err, RLOCK_E_UNREACHABLE, 0, "the server closed the connection");
    if (not_now(errno))
        return RLOCK_PENDING;
    return err_set(err, RLOCK_E_UNREACHABLE, errno, "receive");
}

void stream_reset(struct stream *stream)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    if (stream->fd < 0)
        return;
    setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(stream->fd);
    stream->fd = -1;
}
