/* SPDX-License-Identifier: MIT */
/* test_socket: the way to a server, by number, by name and by path, and ways that lead nowhere. */
#include "base/clock.h"
#include "peer.h"
#include "tap.h"
#include "wire/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/un.h>

/* Goes on until there is a connection or a fault. */
static enum rlock_status call(struct dial *dial, int64_t ms, struct stream *stream,
                              struct rlock_error *err)
{
    struct rlock_deadline deadline = deadline_in((struct rlock_deadline){RLOCK_NEVER, -1}, ms);
    enum rlock_status st = dial_start(dial, deadline.at_ms, err);

    while (st == RLOCK_PENDING) {
        struct pollfd look = {.fd = dial_fd(dial), .events = dial_events(dial)};

        poll(&look, 1, deadline_poll_ms(deadline_at(deadline, dial_wake_ms(dial))));
        st = dial_step(dial, stream, err);
        if (deadline_has_passed(deadline))
            break;
    }
    return st;
}

static void test_reached(const char *text, const char *name)
{
    struct stream stream = STREAM_EMPTY;
    struct dial dial;
    struct url url;
    int round;

    if (!is_int(url_parse(&url, text, NULL), RLOCK_OK, name))
        return;
    dial_init(&dial, &url);
    for (round = 0; round < 2; round++) {
        int fd;

        is_int(call(&dial, PATIENCE_MS, &stream, NULL), RLOCK_OK, "leads to the server");
        fd = peer_accept();
        ok((fcntl(stream.fd, F_GETFD) & FD_CLOEXEC) != 0 &&
               (fcntl(stream.fd, F_GETFL) & O_NONBLOCK) != 0,
           "by a connection that never blocks and is no command's business");
        ok(dial.known.n > 0, "the way is remembered");
        stream_reset(&stream);
        ok(peer_hears_the_end(fd), "and given up at once");
        close(fd);
    }
    dial_fini(&dial);
    url_fini(&url);
}

static void test_nowhere(void)
{
    static char long_name[400] = "redis://";
    struct stream stream = STREAM_EMPTY;
    struct rlock_error err;
    struct dial dial;
    struct url url;
    char nobody[64];

    close(server_listen(nobody));
    if (url_parse(&url, nobody, NULL) == RLOCK_OK) {
        dial_init(&dial, &url);
        ok(call(&dial, PATIENCE_MS, &stream, &err) == RLOCK_E_UNREACHABLE &&
               strstr(err.text, "Connection refused") != NULL,
           "where nobody is nobody answers");
        dial_fini(&dial);
        url_fini(&url);
    }
    if (url_parse(&url, "unix:///nowhere/at/all", NULL) == RLOCK_OK) {
        dial_init(&dial, &url);
        is_int(call(&dial, PATIENCE_MS, &stream, NULL), RLOCK_E_UNREACHABLE, "no such socket");
        dial_fini(&dial);
        url_fini(&url);
    }
    memset(long_name + 8, 'x', sizeof long_name - 9);
    if (url_parse(&url, long_name, NULL) == RLOCK_OK) {
        dial_init(&dial, &url);
        is_int(call(&dial, PATIENCE_MS, &stream, NULL), RLOCK_E_CONFIG, "no such name can be");
        dial_fini(&dial);
        url_fini(&url);
    }
    ok(stream.fd == -1, "none of them gives a connection");
}

/* Where a name leads is asked for each call; what it was is of use where nobody knows. */
static void test_moved(void)
{
    struct stream stream = STREAM_EMPTY;
    struct addresses here = {.n = 0};
    char text[80];
    struct dial dial;
    struct url url;

    snprintf(text, sizeof text, "redis://localhost%s", strrchr(peer_address, ':'));
    if (!is_int(url_parse(&url, text, NULL), RLOCK_OK, "a name"))
        return;
    dial_init(&dial, &url);
    ok(resolve_number("127.0.0.1", strrchr(text, ':') + 1, &here) == RLOCK_OK, "its address");
    dial.is_name = resolve_number("192.0.2.1", "6379", &dial.known) == RLOCK_OK;
    is_int(call(&dial, PATIENCE_MS, &stream, NULL), RLOCK_OK, "that led elsewhere is looked up");
    stream_reset(&stream);
    close(peer_accept());
    dial_fini(&dial);
    url_fini(&url);
    if (!is_int(url_parse(&url, "redis://name.invalid", NULL), RLOCK_OK, "a name"))
        return;
    dial_init(&dial, &url);
    dial.is_name = true;
    dial.known = here;
    is_int(call(&dial, PATIENCE_MS, &stream, NULL), RLOCK_OK,
           "where no resolver answers, what was known is called");
    stream_reset(&stream);
    close(peer_accept());
    dial_fini(&dial);
    url_fini(&url);
}

/* A name that is looked up for nobody any more, as when the time is over. */
static void test_given_up(void)
{
    struct dial dial;
    struct url url;
    int round;

    if (!is_int(url_parse(&url, "redis://name.invalid", NULL), RLOCK_OK, "a name"))
        return;
    dial_init(&dial, &url);
    for (round = 0; round < 20; round++) {
        (void)!dial_start(&dial, rlock_clock_ms() + PATIENCE_MS, NULL);
        if (round % 2 == 0)
            dial_stop(&dial);
    }
    dial_fini(&dial);
    url_fini(&url);
    ok(true, "can be given up while it is looked up");
}

/*
 * A listener whose queue is full: the kernel drops what comes, as a machine that is switched off
 * would. Sets `address`; returns what is to be closed in the end.
 */
struct deaf {
    int fd[3];
};

static struct deaf deaf_open(struct addresses *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    char text[64];
    struct deaf deaf = {.fd = {server_listen(text), -1, -1}};
    struct url url;
    size_t i;

    listen(deaf.fd[0], 0);
    *address = (struct addresses){.n = 0};
    if (url_parse(&url, text, NULL) != RLOCK_OK)
        return deaf;
    resolve_number(url.host, url.port, address);
    memcpy(&at, &address->item[0].at, sizeof at);
    for (i = 1; i < 3; i++) {
        deaf.fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(deaf.fd[i], (struct sockaddr *)&at, sizeof at);
    }
    url_fini(&url);
    return deaf;
}

static void deaf_close(const struct deaf *deaf)
{
    size_t i;

    for (i = 0; i < 3; i++)
        close(deaf->fd[i]);
}

/* Two dead addresses ahead of a live one cost half a second, however much time there is. */
static void test_silent(void)
{
    struct stream stream = STREAM_EMPTY;
    struct addresses dead[2];
    struct deaf deaf[2];
    struct dial dial;
    struct url url;
    int64_t from;
    int64_t took;
    int i;

    if (url_parse(&url, peer_address, NULL) != RLOCK_OK)
        return;
    for (i = 0; i < 2; i++)
        deaf[i] = deaf_open(&dead[i]);
    dial_init(&dial, &url);
    ok(resolve_number(url.host, url.port, &dial.known) == RLOCK_OK && dial.known.n == 1, "ours");
    dial.known.item[2] = dial.known.item[0];
    dial.known.item[0] = dead[0].item[0];
    dial.known.item[1] = dead[1].item[0];
    dial.known.n = 3;
    from = rlock_clock_ms();
    is_int(call(&dial, 3 * PATIENCE_MS, &stream, NULL), RLOCK_OK, "behind two that are silent");
    took = rlock_clock_ms() - from;
    okf(took >= 400 && took < 3000, "each costs a quarter of a second: %d ms", (int)took);
    stream_reset(&stream);
    close(peer_accept());
    from = rlock_clock_ms();
    is_int(call(&dial, 3 * PATIENCE_MS, &stream, NULL), RLOCK_OK, "and once more");
    took = rlock_clock_ms() - from;
    okf(took < 250 && dial.known.n == 3, "the one that stood is asked first: %d ms", (int)took);
    stream_reset(&stream);
    close(peer_accept());
    dial_fini(&dial);
    url_fini(&url);
    for (i = 0; i < 2; i++)
        deaf_close(&deaf[i]);
}

/* One that is refused costs nothing at all. */
static void test_refused(void)
{
    struct stream stream = STREAM_EMPTY;
    struct addresses number;
    struct dial dial;
    struct url nobody;
    struct url url;
    char text[64];
    int64_t from;

    close(server_listen(text));
    if (url_parse(&url, peer_address, NULL) != RLOCK_OK ||
        url_parse(&nobody, text, NULL) != RLOCK_OK)
        return;
    dial_init(&dial, &url);
    resolve_number(nobody.host, nobody.port, &dial.known);
    resolve_number(url.host, url.port, &number);
    dial.known.item[1] = number.item[0];
    dial.known.n = 2;
    from = rlock_clock_ms();
    is_int(call(&dial, PATIENCE_MS, &stream, NULL), RLOCK_OK, "behind one that is refused");
    ok(rlock_clock_ms() - from < 250, "is found at once");
    stream_reset(&stream);
    close(peer_accept());
    dial_fini(&dial);
    url_fini(&nobody);
    url_fini(&url);
}

/* The other name of a node counts where the first leads nowhere: refused, silent or unknown. */
static void test_alias(void)
{
    static const char *const hosts[] = {"127.0.0.2", "name.invalid", "127.0.0.1"};
    static const char *const aliases[] = {"localhost", "127.0.0.1", "name.invalid"};
    struct stream stream = STREAM_EMPTY;
    struct dial dial;
    struct url peer;
    struct url url;
    size_t i;

    if (url_parse(&peer, peer_address, NULL) != RLOCK_OK)
        return;
    for (i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        if (url_at(&url, &peer, hosts[i], aliases[i], peer.port, NULL) != RLOCK_OK)
            continue;
        dial_init(&dial, &url);
        okf(call(&dial, PATIENCE_MS, &stream, NULL) == RLOCK_OK, "%s, which is %s", hosts[i],
            aliases[i]);
        close(peer_accept());
        stream_reset(&stream);
        dial_fini(&dial);
        url_fini(&url);
    }
    url_fini(&peer);
}

static void test_families(void)
{
    struct sockaddr_in6 v6[3] = {{.sin6_family = AF_INET6}};
    struct sockaddr_in v4[2] = {{.sin_family = AF_INET}};
    struct addrinfo list[5];
    struct addresses kept = {.n = 0};
    char order[6] = "";
    size_t i;

    for (i = 0; i < 5; i++) {
        v6[i % 3].sin6_family = AF_INET6;
        v4[i % 2].sin_family = AF_INET;
        list[i] = (struct addrinfo){.ai_family = i < 3 ? AF_INET6 : AF_INET,
                                    .ai_addrlen = i < 3 ? sizeof v6[0] : sizeof v4[0],
                                    .ai_addr = i < 3 ? (struct sockaddr *)&v6[i]
                                                     : (struct sockaddr *)&v4[i - 3],
                                    .ai_next = i < 4 ? &list[i + 1] : NULL};
    }
    resolve_keep(list, &kept);
    for (i = 0; i < kept.n && i < 5; i++)
        order[i] = kept.item[i].at.ss_family == AF_INET6 ? '6' : '4';
    is_str(order, "64646", "the families take turns");
    kept.n = 0;
    resolve_keep(NULL, &kept);
    is_int((int64_t)kept.n, 0, "of nothing nothing is kept");
}

/* A listener at a path instead of a port. */
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
    char folder[] = "/tmp/rlock-dial.XXXXXX";
    char named[64];
    char path[64];
    char text[80];

    if (!ok(peer_open() && mkdtemp(folder) != NULL, "a place to listen"))
        return done_testing();
    snprintf(named, sizeof named, "redis://localhost:%s", strrchr(peer_address, ':') + 1);
    test_reached(peer_address, "a number");
    test_reached(named, "a name");
    test_nowhere();
    test_moved();
    test_given_up();
    test_silent();
    test_refused();
    test_alias();
    test_families();
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(text, sizeof text, "unix://%s", path);
    if (ok(listen_at(path), "a socket"))
        test_reached(text, "a path");
    peer_close();
    unlink(path);
    rmdir(folder);
    return done_testing();
}
