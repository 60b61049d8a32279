/* SPDX-License-Identifier: MIT */
/* probes: one server under examination: requests to it, and findings about it. */
#ifndef PROBES_H
#define PROBES_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

struct probe {
    const struct rlock_examiner *examiner;
    const char *key; /* of the lock whose keys are tried; NULL: see probe_key() */
    struct rlock_deadline deadline;
    struct quorum one; /* one member as a quorum of its own, so that it is asked alone */
    struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX]; /* of `one` */
    struct rlock_timing timing;                    /* by which the server is measured */
    struct rlock_error err;                        /* of the last request */
    bool is_replica;                               /* the server says so */
    bool is_cluster; /* the server says that it is a node of a Cluster */
};

/*
 * probe_init: examine the members of `quorum`, whose timing the servers are measured by. `examiner`
 * and `key` (may be NULL) are borrowed. probe_select() must follow before the first request.
 */
void probe_init(struct probe *probe, const struct quorum *quorum, const char *key,
                struct rlock_deadline deadline, const struct rlock_examiner *examiner);

/* probe_select: from now on requests go to this member, and findings are about this member. */
void probe_select(struct probe *probe, const struct quorum *quorum, struct member *member);

/* probe_set_cluster: whether the server says that it is a node of a Cluster. */
void probe_set_cluster(struct probe *probe, bool is_cluster);

/* probe_set_replica: whether the server says that it is a replica. */
void probe_set_replica(struct probe *probe, bool is_replica);

/* probe_key: the key whose rights and slot are looked at; "rlock-doctor" if none was given. */
const char *probe_key(const struct probe *probe);

/* probe_report: show a finding to the examiner; `change` may be NULL. */
void probe_report(struct probe *probe, const char *check, enum rlock_grade grade,
                  const char *change, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* probe_ask: `*reply` is valid until the next request. RLOCK_OK, or as `probe->err` says. */
enum rlock_status probe_ask(struct probe *probe, const struct request *request,
                            const struct resp_value **reply);

/*
 * probe_is_denied: did the last request end with `st` because the server denies this user the
 * command or the key, or doesn't know the command? No: a password was refused or is missing.
 */
bool probe_is_denied(const struct probe *probe, enum rlock_status st);

/*
 * probe_fetch_text: sends `request`, whose reply is one string. Returns RLOCK_OK: `*text` is a copy
 * of the string, which the caller frees, or NULL if the server denies this user the command. Or a
 * fault: then `*text` is NULL, too. `command` is the request's name for the error message.
 */
enum rlock_status probe_fetch_text(struct probe *probe, const struct request *request,
                                   const char *command, char **text);

/* probe_setting: a value of CONFIG GET; "" where that is denied, which is no fault. */
enum rlock_status probe_setting(struct probe *probe, const char *name, char *out, size_t room);

#endif
