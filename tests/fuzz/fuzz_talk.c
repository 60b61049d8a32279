/* SPDX-License-Identifier: MIT */
/*
 * fuzz_talk: lets a member send requests to servers that answer anything, close, reset and refuse
 * connections, read slowly, or are silent until the member's time is over.
 *
 * The target is all servers at once (network.h). The first two bytes of the input choose the URL
 * and the settings, each further byte one step, see enum talk_step. Whatever the servers say, the
 * member
 *
 * - must not hang, and must not use a processor while it waits for a server;
 * - must not send a script again before the server has answered, as the server may have run it;
 * - must give each fault a text without any password; it forgets one when a server accepted it;
 * - must close all descriptors in the end.
 */
#include "base/clock.h"
#include "fuzz.h"
#include "lock/commands.h"
#include "lock/scripts.h"
#include "network.h"
#include "quorum/member.h"

#include "server.h"

#define PASSWORD "s3cret-PW"
#define TURNS_MAX 64 /* a member that acts more often than this after one step hangs in a loop */
#define WAIT_UNIT_MS 25
#define SMALL_REPLY_BYTES 300

#define TOKEN "0123456789abcdef0123456789abcdef"
#define PARENT "fedcba9876543210fedcba9876543210"
#define OURS TOKEN " v1 try=1 ttl=30000 host=h since=1700000000000"
#define TIME "*2\r\n$10\r\n1700000000\r\n$1\r\n7\r\n"
#define WATCHED "+OK\r\n*0\r\n+OK\r\n" /* replies to MULTI, EXEC and WATCH */

/* Replies. `bulk` is sent as a string with its length, between `head` and `tail`. */
static const struct {
    const char *head;
    const char *bulk; /* NULL: the reply is `head` alone */
    const char *tail;
} replies[] = {
    {.head = "+OK\r\n"},
    {.head = GRANT},
    {.head = HELD},
    {.head = BUSY},
    {.head = SUPERSEDED},
    {.head = LATE},
    {.head = RENEWED},
    {.head = RESTORED},
    {.head = LOST_TO},
    {.head = WOKEN},
    {.head = NOT_WOKEN},
    {.head = ":1\r\n"},
    {.head = ":0\r\n"},
    {.head = "$-1\r\n"},
    {.head = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"},
    {.head = "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:7000\r\n$9\r\nconnected\r\n:0\r\n"},
    {.head = "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n7000\r\n"},
    {.head = "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n7001\r\n"},
    {.head = "*2\r\n$9\r\nh.example\r\n$4\r\n7001\r\n"},
    {.head = "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n70000\r\n"},
    {.head = "-NOSCRIPT No matching script. Please use EVAL.\r\n"},
    {.head = "-MOVED 1 127.0.0.1:7000\r\n"},
    {.head = "-MOVED 1 127.0.0.1:7001\r\n"},
    {.head = "-MOVED 1 :7002\r\n"},
    {.head = "-MOVED 1 h.example:7003\r\n"},
    {.head = "-MOVED 1 \r\n"},
    {.head = "-ASK 1 127.0.0.2:7001\r\n"},
    {.head = "-ASK 1 127.0.0.3:7001\r\n"},
    {.head = "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"},
    {.head = "-CLUSTERDOWN The cluster is down\r\n"},
    {.head = "-NOAUTH Authentication required.\r\n"},
    {.head = "-WRONGPASS invalid username-password pair or user is disabled: " PASSWORD "\r\n"},
    {.head = "-READONLY You can't write against a read only replica.\r\n"},
    {.head = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"},
    {.head = "-ERR max number of clients reached\r\n"},
    {.head = "-ERR user_script:3: oops script: e0e1f9fabfc9d4800c877a703b823ac0578ff8db, on "
             "@user_script:3.\r\n"},
    {.head = "-NOPERM this user has no permissions to run the 'info' command\r\n"},
    {.head = "-UNBLOCKED force unblock from blocking operation\r\n"},
    {.head = LOADING},
    {.head = NO_CLUSTER},
    {"", "# Server\r\nredis_version:7.0.15\r\nrun_id:0123456789\r\nuptime_in_seconds:9\r\n", ""},
    {"", "id 127.0.0.1:7000 myself,master - 0 0 1 connected 0-9\n", ""},
    {"",
     "a 127.0.0.1:7000@17000,one myself,master - 0 0 1 connected 0-8191\n"
     "b 127.0.0.1:7001@17001,two master - 0 0 2 connected 8192-16383\n"
     "c 127.0.0.1:7002@17002,three slave a 0 0 1 connected\n",
     ""},
    {.head = "HTTP/1.1 400 Bad Request\r\n\r\n"},
    {.head = "SSH-2.0-OpenSSH_9.2\r\n"},
    {.head = "AUTH " PASSWORD "\r\n"},
    {.head = "\x15\x03\x01\x00\x02\x02\x46"},
    /* RESP3: a message that nobody has asked for, a map, null, a large number, an attribute */
    {.head = ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n"},
    {.head = "%1\r\n+a\r\n:1\r\n"},
    {.head = "_\r\n"},
    {.head = "(3492890328409238509324850943850943825024385\r\n"},
    {.head = "|1\r\n+ttl\r\n:3600\r\n+OK\r\n"},
    {.head = "$70000\r\n"},
    {.head = "*65\r\n"},
    /* to SET and TIME, which claim the lock; then to PEXPIRE, SET, INCR and GETRANGE: the fence */
    {.head = "+OK\r\n" TIME},
    {.head = "$-1\r\n" TIME},
    {.head = "-MOVED 1 127.0.0.1:7001\r\n" TIME},
    {.head = "-OOM command not allowed\r\n" TIME},
    {":0\r\n+OK\r\n:1700000000000001\r\n", OURS, ""},
    {":1\r\n$-1\r\n:42\r\n", "another program's value", ""},
    {":1\r\n$-1\r\n-ERR value is not an integer or out of range\r\n", OURS, ""},
    {":1\r\n$-1\r\n:-5\r\n", OURS, ""},
    /* to PTTL, MULTI, EXEC, WATCH, GETRANGE, TIME, GET and perhaps GET, which read the lock */
    {":20000\r\n" WATCHED, OURS, TIME "$-1\r\n"},
    {":20000\r\n" WATCHED, OURS, TIME "$-1\r\n$-1\r\n"},
    {":65000\r\n" WATCHED, TOKEN " v1 try=1 ttl=65000 host=h", TIME "$-1\r\n$-1\r\n"},
    {":20000\r\n" WATCHED, PARENT " v1 try=1 ttl=60000 host=h", TIME "$2\r\n41\r\n"},
    {":20000\r\n-NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n", OURS, TIME "$-1\r\n"},
    {":20000\r\n" WATCHED, TOKEN " v1 try=1 ttl=60000 kept=1 host=h", TIME "$-1\r\n"},
    {":20000\r\n" WATCHED, "rlock:shared v1 mode=shared", TIME "$-1\r\n"},
    {":-1\r\n" WATCHED, "another program's value", TIME "-WRONGTYPE no\r\n"},
    {":-2\r\n" WATCHED, "", TIME "$-1\r\n$8\r\nreleased\r\n"},
    {":-2\r\n" WATCHED, "", TIME "$-1\r\n$17\r\nbroken host=other\r\n"},
    {":-2\r\n" WATCHED, "", TIME "$-1\r\n$-1\r\n"},
    {":-2\r\n" WATCHED, "", TIME "$-1\r\n"},
    /* to MULTI, one command or two, and EXEC */
    {.head = "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n"},
    {.head = "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"},
    {.head = "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:1\r\n"},
    {.head = "+OK\r\n+QUEUED\r\n*-1\r\n"},
    {.head = "+OK\r\n-READONLY no\r\n-EXECABORT no\r\n"},
};

#define N_REPLIES (sizeof replies / sizeof *replies)

/*
 * What a byte of the input means: one of these steps; or, from STEP_REPLY on, the target sends the
 * reply with the index byte - STEP_REPLY. "N" is the next byte of the input. The target sends on
 * the current connection: the newest, until STEP_OLDER chooses another.
 */
enum talk_step {
    STEP_RAW,      /* the target sends the N bytes of the input that stand behind N */
    STEP_CLOSE,    /* the target closes the current connection */
    STEP_RESET,    /* the target resets the current connection */
    STEP_OLDER,    /* the next older connection becomes the current one */
    STEP_ASK,      /* the member gives its request up, and begins another: N is an enum talk_ask */
    STEP_PIECE,    /* the step after it sends only N bytes of its reply */
    STEP_WAIT,     /* N * WAIT_UNIT_MS pass */
    STEP_SLEEP,    /* as much time passes as the member wants to wait */
    STEP_CONNECT,  /* N is the enum network_connect of the next attempt to connect */
    STEP_LOOKUP,   /* the lookups of names end, and each has found N addresses */
    STEP_ROOM,     /* the server reads N more bytes of what the member sends, and no more */
    STEP_PASSWORD, /* the lookup of the password ends; N 0: it has found none */
    STEP_REPLY
};

/* What the member is asked to do. */
enum talk_ask {
    ASK_ACQUIRE,
    ASK_RENEW,
    ASK_CONFIRM,
    ASK_RELEASE,
    ASK_UNPARSED, /* the target itself reads the reply */
    ASK_EVAL,     /* the script's text is sent from the start */
    ASK_VISIT,    /* from now on only another server is asked */
    ASK_BOUND,    /* the request may go only by the connection of the request before it */
    ASK_BLOCK,    /* BLPOP */
    ASK_TOPOLOGY, /* the member sends CLUSTER NODES before the request */
    ASK_COMMANDS, /* from here on: operations without scripts, an enum commands_task each */
    ASKS = ASK_COMMANDS + COMMANDS_BREAK - COMMANDS_ACQUIRE + 1
};

static struct owner owner;
static struct commands commands; /* the operation without scripts that goes on, if one does */
/* The connection on which a script was sent that the server has not answered; 0: there is none. */
static size_t unanswered;
static int password_fds[2];
static bool has_no_password;
static bool has_forgotten; /* the member has looked its password up, and logged in */

/* ---- the lookup of the password ---- */

static void close_password_fd(int end)
{
    if (password_fds[end] >= 0)
        close(password_fds[end]);
    password_fds[end] = -1;
}

static int ask_password(void *context, int64_t deadline_ms, struct rlock_error *err)
{
    (void)context;
    (void)deadline_ms;
    close_password_fd(0);
    close_password_fd(1);
    if (pipe2(password_fds, 0) != 0) {
        (void)!snprintf(err->text, sizeof err->text, "no descriptor is left");
        err->status = RLOCK_E_SYSTEM;
        return password_fds[0] = password_fds[1] = -1;
    }
    return password_fds[0];
}

static enum rlock_status take_password(void *context, char *password, size_t room,
                                       struct rlock_error *err)
{
    (void)context;
    close_password_fd(0);
    snprintf(password, room, "%s", PASSWORD);
    if (!has_no_password)
        return RLOCK_OK;
    *err = (struct rlock_error){.status = RLOCK_E_REFUSED,
                                .reason = RLOCK_REASON_PASSWORD_LOOKUP,
                                .text = "the password file is empty"};
    return RLOCK_E_REFUSED;
}

/* ---- the servers ---- */

static void note_sent(size_t connection, const char *bytes, size_t n)
{
    if (memmem(bytes, n, "\r\nEVAL", 6) == NULL)
        return;
    must(unanswered == 0);
    unanswered = connection;
}

static void send_bytes(const char *bytes, size_t n)
{
    if (n > 0 && network_current() == unanswered)
        unanswered = 0;
    network_send(bytes, n);
}

static void send_reply(size_t which, size_t part)
{
    char bytes[512];
    size_t n = (size_t)snprintf(bytes, sizeof bytes, "%s", replies[which].head);

    if (replies[which].bulk != NULL)
        n +=
            (size_t)snprintf(bytes + n, sizeof bytes - n, "$%zu\r\n%s\r\n%s",
                             strlen(replies[which].bulk), replies[which].bulk, replies[which].tail);
    must(n < sizeof bytes);
    send_bytes(bytes, part < n ? part : n);
}

/* ---- the member ---- */

static void check(const struct member *member)
{
    has_forgotten =
        has_forgotten || (member->password_source != NULL && member_is_logged_in(member));
    must(member->state == RLOCK_PENDING || member->state == RLOCK_OK ||
         (member->err.status == member->state && member->err.text[0] != '\0'));
    must(member->state == RLOCK_PENDING || member->state == RLOCK_OK ||
         member->url.kind == URL_SENTINEL || !member_has_password(member) || has_forgotten ||
         strstr(member->err.text, PASSWORD) == NULL);
    must(member->state != RLOCK_OK || member->request.read == NULL ||
         member->answer.code != REPLY_OK || member_has_granted(member));
    must(!member_has_granted(member) || member_has_heard(member));
    must(member->state != RLOCK_OK || !member_is_on_grant_connection(member) ||
         member_has_granted(member));
    must(!member_may_retry_password(member) || member->err.text[0] != '\0');
    must(member_sent_ms(member) >= 0 && member_sent_ms(member) <= rlock_clock_ms());
    must(member_server_ms(member, rlock_clock_ms()) >= 0);
    must(!member_is_logged_in(member) || member_primary_url(member)->shown[0] != '\0');
}

/* Lets the member act until it waits for a server or for a time, as the caller of a member does. */
static void step_member(struct member *member)
{
    struct pollfd fds[MEMBER_POLLFDS_MAX];
    int turns = 0;

    while (member->state == RLOCK_PENDING && turns++ < TURNS_MAX &&
           (network_poll(fds, member_fill_pollfds(member, fds)) > 0 ||
            rlock_clock_ms() >= member_wake_ms(member))) {
        if (rlock_clock_ms() >= member_deadline_ms(member))
            member_abandon(member, NULL);
        else
            member_step(member);
    }
    must(turns <= TURNS_MAX);
    check(member);
}

static void visit(struct member *member)
{
    struct url url;

    must(url_parse(&url, "redis://127.0.0.1:7001", NULL) == RLOCK_OK);
    member_visit(member, &url);
}

static void ask_script(struct member *member, enum talk_ask what, struct member_limits limits)
{
    static reply_parse *const read[] = {[ASK_ACQUIRE] = reply_parse_acquire,
                                        [ASK_RENEW] = reply_parse_renew,
                                        [ASK_CONFIRM] = reply_parse_confirm,
                                        [ASK_RELEASE] = reply_parse_release,
                                        [ASK_UNPARSED] = NULL,
                                        [ASK_EVAL] = reply_parse_release,
                                        [ASK_VISIT] = reply_parse_acquire,
                                        [ASK_BOUND] = reply_parse_acquire,
                                        [ASK_BLOCK] = NULL,
                                        [ASK_TOPOLOGY] = reply_parse_acquire};
    struct request request;

    if (what == ASK_BLOCK) {
        limits.block_ms = 5000;
        request_begin(&request, "BLPOP");
        request_add(&request, "w");
    } else {
        request_begin(&request, "EVALSHA");
        request.script = "return 1";
        request_add(&request, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        request_add(&request, "1");
        request_add(&request, "K");
    }
    if (what == ASK_EVAL)
        request_use_eval(&request);
    if (what == ASK_VISIT && member->url.kind != URL_SENTINEL)
        visit(member);
    if (what == ASK_BOUND)
        request_bind(&request, member_connection(member));
    member_ask(member, &request, read[what], limits);
}

static void ask_next(struct member *member, struct member_limits limits)
{
    struct request request;

    commands_build(&commands, &request);
    member_ask(member, &request, NULL, limits);
}

static void ask(struct member *member, enum talk_ask what)
{
    struct member_limits limits = {.connect_deadline_ms = rlock_clock_ms() + 5000,
                                   .reply_ms = 2000};

    if (member->state == RLOCK_PENDING)
        member_abandon(member, NULL);
    must(member->state != RLOCK_PENDING);
    commands_end(&commands);
    unanswered = 0;
    if (what == ASK_TOPOLOGY)
        limits.is_in_long_use = true;
    if (what >= ASK_COMMANDS) {
        enum commands_task task = (enum commands_task)(what - ASK_COMMANDS + COMMANDS_ACQUIRE);

        if (task == COMMANDS_BREAK)
            commands_begin_break(&commands, &owner.lock[0].keys, "0123456789abcdef", "user=u");
        else
            commands_begin(&commands, task, &owner);
        ask_next(member, limits);
    } else {
        ask_script(member, what, limits);
    }
}

/* Reads the replies to a request of an operation without scripts, and sends the next request. */
static void go_on(struct member *member)
{
    struct member_limits limits = {.connect_deadline_ms = rlock_clock_ms() + 5000,
                                   .reply_ms = 2000};
    struct rlock_error err;
    const char *refusal;
    struct reply answer;
    enum rlock_status st;

    while (commands.task != COMMANDS_NONE && member->state == RLOCK_OK) {
        st = commands_read(&commands, member->reply, member_connection(member), &answer, &refusal,
                           &err);
        if (st == RLOCK_PENDING) {
            ask_next(member, limits);
            step_member(member);
            continue;
        }
        commands_end(&commands);
        if (st != RLOCK_OK)
            member_reject(member, refusal, &err);
        member_conclude(member, st == RLOCK_OK ? &answer : NULL, member_sent_ms(member));
    }
}

static void wait_for_member(const struct member *member)
{
    int64_t ms = member->state == RLOCK_PENDING ? member_wake_ms(member) - rlock_clock_ms() : 0;

    network_move_clock(ms > 0 ? ms : 0);
}

/* Does the step that changes what comes later, and sends nothing. `next` is the byte behind it. */
static void change(struct member *member, enum talk_step step, uint8_t next)
{
    if (step == STEP_WAIT)
        network_move_clock(next * WAIT_UNIT_MS);
    else if (step == STEP_CONNECT)
        network_set_next_connect((enum network_connect)(next % (NETWORK_HANGS + 1)));
    else if (step == STEP_LOOKUP)
        network_end_lookups(next % 4);
    else if (step == STEP_ROOM)
        network_set_room(next == UINT8_MAX ? SIZE_MAX : next);
    else if (step == STEP_PASSWORD)
        close_password_fd(1);
    else
        ask(member, (enum talk_ask)(next % ASKS));
    if (step == STEP_PASSWORD)
        has_no_password = next == 0;
}

static void talk(struct member *member, const uint8_t *data, size_t n)
{
    size_t part = SIZE_MAX;
    size_t at;

    ask(member, n > 0 ? (enum talk_ask)(data[0] % ASKS) : ASK_ACQUIRE);
    step_member(member);
    for (at = 1; at < n; at++) {
        size_t left = n - at - 1;
        uint8_t next = left > 0 ? data[at + 1] : 0;

        if (data[at] == STEP_RAW && left > 0) {
            size_t length = next < left - 1 ? next : left - 1;

            send_bytes((const char *)data + at + 2, length < part ? length : part);
            at += 1 + length;
        } else if (data[at] == STEP_CLOSE || data[at] == STEP_RESET) {
            network_close(data[at] == STEP_RESET);
        } else if (data[at] == STEP_OLDER) {
            network_choose_older();
        } else if (data[at] == STEP_PIECE) {
            part = next;
            at++;
            continue;
        } else if (data[at] == STEP_SLEEP) {
            wait_for_member(member);
        } else if (data[at] < STEP_REPLY) {
            change(member, (enum talk_step)data[at], next);
            at++;
        } else {
            send_reply((data[at] - (size_t)STEP_REPLY) % N_REPLIES, part);
        }
        part = SIZE_MAX;
        step_member(member);
        go_on(member);
        if (member->state != RLOCK_PENDING && at + 1 < n && data[at + 1] != STEP_ASK) {
            ask(member, ASK_ACQUIRE);
            step_member(member);
        }
    }
    if (member->state == RLOCK_PENDING)
        member_abandon(member, NULL);
    must(member->state != RLOCK_PENDING);
    check(member);
    commands_end(&commands);
}

/* ---- an input ---- */

static void open_owner(uint8_t settings)
{
    static const char *const key = "k";
    static const char parent[] = PARENT;
    const char *const parents[] = {parent};
    struct rlock_config config = {.keys = &key,
                                  .n_keys = 1,
                                  .timing = {.ttl_ms = 30000},
                                  .holder = {.host = "h"},
                                  .token = TOKEN,
                                  .parent_tokens = parents,
                                  .n_parents = settings & 8 ? 1 : 0,
                                  .only_parents = settings & 16,
                                  .scripts = RLOCK_SCRIPTS_NO};

    must(owner_open(&owner, &config, NULL) == RLOCK_OK);
    owner_begin_attempt(&owner);
    if (settings & 32)
        owner_set_ending(&owner, RLOCK_ENDS_REST, 5000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const urls[] = {
        "redis://127.0.0.1:7000",
        "redis://:" PASSWORD "@127.0.0.1:7000/2",
        "redis+sentinel://:" PASSWORD "@10.0.0.1,10.0.0.2,10.0.0.3/service",
        "redis://one.example:7000",
        "unix:///run/redis.sock?db=3",
        "redis+sentinel://one.example,10.0.0.2/service",
        "redis://user:" PASSWORD "@one.example:7000",
        "rediss://127.0.0.1:7000",
    };
    static const struct rlock_password_source callbacks = {.ask = ask_password,
                                                           .take = take_password};
    struct password_source source;
    struct password_source *used;
    struct member member;
    struct member one_sentinel;
    bool asks_sentinel;

    if (n < 2)
        return 0;
    network_begin(note_sent);
    password_fds[0] = password_fds[1] = -1;
    has_no_password = has_forgotten = false;
    password_source_init(&source, &callbacks, 10000);
    used = data[1] & 4 ? &source : NULL;
    open_owner(data[1]);
    must(member_open(&member, urls[data[0] % (sizeof urls / sizeof *urls)], NULL, used, NULL) ==
         RLOCK_OK);
    if (used == NULL && member.url.kind == URL_SENTINEL)
        must(member_open_sentinels(&member, "u", NULL, NULL, NULL) == RLOCK_E_CONFIG);
    must(member_open_sentinels(&member, used != NULL ? "u" : NULL, NULL, used, NULL) == RLOCK_OK);
    member_set_tls(&member, NULL);
    member_join(&member, data[1] & 1 ? 3 : 1, data[1] & 2 ? SMALL_REPLY_BYTES : 64 * 1024, NULL);
    asks_sentinel = member.url.kind == URL_SENTINEL && data[1] & 128;
    if (asks_sentinel)
        must(member_open_one_sentinel(&one_sentinel, &member, 1) == RLOCK_OK);
    talk(asks_sentinel ? &one_sentinel : &member, data + 2, n - 2);
    if (asks_sentinel)
        member_close(&one_sentinel);
    if (data[1] & 64)
        member_forget_password(&member);
    member_close(&member);
    password_source_fini(&source);
    close_password_fd(0);
    close_password_fd(1);
    owner_close(&owner);
    network_end();
    return 0;
}
