/* SPDX-License-Identifier: MIT */
/* test_commands: what each operation without scripts sends, and what each reply leads to. */
#include "lock/commands.h"
#include "server.h"
#include "tap.h"

#include <sys/epoll.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define PARENT "fedcba9876543210fedcba9876543210"
#define OURS TOKEN " v1 try=1 ttl=30000 host=h since=1700000000000"
#define KEPT TOKEN " v1 try=1 ttl=30000 kept=1 host=h"
#define SHARED "00000000000000000000000000000000 v1 mode=shared since=1"
#define FENCE "{k}:rlock:fence"
#define WAKE "{k}:rlock:wake:" TOKEN
#define TIME "*2\r\n$10\r\n1700000000\r\n$1\r\n7\r\n"
#define NIL "$-1\r\n"
#define OK "+OK\r\n"
#define QUEUED "+QUEUED\r\n"

/* What the steps send. */
#define LOOK "PTTL k; MULTI; EXEC; WATCH k; GETRANGE k 0 1278; TIME; GET " FENCE
#define LOOK_RENEW LOOK "; GET " WAKE
#define CLAIM(value) "SET k " value " NX PX 30000; TIME"
#define DRAW                                                                                   \
    "PEXPIRE " FENCE " 604800000; SET " FENCE " 1700000000000007 NX PX 604800000; INCR " FENCE \
    "; PEXPIRE " FENCE " 604800000; GETRANGE k 0 1278"
#define CHANGED OK QUEUED NIL /* replies to MULTI, a command and EXEC, if the key has changed */

static const char *const key = "k";
static struct owner owner;
static struct lock_keys keys;
static struct commands commands;
static struct resp_reader *reader;
static struct reply answer;
static struct rlock_error fault;
static const char *refusal;

/* Opens the owner of TOKEN, which makes its first attempt. */
static bool open_owner(void)
{
    static const char parent[] = PARENT;
    const char *const parents[] = {parent};
    struct rlock_config config = {.keys = &key,
                                  .n_keys = 1,
                                  .timing = {.ttl_ms = 30000},
                                  .holder = {.host = "h"},
                                  .token = TOKEN,
                                  .parent_tokens = parents,
                                  .n_parents = 1,
                                  .scripts = RLOCK_SCRIPTS_NO};

    owner_close(&owner);
    if (!ok(owner_open(&owner, &config, NULL) == RLOCK_OK, "an owner without scripts is opened"))
        return false;
    owner_begin_attempt(&owner);
    return true;
}

/* Is this the next request, with all its words? `words` has a semicolon between two commands. */
static bool sends(const struct request *request, const char *words)
{
    char all[2000] = ""; /* begins with a semicolon, as every command does */
    int command = 0;

    for (int i = 0; i < request->n; i++) {
        bool begins = command < request->n_commands && request->first[command] == i;

        command += begins;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", begins ? "; " : " ",
                 request->word[i]);
    }
    return is_str(all + 2, words, "the next request has these words");
}

/* Lets the operation send requests and read replies: `lines` are words and replies in turn. */
static enum rlock_status talk(const char *const *lines)
{
    enum rlock_status st = RLOCK_PENDING;
    const struct resp_value *value;
    struct request request;

    for (; *lines != NULL && ok(st == RLOCK_PENDING, "the operation goes on"); lines += 2) {
        commands_build(&commands, &request);
        sends(&request, lines[0]);
        is_int((int64_t)request.connection, strncmp(lines[0], "MULTI", 5) == 0,
               "only EXEC needs the connection that watches the key");
        if (lines[1] == NULL)
            break;
        resp_reader_gather(reader, (size_t)request.n_commands);
        (void)!resp_reader_feed(reader, lines[1], strlen(lines[1]), NULL);
        if (!ok(resp_reader_next(reader, &value, NULL) == RLOCK_OK && resp_reader_is_empty(reader)))
            return RLOCK_E_PROTOCOL;
        st = commands_read(&commands, value, 1, &answer, &refusal, &fault);
    }
    return st;
}

/* Does the operation with these requests and replies end in `st`, and, if it succeeds, `code`? */
static void ends(enum commands_task task, const char *const *lines, enum rlock_status st,
                 enum reply_code code, const char *what)
{
    commands_end(&commands);
    commands_begin(&commands, task, &owner);
    is_int(talk(lines), st, what);
    if (st == RLOCK_OK)
        is_int(answer.code, code, what);
}

/* Returns these replies one after the other. The text may be used until 20 calls later. */
static const char *replies(const char *const *reply)
{
    static char made[20][4000];
    static size_t n;
    char *bytes = made[n++ % 20];

    for (*bytes = '\0'; *reply != NULL; reply++)
        strcat(bytes, *reply);
    return bytes;
}

#define REPLIES(...) replies(ANSWERS(__VA_ARGS__))
/* The replies to LOOK: about a lock with this value; about a free lock. */
#define FOUND_FOR(left, value, fence) REPLIES(left, OK EMPTY OK, server_bulk(value), TIME, fence)
#define EMPTY "*0\r\n"
#define FOUND(value) FOUND_FOR(":20000\r\n", value, NIL)
#define FREE FOUND_FOR(":-2\r\n", "", NIL)
#define NOTED(found, note) REPLIES(found, note) /* those to LOOK_RENEW */
#define DRAWN(fence, value) REPLIES(":1\r\n" NIL, fence, ":1\r\n", server_bulk(value))
/* What a second attempt sends that finds the first one's value, and the replies. */
#define REWRITE(attempt, fence)                                                    \
    "MULTI; SET " FENCE " " fence " PX 604800000; SET k " TOKEN " v1 try=" attempt \
    " ttl=30000 host=h since=1700000000000 XX PX 30000; EXEC"
#define REWRITTEN OK QUEUED QUEUED "*2\r\n" OK OK

/* What a user may do is asked by commands that the server queues and drops. */
static void test_try(void)
{
    struct request request;

    open_owner();
    commands_begin_try(&commands, &owner.lock[0].keys, false);
    commands_build(&commands, &request);
    sends(&request, "MULTI; PTTL k; GETRANGE k 0 1278; TIME; GET " FENCE "; SET k  NX PX 1; TIME; "
                    "PEXPIRE " FENCE " 604800000; SET " FENCE " 1 NX PX 604800000; INCR " FENCE "; "
                    "PEXPIRE " FENCE " 604800000; GETRANGE k 0 1278; DISCARD; EXEC");
    commands_begin_try(&commands, &owner.lock[0].keys, true);
    commands_build(&commands, &request);
    is_int(request.n_commands, 20, "all other commands follow, too");
}

static void test_acquire(void)
{
    struct request undo;

    open_owner();
    ends(COMMANDS_ACQUIRE, ANSWERS(LOOK, FREE, CLAIM(OURS), OK TIME, DRAW, DRAWN(":42\r\n", OURS)),
         RLOCK_OK, REPLY_OK, "a free lock is granted");
    is_int((int64_t)answer.fence, 42, "the fence of a grant is that of INCR");
    ok(commands_build_undo(&commands, &undo), "an acquire can be undone");
    sends(&undo, "DELIFEQ k " OURS "; DELEX k IFEQ " OURS);
    ends(COMMANDS_ACQUIRE,
         ANSWERS(LOOK, FREE, CLAIM(OURS), OK TIME, DRAW, DRAWN(":42\r\n", "other")), RLOCK_OK,
         REPLY_LATE, "a grant whose lease ended before INCR is no grant");
    ends(COMMANDS_ACQUIRE, ANSWERS(LOOK, FREE, CLAIM(OURS), NIL TIME, LOOK, FOUND("other")),
         RLOCK_OK, REPLY_HELD,
         "a lock that another owner has taken since it was looked at is held");
    is_int(answer.obstacle.left_ms, 20000, "the obstacle has the time left of the holder's lease");
    ends(COMMANDS_ACQUIRE, ANSWERS(LOOK, FREE, CLAIM(OURS), "-OOM no\r\n" TIME), RLOCK_E_REFUSED, 0,
         "if the server refuses SET, the acquire fails");
    ok(refusal != NULL && strncmp(refusal, "OOM", 3) == 0, "the fault is the server's error");
    owner_begin_attempt(&owner);
    ends(COMMANDS_ACQUIRE,
         ANSWERS(LOOK, FOUND(OURS), REWRITE("2", "1700000000000007"), REWRITTEN, DRAW),
         RLOCK_PENDING, 0, "a second attempt that finds its value writes it anew");
    commands_begin(&commands, COMMANDS_ACQUIRE, &owner);
    ok(!commands_build_undo(&commands, &undo), "before the lock was looked at, nothing is undone");
}

static void test_fences(void)
{
    static const char *const bad[] = {"0", "01", "1x", "9007194959773697", "10000000000000000000"};

    open_owner();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ends(COMMANDS_ACQUIRE, ANSWERS(LOOK, FOUND_FOR(":-2\r\n", "", server_bulk(bad[i]))),
             RLOCK_E_REFUSED, 0, "a lock with a fence of another program isn't granted");
    ends(COMMANDS_ACQUIRE, ANSWERS(LOOK, FOUND_FOR(":-2\r\n", "", "-WRONGTYPE x\r\n")),
         RLOCK_E_REFUSED, 0, "a lock with a fence of another type isn't granted");
    ok(refusal == NULL && strstr(fault.text, FENCE) != NULL, "the error names the fence's key");
    ends(COMMANDS_ACQUIRE,
         ANSWERS(LOOK, FOUND_FOR(":-2\r\n", "", server_bulk("9007194959773696")), CLAIM(OURS),
                 OK TIME, DRAW, DRAWN(":9007194959773697\r\n", OURS)),
         RLOCK_E_REFUSED, 0, "a fence above 2^53 - 2^32 isn't granted");
}

/* The server loses the last fence, by its expiry for example, between two commands of a grant. */
static void test_lost_fence(void)
{
    static const char ahead[] = "1800000000000000"; /* the last fence, greater than the time */

    open_owner();
    ends(COMMANDS_ACQUIRE,
         ANSWERS(LOOK, FOUND_FOR(":-2\r\n", "", server_bulk(ahead)), CLAIM(OURS), OK TIME, DRAW,
                 DRAWN(":1\r\n", OURS), LOOK, FOUND_FOR(":20000\r\n", OURS, server_bulk("1")),
                 REWRITE("1", "1700000000000007"), REWRITTEN, DRAW,
                 DRAWN(":1700000000000008\r\n", OURS)),
         RLOCK_OK, REPLY_OK, "a fence that isn't greater than the last one isn't granted");
    is_int((int64_t)answer.fence, 1700000000000008);
    ends(COMMANDS_ACQUIRE,
         ANSWERS(LOOK, FREE, CLAIM(OURS), OK TIME, DRAW,
                 REPLIES(":0\r\n" OK ":1\r\n:1\r\n", server_bulk(OURS)), LOOK),
         RLOCK_PENDING, 0, "nor is one that isn't greater than the number that was written");
}

static void test_parent(void)
{
    static const char held[] = PARENT " v1 try=1 ttl=9000 host=h";

    open_owner();
    ends(COMMANDS_ACQUIRE,
         ANSWERS(LOOK, FOUND_FOR(":20000\r\n", held, server_bulk("7")),
                 "MULTI; PEXPIRE k 9000; EXEC", OK QUEUED "*1\r\n:1\r\n"),
         RLOCK_OK, REPLY_OK, "a lock that a parent holds is granted under its lease");
    ok(answer.n_locks == 1 && answer.lock[0].parent == 1 && answer.lock[0].ttl_ms == 9000 &&
       answer.fence == 7);
    ends(COMMANDS_ACQUIRE, ANSWERS(LOOK, FOUND(PARENT " v1 try=1 host=h")), RLOCK_E_PROTOCOL, 0,
         "a lock of a parent whose value doesn't tell its TTL isn't granted");
    owner.lock[0].parent = 1;
    ends(COMMANDS_RENEW,
         ANSWERS(LOOK_RENEW, NOTED(FOUND(held), NIL),
                 "MULTI; SET k " PARENT " v1 try=1 ttl=30000 host=h XX PX 30000; EXEC"),
         RLOCK_PENDING, 0, "the parent's lease is renewed");
    owner.lock[0].parent = 0;
    ends(COMMANDS_ACQUIRE,
         ANSWERS(LOOK, FOUND_FOR(":20000\r\n", held, server_bulk("7")),
                 "MULTI; PEXPIRE k 9000; EXEC", CHANGED, LOOK, FREE, CLAIM(OURS)),
         RLOCK_PENDING, 0, "if the parent's lock ends meanwhile, ours is taken with our TTL");
}

static void test_renew(void)
{
    open_owner();
    ends(COMMANDS_RENEW,
         ANSWERS(LOOK_RENEW, NOTED(FOUND(OURS), NIL), "MULTI; PEXPIRE k 30000; EXEC",
                 OK QUEUED "*1\r\n:1\r\n"),
         RLOCK_OK, REPLY_OK, "our lock is renewed");
    is_int(answer.left_ms, 30000, "a renewed lease lasts for its TTL");
    ends(COMMANDS_RENEW,
         ANSWERS(LOOK_RENEW, NOTED(FOUND(OURS), "-WRONGTYPE a list\r\n"),
                 "MULTI; PEXPIRE k 30000; EXEC", OK QUEUED "*1\r\n:0\r\n", LOOK_RENEW,
                 NOTED(FREE, NIL)),
         RLOCK_OK, REPLY_GONE, "a lock that has expired before PEXPIRE is gone");
    ends(COMMANDS_RENEW, ANSWERS(LOOK_RENEW, NOTED(FREE, server_bulk("released"))), RLOCK_OK,
         REPLY_RELEASED, "a note tells that the lock was released");
    ends(COMMANDS_RENEW,
         ANSWERS(LOOK_RENEW, NOTED(FOUND("other"), server_bulk("broken v1 host=x"))), RLOCK_OK,
         REPLY_BROKEN, "a note tells that the lock was broken");
    ends(COMMANDS_RENEW, ANSWERS(LOOK_RENEW, NOTED(FOUND("other"), NIL)), RLOCK_OK, REPLY_HELD,
         "another owner has the lock");
    ends(COMMANDS_RENEW, ANSWERS(LOOK_RENEW, NOTED(FOUND(TOKEN " v1 try=0 host=h"), NIL)), RLOCK_OK,
         REPLY_HELD, "a lock that is reserved for this token is not held by it");
    ends(COMMANDS_RENEW,
         ANSWERS(LOOK_RENEW, NOTED(FOUND_FOR(":31000\r\n", OURS, NIL), NIL),
                 "MULTI; SET k " TOKEN " v1 try=1 ttl=31000 host=h "
                 "since=1700000000000 XX PX 31000; EXEC",
                 CHANGED, LOOK_RENEW, NOTED(FOUND_FOR(":31001\r\n", OURS, NIL), NIL),
                 "MULTI; PEXPIRE k 30000; EXEC"),
         RLOCK_PENDING, 0,
         "a renewal doesn't shorten a lease that another process has noted; one that is longer "
         "than any that was noted is no such lease");
    owner_set_renewal_ttl(&owner, 1000);
    ends(COMMANDS_RENEW,
         ANSWERS(LOOK_RENEW, NOTED(FOUND_FOR(":31001\r\n", OURS, NIL), NIL),
                 "MULTI; PEXPIRE k 30000; EXEC"),
         RLOCK_PENDING, 0, "such a lease gets the TTL that was noted");
}

static void test_release(void)
{
    open_owner();
    ends(COMMANDS_RELEASE,
         ANSWERS(LOOK, FOUND(OURS), "MULTI; DEL k; EXEC", CHANGED, LOOK, FOUND(OURS),
                 "MULTI; DEL k; EXEC", OK QUEUED "*1\r\n:1\r\n"),
         RLOCK_OK, REPLY_OK, "our lock is released, also if its value has changed once");
    is_int((int64_t)commands.watched_on, 1, "EXEC is sent by the connection that watches the key");
    ends(COMMANDS_RELEASE,
         ANSWERS(LOOK, FOUND(OURS), "MULTI; DEL k; EXEC", CHANGED, LOOK, FOUND("other")), RLOCK_OK,
         REPLY_HELD, "the lock of another owner isn't released");
    ends(COMMANDS_RELEASE, ANSWERS(LOOK, FREE), RLOCK_OK, REPLY_GONE, "a free lock is gone");
    ends(COMMANDS_RELEASE, ANSWERS(LOOK, FOUND_FOR(":-1\r\n", "", NIL)), RLOCK_OK, REPLY_HELD,
         "an empty value is another program's");
    ends(COMMANDS_RELEASE,
         ANSWERS(LOOK, FOUND_FOR(":20000\r\n", KEPT, server_bulk("42")),
                 "MULTI; SET " FENCE " 1700000000000007 PX 604800000; SET " WAKE
                 " released PX 20000; DEL k; EXEC",
                 OK QUEUED QUEUED QUEUED "*3\r\n" OK OK ":1\r\n"),
         RLOCK_OK, REPLY_OK,
         "a process that renews the lease is told of the release, and can't put the lock back");
    ends(COMMANDS_RELEASE,
         ANSWERS(LOOK, FOUND_FOR(":20000\r\n", KEPT, server_bulk("1")),
                 "MULTI; SET " FENCE " 1700000000000007 PX 604800000; SET " WAKE
                 " released PX 20000; DEL k; EXEC"),
         RLOCK_PENDING, 0, "the smallest fence is raised, too");
    for (size_t i = 0; i < 2; i++)
        ends(COMMANDS_RELEASE,
             ANSWERS(LOOK, FOUND_FOR(":20000\r\n", KEPT, i == 0 ? NIL : server_bulk("1x")),
                     "MULTI; SET " WAKE " released PX 20000; DEL k; EXEC"),
             RLOCK_PENDING, 0, "a release writes no fence that is missing or another program's");
    ends(COMMANDS_RELEASE, ANSWERS(LOOK, FOUND_FOR(":-1\r\n", KEPT, NIL), "MULTI; DEL k; EXEC"),
         RLOCK_PENDING, 0, "a note about a lock without a TTL would never end");
    ends(COMMANDS_RELEASE, ANSWERS(LOOK, FOUND(SHARED)), RLOCK_E_USAGE, 0,
         "a shared lock can't be released without scripts");
    ends(COMMANDS_RELEASE,
         ANSWERS(LOOK, REPLIES(":20000\r\n", "-NOPERM no 'multi'\r\n", "-ERR no MULTI\r\n", OK,
                               server_bulk(OURS), TIME, NIL)),
         RLOCK_E_REFUSED, 0, "without MULTI the server would delete the key at once");
    ok(refusal != NULL && strstr(refusal, "'multi'") != NULL, "the server's error names MULTI");
    ends(COMMANDS_RELEASE,
         ANSWERS(LOOK, FOUND(OURS), "MULTI; DEL k; EXEC", OK "-READONLY x\r\n-EXECABORT\r\n"),
         RLOCK_E_REFUSED, 0, "a server that has become a replica refuses the release");
    ends(COMMANDS_UNDO, ANSWERS(LOOK, FOUND(TOKEN " v1 try=7 ttl=30000 host=h")), RLOCK_OK,
         REPLY_HELD, "an undo leaves the value of another attempt alone");
    owner_set_ending(&owner, RLOCK_ENDS_REST, 5000);
    ends(COMMANDS_RELEASE,
         ANSWERS(LOOK, FOUND(OURS),
                 "MULTI; SET k 00000000000000000000000000000000 v1 mode=rest host=h "
                 "since=1700000000000 XX PX 5000; EXEC"),
         RLOCK_PENDING, 0, "with --min-hold a release writes the value that the scripts write");
}

/* Reads a lock with this value, and copies the name of the value. */
static void name_of(const char *value, char name[sizeof commands.name])
{
    commands_begin_read(&commands, &keys, false);
    is_int(
        talk(ANSWERS("PTTL k; GETRANGE k 0 1278; TIME; GET " FENCE "; ZCARD {k}:rlock:queue",
                     REPLIES(":20000\r\n", server_bulk(value), TIME, server_bulk("77"), ":3\r\n"))),
        RLOCK_OK, "a lock is read");
    ok(commands.exists && commands.fence == 77 && commands.waiting == 3 && !commands.has_bad_fence);
    strcpy(name, commands.name);
}

/* Does a break of the lock with this name end so? `last` is what the break sends last, or NULL. */
static void breaks(const char *found, const char *name, const char *last, enum rlock_status st,
                   enum reply_code code, const char *what)
{
    commands_end(&commands);
    commands_begin_break(&commands, &keys, name, "host=me");
    is_int(talk(ANSWERS(LOOK, found, last)), st, what);
    if (st == RLOCK_OK)
        is_int(answer.code, code, what);
}

static void test_break(void)
{
    char ours[sizeof commands.name];
    char other[sizeof commands.name];
    char shared[sizeof commands.name];

    name_of(OURS, ours);
    name_of("other", other);
    name_of(SHARED, shared);
    breaks(FOUND(OURS), ours,
           "MULTI; SET " FENCE " 1700000000000007 PX 604800000; SET " WAKE
           " broken host=me PX 20000; DEL k; EXEC",
           RLOCK_PENDING, 0, "a break raises the fence, leaves a note and deletes the key");
    breaks(FOUND_FOR(":-1\r\n", "other", server_bulk("1800000000000000")), other,
           "MULTI; SET " FENCE " 1800000000000001 PX 604800000; DEL k; EXEC", RLOCK_PENDING, 0,
           "another program's lock is broken without a note");
    breaks(FOUND("other"), ours, NULL, RLOCK_OK, REPLY_HELD, "another value isn't broken");
    breaks(FREE, ours, NULL, RLOCK_OK, REPLY_GONE, "a free lock isn't broken");
    breaks(FOUND(SHARED), shared, NULL, RLOCK_E_USAGE, 0, "a shared lock isn't broken");
    breaks(FOUND_FOR(":9\r\n", OURS, server_bulk("x")), ours, NULL, RLOCK_E_REFUSED, 0,
           "a lock whose fence is another program's isn't broken");
}

static const struct rlock_config by_commands = {.keys = &key,
                                                .n_keys = 1,
                                                .token = TOKEN,
                                                .scripts = RLOCK_SCRIPTS_NO,
                                                .timing = {.ttl_ms = 30000, .renew_ms = 10000}};

/*
 * The server doesn't answer the SET of an acquire. Behind it, on the same connection, rlock sends
 * the undo.
 */
static void test_abandoned(void)
{
    struct server server = {.answers = {[ASKED_OTHER] = ANSWERS(":-2\r\n", OK, EMPTY, OK,
                                                                "$0\r\n\r\n", TIME, NIL, SILENT)}};
    struct rlock_grant grant;
    struct rlock *lock = NULL;
    int n;

    if (!is_int(server_open(&server, by_commands, &lock, NULL), RLOCK_OK, "a handle is opened"))
        return;
    ok(rlock_acquire(lock, in(500), &grant, NULL, &fault) >= RLOCK_E_USAGE, "the acquire fails");
    rlock_close(lock);
    server_stop(&server);
    for (n = 0; n < atomic_load(&server.n_log) && strncmp(server.log[n].text, "DEL", 3) != 0; n++)
        continue;
    ok(n > 8 && strncmp(server.log[n - 2].text, "SET k ", 6) == 0 &&
       strncmp(server.log[n].text, "DELIFEQ k " TOKEN " v1 try=1 ", 52) == 0);
}

/* A server that answers a client which is stopped meanwhile. */
struct stopped {
    struct server server;
    int client;  /* a duplicate of the client's socket, which the client may close meanwhile */
    int stop_fd; /* an epoll */
};

/* Waits until the server has read a SET, and then lets `stop_fd` wait for the client's socket. */
static void *stop_behind_set(void *arg)
{
    struct stopped *stopped = arg;
    int n = 0;

    do
        while (n >= atomic_load(&stopped->server.n_log))
            poll(NULL, 0, 1);
    while (strncmp(stopped->server.log[n++].text, "SET", 3) != 0);
    epoll_ctl(stopped->stop_fd, EPOLL_CTL_ADD, stopped->client,
              &(struct epoll_event){.events = EPOLLIN});
    return NULL;
}

/*
 * The stop descriptor is readable exactly when a whole reply has come: it is an epoll over the
 * client's socket, whose SO_RCVLOWAT is the length of that reply, which the server sends at once.
 * If it is the reply to LOOK, no SET is sent. If it is the one to the SET, an undo follows.
 */
#define FREE_KEY ":-2\r\n" OK EMPTY OK "$0\r\n\r\n" TIME NIL
static void test_stopped_beside_reply(bool behind_set)
{
    static struct stopped stopped;
    int bytes = (int)strlen(behind_set ? OK TIME : FREE_KEY);
    struct rlock_grant grant;
    struct rlock *lock = NULL;
    pthread_t thread;

    stopped = (struct stopped){
        .server = {.answers = {[ASKED_OTHER] = ANSWERS(":9\r\n", OK, EMPTY, OK, "$1\r\nx\r\n", TIME,
                                                       NIL, "", "", "", "", "", "", FREE_KEY, "",
                                                       AFTER(400, OK TIME), SILENT)}},
        .stop_fd = epoll_create1(0)};
    need(server_open(&stopped.server, by_commands, &lock, NULL) == RLOCK_OK, "a handle is opened");
    is_int(rlock_acquire(lock, in(0), &grant, NULL, &fault), RLOCK_BUSY);
    stopped.client = dup(server_client(&stopped.server));
    ok(setsockopt(stopped.client, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0);
    if (behind_set)
        need(pthread_create(&thread, NULL, stop_behind_set, &stopped) == 0, "a thread is started");
    else
        ok(epoll_ctl(stopped.stop_fd, EPOLL_CTL_ADD, stopped.client,
                     &(struct epoll_event){.events = EPOLLIN}) == 0);
    ok(rlock_acquire(lock, (struct rlock_deadline){rlock_clock_ms() + 2000, stopped.stop_fd},
                     &grant, NULL, &fault) != RLOCK_OK);
    if (behind_set)
        pthread_join(thread, NULL);
    rlock_close(lock);
    close(stopped.stop_fd);
    close(stopped.client);
    server_stop(&stopped.server);
    ok(server_has_read(&stopped.server, ASKED_OTHER, "SET k ") == behind_set,
       "after a stop no lock is claimed");
    ok(!behind_set || server_has_read(&stopped.server, ASKED_OTHER, "DEL"),
       "a claimed lock is given back");
}

int main(void)
{
    reader = resp_reader_new();
    if (!ok(reader != NULL, "the test makes a reader of replies") ||
        !is_int(keys_init(&keys, key, NULL, NULL), RLOCK_OK, "the lock has keys"))
        return done_testing();
    RUN_ALL(test_try, test_acquire, test_fences, test_lost_fence, test_parent, test_renew,
            test_release, test_break, test_abandoned);
    RUN(test_stopped_beside_reply(false));
    RUN(test_stopped_beside_reply(true));
    commands_end(&commands);
    keys_fini(&keys);
    owner_close(&owner);
    resp_reader_free(reader);
    return done_testing();
}
