/* SPDX-License-Identifier: MIT */
/* faults: the families of worlds: what can go wrong in each, and how often. */
#include "faults.h"

#include "client.h"
#include "net.h"
#include "oracle.h"
#include "server.h"

#include <stdio.h>
#include <stdlib.h>

#define ALL_KEYS ~0U
#define BRIEF_HOLD_MS 100

/* What goes wrong, a bit for each. */
enum fault {
    LATE_MESSAGES = 1 << 0,  /* up to seconds late, but all arrive, and in their order */
    LOSSY_NETWORK = 1 << 1,  /* connections are reset or cut at any byte, packets are lost */
    PARTED_NETWORK = 1 << 2, /* a client and a server can't reach each other for a while */
    STOPPED_SERVER = 1 << 3,
    SLOW_SCRIPTS = 1 << 4,
    RESTARTED_SERVER = 1 << 5, /* the server restarts, and keeps its keys */
    EMPTIED_SERVER = 1 << 6,   /* the server restarts, and has lost its keys */
    FAILED_OVER = 1 << 7,      /* a replica that lags takes the server's place */
    CLOCK_BACK = 1 << 8,
    CLOCK_FORWARD = 1 << 9,
    STOPPED_CLIENTS = 1 << 10,
    KILLED_CLIENTS = 1 << 11,
    BREAKS = 1 << 12,
    CROWD = 1 << 13,           /* many clients */
    FLUSHED_SCRIPTS = 1 << 14, /* SCRIPT FLUSH: the server doesn't know the scripts any more */
    BRIEF_HOLDS = 1 << 15,     /* no fault: the queue is long, and many turns follow each other */
    COMMANDS = 1 << 16         /* no fault: half of the clients take their locks by commands */
};

#define SERVER_FAULTS                                                                \
    (STOPPED_SERVER | RESTARTED_SERVER | EMPTIED_SERVER | FAILED_OVER | CLOCK_BACK | \
     CLOCK_FORWARD | FLUSHED_SCRIPTS)

static const struct family {
    const char *name;
    int n_servers;
    unsigned faults;
} families[] = {
    {"calm", 1, 0},
    {"late messages", 1, LATE_MESSAGES},
    {"lossy network", 1, LOSSY_NETWORK | PARTED_NETWORK},
    {"stopped server", 1, STOPPED_SERVER | SLOW_SCRIPTS},
    {"restarted server", 1, RESTARTED_SERVER | LATE_MESSAGES},
    {"emptied server", 1, EMPTIED_SERVER | STOPPED_CLIENTS},
    {"failover", 1, FAILED_OVER | LOSSY_NETWORK},
    {"server clock", 1, CLOCK_BACK | CLOCK_FORWARD},
    {"stopped clients", 1, STOPPED_CLIENTS},
    {"killed clients", 1, KILLED_CLIENTS},
    {"breaks", 1, BREAKS | LATE_MESSAGES},
    {"all at once", 1,
     LOSSY_NETWORK | PARTED_NETWORK | STOPPED_SERVER | SLOW_SCRIPTS | RESTARTED_SERVER |
         FAILED_OVER | STOPPED_CLIENTS | KILLED_CLIENTS | BREAKS},
    {"crowd", 1, CROWD | KILLED_CLIENTS},
    {"quorum", 3, 0},
    {"quorum, late messages", 3, LATE_MESSAGES},
    {"quorum, lossy network", 3, LOSSY_NETWORK | PARTED_NETWORK},
    {"quorum, stopped servers", 3, STOPPED_SERVER | SLOW_SCRIPTS},
    {"quorum, emptied servers", 3, EMPTIED_SERVER | RESTARTED_SERVER},
    {"quorum, clients", 3, STOPPED_CLIENTS | KILLED_CLIENTS},
    {"quorum, all at once", 3,
     LOSSY_NETWORK | PARTED_NETWORK | STOPPED_SERVER | EMPTIED_SERVER | RESTARTED_SERVER |
         STOPPED_CLIENTS | KILLED_CLIENTS | LATE_MESSAGES},
    {"flushed scripts", 1, FLUSHED_SCRIPTS},
    {"flushed scripts, lossy network", 1,
     FLUSHED_SCRIPTS | LATE_MESSAGES | LOSSY_NETWORK | SLOW_SCRIPTS | STOPPED_CLIENTS},
    {"quorum, flushed scripts", 3, FLUSHED_SCRIPTS | LATE_MESSAGES},
    {"brief holds", 1, BRIEF_HOLDS},
    {"brief holds, clients", 1, BRIEF_HOLDS | STOPPED_CLIENTS | KILLED_CLIENTS},
    {"brief holds, server clock", 1, BRIEF_HOLDS | CLOCK_BACK | CLOCK_FORWARD},
    {"brief holds, all at once", 1,
     BRIEF_HOLDS | LATE_MESSAGES | LOSSY_NETWORK | STOPPED_SERVER | SLOW_SCRIPTS | STOPPED_CLIENTS |
         KILLED_CLIENTS},
    {"scripts and commands", 1, COMMANDS | STOPPED_CLIENTS | KILLED_CLIENTS},
    {"scripts and commands, all at once", 1,
     COMMANDS | LOSSY_NETWORK | STOPPED_SERVER | RESTARTED_SERVER | STOPPED_CLIENTS |
         KILLED_CLIENTS},
};

#define FAMILIES ((int)(sizeof families / sizeof families[0]))

static struct {
    const struct family *family;
    int64_t ttl_us;     /* the longest TTL */
    int64_t between_us; /* about this time passes from one fault of a server to the next */
} world;

int faults_family_of(uint64_t seed)
{
    return (int)(seed % (uint64_t)FAMILIES);
}

const char *faults_family_name(int family)
{
    return family < FAMILIES ? families[family].name : NULL;
}

static bool has(unsigned fault)
{
    return (world.family->faults & fault) != 0;
}

/* ---- faults that hit a server ---- */

/* Creates keys of another program, with names that a faulty rlock could take for its own. */
static void plant_foreign_keys(struct server *server)
{
    static const char *const names[] = {"lock99", "{lock0}:rlock:other", "lock0:rlock:fence",
                                        "{lock1}:rlock:wake:notatoken"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct text name = text_of(names[i]);

        (void)server_ask(server, "plant", &name, 1, NULL);
    }
}

/*
 * Tells the oracle that a server has lost keys. The only server of a world may then grant the locks
 * to other clients although the old leases last, and the oracle must accept that. In a quorum it
 * must not, as the other members still have the keys.
 */
static void note_loss(void)
{
    if (world.family->n_servers == 1)
        oracle_void(ALL_KEYS, engine_now());
}

static void save(void *server, uint64_t unused)
{
    (void)unused;
    server_save(server);
    engine_at(engine_now() + random_log(MS, 5 * SECOND), save, server, 0);
}

static void hit(struct server *server, unsigned fault)
{
    int64_t for_us = random_log(10 * MS, 2 * world.ttl_us);
    bool is_silent = random_one_in(3);

    switch (fault) {
    case STOPPED_SERVER:
        server_stop(server, for_us);
        break;
    case RESTARTED_SERVER:
        server_restart(server, for_us, SERVER_KEEPS_DATA, is_silent);
        break;
    case EMPTIED_SERVER:
        server_restart(server, for_us, SERVER_LOSES_DATA, is_silent);
        note_loss();
        break;
    case FAILED_OVER:
        server_restart(server, for_us, SERVER_LOSES_LATEST, is_silent);
        note_loss();
        break;
    case FLUSHED_SCRIPTS:
        server_flush_scripts(server);
        break;
    case CLOCK_BACK:
        server_step_clock(server, -random_log(MS, 3600 * SECOND));
        break;
    default: /* CLOCK_FORWARD */
        server_step_clock(server, random_log(MS, 3600 * SECOND));
        note_loss();
    }
}

static void hit_a_server(void *unused, uint64_t tag)
{
    unsigned fault;

    (void)unused;
    do
        fault = 1U << random_below(16);
    while ((fault & SERVER_FAULTS & world.family->faults) == 0);
    hit(server_at(SERVER_FIRST_PORT + (unsigned)random_below(world.family->n_servers)), fault);
    engine_at(engine_now() + random_log(world.between_us / 10, world.between_us * 2), hit_a_server,
              NULL, tag);
}

/* ---- drawing what the network does ---- */

static void draw_conditions(int64_t latest_us)
{
    bool is_lossy = has(LOSSY_NETWORK);

    net_conditions = (struct net_conditions){
        .delay_us = random_log(20, 5 * MS),
        .jitter_us = random_log(1, 10 * MS),
        .loss_one_in = is_lossy ? random_log(20, 1000) : 0,
        .late_one_in = has(LATE_MESSAGES) ? random_log(3, 100) : 0,
        .late_us = latest_us,
        .reset_one_in = is_lossy ? random_log(2, 50) : 0,
        .cut_one_in = is_lossy ? random_log(5, 100) : 0,
        .is_crowded = is_lossy,
        .drops_at_reset = is_lossy || has(RESTARTED_SERVER | EMPTIED_SERVER | FAILED_OVER),
    };
}

/* ---- drawing and running a world ---- */

static void draw_servers(void)
{
    /*
     * A server's clock differs from the true time by at most this. A server that has lost its last
     * fence makes the next one from its clock, so fences only rise if the clocks nearly agree.
     */
    int64_t apart_us = has(EMPTIED_SERVER) ? 200 * MS : 20 * SECOND;

    for (int i = 0; i < world.family->n_servers; i++) {
        struct server *server = server_start(has(EMPTIED_SERVER) ? 0 : random_range(-4000, 4000),
                                             random_range(-apart_us, apart_us));

        plant_foreign_keys(server);
        server_slow_scripts(server, has(SLOW_SCRIPTS) ? random_log(20, 1000) : 0, 3 * SECOND);
        if (has(FAILED_OVER))
            save(server, 0);
    }
    if (has(SERVER_FAULTS))
        engine_at(random_log(SECOND, world.between_us), hit_a_server, NULL, 0);
}

static int draw_count(void)
{
    if (has(CROWD))
        return (int)random_log(100, 2000);
    return (int)random_log(2, world.family->n_servers > 1 ? 12 : 40);
}

void faults_run_world(uint64_t seed, int family)
{
    struct client_world clients = {.n_servers = families[family].n_servers};
    struct oracle_world oracle;
    int n;

    chance_start(seed);
    world.family = &families[family];
    clients.ttl_most_ms = random_log(1000, 10000);
    clients.ttl_least_ms = clients.n_servers > 1 ? clients.ttl_most_ms : 1000;
    clients.n_keys = (int)random_range(1, 3);
    clients.has_modes = random_one_in(2);
    clients.has_sets = random_one_in(3);
    clients.has_breaks = has(BREAKS);
    clients.has_commands = has(COMMANDS);
    clients.by_name = random_one_in(4);
    clients.hold_most_ms = 3 * clients.ttl_most_ms;
    clients.pause_most_us = random_log(10 * MS, 5 * SECOND);
    if (has(BRIEF_HOLDS)) { /* most holds are brief, and the queue is seldom empty */
        clients.hold_most_ms = BRIEF_HOLD_MS;
        clients.pause_most_us = random_log(MS, 500 * MS);
    }
    clients.calls_to_fault = has(STOPPED_CLIENTS | KILLED_CLIENTS) ? random_log(500, 50000) : 0;
    clients.stop_one_in = !has(STOPPED_CLIENTS) ? 0 : has(KILLED_CLIENTS) ? 2 : 1;
    clients.latest_us = has(LATE_MESSAGES) ? random_log(100 * MS, 5 * SECOND) : 0;
    world.ttl_us = clients.ttl_most_ms * MS;
    world.between_us = random_log(2 * SECOND, 60 * SECOND);
    oracle = (struct oracle_world){
        .is_quorum = clients.n_servers > 1,
        .has_no_order = seed % 8 == 5 || has(COMMANDS),
        .is_reliable = (world.family->faults &
                        ~(unsigned)(LATE_MESSAGES | BREAKS | FLUSHED_SCRIPTS | BRIEF_HOLDS)) == 0,
        .latest_us = clients.latest_us,
        .ttl_ms = clients.ttl_most_ms,
        .n_keys = clients.n_keys,
        .has_sets = clients.has_sets};
    draw_conditions(clients.latest_us);
    /* not drawn, as the next condition: the kept seeds stay the worlds they are */
    net_conditions.part_one_in = has(PARTED_NETWORK) && seed % 4 == 2 ? 20 : 0;
    draw_servers();
    if (seed % 8 == 5)
        (void)server_ask(server_at(SERVER_FIRST_PORT), "refuse_lists", NULL, 0, NULL);
    oracle_start(&oracle);
    n = draw_count();
    trace("seed %llu: %s: %d clients, %d keys, TTL up to %lld ms", (unsigned long long)seed,
          world.family->name, n, clients.n_keys, (long long)clients.ttl_most_ms);
    client_start_all(&clients, n);
    engine_run(has(CROWD) ? random_log(10 * SECOND, 40 * SECOND)
                          : random_log(30 * SECOND, 300 * SECOND));
}
