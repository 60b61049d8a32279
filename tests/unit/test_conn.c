/* SPDX-License-Identifier: MIT */
/*
 * test_node: one connection and what a server, or what stands in for one, can do to it.
 *
 * Nothing in a node blocks, so the test is its own server: it plays both ends in turn.
 */
#include "peer.h"
#include "quorum/member.h"
#include "tap.h"

#include <malloc.h>

#define SECRET "5ec3e7"
#define PING "*1\r\n$4\r\nPING\r\n"
#define ONE ":1\r\n"

/* ---- the node's end ---- */

static void open_node(struct conn *conn, struct url *url, const char *text, const char *password)
{
    if (url_parse(url, text, NULL) != RLOCK_OK)
        *url = (struct url){.kind = URL_TCP};
    conn_init(conn, url);
    conn_configure(conn, &(struct conn_settings){.password = password});
}

static void close_node(struct conn *conn, struct url *url, int fd)
{
    conn_fini(conn);
    url_fini(url);
    if (fd >= 0)
        close(fd);
}

static enum rlock_status ask(struct conn *conn, const char *word)
{
    struct request request = {.n = 0};
    enum rlock_status st;
    char *bytes = NULL;
    size_t n = 0;

    request_add(&request, word);
    st = request_encode(&request, &bytes, &n, NULL);
    if (st == RLOCK_OK)
        st = conn_start_request(conn, CONN_NO_PREAMBLE, bytes, n, rlock_clock_ms() + PATIENCE_MS,
                                NULL);
    free(bytes);
    return st;
}

/* Steps until there is an answer, or until nothing has happened for so long. */
static enum rlock_status step(struct conn *conn, const struct resp_value **reply, int patience_ms)
{
    enum rlock_status st = conn_step(conn, reply, NULL);

    while (st == RLOCK_PENDING) {
        struct pollfd look = {.fd = conn_fd(conn), .events = conn_events(conn)};

        if (poll(&look, 1, patience_ms) == 0)
            break;
        st = conn_step(conn, reply, NULL);
    }
    return st;
}

static bool answers_one(struct conn *conn)
{
    const struct resp_value *reply = NULL;

    return step(conn, &reply, PATIENCE_MS) == RLOCK_OK && resp_int(reply) == 1;
}

/* A node that has asked PING on a connection that stands; returns the server's end of it. */
static int asked(struct conn *conn, struct url *url)
{
    const struct resp_value *reply;
    int fd;

    open_node(conn, url, peer_address, NULL);
    if (ask(conn, "PING") != RLOCK_PENDING)
        return -1;
    fd = peer_accept();
    return step(conn, &reply, A_WHILE_MS) == RLOCK_PENDING && peer_hears(fd, PING) ? fd : -1;
}

/* ---- requests and replies ---- */

static void test_setup(void)
{
    const struct resp_value *reply = NULL;
    char text[128];
    struct conn conn;
    struct url url;
    int fd;

    snprintf(text, sizeof text, "redis://us:from%%20url@%s/3", peer_address + strlen("redis://"));
    open_node(&conn, &url, text, "from elsewhere");
    is_int(ask(&conn, "PING"), RLOCK_PENDING, "a node is asked");
    fd = peer_accept();
    is_int(step(&conn, &reply, A_WHILE_MS), RLOCK_PENDING, "it greets first");
    ok(peer_hears(fd,
                  "*3\r\n$4\r\nAUTH\r\n$2\r\nus\r\n$8\r\nfrom url\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3"
                  "\r\n"),
       "with the login of its URL and the database");
    peer_say(fd, "+OK\r\n+O");
    is_int(step(&conn, &reply, A_WHILE_MS), RLOCK_PENDING, "and waits for each answer");
    ok(peer_hears_nothing(fd), "nothing is asked before AUTH and SELECT were answered");
    peer_say(fd, "K\r\n");
    is_int(step(&conn, &reply, A_WHILE_MS), RLOCK_PENDING, "then it asks");
    ok(peer_hears(fd, PING), "what was to be asked");
    peer_say(fd, ONE);
    ok(answers_one(&conn), "and has the answer");
    ok(ask(&conn, "PING") == RLOCK_PENDING && step(&conn, &reply, A_WHILE_MS) == RLOCK_PENDING &&
           peer_hears(fd, PING),
       "a standing connection needs no AUTH");
    close_node(&conn, &url, fd);
}

/* Who is named is who asks, also without a password: else it would be the default user. */
static void test_no_password(void)
{
    const struct resp_value *reply = NULL;
    char text[128];
    struct conn conn;
    struct url url;
    int fd;

    snprintf(text, sizeof text, "redis://us@%s", peer_address + strlen("redis://"));
    open_node(&conn, &url, text, NULL);
    is_int(ask(&conn, "PING"), RLOCK_PENDING, "a node with a user and no password");
    fd = peer_accept();
    is_int(step(&conn, &reply, A_WHILE_MS), RLOCK_PENDING, "greets as that user");
    ok(peer_hears(fd, "*3\r\n$4\r\nAUTH\r\n$2\r\nus\r\n$0\r\n\r\n") && peer_hears_nothing(fd),
       "with an empty one");
    close_node(&conn, &url, fd);
}

static void test_bad_setup(void)
{
    static const struct {
        const char *says;
        enum rlock_status st;
    } rows[] = {
        {"-WRONGPASS no\r\n", RLOCK_OK}, /* answered: by a refusal */
        {"-NOPERM no\r\n", RLOCK_OK},
        {":1\r\n", RLOCK_E_PROTOCOL},
        {"$2\r\nOK\r\n", RLOCK_E_PROTOCOL},
        {"+QUEUED\r\n", RLOCK_E_PROTOCOL},
        {"HTTP/1.1 400 Bad Request\r\n\r\n", RLOCK_E_PROTOCOL},
        {"+OK\r\n:1\r\n", RLOCK_E_PROTOCOL}, /* the answer to nothing that was asked */
    };
    const struct resp_value *reply = NULL;
    struct conn conn;
    struct url url;
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd;

        open_node(&conn, &url, peer_address, "pw");
        (void)!ask(&conn, "PING");
        fd = peer_accept();
        (void)!step(&conn, &reply, A_WHILE_MS);
        ok(peer_hears(fd, "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"), "a password without a user");
        peer_say(fd, rows[i].says);
        okf(step(&conn, &reply, A_WHILE_MS) == rows[i].st, "AUTH or SELECT answered %s",
            rows[i].says);
        if (rows[i].st == RLOCK_OK)
            ok(resp_error(reply) != NULL, "is the refusal");
        conn_abandon(&conn, NULL);
        ok(peer_hears_the_end(fd), "and nothing is asked of somebody who did not let us in");
        close_node(&conn, &url, fd);
    }
}

static void test_pieces(void)
{
    static const char grant[] = GRANT;
    const struct resp_value *reply = NULL;
    struct conn conn;
    struct url url;
    int fd = asked(&conn, &url);
    bool is_pending = true;
    char piece[2] = "";
    size_t i;

    for (i = 0; i < sizeof grant - 2; i++) {
        piece[0] = grant[i];
        peer_say(fd, piece);
        is_pending = is_pending && step(&conn, &reply, 1) == RLOCK_PENDING;
    }
    ok(is_pending, "a reply in pieces is none");
    peer_say(fd, "\n");
    ok(step(&conn, &reply, PATIENCE_MS) == RLOCK_OK && resp_array_count(reply) == 3,
       "until its last byte is there");
    close_node(&conn, &url, fd);
}

/* What the server does after the request, and what has become of the request then. */
static void test_endings(void)
{
    static const struct {
        const char *says;
        bool closes;
        enum rlock_status st;
    } rows[] = {
        {"", true, RLOCK_E_UNREACHABLE},
        {"$5\r\nhel", true, RLOCK_E_UNREACHABLE},
        {"*2\r\n:1\r\n", true, RLOCK_E_UNREACHABLE},
        {"-ERR max number of clients reached\r\n", true, RLOCK_OK},
        {":1\r\n", true, RLOCK_OK},
        {":1\r\n:2\r\n", false, RLOCK_E_PROTOCOL},
        {":1\r\n:", false, RLOCK_E_PROTOCOL},
        {"*1000\r\n", false, RLOCK_E_PROTOCOL},
        {"*-2\r\n", false, RLOCK_E_PROTOCOL},
        {"nonsense\r\n", false, RLOCK_E_PROTOCOL},
    };
    const struct resp_value *reply = NULL;
    struct conn conn;
    struct url url;
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = asked(&conn, &url);

        peer_say(fd, rows[i].says);
        if (rows[i].closes)
            shutdown(fd, SHUT_RDWR);
        okf(step(&conn, &reply, PATIENCE_MS) == rows[i].st, "a server says \"%s\"%s", rows[i].says,
            rows[i].closes ? " and closes" : "");
        if (rows[i].st != RLOCK_OK)
            ok(conn_fd(&conn) < 0 && peer_hears_the_end(fd),
               "that was the last on this connection");
        close_node(&conn, &url, fd);
    }
}

/* Whatever came in between two requests: the next one gets a connection of its own. */
/* Where a primary is needed, its role comes before anything that could be executed. */
static void test_role(void)
{
    static const struct {
        const char *says;
        enum rlock_status st;
    } roles[] = {{"*3\r\n$6\r\nmaster\r\n:9\r\n*0\r\n", RLOCK_PENDING},
                 {"-NOPERM no\r\n", RLOCK_PENDING},
                 {"*2\r\n$5\r\nslave\r\n$1\r\nh\r\n", RLOCK_E_SERVER},
                 {"*2\r\n$8\r\nsentinel\r\n*0\r\n", RLOCK_E_SERVER},
                 {"+OK\r\n", RLOCK_E_PROTOCOL}};
    const struct resp_value *reply;
    struct conn conn;
    struct url url;
    size_t i;
    int fd;

    for (i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        open_node(&conn, &url, peer_address, NULL);
        conn_configure(&conn, &(struct conn_settings){.must_be_primary = true});
        is_int(ask(&conn, "PING"), RLOCK_PENDING, "a node that must be a primary");
        fd = peer_accept();
        step(&conn, &reply, A_WHILE_MS);
        ok(peer_hears(fd, "*1\r\n$4\r\nROLE\r\n") && peer_hears_nothing(fd), "is asked if it is");
        peer_say(fd, roles[i].says);
        okf(step(&conn, &reply, A_WHILE_MS) == roles[i].st, "ROLE: %s", roles[i].says);
        ok(roles[i].st == RLOCK_PENDING ? peer_hears(fd, PING) : peer_hears_the_end(fd),
           "and what else only if that may be");
        close_node(&conn, &url, fd);
    }
}

static void test_unasked(void)
{
    static const char *const rows[] = {":2\r\n", "$", "+OK\r\n+OK\r\n", NULL};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct resp_value *reply = NULL;
        struct conn conn;
        struct url url;
        int old = asked(&conn, &url);
        int fresh;

        peer_say(old, ONE);
        ok(answers_one(&conn), "a good answer");
        if (rows[i] != NULL)
            peer_say(old, rows[i]);
        else
            shutdown(old, SHUT_RDWR);
        poll(&(struct pollfd){.fd = conn_fd(&conn), .events = POLLIN}, 1, PATIENCE_MS);
        okf(ask(&conn, "PING") == RLOCK_PENDING, "then unasked: %s",
            rows[i] != NULL ? rows[i] : "the end");
        fresh = peer_accept();
        ok(step(&conn, &reply, A_WHILE_MS) == RLOCK_PENDING && peer_hears(fresh, PING),
           "the next request goes out on a fresh connection");
        ok(peer_hears_the_end(old), "and the old one is closed");
        peer_say(fresh, ONE);
        ok(answers_one(&conn), "so that the answer is the answer to it");
        close(old);
        close_node(&conn, &url, fresh);
    }
}

static void test_endless(void)
{
    const struct resp_value *reply = NULL;
    struct conn conn;
    struct url url;
    int fd = asked(&conn, &url);
    enum rlock_status st = RLOCK_PENDING;
    char noise[4097];
    int fed = 0;

    memset(noise, 'x', sizeof noise - 1);
    noise[sizeof noise - 1] = '\0';
    peer_say(fd, "+");
    while (st == RLOCK_PENDING && fed++ < 100) {
        peer_say(fd, noise);
        st = step(&conn, &reply, A_WHILE_MS);
    }
    is_int(st, RLOCK_E_PROTOCOL, "an endless reply has an end");
    ok(fed <= 17, "after 64 KiB");
    close_node(&conn, &url, fd);
}

/* ---- giving up ---- */

static void test_abandon(void)
{
    const struct resp_value *reply = NULL;
    struct request undo = {.n = 0};
    char *big;
    struct conn conn;
    struct url url;
    bool is_clean = true;
    int small = 4096;
    ssize_t n;
    int fd;

    request_add(&undo, "UNDO");
    fd = asked(&conn, &url);
    conn_abandon(&conn, &undo);
    ok(peer_hears(fd, "*1\r\n$4\r\nUNDO\r\n") && peer_hears_the_end(fd),
       "a request that was sent and is given up has its undo behind it");
    close_node(&conn, &url, fd);

    open_node(&conn, &url, peer_address, "pw");
    (void)!ask(&conn, "PING");
    fd = peer_accept();
    (void)!step(&conn, &reply, A_WHILE_MS);
    ok(peer_hears(fd, "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"),
       "one that still waits for the reply to AUTH");
    conn_abandon(&conn, &undo);
    ok(peer_hears_the_end(fd), "has nothing to undo");
    close_node(&conn, &url, fd);

    big = calloc(1, 8u << 20);
    if (big == NULL)
        return;
    memset(big, 'x', (8u << 20) - 1);
    fd = asked(&conn, &url);
    peer_say(fd, ONE);
    ok(answers_one(&conn), "a connection that stands");
    setsockopt(conn.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    ok(ask(&conn, big) == RLOCK_PENDING && step(&conn, &reply, A_WHILE_MS) == RLOCK_PENDING &&
           conn.sent_bytes < conn.request_bytes,
       "a request that can't be sent whole");
    conn_abandon(&conn, &undo);
    while ((n = recv(fd, big, 1 << 20, 0)) > 0)
        is_clean = is_clean && memchr(big, 'U', (size_t)n) == NULL;
    ok(is_clean, "has no undo behind it");
    free(big);
    close_node(&conn, &url, fd);
}

/* What is said before the request: only a refusal to talk at all is an answer to it. */
static void test_early(void)
{
    const struct resp_value *reply = NULL;
    struct conn conn;
    struct url url;
    int fd;

    open_node(&conn, &url, peer_address, NULL);
    (void)!ask(&conn, "PING");
    fd = peer_accept();
    peer_say(fd, "-DENIED no\r\n");
    shutdown(fd, SHUT_WR);
    ok(step(&conn, &reply, PATIENCE_MS) == RLOCK_OK && resp_error(reply) != NULL,
       "a server that refuses to talk is heard");
    conn_abandon(&conn, NULL);
    close_node(&conn, &url, fd);

    open_node(&conn, &url, peer_address, NULL);
    (void)!ask(&conn, "PING");
    fd = peer_accept();
    peer_say(fd, ONE);
    poll(&(struct pollfd){.fd = conn_fd(&conn), .events = POLLIN}, 1, PATIENCE_MS);
    is_int(step(&conn, &reply, PATIENCE_MS), RLOCK_E_PROTOCOL,
           "an answer that was there before the request is no answer to it");
    close_node(&conn, &url, fd);
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
    const struct resp_value *reply = NULL;
    struct request undo = {.n = 0};
    struct conn conn;
    struct url url;
    int fd;

    request_add(&undo, "UNDO");
    request_add(&undo, SECRET);
    open_node(&conn, &url, peer_address, SECRET);
    (void)!conn_start_request(&conn, CONN_CLUSTER_NODES, NULL, 0, rlock_clock_ms() + PATIENCE_MS,
                              NULL);
    fd = peer_accept();
    (void)!step(&conn, &reply, A_WHILE_MS);
    peer_say(fd, "+OK\r\n");
    (void)!step(&conn, &reply, A_WHILE_MS);
    is_int(conn_append_request(&conn, "*1\r\n$6\r\n" SECRET "\r\n",
                               strlen("*1\r\n$6\r\n" SECRET "\r\n"), NULL),
           RLOCK_PENDING, "a request with a token is appended to CLUSTER NODES");
    (void)!step(&conn, &reply, A_WHILE_MS);
    conn_abandon(&conn, &undo);
    ok(peer_hears(fd, "*2\r\n$4\r\nAUTH\r\n$6\r\n" SECRET "\r\n*2\r\n$7\r\nCLUSTER\r\n"
                      "$5\r\nNODES\r\n*1\r\n$6\r\n" SECRET "\r\n*2\r\n$4\r\nUNDO\r\n$6\r\n" SECRET
                      "\r\n"),
       "the connection sends the password, the request and its undo");
    close_node(&conn, &url, fd);
    is_int(n_frees_with_secret, 0, "it frees no memory that still contains one of these");

    n_frees_with_secret = 0;
    is_int(url_parse(&url, "redis://:" SECRET "%zz@host", NULL), RLOCK_E_CONFIG,
           "url_parse() refuses a password with a broken escape");
    is_int(n_frees_with_secret, 0, "it frees no memory that still contains the password");
}

int main(void)
{
    if (!ok(peer_open(), "a place to listen"))
        return done_testing();
    test_setup();
    test_no_password();
    test_bad_setup();
    test_pieces();
    test_endings();
    test_unasked();
    test_role();
    test_endless();
    test_abandon();
    test_early();
    test_secrets_are_cleared();
    peer_close();
    return done_testing();
}
