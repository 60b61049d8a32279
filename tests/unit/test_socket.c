/* SPDX-License-Identifier: MIT */
/* test_socket: connections by address, host name and path, and addresses where nothing listens. */
#include "base/clock.h"
#include "fds.h"
#include "peer.h"
#include "tap.h"
#include "wire/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/un.h>

/* The connector of the test that runs, and its URL. */
static struct connector connector;
static struct url url;

/* Connects within `ms`: steps until the socket is connected, or connecting has failed. */
static enum rlock_status connect_to(int64_t ms, int *fd, struct rlock_error *err)
{
    struct rlock_deadline deadline = deadline_in((struct rlock_deadline){RLOCK_NEVER, -1}, ms);
    enum rlock_status st = connector_start(&connector, deadline.at_ms, err);

    while (st == RLOCK_PENDING) {
        struct pollfd look = {.fd = connector_fd(&connector),
                              .events = connector_events(&connector)};

        poll(&look, 1, deadline_poll_ms(deadline_at(deadline, connector_wake_ms(&connector))));
        st = connector_step(&connector, fd, err);
        if (deadline_has_passed(deadline))
            break;
    }
    return st;
}

/*
 * Does the kernel end this connection at the connector's deadline, if the server confirms nothing?
 * A Unix socket needs no such time.
 */
static bool ends_at_deadline(int fd)
{
    unsigned ms = 0;
    socklen_t size = sizeof ms;

    return getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &size) != 0 ||
           (ms > 0 && ms <= PATIENCE_MS);
}

/* Prepares a connector to the server at this URL. */
static bool begin(const char *text)
{
    if (!okf(url_parse(&url, text, NULL) == RLOCK_OK, "the URL %s is parsed", text))
        return false;
    connector_init(&connector, &url);
    return true;
}

static void end(void)
{
    connector_fini(&connector);
    url_fini(&url);
}

/* Ends a connection. The kernel passes it to the server only together with the first bytes. */
static void leave(int *fd)
{
    if (*fd >= 0) {
        peer_say(*fd, "x");
        close(peer_accept());
    }
    socket_reset(fd);
}

/* Makes the address of a numeric host and a port. */
static struct addresses address_of(const char *host, const char *port)
{
    struct addresses made = {.n = 0};

    is_int(resolve_numeric(host, port, &made), RLOCK_OK, host);
    return made;
}

static void test_reached(const char *text)
{
    int fd = -1;

    need(begin(text));
    for (int round = 0; round < 2; round++) {
        int peer;

        is_int(connect_to(PATIENCE_MS, &fd, NULL), RLOCK_OK, "the connector connects");
        peer_say(fd, "x");
        peer = peer_accept();
        ok((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
        ok(ends_at_deadline(fd), "the kernel ends a dead connection at the deadline");
        ok(connector.addresses.n > 0, "the address is kept for the next connection");
        socket_reset(&fd);
        ok(peer_hears(peer, "x") && peer_hears_the_end(peer), "socket_reset() ends the connection");
        close(peer);
    }
    end();
}

/*
 * The kernel confirms a connection together with the first request, so the server accepts the
 * connection when the request is there. If nothing is sent, the kernel confirms after 200 ms. On a
 * busy machine that time may have passed before this test looks, so the test tries ten times.
 */
static void test_accepted_with_request(void)
{
    bool waits = false;

    need(begin(peer_address));
    for (int tries = 0; tries < 10 && !waits; tries++) {
        struct pollfd listener = {.fd = peer_listener, .events = POLLIN};
        int fd = -1;

        if (connect_to(PATIENCE_MS, &fd, NULL) != RLOCK_OK)
            break;
        waits = poll(&listener, 1, 0) == 0;
        leave(&fd);
    }
    ok(waits, "the server accepts no connection before there is a request");
    end();
}

/*
 * A caller may begin a request with a later deadline while the connector still connects. If the
 * connector asked to be woken at its own deadline, which has passed then, the caller would never
 * sleep.
 */
static void test_passed_deadline(void)
{
    int fd = -1;

    need(begin(peer_address));
    if (connector_start(&connector, rlock_clock_ms() - 1, NULL) == RLOCK_PENDING)
        ok(connector_wake_ms(&connector) > rlock_clock_ms());
    if (connector_step(&connector, &fd, NULL) == RLOCK_OK)
        leave(&fd);
    end();
}

static void test_nowhere(void)
{
    static char long_name[400] = "redis://";
    char nobody[64];
    const struct {
        const char *url;
        enum rlock_status st;
        const char *text;
    } rows[] = {{nobody, RLOCK_E_UNREACHABLE, "Connection refused"},
                {"unix:///nowhere/at/all", RLOCK_E_UNREACHABLE, ""},
                {long_name, RLOCK_E_CONFIG, ""}};
    struct rlock_error err;
    int fd = -1;

    close(server_listen(nobody));
    memset(long_name + 8, 'x', sizeof long_name - 9);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        need(begin(rows[i].url));
        okf(connect_to(PATIENCE_MS, &fd, &err) == rows[i].st && fd == -1 &&
                strstr(err.text, rows[i].text) != NULL,
            "nothing listens at %s: %s", rows[i].url, err.text);
        end();
    }
}

/* Each connection looks the name up again; earlier addresses are used only if the lookup fails. */
static void test_moved(void)
{
    const char *port = strrchr(peer_address, ':') + 1;
    int fd = -1;
    char text[80];

    snprintf(text, sizeof text, "redis://localhost:%s", port);
    need(begin(text));
    connector.addresses = address_of("192.0.2.1", "6379");
    connector.host_is_name = true;
    is_int(connect_to(PATIENCE_MS, &fd, NULL), RLOCK_OK);
    leave(&fd);
    end();
    need(begin("redis://name.invalid"));
    connector.host_is_name = true;
    connector.addresses = address_of("127.0.0.1", port);
    is_int(connect_to(PATIENCE_MS, &fd, NULL), RLOCK_OK);
    leave(&fd);
    end();
}

/* The caller abandons a lookup that is running, as a caller does when its deadline has passed. */
static void test_given_up(void)
{
    need(begin("redis://name.invalid"));
    for (int round = 0; round < 20; round++) {
        (void)!connector_start(&connector, rlock_clock_ms() + PATIENCE_MS, NULL);
        if (round % 2 == 0)
            connector_abandon(&connector);
    }
    end();
    ok(true, "20 running lookups are abandoned without a crash");
}

/*
 * A listener with a full queue: the kernel drops further SYNs, so connecting gets no answer at all,
 * as from a machine that is switched off. deaf_open() sets `address` to it.
 */
struct deaf {
    int fd[3];
};

static struct deaf deaf_open(struct addresses *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    char text[64];
    struct deaf deaf = {.fd = {server_listen(text), -1, -1}};

    listen(deaf.fd[0], 0);
    *address = (struct addresses){.n = 0};
    if (url_parse(&url, text, NULL) != RLOCK_OK)
        return deaf;
    resolve_numeric(url.host, url.port, address);
    memcpy(&at, &address->address[0].storage, sizeof at);
    for (size_t i = 1; i < 3; i++) {
        deaf.fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(deaf.fd[i], (struct sockaddr *)&at, sizeof at);
    }
    url_fini(&url);
    return deaf;
}

static void deaf_close(const struct deaf *deaf)
{
    for (size_t i = 0; i < 3; i++)
        close(deaf->fd[i]);
}

/*
 * Connects, and returns how many ms that took; -1: it failed. A connection takes at least 250 ms if
 * it waits for a dead address. As it may take as long on a busy machine, up to ten are made.
 */
static int64_t connect_ms(const struct addresses *first)
{
    int64_t took = 250;
    int fd = -1;

    for (int round = 0; round < 10 && took >= 250; round++) {
        int64_t from = rlock_clock_ms();

        if (first != NULL)
            connector.addresses = *first;
        if (connect_to(3 * PATIENCE_MS, &fd, NULL) != RLOCK_OK)
            return -1;
        took = rlock_clock_ms() - from;
        leave(&fd);
    }
    return took;
}

/* Two dead addresses before a live one cost 250 ms each, however far the deadline is. */
static void test_silent(void)
{
    int fd = -1;
    struct addresses dead[2];
    struct deaf deaf[2];
    int64_t from;
    int64_t took;

    for (int i = 0; i < 2; i++)
        deaf[i] = deaf_open(&dead[i]);
    need(begin(peer_address));
    connector.addresses = address_of(url.host, url.port);
    connector.addresses.address[2] = connector.addresses.address[0];
    connector.addresses.address[0] = dead[0].address[0];
    connector.addresses.address[1] = dead[1].address[0];
    connector.addresses.n = 3;
    from = rlock_clock_ms();
    is_int(connect_to(3 * PATIENCE_MS, &fd, NULL), RLOCK_OK);
    took = rlock_clock_ms() - from;
    okf(took >= 400 && took < 2 * PATIENCE_MS, "each dead address costs 250 ms: %d ms", (int)took);
    leave(&fd);
    took = connect_ms(NULL);
    okf(took >= 0 && took < 250 && connector.addresses.n == 3,
        "further connections try the live address first: %d ms", (int)took);
    end();
    for (int i = 0; i < 2; i++)
        deaf_close(&deaf[i]);
}

/* After an address that refuses the connection the next one is tried at once. */
static void test_refused(void)
{
    struct addresses both;
    char text[64];
    int64_t took;

    close(server_listen(text));
    need(begin(peer_address));
    both = address_of(url.host, strrchr(text, ':') + 1);
    both.address[1] = address_of(url.host, url.port).address[0];
    both.n = 2;
    took = connect_ms(&both);
    okf(took >= 0 && took < 250, "a refused connection does not cost 250 ms: %d ms", (int)took);
    end();
}

int __real_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* A pipe: getaddrinfo() of hanging.invalid waits until the pipe's writing end is closed. */
static int hanging[2];

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **list)
{
    char byte;

    if (strcmp(host, "hanging.invalid") == 0)
        (void)!read(hanging[0], &byte, 1);
    return __real_getaddrinfo(host, port, hints, list);
}

/*
 * A URL may have a second name of its host, the alias. The connector uses the alias if the first
 * name refuses the connection, is unknown, or its lookup hangs.
 */
static void test_alias(void)
{
    static const struct {
        const char *host, *alias;
    } rows[] = {{"127.0.0.2", "localhost"},
                {"name.invalid", "127.0.0.1"},
                {"127.0.0.1", "name.invalid"},
                {"hanging.invalid", "127.0.0.1"},
                {"hanging.invalid", "localhost"}};
    int fd = -1;
    struct url peer;

    if (url_parse(&peer, peer_address, NULL) != RLOCK_OK || pipe(hanging) != 0)
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (url_at(&url, &peer, rows[i].host, rows[i].alias, peer.port, NULL) != RLOCK_OK)
            continue;
        connector_init(&connector, &url);
        okf(connect_to(PATIENCE_MS, &fd, NULL) == RLOCK_OK, "host %s, alias %s: connected",
            rows[i].host, rows[i].alias);
        leave(&fd);
        end();
    }
    close(hanging[1]);
    url_fini(&peer);
}

/*
 * After half of the time the connector abandons the lookup, and tries the address of the earlier
 * connection. The thread that looks the name up then closes the descriptor of the lookup.
 */
static void test_late_lookup(void)
{
    int64_t deadline_ms;
    int before = count_fds();
    int fd = -1;

    need(pipe(hanging) == 0 && begin("redis://hanging.invalid"));
    connector.host_is_name = true;
    connector.addresses = address_of("127.0.0.1", strrchr(peer_address, ':') + 1);
    is_int(connect_to(2000, &fd, NULL), RLOCK_OK);
    leave(&fd);
    end();
    close(hanging[1]);
    deadline_ms = rlock_clock_ms() + PATIENCE_MS;
    while (count_fds() > before + 1 && rlock_clock_ms() < deadline_ms)
        poll(NULL, 0, 10);
    /* hanging[0] stays open: TSan sees no order between its close here and the thread's read */
    is_int(count_fds(), before + 1, "a lookup that was abandoned leaves no descriptor open");
}

static void test_families(void)
{
    struct sockaddr_in6 v6[3] = {{.sin6_family = AF_INET6}};
    struct sockaddr_in v4[2] = {{.sin_family = AF_INET}};
    struct addrinfo list[5];
    struct addresses kept = {.n = 0};
    char order[6] = "";

    for (size_t i = 0; i < 5; i++) {
        v6[i % 3].sin6_family = AF_INET6;
        v4[i % 2].sin_family = AF_INET;
        list[i] = (struct addrinfo){.ai_family = i < 3 ? AF_INET6 : AF_INET,
                                    .ai_addrlen = i < 3 ? sizeof v6[0] : sizeof v4[0],
                                    .ai_addr = i < 3 ? (struct sockaddr *)&v6[i]
                                                     : (struct sockaddr *)&v4[i - 3],
                                    .ai_next = i < 4 ? &list[i + 1] : NULL};
    }
    resolve_interleave(list, &kept);
    for (size_t i = 0; i < kept.n && i < 5; i++)
        order[i] = kept.address[i].storage.ss_family == AF_INET6 ? '6' : '4';
    is_str(order, "64646", "IPv6 and IPv4 alternate");
    kept.n = 0;
    resolve_interleave(NULL, &kept);
    is_int((int64_t)kept.n, 0, "an empty list gives no addresses");
}

/* Replaces the peer's listener by one on a Unix socket. */
static bool listen_at(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    peer_close();
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    peer_listener = socket(AF_UNIX, SOCK_STREAM, 0);
    return peer_listener >= 0 && bind(peer_listener, (struct sockaddr *)&at, sizeof at) == 0 &&
           listen(peer_listener, 16) == 0;
}

int main(void)
{
    char folder[] = "/tmp/rlock-socket.XXXXXX";
    char named[64];
    char path[64];
    char text[80];

    if (!ok(peer_open() && mkdtemp(folder) != NULL))
        return done_testing();
    snprintf(named, sizeof named, "redis://localhost:%s", strrchr(peer_address, ':') + 1);
    RUN(test_late_lookup()); /* first: it counts descriptors, and other lookups end late */
    RUN(test_reached(peer_address));
    RUN(test_reached(named));
    RUN_ALL(test_accepted_with_request, test_passed_deadline, test_nowhere, test_moved,
            test_given_up, test_silent, test_refused, test_alias, test_families);
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(text, sizeof text, "unix://%s", path);
    if (ok(listen_at(path), "the test listens on a Unix socket"))
        RUN(test_reached(text));
    peer_close();
    unlink(path);
    rmdir(folder);
    return done_testing();
}
