/* SPDX-License-Identifier: MIT */
/*
 * cluster: remembers the nodes of a Redis Cluster, and reads redirects and CLUSTER NODES.
 *
 * There is no map of slots: all keys of a lock are in one slot, which one node serves. Every other
 * node redirects to that node, and is asked when that node doesn't answer. Source: Redis Cluster
 * specification, "MOVED Redirection" and "ASK redirection".
 */
#include "server/cluster.h"

#include "base/err.h"
#include "wire/resp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HOST_BYTES 256

void cluster_init(struct cluster *cluster, const struct url *first)
{
    *cluster = (struct cluster){.first = first};
}

void cluster_fini(struct cluster *cluster)
{
    while (cluster->n > 0)
        url_fini(&cluster->node[--cluster->n]);
    free(cluster->node);
    cluster->node = NULL;
    cluster->next = 0;
}

void cluster_clear_passwords(struct cluster *cluster)
{
    size_t i;

    for (i = 0; i < cluster->n; i++)
        url_clear_password(&cluster->node[i]);
}

/*
 * Adds a node, or the alias of a known node; no new node if the array is full, or without memory.
 * The array (3.5 kB) is allocated with the first node, as most servers are in no Cluster.
 */
static void remember(struct cluster *cluster, const struct url *node)
{
    struct url *known;

    if (cluster->node == NULL)
        cluster->node = calloc(CLUSTER_NODES_MAX, sizeof *cluster->node);
    if (cluster->node == NULL)
        return;
    for (known = cluster->node; known < cluster->node + cluster->n; known++)
        if (url_is_same(known, node))
            break;
    if (known == cluster->node + CLUSTER_NODES_MAX)
        return;
    if (known == cluster->node + cluster->n)
        cluster->n += url_copy(known, node, NULL) == RLOCK_OK;
    else if (known->alias == NULL && node->alias != NULL) {
        url_fini(known);
        if (url_copy(known, node, NULL) != RLOCK_OK) {
            url_move(known, &cluster->node[--cluster->n]);
            cluster->next = 0; /* `next` may have been the place from which that node was moved */
        }
    }
}

/*
 * Returns the other name of the node at this host and port: the IP address if `host` is its host
 * name, the host name if `host` is its IP address. NULL: no such node is known, or several are.
 */
static const char *other_name(const struct cluster *cluster, const char *host, const char *port)
{
    const char *other = NULL;
    size_t i;

    for (i = 0; i < cluster->n; i++) {
        const struct url *node = &cluster->node[i];

        if (node->alias == NULL || strcmp(node->port, port) != 0 ||
            (strcasecmp(node->host, host) != 0 && strcasecmp(node->alias, host) != 0))
            continue;
        if (other != NULL)
            return NULL;
        other = strcasecmp(node->host, host) == 0 ? node->alias : node->host;
    }
    return other;
}

static enum cluster_endpoint endpoint_of(const char *host)
{
    if (*host == '\0')
        return CLUSTER_BY_PORT;
    if (strcmp(host, "?") == 0) /* the Cluster prefers host names, but this node has none */
        return CLUSTER_BY_ANY;
    return url_is_number(host) ? CLUSTER_BY_NUMBER : CLUSTER_BY_NAME;
}

/*
 * Reads "SLOT HOST:PORT", the text after MOVED or ASK. The host may be an IPv6 address without
 * brackets. If the host is missing or is "?" (Redis 7), the target has the same host as `by`, the
 * node that sent the redirect.
 */
static enum rlock_status read_target(struct cluster *cluster, const char *text,
                                     const struct url *by, struct url *to, struct rlock_error *err)
{
    const char *target = strchr(text, ' ');
    const char *colon = target == NULL ? NULL : strrchr(target, ':');
    enum cluster_endpoint called;
    char host[HOST_BYTES];

    if (colon == NULL || colon - target > HOST_BYTES)
        return err_set(err, RLOCK_E_PROTOCOL, 0,
                       "unexpected reply: a redirect (MOVED or ASK) without a host and port");
    snprintf(host, sizeof host, "%.*s", (int)(colon - target - 1), target + 1);
    called = endpoint_of(host);
    if (called != CLUSTER_BY_ANY)
        cluster->called = called;
    if ((called == CLUSTER_BY_ANY || called == CLUSTER_BY_PORT) && by->host != NULL)
        return url_at(to, by, by->host, by->alias, colon + 1, err);
    return url_at(to, by, host, other_name(cluster, host, colon + 1), colon + 1, err);
}

enum rlock_status cluster_redirect(struct cluster *cluster, const char *reply, const struct url *by,
                                   struct url *to, struct rlock_error *err)
{
    enum rlock_status st = read_target(cluster, strchr(reply, ' ') + 1, by, to, err);

    if (st == RLOCK_OK)
        remember(cluster, to);
    return st;
}

/*
 * One line of CLUSTER NODES, which describes a node:
 * "ID ADDRESS:PORT@BUS[,NAME] FLAGS PRIMARY PING PONG EPOCH LINK SLOTS...".
 */
struct line {
    char id[64];
    char at[HOST_BYTES]; /* ADDRESS:PORT@BUS[,NAME] */
    char flags[64];
    char primary[64];  /* of a replica: the id of its primary */
    const char *slots; /* SLOTS..., up to the end of the line */
    size_t slots_bytes;
};

static bool read_line(struct line *line, const char *nodes, size_t bytes)
{
    char text[HOST_BYTES * 2];
    int at = 0;

    snprintf(text, sizeof text, "%.*s", (int)(bytes < sizeof text ? bytes : sizeof text - 1),
             nodes);
    line->primary[0] = '\0';
    if (sscanf(text, "%63s %255s %63s %63s %*s %*s %*s %*s %n", line->id, line->at, line->flags,
               line->primary, &at) < 3)
        return false;
    line->slots = nodes + at;
    line->slots_bytes = at == 0 ? 0 : bytes - (size_t)at;
    return true;
}

static bool is_flagged(const struct line *line, const char *flag)
{
    return strstr(line->flags, flag) != NULL;
}

/* Makes the URL of the line's node, with the host that `called` selects. False: no address. */
static bool locate(struct line *line, const struct url *by, enum cluster_endpoint called,
                   struct url *node)
{
    char *name = strchr(line->at, ',');
    char *bus = strchr(line->at, '@');
    const char *number = line->at;
    char *port;

    if (is_flagged(line, "myself"))
        return url_copy(node, by, NULL) == RLOCK_OK;
    if (name != NULL)
        *name++ = '\0';
    if (bus == NULL || is_flagged(line, "noaddr"))
        return false;
    *bus = '\0';
    port = strrchr(line->at, ':');
    if (port == NULL)
        return false;
    *port++ = '\0';
    if (called == CLUSTER_BY_PORT && by->host != NULL)
        return url_at(node, by, by->host, by->alias, port, NULL) == RLOCK_OK;
    if (name != NULL)
        name[strcspn(name, ",")] = '\0'; /* Redis 7.2 adds more fields after the name */
    if (name == NULL || *name == '\0')
        return url_at(node, by, number, NULL, port, NULL) == RLOCK_OK;
    if (called == CLUSTER_BY_NUMBER && *number != '\0')
        return url_at(node, by, number, name, port, NULL) == RLOCK_OK;
    return url_at(node, by, name, number, port, NULL) == RLOCK_OK;
}

/* Reads the next line that describes a node, and moves `*nodes` to the line after it. */
static bool next_line(const char **nodes, struct line *line)
{
    while (**nodes != '\0') {
        size_t bytes = strcspn(*nodes, "\n");
        const char *start = *nodes;

        *nodes += bytes + (start[bytes] == '\n');
        if (read_line(line, start, bytes))
            return true;
    }
    return false;
}

void cluster_set_nodes(struct cluster *cluster, const char *nodes, const struct url *by)
{
    struct cluster seen = {.first = cluster->first, .called = cluster->called};
    struct line line;
    struct url node;

    while (next_line(&nodes, &line)) {
        if (is_flagged(&line, "myself") || !locate(&line, by, cluster->called, &node))
            continue;
        remember(&seen, &node);
        url_fini(&node);
    }
    if (seen.n == 0) {
        cluster_fini(&seen);
        return;
    }
    seen.next = cluster->next % (seen.n + 1);
    cluster_fini(cluster);
    *cluster = seen;
}

bool cluster_next_primary(const char **nodes, const struct url *by, enum cluster_endpoint endpoint,
                          struct url *primary)
{
    struct line line;

    while (next_line(nodes, &line))
        if (is_flagged(&line, "master") && line.slots_bytes > 0 &&
            locate(&line, by, endpoint, primary))
            return true;
    return false;
}

/* Each element of CLUSTER SLOTS is {first, last, {endpoint, port, id, ...}, replicas...}. */
enum cluster_endpoint cluster_endpoint(const struct resp_value *slots)
{
    size_t i;

    for (i = 0; i < resp_array_count(slots); i++) {
        const struct resp_value *primary = resp_array_at(resp_array_at(slots, i), 2);
        const struct resp_value *endpoint = primary == NULL ? NULL : resp_array_at(primary, 0);
        size_t n;
        const char *host = resp_string(endpoint, &n);

        if (resp_is_nil(endpoint))
            return CLUSTER_BY_PORT;
        if (host != NULL && endpoint_of(host) != CLUSTER_BY_ANY)
            return endpoint_of(host);
    }
    return CLUSTER_BY_ANY;
}

/*
 * Marks the slots in "0-5460 5462 [93-<-ID]", but for those in brackets, which are being moved: the
 * node that still serves such a slot lists it without brackets, too. The slots can't just be
 * counted, as two primaries may list the same slot for a short time after a failover.
 */
static void mark_slots(const struct line *line, bool served[SLOT_COUNT])
{
    const char *end = line->slots + line->slots_bytes;
    const char *at = line->slots;

    while (at < end) {
        unsigned long last;
        unsigned long slot;
        char *next;

        if (*at < '0' || *at > '9') {
            at += strcspn(at, " \n");
            at += at < end;
            continue;
        }
        slot = strtoul(at, &next, 10);
        last = *next == '-' ? strtoul(next + 1, &next, 10) : slot;
        for (; slot <= last && slot < SLOT_COUNT; slot++)
            served[slot] = true;
        at = next + (*next == ' ');
    }
}

static bool has_not_failed(const struct line *line)
{
    char flags[sizeof line->flags + 2];

    snprintf(flags, sizeof flags, ",%s,", line->flags);
    return strstr(flags, ",fail,") ==
           NULL; /* "fail?" doesn't count: only the node that we asked suspects it */
}

static bool has_replica(const char *nodes, const char *id)
{
    struct line line;

    while (next_line(&nodes, &line))
        if (strcmp(line.primary, id) == 0 && has_not_failed(&line))
            return true;
    return false;
}

void cluster_examine(const char *nodes, struct cluster_health *health)
{
    bool served[SLOT_COUNT] = {false};
    const char *rest = nodes;
    struct line line;
    size_t i;

    *health = (struct cluster_health){.n_slots = 0};
    while (next_line(&rest, &line)) {
        if (!is_flagged(&line, "master") || line.slots_bytes == 0 || !has_not_failed(&line))
            continue;
        health->n_primaries++;
        mark_slots(&line, served);
        health->n_alone += !has_replica(nodes, line.id);
    }
    for (i = 0; i < SLOT_COUNT; i++)
        health->n_slots += served[i];
}

bool cluster_is_known(const struct cluster *cluster)
{
    return cluster->n > 0;
}

enum rlock_status cluster_locate(struct cluster *cluster, const struct url *lost, struct url *to,
                                 struct rlock_error *err)
{
    const struct url *chosen;
    size_t tries;

    for (tries = 0; tries <= cluster->n; tries++) {
        chosen = cluster->next == 0 ? cluster->first : &cluster->node[cluster->next - 1];
        cluster->next = (cluster->next + 1) % (cluster->n + 1);
        if (!url_is_same(chosen, lost))
            break;
    }
    return url_copy(to, chosen, err);
}
