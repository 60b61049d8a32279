/* SPDX-License-Identifier: MIT */
/*
 * test_member: the requests of one member, the faults and redirects that it meets, and what it
 * knows of its server's clock.
 *
 * The test itself plays the server, see peer.h. Servers in these tests are named by `fd`, the
 * server's end of the connection.
 */
#include "lock/scripts.h"
#include "peer.h"
#include "quorum/member.h"
#include "tap.h"

#define SECRET "s3cret"
#define REPLY_MS 100
#define PING "*1\r\n$4\r\nPING\r\n"

/* The server's time that read_time() puts into each answer. */
static int64_t told_ms;

static struct member member; /* the member of the test that runs */

static enum rlock_status read_time(const struct resp_value *reply, struct reply *answer,
                                   struct rlock_error *err)
{
    (void)reply;
    (void)err;
    *answer = (struct reply){.code = REPLY_HELD, .server_ms = told_ms};
    return RLOCK_OK;
}

static void ask_request(const struct request *request, bool is_in_long_use)
{
    member_ask(&member, request, read_time,
               (struct member_limits){.connect_deadline_ms = rlock_clock_ms() + PATIENCE_MS,
                                      .reply_ms = REPLY_MS,
                                      .is_in_long_use = is_in_long_use});
}

static void ask_with(const char *word, bool is_in_long_use)
{
    struct request request;

    request_begin(&request, word);
    ask_request(&request, is_in_long_use);
}

static void ask(const char *word)
{
    ask_with(word, false);
}

/* Steps the member until its request ends, or until no descriptor was ready for `patience_ms`. */
static void step(int patience_ms)
{
    while (member.state == RLOCK_PENDING) {
        struct pollfd look[MEMBER_POLLFDS_MAX];

        if (poll(look, member_fill_pollfds(&member, look), patience_ms) == 0)
            break;
        member_step(&member);
    }
}

/* The server says this, and the member goes on until its request ends. */
static void reply(int fd, const char *says)
{
    peer_say(fd, says);
    step(PATIENCE_MS);
}

/* Steps the member until the server's `fd` has something to read, for at most PATIENCE_MS. */
static void step_until_readable(int fd)
{
    int64_t end_ms = rlock_clock_ms() + PATIENCE_MS;
    struct pollfd look = {.fd = fd, .events = POLLIN};

    while (poll(&look, 1, 1) == 0 && rlock_clock_ms() < end_ms)
        if (member.state == RLOCK_PENDING)
            member_step(&member);
}

/* Steps the member until its request is sent, for at most PATIENCE_MS. */
static void step_until_sent(void)
{
    int64_t end_ms = rlock_clock_ms() + PATIENCE_MS;

    while (member.state == RLOCK_PENDING && member_sent_ms(&member) == 0 &&
           rlock_clock_ms() < end_ms)
        step(1);
}

/* Steps the member until it backs off after an error reply, for at most PATIENCE_MS. */
static void step_until_backing_off(void)
{
    int64_t end_ms = rlock_clock_ms() + PATIENCE_MS;

    while (member.state == RLOCK_PENDING && member.request.phase != MEMBER_BACKING_OFF &&
           rlock_clock_ms() < end_ms)
        step(1);
}

/* Steps the member until it connects; returns the server's end of the connection. */
static int accept_from(void)
{
    step_until_readable(peer_listener);
    return peer_accept();
}

/* Steps the member until it has sent all of `text`; false: it sends something else, or not all. */
static bool is_sent(int fd, const char *text)
{
    char byte;

    for (; *text != '\0'; text++) {
        step_until_readable(fd);
        if (read(fd, &byte, 1) != 1 || byte != *text)
            return false;
    }
    return true;
}

/* Opens a member, and asks it PING. Returns the server's end of its connection, -1: an error. */
static int open_and_ask(const char *url, const char *password)
{
    int fd;

    if (member_open(&member, url, password, NULL, NULL) != RLOCK_OK)
        return -1;
    ask("PING");
    fd = accept_from();
    step_until_readable(fd);
    return fd;
}

/* The same; the server has read the request, and has replied to it. */
static int open_and_reply(void)
{
    int fd = open_and_ask(peer_address, NULL);

    ok(peer_hears(fd, PING), "the member sends its first request");
    reply(fd, ":1\r\n");
    return fd;
}

/* Asks, and lets the server read the request on its end `fd`, and reply. */
static void ask_and_reply(const char *word, int fd, const char *says)
{
    ask(word);
    step_until_sent();
    reply(fd, says);
}

/* Asks, and the member connects anew. Returns the server's end of the connection. */
static int ask_anew(const char *word, const char *wanted)
{
    int fd;

    ask(word);
    fd = accept_from();
    okf(is_sent(fd, wanted), "on a new connection the member sends %s", wanted);
    return fd;
}

/* Asks; the member must send exactly `wanted`. Then the server sends `answer`. */
static void exchange(int fd, bool is_in_long_use, const char *wanted, const char *answer)
{
    ask_with("ON", is_in_long_use);
    okf(is_sent(fd, wanted), "the member sends %s", wanted);
    ok(peer_hears_nothing(fd), "the member sends no more than that");
    reply(fd, answer);
    ok(member.state == RLOCK_OK && resp_int(member.reply) == 1);
}

static void finish(int fd)
{
    member_close(&member);
    close(fd);
}

/* Did the request end in this fault, with an error text "ADDRESS: WHY..."? */
static bool has_failed(enum rlock_status st, const char *why)
{
    char text[300];

    snprintf(text, sizeof text, "%s: %s", peer_address + strlen("redis://"), why);
    return member.state == st && member.err.status == st &&
           strncmp(member.err.text, text, strlen(text)) == 0;
}

static void test_answers(void)
{
    int64_t before = rlock_clock_ms();
    int fd = open_and_ask(peer_address, NULL);

    ok(member.state == RLOCK_PENDING && member_sent_ms(&member) >= before &&
       member_sent_ms(&member) <= rlock_clock_ms());
    is_int(member_deadline_ms(&member), member_sent_ms(&member) + REPLY_MS);
    ok(member_wake_ms(&member) <= member_deadline_ms(&member));
    reply(fd, ":1\r\n");
    ok(member.state == RLOCK_OK && resp_int(member.reply) == 1, "a reply ends the request well");
    ask_and_reply("PING", fd, "-OOM no\r\n");
    ok(has_failed(RLOCK_E_SERVER,
                  "the server's memory is full, so it accepts no writes; the server says: OOM no"));
    is_int(member_sent_ms(&member), 0, "after an error reply the request counts as not executed");
    ask("PING");
    step_until_sent();
    shutdown(fd, SHUT_RDWR);
    step(PATIENCE_MS);
    ok(has_failed(RLOCK_E_UNREACHABLE, ""));
    ok(member_sent_ms(&member) != 0, "a request without a reply counts as possibly executed");
    finish(fd);
}

/*
 * After an error reply of a server that is a replica now, the member closes the connection: the
 * address may be a host name or a proxy, and a new connection may lead to the new primary.
 */
static void test_demoted(void)
{
    static const char *const says[] = {
        "-READONLY You can't write against a read only replica.\r\n",
        "-ERR Error running script (call to f_x): @user_script:9: -READONLY You can't write\r\n",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
        "-UNBLOCKED force unblock from blocking operation, instance state changed\r\n",
    };
    int fd = open_and_ask(peer_address, NULL);

    reply(fd, "-OOM no\r\n");
    told_ms = 1700000000000;
    ask_and_reply("TIME", fd, ":1\r\n");
    ok(member_server_ms(&member, 0) != 0, "a reply with the server's time makes its clock known");
    ask("PING");
    ok(is_sent(fd, PING "*1\r\n$4\r\nTIME\r\n*1\r\n$4\r\nPING\r\n"));
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        reply(fd, says[i]);
        is_int(member.state, RLOCK_E_SERVER, "the error reply of a replica is a fault");
        is_int(member.err.reason, RLOCK_REASON_NOT_PRIMARY);
        ok(peer_hears_the_end(fd) && member_server_ms(&member, 0) == 0);
        close(fd);
        fd = ask_anew("PING", PING);
    }
    reply(fd, ":1\r\n");
    member_reject(&member, "READONLY a fault that the caller has read from the reply", NULL);
    ok(member.state == RLOCK_E_SERVER && member.err.reason == RLOCK_REASON_NOT_PRIMARY &&
       peer_hears_the_end(fd));
    finish(fd);
}

static void test_abandon(void)
{
    struct request undo = {.n = 1, .n_commands = 1, .word = {"UNDO"}};
    int fd = open_and_ask(peer_address, NULL);

    member_abandon(&member, &undo);
    ok(has_failed(RLOCK_E_UNREACHABLE, "no answer in time"));
    ok(peer_hears(fd, PING "*1\r\n$4\r\nUNDO\r\n") && peer_hears_the_end(fd));
    close(fd);
    fd = ask_anew("AGAIN", "*1\r\n$5\r\nAGAIN\r\n");
    reply(fd, ":1\r\n");
    is_int(member.state, RLOCK_OK, "the reply on the new connection ends the request well");
    finish(fd);

    fd = open_and_ask(peer_address, "pw");
    is_int(member_sent_ms(&member), 0);
    is_int(member_deadline_ms(&member), member.request.limits.connect_deadline_ms);
    finish(fd);
}

/* A server may repeat the password in its reply to AUTH: no error text may contain it. */
static void test_password(void)
{
    static const char *const says[] = {
        "-ERR unknown command 'AUTH', with args beginning with: '" SECRET "' \r\n",
        "-ERR unknown command `AUTH`, with args beginning with: `" SECRET "`, \r\n",
        "-NOPERM " SECRET "\r\n",
        "+" SECRET "\r\n",
        "x" SECRET "\r\n",
    };

    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        int fd = open_and_ask(peer_address, SECRET);
        char secret[] = SECRET;

        reply(fd, says[i]);
        ok(member.state >= RLOCK_E_USAGE && member.err.status == member.state &&
           strstr(member.err.text, SECRET) == NULL);
        ok(conn_fd(&member.route.primary->conn) < 0);
        member.route.endpoint[i % 2].conn.looked_up_password = secret;
        member_forget_password(&member);
        member.route.endpoint[i % 2].conn.looked_up_password = NULL;
        is_str(secret, "", "a password that was looked up is forgotten");
        finish(fd);
    }
}

static void test_clock(void)
{
    static const int64_t absurd[] = {INT64_MIN, INT64_MAX, 0, -1};
    int64_t sent;
    int fd;

    told_ms = 0;
    fd = open_and_reply();
    is_int(member_server_ms(&member, 1), 0);
    told_ms = 1700000000000;
    ask("PING");
    step_until_sent();
    sent = member_sent_ms(&member);
    reply(fd, ":1\r\n");
    ok(member_server_ms(&member, sent) >= 1700000000000 &&
       member_server_ms(&member, sent) <= 1700000001000);
    is_int(member_server_ms(&member, sent + 500) - member_server_ms(&member, sent), 500);
    ask_and_reply("PING", fd, "-LOADING\r\n");
    is_int(member_server_ms(&member, sent), 0);
    /* under UBSan this ends the program if a sum with an absurd server time overflows */
    for (size_t i = 0; i < sizeof absurd / sizeof absurd[0]; i++) {
        told_ms = absurd[i];
        ask_and_reply("PING", fd, ":1\r\n");
        is_int(member.state, RLOCK_OK, "a reply with an absurd server time ends the request well");
        (void)member_server_ms(&member, member_sent_ms(&member) + 1000);
    }
    finish(fd);
}

/* Sends the error reply MOVED or ASK (`kind`) that names the address of this test's own server. */
static void redirect(int fd, const char *kind)
{
    char says[128];

    snprintf(says, sizeof says, "-%s 1 %s\r\n", kind, peer_address + strlen("redis://"));
    peer_say(fd, says);
}

/* The member follows a redirect. Returns the server's end of the new connection. */
static int follow(int old)
{
    int fd = accept_from();

    close(old);
    return fd;
}

static void test_moved(void)
{
    int fd = open_and_ask(peer_address, "pw");

    peer_say(fd, "+OK\r\n");
    step_until_sent();
    for (int redirects = 0; redirects < 9; redirects++) {
        redirect(fd, "MOVED");
        if (redirects == 8) {
            step_until_backing_off();
            ok(member.request.phase == MEMBER_BACKING_OFF);
        }
        fd = follow(fd);
        ok(is_sent(fd, "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"));
        is_int(member_sent_ms(&member), 0);
        peer_say(fd, "+OK\r\n");
        ok(is_sent(fd, PING));
    }
    reply(fd, ":1\r\n");
    ok(member.state == RLOCK_OK && resp_int(member.reply) == 1);
    finish(fd);
}

#define ON "*1\r\n$2\r\nON\r\n"
#define NODES "*2\r\n$7\r\nCLUSTER\r\n$5\r\nNODES\r\n"

static void test_learn_topology(void)
{
    int fd = open_and_reply();

    exchange(fd, false, ON, ":1\r\n");
    exchange(fd, true, NODES ON, NO_CLUSTER ":1\r\n");
    exchange(fd, true, ON, ":1\r\n");
    finish(fd);

    fd = open_and_ask(peer_address, NULL);
    redirect(fd, "MOVED");
    fd = follow(fd);
    ok(is_sent(fd, PING));
    reply(fd, ":1\r\n");
    exchange(fd, true, NODES ON, "$41\r\na 10.0.0.2:6379@16379 master - 0 1 2 conn\r\n:1\r\n");
    is_int((int64_t)member.route.cluster.n, 1, "the member keeps the node in the reply");
    exchange(fd, true, ON, ":1\r\n");
    ask("LAST");
    step_until_sent();
    redirect(fd, "MOVED");
    fd = follow(fd);
    ok(is_sent(fd, "*1\r\n$4\r\nLAST\r\n"));
    reply(fd, ":1\r\n");
    /* The member asks the new primary for CLUSTER NODES, as that server may know newer nodes. */
    exchange(fd, true, NODES ON, "-ERR no\r\n:1\r\n");
    is_int((int64_t)member.route.cluster.n, 1 + 1);
    finish(fd);
}

/*
 * A connection that is used for long is named once, in the packet of another request. The server's
 * reply doesn't matter, but a connection that ends without it is the last one that is named.
 */
static void test_name(void)
{
    static const char name[] = "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$7\r\nrlock:k\r\n";
    int fd = open_and_ask(peer_address, NULL);

    member_join(&member, 1, 0, "rlock:k");
    ok(peer_hears(fd, PING), "the first request has no name");
    reply(fd, ":1\r\n");
    exchange(fd, false, ON, ":1\r\n"); /* a request of a short command has no name */
    ask_with("ON", true);
    step_until_sent();
    ok(peer_hears(fd, name) && peer_hears(fd, NODES ON), "a waiter's request begins with a name");
    reply(fd, "-ERR unknown command 'CLIENT'\r\n-ERR no\r\n:1\r\n");
    ok(member.state == RLOCK_OK && resp_int(member.reply) == 1, "its refusal is ignored");
    exchange(fd, true, ON, ":1\r\n"); /* the connection is named once */
    close(fd);

    fd = ask_anew("ON", ON);
    reply(fd, ":1\r\n");
    ask_with("ON", true);
    step_until_sent();
    ok(peer_hears(fd, name) && peer_hears(fd, ON),
       "before its second request that connection is named");
    close(fd); /* in answer to the name: it is the last one */
    step(PATIENCE_MS);
    fd = ask_anew("ON", ON);
    reply(fd, ":1\r\n");
    exchange(fd, true, ON, ":1\r\n");
    finish(fd);
}

/*
 * A node of a Cluster that hasn't answered in time may be dead, so the next request goes to another
 * node. A request that is abandoned long before its deadline says nothing about the node.
 */
static void test_abandoned_late(void)
{
    char other[64], nodes[100], answer[200];
    int listener = server_listen(other);
    int fd = open_and_reply();

    snprintf(nodes, sizeof nodes, "a %.50s@1 master - 0 1 2 connected", other + strlen("redis://"));
    snprintf(answer, sizeof answer, "$%zu\r\n%s\r\n:1\r\n", strlen(nodes), nodes);
    exchange(fd, true, NODES ON, answer);
    ask("EARLY");
    step_until_sent();
    member.request.limits.reply_ms = 60000;
    member_abandon(&member, NULL);
    close(fd);
    fd = ask_anew("HASTY", "*1\r\n$5\r\nHASTY\r\n");
    member.request.limits.reply_ms = 50;
    while (rlock_clock_ms() < member_deadline_ms(&member))
        poll(NULL, 0, 10);
    member_abandon(&member, NULL);
    close(fd);
    fd = ask_anew("LATE", "*1\r\n$4\r\nLATE\r\n");
    while (rlock_clock_ms() < member_deadline_ms(&member))
        poll(NULL, 0, 10);
    member_abandon(&member, NULL);
    close(fd);
    ask("NEXT");
    step_until_readable(listener);
    fd = poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 0) == 1
             ? accept(listener, NULL, NULL)
             : -1;
    ok(fd >= 0 && is_sent(fd, "*1\r\n$4\r\nNEXT\r\n"));
    finish(fd);
    close(listener);
}

/*
 * The member asks the Sentinels again while it is connected to the primary. If they don't answer,
 * the request goes to that primary long before the deadline for connecting.
 */
static void test_silent_sentinel(void)
{
    char address[100], url[100];
    struct server sentinel = {.answers = {[ASKED_OTHER] = ANSWERS(address, SILENT)}};
    struct request request;
    int fd;

    snprintf(address, sizeof address, "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n%05d\r\n",
             atoi(strrchr(peer_address, ':') + 1));
    need(server_start(&sentinel), "a Sentinel starts");
    snprintf(url, sizeof url, "redis+sentinel://%.50s/main", sentinel.url + strlen("redis://"));
    ok(member_open(&member, url, NULL, NULL, NULL) == RLOCK_OK, "a member is opened");
    ask("PING");
    fd = accept_from();
    ok(is_sent(fd, "*1\r\n$4\r\nROLE\r\n"));
    peer_say(fd, "*3\r\n$6\r\nmaster\r\n:9\r\n*0\r\n");
    ok(is_sent(fd, PING), "the member sends the request to a primary");
    reply(fd, ":1\r\n");
    member.route.located_ms -= 100000; /* as if the Sentinel had answered long ago */
    request_begin(&request, "AGAIN");
    member_ask(&member, &request, NULL,
               (struct member_limits){.connect_deadline_ms = rlock_clock_ms() + 100 * PATIENCE_MS,
                                      .reply_ms = REPLY_MS});
    ok(member.request.phase == MEMBER_LOCATING, "the member asks the Sentinel again");
    step_until_readable(fd);
    ok(peer_hears(fd, "*1\r\n$5\r\nAGAIN\r\n"));
    finish(fd);
    server_stop(&sentinel);
}

#define INFO "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
#define NO_INFO "$0\r\n\r\n"

/*
 * A new connection of one of several members sends INFO first, and no CLUSTER NODES:
 * 1. One of several members is connected.
 * 2. Its connection ends, which the member hasn't noticed yet.
 * 3. CLUSTER NODES is due with the next request. The member connects anew, and so it sends INFO
 *    instead. CLUSTER NODES must stay due, and be sent with the request after that.
 */
static void test_topology_behind_info(void)
{
    int fd;

    need(member_open(&member, peer_address, NULL, NULL, NULL) == RLOCK_OK, "a member is opened");
    member_join(&member, 3, 0, NULL);
    ask("PING");
    fd = peer_accept();
    ok(is_sent(fd, INFO PING));
    reply(fd, NO_INFO ":1\r\n");
    close(fd);
    ask_with("ON", true);
    fd = peer_accept();
    ok(is_sent(fd, INFO ON), "on a new connection the member sends INFO again");
    reply(fd, NO_INFO ":1\r\n");
    ok(member.state == RLOCK_OK && member_lacks_topology(&member));
    exchange(fd, true, NODES ON, NO_CLUSTER ":1\r\n");
    ok(!member_lacks_topology(&member), "with the next request CLUSTER NODES was sent");
    finish(fd);
}

/* Each server redirects: the member follows until its deadline, and backs off after each nine. */
static void test_moved_without_end(void)
{
    enum { PER_BACK_OFF = 9, N_BACK_OFFS = 4, N_WANTED = N_BACK_OFFS * PER_BACK_OFF + 1 };
    struct request request;
    int n_connections = 0;
    int n_back_offs = 0;
    bool backs_off = false;
    int fd = -1;

    need(member_open(&member, peer_address, NULL, NULL, NULL) == RLOCK_OK, "a member is opened");
    request_begin(&request, "PING");
    member_ask(&member, &request, NULL,
               (struct member_limits){.connect_deadline_ms = rlock_clock_ms() + 100 * PATIENCE_MS,
                                      .reply_ms = 100 * PATIENCE_MS});
    while (member.state == RLOCK_PENDING && n_connections < N_WANTED &&
           rlock_clock_ms() < member_deadline_ms(&member)) {
        struct pollfd new_connection = {.fd = peer_listener, .events = POLLIN};

        if (poll(&new_connection, 1, 0) == 1) {
            if (fd >= 0)
                close(fd);
            fd = peer_accept();
            n_connections++;
            n_back_offs += backs_off;
            backs_off = false;
            redirect(fd, "MOVED"); /* the member reads this after it has sent its request */
        }
        step(1);
        if (member.request.phase == MEMBER_BACKING_OFF) {
            backs_off = true;
            member_step(&member);
        }
    }
    is_int(n_connections, N_WANTED, "redirects without end: the member follows on and on");
    is_int(n_back_offs, N_BACK_OFFS, "and backs off in between");
    member_abandon(&member, NULL);
    ok(member.state == RLOCK_E_SERVER || member.state == RLOCK_E_UNREACHABLE);
    finish(fd);
    while (poll(&(struct pollfd){.fd = peer_listener, .events = POLLIN}, 1, 0) == 1)
        close(peer_accept()); /* a connection that the member made in the end */
}

static void test_ask(void)
{
    struct request undo = {.n = 1, .n_commands = 1, .word = {"UNDO"}};
    int fd = open_and_ask(peer_address, NULL);
    int redirected;

    redirect(fd, "ASK");
    redirected = accept_from();
    ok(is_sent(redirected, "*1\r\n$6\r\nASKING\r\n*1\r\n$4\r\nPING\r\n"));
    peer_say(redirected, "+OK\r\n");
    step(A_WHILE_MS);
    is_int(member.state, RLOCK_PENDING, "the reply to ASKING doesn't end the request");
    reply(redirected, ":1\r\n");
    ok(member.state == RLOCK_OK && resp_int(member.reply) == 1);
    ask("NEXT");
    ok(member.reply == NULL, "a new request forgets the reply to the last one");
    ok(is_sent(fd, PING "*1\r\n$4\r\nNEXT\r\n"));
    redirect(fd, "ASK");
    ok(is_sent(redirected, "*1\r\n$6\r\nASKING\r\n*1\r\n$4\r\nNEXT\r\n"));
    member_abandon(&member, &undo);
    ok(peer_hears(redirected, "*1\r\n$6\r\nASKING\r\n*1\r\n$4\r\nUNDO\r\n"));
    close(redirected);
    finish(fd);

    fd = open_and_ask(peer_address, NULL);
    redirect(fd, "ASK");
    redirected = accept_from();
    step_until_readable(redirected);
    reply(redirected, "-NOPERM asking\r\n-MOVED 1 127.0.0.1:1\r\n");
    ok(has_failed(RLOCK_E_REFUSED,
                  "the server's rules (ACL) deny this user a command or a key that rlock needs; "
                  "the server says: NOPERM asking"));
    is_int(member_sent_ms(&member), 0);
    close(redirected);
    finish(fd);
}

static void test_try_again(void)
{
    const char *down =
        "no node of the Cluster serves this key now; the server says: CLUSTERDOWN no";
    int fd = open_and_ask(peer_address, NULL);
    int64_t end = rlock_clock_ms() + PATIENCE_MS;

    ok(peer_hears(fd, PING), "the member sends its request");
    peer_say(fd, "-TRYAGAIN later\r\n");
    step_until_backing_off();
    ok(member.state == RLOCK_PENDING && member_wake_ms(&member) < rlock_clock_ms() + 1000);
    while (member.request.phase == MEMBER_BACKING_OFF && rlock_clock_ms() < end)
        member_step(&member);
    ok(is_sent(fd, PING));
    peer_say(fd, "-CLUSTERDOWN no\r\n");
    step_until_backing_off();
    member_abandon(&member, NULL);
    ok(has_failed(RLOCK_E_SERVER, down));
    is_int(member_sent_ms(&member), 0, "after CLUSTERDOWN the request counts as not executed");
    finish(fd);

    /* the caller gives up while the member asks again */
    fd = open_and_ask(peer_address, NULL);
    ok(peer_hears(fd, PING), "the member sends its request");
    peer_say(fd, "-CLUSTERDOWN no\r\n");
    ok(is_sent(fd, PING), "after CLUSTERDOWN it sends it again");
    member_abandon(&member, NULL);
    ok(has_failed(RLOCK_E_SERVER, down));
    ok(member_sent_ms(&member) > 0, "the server may execute the request yet");
    close(fd);
    fd = ask_anew("AGAIN", "*1\r\n$5\r\nAGAIN\r\n");
    member_abandon(&member, NULL);
    ok(has_failed(RLOCK_E_UNREACHABLE, "no answer in time"));
    finish(fd);
}

/*
 * An error as the reply to the first of several commands ends the request. An error that may be a
 * bug in a script names the file of the script, and the line.
 */
static void test_errors(void)
{
    struct request request;
    char said[300];
    int fd = open_and_reply();

    request_begin(&request, "ONE");
    request_add_command(&request, "TWO");
    ask_request(&request, false);
    step_until_sent();
    reply(fd, "-LOADING Redis is loading\r\n:1\r\n");
    is_int(member.state, RLOCK_E_SERVER, "an error in the first of two replies is the fault");
    script_request(&request, SCRIPT_BREAK, 0);
    snprintf(said, sizeof said, "-ERR boom script: %.40s, on @user_script:1.\r\n", request.word[1]);
    ask_request(&request, false);
    step_until_sent();
    reply(fd, said);
    okf(member.state >= RLOCK_E_USAGE && strstr(member.err.text, "lib/lua/break.lua:1") != NULL,
        "an error of a script names the script's line: %s", member.err.text);
    finish(fd);
}

/*
 * The server closes the connection after WATCH, before the member has sent MULTI and EXEC. The
 * member must not send these on a new connection, which has no WATCH: there EXEC would delete the
 * key even if another owner had got it.
 */
static void test_watch_lost(void)
{
    struct request request;
    int fd = open_and_reply();

    close(fd);
    request_begin(&request, "MULTI");
    request_bind(&request, member_connection(&member));
    ask_request(&request, false);
    step(PATIENCE_MS);
    ok(member.state == RLOCK_E_SERVER && strstr(member.err.text, "closed between WATCH") != NULL);
    while (poll(&(struct pollfd){.fd = peer_listener, .events = POLLIN}, 1, A_WHILE_MS) == 1) {
        fd = peer_accept();
        ok(peer_hears_nothing(fd) || peer_hears_the_end(fd));
        close(fd);
    }
    member_close(&member);
}

int main(void)
{
    if (!ok(peer_open(), "the test's server listens"))
        return done_testing();
    RUN_ALL(test_answers, test_demoted, test_abandon, test_password, test_clock, test_moved,
            test_learn_topology, test_name, test_abandoned_late, test_silent_sentinel,
            test_topology_behind_info, test_moved_without_end, test_ask, test_try_again,
            test_errors, test_watch_lost);
    peer_close();
    return done_testing();
}
