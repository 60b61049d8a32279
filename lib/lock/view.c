/* SPDX-License-Identifier: MIT */
/* view: how a lock looks, from the reply of a script that only looks. */
#include "lock/view.h"

#include "base/err.h"
#include "lock/holder_info.h"

#include <stdlib.h>

static enum rlock_status unexpected(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: not what the script returns");
}

static enum rlock_seen seen_in(const char *value, bool has_renewer)
{
    if (has_renewer)
        return RLOCK_SEEN_KEPT;
    if (!holder_info_is_ours(value))
        return RLOCK_SEEN_FOREIGN;
    if (holder_info_has(value, "mode", "shared"))
        return RLOCK_SEEN_SHARED;
    if (holder_info_has(value, "mode", "slots"))
        return RLOCK_SEEN_SLOTS;
    if (holder_info_has(value, "mode", "rest"))
        return RLOCK_SEEN_REST;
    return holder_info_has(value, "mode", "done") ? RLOCK_SEEN_DONE : RLOCK_SEEN_EXCLUSIVE;
}

void view_set_length(struct rlock_party *party, int64_t now_ms)
{
    party->for_ms = party->since_ms > 0 && now_ms > party->since_ms ? now_ms - party->since_ms : 0;
}

static void read_holder(struct rlock_view *view, struct rlock_party *holder, const char *value,
                        int64_t now_ms)
{
    holder_info_holder(value, holder);
    view_set_length(holder, now_ms);
    view->holders = holder;
    view->n_holders = view->n_all = 1;
}

/* Those who hold it at once: {ms left, holder info, ...}, and how many there are. */
static enum rlock_status read_several(struct rlock_view *view, struct rlock_party *holders,
                                      const struct resp_value *cards, int64_t n_all, int64_t now_ms,
                                      struct rlock_error *err)
{
    size_t i;
    size_t n;

    view->holders = holders;
    view->n_all = n_all < 0 ? 0 : (size_t)n_all;
    for (i = 0; i + 1 < resp_array_count(cards) && view->n_holders < VIEW_HOLDERS_MAX; i += 2) {
        struct rlock_party *holder = &holders[view->n_holders++];
        const char *card = resp_string(resp_array_at(cards, i + 1), &n);

        if (card == NULL || !resp_is_int(resp_array_at(cards, i)))
            return unexpected(err);
        holder_info_read(card, holder);
        holder->left_ms = resp_int(resp_array_at(cards, i));
        view_set_length(holder, now_ms);
    }
    return RLOCK_OK;
}

/* {value, ms left, last fence, how many wait, is it kept for the next, how many hold it,
 * cards, what is wrong with its helper keys} */
static bool is_view(const struct resp_value *reply)
{
    const struct resp_value *value = reply == NULL ? NULL : resp_array_at(reply, 0);
    size_t n;
    size_t i;

    if (reply == NULL || resp_array_count(reply) != 8 ||
        resp_string(resp_array_at(reply, 2), &n) == NULL)
        return false;
    if (resp_string(value, &n) == NULL && !resp_is_nil(value))
        return false;
    if (resp_string(resp_array_at(reply, 7), &n) == NULL)
        return false;
    for (i = 1; i <= 5; i++)
        if (i != 2 && !resp_is_int(resp_array_at(reply, i)))
            return false;
    return true;
}

static int64_t bounded(int64_t left_ms)
{
    if (left_ms < 0)
        return -1;
    return left_ms < VIEW_LEFT_MAX_MS ? left_ms : VIEW_LEFT_MAX_MS;
}

enum rlock_status view_read(const struct resp_value *reply, int64_t now_ms, struct rlock_view *view,
                            struct rlock_party *holders, struct rlock_error *err)
{
    const char *value;
    int64_t several;
    size_t n;

    if (!is_view(reply))
        return unexpected(err);
    value = resp_string(resp_array_at(reply, 0), &n);
    several = resp_int(resp_array_at(reply, 5));
    view->fence = strtoull(resp_string(resp_array_at(reply, 2), &n), NULL, 10);
    view->waiting = resp_int(resp_array_at(reply, 3));
    view->wrong = resp_string(resp_array_at(reply, 7), &n);
    if (value == NULL)
        return RLOCK_OK;
    view->left_ms = bounded(resp_int(resp_array_at(reply, 1)));
    view->seen = seen_in(value, resp_int(resp_array_at(reply, 4)) == 1);
    if (view->seen == RLOCK_SEEN_FOREIGN)
        view->value = holder_info_without_token(value);
    if (several >= 0)
        return read_several(view, holders, resp_array_at(reply, 6), several, now_ms, err);
    if (view->seen == RLOCK_SEEN_EXCLUSIVE || view->seen == RLOCK_SEEN_FOREIGN)
        read_holder(view, holders, value, now_ms);
    return RLOCK_OK;
}
