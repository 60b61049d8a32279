/* SPDX-License-Identifier: MIT */
/*
 * peer: the other end of a connection, played by the test itself, step by step.
 *
 * For what never blocks; where the library waits by itself, server.h answers from a thread.
 */
#ifndef PEER_H
#define PEER_H

#include "server.h"

#define PATIENCE_MS 5000 /* for what must happen */
#define A_WHILE_MS 30    /* for what must not */

static int peer_listener = -1;
static char peer_address[64]; /* as a URL */

static inline bool peer_open(void)
{
    peer_listener = server_listen(peer_address);
    return peer_listener >= 0;
}

static inline void peer_close(void)
{
    close(peer_listener);
}

static inline int peer_accept(void)
{
    struct pollfd look = {.fd = peer_listener, .events = POLLIN};

    return poll(&look, 1, PATIENCE_MS) == 1 ? accept(peer_listener, NULL, NULL) : -1;
}

static inline void peer_say(int fd, const char *text)
{
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Do these bytes come next? */
static inline bool peer_hears(int fd, const char *text)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};
    char byte;

    for (; *text != '\0'; text++)
        if (poll(&look, 1, PATIENCE_MS) != 1 || read(fd, &byte, 1) != 1 || byte != *text)
            return false;
    return true;
}

static inline bool peer_hears_nothing(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};

    return poll(&look, 1, A_WHILE_MS) == 0;
}

static inline bool peer_hears_the_end(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};
    char byte;

    return poll(&look, 1, PATIENCE_MS) == 1 && read(fd, &byte, 1) <= 0;
}

#endif
