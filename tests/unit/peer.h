/* SPDX-License-Identifier: MIT */
/*
 * peer: the server's end of a connection, which the test itself plays, step by step.
 *
 * Tests of functions that never block use this file. Functions that block need server.h, which
 * answers from a thread.
 */
#ifndef PEER_H
#define PEER_H

#include "server.h"

#define PATIENCE_MS 5000 /* how long to wait for something that must happen */
#define A_WHILE_MS 30    /* how long to wait for something that must not happen */

static int peer_listener = -1;
static char peer_address[64]; /* the URL of the listener */

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

/* Does the client send these bytes next? */
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
