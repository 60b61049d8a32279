/* SPDX-License-Identifier: MIT */
/*
 * client: a simulated user of the library: a process that takes locks, works, gives them back.
 *
 * Its command is an interval of virtual time. As the guard of rlock does, the client ends it
 * kill_margin_ms before the lease's end at the latest, also while the process is stopped.
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
    bool has_modes;  /* shared locks, and slots where there is one server */
    bool has_sets;   /* some want several keys at once */
    bool has_breaks; /* some take locks away */
    bool by_name;    /* servers have names, which are to be resolved */
    int64_t pause_most_us;
    int64_t stop_one_in;    /* of its faults so many are stops; the others kill it; 0: all kill */
    int64_t calls_to_fault; /* about so many calls between two faults; 0: none */
    int64_t latest_us;      /* how late a message can be */
};

void client_start_all(const struct client_world *world, int n);

#endif
