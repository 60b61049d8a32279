/* SPDX-License-Identifier: MIT */
/* cluster: the nodes of a Redis Cluster: redirects, and whom to ask when a node is gone. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "wire/url.h"

#define CLUSTER_NODES_MAX 16 /* that are remembered */

/* How nodes name each other to clients: their setting cluster-preferred-endpoint-type. */
enum cluster_endpoint {
    CLUSTER_BY_ANY,    /* not known yet: use the host name, or the address where there is none */
    CLUSTER_BY_NUMBER, /* "ip" */
    CLUSTER_BY_NAME,   /* "hostname" */
    CLUSTER_BY_PORT    /* "unknown-endpoint": the host of the node that says so */
};

/* The nodes that are known. Without any, the server isn't known to be part of a Cluster. */
struct cluster {
    const struct url *first; /* borrowed: the URL that the user gave */
    struct url node[CLUSTER_NODES_MAX];
    size_t n;
    size_t next; /* whom cluster_locate() names next; 0: `first`, else node[next - 1] */
    enum cluster_endpoint called; /* as their redirects have shown it */
};

void cluster_init(struct cluster *cluster, const struct url *first);

/* cluster_fini: free all nodes. The cluster may be used again, and then knows `first` alone. */
void cluster_fini(struct cluster *cluster);

/* cluster_clear_passwords: as url_clear_password(), of all nodes. */
void cluster_clear_passwords(struct cluster *cluster);

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

/* cluster_see: replace the known nodes by those of `by`'s reply to CLUSTER NODES, if it has any. */
void cluster_see(struct cluster *cluster, const char *nodes, const struct url *by);

/*
 * cluster_next_primary: the next primary that serves slots.
 *
 *   nodes    the rest of `by`'s reply to CLUSTER NODES; is moved behind that primary
 *   primary  out, on true only; the caller frees it with url_fini()
 *
 * Returns  false: there are no more.
 */
bool cluster_next_primary(const char **nodes, const struct url *by, enum cluster_endpoint endpoint,
                          struct url *primary);

/* cluster_endpoint: how the nodes name each other in a reply to CLUSTER SLOTS. */
struct resp_value;

enum cluster_endpoint cluster_endpoint(const struct resp_value *slots);

/* The health of a Cluster, as one node's reply to CLUSTER NODES tells it. */
struct cluster_health {
    size_t n_slots; /* served by a primary that has not failed */
    size_t n_primaries;
    size_t n_alone; /* primaries without a replica that has not failed */
};

void cluster_examine(const char *nodes, struct cluster_health *health);

/* cluster_is_known: is any other node known than the first? */
bool cluster_is_known(const struct cluster *cluster);

/*
 * cluster_locate: whom to ask instead of `lost`, which doesn't answer: another node each time,
 * round robin. RLOCK_OK (the caller frees `*to` with url_fini()), or a fault.
 */
enum rlock_status cluster_locate(struct cluster *cluster, const struct url *lost, struct url *to,
                                 struct rlock_error *err);

#endif
