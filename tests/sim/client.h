/* SPDX-License-Identifier: MIT */
/*
 * client: a simulated process that acquires locks, runs a command, and releases the locks.
 *
 * The command of a client is only an interval of virtual time. As the guard of rlock does, the
 * client ends the command kill_margin_ms before the lease's end at the latest, even if the process
 * is stopped then.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include "rlock.h"

#include <stdbool.h>

/* What all clients of a world have in common. */
struct client_world {
    int n_servers;
    int n_keys;
    int64_t ttl_least_ms;
    int64_t ttl_most_ms;
    bool has_modes;       /* clients also take shared locks and, if there is one server, slots */
    bool has_sets;        /* some clients ask for several keys at once */
    bool has_commands;    /* half of the exclusive locks of one key are taken without scripts */
    bool has_breaks;      /* some clients break others' locks */
    bool by_name;         /* URLs have host names, which clients have to resolve */
    int64_t hold_most_ms; /* nine of ten holds, at least, end by themselves within this time */
    int64_t pause_most_us;
    int64_t stop_one_in;    /* one of N faults stops the client, the others kill it; 0: all kill */
    int64_t calls_to_fault; /* a fault hits a client about every N system calls; 0: no fault */
    int64_t latest_us;      /* the longest delay of a message in the network */
};

void client_start_all(const struct client_world *world, int n);

#endif
