/* SPDX-License-Identifier: MIT */
/*
 * network: a network, a clock and a name service in memory, for targets that talk to a server.
 *
 * The library calls these functions by --wrap instead of the kernel's. A timeout
 * takes no time, as only the target moves the clock. The target is every server at once: the
 * functions below act on the newest connection, until network_choose_older() chooses another.
 */
#ifndef NETWORK_H
#define NETWORK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an attempt to connect goes. */
enum network_connect {
    NETWORK_ACCEPTS, /* the server accepts the connection at once */
    NETWORK_REFUSES, /* connect(2) fails */
    NETWORK_FAILS,   /* connect(2) returns EINPROGRESS, and then the attempt fails */
    NETWORK_HANGS    /* connect(2) returns EINPROGRESS, and the attempt never ends */
};

/* Called after the library has sent bytes; `connection` counts the connections from 1. */
typedef void network_on_sent(size_t connection, const char *bytes, size_t n);

/* network_begin: prepare for an input: forget all that an earlier input has changed. */
void network_begin(network_on_sent *on_sent);

/* network_end: end all lookups, and abort if the library has left a descriptor open. */
void network_end(void);

/* network_connected: return a descriptor that is connected to the target. The caller closes it. */
int network_connected(void);

/* network_poll: how many of the library's descriptors are ready, as poll(2) with no timeout. */
int network_poll(struct pollfd *fds, size_t n);

void network_move_clock(int64_t ms);

/* network_set_next_connect: decide how the next call of connect(2) goes; later calls succeed. */
void network_set_next_connect(enum network_connect how);

/* network_end_lookups: end all pending lookups of names; each finds n addresses, or fails with 0 */
void network_end_lookups(size_t n);

/* network_set_room: let send(2) take n more bytes. SIZE_MAX, as at the start: any number. */
void network_set_room(size_t n);

/* network_break_sending: from now on send(2) fails with EPIPE; recv(2) doesn't fail. */
void network_break_sending(void);

void network_choose_older(void);
void network_send(const void *bytes, size_t n);
void network_close(bool with_reset);

/* network_current: which connection is the current one; 0: there is none. */
size_t network_current(void);

#endif
