/* SPDX-License-Identifier: MIT */
/*
 * topology_checks: the Sentinels that watch a server, or the Cluster that it is part of.
 *
 * What counts is whether a primary that dies is replaced, and before a lease
 * ends that was renewed just before. Source: "High availability with Redis
 * Sentinel"; Redis Cluster specification, CLUSTER NODES.
 */
#include "doctor/topology_checks.h"

#include "base/err.h"
#include "server/slot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEWEST 3              /* of Sentinels or primaries, so that one may be gone */
#define SENTINEL_REPLY_MS 500 /* of those that hang each costs as much */

/* For how long a lease lasts when a renewal was just due. */
static int64_t bridged_ms(const struct probe *probe)
{
    return probe->timing.ttl_ms - probe->timing.renew_ms;
}

/* ---- Sentinels ---- */

struct sentinels {
    size_t n;
    size_t n_answers;
    size_t n_known;  /* that watch it, as far as any of them has heard */
    size_t n_others; /* that name another primary */
    int64_t down_ms; /* the longest silence that isn't death */
    int64_t votes;   /* that it takes to call it dead */
    bool is_down;    /* one of them takes it to be dead */
    char silent[128];
    char other[128];
};

/* A value of {name, value, name, value, ...}; "": there is none. */
static const char *field(const struct resp_value *reply, const char *name)
{
    size_t i;
    size_t n;

    for (i = 0; i + 1 < resp_array_count(reply); i += 2) {
        const char *key = resp_string(resp_array_at(reply, i), &n);
        const char *value = resp_string(resp_array_at(reply, i + 1), &n);

        if (key != NULL && value != NULL && strcmp(key, name) == 0)
            return value;
    }
    return "";
}

static void hear(struct sentinels *heard, const struct resp_value *reply, const struct url *home)
{
    size_t n_known = (size_t)strtoul(field(reply, "num-other-sentinels"), NULL, 10) + 1;
    int64_t down_ms = strtoll(field(reply, "down-after-milliseconds"), NULL, 10);
    struct url named;

    heard->n_answers++;
    heard->n_known = n_known > heard->n_known ? n_known : heard->n_known;
    heard->down_ms = down_ms > heard->down_ms ? down_ms : heard->down_ms;
    heard->votes = strtoll(field(reply, "quorum"), NULL, 10);
    heard->is_down = heard->is_down || strstr(field(reply, "flags"), "_down") != NULL;
    if (url_at(&named, home, field(reply, "ip"), NULL, field(reply, "port"), NULL) != RLOCK_OK)
        return;
    if (!url_is_same(&named, home) && heard->n_others++ == 0)
        snprintf(heard->other, sizeof heard->other, "%s", named.shown);
    url_fini(&named);
}

/* One of them, as a server of its own. */
static void ask_sentinel(struct probe *probe, size_t nth, struct sentinels *heard)
{
    const struct url *home = member_primary_url(probe->one.member);
    const struct resp_value *reply = NULL;
    struct member member;
    struct quorum one = members_alone(&probe->one, &member, probe->pollfds);
    struct request request;
    enum rlock_status st = member_open_one_sentinel(&member, probe->one.member, nth);

    members_set_patience(&one, SENTINEL_REPLY_MS, SENTINEL_REPLY_MS);
    request_begin(&request, "SENTINEL");
    request_add(&request, "MASTER");
    request_add(&request, probe->one.member->url.service);
    if (st == RLOCK_OK)
        st = quorum_ask(&one, &request, probe->deadline, &reply, NULL);
    if (st == RLOCK_OK && resp_array_count(reply) > 0)
        hear(heard, reply, home);
    else if (heard->silent[0] == '\0')
        snprintf(heard->silent, sizeof heard->silent, "%s",
                 probe->one.member->url.sentinel[nth].shown);
    member_close(&member);
}

enum rlock_status ensemble_tell_sentinels(struct probe *probe)
{
    const struct url *url = &probe->one.member->url;
    struct sentinels heard = {.n = url->n_sentinels};
    int64_t bridged = bridged_ms(probe);
    size_t i;

    for (i = 0; i < heard.n; i++)
        ask_sentinel(probe, i, &heard);
    if (heard.n_others > 0 || heard.is_down)
        probe_tell(probe, "sentinels", RLOCK_GRADE_UNSAFE,
                   "wait for the failover to end, or look at their logs", "%s%s",
                   heard.n_others > 0 ? "they name different primaries, one " : "",
                   heard.n_others > 0 ? heard.other : "one takes the primary to be dead");
    else if (heard.n_answers < heard.n)
        probe_tell(probe, "sentinels", RLOCK_GRADE_WEAK, "look at it, or take it out of the URL",
                   "%zu of %zu answer; %s doesn't", heard.n_answers, heard.n, heard.silent);
    else if (heard.n_known < FEWEST || heard.votes > (int64_t)heard.n_known)
        probe_tell(probe, "sentinels", RLOCK_GRADE_WEAK, "run three, with a quorum of two",
                   "%zu in all, with a quorum of %" PRId64 ": too few to replace a primary when "
                   "one of them is gone, too",
                   heard.n_known, heard.votes);
    else if (heard.down_ms > bridged)
        probe_tell(probe, "sentinels", RLOCK_GRADE_WEAK,
                   "lower down-after-milliseconds, or use a longer --ttl",
                   "a primary is replaced after %" PRId64 " ms at the earliest, and a lease "
                   "bridges %" PRId64,
                   heard.down_ms, bridged);
    else
        probe_tell(probe, "sentinels", RLOCK_GRADE_GOOD, NULL,
                   "%zu, which agree; a primary is dead after %" PRId64 " ms", heard.n_known,
                   heard.down_ms);
    return RLOCK_OK;
}

/* ---- a Cluster ---- */

static enum rlock_status get_nodes(struct probe *probe, char **nodes)
{
    const struct resp_value *reply = NULL;
    const char *text;
    struct request request;
    enum rlock_status st;
    size_t n;

    request_begin(&request, "CLUSTER");
    request_add(&request, "NODES");
    st = probe_ask(probe, &request, &reply);
    if (st != RLOCK_OK)
        return probe_is_denied(probe, st) ? RLOCK_OK : st;
    text = resp_string(reply, &n);
    if (text == NULL)
        return err_set(&probe->err, RLOCK_E_PROTOCOL, 0, "reply: not what CLUSTER NODES returns");
    *nodes = strdup(text);
    return *nodes == NULL ? err_set(&probe->err, RLOCK_E_MEMORY, 0, "no memory") : RLOCK_OK;
}

static void tell_nodes(struct probe *probe, const struct cluster_health *health, int64_t silence_ms)
{
    int64_t bridged = bridged_ms(probe);

    if (health->n_slots < SLOT_COUNT)
        probe_tell(probe, "cluster", RLOCK_GRADE_UNSAFE,
                   "bring its nodes back, or let redis-cli --cluster fix give the slots to others",
                   "%zu of %d slots are served by nobody: their locks can't be had",
                   SLOT_COUNT - health->n_slots, SLOT_COUNT);
    else if (health->n_primaries < FEWEST)
        probe_tell(probe, "cluster", RLOCK_GRADE_WEAK, "run three primaries or more",
                   "%zu primaries: too few to replace one of them", health->n_primaries);
    else if (health->n_alone > 0)
        probe_tell(probe, "cluster", RLOCK_GRADE_WEAK, "give each primary a replica",
                   "%zu of %zu primaries have no replica: when one dies, its locks can't be had",
                   health->n_alone, health->n_primaries);
    else if (silence_ms > bridged)
        probe_tell(probe, "cluster", RLOCK_GRADE_WEAK,
                   "lower cluster-node-timeout, or use a longer --ttl",
                   "a primary is replaced after %" PRId64 " ms at the earliest, and a lease "
                   "bridges %" PRId64,
                   silence_ms, bridged);
    else
        probe_tell(probe, "cluster", RLOCK_GRADE_GOOD, NULL,
                   "%zu primaries, each with a replica; all slots are served", health->n_primaries);
}

enum rlock_status ensemble_tell_cluster(struct probe *probe)
{
    struct cluster_health health;
    char silence[24] = "";
    char *nodes = NULL;
    enum rlock_status st = get_nodes(probe, &nodes);

    if (st == RLOCK_OK)
        st = probe_setting(probe, "cluster-node-timeout", silence, sizeof silence);
    if (st == RLOCK_OK && nodes == NULL)
        probe_tell(probe, "cluster", RLOCK_GRADE_UNKNOWN,
                   "allow the user CLUSTER NODES (+cluster|nodes): it is needed, too, to find the "
                   "Cluster again",
                   "it is not told");
    else if (st == RLOCK_OK) {
        cluster_examine(nodes, &health);
        tell_nodes(probe, &health, strtoll(silence, NULL, 10));
    }
    free(nodes);
    return st;
}
