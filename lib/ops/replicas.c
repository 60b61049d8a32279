/* SPDX-License-Identifier: MIT */
/*
 * replicas: do enough of a server's replicas have what it granted?
 *
 * WAIT speaks of the writes of the connection it comes by: on any other it is
 * content at once. And it tells how many there are also when its time is over.
 * It is asked only after a grant: behind each attempt of one who stands in line
 * it would hold up the attempts.
 *
 * A renewal is held to the same. What a replica that becomes the primary doesn't
 * know of it, it doesn't do: it lets the lock go when the lease before ends.
 */
#include "ops/replicas.h"

#include "base/clock.h"
#include "base/err.h"

#include <inttypes.h>

/* How the members' replicas stand. */
struct standing {
    size_t n_good; /* members that have enough */
    const struct member *poor;
    int64_t most; /* of the poor one */
};

static struct standing look_at_all(const struct quorum *quorum)
{
    struct standing standing = {.poor = NULL};
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        const struct member *member = &quorum->member[i];

        if (member->state != RLOCK_OK || !member_is_on_grant_connection(member))
            continue;
        if (resp_is_int(member->reply) && resp_int(member->reply) >= quorum->replicas) {
            standing.n_good++;
        } else {
            standing.poor = member;
            standing.most = resp_int(member->reply);
        }
    }
    return standing;
}

static enum rlock_status too_few(const struct quorum *quorum, const struct standing *standing,
                                 struct rlock_error *err)
{
    if (standing->poor == NULL)
        return err_set(err, RLOCK_E_REPLICAS, 0, "its replicas did not have it in time");
    err_set(err, RLOCK_E_REPLICAS, 0, "only %" PRId64 " of %" PRId64 " replicas had it in time",
            standing->most, quorum->replicas);
    err_prefix(err, standing->poor->url.shown);
    return RLOCK_E_REPLICAS;
}

enum rlock_status replicas_have(struct quorum *quorum, struct rlock_deadline deadline,
                                struct rlock_error *err)
{
    int64_t wait_ms = quorum->timing.reply_ms;
    int64_t began_ms = rlock_clock_ms();
    const struct resp_value *reply = NULL;
    struct standing standing = {.poor = NULL};
    struct request request;
    enum rlock_status st;
    int64_t took_ms;

    if (quorum->replicas == 0)
        return RLOCK_OK;
    request_begin(&request, "WAIT");
    request_add_format(&request, "%" PRId64, quorum->replicas);
    request_add_format(&request, "%" PRId64, wait_ms);
    st = quorum_ask_slowly(quorum, &request, wait_ms, deadline, &reply, err);
    took_ms = rlock_clock_ms() - began_ms;
    if (st == RLOCK_OK)
        standing = look_at_all(quorum);
    if (standing.n_good >= quorum->need) /* were we stopped meanwhile? Then too little is left */
        return took_ms > 2 * wait_ms ? RLOCK_PENDING : RLOCK_OK;
    if (standing.poor != NULL ||
        (st == RLOCK_E_UNREACHABLE && (took_ms >= wait_ms || deadline_has_passed(deadline))))
        return too_few(quorum, &standing, err);
    if (st != RLOCK_OK)
        return st;
    return err_set(err, RLOCK_E_UNREACHABLE, 0, "the connection was lost");
}
