/* SPDX-License-Identifier: MIT */
/* test_member: how a request to one server stands, what went wrong, what time it is there. */
#include "peer.h"
#include "quorum/member.h"
#include "tap.h"

#define SECRET "s3cret"
#define REPLY_MS 100

/* What a reader of replies makes of each: the server's time. */
static int64_t told_ms;

static enum rlock_status read_time(const struct resp_value *reply, struct reply *answer,
                                   struct rlock_error *err)
{
    (void)reply;
    (void)err;
    *answer = (struct reply){.code = REPLY_HELD, .server_ms = told_ms};
    return RLOCK_OK;
}

static void ask_and(struct member *member, const char *word, bool may_learn_topology)
{
    struct request request = {.n = 0};

    request_add(&request, word);
    member_ask(member, &request, read_time,
               (struct member_limits){.connect_deadline_ms = rlock_clock_ms() + PATIENCE_MS,
                                      .reply_ms = REPLY_MS,
                                      .may_learn_topology = may_learn_topology});
}

static void ask(struct member *member, const char *word)
{
    ask_and(member, word, false);
}

/* Steps the member for as long as it gets something to do every `patience_ms`. */
static void step(struct member *member, int patience_ms)
{
    while (member->state == RLOCK_PENDING) {
        struct pollfd look[MEMBER_POLLFDS_MAX];

        if (poll(look, member_fill_pollfds(member, look), patience_ms) == 0)
            break;
        member_step(member);
    }
}

/* Steps the member until the server's `fd` has something to read, for at most PATIENCE_MS. */
static void step_until_readable(struct member *member, int fd)
{
    int64_t end_ms = rlock_clock_ms() + PATIENCE_MS;
    struct pollfd look = {.fd = fd, .events = POLLIN};

    while (poll(&look, 1, 1) == 0 && rlock_clock_ms() < end_ms)
        if (member->state == RLOCK_PENDING)
            member_step(member);
}

/* Steps the member until its request is sent, for at most PATIENCE_MS. */
static void step_until_sent(struct member *member)
{
    int64_t end_ms = rlock_clock_ms() + PATIENCE_MS;

    while (member->state == RLOCK_PENDING && member_sent_ms(member) == 0 &&
           rlock_clock_ms() < end_ms)
        step(member, 1);
}

/* Steps the member until it backs off after an error reply, for at most PATIENCE_MS. */
static void step_until_backing_off(struct member *member)
{
    int64_t end_ms = rlock_clock_ms() + PATIENCE_MS;

    while (member->state == RLOCK_PENDING && member->request.phase != MEMBER_BACKING_OFF &&
           rlock_clock_ms() < end_ms)
        step(member, 1);
}

/* Steps the member until it connects; returns the server's end of the connection. */
static int accept_from(struct member *member)
{
    step_until_readable(member, peer_listener);
    return peer_accept();
}

/* Steps the member until it has sent all of `text`; false: it sends something else, or not all. */
static bool is_sent(struct member *member, int fd, const char *text)
{
    char byte;

    for (; *text != '\0'; text++) {
        step_until_readable(member, fd);
        if (read(fd, &byte, 1) != 1 || byte != *text)
            return false;
    }
    return true;
}

/* A member that was asked `word`; returns the server's end of its connection. */
static int asked(struct member *member, const char *url, const char *password)
{
    int fd;

    if (member_open(member, url, password, NULL, NULL) != RLOCK_OK)
        return -1;
    ask(member, "PING");
    fd = peer_accept();
    step_until_readable(member, fd);
    return fd;
}

static void finish(struct member *member, int fd)
{
    member_close(member);
    close(fd);
}

static bool is_told(const struct member *member, enum rlock_status st, const char *why)
{
    char text[300];

    snprintf(text, sizeof text, "%s: %s", peer_address + strlen("redis://"), why);
    return member->state == st && member->err.status == st &&
           strncmp(member->err.text, text, strlen(text)) == 0;
}

static void test_answers(void)
{
    struct member member;
    int64_t before = rlock_clock_ms();
    int fd = asked(&member, peer_address, NULL);

    ok(member.state == RLOCK_PENDING && member_sent_ms(&member) >= before &&
           member_sent_ms(&member) <= rlock_clock_ms(),
       "it is known since when a request is on its way");
    is_int(member_deadline_ms(&member), member_sent_ms(&member) + REPLY_MS,
           "and when it has taken too long");
    ok(member_wake_ms(&member) <= member_deadline_ms(&member), "it is looked at by then");
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    ok(member.state == RLOCK_OK && resp_int(member.reply) == 1, "an answer");
    ask(&member, "PING");
    step_until_sent(&member);
    peer_say(fd, "-OOM no\r\n");
    step(&member, PATIENCE_MS);
    ok(is_told(&member, RLOCK_E_SERVER, "the server says: OOM no"), "an error names the server");
    is_int(member_sent_ms(&member), 0, "it was answered: nothing of it is on its way");
    ask(&member, "PING");
    step_until_sent(&member);
    shutdown(fd, SHUT_RDWR);
    step(&member, PATIENCE_MS);
    ok(is_told(&member, RLOCK_E_UNREACHABLE, ""), "no answer: unreachable");
    ok(member_sent_ms(&member) != 0, "and whether it was executed is not known");
    finish(&member, fd);
}

/* An address may lead to another server by now: only a new connection shows that. */
static void test_demoted(void)
{
    static const char *const says[] = {
        "-READONLY You can't write against a read only replica.\r\n",
        "-ERR Error running script (call to f_x): @user_script:9: -READONLY You can't write\r\n",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
        "-UNBLOCKED force unblock from blocking operation, instance state changed\r\n",
    };
    struct member member;
    size_t i;
    int fd = asked(&member, peer_address, NULL);

    peer_say(fd, "-OOM no\r\n");
    step(&member, PATIENCE_MS);
    told_ms = 1700000000000;
    ask(&member, "TIME");
    step_until_sent(&member);
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    ok(member_server_ms(&member, 0) != 0, "a server of which the time is known");
    ask(&member, "PING");
    ok(is_sent(&member, fd, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nTIME\r\n*1\r\n$4\r\nPING\r\n"),
       "a connection stays");
    for (i = 0; i < sizeof says / sizeof says[0]; i++) {
        peer_say(fd, says[i]);
        step(&member, PATIENCE_MS);
        is_int(member.state, RLOCK_E_SERVER, "of a server that is no primary it doesn't");
        is_int(member.err.reason, RLOCK_REASON_NOT_PRIMARY, "that is why");
        ok(peer_hears_the_end(fd) && member_server_ms(&member, 0) == 0,
           "it is closed, and what time it is at the next server isn't known");
        close(fd);
        ask(&member, "PING");
        fd = peer_accept();
        ok(is_sent(&member, fd, "*1\r\n$4\r\nPING\r\n"), "and the next request goes by another");
    }
    finish(&member, fd);
}

static void test_late(void)
{
    struct request undo = {.n = 1, .word = {"UNDO"}, .bytes = {4}};
    struct member member;
    int fd = asked(&member, peer_address, NULL);

    member_abandon(&member, &undo);
    ok(is_told(&member, RLOCK_E_UNREACHABLE, "no answer in time"), "a server that is silent");
    ok(peer_hears(fd, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nUNDO\r\n") && peer_hears_the_end(fd),
       "has the undo behind the request, then nothing");
    close(fd);
    ask(&member, "AGAIN");
    fd = peer_accept();
    ok(is_sent(&member, fd, "*1\r\n$5\r\nAGAIN\r\n"), "and is asked anew on a fresh connection");
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    is_int(member.state, RLOCK_OK, "where it may answer");
    finish(&member, fd);

    fd = asked(&member, peer_address, "pw");
    is_int(member_sent_ms(&member), 0, "one that doesn't let us in is asked nothing");
    is_int(member_deadline_ms(&member), member.request.limits.connect_deadline_ms,
           "and has as long as a call has");
    finish(&member, fd);
}

static void test_nobody(void)
{
    struct member member;
    char nobody[64];
    int round;

    close(server_listen(nobody));
    is_int(member_open(&member, nobody, NULL, NULL, NULL), RLOCK_OK, "a server that isn't there");
    for (round = 0; round < 2; round++) {
        ask(&member, "PING");
        step(&member, PATIENCE_MS);
        ok(member.state == RLOCK_E_UNREACHABLE &&
               strstr(member.err.text, "connect: Connection refused") != NULL,
           "is unreachable, as often as it is asked");
    }
    member_close(&member);
    ok(member_open(&member, "redis://u:" SECRET "@h:x", NULL, NULL, &member.err) ==
               RLOCK_E_CONFIG &&
           strstr(member.err.text, SECRET) == NULL,
       "an address that can't be meant is refused, and its password isn't told");
    member_close(&member);
    is_int(member_open(&member, "redis://u@h", NULL, NULL, NULL), RLOCK_OK,
           "a user may need no password");
    member_close(&member);
    is_int(member_open(&member, "redis://u@h", "pw", NULL, NULL), RLOCK_OK,
           "with one it is that user");
    member_close(&member);
}

/* Servers repeat what they don't understand. */
static void test_password(void)
{
    static const char *const says[] = {
        "-ERR unknown command 'AUTH', with args beginning with: '" SECRET "' \r\n",
        "-ERR unknown command `AUTH`, with args beginning with: `" SECRET "`, \r\n",
        "-NOPERM " SECRET "\r\n",
        "+" SECRET "\r\n",
        "x" SECRET "\r\n",
    };
    struct member member;
    size_t i;

    for (i = 0; i < sizeof says / sizeof says[0]; i++) {
        int fd = asked(&member, peer_address, SECRET);

        peer_say(fd, says[i]);
        step(&member, PATIENCE_MS);
        ok(member.state >= RLOCK_E_USAGE && member.err.status == member.state &&
               strstr(member.err.text, SECRET) == NULL,
           "a server can't make us tell the password");
        ok(conn_fd(&member.route.primary->conn) < 0,
           "and one that didn't take it is not talked to any more");
        finish(&member, fd);
    }
}

/* What a member tells of a server that repeats the password, behind so many other bytes. */
static const char *echoed(struct member *member, const char *password, int pad)
{
    char says[400];
    int fd;

    snprintf(says, sizeof says, "-ERR unknown %0*d %s %s\r\n", pad, 0, password, password);
    if (member_open(member, peer_address, password, NULL, NULL) != RLOCK_OK)
        return password;
    ask(member, "PING");
    fd = peer_accept();
    peer_say(fd, says);
    step(member, PATIENCE_MS);
    finish(member, fd);
    return member->err.text;
}

/* Nor a part of it: where the text is cut, and where bytes of it are shown as others. */
static void test_password_in_part(void)
{
    static const char inconsistent[] = "geh\xc3\xa4\x01m" SECRET;
    struct member member;
    bool is_told = false;
    int pad;

    for (pad = 1; pad < 200; pad++)
        is_told = is_told || strstr(echoed(&member, SECRET, pad), "s3c") != NULL;
    ok(!is_told, "a password that is cut isn't told in part");
    ok(strstr(echoed(&member, inconsistent, 1), "geh") == NULL &&
           strstr(member.err.text, SECRET) == NULL,
       "nor one of any bytes");
}

static void test_clock(void)
{
    struct member member;
    int64_t sent;
    int fd;

    told_ms = 0;
    fd = asked(&member, peer_address, NULL);
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    is_int(member_server_ms(&member, 1), 0, "what time it is there isn't known at first");
    told_ms = 1700000000000;
    ask(&member, "PING");
    step_until_sent(&member);
    sent = member_sent_ms(&member);
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    ok(member_server_ms(&member, sent) >= 1700000000000 &&
           member_server_ms(&member, sent) <= 1700000001000,
       "then it is, and rather late than early");
    is_int(member_server_ms(&member, sent + 500) - member_server_ms(&member, sent), 500,
           "it runs as ours does");
    ask(&member, "PING");
    step_until_sent(&member);
    peer_say(fd, "-LOADING\r\n");
    step(&member, PATIENCE_MS);
    is_int(member_server_ms(&member, sent), 0, "after a failure it may be another server's");
    finish(&member, fd);
}

/* A Cluster of one: where it sends us is itself, by the name that the test gives it. */
static void redirect(int fd, const char *way)
{
    char says[128];

    snprintf(says, sizeof says, "-%s 1 %s\r\n", way, peer_address + strlen("redis://"));
    peer_say(fd, says);
}

static void test_moved(void)
{
    struct member member;
    int fd = asked(&member, peer_address, "pw");
    int redirects;
    int old;

    peer_say(fd, "+OK\r\n");
    step_until_sent(&member);
    for (redirects = 0; redirects < 3; redirects++) {
        redirect(fd, "MOVED");
        old = fd;
        fd = accept_from(&member);
        close(old);
        ok(is_sent(&member, fd, "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"),
           "moved: there with the password");
        is_int(member_sent_ms(&member), 0, "nothing was asked yet");
        peer_say(fd, "+OK\r\n");
        ok(is_sent(&member, fd, "*1\r\n$4\r\nPING\r\n"), "and then the same request");
    }
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    ok(member.state == RLOCK_OK && resp_int(member.reply) == 1, "which is answered there");
    ask(&member, "AGAIN");
    ok(is_sent(&member, fd, "*1\r\n$5\r\nAGAIN\r\n"), "the next one goes there at once");
    finish(&member, fd);
}

/* Another request, which isn't the last one: what comes in is this, and is answered so. */
static void may_learn_topology(struct member *member, int fd, const char *what, const char *answer)
{
    ask_and(member, "ON", true);
    okf(is_sent(member, fd, what), "asked is %s", what);
    ok(peer_hears_nothing(fd), "and no more");
    peer_say(fd, answer);
    step(member, PATIENCE_MS);
    ok(member->state == RLOCK_OK && resp_int(member->reply) == 1, "answered");
}

#define ON "*1\r\n$2\r\nON\r\n"
#define NODES "*2\r\n$7\r\nCLUSTER\r\n$5\r\nNODES\r\n"

static void test_look(void)
{
    struct member member;
    int fd = asked(&member, peer_address, NULL);
    int old;

    ok(peer_hears(fd, "*1\r\n$4\r\nPING\r\n"), "a request");
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    may_learn_topology(&member, fd, ON, ":1\r\n");
    member.route.first_ms -= 10000; /* so long ago */
    ask(&member, "LAST");
    ok(is_sent(&member, fd, "*1\r\n$4\r\nLAST\r\n"),
       "who asks for the last time doesn't look around");
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    may_learn_topology(&member, fd, NODES ON,
                       "-ERR This instance has cluster support disabled\r\n:1\r\n");
    may_learn_topology(&member, fd, ON, ":1\r\n");
    finish(&member, fd);

    fd = asked(&member, peer_address, NULL);
    redirect(fd, "MOVED");
    old = fd;
    fd = accept_from(&member);
    close(old);
    ok(is_sent(&member, fd, "*1\r\n$4\r\nPING\r\n"), "a Cluster");
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    may_learn_topology(&member, fd, NODES ON,
                       "$41\r\na 10.0.0.2:6379@16379 master - 0 1 2 conn\r\n:1\r\n");
    is_int((int64_t)member.route.cluster.n, 1, "what it shows is known from then on");
    may_learn_topology(&member, fd, ON, ":1\r\n");
    ask(&member, "LAST");
    step_until_sent(&member);
    redirect(fd, "MOVED");
    old = fd;
    fd = accept_from(&member);
    close(old);
    ok(is_sent(&member, fd, "*1\r\n$4\r\nLAST\r\n"), "it has moved");
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    may_learn_topology(&member, fd, NODES ON,
                       "-ERR no\r\n:1\r\n"); /* who is asked anew may know more */
    is_int((int64_t)member.route.cluster.n, 1 + 1, "what was known stays, as nothing else is told");
    finish(&member, fd);
}

#define INFO "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
#define NODES_ALONE "*2\r\n$7\r\nCLUSTER\r\n$5\r\nNODES\r\n"
#define NO_INFO "$0\r\n\r\n"
#define NO_NODES "-ERR This instance has cluster support disabled\r\n"

/*
 * 1. One of several members is connected. 2. Its connection ends, which nobody notices yet. 3. It
 * is to be asked for its Cluster, but a new connection asks who it is instead: so that is still to
 * be done.
 */
static void test_topology_behind_info(void)
{
    struct member member;
    int fd;

    if (!ok(member_open(&member, peer_address, NULL, NULL, NULL) == RLOCK_OK, "one of several"))
        return;
    member_join(&member, 3, 0);
    ask(&member, "PING");
    fd = peer_accept();
    ok(is_sent(&member, fd, INFO "*1\r\n$4\r\nPING\r\n"), "is asked first who it is");
    peer_say(fd, NO_INFO ":1\r\n");
    step(&member, PATIENCE_MS);
    member.route.first_ms -= 10000; /* so long ago */
    close(fd);
    ask_and(&member, "ON", true);
    fd = peer_accept();
    ok(is_sent(&member, fd, INFO ON), "and so on each new connection");
    peer_say(fd, NO_INFO ":1\r\n");
    step(&member, PATIENCE_MS);
    ok(member.state == RLOCK_OK && member_lacks_topology(&member), "that tells no Cluster");
    may_learn_topology(&member, fd, NODES ON, NO_NODES ":1\r\n");
    ok(!member_lacks_topology(&member), "the next request does");
    finish(&member, fd);

    if (!ok(member_open(&member, peer_address, NULL, NULL, NULL) == RLOCK_OK, "another"))
        return;
    member_join(&member, 3, 0);
    member_ask_topology(
        &member, (struct member_limits){.connect_deadline_ms = rlock_clock_ms() + PATIENCE_MS,
                                        .reply_ms = REPLY_MS});
    fd = peer_accept();
    ok(is_sent(&member, fd, INFO),
       "whoever wants to know its Cluster alone asks first who it is, too");
    peer_say(fd, NO_INFO);
    ok(is_sent(&member, fd, "*2\r\n$7\r\nCLUSTER\r\n$5\r\nNODES\r\n"), "and then for its Cluster");
    peer_say(fd, NO_NODES);
    step(&member, PATIENCE_MS);
    ok(member.state == RLOCK_OK && !member_lacks_topology(&member), "and has asked that");
    finish(&member, fd);
}

/* A command has ended before the nodes of the Cluster were told: its release needs no new call. */
static void test_request_behind_topology(void)
{
    struct member member;
    int fd = asked(&member, peer_address, NULL);

    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    ok(peer_hears(fd, "*1\r\n$4\r\nPING\r\n"), "a request");
    member_ask_topology(
        &member, (struct member_limits){.connect_deadline_ms = rlock_clock_ms() + PATIENCE_MS,
                                        .reply_ms = REPLY_MS});
    ok(is_sent(&member, fd, NODES_ALONE), "its Cluster is asked for");
    ok(member_may_be_asked(&member), "and while that isn't answered");
    ask(&member, "NEXT");
    ok(is_sent(&member, fd, "*1\r\n$4\r\nNEXT\r\n"),
       "the next request goes by the same connection");
    ok(member_sent_ms(&member) != 0, "it is known when that was");
    peer_say(fd, "$41\r\na 10.0.0.2:6379@16379 master - 0 1 2 conn\r\n");
    step(&member, A_WHILE_MS);
    is_int(member.state, RLOCK_PENDING, "the nodes are not its reply");
    peer_say(fd, ":1\r\n");
    step(&member, PATIENCE_MS);
    ok(member.state == RLOCK_OK && resp_int(member.reply) == 1, "that comes next");
    is_int((int64_t)member.route.cluster.n, 1, "and both count");
    finish(&member, fd);
}

/* Round and round, for as long as there is time, and not as fast as it goes. */
static void test_moved_without_end(void)
{
    struct request request = {.n = 0};
    struct member member;
    int n_calls = 0;
    int fd = -1;

    if (!ok(member_open(&member, peer_address, NULL, NULL, NULL) == RLOCK_OK, "a Cluster"))
        return;
    request_add(&request, "PING");
    member_ask(&member, &request, NULL,
               (struct member_limits){.connect_deadline_ms = rlock_clock_ms() + 300,
                                      .reply_ms = REPLY_MS});
    while (member.state == RLOCK_PENDING && rlock_clock_ms() < member_deadline_ms(&member)) {
        struct pollfd calls = {.fd = peer_listener, .events = POLLIN};

        if (poll(&calls, 1, 0) == 1) {
            if (fd >= 0)
                close(fd);
            fd = peer_accept();
            n_calls++;
            redirect(fd, "MOVED"); /* it is read when there is something to be answered */
        }
        step(&member, 1);
        if (member.request.phase == MEMBER_BACKING_OFF)
            member_step(&member);
    }
    if (member.state == RLOCK_PENDING)
        member_abandon(&member, NULL);
    ok(member.state == RLOCK_E_SERVER || member.state == RLOCK_E_UNREACHABLE,
       "redirects without end: the request fails at its deadline, backing off or connecting");
    okf(n_calls > 8 && n_calls < 300, "it was sent %d times, with pauses", n_calls);
    finish(&member, fd);
    while (poll(&(struct pollfd){.fd = peer_listener, .events = POLLIN}, 1, 0) == 1)
        close(peer_accept()); /* a connection that the member made just before the deadline */
}

static void test_ask(void)
{
    struct request undo = {.n = 1, .word = {"UNDO"}, .bytes = {4}};
    struct member member;
    int fd = asked(&member, peer_address, NULL);
    int redirected;

    redirect(fd, "ASK");
    redirected = accept_from(&member);
    ok(is_sent(&member, redirected, "*1\r\n$6\r\nASKING\r\n*1\r\n$4\r\nPING\r\n"),
       "ASK: ASKING goes first");
    peer_say(redirected, "+OK\r\n");
    step(&member, A_WHILE_MS);
    is_int(member.state, RLOCK_PENDING, "its answer is not the request's");
    peer_say(redirected, ":1\r\n");
    step(&member, PATIENCE_MS);
    ok(member.state == RLOCK_OK && resp_int(member.reply) == 1, "that comes next");
    ask(&member, "NEXT");
    ok(is_sent(&member, fd, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nNEXT\r\n"),
       "the next request goes to the old place");
    redirect(fd, "ASK");
    ok(is_sent(&member, redirected, "*1\r\n$6\r\nASKING\r\n*1\r\n$4\r\nNEXT\r\n"),
       "ASK again: ASKING and the request go to the target by the same connection");
    member_abandon(&member, &undo);
    ok(peer_hears(redirected, "*1\r\n$6\r\nASKING\r\n*1\r\n$4\r\nUNDO\r\n"),
       "one that is given up there is undone there, by ASKING as well");
    close(redirected);
    finish(&member, fd);

    fd = asked(&member, peer_address, NULL);
    redirect(fd, "ASK");
    redirected = accept_from(&member);
    step_until_readable(&member, redirected);
    peer_say(redirected, "-NOPERM asking\r\n-MOVED 1 127.0.0.1:1\r\n");
    step(&member, PATIENCE_MS);
    ok(is_told(&member, RLOCK_E_REFUSED, "the server says: NOPERM asking"),
       "who may not ask is told so, and isn't sent back and forth");
    is_int(member_sent_ms(&member), 0, "nothing of it was executed");
    close(redirected);
    finish(&member, fd);
}

static void test_try_again(void)
{
    struct member member;
    int fd = asked(&member, peer_address, NULL);
    int64_t end = rlock_clock_ms() + PATIENCE_MS;

    ok(peer_hears(fd, "*1\r\n$4\r\nPING\r\n"), "a request");
    peer_say(fd, "-TRYAGAIN later\r\n");
    step_until_backing_off(&member);
    ok(member.state == RLOCK_PENDING && member_wake_ms(&member) < rlock_clock_ms() + 1000,
       "TRYAGAIN: in a moment");
    while (member.request.phase == MEMBER_BACKING_OFF && rlock_clock_ms() < end)
        member_step(&member);
    ok(is_sent(&member, fd, "*1\r\n$4\r\nPING\r\n"), "again on the same connection");
    peer_say(fd, "-CLUSTERDOWN no\r\n");
    step_until_backing_off(&member);
    member_abandon(&member, NULL);
    ok(is_told(&member, RLOCK_E_SERVER, "the server says: CLUSTERDOWN no"),
       "and when there is no more time, it is why");
    is_int(member_sent_ms(&member), 0, "nothing of it was executed");
    finish(&member, fd);
}

/* The last of this file: under UBSan an overflow ends the program. */
static void test_absurd_clock(void)
{
    static const int64_t times[] = {INT64_MIN, INT64_MAX, 0, -1};
    struct member member;
    int fd = asked(&member, peer_address, NULL);
    size_t i;

    for (i = 0; i < sizeof times / sizeof times[0]; i++) {
        told_ms = times[i];
        peer_say(fd, ":1\r\n");
        step(&member, PATIENCE_MS);
        ok(member.state == RLOCK_OK, "a server may say any time");
        (void)member_server_ms(&member, member_sent_ms(&member) + 1000);
        ask(&member, "PING");
        step_until_sent(&member);
    }
    finish(&member, fd);
}

int main(void)
{
    if (!ok(peer_open(), "a place to listen"))
        return done_testing();
    test_answers();
    test_demoted();
    test_late();
    test_nobody();
    test_password();
    test_password_in_part();
    test_clock();
    test_moved();
    test_look();
    test_topology_behind_info();
    test_request_behind_topology();
    test_moved_without_end();
    test_ask();
    test_try_again();
    test_absurd_clock();
    peer_close();
    return done_testing();
}
