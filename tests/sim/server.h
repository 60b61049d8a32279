/* SPDX-License-Identifier: MIT */
/*
 * server: a simulated Redis server: connections, clients that block, its clock, its restarts.
 *
 * The server carries out one command at a time, in no time unless a fault makes the server slow.
 * redis.lua has the keys, and runs the scripts.
 */
#ifndef SERVER_H
#define SERVER_H

#include "net.h"

#include <stdint.h>

#define SERVERS_MAX 5
#define SERVER_FIRST_PORT 7000

/* What a restart, or a failover to a replica, leaves of the keys. */
enum server_data { SERVER_KEEPS_DATA, SERVER_LOSES_DATA, SERVER_LOSES_LATEST };

struct server *server_start(int64_t rate_ppm, int64_t wall_offset_us);
struct server *server_at(unsigned port);
int server_number(const struct server *server); /* from 0 */

/* server_ask: call redis_ask() for this server, with the time of its clock. */
bool server_ask(const struct server *server, const char *what, const struct text *word, size_t n,
                struct buffer *out);

int64_t server_now_us(const struct server *server);      /* the server's clock: Unix time */
int64_t server_troubled_us(const struct server *server); /* when the last fault hit; -1: never */

/* ---- faults that hit a server ---- */

void server_stop(struct server *server, int64_t for_us); /* by SIGSTOP */
void server_step_clock(struct server *server, int64_t by_us);

/*
 * server_restart: stop the server, and start it after `for_us`. `is_silent`: the server's machine
 * is off meanwhile, and resets no connection.
 */
void server_restart(struct server *server, int64_t for_us, enum server_data data, bool is_silent);

/* server_flush_scripts: forget all scripts, as SCRIPT FLUSH does. */
void server_flush_scripts(struct server *server);

/* server_save: keep a copy of the keys, to which SERVER_LOSES_LATEST sets them back. */
void server_save(struct server *server);

/* server_slow_scripts: one run of a script in `one_in` takes up to `most_us`; 0: none. */
void server_slow_scripts(struct server *server, int64_t one_in, int64_t most_us);

/* ---- called by net.c ---- */

bool server_is_reachable(const struct server *server); /* false: the machine is off */
bool server_accept(struct link *link);                 /* false: nobody listens */
void server_receive(struct link *link, const char *bytes, size_t n);
void server_lose_link(struct link *link);

/* ---- used by oracle.c ---- */

/*
 * server_on_command: called after each command of a client except BLPOP, with the command's words
 * and reply. NULL: not called.
 */
typedef void server_observer(struct server *server, struct process *client, const struct text *word,
                             size_t n, const struct buffer *reply);
extern server_observer *server_on_command;
extern int64_t server_n_commands;

#endif
