/* SPDX-License-Identifier: MIT */
/* test_replicas: replicas_have() reads replies to WAIT, on the connection of the grant only. */
#include "ops/replicas.h"
#include "quorums.h"
#include "tap.h"

#define REPLY_MS 1000 /* the timeout of WAIT; the client waits twice that time for the reply */

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
    {1, SILENT, false, RLOCK_E_REPLICAS,
     "did not reply to WAIT in time, so it is unknown if 1 replicas"},
    {1, "-NOPERM\r\n", false, RLOCK_E_REFUSED, "NOPERM"},
    {1, "-ERR unknown command 'WAIT'\r\n", false, RLOCK_E_UNSUPPORTED, "unknown command"},
    {1, "$1\r\n5\r\n", false, RLOCK_E_REPLICAS, "only 0 of 1 replicas"},
};

static void test_row(size_t i)
{
    struct rlock_deadline deadline = in(10000);
    struct rlock_config config = {
        .timing = {.ttl_ms = 60000, .renew_ms = 20000, .reply_ms = 10000},
        .connect_ms = 10000,
        .replicas = rows[i].wanted,
    };
    struct rlock_error err = {.text = ""};
    struct rlock_grant grant;
    char wait[40];

    quorum_begin();
    quorum_answers(ASKED_ACQUIRE, GRANT, NULL, NULL);
    quorum_answers(ASKED_OTHER, rows[i].answer, NULL, NULL);
    need(quorum_start(config, 1) && quorum_attempt(deadline, &grant, &err) == RLOCK_OK);
    several.quorum.timing.reply_ms = REPLY_MS;
    if (rows[i].is_new)
        conn_abandon(&several.quorum.members.member[0].route.primary->conn, NULL);
    okf(replicas_have(&several.quorum, deadline, &err) == rows[i].st &&
            strstr(err.text, rows[i].text) != NULL,
        "%d replicas wanted, reply %s%s: status %d, text \"%s\"", (int)rows[i].wanted,
        rows[i].answer, rows[i].is_new ? " on another connection" : "", (int)err.status, err.text);
    quorum_end();
    snprintf(wait, sizeof wait, "WAIT %d %d ", (int)rows[i].wanted, REPLY_MS);
    if (rows[i].wanted > 0 && !rows[i].is_new)
        is_str(several.server[0].log[atomic_load(&several.server[0].n_log) - 1].text, wait);
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        RUN_AS(rows[i].answer, test_row(i));
    return done_testing();
}
