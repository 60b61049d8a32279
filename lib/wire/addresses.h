/* SPDX-License-Identifier: MIT */
/* addresses: the socket addresses of one server, in the order in which to connect to them. */
#ifndef ADDRESSES_H
#define ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define ADDRESSES_MAX 8

struct address {
    socklen_t bytes; /* length of `storage`; 0: no address is known */
    struct sockaddr_storage storage;
};

struct addresses {
    size_t n;
    struct address address[ADDRESSES_MAX];
};

/* addresses_clear: remove all addresses. */
void addresses_clear(struct addresses *list);

/* addresses_add: append an address, unless the list has ADDRESSES_MAX. */
void addresses_add(struct addresses *list, const struct sockaddr *address, socklen_t bytes);

/* addresses_add_unix: append the address of a Unix socket, unless the list has ADDRESSES_MAX. */
void addresses_add_unix(struct addresses *list, const char *path);

/*
 * addresses_append: append the addresses of `more`, from index `from` on, that `list` doesn't
 * contain yet, until `list` has ADDRESSES_MAX.
 */
void addresses_append(struct addresses *list, const struct addresses *more, size_t from);

/* addresses_move: move the address, if the list contains it, to index `to`, below list->n. */
void addresses_move(struct addresses *list, const struct address *address, size_t to);

#endif
