/* SPDX-License-Identifier: MIT */
/*
 * topology_checks: the Sentinels that watch a server, or the Cluster that it is part of.
 *
 * A primary that dies is to be replaced before a lease ends whose renewal was just due. Source:
 * "High availability with Redis Sentinel"; Redis Cluster specification, CLUSTER NODES.
 */
#include "doctor/topology_checks.h"

#include "server/slot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEWEST 3              /* Sentinels or primaries: with fewer none may fail */
#define SENTINEL_REPLY_MS 500 /* each Sentinel that hangs costs as much */

/* How long an outage may last: what is left of a lease when its renewal is due. */
static int64_t bridged_ms(const struct probe *probe)
{
    return probe->timing.ttl_ms - probe->timing.renew_ms;
}

/* ---- Sentinels ---- */

struct sentinels {
    size_t n;         /* in the URL */
    size_t n_answers; /* of these */
    size_t n_known;   /* the most that any of them knows of for this primary */
    size_t n_others;  /* that name another primary */
    int64_t down_ms;  /* down-after-milliseconds, the longest */
    int64_t votes;    /* the quorum that declares the primary down */
    bool is_down;     /* one of them says that the primary is down */
    char silent[128]; /* the first that didn't answer */
    char other[128];  /* the first other primary */
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

static void read_answer(struct sentinels *sentinels, const struct resp_value *reply,
                        const struct url *primary)
{
    size_t n_known = (size_t)strtoul(field(reply, "num-other-sentinels"), NULL, 10) + 1;
    int64_t down_ms = strtoll(field(reply, "down-after-milliseconds"), NULL, 10);
    struct url named;

    sentinels->n_answers++;
    sentinels->n_known = n_known > sentinels->n_known ? n_known : sentinels->n_known;
    sentinels->down_ms = down_ms > sentinels->down_ms ? down_ms : sentinels->down_ms;
    sentinels->votes = strtoll(field(reply, "quorum"), NULL, 10);
    sentinels->is_down = sentinels->is_down || strstr(field(reply, "flags"), "_down") != NULL;
    if (url_at(&named, primary, field(reply, "ip"), NULL, field(reply, "port"), NULL) != RLOCK_OK)
        return;
    if (!url_is_same(&named, primary) && sentinels->n_others++ == 0)
        snprintf(sentinels->other, sizeof sentinels->other, "%s", named.shown);
    url_fini(&named);
}

/* Asks the nth Sentinel of the URL alone what it knows of the primary (SENTINEL MASTER). */
static void ask_sentinel(struct probe *probe, size_t nth, struct sentinels *sentinels)
{
    const struct url *primary = member_primary_url(probe->one.members.member);
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
        read_answer(sentinels, reply, primary);
    else if (sentinels->silent[0] == '\0')
        snprintf(sentinels->silent, sizeof sentinels->silent, "%s",
                 probe->one.members.member->url.sentinel[nth].shown);
    member_close(&member);
}

enum rlock_status topology_check_sentinels(struct probe *probe)
{
    const struct url *url = &probe->one.members.member->url;
    struct sentinels sentinels = {.n = url->n_sentinels};
    int64_t bridged = bridged_ms(probe);
    size_t i;

    for (i = 0; i < sentinels.n; i++)
        ask_sentinel(probe, i, &sentinels);
    if (sentinels.n_others > 0 || sentinels.is_down)
        probe_report(probe, "sentinels", RLOCK_GRADE_UNSAFE,
                     "wait for the failover to end, or look at their logs", "%s%s",
                     sentinels.n_others > 0 ? "they name different primaries, one " : "",
                     sentinels.n_others > 0 ? sentinels.other : "one takes the primary to be dead");
    else if (sentinels.n_answers < sentinels.n)
        probe_report(probe, "sentinels", RLOCK_GRADE_WEAK, "look at it, or take it out of the URL",
                     "%zu of %zu answer; %s doesn't", sentinels.n_answers, sentinels.n,
                     sentinels.silent);
    else if (sentinels.n_known < FEWEST || sentinels.votes > (int64_t)sentinels.n_known)
        probe_report(probe, "sentinels", RLOCK_GRADE_WEAK, "run three, with a quorum of two",
                     "%zu in all, with a quorum of %" PRId64 ": too few to replace a primary when "
                     "one of them is gone, too",
                     sentinels.n_known, sentinels.votes);
    else if (sentinels.down_ms > bridged)
        probe_report(probe, "sentinels", RLOCK_GRADE_WEAK,
                     "lower down-after-milliseconds, or use a longer --ttl",
                     "a primary is replaced after %" PRId64 " ms at the earliest, and a lease "
                     "bridges %" PRId64,
                     sentinels.down_ms, bridged);
    else
        probe_report(probe, "sentinels", RLOCK_GRADE_GOOD, NULL,
                     "%zu, which agree; a primary is dead after %" PRId64 " ms", sentinels.n_known,
                     sentinels.down_ms);
    return RLOCK_OK;
}

/* ---- a Cluster ---- */

static void report_nodes(struct probe *probe, const struct cluster_health *health,
                         int64_t silence_ms)
{
    int64_t bridged = bridged_ms(probe);

    if (health->n_slots < SLOT_COUNT)
        probe_report(
            probe, "cluster", RLOCK_GRADE_UNSAFE,
            "bring its nodes back, or let redis-cli --cluster fix give the slots to others",
            "%zu of %d slots are served by nobody: their locks can't be had",
            SLOT_COUNT - health->n_slots, SLOT_COUNT);
    else if (health->n_primaries < FEWEST)
        probe_report(probe, "cluster", RLOCK_GRADE_WEAK, "run three primaries or more",
                     "%zu primaries: too few to replace one of them", health->n_primaries);
    else if (health->n_alone > 0)
        probe_report(probe, "cluster", RLOCK_GRADE_WEAK, "give each primary a replica",
                     "%zu of %zu primaries have no replica: when one dies, its locks can't be had",
                     health->n_alone, health->n_primaries);
    else if (silence_ms > bridged)
        probe_report(probe, "cluster", RLOCK_GRADE_WEAK,
                     "lower cluster-node-timeout, or use a longer --ttl",
                     "a primary is replaced after %" PRId64 " ms at the earliest, and a lease "
                     "bridges %" PRId64,
                     silence_ms, bridged);
    else
        probe_report(probe, "cluster", RLOCK_GRADE_GOOD, NULL,
                     "%zu primaries, each with a replica; all slots are served",
                     health->n_primaries);
}

enum rlock_status topology_check_cluster(struct probe *probe)
{
    struct cluster_health health;
    struct request request;
    char silence[24] = "";
    char *nodes = NULL;
    enum rlock_status st;

    request_begin(&request, "CLUSTER");
    request_add(&request, "NODES");
    st = probe_fetch_text(probe, &request, "CLUSTER NODES", &nodes);
    if (st == RLOCK_OK)
        st = probe_setting(probe, "cluster-node-timeout", silence, sizeof silence);
    if (st == RLOCK_OK && nodes == NULL)
        probe_report(
            probe, "cluster", RLOCK_GRADE_UNKNOWN,
            "allow the user CLUSTER NODES (+cluster|nodes): it is needed, too, to find the "
            "Cluster again",
            "it is not told");
    else if (st == RLOCK_OK) {
        cluster_examine(nodes, &health);
        report_nodes(probe, &health, strtoll(silence, NULL, 10));
    }
    free(nodes);
    return st;
}
