/* SPDX-License-Identifier: MIT */
/*
 * members: the members of a quorum, which servers they are, and whose votes count.
 *
 * A majority keeps two owners apart only if the members are different servers, if they remember
 * what they granted, and if all owners of a lock ask the same members. So:
 * - Each new connection to one of several members sends INFO with its first request. The reply
 *   tells which server the member is, and since when this server has been running.
 * - A member that was restarted after a lease began may have forgotten the lease. The grants of
 *   such a member don't count until the longest lease that is known would have ended.
 * - Each owner stores a hash of its members' addresses with the lock. So an owner finds out if the
 *   holder asks other members.
 *
 * Source: "Distributed Locks with Redis", crash recovery by delayed restart.
 */
#include "quorum/members.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_BYTES (64 * 1024)
#define REPLY_BYTES_LONG (1024 * 1024) /* for a handle without keys, which lists all locks */
#define DRIFT_PART 100 /* clocks may run at rates that differ by 1 %, as in timing.c */
/* The lookup of a password must end connect_ms / LOOKUP_SPARE before the time to connect ends, so
 * that time is left to send the password. */
#define LOOKUP_SPARE 10

/* Loads OpenSSL only if a member is rediss://, because loading it takes a millisecond. */
static enum rlock_status prepare_tls(struct members *members, const struct rlock_config *config,
                                     struct member *member, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    if (!member->url.is_tls)
        return RLOCK_OK;
    if (members->tls == NULL)
        st = tls_context_new(&members->tls, config, err);
    member_set_tls(member, members->tls);
    return st;
}

static enum rlock_status check_config(const struct rlock_config *config, struct rlock_error *err)
{
    if (config->replicas < 0 || config->replicas > RLOCK_REPLICAS_MAX)
        return err_set(err, RLOCK_E_USAGE, 0, "replicas: 0 to %d are possible", RLOCK_REPLICAS_MAX);
    if (config->n_urls > RLOCK_MEMBERS_MAX)
        return err_set(err, RLOCK_E_CONFIG, 0, "%zu servers: a quorum has at most %d members",
                       config->n_urls, RLOCK_MEMBERS_MAX);
    if (config->n_urls % 2 == 0)
        return err_set(err, RLOCK_E_CONFIG, 0,
                       "%zu servers: a quorum has an odd number of members, as %zu members survive "
                       "no more failures than %zu",
                       config->n_urls, config->n_urls, config->n_urls > 0 ? config->n_urls - 1 : 0);
    if (config->n_urls > 1 && config->mode == RLOCK_SLOTS)
        return err_set(err, RLOCK_E_USAGE, 0,
                       "slots: a quorum can't count them, as each grant may have a different "
                       "majority: use one "
                       "server");
    if (config->n_urls > 1 && config->protocol != RLOCK_PROTOCOL_TOKEN)
        return err_set(err, RLOCK_E_USAGE, 0, "protocol timestamp: possible on one server only");
    return RLOCK_OK;
}

static int by_text(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Hashes the sorted addresses, so that the order in which they are given doesn't matter. */
static void hash_members(struct members *members)
{
    char text[RLOCK_MEMBERS_MAX][sizeof members->member->url.shown + 16];
    const char *sorted[RLOCK_MEMBERS_MAX];
    uint64_t hash = HASH_START;
    size_t i;

    for (i = 0; i < members->n; i++) {
        const struct url *url = &members->member[i].url;

        snprintf(text[i], sizeof text[i], "%s/%d", url->shown, url->db);
        sorted[i] = text[i];
    }
    qsort(sorted, members->n, sizeof sorted[0], by_text);
    for (i = 0; i < members->n; i++)
        hash = hash_add(hash, sorted[i]);
    if (members->n > 1)
        snprintf(members->hash, sizeof members->hash, "%08x", (uint32_t)hash);
}

/* Redis allows in a client's name the characters from ! to ~. */
static void name_clients(struct members *members, const char *key)
{
    char *at;

    snprintf(members->client_name, sizeof members->client_name, "rlock:%s", key);
    for (at = members->client_name; *at != '\0'; at++)
        if (*at < '!' || *at > '~')
            *at = '_';
}

enum rlock_status members_open(struct members *members, const struct rlock_config *config,
                               struct rlock_error *err)
{
    int64_t lookup_ms = config->connect_ms - config->connect_ms / LOOKUP_SPARE;
    enum rlock_status st;

    *members = (struct members){.connect_ms = config->connect_ms,
                                .longest_lease_ms = config->timing.ttl_ms};
    password_source_init(&members->password_source, config->password_source, lookup_ms);
    password_source_init(&members->sentinel_password_source, config->sentinel_password_source,
                         lookup_ms);
    st = check_config(config, err);
    if (st != RLOCK_OK)
        return st;
    members->member = calloc(config->n_urls, sizeof *members->member);
    members->pollfds = calloc(config->n_urls * MEMBER_POLLFDS_MAX + 1, sizeof *members->pollfds);
    if (members->member == NULL || members->pollfds == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    members->need = config->n_urls / 2 + 1;
    if (config->n_keys > 0)
        name_clients(members, config->keys[0]);
    members->reply_bytes = config->n_keys > 0 ? REPLY_BYTES : REPLY_BYTES_LONG;
    for (; st == RLOCK_OK && members->n < config->n_urls; members->n++) {
        struct member *member = &members->member[members->n];

        st = member_open(member, config->urls[members->n], config->password,
                         &members->password_source, err);
        if (st == RLOCK_OK)
            st = member_open_sentinels(member, config->sentinel_user, config->sentinel_password,
                                       &members->sentinel_password_source, err);
        if (st == RLOCK_OK)
            st = prepare_tls(members, config, member, err);
        member_join(member, config->n_urls, members->reply_bytes,
                    config->n_keys > 0 ? members->client_name : NULL);
    }
    hash_members(members);
    return st;
}

void members_close(struct members *members)
{
    size_t i;

    for (i = 0; i < members->n; i++)
        member_close(&members->member[i]);
    password_source_fini(&members->password_source);
    password_source_fini(&members->sentinel_password_source);
    tls_context_free(members->tls);
    free(members->member);
    free(members->pollfds);
}

/* Returns RLOCK_E_CONFIG if the nth member is the same server as a member before it. */
static enum rlock_status check_distinct(const struct members *members, size_t nth,
                                        struct rlock_error *err)
{
    const struct member *member = &members->member[nth];
    size_t i;

    for (i = 0; i < nth; i++)
        if (strcmp(members->member[i].server.identity.run_id, member->server.identity.run_id) == 0)
            return err_set(err, RLOCK_E_CONFIG, 0,
                           "%.100s and %.100s are the same server: name each server once",
                           members->member[i].url.shown, member->url.shown);
    return RLOCK_OK;
}

enum rlock_status members_check(struct members *members, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    struct rlock_error silent;
    size_t i;

    for (i = 0; st == RLOCK_OK && i < members->n; i++) {
        struct member *member = &members->member[i];

        if (!member->is_one_of_several || member->state != RLOCK_OK)
            continue;
        if (member->server.identity.run_id[0] != '\0') {
            st = check_distinct(members, i, err);
            continue;
        }
        err_set(&silent, RLOCK_E_REFUSED, 0,
                "the server doesn't tell its run ID: allow the user INFO (+info)");
        err_prefix(&silent, member->url.shown);
        member_set_outcome(member, silent.status, &silent);
    }
    return st;
}

void members_observe(struct members *members, struct rlock_observer observer,
                     members_wait_hook *on_wait, void *waiter)
{
    members->observer = observer;
    members->has_warned = false;
    members->on_wait = on_wait;
    members->waiter = waiter;
}

void members_warn(struct members *members, const char *text)
{
    if (members->observer.on_warning != NULL && !members->has_warned)
        members->observer.on_warning(members->observer.context, text);
    members->has_warned = true;
}

void members_note_lease(struct members *members, int64_t ttl_ms)
{
    if (ttl_ms > members->longest_lease_ms)
        members->longest_lease_ms = ttl_ms;
}

int64_t members_uncounted_ms(const struct members *members, const struct member *member)
{
    int64_t longest_ms = members->longest_lease_ms + members->longest_lease_ms / DRIFT_PART;
    int64_t age_ms = rlock_clock_ms() - member->server.identity.started_ms;

    return member->is_one_of_several && age_ms < longest_ms ? longest_ms - age_ms : 0;
}

static size_t count_state(const struct members *members, enum rlock_status st)
{
    size_t like = 0;
    size_t i;

    for (i = 0; i < members->n; i++)
        like += members->member[i].state == st;
    return like;
}

void members_silence(const struct members *members, struct rlock_error *err)
{
    size_t i = 0;

    while (i + 1 < members->n && members->member[i].state != RLOCK_PENDING)
        i++;
    err_set(err, RLOCK_E_UNREACHABLE, 0, "%s: no answer yet", members->member[i].url.shown);
}

enum rlock_status members_fault(const struct members *members, struct rlock_error *err)
{
    const struct member *first = NULL;
    size_t n_failed = 0;
    struct rlock_error summary;
    char count[100];
    size_t i;

    for (i = 0; i < members->n; i++) {
        const struct member *member = &members->member[i];

        if (member->state < RLOCK_E_USAGE)
            continue;
        n_failed++;
        if (first == NULL ||
            count_state(members, member->state) > count_state(members, first->state))
            first = member;
    }
    if (first == NULL)
        return err_set(err, RLOCK_E_NO_QUORUM, 0,
                       "the servers answer, but no %zu of %zu agree about this lock: rlock doctor "
                       "examines each",
                       members->need, members->n);
    summary = first->err;
    if (count_state(members, first->state) <= members->n - members->need)
        summary.status = RLOCK_E_NO_QUORUM;
    snprintf(count, sizeof count, "%zu of %zu members failed, %zu must agree", n_failed, members->n,
             members->need);
    if (members->n > 1)
        err_prefix(&summary, count);
    if (err != NULL)
        *err = summary;
    return summary.status;
}
