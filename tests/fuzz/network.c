/* SPDX-License-Identifier: MIT */
/* network: a network, a clock and a name service in memory, for targets that talk to a server. */
#include "network.h"

#include "fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FIRST_FD 100000 /* smaller ones are real descriptors */
#define FILES_MAX 64
#define LOOKUPS_MAX 16
#define ADDRESSES 3
#define BUFFER_BYTES (256 * 1024)
#define START_MS (INT64_C(1) << 40) /* the time of the clock when an input begins */

enum file_kind { FILE_FREE, FILE_SOCKET, FILE_PIPE_READ, FILE_PIPE_WRITE };

struct file {
    enum file_kind kind;
    size_t connection; /* FILE_SOCKET: its number, from 1; 0: connect(2) was not called */
    enum network_connect connect;
    bool is_ended; /* the target has closed its end; FILE_PIPE_READ: the writing end is closed */
    bool is_reset; /* the target has reset the connection */
    bool is_deaf;  /* send(2) fails */
    size_t room;   /* how many bytes send(2) takes */
    size_t n;      /* bytes that the target has sent, in `bytes` */
    size_t n_read; /* how many of them the library has received */
    int other_end; /* FILE_PIPE_WRITE: the index of the reading end */
};

/* A thread of the library that looks a name up: it runs when the target ends the lookups. */
struct lookup {
    void *(*body)(void *);
    void *arg;
};

static struct file file[FILES_MAX];
static char bytes_of[FILES_MAX][BUFFER_BYTES];
static struct lookup lookup[LOOKUPS_MAX];
static size_t n_lookups;
static size_t n_addresses; /* what getaddrinfo() finds */
static bool is_on;         /* between network_begin() and network_end() */
static int64_t now_ms;
static unsigned char chance; /* the next byte of getrandom(2) */
static size_t n_connections;
static size_t current;
static enum network_connect next_connect;
static network_on_sent *sent;

int __real_clock_gettime(clockid_t clock, struct timespec *at);
int __real_close(int fd);
ssize_t __real_read(int fd, void *bytes, size_t n);
int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);
int __real_pthread_detach(pthread_t id);

/* ---- descriptors ---- */

static int open_file(enum file_kind kind)
{
    int i = 0;

    while (i < FILES_MAX && file[i].kind != FILE_FREE)
        i++;
    if (i == FILES_MAX) {
        errno = EMFILE;
        return -1;
    }
    file[i] = (struct file){.kind = kind, .room = SIZE_MAX};
    return FIRST_FD + i;
}

static struct file *file_of(int fd)
{
    must(fd >= FIRST_FD && fd < FIRST_FD + FILES_MAX && file[fd - FIRST_FD].kind != FILE_FREE);
    return &file[fd - FIRST_FD];
}

static struct file *file_of_connection(size_t connection)
{
    for (size_t i = 0; i < FILES_MAX; i++)
        if (file[i].kind == FILE_SOCKET && file[i].connection == connection && connection > 0)
            return &file[i];
    return NULL;
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
    struct file *closed;

    if (fd < FIRST_FD)
        return __real_close(fd);
    closed = file_of(fd);
    if (closed->kind == FILE_PIPE_WRITE)
        file[closed->other_end].is_ended = true;
    closed->kind = FILE_FREE;
    return 0;
}

static short ready(int fd, short events)
{
    const struct file *f = file_of(fd);

    if (f->kind == FILE_PIPE_READ)
        return f->is_ended ? events & POLLIN : 0;
    if (f->connect == NETWORK_HANGS)
        return 0;
    if (f->connect == NETWORK_FAILS || f->is_reset)
        return events;
    if (f->n > f->n_read || f->is_ended)
        return f->room > 0 ? events : events & POLLIN;
    return f->room > 0 ? events & POLLOUT : 0;
}

/* Never blocks: only the target can make a descriptor ready. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    int n_ready = 0;
    nfds_t i;

    (void)timeout_ms;
    for (i = 0; i < n; i++) {
        fds[i].revents = fds[i].fd < 0 ? 0 : ready(fds[i].fd, fds[i].events);
        n_ready += fds[i].revents != 0;
    }
    return n_ready;
}

int network_poll(struct pollfd *fds, size_t n)
{
    return __wrap_poll(fds, n, 0);
}

/* ---- time and chance ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *at);
int __wrap_clock_gettime(clockid_t clock, struct timespec *at)
{
    if (!is_on || clock != CLOCK_BOOTTIME)
        return __real_clock_gettime(clock, at);
    at->tv_sec = now_ms / 1000;
    at->tv_nsec = (long)(now_ms % 1000 * 1000000);
    return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)(chance += 59);
    return (ssize_t)n;
}

void network_move_clock(int64_t ms)
{
    now_ms += ms;
}

/* ---- connections, the library's end ---- */

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
    (void)domain;
    (void)type;
    (void)protocol;
    return open_file(FILE_SOCKET);
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
    (void)file_of(fd);
    (void)level;
    (void)option;
    (void)value;
    (void)bytes;
    return 0;
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *bytes);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *bytes)
{
    int failed = file_of(fd)->connect == NETWORK_FAILS ? ECONNREFUSED : 0;

    must(level == SOL_SOCKET && option == SO_ERROR && *bytes == sizeof failed);
    memcpy(value, &failed, sizeof failed);
    return 0;
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t bytes);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
    struct file *f = file_of(fd);

    (void)to;
    (void)bytes;
    f->connect = next_connect;
    next_connect = NETWORK_ACCEPTS;
    errno = f->connect == NETWORK_REFUSES ? ECONNREFUSED : EINPROGRESS;
    if (f->connect == NETWORK_ACCEPTS)
        current = f->connection = ++n_connections;
    return -1;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
    struct file *f = file_of(fd);

    (void)flags;
    if (f->is_reset || f->is_deaf || f->room == 0) {
        errno = f->room > 0 || f->is_reset ? EPIPE : EAGAIN;
        return -1;
    }
    n = n < f->room ? n : f->room;
    f->room -= f->room == SIZE_MAX ? 0 : n;
    if (sent != NULL)
        sent(f->connection, bytes, n);
    return (ssize_t)n;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags)
{
    struct file *f = file_of(fd);
    size_t left = f->n - f->n_read;

    (void)flags;
    if (f->is_reset || (left == 0 && !f->is_ended)) {
        errno = f->is_reset ? ECONNRESET : EAGAIN;
        return -1;
    }
    n = n < left ? n : left;
    memcpy(bytes, bytes_of[f - file] + f->n_read, n);
    f->n_read += n;
    return (ssize_t)n;
}

/* ---- connections, the target's end ---- */

void network_begin(network_on_sent *on_sent)
{
    is_on = true;
    now_ms = START_MS;
    chance = 0;
    n_connections = current = 0;
    next_connect = NETWORK_ACCEPTS;
    sent = on_sent;
}

void network_end(void)
{
    network_end_lookups(0);
    for (size_t i = 0; i < FILES_MAX; i++)
        must(file[i].kind == FILE_FREE);
    is_on = false;
}

int network_connected(void)
{
    int fd = open_file(FILE_SOCKET);

    current = file_of(fd)->connection = ++n_connections;
    return fd;
}

void network_set_next_connect(enum network_connect how)
{
    next_connect = how;
}

void network_set_room(size_t n)
{
    struct file *f = file_of_connection(current);

    if (f != NULL)
        f->room = n;
}

void network_break_sending(void)
{
    struct file *f = file_of_connection(current);

    if (f != NULL)
        f->is_deaf = true;
}

/* Chooses the newest of the connections that are older than the current one, if there is any. */
void network_choose_older(void)
{
    size_t older = current;

    while (older > 1 && file_of_connection(older - 1) == NULL)
        older--;
    if (older > 1)
        current = older - 1;
}

void network_send(const void *bytes, size_t n)
{
    struct file *f = file_of_connection(current);

    if (f == NULL || f->is_ended || f->is_reset)
        return;
    if (f->n_read == f->n)
        f->n_read = f->n = 0;
    n = n < BUFFER_BYTES - f->n ? n : BUFFER_BYTES - f->n;
    memcpy(bytes_of[f - file] + f->n, bytes, n);
    f->n += n;
}

void network_close(bool with_reset)
{
    struct file *f = file_of_connection(current);

    if (f == NULL)
        return;
    f->is_ended = true;
    f->is_reset = f->is_reset || with_reset;
}

size_t network_current(void)
{
    return file_of_connection(current) != NULL ? current : 0;
}

/* ---- lookups of names: a pipe and a thread each ---- */

int __wrap_pipe2(int fd[2], int flags);
int __wrap_pipe2(int fd[2], int flags)
{
    (void)flags;
    fd[0] = open_file(FILE_PIPE_READ);
    fd[1] = fd[0] < 0 ? -1 : open_file(FILE_PIPE_WRITE);
    if (fd[1] < 0) {
        if (fd[0] >= 0)
            __wrap_close(fd[0]);
        return -1;
    }
    file_of(fd[1])->other_end = fd[0] - FIRST_FD;
    return 0;
}

ssize_t __wrap_read(int fd, void *bytes, size_t n);
ssize_t __wrap_read(int fd, void *bytes, size_t n)
{
    if (fd < FIRST_FD)
        return __real_read(fd, bytes, n);
    must(file_of(fd)->kind == FILE_PIPE_READ && file_of(fd)->is_ended);
    return 0;
}

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg)
{
    if (!is_on)
        return __real_pthread_create(id, attr, body, arg); /* libFuzzer's own threads */
    if (n_lookups == LOOKUPS_MAX)
        return EAGAIN;
    lookup[n_lookups++] = (struct lookup){.body = body, .arg = arg};
    *id = pthread_self();
    return 0;
}

int __wrap_pthread_detach(pthread_t id);
int __wrap_pthread_detach(pthread_t id)
{
    return is_on ? 0 : __real_pthread_detach(id);
}

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **list)
{
    static struct addrinfo entry[ADDRESSES];
    static struct sockaddr_in v4[ADDRESSES];
    static struct sockaddr_in6 v6[ADDRESSES];

    (void)host;
    (void)port;
    (void)hints;
    for (size_t i = 0; i < n_addresses; i++) {
        bool is_v6 = i % 2 == 1;

        v4[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl((uint32_t)i + 1)};
        v6[i] = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(1)};
        entry[i] = (struct addrinfo){.ai_family = is_v6 ? AF_INET6 : AF_INET,
                                     .ai_addr = is_v6 ? (struct sockaddr *)&v6[i]
                                                      : (struct sockaddr *)&v4[i],
                                     .ai_addrlen = is_v6 ? sizeof v6[i] : sizeof v4[i],
                                     .ai_next = i + 1 < n_addresses ? &entry[i + 1] : NULL};
    }
    *list = n_addresses > 0 ? entry : NULL;
    return n_addresses > 0 ? 0 : EAI_NONAME;
}

void __wrap_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list)
{
    (void)list;
}

void network_end_lookups(size_t n)
{
    n_addresses = n < ADDRESSES ? n : ADDRESSES;
    while (n_lookups > 0) {
        struct lookup ended = lookup[--n_lookups];

        ended.body(ended.arg);
    }
}
