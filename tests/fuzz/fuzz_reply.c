/* SPDX-License-Identifier: MIT */
/*
 * fuzz_reply: parses any bytes as replies of a server. The first byte tells how many bytes the
 * parser gets at a time.
 */
#include "fuzz.h"
#include "lock/replies.h"
#include "lock/view.h"
#include "server/cluster.h"

static void read_view(const struct resp_value *reply)
{
    struct rlock_party holders[VIEW_HOLDERS_MAX];
    struct rlock_view view = {.key = "K"};

    if (view_parse(reply, INT64_C(1700000000000), &view, holders, NULL) != RLOCK_OK)
        return;
    must(view.n_holders <= VIEW_HOLDERS_MAX && view.n_holders <= view.n_all);
    for (size_t i = 0; i < view.n_holders; i++)
        must(memchr(view.holders[i].text, '\0', sizeof view.holders[i].text) != NULL);
}

static void read_all(const struct resp_value *reply)
{
    enum reply_code code;
    struct reply answer;
    size_t bytes;

    for (size_t i = 0; i < resp_array_count(reply); i++)
        read_all(resp_array_at(reply, i));
    if (resp_string(reply, &bytes) != NULL)
        must(resp_string(reply, &bytes)[bytes] == '\0' && bytes <= 64 * 1024);
    must(resp_array_count(reply) <= 64 && resp_array_at(reply, resp_array_count(reply)) == NULL);
    must(!resp_is_ok(reply) || resp_error(reply) == NULL);
    if (reply_parse_acquire(reply, &answer, NULL) == RLOCK_OK)
        must(answer.code != REPLY_RESTORED && (answer.code != REPLY_OK || answer.fence > 0));
    if (reply_parse_renew(reply, &answer, NULL) == RLOCK_OK)
        must(memchr(answer.obstacle.holder.text, '\0', sizeof answer.obstacle.holder.text) != NULL);
    if (reply_parse_release(reply, &answer, NULL) == RLOCK_OK)
        must(answer.code == REPLY_OK || answer.code == REPLY_HELD || answer.code == REPLY_GONE);
    if (reply_parse_confirm(reply, &answer, NULL) == RLOCK_OK)
        must(answer.code == REPLY_OK || answer.code == REPLY_LATE || answer.code == REPLY_GONE);
    if (reply_parse_break(reply, &code, NULL) == RLOCK_OK)
        must(code == REPLY_OK || code == REPLY_HELD || code == REPLY_GONE);
    must(reply_soon_ms(reply) >= -1);
    must(reply_time_us(reply) >= 0);
    (void)reply_first_error(reply, 0, resp_array_count(reply));
    must(cluster_endpoint(reply) <= CLUSTER_BY_PORT);
    read_view(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t piece = n > 0 ? (size_t)data[0] + 1 : 1;
    struct resp_reader *resp = resp_reader_new();
    enum rlock_status st = RLOCK_PENDING;
    const struct resp_value *reply;

    must(resp_built_with(true)[0] != '\0');
    for (size_t at = 1; at < n && st == RLOCK_PENDING; at += piece) {
        st = resp_reader_feed(resp, (const char *)data + at, n - at < piece ? n - at : piece, NULL);
        while (st == RLOCK_OK && (st = resp_reader_next(resp, &reply, NULL)) == RLOCK_OK)
            read_all(reply);
    }
    resp_reader_free(resp);
    return 0;
}
