/* SPDX-License-Identifier: MIT */
/* server: a simulated Redis server: connections, clients that block, its clock, its restarts. */
#include "server.h"

#include "process.h"
#include "redis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALL_START_US INT64_C(1795277769000000) /* 2026 */
#define WORDS_MAX 1100
#define BLOCK_KEYS_MAX 32

/* One connection, as the server sees it. */
struct session {
    struct link *link;
    struct buffer input;
    bool is_queuing;      /* between MULTI and EXEC */
    struct buffer queued; /* the requests since MULTI */
    size_t n_queued;
    struct buffer watched; /* the key of WATCH; at NULL: none */
    struct buffer was;     /* the string and the expiry that this key had */
    bool is_blocked;
    struct buffer blocked_on[BLOCK_KEYS_MAX];
    size_t n_blocked_on;
    uint64_t n_blocks; /* number of the present BLPOP; a time-out of an earlier one does nothing */
    uint64_t order;    /* of clients that block, the server serves the lowest order first */
    struct session *next;
};

struct server {
    int number;
    int64_t clock_at_us; /* the true time at which the clock showed clock_us */
    int64_t clock_us;
    int64_t rate_ppm;
    int64_t frozen_until_us; /* until this time the server is stopped, or runs a slow script */
    int64_t down_until_us;   /* until this time the server restarts, and accepts no connection */
    bool is_off;             /* during the restart the machine is off, and sends no resets */
    int64_t troubled_us;
    int64_t started_us;
    int n_starts;
    int64_t slow_one_in;
    int64_t slow_most_us;
    uint64_t n_blocked;
    struct session *sessions;
};

static struct server server[SERVERS_MAX];
static int n_servers;

server_observer *server_on_command;
int64_t server_n_commands;

/* ---- the server's clock ---- */

int64_t server_now_us(const struct server *s)
{
    int64_t passed = engine_now() - s->clock_at_us;

    return s->clock_us + passed + passed / 1000 * s->rate_ppm / 1000;
}

static void set_clock(struct server *s, int64_t at_us)
{
    s->clock_us = at_us;
    s->clock_at_us = engine_now();
}

static void note_trouble(struct server *s, int64_t until_us)
{
    s->troubled_us = until_us > s->troubled_us ? until_us : s->troubled_us;
}

void server_step_clock(struct server *s, int64_t by_us)
{
    trace("server %d: clock set by %+.3f s", s->number, (double)by_us / 1e6);
    set_clock(s, server_now_us(s) + by_us);
    note_trouble(s, engine_now());
}

/* ---- start, stop and restart ---- */

struct server *server_start(int64_t rate_ppm, int64_t wall_offset_us)
{
    struct server *s = &server[n_servers];

    s->number = n_servers++;
    s->rate_ppm = rate_ppm;
    s->clock_us = WALL_START_US + wall_offset_us;
    s->troubled_us = -1;
    s->started_us = -1000 * SECOND;
    return s;
}

struct server *server_at(unsigned port)
{
    return &server[port - SERVER_FIRST_PORT];
}

int server_number(const struct server *s)
{
    return s->number;
}

bool server_ask(const struct server *s, const char *what, const struct text *word, size_t n,
                struct buffer *out)
{
    return redis_ask(what, s->number, server_now_us(s), word, n, out);
}

int64_t server_troubled_us(const struct server *s)
{
    return s->troubled_us;
}

void server_stop(struct server *s, int64_t for_us)
{
    trace("server %d: stopped for %.3f s", s->number, (double)for_us / 1e6);
    if (engine_now() + for_us > s->frozen_until_us)
        s->frozen_until_us = engine_now() + for_us;
    note_trouble(s, s->frozen_until_us);
}

void server_save(struct server *s)
{
    (void)server_ask(s, "save", NULL, 0, NULL);
}

void server_slow_scripts(struct server *s, int64_t one_in, int64_t most_us)
{
    s->slow_one_in = one_in;
    s->slow_most_us = most_us;
}

static void free_session(struct session *session)
{
    struct session **at = &session->link->server->sessions;

    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    session->link->session = NULL;
    while (session->n_blocked_on > 0)
        buffer_free(&session->blocked_on[--session->n_blocked_on]);
    buffer_free(&session->input);
    buffer_free(&session->queued);
    buffer_free(&session->watched);
    buffer_free(&session->was);
    free(session);
}

void server_flush_scripts(struct server *s)
{
    trace("server %d: forgets its scripts", s->number);
    (void)server_ask(s, "forget_scripts", NULL, 0, NULL);
}

void server_restart(struct server *s, int64_t for_us, enum server_data data, bool is_silent)
{
    static const char *const left[] = {
        [SERVER_KEEPS_DATA] = "all", [SERVER_LOSES_DATA] = "no", [SERVER_LOSES_LATEST] = "older"};

    trace("server %d: restarts in %.3f s with %s keys%s", s->number, (double)for_us / 1e6,
          left[data], is_silent ? ", resets nothing" : "");
    while (s->sessions != NULL) {
        net_reset_by_server(s->sessions->link, is_silent);
        free_session(s->sessions);
    }
    if (data != SERVER_KEEPS_DATA)
        (void)server_ask(s, data == SERVER_LOSES_DATA ? "clear" : "restore", NULL, 0, NULL);
    (void)server_ask(s, "forget_scripts", NULL, 0, NULL);
    s->n_starts++;
    s->is_off = is_silent;
    s->down_until_us = s->frozen_until_us = s->started_us = engine_now() + for_us;
    note_trouble(s, s->down_until_us);
}

/* ---- accepting and losing connections ---- */

bool server_is_reachable(const struct server *s)
{
    return !s->is_off || engine_now() >= s->down_until_us;
}

bool server_accept(struct link *link)
{
    struct server *s = link->server;
    struct session *session;

    if (engine_now() < s->down_until_us)
        return false;
    session = calloc(1, sizeof *session);
    if (session == NULL)
        abort();
    session->link = link;
    session->next = s->sessions;
    s->sessions = session;
    link->session = session;
    return true;
}

void server_lose_link(struct link *link)
{
    free_session(link->session);
}

/* ---- parsing and executing requests ---- */

/* Reads "*N\r\n" and then N of "$BYTES\r\n...\r\n". Returns the bytes read; 0: it isn't whole. */
static size_t parse(const struct buffer *input, struct text word[WORDS_MAX], size_t *n)
{
    const char *at = input->at;
    const char *end = input->at + input->n;
    const char *line;

    line = input->n == 0 ? NULL : memchr(at, '\n', (size_t)(end - at));
    if (line == NULL)
        return 0;
    *n = (size_t)strtoul(at + 1, NULL, 10);
    if (*at != '*' || *n > WORDS_MAX)
        abort(); /* the library sends every request as an array */
    at = line + 1;
    for (size_t i = 0; i < *n; i++) {
        line = memchr(at, '\n', (size_t)(end - at));
        if (line == NULL)
            return 0;
        word[i].n = (size_t)strtoul(at + 1, NULL, 10);
        word[i].at = line + 1;
        if ((size_t)(end - word[i].at) < word[i].n + 2)
            return 0;
        at = word[i].at + word[i].n + 2;
    }
    return (size_t)(at - input->at);
}

static void reply_info(const struct server *s, struct buffer *reply)
{
    char text[200];

    snprintf(text, sizeof text,
             "# Server\r\nredis_version:7.0.15\r\nrun_id:%032x%08x\r\nuptime_in_seconds:%lld\r\n",
             (unsigned)s->number, (unsigned)s->n_starts,
             (long long)((engine_now() - s->started_us) / SECOND));
    redis_bulk(reply, text_of(text));
}

/* Carries out a command, but not BLPOP. Replies to unknown ones with an error. */
static void run_command(struct server *s, const struct text *word, size_t n, struct buffer *reply)
{
    if (server_ask(s, "run", word, n, reply))
        return;
    if (text_is_word(word[0], "INFO"))
        reply_info(s, reply);
    else if (text_is_word(word[0], "ROLE"))
        buffer_add_format(reply, "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    else if (text_is_word(word[0], "AUTH") || text_is_word(word[0], "SELECT"))
        buffer_add_format(reply, "+OK\r\n");
    else if (text_is_word(word[0], "CLUSTER"))
        buffer_add_format(reply, "-ERR This instance has cluster support disabled\r\n");
    else
        buffer_add_format(reply, "-ERR unknown command '%.*s'\r\n", (int)word[0].n, word[0].at);
}

static void send_reply(struct session *session, struct buffer *reply)
{
    net_send(session->link, NET_TO_CLIENT, reply->at, reply->n,
             session->link->server->frozen_until_us);
    buffer_free(reply);
}

/* ---- clients that block in BLPOP ---- */

static void unblock(struct session *session)
{
    session->is_blocked = false;
    session->n_blocks++;
    while (session->n_blocked_on > 0)
        buffer_free(&session->blocked_on[--session->n_blocked_on]);
}

static void process_input(void *arg, uint64_t unused);

static void end_block(void *arg, uint64_t tag)
{
    struct link *link = arg;
    struct session *session = link->session;
    struct buffer reply = {.at = NULL};

    if (session == NULL || !session->is_blocked || session->n_blocks != tag)
        return;
    if (link->server->frozen_until_us > engine_now()) {
        engine_at(link->server->frozen_until_us, end_block, link, tag);
        return;
    }
    unblock(session);
    buffer_add_format(&reply, "*-1\r\n");
    send_reply(session, &reply);
    process_input(link, 0);
}

static void block(struct session *session, const struct text *word, size_t n)
{
    struct server *s = session->link->server;
    struct buffer reply = {.at = NULL};
    double seconds = strtod(word[n - 1].at, NULL);

    if (server_ask(s, "pop", word + 1, n - 2, &reply)) {
        send_reply(session, &reply);
        return;
    }
    session->is_blocked = true;
    session->order = ++s->n_blocked;
    for (size_t i = 1; i + 1 < n && i <= BLOCK_KEYS_MAX; i++)
        buffer_add(&session->blocked_on[session->n_blocked_on++], word[i].at, word[i].n);
    if (seconds > 0) /* a real server checks time-outs only ten times a second */
        engine_at(engine_now() + llround(seconds * 1e6) + random_below(100 * MS), end_block,
                  session->link, session->n_blocks);
}

/* Returns whether the client waits for one of these lists, whose names are between line feeds. */
static bool waits_for(const struct session *session, const struct buffer *lists)
{
    for (size_t i = 0; i < session->n_blocked_on; i++) {
        const struct buffer *name = &session->blocked_on[i];
        const char *at = memmem(lists->at, lists->n, name->at, name->n);

        if (at != NULL && at[-1] == '\n' && at[name->n] == '\n')
            return true;
    }
    return false;
}

/* Serves each client whose BLPOP waits for a list that has elements now, the earliest first. */
static void serve_blocked(struct server *s)
{
    struct session *first;

    do {
        struct text name[BLOCK_KEYS_MAX];
        struct buffer reply = {.at = NULL};
        struct buffer lists = {.at = NULL};

        first = NULL;
        if (!server_ask(s, "lists", NULL, 0, &lists))
            return;
        for (struct session *each = s->sessions; each != NULL; each = each->next)
            if (each->is_blocked && (first == NULL || each->order < first->order) &&
                waits_for(each, &lists))
                first = each;
        buffer_free(&lists);
        if (first == NULL)
            return;
        for (size_t i = 0; i < first->n_blocked_on; i++)
            name[i] = buffer_text(&first->blocked_on[i]);
        (void)server_ask(s, "pop", name, first->n_blocked_on, &reply);
        unblock(first);
        send_reply(first, &reply);
        engine_at(engine_now(), process_input, first->link, 0);
    } while (first != NULL);
}

/* ---- transactions ---- */

static void watch(struct session *session, struct text name)
{
    buffer_free(&session->watched);
    buffer_free(&session->was);
    buffer_add(&session->watched, name.at, name.n);
    (void)server_ask(session->link->server, "look", &name, 1, &session->was);
}

/* EXEC forgets the watched key, and executes what was queued, unless the key has changed. */
static void execute(struct session *session, struct buffer *reply)
{
    static struct text word[WORDS_MAX];
    struct server *s = session->link->server;
    struct buffer is = {.at = NULL};
    struct text watched = buffer_text(&session->watched);
    size_t bytes;
    size_t n;

    if (watched.at != NULL)
        (void)server_ask(s, "look", &watched, 1, &is);
    if (is.n != session->was.n || (is.n > 0 && memcmp(is.at, session->was.at, is.n) != 0)) {
        buffer_add_format(reply, "*-1\r\n");
    } else {
        buffer_add_format(reply, "*%zu\r\n", session->n_queued);
        for (; (bytes = parse(&session->queued, word, &n)) > 0;
             buffer_take(&session->queued, bytes))
            run_command(s, word, n, reply);
    }
    buffer_free(&is);
    buffer_free(&session->queued);
    buffer_free(&session->watched);
    buffer_free(&session->was);
    session->n_queued = 0;
    session->is_queuing = false;
}

/* Carries out, or queues, a request of a transaction. False: it is none. */
static bool transact(struct session *session, const struct text *word, size_t n,
                     struct buffer *reply)
{
    if (text_is_word(word[0], "MULTI")) {
        session->is_queuing = true;
        buffer_add_format(reply, "+OK\r\n");
    } else if (text_is_word(word[0], "EXEC")) {
        execute(session, reply);
    } else if (text_is_word(word[0], "WATCH")) {
        watch(session, word[1]);
        buffer_add_format(reply, "+OK\r\n");
    } else if (session->is_queuing) {
        session->n_queued++;
        buffer_add_format(&session->queued, "*%zu\r\n", n);
        for (size_t i = 0; i < n; i++)
            redis_bulk(&session->queued, word[i]);
        buffer_add_format(reply, "+QUEUED\r\n");
    } else {
        return false;
    }
    return true;
}

/* ---- reading and carrying out commands ---- */

static void carry_out(struct session *session, const struct text *word, size_t n)
{
    struct server *s = session->link->server;
    struct buffer reply = {.at = NULL};

    server_n_commands++;
    if (text_is_word(word[0], "BLPOP")) {
        block(session, word, n);
        return;
    }
    if (!transact(session, word, n, &reply))
        run_command(s, word, n, &reply);
    if (text_starts(word[0], "EVAL") && !text_starts(buffer_text(&reply), "-NOSCRIPT") &&
        s->slow_one_in > 0 && random_one_in(s->slow_one_in))
        server_stop(s, random_log(MS, s->slow_most_us));
    if (server_on_command != NULL)
        server_on_command(s, session->link->process, word, n, &reply);
    send_reply(session, &reply);
    serve_blocked(s);
}

static void process_input(void *arg, uint64_t unused)
{
    static struct text word[WORDS_MAX];
    struct link *link = arg;
    struct session *session;
    size_t bytes;
    size_t n;

    (void)unused;
    while ((session = link->session) != NULL && !session->is_blocked) {
        if (link->server->frozen_until_us > engine_now()) {
            engine_at(link->server->frozen_until_us, process_input, link, 0);
            return;
        }
        bytes = parse(&session->input, word, &n);
        if (bytes == 0)
            return;
        carry_out(session, word, n);
        if (link->session != NULL)
            buffer_take(&session->input, bytes);
    }
}

void server_receive(struct link *link, const char *bytes, size_t n)
{
    struct session *session = link->session;

    if (session == NULL)
        return;
    buffer_add(&session->input, bytes, n);
    process_input(link, 0);
}
