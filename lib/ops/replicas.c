/* SPDX-License-Identifier: MIT */
/*
 * replicas: asks a server whether enough of its replicas have a grant or a renewal.
 *
 * WAIT counts the replicas that have all writes of its own connection. So rlock sends WAIT on the
 * connection of the grant, and not with each attempt, which WAIT would delay. A renewal needs WAIT,
 * too: if a replica that has missed the renewal becomes the primary, the lease ends earlier.
 */
#include "ops/replicas.h"

#include "base/clock.h"
#include "base/err.h"

#include <inttypes.h>

/* The replies of the members to WAIT. */
struct acknowledged {
    size_t n_enough;              /* members with acknowledgements of enough replicas */
    const struct member *lacking; /* a member with acknowledgements of too few; NULL: none */
    int64_t n_replicas;           /* how many replicas of `lacking` have acknowledged */
};

static struct acknowledged count_acknowledged(const struct quorum *quorum)
{
    struct acknowledged acknowledged = {.lacking = NULL};
    size_t i;

    for (i = 0; i < quorum->members.n; i++) {
        const struct member *member = &quorum->members.member[i];

        if (member->state != RLOCK_OK || !member_is_on_grant_connection(member))
            continue;
        if (resp_is_int(member->reply) && resp_int(member->reply) >= quorum->replicas) {
            acknowledged.n_enough++;
        } else {
            acknowledged.lacking = member;
            acknowledged.n_replicas = resp_int(member->reply);
        }
    }
    return acknowledged;
}

static enum rlock_status too_few(const struct quorum *quorum,
                                 const struct acknowledged *acknowledged, struct rlock_error *err)
{
    if (acknowledged->lacking == NULL)
        return err_set(err, RLOCK_E_REPLICAS, 0,
                       "the server did not reply to WAIT in time, so it is unknown if %" PRId64
                       " replicas have the lock",
                       quorum->replicas);
    err_set(err, RLOCK_E_REPLICAS, 0,
            "only %" PRId64 " of %" PRId64 " replicas confirmed the lock in time",
            acknowledged->n_replicas, quorum->replicas);
    err_prefix(err, acknowledged->lacking->url.shown);
    return RLOCK_E_REPLICAS;
}

enum rlock_status replicas_have(struct quorum *quorum, struct rlock_deadline deadline,
                                struct rlock_error *err)
{
    int64_t wait_ms = quorum->timing.reply_ms;
    int64_t sent_ms = rlock_clock_ms();
    const struct resp_value *reply = NULL;
    struct acknowledged acknowledged = {.lacking = NULL};
    struct request request;
    enum rlock_status st;
    int64_t took_ms;

    if (quorum->replicas == 0)
        return RLOCK_OK;
    request_begin(&request, "WAIT");
    request_add_format(&request, "%" PRId64, quorum->replicas);
    request_add_format(&request, "%" PRId64, wait_ms);
    st = quorum_ask_slowly(quorum, &request, wait_ms, deadline, &reply, err);
    took_ms = rlock_clock_ms() - sent_ms;
    if (st == RLOCK_OK)
        acknowledged = count_acknowledged(quorum);
    /* WAIT replies within wait_ms. If more than twice that time has passed, this process was
     * probably stopped meanwhile, and little of the lease may be left: see replicas.h */
    if (acknowledged.n_enough >= quorum->members.need)
        return took_ms > 2 * wait_ms ? RLOCK_PENDING : RLOCK_OK;
    if (acknowledged.lacking != NULL ||
        (st == RLOCK_E_UNREACHABLE && (took_ms >= wait_ms || deadline_has_passed(deadline))))
        return too_few(quorum, &acknowledged, err);
    if (st != RLOCK_OK)
        return st;
    return err_set(err, RLOCK_E_UNREACHABLE, 0, "the connection was lost");
}
