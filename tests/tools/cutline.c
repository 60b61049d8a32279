/* SPDX-License-Identifier: MIT */
/*
 * cutline: a TCP proxy that delays, drops or cuts what a client and a server send, on command.
 *
 * usage: cutline [-t SECONDS] UPSTREAM_PORT
 *
 * cutline listens on two free ports of 127.0.0.1, and prints `READY PORT CONTROL`. cutline passes
 * each connection to PORT on to UPSTREAM_PORT. A connection to CONTROL sends a command, one line,
 * and receives `OK` when cutline has carried out the command, or `BAD`:
 *
 *   delay MS               pass on the bytes that are read from now on MS later
 *   trickle MS             pass on one byte each MS; 0: at full speed
 *   drop up|down on|off    discard all bytes that go to the server (up) or to the client (down),
 *                          and don't pass on the end of the stream, as if the cable were cut
 *   cut-after-request N    pass on the N-th request from now, wait for its reply, discard the
 *                          reply, and reset the connection: the client doesn't learn that the
 *                          server has carried out the request
 *   lose N                 discard the next N requests, and all that the same connections send
 *                          behind them, as if packets were lost that nobody sends again
 *   half-close             end the stream to each client, but go on reading from the client
 *   reset                  reset all connections, to the clients and to the server
 *   refuse on|off          refuse new connections
 *
 * A request is all that a client sends between two replies. When a client resets its connection,
 * the bytes that it sent before still arrive at the server, as they may in a real network.
 *
 * cutline ends by SIGALRM after SECONDS (120).
 */
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS_MAX = 500, QUEUED_MAX = 1 << 20, CHUNK_BYTES = 16384, LIMIT_SECONDS = 120 };

enum direction { UP, DOWN }; /* to the server, to the client */

enum kind { BYTES, END, GONE }; /* END: the source ended its stream; GONE: the source reset it */

struct chunk {
    struct chunk *next;
    enum kind kind;
    int64_t due_ms;
    size_t length;
    size_t sent;
    char bytes[];
};

struct flow {
    int from;
    int to;
    struct chunk *first;
    struct chunk **last;
    size_t queued;
    int64_t not_before_ms; /* with trickle: when the next byte may be sent */
    bool is_read_out;      /* the source has ended its stream */
    bool is_closed;        /* the stream to the destination has ended */
};

struct pair {
    struct pair *next;
    struct flow flow[2];
    bool has_asked;    /* the client has sent bytes since the server's last reply */
    bool is_to_be_cut; /* reset the connection at the server's next reply */
    bool is_lost;      /* discard what the client sends */
    bool is_over;      /* close the connections, and free the pair */
};

static struct {
    int listener; /* -1: new connections are refused */
    int control;
    uint16_t port;
    uint16_t upstream;
    int64_t delay_ms;
    int64_t trickle_ms;
    bool is_dropping[2];
    int64_t cut_in; /* cut the connection after this many requests more; 0: cut none */
    int64_t n_lost; /* discard so many requests more */
    struct pair *pairs;
    size_t n_pairs;
} line;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- opening sockets ---- */

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

/* Listens on *port. If *port is 0, the kernel chooses a free port, and *port becomes its number. */
static int listen_on(uint16_t *port)
{
    struct sockaddr_in at = loopback(*port);
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
        bind(fd, (struct sockaddr *)&at, length) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &length) < 0)
        err(2, "listen");
    *port = ntohs(at.sin_port);
    return fd;
}

/* Makes close(fd) send a TCP reset. */
static void set_reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/* ---- one direction of a connection ---- */

static void flow_start(struct flow *f, int from, int to)
{
    *f = (struct flow){.from = from, .to = to};
    f->last = &f->first;
    setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

static void flow_append(struct flow *f, enum kind kind, const char *bytes, size_t length)
{
    struct chunk *c = malloc(sizeof *c + length);

    if (c == NULL)
        err(2, "malloc");
    *c = (struct chunk){.kind = kind, .due_ms = now_ms() + line.delay_ms, .length = length};
    memcpy(c->bytes, bytes, length);
    *f->last = c;
    f->last = &c->next;
    f->queued += length;
}

static void flow_drop_first(struct flow *f)
{
    struct chunk *c = f->first;

    f->first = c->next;
    if (f->first == NULL)
        f->last = &f->first;
    f->queued -= c->length;
    free(c);
}

static bool flow_is_reading(const struct flow *f)
{
    return !f->is_read_out && f->queued < QUEUED_MAX;
}

/* Returns when to send the first chunk, or with trickle its next byte; -1: there is no chunk. */
static int64_t flow_due_ms(const struct flow *f)
{
    if (f->first == NULL)
        return -1;
    return f->first->due_ms > f->not_before_ms ? f->first->due_ms : f->not_before_ms;
}

static bool flow_is_due(const struct flow *f)
{
    return f->first != NULL && flow_due_ms(f) <= now_ms();
}

/* ---- one client and its connection to the server ---- */

static void pair_accept(void)
{
    struct sockaddr_in at = loopback(line.upstream);
    int client = accept4(line.listener, NULL, NULL, SOCK_CLOEXEC);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pair *p;

    if (client < 0 || server < 0)
        err(2, "accept");
    if (connect(server, (struct sockaddr *)&at, sizeof at) < 0) {
        set_reset(client);
        close(client);
        close(server);
        return;
    }
    p = calloc(1, sizeof *p);
    if (p == NULL)
        err(2, "calloc");
    flow_start(&p->flow[UP], client, server);
    flow_start(&p->flow[DOWN], server, client);
    p->next = line.pairs;
    line.pairs = p;
    line.n_pairs++;
}

/* Closes a pair: in an orderly way if both streams have ended, else with a TCP reset. */
static void pair_free(struct pair *p)
{
    bool is_orderly = p->flow[UP].is_closed && p->flow[DOWN].is_closed;

    for (int d = UP; d <= DOWN; d++) {
        while (p->flow[d].first != NULL)
            flow_drop_first(&p->flow[d]);
        if (!is_orderly)
            set_reset(p->flow[d].from);
        close(p->flow[d].from);
    }
    free(p);
    line.n_pairs--;
}

static void pairs_sweep(void)
{
    struct pair **at = &line.pairs;
    struct pair *p;

    while ((p = *at) != NULL) {
        if (p->is_over || (p->flow[UP].is_closed && p->flow[DOWN].is_closed)) {
            *at = p->next;
            pair_free(p);
        } else {
            at = &p->next;
        }
    }
}

static void pair_note_request(struct pair *p)
{
    if (p->has_asked)
        return;
    p->has_asked = true;
    if (line.cut_in > 0 && --line.cut_in == 0)
        p->is_to_be_cut = true;
    if (line.n_lost > 0) {
        line.n_lost--;
        p->is_lost = true;
    }
}

static void pair_note_answer(struct pair *p)
{
    p->has_asked = false;
    if (p->is_to_be_cut)
        p->is_over = true;
}

static void pair_read(struct pair *p, enum direction d)
{
    struct flow *f = &p->flow[d];
    char bytes[CHUNK_BYTES];
    ssize_t n = recv(f->from, bytes, sizeof bytes, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0 && d == UP)
        pair_note_request(p);
    if (n > 0 && d == DOWN)
        pair_note_answer(p);
    if (n <= 0)
        f->is_read_out = true;
    if (!line.is_dropping[d] && !f->is_closed && !(p->is_lost && d == UP && n > 0))
        flow_append(f, n > 0 ? BYTES : n == 0 ? END : GONE, bytes, n > 0 ? (size_t)n : 0);
}

static void pair_write(struct pair *p, enum direction d)
{
    struct flow *f = &p->flow[d];
    struct chunk *c = f->first;
    size_t length = line.trickle_ms > 0 ? 1 : c->length - c->sent;
    ssize_t n = 0;

    if (c->kind == BYTES && !f->is_closed) {
        n = send(f->to, c->bytes + c->sent, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return;
        f->is_closed = n < 0; /* the destination has closed; the other direction may go on */
        f->not_before_ms = now_ms() + line.trickle_ms;
        c->sent += n < 0 ? 0 : (size_t)n;
        if (n > 0 && c->sent < c->length)
            return;
    }
    if (c->kind == END) {
        shutdown(f->to, SHUT_WR);
        f->is_closed = true;
    }
    if (c->kind == GONE)
        p->is_over = true;
    flow_drop_first(f);
}

/* ---- carrying out commands of the test ---- */

static bool command_number(const char *text, int64_t *to)
{
    char *end;

    *to = strtoll(text, &end, 10);
    return end != text && *end == '\0' && *to >= 0;
}

static bool command_switch(const char *text, bool *to)
{
    *to = strcmp(text, "on") == 0;
    return *to || strcmp(text, "off") == 0;
}

static bool command_refuse(const char *text)
{
    bool is_on;

    if (!command_switch(text, &is_on))
        return false;
    if (is_on && line.listener >= 0) {
        close(line.listener);
        line.listener = -1;
    }
    if (!is_on && line.listener < 0)
        line.listener = listen_on(&line.port);
    return true;
}

static void command_half_close(void)
{
    for (struct pair *p = line.pairs; p != NULL; p = p->next) {
        shutdown(p->flow[DOWN].to, SHUT_WR);
        p->flow[DOWN].is_closed = true;
    }
}

static void command_reset(void)
{
    for (struct pair *p = line.pairs; p != NULL; p = p->next)
        p->is_over = true;
}

static bool carry_out(const char *name, const char *first, const char *second)
{
    if (strcmp(name, "delay") == 0)
        return command_number(first, &line.delay_ms);
    if (strcmp(name, "trickle") == 0)
        return command_number(first, &line.trickle_ms);
    if (strcmp(name, "cut-after-request") == 0)
        return command_number(first, &line.cut_in);
    if (strcmp(name, "lose") == 0)
        return command_number(first, &line.n_lost);
    if (strcmp(name, "drop") == 0 && strcmp(first, "up") == 0)
        return command_switch(second, &line.is_dropping[UP]);
    if (strcmp(name, "drop") == 0 && strcmp(first, "down") == 0)
        return command_switch(second, &line.is_dropping[DOWN]);
    if (strcmp(name, "refuse") == 0)
        return command_refuse(first);
    if (strcmp(name, "half-close") == 0)
        command_half_close();
    else if (strcmp(name, "reset") == 0)
        command_reset();
    else
        return false;
    return true;
}

/* Carries out one command. The read may block: the test sends the whole line at once. */
static void serve_control(void)
{
    int fd = accept4(line.control, NULL, NULL, SOCK_CLOEXEC);
    char text[100] = "";
    char word[3][32] = {"", "", ""};
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    bool is_done;

    text[n > 0 ? n : 0] = '\0';
    sscanf(text, "%31s %31s %31s", word[0], word[1], word[2]);
    is_done = carry_out(word[0], word[1], word[2]);
    pairs_sweep(); /* closes the connections that the command cut, before OK is sent */
    dprintf(fd, is_done ? "OK\n" : "BAD\n");
    close(fd);
}

/* ---- the loop over all connections ---- */

static void look_sooner(int *timeout_ms, const struct flow *f)
{
    int64_t left = flow_due_ms(f) - now_ms();

    if (f->first != NULL && left > 0 && (*timeout_ms < 0 || left < *timeout_ms))
        *timeout_ms = (int)left;
}

/*
 * Returns what to poll the socket in->from for. If there is nothing to wait for, fd is -1, so that
 * poll(2) ignores the socket: otherwise poll(2) would return at once whenever the peer has gone.
 */
static struct pollfd wish(const struct flow *in, const struct flow *out)
{
    short events = (short)((flow_is_reading(in) ? POLLIN : 0) | (flow_is_due(out) ? POLLOUT : 0));

    return (struct pollfd){.fd = events != 0 ? in->from : -1, .events = events};
}

static void serve(struct pair *p, enum direction in, enum direction out,
                  const struct pollfd *polled)
{
    bool has_failed = (polled->revents & (POLLHUP | POLLERR)) != 0;

    if ((polled->events & POLLIN) && ((polled->revents & POLLIN) || has_failed))
        pair_read(p, in);
    if ((polled->events & POLLOUT) && ((polled->revents & POLLOUT) || has_failed))
        pair_write(p, out);
}

static void loop_once(void)
{
    static struct pollfd polled[2 + 2 * PAIRS_MAX];
    struct pollfd *at = polled;
    int timeout_ms = -1;

    *at++ = (struct pollfd){.fd = line.control, .events = POLLIN};
    *at++ = (struct pollfd){.fd = line.n_pairs < PAIRS_MAX ? line.listener : -1, .events = POLLIN};
    for (struct pair *p = line.pairs; p != NULL; p = p->next) {
        *at++ = wish(&p->flow[UP], &p->flow[DOWN]);
        *at++ = wish(&p->flow[DOWN], &p->flow[UP]);
        look_sooner(&timeout_ms, &p->flow[UP]);
        look_sooner(&timeout_ms, &p->flow[DOWN]);
    }
    if (poll(polled, (nfds_t)(at - polled), timeout_ms) < 0)
        err(2, "poll");
    at = polled + 2;
    for (struct pair *p = line.pairs; p != NULL; p = p->next) {
        serve(p, UP, DOWN, at++);
        serve(p, DOWN, UP, at++);
    }
    pairs_sweep();
    if (polled[0].revents != 0)
        serve_control();
    if (polled[1].revents != 0 && line.listener >= 0)
        pair_accept();
}

int main(int argc, char **argv)
{
    uint16_t control_port = 0;
    unsigned seconds = LIMIT_SECONDS;
    int option;

    while ((option = getopt(argc, argv, "t:")) != -1) {
        if (option != 't')
            break;
        seconds = (unsigned)strtoul(optarg, NULL, 10);
    }
    if (option != -1 || optind + 1 != argc)
        errx(2, "usage: cutline [-t SECONDS] UPSTREAM_PORT");
    alarm(seconds);
    line.upstream = (uint16_t)strtoul(argv[optind], NULL, 10);
    line.listener = listen_on(&line.port);
    line.control = listen_on(&control_port);
    printf("READY %d %d\n", line.port, control_port);
    fflush(stdout);
    for (;;)
        loop_once();
}
