/* SPDX-License-Identifier: MIT */
/* oracle: watches what clients believe and what servers do, and says when a promise is broken. */
#include "oracle.h"

#include "reply_codes.h"
#include "scripts_embedded.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLAIMS_MAX 8192
#define WAITERS_MAX 32768
#define GIVEN_UP_MAX 64
#define FORGET_US (25 * SECOND) /* the oracle ignores a waiter for this long after a fault hit it */
#define STUCK_US (10 * SECOND)  /* 20 dead waiters in a row delay the next grant for this long */
#define TICK_US (SECOND / 2)
#define KEYS_PER_LOCK 8

/* A lease that a client believes it holds. */
struct claim {
    const struct process *process; /* NULL: this entry of the array is unused */
    unsigned keys;
    enum rlock_mode mode;
    int64_t slot;
    uint64_t fence;
    int64_t sent_us; /* when the last confirmed request was sent */
    int64_t expires_us;
};

/* A client in the queue of a key on a server, since the server first replied "held" to it. */
struct waiter {
    char token[RLOCK_TOKEN_BYTES + 1]; /* "": this entry of the array is unused */
    const struct server *server;
    struct process *process;
    int key;
    int64_t since_us;
    int64_t ticket;         /* orders the queue: the server's time at the client's first attempt */
    bool may_be_superseded; /* a newer waiter may take its place: others may be granted first */
};

/* The fences of a key, in the order in which the clients got their grants. */
struct fences {
    struct {
        int64_t at_us;
        uint64_t fence;
        uint64_t greatest; /* the greatest of this fence and all before it */
    } * grant;
    size_t n;
    size_t room;
};

static struct {
    struct oracle_world world;
    bool has_failed;
    int64_t n_grants;
    struct claim claim[CLAIMS_MAX];
    struct waiter waiter[WAITERS_MAX];
    size_t n_waiters; /* entries from this index on were never used */
    struct fences fences[ORACLE_KEYS_MAX];
    int64_t void_until_us[ORACLE_KEYS_MAX]; /* leases last confirmed before this may be lost */
    int n_breaks[ORACLE_KEYS_MAX];          /* how many clients are about to break the lock */
    int64_t busy_until_us[ORACLE_KEYS_MAX]; /* until this time the lock may be held */
    struct {
        char token[RLOCK_TOKEN_BYTES + 1];
        int64_t at_us;
    } given_up[GIVEN_UP_MAX];
    size_t n_given_up;
} oracle;

void oracle_fail(const char *format, ...)
{
    va_list args;

    if (oracle.has_failed)
        return;
    oracle.has_failed = true;
    printf("# %10.6f violation: ", (double)engine_now() / 1e6);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
    engine_stop();
}

bool oracle_has_failed(void)
{
    return oracle.has_failed;
}

int64_t oracle_n_grants(void)
{
    return oracle.n_grants;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- checking leases and fences ---- */

static bool is_live(const struct claim *claim)
{
    return claim->process != NULL && claim->expires_us > engine_now();
}

static bool is_void(const struct claim *claim, int key)
{
    return claim->sent_us <= oracle.void_until_us[key] || oracle.n_breaks[key] > 0;
}

static bool exclude(const struct claim *one, const struct claim *other)
{
    if (one->mode == RLOCK_SHARED && other->mode == RLOCK_SHARED)
        return false;
    if (one->mode == RLOCK_SLOTS && other->mode == RLOCK_SLOTS)
        return one->slot == other->slot;
    return true;
}

static void check_overlap(const struct claim *claim, int key)
{
    for (size_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *other = &oracle.claim[i];

        if (other == claim || !is_live(other) || (other->keys >> key & 1) == 0 ||
            !exclude(claim, other) || is_void(other, key) || is_void(claim, key))
            continue;
        oracle_fail("overlap: key %d is granted to client %d until %.6f, and to client %d", key,
                    other->process->id, (double)other->expires_us / 1e6, claim->process->id);
    }
}

static void check_fence(const struct claim *claim, int key)
{
    struct fences *fences = &oracle.fences[key];
    size_t i = fences->n;

    for (; i > 0 && fences->n - i < 1000; i--)
        if (fences->grant[i - 1].fence == claim->fence)
            oracle_fail("fence: %" PRIu64 " of key %d was given before", claim->fence, key);
    for (i = fences->n; i > 0 && fences->grant[i - 1].at_us >= claim->sent_us;)
        i--;
    if (i > 0 && fences->grant[i - 1].greatest >= claim->fence)
        oracle_fail("fence: %" PRIu64 " of key %d, behind %" PRIu64, claim->fence, key,
                    fences->grant[i - 1].greatest);
    if (fences->n == fences->room) {
        fences->room = fences->room == 0 ? 1024 : 2 * fences->room;
        fences->grant = realloc(fences->grant, fences->room * sizeof *fences->grant);
        if (fences->grant == NULL)
            abort();
    }
    fences->grant[fences->n].at_us = engine_now();
    fences->grant[fences->n].fence = claim->fence;
    fences->grant[fences->n].greatest =
        fences->n > 0 && fences->grant[fences->n - 1].greatest > claim->fence
            ? fences->grant[fences->n - 1].greatest
            : claim->fence;
    fences->n++;
}

struct claim *oracle_granted(struct process *process, unsigned keys, enum rlock_mode mode,
                             const struct rlock_grant *grant, int64_t sent_us, int64_t expires_us)
{
    struct claim *claim = oracle.claim;

    while (claim->process != NULL && ++claim < oracle.claim + CLAIMS_MAX)
        ;
    if (claim == oracle.claim + CLAIMS_MAX)
        abort();
    *claim = (struct claim){.process = process,
                            .keys = keys,
                            .mode = mode,
                            .slot = grant->slot,
                            .fence = grant->fence,
                            .sent_us = sent_us,
                            .expires_us = expires_us};
    oracle.n_grants++;
    trace("client %d: granted keys %x, fence %" PRIu64 ", until %.6f", process->id, keys,
          grant->fence, (double)expires_us / 1e6);
    for (int key = 0; key < oracle.world.n_keys; key++) {
        if ((keys >> key & 1) == 0)
            continue;
        if (is_live(claim))
            check_overlap(claim, key);
        check_fence(claim, key);
        oracle.busy_until_us[key] = later(oracle.busy_until_us[key], expires_us);
    }
    return claim;
}

void oracle_renewed(struct claim *claim, int64_t sent_us, int64_t expires_us)
{
    trace("client %d: renewed until %.6f", claim->process->id, (double)expires_us / 1e6);
    claim->sent_us = sent_us;
    claim->expires_us = expires_us;
    for (int key = 0; key < oracle.world.n_keys; key++)
        if ((claim->keys >> key & 1) && is_live(claim)) { /* not if the reply was read too late */
            check_overlap(claim, key);
            oracle.busy_until_us[key] = later(oracle.busy_until_us[key], expires_us);
        }
}

void oracle_ended(struct claim *claim, bool is_free)
{
    trace("client %d: its lease is over%s", claim->process->id, is_free ? ", released" : "");
    for (int key = 0; key < oracle.world.n_keys && is_free && claim->mode == RLOCK_EXCLUSIVE; key++)
        if (claim->keys >> key & 1)
            oracle.busy_until_us[key] = engine_now();
    claim->process = NULL;
}

void oracle_died(unsigned keys)
{
    for (int key = 0; key < oracle.world.n_keys; key++)
        if (keys >> key & 1)
            oracle.busy_until_us[key] =
                later(oracle.busy_until_us[key], engine_now() + 2 * oracle.world.ttl_ms * MS);
}

void oracle_void(unsigned keys, int64_t until_us)
{
    for (int key = 0; key < oracle.world.n_keys; key++)
        if (keys >> key & 1)
            oracle.void_until_us[key] = later(oracle.void_until_us[key], until_us);
}

void oracle_break(unsigned keys, int more)
{
    for (int key = 0; key < oracle.world.n_keys; key++)
        oracle.n_breaks[key] += keys >> key & 1 ? more : 0;
}

void oracle_gave_up(const char *token)
{
    size_t i = oracle.n_given_up++ % GIVEN_UP_MAX;

    memcpy(oracle.given_up[i].token, token, sizeof oracle.given_up[i].token);
    oracle.given_up[i].at_us = engine_now();
}

void oracle_asked(struct process *process, int64_t n_requests, int64_t waited_us)
{
    if (oracle.world.is_reliable &&
        n_requests > (oracle.world.is_quorum ? 5 : 1) * (20 + 12 * (waited_us / SECOND)))
        oracle_fail("requests: client %d has sent %" PRId64 " in %.3f s", process->id, n_requests,
                    (double)waited_us / 1e6);
}

/* ---- checking the order of the queue ---- */

static bool is_untroubled(const struct waiter *waiter)
{
    int64_t since_us = engine_now() - FORGET_US;

    return waiter->token[0] != '\0' && !waiter->process->is_dead &&
           waiter->process->troubled_us < since_us && server_troubled_us(waiter->server) < since_us;
}

static struct waiter *find_waiter(const char *token, const struct server *server)
{
    for (size_t i = 0; i < oracle.n_waiters; i++)
        if (oracle.waiter[i].server == server && strcmp(oracle.waiter[i].token, token) == 0)
            return &oracle.waiter[i];
    return NULL;
}

static void add_waiter(const char *token, const struct server *server, struct process *process,
                       int key, int64_t ticket, bool may_be_superseded)
{
    size_t i = 0;

    if (find_waiter(token, server) != NULL)
        return;
    while (i < oracle.n_waiters && oracle.waiter[i].token[0] != '\0')
        i++;
    if (i == WAITERS_MAX)
        abort();
    oracle.n_waiters = i == oracle.n_waiters ? i + 1 : oracle.n_waiters;
    oracle.waiter[i] = (struct waiter){.server = server,
                                       .process = process,
                                       .key = key,
                                       .since_us = engine_now(),
                                       .ticket = ticket,
                                       .may_be_superseded = may_be_superseded};
    memcpy(oracle.waiter[i].token, token, sizeof oracle.waiter[i].token);
}

static void forget_waiter(const char *token)
{
    for (size_t i = 0; i < oracle.n_waiters; i++)
        if (strcmp(oracle.waiter[i].token, token) == 0)
            oracle.waiter[i].token[0] = '\0';
}

/* The wait for this token is over: see has_left(). */
static void note_left(struct process *process, const char *token)
{
    char *left = process->left[process->n_left++ % PROCESS_LEFT_MAX];

    memcpy(left, token, RLOCK_TOKEN_BYTES + 1);
}

void oracle_left(struct process *process, enum rlock_status st)
{
    bool must_hold_none = st != RLOCK_OK && (st < RLOCK_E_USAGE || oracle.world.is_reliable);

    for (size_t i = 0; i < oracle.n_waiters; i++)
        if (oracle.waiter[i].process == process)
            oracle.waiter[i].token[0] = '\0';
    if (process->token[0] != '\0')
        note_left(process, process->token);
    if (must_hold_none && process->token[0] != '\0')
        oracle_gave_up(process->token);
}

static void check_order(const struct server *server, const struct process *process, int key,
                        int64_t ticket)
{
    for (size_t i = 0;
         i < oracle.n_waiters && !oracle.world.is_quorum && !oracle.world.has_no_order; i++) {
        const struct waiter *waiter = &oracle.waiter[i];

        if (is_untroubled(waiter) && !waiter->may_be_superseded && waiter->server == server &&
            waiter->key == key && waiter->process != process && waiter->ticket < ticket)
            oracle_fail("order: client %d is granted key %d, and client %d has waited since %.6f",
                        process->id, key, waiter->process->id, (double)waiter->since_us / 1e6);
    }
}

/* ---- watching commands of clients ---- */

/* Returns the number in a key's name: 3 for "lock3". */
static int key_number(struct text name)
{
    return text_starts(name, "lock") ? atoi(name.at + 4) : 0;
}

/* Reads the ticket in acquire.lua's reply: held, now, left, value (2 lines), block, ticket. */
static int64_t ticket_of(const struct buffer *reply)
{
    const char *at = reply->at;

    for (int line = 0; line < 8; line++)
        at = strstr(at, "\r\n") + 2;
    return strtoll(at, NULL, 10);
}

/*
 * True if the client's call of rlock_acquire() with this token has returned: then this request was
 * still on its way to the server, and the client no longer waits.
 */
static bool has_left(const struct process *client, const char *token)
{
    for (size_t i = 0; i < PROCESS_LEFT_MAX && i < client->n_left; i++)
        if (strcmp(client->left[i], token) == 0)
            return true;
    return false;
}

static void watch_acquire(struct server *server, struct process *client, const struct text *word,
                          size_t n, const struct buffer *reply)
{
    bool is_usual_grant = reply->at[0] == '$'; /* the reply is the fence alone */
    int code = is_usual_grant ? REPLY_OK : atoi(strchr(reply->at, ':') + 1);
    struct text policy = word[KEYS_PER_LOCK + 5];
    bool is_fifo = text_is(policy, "fifo");
    bool is_newest = text_is(policy, "newest");
    char token[RLOCK_TOKEN_BYTES + 1] = "";
    bool has_ticket = n > KEYS_PER_LOCK + 8 && word[KEYS_PER_LOCK + 8].n > 0;
    int64_t ticket = has_ticket ? strtoll(word[KEYS_PER_LOCK + 8].at, NULL, 10) : INT64_MAX;
    const struct waiter *waiter;
    int key = key_number(word[3]);
    bool is_waiting;

    memcpy(token, word[KEYS_PER_LOCK + 3].at, RLOCK_TOKEN_BYTES);
    is_waiting = !has_left(client, token);
    if (is_waiting)
        memcpy(client->token, token, sizeof token);
    if (code == REPLY_HELD && strcmp(client->granted, token) == 0)
        client->granted[0] = '\0'; /* that grant has ended: check the next one again */
    if (code == REPLY_HELD && (is_fifo || is_newest) && is_waiting)
        add_waiter(token, server, client, key, has_ticket ? ticket : ticket_of(reply), is_newest);
    if (code != REPLY_OK)
        return;
    waiter = find_waiter(token, server); /* has the ticket even if the client's reply was lost */
    if (waiter != NULL && waiter->ticket < ticket)
        ticket = waiter->ticket;
    /* If this token was granted before, the client has repeated its attempt, as it got no reply:
     * check_order() has checked the first grant. */
    if ((is_fifo || is_newest) && strcmp(client->granted, token) != 0)
        check_order(server, client, key, ticket);
    memcpy(client->granted, token, sizeof token);
    forget_waiter(token);
}

/* The server may get a waiter's farewell before the waiter's first request, which is late. */
static void watch_release(struct process *client, const struct text *word, size_t n)
{
    const struct text *leaver = &word[KEYS_PER_LOCK + 6];
    char token[RLOCK_TOKEN_BYTES + 1] = "";

    if (n <= KEYS_PER_LOCK + 6 || leaver->n != RLOCK_TOKEN_BYTES)
        return;
    memcpy(token, leaver->at, RLOCK_TOKEN_BYTES);
    forget_waiter(token);
    note_left(client, token);
}

/* Traces the beginning of a command and of its reply; of a script only the arguments. */
static void trace_command(const struct server *server, const struct process *client,
                          const struct text *word, size_t n, const struct buffer *reply)
{
    char line[400] = "";
    size_t used = 0;

    for (size_t i = n > 3 ? 3 + KEYS_PER_LOCK : 0; i < n && used < 200; i++)
        used += (size_t)snprintf(line + used, 100, " %.*s", (int)(word[i].n < 90 ? word[i].n : 90),
                                 word[i].at);
    used += (size_t)snprintf(line + used, 100, " -> %.*s", (int)(reply->n < 90 ? reply->n : 90),
                             reply->at);
    for (size_t i = 0; i < used; i++)
        line[i] = line[i] < ' ' ? ' ' : line[i];
    trace("server %d: client %d: %.*s%s", server_number(server), client->id, (int)word[0].n,
          word[0].at, line);
}

static void watch_command(struct server *server, struct process *client, const struct text *word,
                          size_t n, const struct buffer *reply)
{
    bool is_script = text_is(word[0], "EVAL") || text_is(word[0], "EVALSHA");
    size_t n_keys = is_script && n > 2 ? strtoul(word[2].at, NULL, 10) : 0;
    struct buffer wrong = {.at = NULL};

    if (trace_is_on)
        trace_command(server, client, word, n, reply);
    client->n_requests++;
    if (server_ask(server, "check_changes", word + 3, n_keys, &wrong))
        oracle_fail("%.*s", (int)wrong.n, wrong.at);
    buffer_free(&wrong);
    if (n_keys != KEYS_PER_LOCK || reply->at[0] == '-')
        return;
    if (text_is(word[1], sha1_acquire) || text_is(word[1], script_acquire))
        watch_acquire(server, client, word, n, reply);
    if (text_is(word[1], sha1_release) || text_is(word[1], script_release))
        watch_release(client, word, n);
}

/* ---- checks in each TICK_US ---- */

static void check_stuck(const struct waiter *waiter)
{
    int64_t free_since_us = later(oracle.busy_until_us[waiter->key], waiter->since_us);

    if (!is_untroubled(waiter) || engine_now() < free_since_us + STUCK_US)
        return;
    oracle_fail("stuck: client %d waits for key %d, which is free since %.6f", waiter->process->id,
                waiter->key, (double)free_since_us / 1e6);
}

static void check_orphans_of(int key)
{
    int n_servers = oracle.world.is_quorum ? 3 : 1;
    struct buffer holders[3] = {{.at = NULL}};
    char name[16];

    snprintf(name, sizeof name, "lock%d", key);
    for (int i = 0; i < n_servers; i++) {
        (void)server_ask(server_at(SERVER_FIRST_PORT + (unsigned)i), "holders",
                         &(struct text){name, strlen(name)}, 1, &holders[i]);
        buffer_add(&holders[i], "", 1);
    }
    for (size_t i = 0; i < GIVEN_UP_MAX && i < oracle.n_given_up; i++) {
        const char *token = oracle.given_up[i].token;
        int n = 0;

        for (int j = 0; j < n_servers; j++)
            n += strstr(holders[j].at, token) != NULL;
        if (n > n_servers / 2 &&
            engine_now() > oracle.given_up[i].at_us + 2 * oracle.world.latest_us + SECOND)
            oracle_fail("orphan: %s holds key %d, and was given up at %.6f", token, key,
                        (double)oracle.given_up[i].at_us / 1e6);
    }
    for (int i = 0; i < n_servers; i++)
        buffer_free(&holders[i]);
}

static void tick(void *unused, uint64_t tag)
{
    (void)unused;
    for (size_t i = 0; i < oracle.n_waiters && !oracle.world.has_sets; i++)
        check_stuck(&oracle.waiter[i]);
    for (int key = 0; key < oracle.world.n_keys && oracle.world.is_reliable; key++)
        check_orphans_of(key);
    engine_at(engine_now() + TICK_US, tick, NULL, tag);
}

void oracle_start(const struct oracle_world *world)
{
    oracle.world = *world;
    for (int i = 0; i < ORACLE_KEYS_MAX; i++)
        oracle.void_until_us[i] = -1;
    server_on_command = watch_command;
    engine_at(TICK_US, tick, NULL, 0);
}
