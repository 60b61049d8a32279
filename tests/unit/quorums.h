/* SPDX-License-Identifier: MIT */
/*
 * quorums: a quorum of one or three servers inside the test program (server.h), and an owner.
 *
 *     quorum_begin();
 *     quorum_answers(ASKED_ACQUIRE, GRANT, GRANT, HELD);  one answer each, or
 *     several.server[0].answers[ASKED_RENEW] = ANSWERS(...);
 *     need(quorum_start(config, 3));
 *     ...
 *     quorum_end();            the logs of the servers stay
 */
#ifndef QUORUMS_H
#define QUORUMS_H

#include "base/clock.h"
#include "quorum/quorum.h"
#include "server.h"

#define MEMBERS 3
#define CONFIRMED "*3\r\n:1\r\n:1700000000000\r\n$16\r\n1700000000000000\r\n"
#define GRANT_OF(FENCE) "*3\r\n:1\r\n:1700000000000\r\n$16\r\n" FENCE "\r\n"
#define GRANT_5 GRANT_OF("1700000000000005")
#define GRANT_PARENT                                                  \
    "*5\r\n:1\r\n:1700000000000\r\n$16\r\n1700000000000000\r\n:0\r\n" \
    "$23\r\n1:1700000000000000:6000\r\n"

static struct {
    struct server server[MEMBERS];
    const char *only[MEMBERS][ASKED_KINDS][2]; /* see quorum_answers() */
    struct quorum quorum;
    struct owner owner;
    size_t n; /* servers that were started */
} several;

/* Forgets the servers, logs and answers of the test before. */
static inline void quorum_begin(void)
{
    memset(&several, 0, sizeof several);
}

/* Each server has one answer to requests of the kind `what`. */
static inline void quorum_answers(enum asked_for what, const char *one, const char *two,
                                  const char *three)
{
    const char *const answers[MEMBERS] = {one, two, three};

    for (int i = 0; i < MEMBERS; i++) {
        several.only[i][what][0] = answers[i];
        several.server[i].answers[what] = answers[i] != NULL ? several.only[i][what] : NULL;
    }
}

/* Starts `n` servers, and opens the owner and the quorum. The function sets key and addresses. */
static inline bool quorum_start(struct rlock_config config, size_t n)
{
    static const char *const key = "k";
    const char *urls[MEMBERS];
    bool good = true;

    for (several.n = 0; several.n < n; several.n++) {
        good = good && server_start(&several.server[several.n]);
        urls[several.n] = several.server[several.n].url;
    }
    config.urls = urls;
    config.n_urls = n;
    if (config.n_keys == 0) {
        config.keys = &key;
        config.n_keys = 1;
    }
    good = good && owner_open(&several.owner, &config, NULL) == RLOCK_OK &&
           quorum_open(&several.quorum, &config, NULL) == RLOCK_OK;
    owner_join_quorum(&several.owner, several.quorum.members.hash);
    return good;
}

static inline void quorum_end(void)
{
    quorum_close(&several.quorum);
    owner_close(&several.owner);
    for (size_t i = 0; i < several.n; i++)
        server_stop(&several.server[i]);
}

/* Returns how many requests of a kind all servers have read. */
static inline int quorum_count(enum asked_for what)
{
    int n = 0;

    for (size_t i = 0; i < several.n; i++)
        n += server_count(&several.server[i], what);
    return n;
}

/* Makes one attempt. Returns its status, and fills `grant`. */
static inline enum rlock_status quorum_attempt(struct rlock_deadline deadline,
                                               struct rlock_grant *grant, struct rlock_error *err)
{
    struct rlock_obstacle obstacle = {.left_ms = 0};
    int64_t block_ms = 0;

    *grant = (struct rlock_grant){.fence = 0};
    return quorum_acquire(&several.quorum, &several.owner, deadline, grant, &obstacle, &block_ms,
                          err);
}

static inline enum rlock_status quorum_renewal(int64_t *expires_ms, struct rlock_error *err)
{
    bool is_restored;

    return quorum_renew(&several.quorum, &several.owner, in(60000), expires_ms, &is_restored, err);
}

/* Reads the next event of a renewer. If none comes within 20 s, the kind of the result is -1. */
static inline struct rlock_event next_event(int events)
{
    struct pollfd look = {.fd = events, .events = POLLIN};
    struct rlock_event event = {.kind = (enum rlock_kept) - 1};

    if (poll(&look, 1, 20000) == 1 && read(events, &event, sizeof event) < 0)
        event.kind = (enum rlock_kept) - 1;
    return event;
}

#endif
