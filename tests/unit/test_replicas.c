/* SPDX-License-Identifier: MIT */
/* test_replicas: replicas_have() reads replies to WAIT, on the connection of the grant only. */
#include "base/clock.h"
#include "ops/replicas.h"
#include "server.h"
#include "tap.h"

static const char *const the_key = "k";

#define REPLY_MS 150 /* the timeout of WAIT; the client waits twice that time for the reply */

static const struct {
    int64_t wanted;     /* how many replicas must have the lock (--replicas) */
    const char *answer; /* the server's reply to WAIT */
    bool is_new;        /* WAIT is sent by another connection than that of the grant */
    enum rlock_status st;
    const char *text;
} rows[] = {
    {0, ":0\r\n", false, RLOCK_OK, ""},
    {1, ":1\r\n", false, RLOCK_OK, ""},
    {2, ":5\r\n", false, RLOCK_OK, ""},
    {2, ":1\r\n", false, RLOCK_E_REPLICAS, ": only 1 of 2 replicas confirmed the lock in time"},
    {1, ":5\r\n", true, RLOCK_E_UNREACHABLE, "the connection was lost"},
    {2, ":1\r\n", true, RLOCK_E_UNREACHABLE, "the connection was lost"},
    {1, CLOSE, false, RLOCK_E_UNREACHABLE, "closed"},
    {1, SILENT, false, RLOCK_E_REPLICAS, "the replicas did not confirm the lock in time"},
    {1, "-NOPERM\r\n", false, RLOCK_E_REFUSED, "NOPERM"},
    {1, "-ERR unknown command 'WAIT'\r\n", false, RLOCK_E_UNSUPPORTED, "unknown command"},
    {1, "$1\r\n5\r\n", false, RLOCK_E_REPLICAS, "only 0 of 1 replicas"},
};

static void test_row(size_t i)
{
    struct server server = {
        .answers = {[ASKED_ACQUIRE] = ANSWERS(GRANT), [ASKED_OTHER] = ANSWERS(rows[i].answer)}};
    const char *url = server.url;
    struct rlock_deadline deadline = {rlock_clock_ms() + 10000, -1};
    struct rlock_obstacle obstacle;
    struct rlock_error err = {.text = ""};
    struct quorum quorum = {.replicas = 0};
    struct owner owner = {.n_locks = 0};
    struct rlock_grant grant;
    char wait[40];
    int64_t block_ms;
    struct rlock_config config = {
        .urls = &url,
        .n_urls = 1,
        .keys = &the_key,
        .n_keys = 1,
        .timing = {.ttl_ms = 1000, .renew_ms = 300, .reply_ms = REPLY_MS},
        .connect_ms = 1000,
        .replicas = rows[i].wanted,
    };
    bool good =
        server_start(&server) && owner_open(&owner, &config, NULL) == RLOCK_OK &&
        quorum_open(&quorum, &config, NULL) == RLOCK_OK &&
        quorum_acquire(&quorum, &owner, deadline, &grant, &obstacle, &block_ms, &err) == RLOCK_OK;

    if (good && rows[i].is_new)
        conn_abandon(&quorum.members.member[0].route.primary->conn, NULL);
    good = good && replicas_have(&quorum, deadline, &err) == rows[i].st;
    okf(good && strstr(err.text, rows[i].text) != NULL,
        "%d replicas wanted, reply %s%s: status %d, text \"%s\"", (int)rows[i].wanted,
        rows[i].answer, rows[i].is_new ? " on another connection" : "", (int)err.status, err.text);
    quorum_close(&quorum);
    owner_close(&owner);
    server_stop(&server);
    snprintf(wait, sizeof wait, "WAIT %d %d ", (int)rows[i].wanted, REPLY_MS);
    if (rows[i].wanted > 0 && !rows[i].is_new)
        is_str(server.log[atomic_load(&server.n_log) - 1].text, wait);
}

static void test_replies(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        test_row(i);
}

int main(void)
{
    RUN(test_replies());
    return done_testing();
}
