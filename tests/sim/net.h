/* SPDX-License-Identifier: MIT */
/*
 * net: connections between the simulated clients and servers, and what goes wrong on the way.
 *
 * The bytes of one direction arrive in their order, but those of two connections in any order. A
 * lost packet is one that comes a time-out of TCP later. A connection can be reset behind any byte,
 * or be cut, so that nothing arrives and neither end hears of it.
 */
#ifndef NET_H
#define NET_H

#include "buffer.h"
#include "engine.h"

struct server;

/* What happens on the way; the world's own, see faults.c. Times in microseconds, chances one in. */
struct net_weather {
    int64_t delay_us;    /* least time for one way */
    int64_t jitter_us;   /* at most so much is added */
    int64_t loss_one_in; /* 0: never */
    int64_t late_one_in; /* so many packets are late_us late; 0: none */
    int64_t late_us;
    int64_t reset_one_in; /* so many connections are reset behind some byte; 0: none */
    int64_t cut_one_in;   /* so many connections are cut behind some byte; 0: none */
    bool is_crowded;      /* a client's kernel may take only a part of what is sent */
    bool drops_at_reset;  /* what is on its way when an end resets may be dropped */
};

extern struct net_weather net_weather;

enum net_way { NET_TO_SERVER, NET_TO_CLIENT, NET_WAYS };

enum link_state { LINK_CONNECTING, LINK_OPEN, LINK_REFUSED, LINK_RESET };

struct link {
    struct process *process;
    struct server *server;
    enum link_state state;    /* as the client's kernel sees it */
    bool is_closed_by_client; /* the descriptor is gone */
    bool is_closed_by_server;
    struct buffer received;           /* by the client's kernel, and not read yet */
    struct task *waiter;              /* the client's coroutine that polls it; NULL: none */
    int64_t arrives_us[NET_WAYS];     /* the last byte that was sent */
    int64_t bytes_to_reset[NET_WAYS]; /* 0: it isn't reset */
    int64_t bytes_to_cut[NET_WAYS];   /* 0: it isn't cut; -1: it is */
    void *session;                    /* the server's, see server.c; NULL: not accepted */
};

/* net_connect: begins to connect; the link's state changes later, and wakes its waiter. */
struct link *net_connect(struct process *process, struct server *server);

/* net_send: some bytes, from the end from which that way leads. */
void net_send(struct link *link, enum net_way way, const char *bytes, size_t n, int64_t not_before);

/* net_reset_by_client, net_reset_by_server: that end is gone; the other hears of it later. */
void net_reset_by_client(struct link *link);
void net_reset_by_server(struct link *link, bool is_silent);

/* net_part: nothing gets from the process to the server, or back, until then. */
void net_part(struct process *process, struct server *server, int64_t until_us);

#endif
