/* SPDX-License-Identifier: MIT */
/*
 * net: connections between the simulated clients and servers, and what goes wrong on the way.
 *
 * The bytes of one direction of a connection arrive in their order; bytes of different connections
 * arrive in any order. A lost packet arrives one or more retransmission time-outs of TCP later. A
 * connection can be reset behind any byte, or be cut: then nothing arrives any more, and neither
 * end learns of it.
 */
#ifndef NET_H
#define NET_H

#include "buffer.h"
#include "engine.h"

struct server;

/* What the network does to packets. faults.c draws it for each world. Times in microseconds. */
struct net_conditions {
    int64_t delay_us;    /* least time that a packet takes from one end to the other */
    int64_t jitter_us;   /* each packet takes up to this much longer than delay_us */
    int64_t loss_one_in; /* one packet in N is lost; 0: none */
    int64_t late_one_in; /* one packet in N is late, by up to late_us; 0: none */
    int64_t late_us;
    int64_t reset_one_in; /* one connection in N is reset behind some byte; 0: none */
    int64_t cut_one_in;   /* one connection in N is cut behind some byte; 0: none */
    int64_t part_one_in;  /* one attempt to connect in N parts both ends for a while; 0: none */
    bool is_crowded;      /* send(2) of a client may accept only a part of the bytes */
    bool drops_at_reset;  /* when one end resets, the bytes on their way may be lost */
};

extern struct net_conditions net_conditions;

enum net_way { NET_TO_SERVER, NET_TO_CLIENT, NET_WAYS };

enum link_state { LINK_CONNECTING, LINK_OPEN, LINK_REFUSED, LINK_RESET };

struct link {
    struct process *process;
    struct server *server;
    enum link_state state;    /* as the client's kernel sees it */
    bool is_closed_by_client; /* the client has closed the descriptor */
    bool is_closed_by_server;
    struct buffer received;           /* bytes that the client has yet to read */
    struct task *waiter;              /* the client's coroutine that polls the link; NULL: none */
    int64_t arrives_us[NET_WAYS];     /* when the byte that was sent last arrives */
    int64_t bytes_to_reset[NET_WAYS]; /* the link is reset after N more bytes; 0: never */
    int64_t bytes_to_cut[NET_WAYS];   /* the link is cut after N more; 0: never; -1: it was cut */
    void *session;                    /* struct session of server.c; NULL: not accepted */
};

/* net_connect: begins to connect; the link's state changes later, and wakes its waiter. */
struct link *net_connect(struct process *process, struct server *server);

/* net_send: send bytes in the direction `way`, now or, if that is later, at `not_before`. */
void net_send(struct link *link, enum net_way way, const char *bytes, size_t n, int64_t not_before);

/*
 * net_reset_by_client, net_reset_by_server: this end has closed the link. The peer gets the reset
 * later, or never if `is_silent`.
 */
void net_reset_by_client(struct link *link);
void net_reset_by_server(struct link *link, bool is_silent);

#endif
