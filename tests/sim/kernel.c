/* SPDX-License-Identifier: MIT */
/* kernel: the system calls that the library makes, as the simulated world answers them. */
#include "kernel.h"

#include "net.h"
#include "process.h"
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FIRST_FD 1000 /* smaller ones are real descriptors */
#define FILES_MAX 20000

enum file_kind { FILE_FREE, FILE_SOCKET, FILE_PIPE_READ, FILE_PIPE_WRITE };

/* A pipe; both of its descriptors point to the same struct. */
struct pipe {
    struct buffer bytes;
    struct task *reader; /* the coroutine that polls the pipe; NULL: none */
    int n_ends;
    bool has_writer;
};

struct file {
    enum file_kind kind;
    struct process *process;
    struct link *link; /* FILE_SOCKET; NULL: not connected yet */
    struct pipe *pipe;
};

static struct file file[FILES_MAX];
static int lowest_free;

int __real_clock_gettime(clockid_t clock, struct timespec *at);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __real_close(int fd);
ssize_t __real_read(int fd, void *bytes, size_t n);
ssize_t __real_write(int fd, const void *bytes, size_t n);

/* ---- opening and closing descriptors ---- */

static int open_file(enum file_kind kind)
{
    int i = lowest_free;

    while (i < FILES_MAX && file[i].kind != FILE_FREE)
        i++;
    if (i == FILES_MAX)
        abort();
    lowest_free = i + 1;
    file[i] = (struct file){.kind = kind, .process = task_process(task_current())};
    return FIRST_FD + i;
}

static struct file *file_of(int fd)
{
    return fd >= FIRST_FD && fd < FIRST_FD + FILES_MAX ? &file[fd - FIRST_FD] : NULL;
}

static void close_file(struct file *f)
{
    struct pipe *pipe = f->pipe;

    if (f->link != NULL)
        net_reset_by_client(f->link);
    if (pipe != NULL && f->kind == FILE_PIPE_WRITE) {
        pipe->has_writer = false;
        task_wake(pipe->reader);
    }
    if (pipe != NULL && --pipe->n_ends == 0) {
        buffer_free(&pipe->bytes);
        free(pipe);
    }
    *f = (struct file){.kind = FILE_FREE};
    if (f - file < lowest_free)
        lowest_free = (int)(f - file);
}

void kernel_close_all(struct process *process)
{
    for (int i = 0; i < FILES_MAX; i++)
        if (file[i].kind != FILE_FREE && file[i].process == process)
            close_file(&file[i]);
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (file_of(fd) == NULL)
        return __real_close(fd);
    close_file(file_of(fd));
    return 0;
}

/* ---- replacing clocks and random numbers ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *at);
int __wrap_clock_gettime(clockid_t clock, struct timespec *at)
{
    const struct process *process;
    int64_t us;

    if (task_current() == NULL)
        return __real_clock_gettime(clock, at);
    process_count_call();
    process = task_process(task_current());
    us = clock == CLOCK_REALTIME ? process_wall_us(process) : process_boot_us(process);
    at->tv_sec = us / SECOND;
    at->tv_nsec = us % SECOND * 1000;
    return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags)
{
    unsigned char *at = bytes;

    (void)flags;
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)random_bits();
    return (ssize_t)n;
}

/* ---- replacing poll(2) ---- */

static short ready_events(const struct pollfd *asked)
{
    const struct file *f = file_of(asked->fd);
    short events = 0;

    if (f->kind == FILE_SOCKET && f->link != NULL) {
        bool is_over = f->link->state == LINK_RESET || f->link->state == LINK_REFUSED;

        if (f->link->received.n > 0 || is_over)
            events |= POLLIN;
        if (f->link->state != LINK_CONNECTING)
            events |= POLLOUT;
    } else if (f->kind == FILE_PIPE_READ && (f->pipe->bytes.n > 0 || !f->pipe->has_writer)) {
        events |= f->pipe->bytes.n > 0 ? POLLIN : POLLHUP;
    }
    return events & (asked->events | POLLHUP);
}

static int count_ready(struct pollfd *fds, nfds_t n)
{
    int n_ready = 0;
    nfds_t i;

    for (i = 0; i < n; i++) {
        fds[i].revents = fds[i].fd < 0 ? 0 : ready_events(&fds[i]);
        n_ready += fds[i].revents != 0;
    }
    return n_ready;
}

static void set_waiter(const struct pollfd *fds, nfds_t n, struct task *task)
{
    nfds_t i;

    for (i = 0; i < n; i++) {
        struct file *f = fds[i].fd < 0 ? NULL : file_of(fds[i].fd);

        if (f != NULL && f->link != NULL)
            f->link->waiter = task;
        if (f != NULL && f->kind == FILE_PIPE_READ)
            f->pipe->reader = task;
    }
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    int64_t end_us = timeout_ms < 0 ? ENGINE_NEVER : engine_now() + timeout_ms * MS;
    int n_ready;

    if (task_current() == NULL)
        return __real_poll(fds, n, timeout_ms);
    process_count_call();
    while ((n_ready = count_ready(fds, n)) == 0 && engine_now() < end_us) {
        set_waiter(fds, n, task_current());
        task_wait(end_us);
        set_waiter(fds, n, NULL);
    }
    process_count_call();
    return n_ready;
}

/* ---- replacing calls on sockets ---- */

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
    (void)domain;
    (void)type;
    (void)protocol;
    process_count_call();
    return open_file(FILE_SOCKET);
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t bytes);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
    const struct sockaddr_in *address = (const struct sockaddr_in *)to;

    (void)bytes;
    process_count_call();
    file_of(fd)->link =
        net_connect(task_process(task_current()), server_at(ntohs(address->sin_port)));
    errno = EINPROGRESS;
    return -1;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
    (void)fd;
    (void)level;
    (void)option;
    (void)value;
    (void)bytes;
    return 0;
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *bytes);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *bytes)
{
    enum link_state state = file_of(fd)->link->state;
    int failed = state == LINK_REFUSED ? ECONNREFUSED : state == LINK_RESET ? ECONNRESET : 0;

    (void)level;
    (void)option;
    memcpy(value, &failed, *bytes);
    return 0;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
    struct link *link = file_of(fd)->link;

    (void)flags;
    process_count_call();
    if (link->state == LINK_RESET || link->state == LINK_REFUSED) {
        errno = EPIPE;
        return -1;
    }
    if (n > 1 && net_conditions.is_crowded &&
        random_one_in(64)) /* the send buffer is nearly full */
        n = (size_t)random_range(1, (int64_t)n - 1);
    net_send(link, NET_TO_SERVER, bytes, n, 0);
    return (ssize_t)n;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags)
{
    struct link *link = file_of(fd)->link;

    (void)flags;
    process_count_call();
    if (link->received.n == 0) {
        errno = link->state == LINK_RESET ? ECONNRESET : EAGAIN;
        return -1;
    }
    n = n < link->received.n ? n : link->received.n;
    if (n > 1 && random_one_in(64)) /* only a first packet has come so far */
        n = (size_t)random_range(1, (int64_t)n - 1);
    memcpy(bytes, link->received.at, n);
    buffer_take(&link->received, n);
    return (ssize_t)n;
}

/* ---- replacing calls on pipes ---- */

int __wrap_pipe2(int fd[2], int flags);
int __wrap_pipe2(int fd[2], int flags)
{
    struct pipe *pipe = calloc(1, sizeof *pipe);

    (void)flags;
    if (pipe == NULL)
        abort();
    pipe->n_ends = 2;
    pipe->has_writer = true;
    fd[0] = open_file(FILE_PIPE_READ);
    fd[1] = open_file(FILE_PIPE_WRITE);
    file_of(fd[0])->pipe = file_of(fd[1])->pipe = pipe;
    return 0;
}

ssize_t __wrap_read(int fd, void *bytes, size_t n);
ssize_t __wrap_read(int fd, void *bytes, size_t n)
{
    struct pipe *pipe;

    if (file_of(fd) == NULL)
        return __real_read(fd, bytes, n);
    process_count_call();
    pipe = file_of(fd)->pipe;
    while (pipe->bytes.n == 0 && pipe->has_writer) {
        pipe->reader = task_current();
        task_wait(ENGINE_NEVER);
        pipe->reader = NULL;
    }
    n = n < pipe->bytes.n ? n : pipe->bytes.n;
    if (n > 0) {
        memcpy(bytes, pipe->bytes.at, n);
        buffer_take(&pipe->bytes, n);
    }
    return (ssize_t)n;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    struct pipe *pipe;

    if (file_of(fd) == NULL)
        return __real_write(fd, bytes, n);
    process_count_call();
    pipe = file_of(fd)->pipe;
    buffer_add(&pipe->bytes, bytes, n);
    task_wake(pipe->reader);
    return (ssize_t)n;
}

/* ---- replacing pthreads(7) ---- */

/* A simulated thread; the library's pthread_t is a pointer to it. */
struct thread {
    void *(*body)(void *);
    void *arg;
    struct task *joiner;
    bool has_ended;
};

static void *run_thread(void *arg)
{
    struct thread *thread = arg;

    thread->body(thread->arg);
    thread->has_ended = true;
    task_wake(thread->joiner);
    return NULL;
}

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg)
{
    struct thread *thread = calloc(1, sizeof *thread);

    (void)attr;
    if (thread == NULL)
        abort();
    process_count_call();
    thread->body = body;
    thread->arg = arg;
    *id = (pthread_t)thread;
    task_start(task_process(task_current()), run_thread, thread);
    return 0;
}

int __wrap_pthread_join(pthread_t id, void **result);
int __wrap_pthread_join(pthread_t id, void **result)
{
    struct thread *thread = (struct thread *)id; /* never freed: a world's process ends soon */

    (void)result;
    thread->joiner = task_current();
    while (!thread->has_ended)
        task_wait(ENGINE_NEVER);
    return 0;
}

int __wrap_pthread_detach(pthread_t id);
int __wrap_pthread_detach(pthread_t id)
{
    (void)id;
    return 0;
}

/* ---- looking host names up ---- */

/* Resolves each name to 127.0.0.1, after up to 2 ms or, once in 100 times, up to 3 s. */
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **list)
{
    struct found {
        struct addrinfo info;
        struct sockaddr_in address;
    } *found = calloc(1, sizeof *found);

    (void)host;
    (void)hints;
    if (found == NULL)
        abort();
    task_wait(engine_now() + random_log(100, random_one_in(100) ? 3 * SECOND : 2 * MS));
    process_count_call();
    found->address.sin_family = AF_INET;
    found->address.sin_port = htons((in_port_t)strtoul(port, NULL, 10));
    found->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    found->info.ai_family = AF_INET;
    found->info.ai_addr = (struct sockaddr *)&found->address;
    found->info.ai_addrlen = sizeof found->address;
    *list = &found->info;
    return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list)
{
    free(list);
}
