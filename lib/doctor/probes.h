/* SPDX-License-Identifier: MIT */
/* probes: one server under examination: what it is asked, and what is told of it. */
#ifndef PROBES_H
#define PROBES_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

struct probe {
    const struct rlock_examiner *examiner;
    const char *key;
    struct rlock_deadline deadline;
    struct quorum one; /* a view of one member, so that it is asked alone */
    struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX];
    struct rlock_timing timing; /* that it is measured by */
    struct rlock_error err;     /* of what was asked last */
    bool is_replica;            /* as far as it tells */
    bool is_cluster;            /* is it a node of one? As far as it tells */
};

/* probe_key: the lock that it is all about, or else one that is nobody's. */
const char *probe_key(const struct probe *probe);

/* probe_tell: a finding; `change` may be NULL. */
void probe_tell(struct probe *probe, const char *check, enum rlock_grade grade, const char *change,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

/* probe_ask: a request, and its answer until the next one. RLOCK_OK or as `err` says. */
enum rlock_status probe_ask(struct probe *probe, const struct request *request,
                            const struct resp_value **reply);

/* probe_is_denied: did that end so because the server knows us, and doesn't let us? */
bool probe_is_denied(const struct probe *probe, enum rlock_status st);

/* probe_setting: what CONFIG says, as text; "" if it isn't told, which is no fault. */
enum rlock_status probe_setting(struct probe *probe, const char *name, char *out, size_t room);

#endif
