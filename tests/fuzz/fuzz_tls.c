/* SPDX-License-Identifier: MIT */
/*
 * fuzz_tls: lets the library speak TLS with a server that has one of several certificates, and
 * whose bytes the input may hold back, change, cut off, or replace by any others.
 *
 * The first two bytes of the input choose the server and the client, see talk(); each further byte
 * is a step, see enum tls_step. Whatever the server sends: a handshake succeeds only with a
 * certificate that the client may trust and whose name is right, and each byte that the library
 * then returns is one that the server has sent.
 */
#include "fuzz.h"
#include "network.h"
#include "tls_server.h"
#include "wire/tls.h"

#include <poll.h>
#include <unistd.h>

#if __has_include(<openssl/ssl.h>)

#define BYTES_MAX (64 * 1024)
#define TURNS_MAX 64

/* What a byte of the input means. "N" is the next byte of the input. */
enum tls_step {
    STEP_PASS,  /* the server's bytes reach the client, and the client goes on */
    STEP_PART,  /* only N bytes reach the client, and it goes on */
    STEP_FLIP,  /* as STEP_PASS, but a bit of byte N is changed */
    STEP_RAW,   /* the N bytes of the input that stand behind N reach the client */
    STEP_CLOSE, /* the connection is closed behind the bytes that were passed on */
    STEP_RESET,
    STEP_ROOM,     /* the kernel takes N more bytes of the client, and no more */
    STEP_WRITE,    /* the server's bytes reach the client, which sends N bytes, and reads nothing */
    STEP_ANSWER,   /* the server sends N * 8 bytes */
    STEP_SHUTDOWN, /* the server sends close_notify */
    STEP_BREAK,    /* from here on send(2) fails, but recv(2) doesn't yet */
    STEP_SPOIL,    /* the server gets bytes that the client has not sent */
    STEPS
};

/* The names of the server that the client knows, and which of them certificates may be for. */
static const struct {
    const char *names[TLS_NAMES];
    bool is_good;  /* the certificate of TLS_SERVER_GOOD is for one of the names */
    bool is_other; /* the certificate of TLS_SERVER_OTHER_HOST is for one of the names */
} hosts[] = {
    {{"h"}, true, false},
    {{"127.0.0.1", "h"}, true, false},
    {{"10.0.0.1", NULL, "h."}, true, false},
    {{"10.0.0.1", "127.0.0.1"}, true, false},
    {{"wrong", "10.0.0.1"}, false, false},
    {{"h", "other"}, true, true},
    {{"10.0.0.1%eth0", ""}, false, false},
    {{"%"}, false, false},
};

static struct tls_server *server;
static char to_server[BYTES_MAX]; /* bytes of the client that have not reached the server */
static size_t n_to_server;
static char to_client[BYTES_MAX]; /* bytes of the server that have not reached the client */
static size_t n_to_client;
static char heard[BYTES_MAX];
static size_t n_heard;    /* how many bytes the client has read */
static size_t n_answered; /* how many bytes the server has sent */
static size_t n_writing;  /* bytes of a tls_write() that returned RLOCK_PENDING; 0: there is none */

/* Only keeps the bytes: the server would clear the errors of OpenSSL that the client is to read. */
static void on_sent(size_t connection, const char *bytes, size_t n)
{
    (void)connection;
    must(n_to_server + n <= sizeof to_server);
    memcpy(to_server + n_to_server, bytes, n);
    n_to_server += n;
}

/* Lets the server read what the client has sent, and collects what the server sends. */
static void run_server(void)
{
    tls_server_hear(server, to_server, n_to_server);
    n_to_server = 0;
    n_to_client += tls_server_take(server, to_client + n_to_client, sizeof to_client - n_to_client);
}

/* Lets n bytes of the server reach the client. */
static void pass(size_t n)
{
    if (n > n_to_client)
        n = n_to_client;
    network_send(to_client, n);
    memmove(to_client, to_client + n, n_to_client - n);
    n_to_client -= n;
}

static void check_fault(const struct tls_connection *line, enum rlock_status st,
                        const struct rlock_error *err)
{
    must(st == RLOCK_OK || st == RLOCK_PENDING || (err->status == st && err->text[0] != '\0'));
    must(st != RLOCK_PENDING || (tls_events(line) & POLLIN) != 0);
}

/* Reads all that has come. The bytes must be those that the server has sent: "abc...". */
static enum rlock_status read_all(struct tls_connection *line)
{
    struct rlock_error err = {.text = ""};
    enum rlock_status st = RLOCK_OK;
    char bytes[512];
    size_t n;

    while (st == RLOCK_OK) {
        st = tls_read(line, bytes, sizeof bytes, &n, &err);
        for (size_t i = 0; st == RLOCK_OK && i < n; i++)
            must(n_heard < n_answered && bytes[i] == heard[n_heard++]);
    }
    check_fault(line, st, &err);
    return st;
}

/* Writes n bytes; if a write is not finished, goes on with that one, as tls.h asks for. */
static enum rlock_status write_some(struct tls_connection *line, size_t n)
{
    static const char bytes[256];
    struct rlock_error err = {.text = ""};
    enum rlock_status st = RLOCK_OK;
    size_t done = 0;

    if (n_writing > 0)
        n = n_writing;
    if (n > 0)
        st = tls_write(line, bytes, n, &done, &err);
    must(st != RLOCK_OK || done <= n);
    n_writing = st == RLOCK_PENDING ? n : 0;
    check_fault(line, st, &err);
    return st;
}

static enum rlock_status go_on(struct tls_connection *line, bool *is_up)
{
    struct rlock_error err = {.text = ""};
    enum rlock_status st;

    if (*is_up)
        return read_all(line);
    st = tls_handshake(line, &err);
    check_fault(line, st, &err);
    *is_up = st == RLOCK_OK;
    return st;
}

static void do_step(enum tls_step step, uint8_t next)
{
    run_server();
    if (step == STEP_FLIP && n_to_client > next)
        to_client[next] = (char)(to_client[next] ^ 0x10);
    if (step == STEP_SPOIL)
        tls_server_hear(server, (const char *)&hosts, sizeof hosts);
    if (step == STEP_PASS || step == STEP_FLIP || step == STEP_PART || step == STEP_WRITE)
        pass(step == STEP_PART ? next : SIZE_MAX);
    else if (step == STEP_CLOSE || step == STEP_RESET)
        network_close(step == STEP_RESET);
    else if (step == STEP_ROOM)
        network_set_room(next == UINT8_MAX ? SIZE_MAX : next);
    else if (step == STEP_BREAK)
        network_break_sending();
    else if (step == STEP_SHUTDOWN)
        tls_server_shutdown(server);
    else if (step == STEP_ANSWER && n_answered + next * 8 < sizeof heard &&
             tls_server_write(server, heard + n_answered, next * (size_t)8))
        n_answered += next * (size_t)8;
}

static bool has_argument(enum tls_step step)
{
    return step == STEP_PART || step == STEP_FLIP || step == STEP_ROOM || step == STEP_WRITE ||
           step == STEP_ANSWER;
}

static bool may_succeed(enum tls_server_certificate certificate, size_t host)
{
    return certificate == TLS_SERVER_GOOD         ? hosts[host].is_good
           : certificate == TLS_SERVER_OTHER_HOST ? hosts[host].is_other
                                                  : false;
}

static void run(struct tls_connection *line, const uint8_t *data, size_t n, bool may_be_up)
{
    enum rlock_status st;
    bool is_up = false;

    st = go_on(line, &is_up);
    for (size_t at = 0; at < n && (st == RLOCK_PENDING || st == RLOCK_OK); at++) {
        enum tls_step step = (enum tls_step)(data[at] % STEPS);
        uint8_t next = at + 1 < n ? data[at + 1] : 0;

        if (step == STEP_RAW && at + 1 < n) {
            size_t length = next < n - at - 2 ? next : n - at - 2;

            network_send(data + at + 2, length);
            at += 1 + length;
        } else {
            do_step(step, next);
        }
        at += has_argument(step);
        st = step == STEP_WRITE && is_up ? write_some(line, next) : go_on(line, &is_up);
        must(!is_up || may_be_up);
    }
}

static void talk(struct tls_context *tls, const uint8_t *data, size_t n)
{
    enum tls_server_certificate certificate =
        (enum tls_server_certificate)((data[0] & 7) % TLS_SERVER_CERTIFICATES);
    enum tls_server_asks asks =
        (enum tls_server_asks)((data[0] >> 3 & 3) % (TLS_SERVER_REQUIRES + 1));
    size_t host = data[1] % (sizeof hosts / sizeof *hosts);
    struct rlock_error err = {.text = ""};
    struct tls_connection *line = NULL;
    enum rlock_status st;
    int fd;

    network_begin(on_sent);
    server = tls_server_new(certificate, data[0] & 64, asks);
    n_to_server = n_to_client = n_heard = n_answered = n_writing = 0;
    fd = network_connected();
    st = tls_connection_new(tls, &line, hosts[host].names, fd, &err);
    must(st == RLOCK_OK || (st == RLOCK_E_CONFIG && err.text[0] != '\0'));
    if (st == RLOCK_OK)
        run(line, data + 2, n - 2, may_succeed(certificate, host));
    must(tls_is_built());
    tls_connection_free(line);
    close(fd);
    tls_server_free(server);
    network_end();
}

/* The name of the file that byte i of the input chooses; NULL: there is none. */
static const char *path(const uint8_t *data, size_t n, size_t i)
{
    static const char *const others[] = {NULL, "/nowhere", "/", "/etc/ssl/certs"};
    size_t n_others = sizeof others / sizeof *others;
    size_t which = i < n ? data[i] % (n_others + TLS_FILES) : 0;

    return which < n_others ? others[which]
                            : tls_server_file((enum tls_server_file)(which - n_others));
}

/* Loads files that are missing, empty, or don't belong together. */
static void load_files(const uint8_t *data, size_t n)
{
    struct rlock_config config = {.tls_ca = path(data, n, 0),
                                  .tls_cert = path(data, n, 1),
                                  .tls_key = path(data, n, 2),
                                  .tls_name = n > 3 ? "h" : NULL};
    struct rlock_error err = {.text = ""};
    struct tls_context *tls = NULL;
    struct tls_connection *line = NULL;
    enum rlock_status st = tls_context_new(&tls, &config, &err);

    must((st == RLOCK_OK) == (tls != NULL));
    must(st == RLOCK_OK || (st == RLOCK_E_CONFIG && err.text[0] != '\0'));
    must(tls_connection_new(NULL, &line, (const char *const[TLS_NAMES]){"h"}, -1, &err) ==
         RLOCK_E_CONFIG);
    tls_context_free(tls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    /* the two contexts are made once, as making keys is slow */
    static struct tls_context *tls;
    static struct tls_context *tls_with_certificate;
    static bool is_prepared;
    static bool is_built;

    if (!is_prepared) {
        struct rlock_config config;

        is_prepared = true;
        tls_server_prepare();
        config = (struct rlock_config){.tls_ca = tls_server_file(TLS_FILE_CA)};
        is_built = tls_context_new(&tls, &config, NULL) == RLOCK_OK;
        config.tls_cert = tls_server_file(TLS_FILE_CLIENT);
        must(!is_built || tls_context_new(&tls_with_certificate, &config, NULL) == RLOCK_OK);
        for (size_t i = 0; i < sizeof heard; i++)
            heard[i] = (char)('a' + i % 26);
    }
    if (!is_built || n < 2)
        return 0;
    if (data[0] == 0xff)
        load_files(data + 1, n - 1);
    else
        talk(data[1] & 0x80 ? tls_with_certificate : tls, data, n);
    return 0;
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    (void)data;
    (void)n;
    return 0;
}

#endif
