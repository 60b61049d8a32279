/* SPDX-License-Identifier: MIT */
/* probes: sends requests to the server under examination, and reports findings about it. */
#ifndef PROBES_H
#define PROBES_H

#include "quorum/quorum.h"
#include "rlock_admin.h"

enum probe_scripts { PROBE_SCRIPTS_UNTRIED, PROBE_SCRIPTS_RUN, PROBE_SCRIPTS_REFUSED };

/* The server under examination. The checks set the last four fields, probe_select() clears them. */
struct probe {
    const struct rlock_examiner *examiner; /* borrowed; receives the findings */
    const char *key; /* borrowed; the lock for which rights are tried; NULL: see probe_key() */
    struct rlock_deadline deadline; /* when the whole examination ends */
    struct quorum one; /* a quorum of this server alone: requests go to no other member */
    struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX]; /* memory that `one` uses for poll(2) */
    struct rlock_timing timing; /* the times in which the server must reply to a holder */
    struct rlock_error err;     /* why the last request failed */
    bool keeps_history;         /* the caller's locks keep a history */
    const char *needs_scripts;  /* what the caller's lock needs scripts for; NULL: for nothing */
    bool is_replica;            /* INFO says that the server is a replica */
    enum probe_scripts scripts; /* has the server run rlock's script? */
    bool is_cluster;            /* INFO or HELLO says that the server is a node of a Cluster */
    char wrong_type[100]; /* the server's error about a lock's key of another type; "": none */
};

/*
 * probe_init: fills a probe for the members of `quorum`. The probe borrows `examiner` and `key`,
 * which may be NULL. `keeps_history` and `needs_scripts`: as doctor_examine(). The caller selects a
 * member by probe_select() before the first request.
 */
void probe_init(struct probe *probe, const struct quorum *quorum, const char *key,
                bool keeps_history, const char *needs_scripts, struct rlock_deadline deadline,
                const struct rlock_examiner *examiner);

/* probe_select: sends the next requests to this member, and reports findings about this member. */
void probe_select(struct probe *probe, const struct quorum *quorum, struct member *member);

/* probe_key: the key of the lock for which rights are tried: the caller's, or "rlock-doctor". */
const char *probe_key(const struct probe *probe);

/* probe_report: passes a finding to the examiner. `change` is what to do; NULL: nothing. */
void probe_report(struct probe *probe, const char *check, enum rlock_grade grade,
                  const char *change, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/*
 * probe_ask: sends a request and waits for its reply. Returns RLOCK_OK (`*reply` is valid until the
 * next request), RLOCK_STOPPED, or a fault, which probe->err describes.
 */
enum rlock_status probe_ask(struct probe *probe, const struct request *request,
                            const struct resp_value **reply);

/*
 * probe_is_denied: does `st`, the result of the last request, mean that the server denies this user
 * the command or the key, or doesn't know the command? False for any other fault, for example if
 * the server has refused the password, or demands one.
 */
bool probe_is_denied(const struct probe *probe, enum rlock_status st);

/* probe_last_words: the server's words in the error of the last request; if none, rlock's text. */
const char *probe_last_words(const struct probe *probe);

/*
 * probe_fetch_text: sends `request`, whose reply is one string. After RLOCK_OK `*text` is a copy of
 * the string, which the caller frees, or NULL if the server denies this user the command. After a
 * fault `*text` is NULL.
 */
enum rlock_status probe_fetch_text(struct probe *probe, const struct request *request, char **text);

/*
 * probe_setting: asks by CONFIG GET for the setting `name`, and copies its value into `out`, which
 * has `room` bytes: "" if the server denies this user the command, or has no such setting.
 */
enum rlock_status probe_setting(struct probe *probe, const char *name, char *out, size_t room);

#endif
