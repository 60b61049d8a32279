/* SPDX-License-Identifier: MIT */
/*
 * fakeredis: a server that follows a script instead of being Redis, one connection at a time.
 *
 * usage: fakeredis [-t SECONDS] [-u SOCKET] [SCRIPT]
 *
 * Listens on a free port of 127.0.0.1 (or on the Unix socket) and prints `READY PORT`, then
 * follows the script (a file, or standard input) line by line:
 *
 *   ACCEPT          close the connection that is open, if any, and accept the next one
 *   READ            read one command of any kind
 *   EXPECT WORD...  read one command that starts with these words in any case; * is any one word
 *   SEND TEXT       send the text; \r \n \\ and \xNN are understood
 *   GARBAGE N       send N random-looking bytes, the same ones in each run
 *   BULK N          announce a bulk string of N bytes, and send none of them
 *   DEPTH N         open N arrays, each inside the other
 *   STREAM [TEXT]   send the text (or x) again and again until the peer closes, at most 256 MB
 *   STALL [MS]      send nothing until the peer closes, or until MS are over
 *   AWAIT FILE      wait until the file is there
 *   IDLE            print IDLE, or BUSY if the peer has sent something that is not read yet
 *   CLOCK           print CLOCK and the time on the clock that rlock uses, in ms
 *   CLOSE           close in an orderly way
 *   RESET           close with a TCP reset
 *   LOOP [N]        start the script again, until it has run N times in all; without N for ever
 *
 * fakeredis prints one line for each thing that happens: ACCEPT, GOT with the command's words, and
 * CLOSED when the peer has closed the connection. If the peer closes while the script waits for a
 * command, fakeredis goes on at the next ACCEPT or LOOP. fakeredis replies to CLIENT, CLUSTER and
 * HELLO by itself, as a server that is not in a Cluster; these commands aren't part of the script.
 *
 * Exit status: 0 at the end of the script, 1 if a command didn't match EXPECT, 2 for a bad
 * script or an error of the system. fakeredis ends by SIGALRM after SECONDS (120).
 */
#include <ctype.h>
#include <err.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 64, WORD_BYTES_MAX = 1 << 20, SHOWN_BYTES = 60, LIMIT_SECONDS = 120 };

static const char hello[] = "*2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n";
static const char no_cluster[] = "-ERR This instance has cluster support disabled\r\n";
static const size_t stream_bytes_max = 256u << 20;

struct fake {
    int listener;
    int peer;      /* the connection; -1: none is open */
    FILE *from;    /* the same connection, for reading; NULL: none is open */
    bool has_gone; /* the peer closed before the script came to its CLOSE or RESET */
    long round;    /* how often the script was started */
    char **line;   /* the lines of the script; NULL behind the last */
    size_t next;   /* index of the line to follow next */
};

struct command {
    int n_words;
    struct word {
        char *bytes; /* with a NUL behind them; may contain other NULs */
        size_t length;
    } word[WORDS_MAX];
};

/* ---- reading numbers and escapes in the test's script of replies ---- */

static long number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (end == text || *end != '\0' || n < 0)
        errx(2, "not a number: %s", text);
    return n;
}

static int hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Replaces \r \n \xNN in place, drops \ before other bytes, and returns the new length. */
static size_t unescape(char *text)
{
    char *to = text;

    for (const char *p = text; *p != '\0'; p++) {
        if (*p != '\\' || p[1] == '\0') {
            *to++ = *p;
        } else if (*++p == 'x' && isxdigit((unsigned char)p[1]) && isxdigit((unsigned char)p[2])) {
            *to++ = (char)(hex_digit(p[1]) << 4 | hex_digit(p[2]));
            p += 2;
        } else {
            *to++ = *p == 'r' ? '\r' : *p == 'n' ? '\n' : *p;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}

static void show(const struct command *c)
{
    printf("GOT");
    for (int i = 0; i < c->n_words; i++) {
        const struct word *w = &c->word[i];

        putchar(' ');
        for (size_t j = 0; j < w->length && j < SHOWN_BYTES; j++) {
            unsigned char byte = (unsigned char)w->bytes[j];

            if (isgraph(byte) && byte != '\\')
                putchar(byte);
            else
                printf("\\x%02x", byte);
        }
        if (w->length > SHOWN_BYTES)
            printf("...(%zu)", w->length);
    }
    putchar('\n');
}

/* ---- reading from and writing to the client ---- */

static void drop_peer(struct fake *f)
{
    if (f->peer < 0)
        return;
    fclose(f->from); /* closes the descriptor too */
    f->from = NULL;
    f->peer = -1;
}

static void peer_gone(struct fake *f)
{
    puts("CLOSED");
    f->has_gone = true;
    drop_peer(f);
}

static void send_all(struct fake *f, const char *bytes, size_t n)
{
    while (n > 0 && !f->has_gone) {
        ssize_t sent = send(f->peer, bytes, n, MSG_NOSIGNAL);

        if (sent < 0) {
            peer_gone(f);
            return;
        }
        bytes += sent;
        n -= (size_t)sent;
    }
}

/* Reads "*3\r\n" or "$5\r\n" and returns the number, or -1 when the peer has gone. */
static long read_header(struct fake *f, char kind)
{
    char text[64];

    if (fgets(text, sizeof text, f->from) == NULL)
        return -1;
    text[strcspn(text, "\r\n")] = '\0';
    if (text[0] != kind)
        errx(1, "not the protocol: wanted %c, got: %s", kind, text);
    return number(text + 1);
}

static bool read_word(struct fake *f, struct word *w)
{
    long length = read_header(f, '$');

    if (length < 0)
        return false;
    if (length > WORD_BYTES_MAX)
        errx(1, "word of %ld bytes", length);
    w->length = (size_t)length;
    w->bytes = malloc(w->length + 2);
    if (w->bytes == NULL)
        err(2, "malloc");
    if (fread(w->bytes, 1, w->length + 2, f->from) != w->length + 2) {
        free(w->bytes);
        return false;
    }
    w->bytes[w->length] = '\0';
    return true;
}

static void free_command(struct command *c)
{
    while (c->n_words > 0)
        free(c->word[--c->n_words].bytes);
}

/* Reads one command, which the caller frees with free_command. False: the peer closed instead. */
static bool read_any_command(struct fake *f, struct command *c)
{
    long n = read_header(f, '*');

    c->n_words = 0;
    if (n > WORDS_MAX)
        errx(1, "command of %ld words", n);
    while (n > c->n_words && read_word(f, &c->word[c->n_words]))
        c->n_words++;
    if (n >= 0 && c->n_words == n)
        return true;
    free_command(c);
    peer_gone(f);
    return false;
}

/* Returns fakeredis's own reply to CLIENT, CLUSTER or HELLO; NULL: the script replies. */
static const char *by_itself(const struct command *c)
{
    if (c->n_words > 0 && strcasecmp(c->word[0].bytes, "CLUSTER") == 0)
        return no_cluster;
    if (c->n_words > 0 && strcasecmp(c->word[0].bytes, "CLIENT") == 0)
        return "+OK\r\n";
    return c->n_words > 0 && strcasecmp(c->word[0].bytes, "HELLO") == 0 ? hello : NULL;
}

/* Replies to CLIENT, CLUSTER and HELLO, until another command comes: it is for the script. */
static bool read_command(struct fake *f, struct command *c)
{
    while (!f->has_gone && read_any_command(f, c)) {
        const char *answer = by_itself(c);

        if (answer == NULL) {
            show(c);
            return true;
        }
        free_command(c);
        send_all(f, answer, strlen(answer));
    }
    return false;
}

/* ---- the steps of a script ---- */

static void step_accept(struct fake *f, char *rest)
{
    (void)rest;
    drop_peer(f);
    f->peer = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
    if (f->peer < 0)
        err(2, "accept");
    f->from = fdopen(f->peer, "r");
    if (f->from == NULL)
        err(2, "fdopen");
    f->has_gone = false;
    puts("ACCEPT");
}

static void step_read(struct fake *f, char *rest)
{
    struct command c;

    (void)rest;
    if (read_command(f, &c))
        free_command(&c);
}

static void step_expect(struct fake *f, char *rest)
{
    struct command c;
    int i = 0;

    if (!read_command(f, &c))
        return;
    for (char *want = strtok(rest, " "); want != NULL; want = strtok(NULL, " "), i++) {
        bool is_any = strcmp(want, "*") == 0;

        unescape(want);
        if (i >= c.n_words || (!is_any && strcasecmp(c.word[i].bytes, want) != 0)) {
            printf("MISMATCH word %d: wanted %s\n", i + 1, want);
            exit(1);
        }
    }
    free_command(&c);
}

static void step_send(struct fake *f, char *rest)
{
    size_t length = unescape(rest);

    send_all(f, rest, length);
}

static void step_garbage(struct fake *f, char *rest)
{
    unsigned noise = 1;

    for (long n = number(rest); n > 0 && !f->has_gone; n--) {
        noise = noise * 1103515245u + 12345u; /* the generator of the C standard's example */
        send_all(f, &(char){(char)(noise >> 16)}, 1);
    }
}

static void step_bulk(struct fake *f, char *rest)
{
    char text[32];
    int length = snprintf(text, sizeof text, "$%ld\r\n", number(rest));

    send_all(f, text, (size_t)length);
}

static void step_depth(struct fake *f, char *rest)
{
    for (long n = number(rest); n > 0 && !f->has_gone; n--)
        send_all(f, "*1\r\n", 4);
}

static void step_stream(struct fake *f, char *rest)
{
    static char block[65536];
    size_t unit = *rest == '\0' ? 0 : unescape(rest);
    size_t filled = 0;

    if (unit > sizeof block)
        errx(2, "STREAM: text too long");
    do {
        memcpy(block + filled, unit > 0 ? rest : "x", unit > 0 ? unit : 1);
        filled += unit > 0 ? unit : 1;
    } while (filled + unit < sizeof block);
    for (size_t sent = 0; sent < stream_bytes_max && !f->has_gone; sent += filled)
        send_all(f, block, filled);
}

/* The wait leaves in the socket what arrives meanwhile: the next READ reads it. */
static void step_stall(struct fake *f, char *rest)
{
    struct pollfd p = {.fd = f->peer, .events = POLLRDHUP};
    int ms = *rest == '\0' ? -1 : (int)number(rest);

    if (poll(&p, 1, ms) > 0)
        peer_gone(f);
}

static void step_await(struct fake *f, char *rest)
{
    (void)f;
    while (access(rest, F_OK) != 0)
        poll(NULL, 0, 5);
}

static void step_idle(struct fake *f, char *rest)
{
    struct pollfd p = {.fd = f->peer, .events = POLLIN};

    (void)rest;
    puts(poll(&p, 1, 0) > 0 ? "BUSY" : "IDLE");
}

static void step_clock(struct fake *f, char *rest)
{
    struct timespec t;

    (void)f;
    (void)rest;
    clock_gettime(CLOCK_BOOTTIME, &t);
    printf("CLOCK %lld\n", (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

/* The kernel resets a connection that is closed with unread bytes, so read them first. */
static void step_close(struct fake *f, char *rest)
{
    char unread[4096];

    (void)rest;
    shutdown(f->peer, SHUT_WR);
    while (recv(f->peer, unread, sizeof unread, MSG_DONTWAIT) > 0)
        ;
    drop_peer(f);
}

static void step_reset(struct fake *f, char *rest)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    (void)rest;
    setsockopt(f->peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    drop_peer(f);
}

static void step_loop(struct fake *f, char *rest)
{
    f->has_gone = false;
    if (*rest == '\0' || ++f->round < number(rest))
        f->next = 0;
}

/* clang-format off */
static const struct step {
    const char *name;
    void (*run)(struct fake *f, char *rest);
    bool needs_peer;
} steps[] = {
    {"ACCEPT",  step_accept,  false},
    {"READ",    step_read,    true},
    {"EXPECT",  step_expect,  true},
    {"SEND",    step_send,    true},
    {"GARBAGE", step_garbage, true},
    {"BULK",    step_bulk,    true},
    {"DEPTH",   step_depth,   true},
    {"STREAM",  step_stream,  true},
    {"STALL",   step_stall,   true},
    {"AWAIT",   step_await,   true},
    {"IDLE",    step_idle,    true},
    {"CLOCK",   step_clock,   true},
    {"CLOSE",   step_close,   true},
    {"RESET",   step_reset,   true},
    {"LOOP",    step_loop,    false},
};
/* clang-format on */

static const struct step *find_step(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (strlen(steps[i].name) == length && strncmp(steps[i].name, name, length) == 0)
            return &steps[i];
    errx(2, "unknown step: %s", name);
}

/* Carries out the next line, on a copy: a step changes its text, and LOOP runs the line again. */
static void follow(struct fake *f)
{
    char *line = strdup(f->line[f->next++]);
    size_t length;

    if (line == NULL)
        err(2, "strdup");
    length = strcspn(line, " ");
    if (length > 0 && line[0] != '#') {
        const struct step *s = find_step(line, length);

        if (s->needs_peer && f->peer < 0 && !f->has_gone)
            errx(2, "no connection to %s on", s->name);
        if (!s->needs_peer || f->peer >= 0)
            s->run(f, line + length + strspn(line + length, " "));
    }
    free(line);
}

/* ---- listening, and main() ---- */

static char **read_script(FILE *in)
{
    char **lines = NULL;
    size_t n = 0;
    size_t room = 0;
    ssize_t length;

    do {
        lines = realloc(lines, (n + 1) * sizeof *lines);
        if (lines == NULL)
            err(2, "realloc");
        lines[n] = NULL;
        room = 0;
        length = getline(&lines[n], &room, in);
        if (length > 0 && lines[n][length - 1] == '\n')
            lines[n][length - 1] = '\0';
    } while (length >= 0 && ++n > 0);
    free(lines[n]);
    lines[n] = NULL;
    return lines;
}

static int listen_tcp(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, length) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &length) < 0)
        err(2, "listen");
    printf("READY %d\n", ntohs(at.sin_port));
    return fd;
}

static int listen_unix(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof at.sun_path)
        errx(2, "%s: too long for a socket", path);
    strcpy(at.sun_path, path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, SOMAXCONN) < 0)
        err(2, "%s", path);
    printf("READY %s\n", path);
    return fd;
}

int main(int argc, char **argv)
{
    struct fake f = {.listener = -1, .peer = -1};
    const char *path = NULL;
    unsigned seconds = LIMIT_SECONDS;
    FILE *script = stdin;
    int option;

    while ((option = getopt(argc, argv, "t:u:")) != -1) {
        switch (option) {
        case 't':
            seconds = (unsigned)number(optarg);
            break;
        case 'u':
            path = optarg;
            break;
        default:
            errx(2, "usage: fakeredis [-t SECONDS] [-u SOCKET] [SCRIPT]");
        }
    }
    if (optind < argc && (script = fopen(argv[optind], "r")) == NULL)
        err(2, "%s", argv[optind]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(seconds);
    f.line = read_script(script);
    f.listener = path != NULL ? listen_unix(path) : listen_tcp();
    while (f.line[f.next] != NULL)
        follow(&f);
    return 0;
}
