/* SPDX-License-Identifier: MIT */
/* lease: what is asked of one server about one lock, and what its answers mean. */
#ifndef LEASE_H
#define LEASE_H

#include "card.h"
#include "codec.h"

/* The lock as its owner knows it. */
struct lease {
    char *key;
    char *fence_key;
    char token[RLOCK_TOKEN_BYTES + 1];
    char card[CARD_BYTES];
    int64_t ttl_ms;
    int64_t attempt; /* number of the last acquire sent; one token serves them all */
    uint64_t fence;  /* of the grant; 0: none */
};

/* What a server answered. */
enum lease_kind {
    LEASE_GRANTED,
    LEASE_RESTORED, /* had vanished, put back */
    LEASE_HELD,     /* another's */
    LEASE_GONE,     /* nobody's */
    LEASE_LATE      /* not executed: it came too late */
};

struct lease_answer {
    enum lease_kind kind;
    int64_t server_ms;              /* 0: not told */
    uint64_t fence;                 /* of LEASE_GRANTED by an acquire */
    struct rlock_obstacle obstacle; /* of LEASE_HELD */
};

enum rlock_status lease_open(struct lease *lease, const struct rlock_config *config,
                             struct rlock_error *err);
void lease_close(struct lease *lease);

/* The numbers of a request, as text; they must outlive it. */
struct lease_words {
    char attempt[24];
    char ttl[24];
    char fence[24];
    char not_after[24];
    char prefix[RLOCK_TOKEN_BYTES + 40];
};

/* Requests. `not_after_ms` is in server time; 0: not known. */
void lease_ask_acquire(const struct lease *lease, struct request *request,
                       struct lease_words *words, int64_t not_after_ms);
void lease_ask_renew(const struct lease *lease, struct request *request, struct lease_words *words,
                     int64_t not_after_ms);
void lease_ask_release(const struct lease *lease, struct request *request,
                       struct lease_words *words);

/* lease_ask_undo: take back what the last acquire may have done, and only that. */
void lease_ask_undo(const struct lease *lease, struct request *request, struct lease_words *words);

/* Answers. RLOCK_OK or RLOCK_E_PROTOCOL. */
enum rlock_status lease_read_grant(const struct reply *reply, struct lease_answer *answer,
                                   struct rlock_error *err);
enum rlock_status lease_read_renewal(const struct reply *reply, struct lease_answer *answer,
                                     struct rlock_error *err);
enum rlock_status lease_read_release(const struct reply *reply, struct lease_answer *answer,
                                     struct rlock_error *err);

#endif
