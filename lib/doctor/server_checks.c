/* SPDX-License-Identifier: MIT */
/*
 * server_checks: reports which settings and states of a server make its locks unsafe.
 *
 * The checks read INFO and CONFIG GET. A value that the server doesn't tell, mostly because this
 * user lacks the right, is reported as RLOCK_GRADE_UNKNOWN. Source: assumptions A1 and A2 of
 * rlock-locks(7).
 */
#include "doctor/server_checks.h"

#include "doctor/topology_checks.h"
#include "ops/inspect.h"
#include "server/server_info.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_SERVICE "see the documentation of this Redis service"
#define OLDEST_MAJOR 6 /* the first version of Redis that rlock works with */

static void check_connection(struct probe *probe)
{
    const struct member *member = probe->one.members.member;
    const struct url *url = member_primary_url(member);
    bool is_near = url->kind == URL_UNIX || url->host == NULL ||
                   strncmp(url->host, "127.", 4) == 0 || strcmp(url->host, "::1") == 0 ||
                   strcmp(url->host, "localhost") == 0;
    const char *how = url->kind == URL_UNIX ? "a Unix socket" : "TCP without TLS";
    const char *who = member_has_password(member) ? "a password" : "no password";

    if (url->is_tls)
        how = "TLS, the server's name is verified";
    if (!is_near && !url->is_tls)
        probe_report(probe, "connection", RLOCK_GRADE_WEAK,
                     "use rediss://: without TLS others on the network can read the password and "
                     "change locks",
                     "%s, %s", how, who);
    else if (!is_near && !member_has_password(member))
        probe_report(
            probe, "connection", RLOCK_GRADE_WEAK,
            "set a password on the server: without one, anybody who connects can delete locks",
            "%s, %s", how, who);
    else
        probe_report(probe, "connection", RLOCK_GRADE_GOOD, NULL, "%s, %s", how, who);
}

static enum rlock_status fetch_info(struct probe *probe, char **info)
{
    struct request request;

    request_begin(&request, "INFO");
    return probe_fetch_text(probe, &request, info);
}

/* Reads the mode, "standalone", "sentinel" or "cluster". Valkey names the field server_mode. */
static void read_mode(const char *info, char *mode, size_t room)
{
    if (!server_info_text(info, "redis_mode", mode, room))
        server_info_text(info, "server_mode", mode, room);
}

/*
 * In a Cluster the node that serves the slot of the key is to be examined. Sends EXISTS for the
 * key: every other node redirects this request to that node, and later requests go there, too. Then
 * fetches the INFO of that node.
 */
static enum rlock_status find_slot_owner(struct probe *probe, char **info)
{
    const struct resp_value *reply = NULL;
    struct request request;
    char mode[20];
    enum rlock_status st = RLOCK_OK;

    if (*info == NULL)
        st = inspect_mode(&probe->one, probe->deadline, mode, sizeof mode, &probe->err);
    else
        read_mode(*info, mode, sizeof mode);
    if (st != RLOCK_OK)
        return st;
    probe->is_cluster = strcmp(mode, "cluster") == 0;
    if (!probe->is_cluster)
        return RLOCK_OK;
    request_begin(&request, "EXISTS");
    request_add(&request, probe_key(probe));
    st = probe_ask(probe, &request, &reply);
    if (st != RLOCK_OK)
        return probe_is_denied(probe, st) ? RLOCK_OK : st;
    free(*info);
    *info = NULL;
    return fetch_info(probe, info);
}

static void report_unknown(struct probe *probe, const char *check)
{
    probe_report(probe, check, RLOCK_GRADE_UNKNOWN, ASK_SERVICE,
                 "not known, as the reply to INFO doesn't tell it");
}

static enum rlock_status check_server(struct probe *probe, const char *info)
{
    char version[40];
    char mode[20];
    char databases[20];
    bool is_valkey = server_info_text(info, "valkey_version", version, sizeof version);
    enum rlock_status st = probe_setting(probe, "databases", databases, sizeof databases);

    if (st != RLOCK_OK)
        return st;
    if (!is_valkey && !server_info_text(info, "redis_version", version, sizeof version)) {
        report_unknown(probe, "server");
        return RLOCK_OK;
    }
    read_mode(info, mode, sizeof mode);
    if (strcmp(mode, "sentinel") == 0)
        probe_report(probe, "server", RLOCK_GRADE_UNSAFE,
                     "name the server that the Sentinel watches",
                     "a Sentinel, version %s, which grants no locks", version);
    else if (!is_valkey && strtol(version, NULL, 10) < OLDEST_MAJOR)
        probe_report(probe, "server", RLOCK_GRADE_UNSAFE, "use Redis 6 or later", "Redis %s",
                     version);
    else
        probe_report(probe, "server", RLOCK_GRADE_GOOD, NULL, "%s %s, %s, database %d%s%s",
                     is_valkey ? "Valkey" : "Redis", version, *mode ? mode : "standalone",
                     probe->one.members.member->url.db, *databases ? " of " : "", databases);
    return RLOCK_OK;
}

static void check_role(struct probe *probe, const char *info)
{
    char role[20];
    char host[100];
    char port[12];

    if (!server_info_text(info, "role", role, sizeof role)) {
        report_unknown(probe, "role");
    } else if (strcmp(role, "slave") == 0) {
        probe->is_replica = true;
        server_info_text(info, "master_host", host, sizeof host);
        server_info_text(info, "master_port", port, sizeof port);
        probe_report(probe, "role", RLOCK_GRADE_UNSAFE, "name the primary with -u",
                     "a replica of %s:%s, which grants no locks", host, port);
    } else {
        probe_report(probe, "role", RLOCK_GRADE_GOOD, NULL, "primary");
    }
}

static void check_eviction(struct probe *probe, const char *info)
{
    int64_t most = server_info_number(info, "maxmemory", -1);
    int64_t used = server_info_number(info, "used_memory", 0);
    char policy[40];

    server_info_text(info, "maxmemory_policy", policy, sizeof policy);
    if (most < 0)
        report_unknown(probe, "eviction");
    else if (most == 0)
        probe_report(probe, "eviction", RLOCK_GRADE_GOOD, NULL,
                     "none, as memory has no limit (maxmemory 0)");
    else if (strcmp(policy, "noeviction") != 0)
        probe_report(probe, "eviction", RLOCK_GRADE_UNSAFE,
                     "set maxmemory-policy to noeviction, or give locks a server of their own",
                     "maxmemory-policy is %s: the server may delete locks that are held", policy);
    else if (used > most - most / 10)
        probe_report(probe, "eviction", RLOCK_GRADE_WEAK, "raise maxmemory",
                     "maxmemory-policy is noeviction, and memory is nearly full: once it is full, "
                     "the server grants no locks");
    else
        probe_report(probe, "eviction", RLOCK_GRADE_GOOD, NULL,
                     "none, as maxmemory-policy is noeviction");
}

static enum rlock_status check_persistence(struct probe *probe, const char *info)
{
    static const char set_aof[] = "set appendonly to yes";
    int64_t has_aof = server_info_number(info, "aof_enabled", -1);
    char state[20];
    char fsync[20];
    char save[100];
    enum rlock_status st = probe_setting(probe, "appendfsync", fsync, sizeof fsync);

    if (st == RLOCK_OK)
        st = probe_setting(probe, "save", save, sizeof save);
    if (st != RLOCK_OK)
        return st;
    server_info_text(info, "aof_last_write_status", state, sizeof state);
    if (has_aof < 0)
        report_unknown(probe, "persistence");
    else if (has_aof > 0 && strcmp(state, "err") == 0)
        probe_report(probe, "persistence", RLOCK_GRADE_UNSAFE,
                     "look at the server's log and its disk",
                     "the server can't write its append-only file, so it grants no locks");
    else if (has_aof > 0 && strcmp(fsync, "always") == 0)
        probe_report(probe, "persistence", RLOCK_GRADE_GOOD, NULL,
                     "appendfsync always: no restart loses a lock");
    else if (has_aof > 0 && *fsync == '\0')
        probe_report(
            probe, "persistence", RLOCK_GRADE_UNKNOWN, ASK_SERVICE,
            "appendonly yes: no restart loses a lock; what a crash of the machine loses is "
            "unknown, as CONFIG GET appendfsync is refused");
    else if (has_aof > 0 && strcmp(fsync, "no") != 0)
        probe_report(probe, "persistence", RLOCK_GRADE_GOOD, NULL,
                     "appendonly yes: no restart loses a lock, a crash of the machine loses the "
                     "locks of the last two seconds");
    else if (has_aof > 0)
        probe_report(
            probe, "persistence", RLOCK_GRADE_WEAK, "set appendfsync to everysec or always",
            "appendfsync no: a crash of the machine loses the locks of the last half minute");
    else if (*fsync != '\0' && *save == '\0' && probe->one.members.member->is_one_of_several)
        probe_report(
            probe, "persistence", RLOCK_GRADE_WEAK, set_aof,
            "none: a restart loses the locks of this member, and its grants count again only "
            "after a ttl");
    else if (*fsync != '\0' && *save == '\0')
        probe_report(probe, "persistence", RLOCK_GRADE_UNSAFE, set_aof,
                     "none: any restart loses all locks, also those that are held");
    else
        probe_report(probe, "persistence", RLOCK_GRADE_WEAK, set_aof,
                     "no append-only file: a crash loses at least the locks granted since the last "
                     "snapshot");
    return RLOCK_OK;
}

/* Counts the connected replicas that receive all writes (state=online in INFO). */
static int64_t count_online(const char *info, int64_t connected)
{
    int64_t online = 0;
    char line[200];
    char name[32];
    int64_t i;

    for (i = 0; i < connected && i < RLOCK_REPLICAS_MAX; i++) {
        snprintf(name, sizeof name, "slave%" PRId64, i);
        server_info_text(info, name, line, sizeof line);
        online += strstr(line, "state=online") != NULL;
    }
    return online;
}

static void check_replicas(struct probe *probe, const char *info)
{
    int64_t connected = server_info_number(info, "connected_slaves", -1);
    /* -1: INFO has no such field, because min-replicas-to-write is 0 */
    int64_t least = server_info_number(info, "min_slaves_good_slaves", -1);
    int64_t wanted = probe->one.replicas;
    int64_t online = count_online(info, connected);

    if (connected < 0)
        report_unknown(probe, "replicas");
    else if (online < wanted)
        probe_report(probe, "replicas", RLOCK_GRADE_UNSAFE,
                     "start more replicas, or lower --replicas",
                     "replicas online: %" PRId64 ", but --replicas needs %" PRId64
                     ": no lock can be granted",
                     online, wanted);
    else if (connected == 0)
        probe_report(probe, "replicas", RLOCK_GRADE_GOOD, NULL,
                     "none, so no failover can lose a lock");
    else if (online < connected)
        probe_report(probe, "replicas", RLOCK_GRADE_WEAK, "look at the replicas' logs",
                     "only %" PRId64 " of %" PRId64
                     " replicas are online: a failover to an offline one loses locks",
                     online, connected);
    else if (wanted == 0)
        probe_report(probe, "replicas", RLOCK_GRADE_WEAK,
                     "use --replicas N: a grant then counts only if N replicas have it",
                     "replicas online: %" PRId64
                     "%s, so a failover may lose a lock that was just granted",
                     connected, least < 0 ? ", and min-replicas-to-write is 0" : "");
    else
        probe_report(probe, "replicas", RLOCK_GRADE_GOOD, NULL,
                     "replicas online: %" PRId64 ", and a grant counts if %" PRId64 " have it",
                     online, wanted);
}

enum rlock_status server_checks_run(struct probe *probe)
{
    char *info = NULL;
    enum rlock_status st = fetch_info(probe, &info);
    bool is_unknown = probe->err.status == RLOCK_E_UNSUPPORTED;
    char said[280];

    snprintf(said, sizeof said, "%.240s", probe_last_words(probe));
    if (st == RLOCK_OK)
        st = find_slot_owner(probe, &info);
    check_connection(probe);
    if (st == RLOCK_OK && info != NULL)
        st = check_server(probe, info);
    if (st != RLOCK_OK)
        goto out;
    if (probe->one.members.member->url.kind == URL_SENTINEL)
        st = topology_check_sentinels(probe);
    else if (probe->is_cluster)
        st = topology_check_cluster(probe);
    if (st == RLOCK_OK && info == NULL)
        probe_report(probe, "info", RLOCK_GRADE_UNKNOWN,
                     is_unknown ? ASK_SERVICE : "allow the user +info",
                     "no answer (%s), so version, role, eviction, persistence and replicas were "
                     "not checked",
                     said);
    if (st != RLOCK_OK || info == NULL)
        goto out;
    check_role(probe, info);
    check_eviction(probe, info);
    st = check_persistence(probe, info);
    if (st != RLOCK_OK)
        goto out;
    check_replicas(probe, info);
out:
    free(info);
    return st;
}

/*
 * While any client's script runs, the server executes no renewal. A script that hangs can be ended
 * by SCRIPT KILL, but only after busy-reply-threshold.
 */
enum rlock_status server_checks_scripts(struct probe *probe)
{
    int64_t outlasted_ms = probe->timing.ttl_ms - probe->timing.renew_ms;
    char text[24];
    enum rlock_status st =
        probe_setting(probe, "busy-reply-threshold", text, sizeof text); /* since Redis 7 */

    if (st == RLOCK_OK && *text == '\0')
        st = probe_setting(probe, "lua-time-limit", text, sizeof text);
    if (st != RLOCK_OK)
        return st;
    if (*text == '\0' && probe->scripts != PROBE_SCRIPTS_RUN)
        return RLOCK_OK;
    if (*text == '\0')
        probe_report(probe, "scripts", RLOCK_GRADE_GOOD, NULL, "the server executes scripts");
    else if (strtoll(text, NULL, 10) <= 0 || strtoll(text, NULL, 10) > outlasted_ms)
        probe_report(probe, "scripts", RLOCK_GRADE_WEAK,
                     "lower busy-reply-threshold (lua-time-limit), or use a longer --ttl",
                     "a script that hangs can be ended only after %s ms, but a lease outlasts only "
                     "%" PRId64 " ms without a renewal",
                     text, outlasted_ms);
    else
        probe_report(probe, "scripts", RLOCK_GRADE_GOOD, NULL,
                     "a script that hangs can be ended after %s ms", text);
    return RLOCK_OK;
}
