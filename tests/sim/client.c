/* SPDX-License-Identifier: MIT */
/* client: a simulated process that acquires locks, runs a command, and releases the locks. */
#include "client.h"

#include "oracle.h"
#include "process.h"
#include "rlock_admin.h"
#include "server.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_MS 1000
#define RELEASE_MS 2000
#define KEYS_TOGETHER 3
#define BREAK_LATEST_US (60 * SECOND) /* a request of rlock_break() arrives no later than this */

/*
 * A client's process. When the process is killed, another one takes its place, as cron would start
 * it.
 */
struct client {
    struct process process;
    struct claim *claim; /* the lease that the client believes to hold; NULL: none */
    unsigned keys;       /* the keys of the present job, a bit for each; 0: it has no job */
    bool is_breaking;
    int64_t work_end_ms; /* when the command ends by itself, on the client's clock */
    int64_t kill_at_ms;  /* when the guard ends the command */
};

/* A job that a client has drawn. */
struct job {
    struct rlock_config config;
    char url[SERVERS_MAX][64];
    const char *urls[SERVERS_MAX];
    char key[KEYS_TOGETHER][16];
    const char *keys[KEYS_TOGETHER];
    unsigned key_bits;
};

static struct client_world world;
static int n_clients;

static void start(void *unused, uint64_t tag);

/* ---- faults that hit a client ---- */

static void plan_fault(struct process *process)
{
    process->calls_to_fault =
        world.calls_to_fault > 0 ? 1 + random_log(1, 2 * world.calls_to_fault) : 0;
}

static void carry_fault_out(struct process *process)
{
    plan_fault(process);
    if (world.stop_one_in > 0 && random_one_in(world.stop_one_in))
        process_stop(process, random_log(MS, 3 * world.ttl_most_ms * MS));
    else
        process_kill(process);
}

/*
 * Ends an attempt to break locks. The client's last request may still be on its way to a server,
 * for BREAK_LATEST_US at most. Until then the oracle accepts that leases on these keys are lost.
 */
static void stop_breaking(struct client *client)
{
    oracle_break(client->keys, -1);
    oracle_void(client->keys, engine_now() + BREAK_LATEST_US);
    client->is_breaking = false;
}

/* rlock was killed, so its guard kills the command. The lock stays until its TTL ends. */
static void on_killed(struct process *process)
{
    struct client *client = process->context;

    if (client->claim != NULL)
        oracle_ended(client->claim, false);
    client->claim = NULL;
    oracle_died(client->keys);
    if (client->is_breaking)
        stop_breaking(client);
    engine_at(engine_now() + random_log(MS, 10 * SECOND), start, NULL, 0);
}

/* ---- drawing a job ---- */

static void draw_keys(struct job *job)
{
    int64_t n = world.has_sets && random_one_in(6) ? random_range(2, KEYS_TOGETHER) : 1;
    int64_t i;

    if (n > world.n_keys || job->config.mode == RLOCK_SLOTS)
        n = 1;
    for (i = 0; i < n; i++) {
        int64_t key = random_below(world.n_keys);

        while (job->key_bits >> key & 1)
            key = (key + 1) % world.n_keys;
        job->key_bits |= 1U << key;
        snprintf(job->key[i], sizeof job->key[i], "lock%d", (int)key);
        job->keys[i] = job->key[i];
    }
    job->config.keys = job->keys;
    job->config.n_keys = (size_t)n;
}

static void draw(struct job *job, int64_t ttl_ms)
{
    memset(job, 0, sizeof *job);
    for (int i = 0; i < world.n_servers; i++) {
        snprintf(job->url[i], sizeof job->url[i], "redis://%s:%d",
                 world.by_name ? "server.example" : "127.0.0.1", SERVER_FIRST_PORT + i);
        job->urls[i] = job->url[i];
    }
    job->config.size = sizeof job->config;
    job->config.urls = job->urls;
    job->config.n_urls = (size_t)world.n_servers;
    job->config.connect_ms = CONNECT_MS;
    if (world.has_modes && random_one_in(3))
        job->config.mode = world.n_servers == 1 && random_one_in(2) ? RLOCK_SLOTS : RLOCK_SHARED;
    job->config.n_slots = job->config.mode == RLOCK_SLOTS ? 2 : 0;
    if (random_one_in(10))
        job->config.queue = random_one_in(2) ? RLOCK_QUEUE_NONE : RLOCK_QUEUE_NEWEST;
    if (rlock_timing_fit(ttl_ms, -1, &job->config.timing, NULL) != RLOCK_OK)
        abort();
    draw_keys(job);
    if (world.has_commands && job->config.n_keys == 1 && job->config.mode == RLOCK_EXCLUSIVE &&
        random_one_in(2)) {
        job->config.scripts = RLOCK_SCRIPTS_NO;
        job->config.queue = RLOCK_QUEUE_FIFO;
    }
}

/* ---- carrying a job out ---- */

static struct rlock_deadline in_ms(int64_t ms)
{
    return (struct rlock_deadline){rlock_clock_ms() + ms, -1};
}

static int64_t true_us(const struct client *client, int64_t ms)
{
    return process_true_us(&client->process, ms);
}

static void end_claim(struct client *client, bool is_free)
{
    if (client->claim != NULL)
        oracle_ended(client->claim, is_free);
    client->claim = NULL;
}

static void take_event(struct client *client, const struct rlock_event *event,
                       const struct rlock_timing *timing)
{
    switch (event->kind) {
    case RLOCK_KEPT_RENEWED:
    case RLOCK_KEPT_RESTORED:
        client->kill_at_ms = event->expires_ms - timing->kill_margin_ms;
        oracle_renewed(client->claim, true_us(client, event->sent_ms),
                       true_us(client, event->expires_ms));
        break;
    case RLOCK_KEPT_TROUBLE:
        break;
    case RLOCK_KEPT_RELEASED:
    case RLOCK_KEPT_LOST:
        trace("client %d: %s", client->process.id, event->text);
        end_claim(client, false);
        break;
    }
}

/* Lets the command run, while the library's renewer renews the lease. */
static void run_command(struct client *client, struct rlock *lock,
                        const struct rlock_timing *timing)
{
    struct rlock_event event;
    int events;

    if (rlock_clock_ms() >= client->work_end_ms || rlock_keep(lock, &events, NULL) != RLOCK_OK)
        return;
    while (client->claim != NULL) {
        int64_t end_ms =
            client->work_end_ms < client->kill_at_ms ? client->work_end_ms : client->kill_at_ms;
        int64_t left_ms = end_ms - rlock_clock_ms();
        struct pollfd fd = {.fd = events, .events = POLLIN};

        if (left_ms <= 0)
            break;
        if (poll(&fd, 1, (int)left_ms) > 0 &&
            read(events, &event, sizeof event) == (ssize_t)sizeof event)
            take_event(client, &event, timing);
    }
    rlock_unkeep(lock);
}

/* Renews the lease by its token and a second handle, as a process `rlock renew` does. */
static void renew_by_token(struct client *client, const struct job *job, const char *token)
{
    struct rlock_config config = job->config;
    struct rlock *lock;

    config.token = token;
    config.queue = RLOCK_QUEUE_FIFO;
    if (rlock_open(&lock, &config, NULL) != RLOCK_OK)
        abort();
    while (client->claim != NULL) {
        int64_t sent_us = engine_now();
        int64_t expires_ms = 0;
        enum rlock_status st;
        int64_t now_ms = rlock_clock_ms();

        if (now_ms >= client->work_end_ms || now_ms >= client->kill_at_ms)
            break;
        (void)poll(NULL, 0, (int)random_log(1, job->config.timing.renew_ms));
        st = rlock_renew(lock, 0, in_ms(config.timing.reply_ms), &expires_ms, NULL);
        if (st == RLOCK_OK) {
            client->kill_at_ms = expires_ms - config.timing.kill_margin_ms;
            oracle_renewed(client->claim, sent_us, true_us(client, expires_ms));
        } else if (st == RLOCK_LOST || st == RLOCK_GONE || st == RLOCK_RELEASED) {
            end_claim(client, false);
        }
    }
    rlock_close(lock);
}

/*
 * Runs the command under the grant, and releases the lock. The command is not started if its time
 * for KILL has come already, as spawn.c checks before the exec.
 */
static void work(struct client *client, const struct job *job, struct rlock *lock,
                 const struct rlock_grant *grant)
{
    int64_t hold_most_ms = 3 * grant->timing.ttl_ms;
    int64_t now_ms = rlock_clock_ms();
    enum rlock_status st;

    if (world.hold_most_ms < hold_most_ms && !random_one_in(10))
        hold_most_ms = world.hold_most_ms;
    client->work_end_ms = now_ms + random_log(1, hold_most_ms);
    client->kill_at_ms = grant->expires_ms - grant->timing.kill_margin_ms;
    if (now_ms < client->kill_at_ms && random_one_in(4))
        renew_by_token(client, job, grant->token);
    else if (now_ms < client->kill_at_ms)
        run_command(client, lock, &grant->timing);
    end_claim(client, true);
    st = rlock_release(lock, in_ms(RELEASE_MS), RLOCK_ENDS_FREE, 0, NULL);
    if (st == RLOCK_OK)
        oracle_gave_up(grant->token);
    else
        oracle_died(client->keys);
}

static void note_obstacle(struct client *client, const struct rlock_obstacle *obstacle)
{
    if (obstacle->in_doubt)
        oracle_died(client->keys); /* a request without a reply may have taken the lock */
}

/* Draws how long to wait for the lock: not at all, for some time, or without end. */
static struct rlock_deadline draw_deadline(void)
{
    switch (random_below(5)) {
    case 0:
        return (struct rlock_deadline){0, -1};
    case 1:
        return (struct rlock_deadline){RLOCK_NEVER, -1};
    default:
        return in_ms(random_log(10, 60000));
    }
}

static void check_return(const struct client *client, struct rlock_deadline deadline,
                         const struct rlock_timing *timing)
{
    int64_t latest_ms = deadline.at_ms + timing->renew_ms + 2 * timing->reply_ms + CONNECT_MS;
    /* The clock is read before troubled_us: a fault may hit the client in rlock_clock_ms(), and set
     * troubled_us. */
    int64_t now_ms = rlock_clock_ms();

    if (deadline.at_ms != 0 && deadline.at_ms != RLOCK_NEVER &&
        client->process.troubled_us < engine_now() - 25 * SECOND && now_ms > latest_ms)
        oracle_fail("late: client %d should have been back %lld ms ago", client->process.id,
                    (long long)(now_ms - deadline.at_ms));
}

static void take_and_work(struct client *client, struct job *job)
{
    struct rlock_deadline deadline = draw_deadline();
    struct rlock_error err = {.status = RLOCK_OK};
    int64_t n_before = client->process.n_requests;
    int64_t began_us = engine_now();
    struct rlock_obstacle obstacle = {.in_doubt = false};
    struct rlock_grant grant;
    struct rlock *lock;
    enum rlock_status st;

    client->process.token[0] = '\0';
    if (rlock_open(&lock, &job->config, &err) != RLOCK_OK)
        abort();
    st = rlock_acquire(lock, deadline, &grant, &obstacle, &err);
    oracle_asked(&client->process, client->process.n_requests - n_before, engine_now() - began_us);
    check_return(client, deadline, &job->config.timing);
    if (st == RLOCK_OK) {
        oracle_left(&client->process, st);
        client->claim =
            oracle_granted(&client->process, job->key_bits, job->config.mode, &grant,
                           true_us(client, grant.sent_ms), true_us(client, grant.expires_ms));
        work(client, job, lock, &grant);
    } else {
        trace("client %d: %s: %s", client->process.id, rlock_status_text(st), err.text);
        note_obstacle(client, &obstacle);
        oracle_left(&client->process, st);
    }
    rlock_close(lock);
}

/* ---- breaking a lock ---- */

static void copy_name(void *context, const struct rlock_view *view)
{
    snprintf(context, 256, "%s", view->name);
}

static void break_lock(struct client *client, struct job *job)
{
    char name[256] = "";
    struct rlock_visitor visitor = {.on_lock = copy_name, .context = name};
    struct rlock *lock;

    job->config.n_keys = 0;
    if (rlock_open(&lock, &job->config, NULL) != RLOCK_OK)
        abort();
    if (rlock_inspect(lock, job->keys[0], in_ms(2000), &visitor, NULL) == RLOCK_OK &&
        name[0] != '\0') {
        client->is_breaking = true;
        oracle_break(client->keys, 1);
        (void)!rlock_break(lock, job->keys[0], name, in_ms(2000), NULL);
        stop_breaking(client);
    }
    rlock_close(lock);
}

/* ---- the loop of a client ---- */

static void *live(void *arg)
{
    struct client *client = arg;
    struct job job;

    for (;;) {
        (void)poll(NULL, 0, (int)(random_log(100, world.pause_most_us) / MS));
        draw(&job, random_log(world.ttl_least_ms, world.ttl_most_ms));
        client->keys = job.key_bits;
        if (world.has_breaks && random_one_in(20))
            break_lock(client, &job);
        else
            take_and_work(client, &job);
        client->keys = 0;
    }
    return NULL;
}

static void start(void *unused, uint64_t tag)
{
    struct client *client = calloc(1, sizeof *client);

    (void)unused;
    (void)tag;
    if (client == NULL)
        abort();
    process_start(&client->process, n_clients++, random_range(-4000, 4000));
    client->process.on_fault = carry_fault_out;
    client->process.on_killed = on_killed;
    client->process.context = client;
    plan_fault(&client->process);
    task_start(&client->process, live, client);
}

void client_start_all(const struct client_world *of, int n)
{
    world = *of;
    for (int i = 0; i < n; i++)
        engine_at(random_below(2 * SECOND), start, NULL, 0);
}
