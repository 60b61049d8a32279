/* SPDX-License-Identifier: MIT */
/*
 * server: a server inside a test program, in a thread of its own, that sends given replies.
 *
 *     struct server server = {.answers = {[ASKED_ACQUIRE] = GRANTED, ...}};
 *     server_start(&server);         ... server.url ...
 *     server_stop(&server);          after the client has closed its connections
 *
 * The server enters each request in `log`, with the time at which it had read all of the request.
 * The server doesn't change an entry after it has increased `n_log`. It sends the answer AFTER(400,
 * ...) 400 ms after it has read the request, so a test can tell a time before the request from a
 * time after the reply.
 */
#ifndef SERVER_H
#define SERVER_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <rlock.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kinds of requests that the server tells apart. */
enum asked_for {
    ASKED_ACQUIRE,
    ASKED_CONFIRM,
    ASKED_RENEW,
    ASKED_RELEASE,
    ASKED_UNDO,
    ASKED_LEAVE,
    ASKED_WAKE,
    ASKED_OTHER
};

#define ASKED_KINDS (ASKED_OTHER + 1)
#define SERVER_LOG 1024
#define SERVER_WORDS 40
#define SERVERS_MAX 3

/* A list of answers ends in NULL. The server repeats the last one for all later requests. */
#define ANSWERS(...) ((const char *const[]){__VA_ARGS__, NULL})
/* In a row of a table: what each of several servers does. */
#define EACH(...)   \
    {               \
        __VA_ARGS__ \
    }
#define SILENT "silent" /* sends no answer */
#define CLOSE "close"   /* sends no answer, and closes the connection */
/* The server sends ANSWER after MS milliseconds. */
#define AFTER(MS, ANSWER) LATER DIGITS(MS) "\n" ANSWER
#define LATER "after "
#define DIGITS(NUMBER) #NUMBER

/* Replies of the scripts; lib/lua/reply_codes.tsv says what their first number means. */
#define GRANT "*3\r\n:1\r\n:1700000000000\r\n$16\r\n1700000000000000\r\n"
#define RENEWED "*2\r\n:1\r\n:1700000000000\r\n"
#define RESTORED "*2\r\n:2\r\n:1700000000000\r\n"
#define GONE "*2\r\n:-1\r\n:1700000000000\r\n"
#define FREED "*2\r\n:-5\r\n:1700000000000\r\n" /* to a renewal: released by the token */
#define LATE "*2\r\n:-2\r\n:1700000000000\r\n"
#define HELD_BY_FOREIGN ":0\r\n:1700000000000\r\n:60000\r\n$7\r\nforeign\r\n"
/* HELD is the reply to a client that waits, BUSY to a client that does not. */
#define HELD "*8\r\n" HELD_BY_FOREIGN ":50\r\n$16\r\n1700000000000000\r\n:2\r\n:1\r\n"
#define BUSY "*8\r\n" HELD_BY_FOREIGN ":2500\r\n$1\r\n0\r\n:0\r\n:1\r\n"
#define LOST_TO "*4\r\n" HELD_BY_FOREIGN /* to a renewal: another owner has the lock */
/* HELD and a done mark, with a value of N bytes; HOLDER is the value of an rlock on web1. */
#define DONE_BY(N, VALUE) "*4\r\n:3\r\n:1700000000000\r\n:60000\r\n$" N "\r\n" VALUE "\r\n"
#define HELD_BY(N, VALUE)                                                    \
    "*8\r\n:0\r\n:1700000000000\r\n:60000\r\n$" N "\r\n" VALUE "\r\n:50\r\n" \
    "$16\r\n1700000000000000\r\n:2\r\n:1\r\n"
#define HOLDER "0123456789abcdef0123456789abcdef v1 try=1 ttl=60000 host=web1 pid=7"
#define OF_SEVERAL "members=1234abcd"
#define SUPERSEDED "*3\r\n:-3\r\n:1700000000000\r\n$0\r\n\r\n"
#define WOKEN "*2\r\n$1\r\nw\r\n$1\r\n1\r\n"
#define NOT_WOKEN "*-1\r\n" /* the reply to a BLPOP whose timeout is over */
#define LOADING "-LOADING Redis is loading the dataset in memory\r\n"
#define NO_CLUSTER "-ERR This instance has cluster support disabled\r\n"
#define HELLO "*2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
#define RELEASED ":1\r\n"
#define NOT_OURS ":0\r\n"

struct server {
    const char *const *answers[ASKED_KINDS]; /* NULL: the server closes the connection */
    const char *nodes; /* the reply to CLUSTER NODES; NULL: the error of a server without Cluster */
    const char *slots; /* the reply to CLUSTER SLOTS; NULL: the same error */
    const char *hello; /* the reply to HELLO; NULL: HELLO */
    const char *info;  /* the reply to INFO; NULL: a reply with an uptime of 1,000,000 s */
    char url[64];
    int listener;
    pthread_t thread;
    struct {
        enum asked_for what;
        int64_t at_ms;   /* when the server had read the whole request, on rlock_clock_ms() */
        char first[80];  /* the token; BLPOP: the key; release, undo: how the value begins */
        char second[24]; /* the word of the request after `first` */
        char text[700];  /* the beginning of all its words, with a blank after each */
    } log[SERVER_LOG];
    atomic_int n_log;
    atomic_int n_connections; /* connections that the server has accepted */
    atomic_int n_nodes;       /* requests CLUSTER NODES that the server has read */
};

/* Listens on a free port of 127.0.0.1, and writes its URL. Returns the socket; -1: an error. */
static inline int server_listen(char url[64])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) != 0 || listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        return -1;
    snprintf(url, 64, "redis://127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

/*
 * Reads a line such as "*3" or "$5", and returns the number. -1: the client closed the connection.
 */
static inline int server_number(FILE *from, char mark)
{
    char line[32];

    return fgets(line, sizeof line, from) == NULL || line[0] != mark ? -1 : atoi(line + 1);
}

/*
 * Reads a request. Returns the number of its words, which the caller frees; -1: the client closed
 * the connection.
 */
static inline int server_read(FILE *from, char *word[SERVER_WORDS])
{
    int n = server_number(from, '*');
    int i;

    for (i = 0; i < n && i < SERVER_WORDS; i++) {
        int bytes = server_number(from, '$');

        word[i] = bytes < 0 ? NULL : calloc(1, (size_t)bytes + 2);
        if (word[i] == NULL || fread(word[i], 1, (size_t)bytes + 2, from) != (size_t)bytes + 2) {
            free(word[i]);
            while (i > 0)
                free(word[--i]);
            return -1;
        }
        word[i][bytes] = '\0';
    }
    return i == n ? n : -1;
}

/*
 * Returns the kind of a request. The arguments of an owner's script about one lock begin at word
 * 11. The first argument of an acquire is the start of the lock's value, with the TTL; that of a
 * confirm is a token; those of undo, leave and release begin with a token and a blank. An undo and
 * a leave have no fence (word 12), and a leave has the token of a waiter (word 14).
 */
static inline enum asked_for server_kind(char *const word[SERVER_WORDS], int n)
{
    size_t bytes = n > 12 && strcmp(word[2], "8") == 0 ? strlen(word[11]) : 0;

    if (bytes > 32 && strstr(word[11], " ttl=") != NULL)
        return ASKED_ACQUIRE;
    if (bytes == 32)
        return ASKED_CONFIRM;
    if (bytes > 32 && word[12][0] != '\0')
        return ASKED_RELEASE;
    if (bytes > 32 && n <= 15)
        return n == 15 && word[14][0] != '\0' ? ASKED_LEAVE : ASKED_UNDO;
    if (bytes > 0 && n == 18)
        return ASKED_RENEW;
    return n == 3 && strcmp(word[0], "BLPOP") == 0 ? ASKED_WAKE : ASKED_OTHER;
}

/* Enters a request in the log. Returns the answer; next[] counts the answers given to each kind. */
static inline const char *server_answer(struct server *server, char *const word[SERVER_WORDS],
                                        int n, size_t next[ASKED_KINDS])
{
    enum asked_for what = server_kind(word, n);
    const char *const *answers = server->answers[what];
    int first = what == ASKED_WAKE ? 1 : what == ASKED_RENEW ? 15 : 11;
    int at = atomic_load(&server->n_log);
    size_t used;
    int i;

    if (at < SERVER_LOG) {
        server->log[at].text[0] = '\0';
        for (i = 0;
             i < n && (used = strlen(server->log[at].text)) + 1 < sizeof server->log[at].text; i++)
            snprintf(server->log[at].text + used, sizeof server->log[at].text - used, "%s ",
                     word[i]);
        server->log[at].what = what;
        server->log[at].at_ms = rlock_clock_ms();
        snprintf(server->log[at].first, sizeof server->log[at].first, "%s",
                 n > first ? word[first] : "");
        snprintf(server->log[at].second, sizeof server->log[at].second, "%s",
                 n > first + 1 ? word[first + 1] : "");
        if (what == ASKED_ACQUIRE) /* the argument is "TOKEN v1 try=ATTEMPT ttl=..." */
            sscanf(word[first], "%32s v1 try=%20s", server->log[at].first, server->log[at].second);
        atomic_store(&server->n_log, at + 1);
    }
    if (answers == NULL)
        return CLOSE;
    if (answers[next[what] + 1] != NULL)
        return answers[next[what]++];
    return answers[next[what]];
}

/* Returns the reply to INFO. Each server has its own address, and so its own run ID. */
static inline const char *server_info(const struct server *server, char info[128])
{
    char text[80];

    snprintf(text, sizeof text, "run_id:%s\r\nuptime_in_seconds:1000000\r\n", server->url + 8);
    snprintf(info, 128, "$%zu\r\n%s\r\n", strlen(text), text);
    return server->info != NULL ? server->info : info;
}

/* Returns the reply to CLUSTER with this word. */
static inline const char *server_cluster(struct server *server, const char *word)
{
    const char *answer = strcmp(word, "NODES") == 0   ? server->nodes
                         : strcmp(word, "SLOTS") == 0 ? server->slots
                                                      : NULL;

    if (strcmp(word, "NODES") == 0)
        atomic_fetch_add(&server->n_nodes, 1);
    return answer != NULL ? answer : NO_CLUSTER;
}

/* Waits if the answer is an AFTER(). Returns what the server has to send then. */
static inline const char *server_due(const char *answer)
{
    if (strncmp(answer, LATER, strlen(LATER)) != 0)
        return answer;
    poll(NULL, 0, atoi(answer + strlen(LATER)));
    return strchr(answer, '\n') + 1;
}

static inline void server_serve(struct server *server, int fd, size_t next[ASKED_KINDS])
{
    FILE *from = fdopen(fd, "r");
    char *word[SERVER_WORDS];
    const char *answer = "";
    char info[128];
    int block_ms;
    int n;

    while (from != NULL && strcmp(answer, CLOSE) != 0 && (n = server_read(from, word)) > 0) {
        if (strcmp(word[0], "CLIENT") == 0) /* CLIENT, CLUSTER, HELLO and INFO are not logged */
            answer = "+OK\r\n";
        else if (strcmp(word[0], "CLUSTER") == 0)
            answer = server_cluster(server, n == 2 ? word[1] : "");
        else if (strcmp(word[0], "HELLO") == 0)
            answer = server->hello != NULL ? server->hello : HELLO;
        else if (strcmp(word[0], "INFO") == 0 && n == 2)
            answer = server_info(server, info);
        else
            answer = server_answer(server, word, n, next);
        block_ms = strcmp(answer, NOT_WOKEN) == 0 ? (int)(strtod(word[n - 1], NULL) * 1000) : 0;
        while (n > 0)
            free(word[--n]);
        answer = server_due(answer);
        poll(NULL, 0, block_ms);
        if (strcmp(answer, CLOSE) != 0 && strcmp(answer, SILENT) != 0)
            (void)!send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    }
    if (from != NULL)
        fclose(from);
}

static inline void *server_body(void *arg)
{
    struct server *server = arg;
    size_t next[ASKED_KINDS] = {0};
    int fd;

    while ((fd = accept(server->listener, NULL, NULL)) >= 0) {
        /* otherwise the second of two short answers waits until the first is confirmed: 40 ms */
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        atomic_fetch_add(&server->n_connections, 1);
        server_serve(server, fd, next);
    }
    return NULL;
}

static inline bool server_start(struct server *server)
{
    server->listener = server_listen(server->url);
    return server->listener >= 0 && pthread_create(&server->thread, NULL, server_body, server) == 0;
}

/* Returns the deadline in `ms`. */
static inline struct rlock_deadline in(int64_t ms)
{
    return (struct rlock_deadline){rlock_clock_ms() + ms, -1};
}

/*
 * Starts `n` servers, and opens a handle on them with this configuration. The function sets the
 * addresses, and connect_ms if that is 0. The caller closes the handle, and then stops the servers.
 */
static inline enum rlock_status servers_open(struct server *server, size_t n,
                                             struct rlock_config config, struct rlock **lock,
                                             struct rlock_error *err)
{
    const char *urls[SERVERS_MAX];

    *lock = NULL;
    config.size = sizeof config;
    config.urls = urls;
    config.n_urls = n;
    if (config.connect_ms == 0)
        config.connect_ms = 5000;
    for (size_t i = 0; i < n; i++) {
        if (!server_start(&server[i]))
            return RLOCK_E_SYSTEM;
        urls[i] = server[i].url;
    }
    return rlock_open(lock, &config, err);
}

static inline enum rlock_status server_open(struct server *server, struct rlock_config config,
                                            struct rlock **lock, struct rlock_error *err)
{
    return servers_open(server, 1, config, lock, err);
}

static inline void server_stop(struct server *server)
{
    if (server->listener < 0) /* server_start() has failed */
        return;
    shutdown(server->listener, SHUT_RD);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

/* Returns the text as a bulk string of a reply. It may be used until 100 calls later. */
static inline const char *server_bulk(const char *text)
{
    static char made[100][2000];
    static size_t n;
    char *bytes = made[n++ % 100];

    snprintf(bytes, sizeof made[0], "$%zu\r\n%s\r\n", strlen(text), text);
    return bytes;
}

/* Returns the socket of this process that is connected to the server; -1: none is. */
static inline int server_client(const struct server *server)
{
    struct sockaddr_in peer;
    struct sockaddr_in at;
    socklen_t bytes = sizeof at;

    (void)getsockname(server->listener, (struct sockaddr *)&at, &bytes);
    for (int fd = 3; fd < 100; fd++) {
        bytes = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 && peer.sin_port == at.sin_port)
            return fd;
    }
    return -1;
}

/* Returns how many requests of a kind the server has read so far. */
static inline int server_count(struct server *server, enum asked_for what)
{
    int n = atomic_load(&server->n_log);
    int count = 0;

    while (n > 0)
        count += server->log[--n].what == what;
    return count;
}

/* Has the server read a request of this kind that contains these words? */
static inline bool server_has_read(struct server *server, enum asked_for what, const char *words)
{
    int n = atomic_load(&server->n_log);

    while (n > 0)
        if (server->log[--n].what == what && strstr(server->log[n].text, words) != NULL)
            return true;
    return false;
}

/* Returns when the server had read the nth request of a kind, counted from 0; -1: not yet. */
static inline int64_t server_read_ms(struct server *server, enum asked_for what, int nth)
{
    int n = atomic_load(&server->n_log);
    int i;

    for (i = 0; i < n; i++)
        if (server->log[i].what == what && nth-- == 0)
            return server->log[i].at_ms;
    return -1;
}

#endif
