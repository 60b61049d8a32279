/* SPDX-License-Identifier: MIT */
/* net: connections between the simulated clients and servers, and what goes wrong on the way. */
#include "net.h"

#include "process.h"
#include "server.h"

#include <stdlib.h>
#include <string.h>

#define RETRANSMIT_US (200 * MS) /* the least time-out of TCP in Linux */
#define TROUBLE_US (50 * MS) /* a packet that takes longer counts as a fault that hits the client */
#define PARTS_MAX 64

struct net_conditions net_conditions;

/* Bytes that are on their way. */
struct segment {
    struct link *link;
    enum net_way way;
    size_t n;
    char bytes[];
};

static struct {
    struct process *process;
    struct server *server;
    int64_t until_us;
} part[PARTS_MAX];
static size_t n_parts;

/* Until `until_us` no packet gets from the process to the server, or back. */
static void part_both(struct process *process, struct server *server, int64_t until_us)
{
    trace("client %d: parted from server %d for %.3f s", process->id, server_number(server),
          (double)(until_us - engine_now()) / 1e6);
    part[n_parts % PARTS_MAX].process = process;
    part[n_parts % PARTS_MAX].server = server;
    part[n_parts++ % PARTS_MAX].until_us = until_us;
    process_note_trouble(process, until_us);
}

static int64_t parted_until(const struct link *link)
{
    int64_t until = 0;

    for (size_t i = 0; i < PARTS_MAX && i < n_parts; i++)
        if (part[i].process == link->process && part[i].server == link->server &&
            part[i].until_us > until)
            until = part[i].until_us;
    return until;
}

/* Draws when a packet sent at `sent_us` arrives. A lost packet arrives when TCP sends it again. */
static int64_t arrival(struct link *link, enum net_way way, int64_t sent_us)
{
    int64_t at = sent_us + net_conditions.delay_us + random_below(net_conditions.jitter_us + 1);
    int64_t parted = parted_until(link);

    if (net_conditions.loss_one_in > 0 && random_one_in(net_conditions.loss_one_in))
        at += RETRANSMIT_US << random_below(4);
    if (net_conditions.late_one_in > 0 && random_one_in(net_conditions.late_one_in))
        at += random_log(10 * MS, net_conditions.late_us);
    /* TCP doubles its pauses, so it sends again within twice the time that the parting lasts */
    if (parted > at)
        at = parted + random_below(parted - sent_us + 1);
    if (at > sent_us + TROUBLE_US)
        process_note_trouble(link->process, at);
    if (at < link->arrives_us[way])
        at = link->arrives_us[way];
    link->arrives_us[way] = at;
    return at;
}

static void plan_end(struct link *link)
{
    enum net_way way = (enum net_way)random_below(NET_WAYS);

    if (net_conditions.reset_one_in > 0 && random_one_in(net_conditions.reset_one_in))
        link->bytes_to_reset[way] = random_log(1, way == NET_TO_SERVER ? 40000 : 2000);
    if (net_conditions.cut_one_in > 0 && random_one_in(net_conditions.cut_one_in))
        link->bytes_to_cut[way] = random_log(1, way == NET_TO_SERVER ? 40000 : 2000);
}

static void end_for_client(void *arg, uint64_t state)
{
    struct link *link = arg;

    if (link->is_closed_by_client)
        return;
    link->state = (enum link_state)state;
    if (link->state == LINK_RESET)
        process_note_trouble(link->process, engine_now());
    task_wake(link->waiter);
}

static void end_for_server(void *arg, uint64_t unused)
{
    struct link *link = arg;

    (void)unused;
    if (!link->is_closed_by_server && link->session != NULL)
        server_lose_link(link);
    link->is_closed_by_server = true;
}

static void arrive_at_server(void *arg, uint64_t unused)
{
    struct link *link = arg;

    (void)unused;
    if (link->is_closed_by_client)
        return;
    if (server_accept(link))
        engine_at(arrival(link, NET_TO_CLIENT, engine_now()), end_for_client, link, LINK_OPEN);
    else if (server_is_reachable(link->server))
        engine_at(arrival(link, NET_TO_CLIENT, engine_now()), end_for_client, link, LINK_REFUSED);
    else
        process_note_trouble(link->process, engine_now() + 5 * SECOND);
}

struct link *net_connect(struct process *process, struct server *server)
{
    struct link *link = calloc(1, sizeof *link);

    if (link == NULL)
        abort();
    link->process = process;
    link->server = server;
    link->state = LINK_CONNECTING;
    plan_end(link);
    if (net_conditions.part_one_in > 0 && random_one_in(net_conditions.part_one_in))
        part_both(process, server, engine_now() + random_log(10 * MS, 20 * SECOND));
    engine_at(arrival(link, NET_TO_SERVER, engine_now()), arrive_at_server, link, 0);
    return link;
}

/* Resets the connection for both ends, as a firewall does that has forgotten the connection. */
static void reset_on_the_way(struct link *link)
{
    trace("client %d: connection to server %d reset", link->process->id,
          server_number(link->server));
    engine_at(engine_now(), end_for_client, link, LINK_RESET);
    engine_at(engine_now() + random_below(5 * MS), end_for_server, link, 0);
}

/* Returns how many of n bytes arrive. Resets or cuts the connection where that is planned. */
static size_t pass(struct link *link, enum net_way way, size_t n)
{
    if (link->bytes_to_cut[way] < 0)
        return 0;
    if (link->bytes_to_cut[way] > 0 && link->bytes_to_cut[way] <= (int64_t)n) {
        n = (size_t)link->bytes_to_cut[way];
        link->bytes_to_cut[NET_TO_SERVER] = link->bytes_to_cut[NET_TO_CLIENT] = -1;
        process_note_trouble(link->process, engine_now() + 5 * SECOND);
        trace("client %d: connection to server %d cut", link->process->id,
              server_number(link->server));
        return n;
    }
    if (link->bytes_to_cut[way] > 0)
        link->bytes_to_cut[way] -= (int64_t)n;
    if (link->bytes_to_reset[way] > 0 && link->bytes_to_reset[way] <= (int64_t)n) {
        n = (size_t)link->bytes_to_reset[way];
        link->bytes_to_cut[NET_TO_SERVER] = link->bytes_to_cut[NET_TO_CLIENT] = -1;
        reset_on_the_way(link);
        return n;
    }
    if (link->bytes_to_reset[way] > 0)
        link->bytes_to_reset[way] -= (int64_t)n;
    return n;
}

static void arrive(void *arg, uint64_t unused)
{
    struct segment *segment = arg;
    struct link *link = segment->link;
    size_t n = pass(link, segment->way, segment->n);

    (void)unused;
    if (segment->way == NET_TO_SERVER && !link->is_closed_by_server && n > 0) {
        server_receive(link, segment->bytes, n);
    } else if (segment->way == NET_TO_CLIENT && !link->is_closed_by_client &&
               link->state == LINK_OPEN && n > 0) {
        buffer_add(&link->received, segment->bytes, n);
        task_wake(link->waiter);
    }
    free(segment);
}

void net_send(struct link *link, enum net_way way, const char *bytes, size_t n, int64_t not_before)
{
    struct segment *segment = malloc(sizeof *segment + n);
    int64_t sent_us = not_before > engine_now() ? not_before : engine_now();

    if (segment == NULL)
        abort();
    segment->link = link;
    segment->way = way;
    segment->n = n;
    memcpy(segment->bytes, bytes, n);
    engine_at(arrival(link, way, sent_us), arrive, segment, 0);
}

void net_reset_by_client(struct link *link)
{
    bool overtakes = net_conditions.drops_at_reset && random_one_in(2);

    link->is_closed_by_client = true;
    link->waiter = NULL;
    buffer_free(&link->received);
    if (link->bytes_to_cut[NET_TO_SERVER] == 0)
        engine_at(overtakes ? engine_now() : link->arrives_us[NET_TO_SERVER], end_for_server, link,
                  0);
}

void net_reset_by_server(struct link *link, bool is_silent)
{
    link->is_closed_by_server = true;
    if (is_silent)
        process_note_trouble(link->process, engine_now() + 5 * SECOND);
    else
        engine_at(arrival(link, NET_TO_CLIENT, engine_now()), end_for_client, link, LINK_RESET);
}
