/* SPDX-License-Identifier: MIT */
/* view: parses the state of a lock, as inspect.lua and list.lua return it. */
#include "lock/view.h"

#include "base/err.h"
#include "lock/holder_info.h"

#include <stdlib.h>

/* The elements of the array that view() in shared/view.lua returns. */
enum view_part {
    VIEW_VALUE,    /* the lock's value; nil: the lock is free */
    VIEW_LEFT_MS,  /* ms until the lock's key expires; -1: never */
    VIEW_FENCE,    /* the last fence, as text; "": none is known */
    VIEW_WAITING,  /* number of waiters; -1: not known */
    VIEW_IS_TURN,  /* 1: the server keeps the lock for the waiter whose turn it is; else 0 */
    VIEW_N_ALL,    /* number of holders; -1: the lock is neither shared nor has slots */
    VIEW_HOLDERS,  /* array: ms left and holder info of each holder that is returned */
    VIEW_PROBLEMS, /* text about what is wrong with the helper keys; "": nothing */
    VIEW_PARTS
};

static enum rlock_status unexpected(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: not what the script returns");
}

static enum rlock_seen seen_in(const char *lock, bool is_turn)
{
    if (is_turn)
        return RLOCK_SEEN_KEPT;
    if (!holder_info_is_rlock(lock))
        return RLOCK_SEEN_FOREIGN;
    if (holder_info_has(lock, "mode", "shared"))
        return RLOCK_SEEN_SHARED;
    if (holder_info_has(lock, "mode", "slots"))
        return RLOCK_SEEN_SLOTS;
    if (holder_info_has(lock, "mode", "rest"))
        return RLOCK_SEEN_REST;
    return holder_info_has(lock, "mode", "done") ? RLOCK_SEEN_DONE : RLOCK_SEEN_EXCLUSIVE;
}

void view_set_for_ms(struct rlock_party *party, int64_t now_ms)
{
    party->for_ms = party->since_ms > 0 && now_ms > party->since_ms ? now_ms - party->since_ms : 0;
}

static void read_holder(struct rlock_view *view, struct rlock_party *holder, const char *lock,
                        int64_t now_ms)
{
    holder_info_parse_lock(lock, holder);
    view_set_for_ms(holder, now_ms);
    view->holders = holder;
    view->n_holders = view->n_all = 1;
}

static enum rlock_status read_holders(struct rlock_view *view, struct rlock_party *holders,
                                      const struct resp_value *shown, int64_t now_ms,
                                      struct rlock_error *err)
{
    size_t i;
    size_t n;

    view->holders = holders;
    for (i = 0; i + 1 < resp_array_count(shown) && view->n_holders < VIEW_HOLDERS_MAX; i += 2) {
        struct rlock_party *holder = &holders[view->n_holders++];
        const char *info = resp_string(resp_array_at(shown, i + 1), &n);

        if (info == NULL || !resp_is_int(resp_array_at(shown, i)))
            return unexpected(err);
        holder_info_parse(info, holder);
        holder->left_ms = resp_int(resp_array_at(shown, i));
        view_set_for_ms(holder, now_ms);
    }
    return RLOCK_OK;
}

static const char *text_of(const struct resp_value *value, enum view_part part)
{
    size_t n;

    return resp_string(resp_array_at(value, part), &n);
}

static bool is_view(const struct resp_value *value)
{
    return value != NULL && resp_array_count(value) == VIEW_PARTS &&
           (text_of(value, VIEW_VALUE) != NULL || resp_is_nil(resp_array_at(value, VIEW_VALUE))) &&
           text_of(value, VIEW_FENCE) != NULL && text_of(value, VIEW_PROBLEMS) != NULL &&
           resp_is_int(resp_array_at(value, VIEW_LEFT_MS)) &&
           resp_is_int(resp_array_at(value, VIEW_WAITING)) &&
           resp_is_int(resp_array_at(value, VIEW_IS_TURN)) &&
           resp_is_int(resp_array_at(value, VIEW_N_ALL));
}

static int64_t bounded(int64_t left_ms)
{
    if (left_ms < 0)
        return -1;
    return left_ms < VIEW_LEFT_MAX_MS ? left_ms : VIEW_LEFT_MAX_MS;
}

enum rlock_status view_parse(const struct resp_value *value, int64_t now_ms,
                             struct rlock_view *view, struct rlock_party *holders,
                             struct rlock_error *err)
{
    const char *lock;
    int64_t n_all;

    if (!is_view(value))
        return unexpected(err);
    lock = text_of(value, VIEW_VALUE);
    n_all = resp_int(resp_array_at(value, VIEW_N_ALL));
    view->fence = strtoull(text_of(value, VIEW_FENCE), NULL, 10);
    view->waiting = resp_int(resp_array_at(value, VIEW_WAITING));
    view->wrong = text_of(value, VIEW_PROBLEMS);
    if (lock == NULL)
        return RLOCK_OK;
    view->left_ms = bounded(resp_int(resp_array_at(value, VIEW_LEFT_MS)));
    view->seen = seen_in(lock, resp_int(resp_array_at(value, VIEW_IS_TURN)) == 1);
    if (view->seen == RLOCK_SEEN_FOREIGN)
        view->value = holder_info_without_token(lock);
    if (n_all >= 0) {
        view->n_all = (size_t)n_all;
        return read_holders(view, holders, resp_array_at(value, VIEW_HOLDERS), now_ms, err);
    }
    if (view->seen == RLOCK_SEEN_EXCLUSIVE || view->seen == RLOCK_SEEN_FOREIGN)
        read_holder(view, holders, lock, now_ms);
    return RLOCK_OK;
}
