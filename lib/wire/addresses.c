/* SPDX-License-Identifier: MIT */
/* addresses: the socket addresses of one server, in the order in which to connect to them. */
#include "wire/addresses.h"

#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static bool is_same(const struct address *one, const struct address *other)
{
    return one->bytes == other->bytes && memcmp(&one->storage, &other->storage, one->bytes) == 0;
}

/* Returns the index of the address; list->n: the list doesn't contain the address. */
static size_t find(const struct addresses *list, const struct address *address)
{
    size_t i;

    for (i = 0; i < list->n && !is_same(&list->address[i], address);)
        i++;
    return i;
}

void addresses_clear(struct addresses *list)
{
    list->n = 0;
}

void addresses_add(struct addresses *list, const struct sockaddr *address, socklen_t bytes)
{
    if (list->n == ADDRESSES_MAX || bytes > sizeof list->address[0].storage)
        return;
    memcpy(&list->address[list->n].storage, address, bytes);
    list->address[list->n].bytes = bytes;
    list->n++;
}

void addresses_add_unix(struct addresses *list, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    addresses_add(list, (const struct sockaddr *)&address, sizeof address);
}

void addresses_append(struct addresses *list, const struct addresses *more, size_t from)
{
    size_t i;

    for (i = from; i < more->n && list->n < ADDRESSES_MAX; i++)
        if (find(list, &more->address[i]) == list->n)
            list->address[list->n++] = more->address[i];
}

void addresses_move(struct addresses *list, const struct address *address, size_t to)
{
    size_t at = find(list, address);
    struct address moved;

    if (at == list->n)
        return;
    for (moved = list->address[at]; at > to; at--)
        list->address[at] = list->address[at - 1];
    for (; at < to; at++)
        list->address[at] = list->address[at + 1];
    list->address[to] = moved;
}
