/* SPDX-License-Identifier: MIT */
/*
 * members: the members of a quorum, who they are, and which of them count.
 *
 * A majority proves something only where its members are different servers that
 * remember what they granted, and where all who want a lock ask the same ones.
 * So each member is asked, before the first request on each connection and in
 * the same packet, who it is and since when it runs; and what the list of all is
 * known by stands beside each lock. A list of one has nobody to be confused with,
 * and its server is asked for nothing more.
 *
 * Source: "Distributed Locks with Redis", crash recovery by delayed restart.
 */
#include "quorum/members.h"

#include "base/clock.h"
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_BYTES (64 * 1024)
#define REPLY_BYTES_LONG (1024 * 1024) /* to who only looks, and may see the longest keys */
#define DRIFT_PART 100                 /* 1 %, as timing.c allows for */
#define LOOKUP_SPARE 10 /* of the time for a connection, the part that is left to say why not */
#define FNV_START UINT32_C(2166136261)
#define FNV_PRIME UINT32_C(16777619)

/* What TLS needs is loaded only where it is wanted. */
static enum rlock_status secure(struct quorum *quorum, const struct rlock_config *config,
                                struct member *member, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    if (!member->url.is_tls)
        return RLOCK_OK;
    if (quorum->tls == NULL)
        st = tls_context_new(&quorum->tls, config, err);
    member->tls = quorum->tls;
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
                       "%zu servers: a quorum has an odd number of members, as one more than %zu "
                       "makes no majority safer",
                       config->n_urls, config->n_urls > 0 ? config->n_urls - 1 : 0);
    if (config->n_urls > 1 && config->mode == RLOCK_SLOTS)
        return err_set(err, RLOCK_E_USAGE, 0,
                       "slots: several servers can't count them: each majority is another one");
    if (config->n_urls > 1 && config->protocol != RLOCK_PROTOCOL_TOKEN)
        return err_set(err, RLOCK_E_USAGE, 0, "a lock that is a timestamp is on one server");
    return RLOCK_OK;
}

static int by_text(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* FNV-1a over the addresses, in an order that doesn't depend on how they were given. */
static void fingerprint(struct quorum *quorum)
{
    char text[RLOCK_MEMBERS_MAX][sizeof quorum->member->url.shown + 16];
    const char *sorted[RLOCK_MEMBERS_MAX];
    uint32_t hash = FNV_START;
    const char *at;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        const struct url *url = &quorum->member[i].url;

        snprintf(text[i], sizeof text[i], "%s/%d", url->shown, url->db);
        sorted[i] = text[i];
    }
    qsort(sorted, quorum->n, sizeof sorted[0], by_text);
    for (i = 0; i < quorum->n; i++)
        for (at = sorted[i]; at == sorted[i] || at[-1] != '\0'; at++)
            hash = (hash ^ (unsigned char)*at) * FNV_PRIME;
    if (quorum->n > 1)
        snprintf(quorum->members_hash, sizeof quorum->members_hash, "%08x", hash);
}

enum rlock_status members_open(struct quorum *quorum, const struct rlock_config *config,
                               struct rlock_error *err)
{
    int64_t lookup_ms = config->connect_ms - config->connect_ms / LOOKUP_SPARE;
    enum rlock_status st;

    *quorum = (struct quorum){.timing = config->timing,
                              .connect_ms = config->connect_ms,
                              .replicas = config->replicas,
                              .longest_ms = config->timing.ttl_ms};
    password_source_init(&quorum->password_source, config->password_source, lookup_ms);
    password_source_init(&quorum->sentinel_password_source, config->sentinel_password_source,
                         lookup_ms);
    st = check_config(config, err);
    if (st != RLOCK_OK)
        return st;
    quorum->member = calloc(config->n_urls, sizeof *quorum->member);
    quorum->watch = calloc(config->n_urls * MEMBER_WATCH_MAX + 1, sizeof *quorum->watch);
    if (quorum->member == NULL || quorum->watch == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    quorum->need = config->n_urls / 2 + 1;
    quorum->reply_bytes = config->n_keys > 0 ? REPLY_BYTES : REPLY_BYTES_LONG;
    for (; st == RLOCK_OK && quorum->n < config->n_urls; quorum->n++) {
        struct member *member = &quorum->member[quorum->n];

        st = member_open(member, config->urls[quorum->n], config->password,
                         &quorum->password_source, err);
        if (st == RLOCK_OK)
            st = member_open_sentinels(member, config->sentinel_user, config->sentinel_password,
                                       &quorum->sentinel_password_source, err);
        if (st == RLOCK_OK)
            st = secure(quorum, config, member, err);
        member->reply_bytes = quorum->reply_bytes;
        member->is_to_tell = config->n_urls > 1;
    }
    fingerprint(quorum);
    return st;
}

void members_close(struct quorum *quorum)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        member_close(&quorum->member[i]);
    password_source_fini(&quorum->password_source);
    password_source_fini(&quorum->sentinel_password_source);
    tls_context_free(quorum->tls);
    free(quorum->member);
    free(quorum->watch);
}

enum rlock_status members_check(struct quorum *quorum, struct rlock_error *err)
{
    size_t i;
    size_t j;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        if (!member->is_to_tell || member->state != RLOCK_OK)
            continue;
        if (member->identity.run_id[0] == '\0') {
            member->state = err_set(&member->err, RLOCK_E_REFUSED, 0,
                                    "it doesn't tell which server it is: allow the user INFO");
            err_prefix(&member->err, member->url.shown);
            continue;
        }
        for (j = 0; j < i; j++)
            if (strcmp(quorum->member[j].identity.run_id, member->identity.run_id) == 0)
                return err_set(err, RLOCK_E_CONFIG, 0,
                               "%.100s and %.100s are the same server: it can't count twice",
                               quorum->member[j].url.shown, member->url.shown);
    }
    return RLOCK_OK;
}

struct quorum members_alone(const struct quorum *quorum, size_t nth,
                            struct pollfd watch[1 + MEMBER_WATCH_MAX])
{
    struct quorum one = *quorum;

    one.member = &quorum->member[nth];
    one.watch = watch;
    one.n = one.need = 1;
    return one;
}

int64_t members_young_ms(const struct quorum *quorum, const struct member *member)
{
    int64_t forgets_ms = quorum->longest_ms + quorum->longest_ms / DRIFT_PART;
    int64_t age_ms = rlock_clock_ms() - member->identity.born_ms;

    return member->is_to_tell && age_ms < forgets_ms ? forgets_ms - age_ms : 0;
}

/* How many members say what this one says: that it is so, and not only that it can't be reached. */
static size_t count_like(const struct quorum *quorum, enum rlock_status st)
{
    size_t like = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++)
        like += quorum->member[i].state == st;
    return like;
}

enum rlock_status members_fault(const struct quorum *quorum, struct rlock_error *err)
{
    size_t answered = count_like(quorum, RLOCK_OK);
    const struct member *first = NULL;
    struct rlock_error summary;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        const struct member *member = &quorum->member[i];

        if (member->state < RLOCK_E_USAGE)
            continue;
        if (first == NULL || count_like(quorum, member->state) > count_like(quorum, first->state))
            first = member;
    }
    if (first == NULL)
        return err_set(err, RLOCK_E_NO_QUORUM, 0, "too few members granted");
    summary = first->err;
    if (count_like(quorum, first->state) <= quorum->n - quorum->need)
        summary.status = RLOCK_E_NO_QUORUM;
    if (quorum->n > 1) /* of one there is nothing to sum up */
        snprintf(summary.text, sizeof summary.text,
                 "%zu of %zu members answered, %zu are needed; %.190s", answered, quorum->n,
                 quorum->need, first->err.text);
    if (err != NULL)
        *err = summary;
    return summary.status;
}
