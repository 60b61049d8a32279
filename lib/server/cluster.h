/* SPDX-License-Identifier: MIT */
/* cluster: where the nodes of a Redis Cluster send us. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "wire/url.h"

#define CLUSTER_NODES_MAX 16 /* that are remembered */

/* By what the nodes tell clients to call each other: cluster-preferred-endpoint-type. */
enum cluster_endpoint {
    CLUSTER_BY_ANY, /* it isn't known: by the name, if there is one, then by the number */
    CLUSTER_BY_NUMBER,
    CLUSTER_BY_NAME,
    CLUSTER_BY_PORT /* by no host: it is that of the node that says so */
};

/* The nodes that were heard of. Without any it isn't known to be a Cluster. */
struct cluster {
    const struct url *first; /* borrowed: as it was given */
    struct url node[CLUSTER_NODES_MAX];
    size_t n;
    size_t next;                  /* which to ask when there is nobody to ask; 0: the first */
    enum cluster_endpoint called; /* as their redirections have shown it */
};

void cluster_open(struct cluster *cluster, const struct url *first);
void cluster_close(struct cluster *cluster);

/*
 * cluster_redirect: read the target of a MOVED or ASK, and remember it as a node.
 *
 *   reply  the error reply (ERROR_REPLY_MOVED or ERROR_REPLY_ASK): "MOVED SLOT HOST:PORT"
 *   by     the node that sent it; its host is meant where the reply names none
 *   to     out, on RLOCK_OK only: the target; the caller frees it with url_fini()
 *
 * Returns  RLOCK_OK, RLOCK_E_PROTOCOL (no target can be read) or RLOCK_E_MEMORY.
 */
enum rlock_status cluster_redirect(struct cluster *cluster, const char *reply, const struct url *by,
                                   struct url *to, struct rlock_error *err);

/* cluster_see: remember what CLUSTER NODES has shown to a client of `by`, and no other nodes. */
void cluster_see(struct cluster *cluster, const char *nodes, const struct url *by);

/*
 * cluster_next_primary: one after the other of those that serve slots, from
 * what CLUSTER NODES has shown to a client of `by`; moves `*nodes` on. False:
 * there are no more; else `*primary` is the caller's.
 */
bool cluster_next_primary(const char **nodes, const struct url *by, enum cluster_endpoint endpoint,
                          struct url *primary);

/* cluster_endpoint: how the nodes call each other in the answer to CLUSTER SLOTS. */
struct resp_value;

enum cluster_endpoint cluster_endpoint(const struct resp_value *slots);

/* How a Cluster stands, as far as CLUSTER NODES tells. */
struct cluster_health {
    size_t n_slots; /* that are served by a node that isn't dead */
    size_t n_primaries;
    size_t n_alone; /* primaries without a replica that lives */
};

void cluster_examine(const char *nodes, struct cluster_health *health);

/* cluster_is_known: is there more than the first to ask? */
bool cluster_is_known(const struct cluster *cluster);

/*
 * cluster_locate: whom to ask now that `lost` doesn't answer, one after the
 * other. RLOCK_OK (`*to` is the caller's), or a fault.
 */
enum rlock_status cluster_locate(struct cluster *cluster, const struct url *lost, struct url *to,
                                 struct rlock_error *err);

#endif
