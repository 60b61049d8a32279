/* SPDX-License-Identifier: MIT */
/*
 * test_tls: handshakes with a TLS server, and with peers that send something else.
 *
 * The server is that of the fuzz target fuzz_tls. tests/cli/tls.bats has the tests with servers
 * that are other programs.
 */
#include "peer.h"
#include "quorum/member.h"
#include "tap.h"
#include "tls_server.h"

#include <fcntl.h>

#define SECRET "s3cret"

/* Two connected sockets, and the TLS connection that begins on the first. */
static struct {
    struct tls_connection *line;
    int fd;
    int peer;
    struct rlock_error err;
} talk;

static bool begin(struct tls_context *tls, const char *host)
{
    int ends[2];

    memset(&talk, 0, sizeof talk);
    talk.fd = talk.peer = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    talk.fd = ends[0];
    talk.peer = ends[1];
    return tls_connection_new(tls, &talk.line, (const char *const[TLS_NAMES]){host}, talk.fd,
                              &talk.err) == RLOCK_OK;
}

static void end(void)
{
    tls_connection_free(talk.line);
    socket_reset(&talk.fd);
    if (talk.peer >= 0)
        close(talk.peer);
}

static void swallow(int fd)
{
    char bytes[4096];

    while (read(fd, bytes, sizeof bytes) > 0)
        ;
}

static const struct {
    const char *what;
    const char *bytes;
    size_t n;
    enum rlock_status st;
    const char *says;
} answers[] = {
#define BYTES(text) text, sizeof text - 1
    {"an error reply of Redis", BYTES("-ERR max\r\n"), RLOCK_E_PROTOCOL, "is not TLS"},
    {"a record that is too long", BYTES("\x16\x03\x03\xff\xff"), RLOCK_E_PROTOCOL,
     "TLS: the handshake failed: "},
    {"half a record", BYTES("\x16\x03\x03\x00\x40"), RLOCK_PENDING, ""},
    {"an alert: no common TLS version", BYTES("\x15\x03\x03\x00\x02\x02\x46"), RLOCK_E_UNSUPPORTED,
     "1.2"},
    {"an alert: handshake failure", BYTES("\x15\x03\x03\x00\x02\x02\x28"), RLOCK_E_CONFIG,
     "refuses this client"},
    {"an alert: internal error", BYTES("\x15\x03\x03\x00\x02\x02\x50"), RLOCK_E_UNREACHABLE,
     "ended the handshake"},
    {"an alert: close notify", BYTES("\x15\x03\x03\x00\x02\x01\x00"), RLOCK_E_UNREACHABLE,
     "closed"},
};

static void test_answers(struct tls_context *tls)
{
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        enum rlock_status st = RLOCK_PENDING;

        need(begin(tls, "h"), "a TLS connection begins");
        for (size_t at = 0; st == RLOCK_PENDING && at < answers[i].n; at++) {
            (void)!write(talk.peer, answers[i].bytes + at, 1);
            st = tls_handshake(talk.line, &talk.err);
        }
        okf(st == answers[i].st && strstr(talk.err.text, answers[i].says) != NULL,
            "the handshake fails as the table says if the server sends, byte by byte, %s: %d %s",
            answers[i].what, st, talk.err.text);
        end();
    }
}

static void test_events(struct tls_context *tls)
{
    char noise[4096] = "\x15\x03\x03\x00\x02\x02\x50";
    int written = 0;

    need(begin(tls, "h"), "a TLS connection begins");
    fcntl(talk.fd, F_SETFL, O_NONBLOCK);
    while (send(talk.fd, noise, sizeof noise, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        written++;
    ok(tls_handshake(talk.line, &talk.err) == RLOCK_PENDING && written > 0 &&
       tls_events(talk.line) == (POLLIN | POLLOUT));
    swallow(talk.peer);
    ok(tls_handshake(talk.line, &talk.err) == RLOCK_PENDING && tls_events(talk.line) == POLLIN);
    (void)!write(talk.peer, noise, 7);
    close(talk.peer);
    talk.peer = -1;
    okf(tls_handshake(talk.line, &talk.err) == RLOCK_E_UNREACHABLE &&
            strstr(talk.err.text, "ended the handshake") != NULL,
        "an alert that came before the end of the connection is reported: %s", talk.err.text);
    end();
    need(begin(tls, "h"), "a TLS connection begins");
    ok(tls_handshake(talk.line, &talk.err) == RLOCK_PENDING);
    close(talk.peer); /* which has not read the handshake: the kernel resets the connection */
    talk.peer = -1;
    is_int(tls_handshake(talk.line, &talk.err), RLOCK_E_UNREACHABLE, "a reset");
    is_str(talk.err.text, "TLS handshake: receive: Connection reset by peer");
    end();
}

/*
 * Redis sends nothing before it has got a request. If conn_events() asked only for POLLIN while a
 * request is not sent yet, the caller would wait until the request times out.
 */
static void test_unsent(struct tls_context *tls)
{
    struct request request;
    struct conn conn;
    struct url url;
    char *bytes = NULL;
    size_t n = 0;

    request_begin(&request, "PING");
    need(begin(tls, "h") && url_parse(&url, "rediss://h", NULL) == RLOCK_OK &&
         request_encode(&request, &bytes, &n, NULL) == RLOCK_OK);
    conn_init(&conn, &url);
    conn.tls_connection = talk.line;
    conn.fd = talk.fd;
    conn.replies = resp_reader_new();
    ok(tls_handshake(conn.tls_connection, NULL) == RLOCK_PENDING &&
       tls_events(conn.tls_connection) == POLLIN);
    conn.phase = CONN_READY;
    ok(conn_start_request(&conn, CONN_NO_PREAMBLE, bytes, n, rlock_clock_ms() + PATIENCE_MS,
                          NULL) == RLOCK_PENDING &&
       conn_events(&conn) == (POLLIN | POLLOUT));
    conn.sent_bytes = conn.request_bytes;
    is_int(conn_events(&conn), POLLIN, "once all bytes are sent, only POLLIN is waited for");
    conn.sent_bytes = 0;
    conn.phase = CONN_TLS_HANDSHAKE;
    is_int(conn_events(&conn), POLLIN);
    conn_fini(&conn);
    url_fini(&url);
    free(bytes);
    close(talk.peer);
}

#define SERVER_NAME_H BYTES("\0\0\0\6\0\4\0\0\1h") /* the extension server_name */

/* A certificate, and so the name that the client sends (SNI), has no dot at the end. */
static void test_hosts(struct tls_context *tls)
{
    static char too_long[300];
    static const struct {
        const char *host;
        bool is_refused;
        const char *sent; /* NULL: no name is sent */
        size_t n;
    } rows[] = {{"h", false, SERVER_NAME_H},
                {"h.", false, SERVER_NAME_H},
                {"127.0.0.1", false, NULL, 0},
                {"::1", false, NULL, 0},
                {"fe80::1%eth0", false, NULL, 0},
                {"127.1", false, BYTES("127.1")},
                {"", true, NULL, 0},
                {"%eth0", true, NULL, 0},
                {too_long, true, NULL, 0}};
    char bytes[4096];
    ssize_t n;

    memset(too_long, 'x', sizeof too_long - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        okf(begin(tls, rows[i].host) != rows[i].is_refused &&
                (talk.err.status == RLOCK_E_CONFIG) == rows[i].is_refused,
            "only a name or an address can be a host: '%s'", rows[i].host);
        if (!rows[i].is_refused) {
            (void)!tls_handshake(talk.line, &talk.err);
            n = read(talk.peer, bytes, sizeof bytes);
            okf(n > 0 &&
                    (rows[i].sent != NULL
                         ? memmem(bytes, (size_t)n, rows[i].sent, rows[i].n) != NULL
                         : memmem(bytes, (size_t)n, rows[i].host, strlen(rows[i].host)) == NULL),
                "for the host %s the client sends %s name", rows[i].host,
                rows[i].sent != NULL ? "the" : "no");
        }
        end();
    }
}

/* Without a struct tls_context the member sends no byte to the server of a rediss:// URL. */
static void test_never_plain(void)
{
    struct request request;
    struct rlock_error err = {.text = ""};
    struct member member;
    char url[128];
    int fd;

    need(peer_open(), "the test listens");
    snprintf(url, sizeof url, "rediss://:" SECRET "@%s", peer_address + strlen("redis://"));
    need(member_open(&member, url, NULL, NULL, &err) == RLOCK_OK, "the member is opened");
    request_begin(&request, "PING");
    member_ask(&member, &request, NULL,
               (struct member_limits){.connect_deadline_ms = rlock_clock_ms() + PATIENCE_MS,
                                      .reply_ms = PATIENCE_MS});
    fd = peer_accept();
    for (int steps = 0; member.state == RLOCK_PENDING && steps < 1000; steps++)
        member_step(&member);
    okf(member.state == RLOCK_E_CONFIG, "a request without a struct tls_context fails: %s",
        member.err.text);
    ok(peer_hears_the_end(fd), "the connection is closed, and no byte was sent");
    close(fd);
    member_close(&member);
    peer_close();
}

#if __has_include(<openssl/ssl.h>)

/* ---- tests with a TLS server ---- */

/* Passes the client's bytes to the server, and the server's bytes to the client. */
static void pass_on(struct tls_server *server)
{
    char bytes[4096];
    ssize_t heard;
    size_t n;

    while ((heard = read(talk.peer, bytes, sizeof bytes)) > 0)
        tls_server_hear(server, bytes, (size_t)heard);
    while ((n = tls_server_take(server, bytes, sizeof bytes)) > 0)
        (void)!write(talk.peer, bytes, n);
}

static enum rlock_status shake_hands(struct tls_server *server)
{
    enum rlock_status st = tls_handshake(talk.line, &talk.err);

    for (int turns = 0; st == RLOCK_PENDING && turns < 10; turns++) {
        pass_on(server);
        st = tls_handshake(talk.line, &talk.err);
    }
    return st;
}

/* What rlock says about each certificate of the server. */
static const struct {
    enum tls_server_certificate certificate;
    enum tls_server_asks asks;
    bool is_old; /* the server has TLS 1.2 only */
    enum rlock_status st;
    const char *says;
} certificates[] = {
    {TLS_SERVER_GOOD, TLS_SERVER_ASKS_NOT, false, RLOCK_OK, ""},
    {TLS_SERVER_GOOD, TLS_SERVER_ASKS_NOT, true, RLOCK_OK, ""},
    {TLS_SERVER_GOOD, TLS_SERVER_ASKS, true, RLOCK_OK, ""},
    {TLS_SERVER_GOOD, TLS_SERVER_REQUIRES, true, RLOCK_E_CONFIG,
     "TLS: the server asks for a client certificate (--tls-cert)"},
    {TLS_SERVER_OTHER_HOST, TLS_SERVER_ASKS_NOT, false, RLOCK_E_CONFIG,
     "TLS: the server's certificate is not for h; if another name is right: --tls-name NAME"},
    {TLS_SERVER_EXPIRED, TLS_SERVER_ASKS_NOT, false, RLOCK_E_CONFIG,
     "TLS: the server's certificate has expired"},
    {TLS_SERVER_EARLY, TLS_SERVER_ASKS_NOT, false, RLOCK_E_CONFIG,
     "TLS: the server's certificate: certificate is not yet valid"},
    {TLS_SERVER_SELF_SIGNED, TLS_SERVER_ASKS_NOT, false, RLOCK_E_CONFIG,
     "TLS: the server's certificate is self-signed, and not trusted here (--tls-ca)"},
    {TLS_SERVER_UNTRUSTED, TLS_SERVER_ASKS_NOT, false, RLOCK_E_CONFIG,
     "TLS: the server's certificate was signed by a CA that is not trusted here (--tls-ca), or the "
     "server "
     "doesn't send its intermediate certificate"},
    {TLS_SERVER_CHAIN, TLS_SERVER_ASKS_NOT, false, RLOCK_E_CONFIG,
     "TLS: the server's certificate was signed by a CA that is not trusted here (--tls-ca)"},
};

static void test_certificates(struct tls_context *tls)
{
    for (size_t i = 0; i < sizeof certificates / sizeof certificates[0]; i++) {
        struct tls_server *server = tls_server_new(certificates[i].certificate,
                                                   certificates[i].is_old, certificates[i].asks);
        enum rlock_status st;

        need(begin(tls, "h"), "a TLS connection begins");
        talk.err.text[0] = '\0';
        st = shake_hands(server);
        okf(st == certificates[i].st, "the handshake with certificate %d of the server: status %d",
            (int)certificates[i].certificate, (int)st);
        is_str(st == RLOCK_OK ? "" : talk.err.text, certificates[i].says);
        end();
        tls_server_free(server);
    }
}

/* A request or a part of it can't be sent any more, as the server has closed the connection. */
static const struct {
    const char *what;
    enum tls_server_asks asks;
    const char *reply; /* what the server has sent before; NULL: nothing */
    enum rlock_status st;
    const char *says;
} closed[] = {
    {"after an alert", TLS_SERVER_REQUIRES, NULL, RLOCK_E_CONFIG,
     "TLS: the server asks for a client certificate (--tls-cert)"},
    {"after a reply", TLS_SERVER_ASKS_NOT, "-ERR max\r\n", RLOCK_E_UNREACHABLE,
     "send: Broken pipe"},
    {"without a word", TLS_SERVER_ASKS_NOT, NULL, RLOCK_E_UNREACHABLE,
     "the server closed the connection"},
};

static void test_closed(struct tls_context *tls)
{
    size_t done;

    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) {
        struct tls_server *server = tls_server_new(TLS_SERVER_GOOD, false, closed[i].asks);

        need(begin(tls, "h"), "a TLS connection begins");
        ok(shake_hands(server) == RLOCK_OK &&
           tls_write(talk.line, "PING", 4, &done, &talk.err) == RLOCK_OK && done == 4);
        pass_on(server);
        if (closed[i].reply != NULL)
            ok(tls_server_write(server, closed[i].reply, strlen(closed[i].reply)));
        pass_on(server);
        close(talk.peer);
        talk.peer = -1;
        okf(tls_write(talk.line, "PING", 4, &done, &talk.err) == closed[i].st,
            "the next request fails if the server has closed the connection %s", closed[i].what);
        is_str(talk.err.text, closed[i].says, "the message tells why");
        end();
        tls_server_free(server);
    }
}

/* A record has at most 16 KiB. An undo for long keys has more, as its EVALSHA or its EVAL. */
static void test_abandoned(struct tls_context *tls)
{
    static char script[20000], key[20000];
    struct tls_server *server = tls_server_new(TLS_SERVER_GOOD, false, TLS_SERVER_ASKS_NOT);
    struct request undo;
    struct conn conn;
    struct url url;
    size_t arrived = 0;
    char bytes[4096];
    ssize_t n;

    memset(script, ' ', sizeof script - 1);
    memset(key, 'k', sizeof key - 1);
    request_begin(&undo, "EVALSHA");
    request_add(&undo, "5d41");
    request_add(&undo, key);
    undo.script = script;
    need(begin(tls, "h") && shake_hands(server) == RLOCK_OK &&
         url_parse(&url, "rediss://h", NULL) == RLOCK_OK);
    conn_init(&conn, &url);
    conn.tls_connection = talk.line;
    conn.fd = talk.fd;
    conn.phase = CONN_READY; /* a request of no bytes was sent */
    ok(conn_abandon(&conn, &undo));
    while ((n = read(talk.peer, bytes, sizeof bytes)) > 0)
        arrived += (size_t)n;
    okf(arrived > sizeof script + 2 * sizeof key, "all of an undo by TLS arrives: %zu bytes",
        arrived);
    conn_fini(&conn);
    url_fini(&url);
    close(talk.peer);
    tls_server_free(server);
}

static void test_bad_files(void)
{
    const struct {
        struct rlock_config config;
        const char *what;  /* how the message begins, before the name of the file */
        const char *lacks; /* how it goes on, before OpenSSL's reason */
    } rows[] = {
        {{.tls_ca = tls_server_file(TLS_FILE_EMPTY)}, "CA file", "it has no certificates in PEM"},
        {{.tls_cert = tls_server_file(TLS_FILE_EMPTY)},
         "certificate file",
         "it has no certificate in PEM"},
    };
    struct tls_context *tls = NULL;
    struct rlock_error err;
    char says[200];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(says, sizeof says, "%s %s: %s (", rows[i].what, tls_server_file(TLS_FILE_EMPTY),
                 rows[i].lacks);
        okf(tls_context_new(&tls, &rows[i].config, &err) == RLOCK_E_CONFIG &&
                strncmp(err.text, says, strlen(says)) == 0 &&
                strstr(err.text, "OpenSSL gives no reason") == NULL &&
                strchr(err.text, ')') != NULL,
            "the message names the file, and has OpenSSL's reason: %s", err.text);
    }
}

static void test_with_server(void)
{
    struct rlock_config config;
    struct tls_context *tls = NULL;

    tls_server_prepare();
    config = (struct rlock_config){.tls_ca = tls_server_file(TLS_FILE_CA)};
    need(tls_context_new(&tls, &config, NULL) == RLOCK_OK, "the CA of the server is trusted");
    test_certificates(tls);
    test_closed(tls);
    test_abandoned(tls);
    test_bad_files();
    tls_context_free(tls);
}

#else

static void test_with_server(void)
{
    skip("handshakes with a TLS server", "the headers of OpenSSL were not there");
}

#endif

int main(void)
{
    const struct rlock_config config = {.tls_ca = NULL};
    struct rlock_error err = {.text = ""};
    struct tls_context *tls = NULL;
    enum rlock_status st = tls_context_new(&tls, &config, &err);

    RUN(test_never_plain());
    if (!tls_is_built()) {
        okf(st == RLOCK_E_CONFIG, "tls_context_new() fails in a build without TLS: %s", err.text);
        return done_testing();
    }
    if (okf(st == RLOCK_OK, "tls_context_new() loads OpenSSL and the CAs of the system: %s",
            err.text)) {
        RUN(test_answers(tls));
        RUN(test_events(tls));
        RUN(test_unsent(tls));
        RUN(test_hosts(tls));
        RUN(test_with_server());
    }
    tls_context_free(tls);
    return done_testing();
}
