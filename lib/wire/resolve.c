/* SPDX-License-Identifier: MIT */
/* resolve: looks up the addresses of a host name, in a thread that the caller may abandon. */
#include "wire/resolve.h"

#include "base/err.h"
#include "base/thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#if defined(RLOCK_STATIC) && defined(__GLIBC__)
#include <nss.h>
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Shared by the caller and the thread. The last of the two to call drop_user() frees the struct. */
struct lookup {
    atomic_int users; /* how many of caller and thread still use this struct: 2, 1, 0 */
    int ready[2];     /* a pipe, whose writing end the thread closes when the lookup has ended */
    atomic_bool
        is_answered; /* stored last: a caller that loads true sees all that the thread wrote */
    char host[256];
    char port[6];
    int failed; /* 0, or getaddrinfo's EAI_ code */
    int sys;    /* errno of getaddrinfo, if `failed` is EAI_SYSTEM */
    struct addresses found;
};

static void drop_user(struct lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->users, 1) > 1)
        return;
    close(lookup->ready[0]);
    free(lookup);
}

/* Returns the first entry of the list that has this family, or, if `is_other`, another family. */
static const struct addrinfo *find_family(const struct addrinfo *list, int family, bool is_other)
{
    while (list != NULL && (list->ai_family != family) != is_other)
        list = list->ai_next;
    return list;
}

void resolve_interleave(const struct addrinfo *list, struct addresses *out)
{
    int family = list == NULL ? AF_UNSPEC : list->ai_family;
    const struct addrinfo *first = list;
    const struct addrinfo *second = find_family(list, family, true);

    while (first != NULL || second != NULL) {
        if (first != NULL) {
            addresses_add(out, first->ai_addr, first->ai_addrlen);
            first = find_family(first->ai_next, family, false);
        }
        if (second != NULL) {
            addresses_add(out, second->ai_addr, second->ai_addrlen);
            second = find_family(second->ai_next, family, true);
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

    addresses_clear(out);
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        v4.sin_port = number;
        addresses_add(out, (const struct sockaddr *)&v4, sizeof v4);
        return RLOCK_OK;
    }
    if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        v6.sin6_port = number;
        addresses_add(out, (const struct sockaddr *)&v6, sizeof v6);
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
        return err_set(err, RLOCK_E_SYSTEM, errno, "no pipe can be made to look up its address");
    }
    failed = thread_start(&thread, look_up, l);
    if (failed) {
        close(l->ready[0]);
        close(l->ready[1]);
        free(l);
        return err_set(err, RLOCK_E_SYSTEM, failed,
                       "no thread can be started to look up its address");
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
        st = err_set(err, RLOCK_E_UNREACHABLE, lookup->sys, "resolve: the lookup failed");
    else if (lookup->failed)
        st = err_set(err, RLOCK_E_UNREACHABLE, 0, "resolve: %s", gai_strerror(lookup->failed));
    else if (lookup->found.n == 0)
        st = err_set(err, RLOCK_E_UNREACHABLE, 0, "resolve: the name has no address");
    if (st == RLOCK_OK) {
        addresses_clear(out);
        addresses_append(out, &lookup->found, 0);
    }
    drop_user(lookup);
    return st;
}

void resolve_abandon(struct lookup *lookup)
{
    if (lookup != NULL)
        drop_user(lookup);
}
