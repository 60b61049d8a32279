/* SPDX-License-Identifier: MIT */
/*
 * topology_checks: reports whether Sentinels or a Cluster can replace a dead primary in time.
 *
 * In time means: if a primary dies just before a lease is renewed, a replica must become the new
 * primary before that lease ends. Source: "High availability with Redis Sentinel"; Redis Cluster
 * specification, CLUSTER NODES.
 */
#include "doctor/topology_checks.h"

#include "server/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VOTERS_MIN 3 /* of two Sentinels or primaries, the one that survives is no majority */
#define SENTINEL_REPLY_MS 500 /* longest wait for the reply of one Sentinel */

/* Returns the longest outage that a lease survives: the time left when a renewal is due. */
static int64_t outlasted_ms(const struct probe *probe)
{
    return probe->timing.ttl_ms - probe->timing.renew_ms;
}

/* ---- checking the Sentinels ---- */

/* A summary of the replies of the Sentinels in the URL. */
struct sentinels {
    size_t n;         /* Sentinels in the URL */
    size_t n_answers; /* Sentinels that replied */
    size_t n_known;   /* how many Sentinels watch this primary: the largest count reported */
    int64_t down_ms;  /* the longest down-after-milliseconds reported */
    int64_t votes;    /* the quorum setting: Sentinels that must agree that the primary is down */
    bool is_down;     /* a Sentinel reported the primary as down */
    char other[128];  /* the address of the first other primary that was named */
    /* the addresses of Sentinels, which belong to the URL; NULL: there is none */
    const char *silent;    /* the first one that didn't reply */
    const char *dissenter; /* the one that named `other` */
};

/* Returns the value of `name` in the reply {name, value, name, value, ...}, or "". */
static const char *field_of(const struct resp_value *reply, const char *name)
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

static void count_reply(struct sentinels *sentinels, const struct resp_value *reply,
                        const char *sentinel, const struct url *primary)
{
    size_t n_known = (size_t)strtoul(field_of(reply, "num-other-sentinels"), NULL, 10) + 1;
    int64_t down_ms = strtoll(field_of(reply, "down-after-milliseconds"), NULL, 10);
    struct url named;

    sentinels->n_answers++;
    sentinels->n_known = n_known > sentinels->n_known ? n_known : sentinels->n_known;
    sentinels->down_ms = down_ms > sentinels->down_ms ? down_ms : sentinels->down_ms;
    sentinels->votes = strtoll(field_of(reply, "quorum"), NULL, 10);
    sentinels->is_down = sentinels->is_down || strstr(field_of(reply, "flags"), "_down") != NULL;
    if (url_at(&named, primary, field_of(reply, "ip"), NULL, field_of(reply, "port"), NULL) !=
        RLOCK_OK)
        return;
    if (!url_is_same(&named, primary) && sentinels->dissenter == NULL) {
        sentinels->dissenter = sentinel;
        snprintf(sentinels->other, sizeof sentinels->other, "%s", named.shown);
    }
    url_fini(&named);
}

/* Sends SENTINEL MASTER to the nth Sentinel of the URL, and counts its reply. */
static void ask_sentinel(struct probe *probe, size_t nth, struct sentinels *sentinels)
{
    const struct url *primary = member_primary_url(probe->one.members.member);
    const char *sentinel = probe->one.members.member->url.sentinel[nth].shown;
    const struct resp_value *reply = NULL;
    struct member member;
    struct quorum one = quorum_alone(&probe->one, &member, probe->pollfds);
    struct request request;
    enum rlock_status st = member_open_one_sentinel(&member, probe->one.members.member, nth);

    quorum_set_patience(&one, SENTINEL_REPLY_MS, SENTINEL_REPLY_MS);
    request_begin(&request, "SENTINEL");
    request_add(&request, "MASTER");
    request_add(&request, probe->one.members.member->url.service);
    if (st == RLOCK_OK)
        st = quorum_ask(&one, &request, probe->deadline, &reply, NULL);
    if (st == RLOCK_OK && resp_array_count(reply) > 0)
        count_reply(sentinels, reply, sentinel, primary);
    else if (sentinels->silent == NULL)
        sentinels->silent = sentinel;
    member_close(&member);
}

enum rlock_status topology_check_sentinels(struct probe *probe)
{
    const struct url *url = &probe->one.members.member->url;
    struct sentinels sentinels = {.n = url->n_sentinels};
    int64_t limit_ms = outlasted_ms(probe);
    const char *after_failover = "wait for the failover to end, or look at the Sentinels' logs";
    size_t i;

    for (i = 0; i < sentinels.n; i++)
        ask_sentinel(probe, i, &sentinels);
    if (sentinels.dissenter != NULL)
        probe_report(probe, "sentinels", RLOCK_GRADE_UNSAFE, after_failover,
                     "the Sentinels disagree: %s says that the primary is %s, not %s",
                     sentinels.dissenter, sentinels.other,
                     member_primary_url(probe->one.members.member)->shown);
    else if (sentinels.is_down)
        probe_report(probe, "sentinels", RLOCK_GRADE_UNSAFE, after_failover,
                     "a Sentinel says that the primary is down");
    else if (sentinels.n_answers < sentinels.n)
        probe_report(probe, "sentinels", RLOCK_GRADE_WEAK,
                     "repair that Sentinel, or take it out of the URL",
                     "%zu of %zu Sentinels answer, but %s doesn't", sentinels.n_answers,
                     sentinels.n, sentinels.silent);
    else if (sentinels.n_known < VOTERS_MIN || sentinels.votes > (int64_t)sentinels.n_known)
        probe_report(
            probe, "sentinels", RLOCK_GRADE_WEAK, "run three Sentinels, with a quorum of two",
            "%zu Sentinels, with a quorum of %" PRId64 ": too few to replace a primary while a "
            "Sentinel is down",
            sentinels.n_known, sentinels.votes);
    else if (sentinels.down_ms > limit_ms)
        probe_report(probe, "sentinels", RLOCK_GRADE_WEAK,
                     "lower down-after-milliseconds, or use a longer --ttl",
                     "a primary is replaced after %" PRId64 " ms at the earliest, but a lease "
                     "outlasts only %" PRId64 " ms without a renewal",
                     sentinels.down_ms, limit_ms);
    else
        probe_report(probe, "sentinels", RLOCK_GRADE_GOOD, NULL,
                     "%zu Sentinels agree, and replace a primary that is down for %" PRId64 " ms",
                     sentinels.n_known, sentinels.down_ms);
    return RLOCK_OK;
}

/* ---- checking the nodes of a Cluster ---- */

static void report_nodes(struct probe *probe, const struct cluster_health *health,
                         int64_t node_timeout_ms)
{
    int64_t limit_ms = outlasted_ms(probe);

    if (health->n_slots < SLOT_COUNT)
        probe_report(probe, "cluster", RLOCK_GRADE_UNSAFE,
                     "start the missing nodes, or run redis-cli --cluster fix, which moves the "
                     "slots to others",
                     "no node serves %zu of %d slots: no lock in these slots can be granted",
                     SLOT_COUNT - health->n_slots, SLOT_COUNT);
    else if (health->n_primaries < VOTERS_MIN)
        probe_report(probe, "cluster", RLOCK_GRADE_WEAK, "run three primaries or more",
                     "%zu primaries: too few to replace one that dies", health->n_primaries);
    else if (health->n_alone > 0)
        probe_report(
            probe, "cluster", RLOCK_GRADE_WEAK, "give each primary a replica",
            "%zu of %zu primaries have no replica: when one of these dies, nobody grants its locks",
            health->n_alone, health->n_primaries);
    else if (node_timeout_ms > limit_ms)
        probe_report(probe, "cluster", RLOCK_GRADE_WEAK,
                     "lower cluster-node-timeout, or use a longer --ttl",
                     "a primary is replaced after %" PRId64 " ms at the earliest, but a lease "
                     "outlasts only %" PRId64 " ms without a renewal",
                     node_timeout_ms, limit_ms);
    else
        probe_report(probe, "cluster", RLOCK_GRADE_GOOD, NULL,
                     "%zu primaries, each with a replica, serve all slots", health->n_primaries);
}

enum rlock_status topology_check_cluster(struct probe *probe)
{
    struct cluster_health health;
    struct request request;
    char node_timeout[24] = "";
    char *nodes = NULL;
    enum rlock_status st;

    request_begin(&request, "CLUSTER");
    request_add(&request, "NODES");
    st = probe_fetch_text(probe, &request, &nodes);
    if (st == RLOCK_OK)
        st = probe_setting(probe, "cluster-node-timeout", node_timeout, sizeof node_timeout);
    if (st == RLOCK_OK && nodes == NULL)
        probe_report(
            probe, "cluster", RLOCK_GRADE_UNKNOWN,
            "allow the user CLUSTER NODES (+cluster|nodes), by which rlock also finds other nodes "
            "when one dies",
            "not known, as the server denies this user CLUSTER NODES");
    else if (st == RLOCK_OK) {
        cluster_examine(nodes, &health);
        report_nodes(probe, &health, strtoll(node_timeout, NULL, 10));
    }
    free(nodes);
    return st;
}
