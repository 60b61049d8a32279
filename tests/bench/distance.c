/* distance: a TCP proxy that makes a server on this machine look far away. */
/*
 *     distance PORT SERVER_PORT US
 *
 * distance passes on whatever a client or the server sends US microseconds
 * later. So a round trip takes 2 * US longer, and a few microseconds more, which
 * distance itself needs. All bytes are delayed by the same time, so one queue in
 * the order of their arrival and one timer are enough for all connections.
 * Connecting takes no round trip, as the kernel accepts the connection to PORT
 * at once.
 *
 * tests/tools/cutline.c delays by whole milliseconds only, as it waits by poll.
 */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 16384, EVENTS = 64 };

/* One direction of a connection. */
struct flow {
    int from;
    int to;
    struct flow *back; /* the other direction */
    int has_ended;     /* distance has passed on the end of the stream */
};

struct chunk {
    struct chunk *next;
    struct flow *flow;
    int64_t due_ns;
    size_t length; /* 0: the end of the stream */
    char bytes[];
};

static struct chunk *first;
static struct chunk **last = &first;
static int64_t delay_ns;
static int timer;
static int events;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct sockaddr_in address(const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static void watch(int fd, void *data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};

    if (epoll_ctl(events, EPOLL_CTL_ADD, fd, &event) < 0)
        err(1, "epoll_ctl");
}

/* Makes the timer expire when the first chunk is due. */
static void set_timer(void)
{
    struct itimerspec at = {.it_value.tv_sec = first->due_ns / 1000000000,
                            .it_value.tv_nsec = first->due_ns % 1000000000};

    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Passes a chunk on. The send may block, but not for long: client and server read all bytes. */
static void pass_on(const struct chunk *chunk)
{
    struct flow *flow = chunk->flow;
    size_t sent = 0;

    while (sent < chunk->length) {
        ssize_t n = send(flow->to, chunk->bytes + sent, chunk->length - sent, MSG_NOSIGNAL);

        if (n < 0)
            break; /* the receiver has closed; take() will read the end of its stream, too */
        sent += (size_t)n;
    }
    if (chunk->length > 0)
        return;
    shutdown(flow->to, SHUT_WR);
    flow->has_ended = 1;
    if (flow->back->has_ended) {
        close(flow->from);
        close(flow->to);
        free(flow->back);
        free(flow);
    }
}

static void pass_on_due(void)
{
    while (first != NULL && first->due_ns <= now_ns()) {
        struct chunk *chunk = first;

        first = chunk->next;
        if (first == NULL)
            last = &first;
        pass_on(chunk);
        free(chunk);
    }
    if (first != NULL)
        set_timer();
}

/* Reads what has arrived, and puts it into the queue. */
static void take(struct flow *flow)
{
    struct chunk *chunk = malloc(sizeof *chunk + CHUNK_BYTES);
    ssize_t n;

    if (chunk == NULL)
        err(1, NULL);
    n = recv(flow->from, chunk->bytes, CHUNK_BYTES, 0);
    chunk->next = NULL;
    chunk->flow = flow;
    chunk->due_ns = now_ns() + delay_ns;
    chunk->length = n > 0 ? (size_t)n : 0;
    if (n <= 0)
        epoll_ctl(events, EPOLL_CTL_DEL, flow->from, NULL);
    *last = chunk;
    last = &chunk->next;
    if (first == chunk)
        set_timer();
}

static void connect_pair(int listener, const struct sockaddr_in *server)
{
    struct flow *up = calloc(1, sizeof *up);
    struct flow *down = calloc(1, sizeof *down);
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1;

    if (up == NULL || down == NULL || client < 0 || fd < 0 ||
        connect(fd, (const struct sockaddr *)server, sizeof *server) < 0)
        err(1, "connection");
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    *up = (struct flow){.from = client, .to = fd, .back = down};
    *down = (struct flow){.from = fd, .to = client, .back = up};
    watch(client, up);
    watch(fd, down);
}

int main(int argc, char **argv)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct epoll_event ready[EVENTS];
    struct sockaddr_in own, server;
    int yes = 1;

    if (argc != 4)
        errx(64, "usage: distance PORT SERVER_PORT US");
    own = address(argv[1]);
    server = address(argv[2]);
    delay_ns = atoll(argv[3]) * 1000;
    prctl(PR_SET_TIMERSLACK, 1L);
    events = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (events < 0 || timer < 0 || bind(listener, (struct sockaddr *)&own, sizeof own) < 0 ||
        listen(listener, SOMAXCONN) < 0)
        err(1, "port %s", argv[1]);
    watch(listener, &listener);
    watch(timer, &timer);
    for (;;) {
        int n = epoll_wait(events, ready, EVENTS, -1);

        if (n < 0 && errno != EINTR)
            err(1, "epoll_wait");
        for (int i = 0; i < n; i++) {
            if (ready[i].data.ptr == &listener)
                connect_pair(listener, &server);
            else if (ready[i].data.ptr != &timer)
                take(ready[i].data.ptr);
        }
        pass_on_due();
    }
}
