/* SPDX-License-Identifier: MIT */
/* resolve: a host name to addresses, in a thread that the caller can leave behind. */
#include "wire/resolve.h"

#include "base/err.h"
#include "base/thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#if defined(RLOCK_STATIC) && defined(__GLIBC__)
#include <nss.h>
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Shared by the caller and the thread; whichever of the two lets go last frees it. */
struct lookup {
    atomic_int users;
    int ready[2];            /* a pipe: the thread closes its writing end when it is done */
    atomic_bool is_answered; /* a barrier: what the thread wrote before is seen by the caller */
    char host[256];
    char port[6];
    int failed; /* 0, or getaddrinfo's EAI_ code */
    int sys;    /* errno, where that is EAI_SYSTEM */
    struct addresses found;
};

static void drop_user(struct lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->users, 1) > 1)
        return;
    close(lookup->ready[0]);
    free(lookup);
}

static void keep_address(struct addresses *out, const struct sockaddr *at, socklen_t bytes)
{
    if (out->n == ADDRESSES_MAX || bytes > sizeof out->address[0].storage)
        return;
    memcpy(&out->address[out->n].storage, at, bytes);
    out->address[out->n].bytes = bytes;
    out->n++;
}

/* From `list` on, the first entry that is (or, with false, isn't) of the family; NULL: none. */
static const struct addrinfo *next_of(const struct addrinfo *list, int family, bool is_of)
{
    while (list != NULL && (list->ai_family == family) != is_of)
        list = list->ai_next;
    return list;
}

void resolve_interleave(const struct addrinfo *list, struct addresses *out)
{
    int family = list == NULL ? AF_UNSPEC : list->ai_family;
    const struct addrinfo *one = list;
    const struct addrinfo *other = next_of(list, family, false);

    while (one != NULL || other != NULL) {
        if (one != NULL) {
            keep_address(out, one->ai_addr, one->ai_addrlen);
            one = next_of(one->ai_next, family, true);
        }
        if (other != NULL) {
            keep_address(out, other->ai_addr, other->ai_addrlen);
            other = next_of(other->ai_next, family, false);
        }
    }
}

static void *look_up(void *arg)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct lookup *lookup = arg;
    struct addrinfo *list = NULL;

#if defined(RLOCK_STATIC) && defined(__GLIBC__)
    /* Other sources of names are plug-ins of glibc, which a static program can't load safely. */
    __nss_configure_lookup("hosts", "files dns");
#endif
    lookup->failed = getaddrinfo(lookup->host, lookup->port, &hints, &list);
    lookup->sys = errno;
    resolve_interleave(list, &lookup->found);
    if (list != NULL)
        freeaddrinfo(list);
    atomic_store(&lookup->is_answered, true);
    close(lookup->ready[1]);
    drop_user(lookup);
    return NULL;
}

enum rlock_status resolve_numeric(const char *host, const char *port, struct addresses *out)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    in_port_t number = htons((in_port_t)strtoul(port, NULL, 10));

    out->n = 0;
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        v4.sin_port = number;
        keep_address(out, (const struct sockaddr *)&v4, sizeof v4);
        return RLOCK_OK;
    }
    if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        v6.sin6_port = number;
        keep_address(out, (const struct sockaddr *)&v6, sizeof v6);
        return RLOCK_OK;
    }
    return RLOCK_PENDING;
}

enum rlock_status resolve_start(struct lookup **lookup, const char *host, const char *port,
                                struct rlock_error *err)
{
    struct lookup *l;
    pthread_t thread;
    int failed;

    if (strlen(host) >= sizeof l->host)
        return err_set(err, RLOCK_E_CONFIG, 0, "the host name is too long");
    l = calloc(1, sizeof *l);
    if (l == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    snprintf(l->host, sizeof l->host, "%s", host);
    snprintf(l->port, sizeof l->port, "%s", port);
    atomic_init(&l->users, 2);
    if (pipe2(l->ready, O_CLOEXEC) != 0) {
        free(l);
        return err_set(err, RLOCK_E_SYSTEM, errno, "pipe");
    }
    failed = thread_start(&thread, look_up, l);
    if (failed) {
        close(l->ready[0]);
        close(l->ready[1]);
        free(l);
        return err_set(err, RLOCK_E_SYSTEM, failed, "thread");
    }
    thread_detach(thread);
    *lookup = l;
    return RLOCK_OK;
}

int resolve_fd(const struct lookup *lookup)
{
    return lookup->ready[0];
}

enum rlock_status resolve_finish(struct lookup *lookup, struct addresses *out,
                                 struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    char end;

    if (read(lookup->ready[0], &end, 1) != 0 || !atomic_load(&lookup->is_answered) ||
        lookup->failed == EAI_SYSTEM)
        st = err_set(err, RLOCK_E_UNREACHABLE, lookup->sys, "resolve");
    else if (lookup->failed)
        st = err_set(err, RLOCK_E_UNREACHABLE, 0, "resolve: %s", gai_strerror(lookup->failed));
    else if (lookup->found.n == 0)
        st = err_set(err, RLOCK_E_UNREACHABLE, 0, "resolve: no address");
    else
        *out = lookup->found;
    drop_user(lookup);
    return st;
}

void resolve_abandon(struct lookup *lookup)
{
    if (lookup != NULL)
        drop_user(lookup);
}
