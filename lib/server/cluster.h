/* SPDX-License-Identifier: MIT */
/* cluster: remembers the nodes of a Redis Cluster, and reads redirects and CLUSTER NODES. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "wire/url.h"

#define CLUSTER_NODES_MAX 16 /* the most nodes that rlock remembers */
#define SLOT_COUNT 16384     /* hash slots of a Cluster */

/* How redirects name a node, by the nodes' setting cluster-preferred-endpoint-type. */
enum cluster_endpoint {
    CLUSTER_BY_ANY,    /* not known yet: use a node's host name, or its address if it has no name */
    CLUSTER_BY_NUMBER, /* setting "ip": by its IP address */
    CLUSTER_BY_NAME,   /* setting "hostname": by its host name */
    CLUSTER_BY_PORT    /* setting "unknown-endpoint": by its port, at the redirecting node's host */
};

/* The known nodes of a Cluster, besides `first`. If n is 0, `first` may be in no Cluster. */
struct cluster {
    const struct url *first; /* the URL that the user gave; borrowed */
    struct url *node;        /* heap: room for CLUSTER_NODES_MAX; NULL: no node is known */
    size_t n;
    size_t next; /* the node that cluster_locate() returns next; 0: `first`, else node[next - 1] */
    enum cluster_endpoint called; /* how the newest redirect named a node */
};

void cluster_init(struct cluster *cluster, const struct url *first);

/* cluster_fini: free and forget all nodes. The cluster may be used again, with `first` alone. */
void cluster_fini(struct cluster *cluster);

/* cluster_clear_passwords: call url_clear_password() for all nodes. */
void cluster_clear_passwords(struct cluster *cluster);

/*
 * cluster_redirect: read the target of a MOVED or ASK, and remember it as a node.
 *
 *   reply  the error reply (ERROR_REPLY_MOVED or ERROR_REPLY_ASK): "MOVED SLOT HOST:PORT"
 *   by     the node that sent the reply; a reply without a host means this node's host
 *   to     out, on RLOCK_OK only: the target; the caller frees it with url_fini()
 *
 * Returns  RLOCK_OK, RLOCK_E_PROTOCOL (the reply has no valid target) or RLOCK_E_MEMORY.
 */
enum rlock_status cluster_redirect(struct cluster *cluster, const char *reply, const struct url *by,
                                   struct url *to, struct rlock_error *err);

/*
 * cluster_set_nodes: replace the known nodes by those in `nodes`, the reply of `by` to CLUSTER
 * NODES. Keeps the known nodes if the reply has none.
 */
void cluster_set_nodes(struct cluster *cluster, const char *nodes, const struct url *by);

/*
 * cluster_next_primary: find the next primary that serves slots. False: there is none.
 *
 *   nodes    the unread part of the reply of `by` to CLUSTER NODES; moved past what was read
 *   primary  out, on true only; the caller frees it with url_fini()
 */
bool cluster_next_primary(const char **nodes, const struct url *by, enum cluster_endpoint endpoint,
                          struct url *primary);

struct resp_value;

/* cluster_endpoint: find out how a reply to CLUSTER SLOTS names the nodes. */
enum cluster_endpoint cluster_endpoint(const struct resp_value *slots);

/* The health of a Cluster, from the reply of one node to CLUSTER NODES. */
struct cluster_health {
    size_t n_slots;     /* slots that are served by a primary which has not failed */
    size_t n_primaries; /* primaries that serve slots and have not failed */
    size_t n_alone;     /* of n_primaries: those without a working replica */
};

void cluster_examine(const char *nodes, struct cluster_health *health);

/* cluster_is_known: is any node known besides the first? */
bool cluster_is_known(const struct cluster *cluster);

/*
 * cluster_locate: choose a node to ask instead of `lost`, which doesn't answer. Each call returns
 * the next known node. RLOCK_OK (the caller frees `*to` with url_fini()) or RLOCK_E_MEMORY.
 */
enum rlock_status cluster_locate(struct cluster *cluster, const struct url *lost, struct url *to,
                                 struct rlock_error *err);

#endif
