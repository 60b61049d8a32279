/* SPDX-License-Identifier: MIT */
/*
 * test_conn: what a connection does after everything that a server can send or fail to send.
 *
 * No function of conn blocks, so one thread plays the client and the server in turns.
 */
#include "peer.h"
#include "quorum/member.h"
#include "tap.h"

#include <malloc.h>

#define SECRET "5ec3e7"
#define PING "*1\r\n$4\r\nPING\r\n"
#define ONE ":1\r\n"

/* ---- playing the client ---- */

/* The connection of the test that runs, its URL, and the last reply. */
static struct conn conn;
static struct url url;
static const struct resp_value *reply;

static void open_conn(const char *text, const char *password)
{
    if (url_parse(&url, text, NULL) != RLOCK_OK)
        url = (struct url){.kind = URL_TCP};
    conn_init(&conn, &url);
    conn_configure(&conn, &(struct conn_settings){.password = password});
}

static void close_conn(int fd)
{
    conn_fini(&conn);
    url_fini(&url);
    if (fd >= 0)
        close(fd);
}

static enum rlock_status ask(const char *word)
{
    struct request request;
    enum rlock_status st;
    char *bytes = NULL;
    size_t n = 0;

    request_begin(&request, word);
    st = request_encode(&request, &bytes, &n, NULL);
    if (st == RLOCK_OK)
        st = conn_start_request(&conn, CONN_NO_PREAMBLE, bytes, n, rlock_clock_ms() + PATIENCE_MS,
                                NULL);
    free(bytes);
    return st;
}

static struct rlock_error fault; /* the last fault that step() has met */

/* Steps until the reply has come, or until nothing has happened for `patience_ms`. */
static enum rlock_status step(int patience_ms)
{
    enum rlock_status st = conn_step(&conn, &reply, &fault);

    while (st == RLOCK_PENDING) {
        struct pollfd look = {.fd = conn_fd(&conn), .events = conn_events(&conn)};

        if (poll(&look, 1, patience_ms) == 0)
            break;
        st = conn_step(&conn, &reply, &fault);
    }
    return st;
}

static bool reads_one(void)
{
    return step(PATIENCE_MS) == RLOCK_OK && resp_int(reply) == 1;
}

/* Connects with this password, and asks PING. Returns the server's end of the connection. */
static int open_and_ask(const char *text, const char *password)
{
    open_conn(text, password);
    if (ask("PING") != RLOCK_PENDING || step(A_WHILE_MS) != RLOCK_PENDING)
        return -1;
    return peer_accept();
}

/* The same without a password; the server has read the request. */
static int open_and_ping(void)
{
    int fd = open_and_ask(peer_address, NULL);

    return peer_hears(fd, PING) ? fd : -1;
}

/* ---- tests of requests and replies ---- */

static void test_setup(void)
{
    char text[128];
    int fd;

    snprintf(text, sizeof text, "redis://us:from%%20url@%s/3", peer_address + strlen("redis://"));
    fd = open_and_ask(text, "from elsewhere");
    ok(peer_hears(fd,
                  "*3\r\n$4\r\nAUTH\r\n$2\r\nus\r\n$8\r\nfrom url\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3"
                  "\r\n"));
    peer_say(fd, "+OK\r\n+O");
    is_int(step(A_WHILE_MS), RLOCK_PENDING);
    ok(peer_hears_nothing(fd), "the request is not sent before AUTH and SELECT are answered");
    peer_say(fd, "K\r\n");
    is_int(step(A_WHILE_MS), RLOCK_PENDING);
    ok(peer_hears(fd, PING), "the request is sent");
    ok(conn.setup == NULL, "the connection doesn't keep the password that it has sent");
    peer_say(fd, ONE);
    ok(reads_one(), "the reply is read");
    ok(ask("PING") == RLOCK_PENDING && step(A_WHILE_MS) == RLOCK_PENDING && peer_hears(fd, PING));
    close_conn(fd);

    /* a server that takes the user from the client certificate refuses an empty password */
    snprintf(text, sizeof text, "redis://us@%s", peer_address + strlen("redis://"));
    fd = open_and_ask(text, NULL);
    ok(peer_hears(fd, PING) && peer_hears_nothing(fd), "a user without a password sends no AUTH");
    close_conn(fd);
}

/*
 * Each new connection sends AUTH first, and with must_be_primary ROLE. The request follows only to
 * a server that accepts the password and is a primary.
 */
static void test_setup_replies(void)
{
    static const struct {
        bool must_be_primary; /* the connection sends ROLE, and else AUTH */
        const char *says;
        enum rlock_status st; /* RLOCK_PENDING: the request is sent; RLOCK_OK: an error reply */
    } rows[] = {
        {false, "-WRONGPASS no\r\n", RLOCK_OK},
        {false, "-NOPERM no\r\n", RLOCK_OK},
        {false, ":1\r\n", RLOCK_E_PROTOCOL},
        {false, "$2\r\nOK\r\n", RLOCK_E_PROTOCOL},
        {false, "+QUEUED\r\n", RLOCK_E_PROTOCOL},
        {false, "HTTP/1.1 400 Bad Request\r\n\r\n", RLOCK_E_PROTOCOL},
        {false, "+OK\r\n:1\r\n", RLOCK_E_PROTOCOL}, /* two replies to one request */
        {true, "*3\r\n$6\r\nmaster\r\n:9\r\n*0\r\n", RLOCK_PENDING},
        {true, "-NOPERM no\r\n", RLOCK_PENDING},
        {true, "*2\r\n$5\r\nslave\r\n$1\r\nh\r\n", RLOCK_E_SERVER},
        {true, "*2\r\n$8\r\nsentinel\r\n*0\r\n", RLOCK_E_SERVER},
        {true, "+OK\r\n", RLOCK_E_PROTOCOL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool is_role = rows[i].must_be_primary;
        int fd;

        open_conn(peer_address, NULL);
        conn_configure(&conn, &(struct conn_settings){.password = is_role ? NULL : "pw",
                                                      .must_be_primary = is_role});
        is_int(ask("PING"), RLOCK_PENDING);
        step(A_WHILE_MS);
        fd = peer_accept();
        ok(peer_hears(fd, is_role ? "*1\r\n$4\r\nROLE\r\n" : "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n") &&
               peer_hears_nothing(fd),
           "AUTH, with the password alone, or ROLE is sent alone");
        peer_say(fd, rows[i].says);
        okf(step(A_WHILE_MS) == rows[i].st, "the status after the reply is right: %s",
            rows[i].says);
        if (rows[i].st == RLOCK_OK)
            ok(resp_error(reply) != NULL, "conn_step() returns the error reply");
        if (rows[i].st == RLOCK_PENDING)
            ok(peer_hears(fd, PING));
        conn_abandon(&conn, NULL);
        ok(peer_hears_the_end(fd), "nothing else is sent");
        close_conn(fd);
    }
}

/*
 * The server reads the request, sends `says`, and may close; the request must end in `st`. A
 * request of several commands has one reply for each. A server that refuses all of them may send
 * one error and close the connection: that error is the reply.
 */
static void test_endings(void)
{
    static char endless[65 * 1024] = "+"; /* a reply may have 64 KiB */
    static const struct {
        const char *says;
        size_t n_replies; /* that the request has */
        bool closes;
        enum rlock_status st;
    } rows[] = {
        {"", 1, true, RLOCK_E_UNREACHABLE},
        {"$5\r\nhel", 1, true, RLOCK_E_UNREACHABLE},
        {"-ERR max number of clients reached\r\n", 1, true, RLOCK_OK},
        {":1\r\n:2\r\n", 1, false, RLOCK_E_PROTOCOL},
        {":1\r\n:", 1, false, RLOCK_E_PROTOCOL},
        {"nonsense\r\n", 1, false, RLOCK_E_PROTOCOL},
        {endless, 1, false, RLOCK_E_PROTOCOL},
        {"-NOAUTH Authentication required.\r\n", 3, true, RLOCK_OK},
        {"-LOADING\r\n-LOADING\r\n", 3, true, RLOCK_E_UNREACHABLE},
        {"+OK\r\n", 3, true, RLOCK_E_UNREACHABLE},
        {"", 3, true, RLOCK_E_UNREACHABLE},
    };

    memset(endless + 1, 'x', sizeof endless - 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = open_and_ping();

        if (rows[i].n_replies > 1)
            conn_expect_replies(&conn, rows[i].n_replies);
        peer_say(fd, rows[i].says);
        if (rows[i].n_replies > 1)
            is_int(step(A_WHILE_MS), RLOCK_PENDING, "the other replies may follow");
        if (rows[i].closes)
            shutdown(fd, SHUT_RDWR);
        okf(step(PATIENCE_MS) == rows[i].st, "of %zu replies the server sends \"%s\"%s: status %d",
            rows[i].n_replies, rows[i].says, rows[i].closes ? " and closes" : "", (int)rows[i].st);
        if (rows[i].st == RLOCK_OK)
            ok(resp_error(reply) != NULL, "conn_step() returns the error");
        else
            ok(conn_fd(&conn) < 0 && peer_hears_the_end(fd), "the connection is closed");
        if (rows[i].st == RLOCK_E_PROTOCOL)
            okf(fault.sys == 0, "a malformed reply is no system's error: %s", fault.text);
        close_conn(fd);
    }
}

/*
 * If bytes came, or the connection ended, between two requests, the second request must be sent by
 * a new connection.
 */
static void test_early_bytes(void)
{
    static const char *const rows[] = {":2\r\n", "$", "+OK\r\n+OK\r\n", NULL};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int old = open_and_ping();
        int fresh;

        peer_say(old, ONE);
        ok(reads_one(), "the first request is answered");
        if (rows[i] != NULL)
            peer_say(old, rows[i]);
        else
            shutdown(old, SHUT_RDWR);
        poll(&(struct pollfd){.fd = conn_fd(&conn), .events = POLLIN}, 1, PATIENCE_MS);
        okf(ask("PING") == RLOCK_PENDING,
            "after the first reply the server sends %s, and the next request is started",
            rows[i] != NULL ? rows[i] : "the end");
        fresh = peer_accept();
        ok(step(A_WHILE_MS) == RLOCK_PENDING && peer_hears(fresh, PING));
        ok(peer_hears_the_end(old), "the old connection is closed");
        peer_say(fresh, ONE);
        ok(reads_one(), "the reply on the new connection is read");
        close(old);
        close_conn(fresh);
    }
}

/* ---- tests of conn_abandon() ---- */

static void test_abandon(void)
{
    struct request undo;
    struct request script;
    char *big;
    bool is_clean = true;
    int small = 4096;
    ssize_t n;
    int fd;

    request_begin(&undo, "UNDO");
    request_begin(&script, "EVALSHA");
    request_add(&script, "5d41");
    script.script = "return 1";
    open_conn(peer_address, NULL);
    (void)!conn_start_request(&conn, CONN_ASKING, PING, strlen(PING),
                              rlock_clock_ms() + PATIENCE_MS, NULL);
    (void)!step(A_WHILE_MS);
    fd = peer_accept();
    ok(conn_abandon(&conn, &script) &&
       peer_hears(fd, "*1\r\n$6\r\nASKING\r\n*1\r\n$4\r\nPING\r\n"
                      "*1\r\n$6\r\nASKING\r\n*2\r\n$7\r\nEVALSHA\r\n$4\r\n5d41\r\n"
                      "*1\r\n$6\r\nASKING\r\n*2\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n") &&
       peer_hears_the_end(fd));
    close_conn(fd);

    fd = open_and_ask(peer_address, "pw");
    ok(peer_hears(fd, "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"));
    ok(!conn_abandon(&conn, &undo), "conn_abandon() tells that it has sent no undo");
    ok(peer_hears_the_end(fd), "an abandoned request that was not sent has no undo");
    close_conn(fd);

    big = calloc(1, 8u << 20);
    if (big == NULL)
        return;
    memset(big, 'x', (8u << 20) - 1);
    fd = open_and_ping();
    peer_say(fd, ONE);
    ok(reads_one(), "a first request is answered");
    setsockopt(conn.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    ok(ask(big) == RLOCK_PENDING && step(A_WHILE_MS) == RLOCK_PENDING &&
       conn.sent_bytes < conn.request_bytes);
    ok(!conn_abandon(&conn, &undo), "conn_abandon() tells that it has sent no undo");
    while ((n = recv(fd, big, 1 << 20, 0)) > 0)
        is_clean = is_clean && memchr(big, 'U', (size_t)n) == NULL;
    ok(is_clean, "an abandoned request that was sent in part has no undo");
    free(big);
    close_conn(fd);
}

/* The server sends bytes before it has got the request. Only an error reply is accepted then. */
static void test_early(void)
{
    int fd;

    open_conn(peer_address, NULL);
    (void)!ask("PING");
    fd = peer_accept(); /* 200 ms later, as nothing was sent */
    peer_say(fd, "-DENIED no\r\n");
    shutdown(fd, SHUT_WR);
    ok(step(PATIENCE_MS) == RLOCK_OK && resp_error(reply) != NULL);
    conn_abandon(&conn, NULL);
    close_conn(fd);

    open_conn(peer_address, NULL);
    (void)!ask("PING");
    fd = peer_accept();
    peer_say(fd, ONE);
    poll(&(struct pollfd){.fd = conn_fd(&conn), .events = POLLIN}, 1, PATIENCE_MS);
    is_int(step(PATIENCE_MS), RLOCK_E_PROTOCOL);
    close_conn(fd);
}

/* ---- secrets in freed memory ---- */

/* The program is linked with --wrap=free, so each free() of the library calls __wrap_free(). */
void __real_free(void *block);
void __wrap_free(void *block);

static int n_frees_with_secret;

void __wrap_free(void *block)
{
    if (block != NULL && memmem(block, malloc_usable_size(block), SECRET, strlen(SECRET)) != NULL)
        n_frees_with_secret++;
    __real_free(block);
}

static void test_secrets_are_cleared(void)
{
    struct member member;
    struct request undo;
    int fd;

    request_begin(&undo, "UNDO");
    request_add(&undo, SECRET);
    open_conn(peer_address, SECRET);
    (void)!conn_start_request(&conn, CONN_CLUSTER_NODES, "*1\r\n$6\r\n" SECRET "\r\n",
                              strlen("*1\r\n$6\r\n" SECRET "\r\n"), rlock_clock_ms() + PATIENCE_MS,
                              NULL);
    (void)!step(A_WHILE_MS);
    fd = peer_accept();
    peer_say(fd, "+OK\r\n");
    (void)!step(A_WHILE_MS);
    conn_abandon(&conn, &undo);
    ok(peer_hears(fd, "*2\r\n$4\r\nAUTH\r\n$6\r\n" SECRET "\r\n*2\r\n$7\r\nCLUSTER\r\n"
                      "$5\r\nNODES\r\n*1\r\n$6\r\n" SECRET "\r\n*2\r\n$4\r\nUNDO\r\n$6\r\n" SECRET
                      "\r\n"));
    close_conn(fd);
    is_int(n_frees_with_secret, 0);

    n_frees_with_secret = 0;
    if (ok(member_open(&member, peer_address, NULL, NULL, NULL) == RLOCK_OK)) {
        member_ask(&member, &undo, NULL,
                   (struct member_limits){.connect_deadline_ms = rlock_clock_ms() + PATIENCE_MS,
                                          .reply_ms = PATIENCE_MS});
        member_close(&member);
    }
    is_int(n_frees_with_secret, 0, "a member frees no memory that still contains the token");

    n_frees_with_secret = 0;
    is_int(url_parse(&url, "redis://:" SECRET "%zz@host", NULL), RLOCK_E_CONFIG);
    is_int(n_frees_with_secret, 0, "url_parse() frees no memory that still contains the password");
}

int main(void)
{
    if (!ok(peer_open(), "the test listens"))
        return done_testing();
    RUN_ALL(test_setup, test_setup_replies, test_endings, test_early_bytes, test_abandon,
            test_early, test_secrets_are_cleared);
    peer_close();
    return done_testing();
}
