/* SPDX-License-Identifier: MIT */
/* view: the state of a lock, as inspect.lua returns it, or as commands have read it. */
#include "lock/view.h"

#include "base/err.h"
#include "lock/holder_info.h"
#include "lock/replies.h"

#include <stdlib.h>
#include <string.h>

/* The elements of the array that view() in shared/view.lua returns. */
enum view_part {
    VIEW_VALUE,    /* the lock's value; nil: the lock is free */
    VIEW_LEFT_MS,  /* ms until the lock's key expires; -1: never */
    VIEW_FENCE,    /* the last fence, as text; "": none is known */
    VIEW_WAITING,  /* number of waiters; -1: not known */
    VIEW_IS_TURN,  /* 1: the server has reserved the free lock for the next waiter; else 0 */
    VIEW_N_ALL,    /* number of holders; -1: the lock is neither shared nor has slots */
    VIEW_HOLDERS,  /* array: ms left and holder info of each holder that is returned */
    VIEW_PROBLEMS, /* text about what is wrong with the helper keys; "": nothing */
    VIEW_PARTS
};

static int64_t bounded(int64_t left_ms)
{
    if (left_ms < 0)
        return -1;
    return left_ms < VIEW_LEFT_MAX_MS ? left_ms : VIEW_LEFT_MAX_MS;
}

static void set_value(struct rlock_view *view, const char *lock, int64_t left_ms)
{
    view->left_ms = bounded(left_ms);
    view->seen = holder_info_seen(lock);
    if (view->seen == RLOCK_SEEN_FOREIGN)
        view->value = holder_info_without_token(lock);
}

/*
 * Parses the holder info in the lock's value. If an owner or another program holds the lock,
 * `party` is its only holder. Otherwise the value names the next waiter (RLOCK_SEEN_KEPT) or the
 * last holder (RLOCK_SEEN_REST, RLOCK_SEEN_DONE), and `party` becomes view->other.
 */
static void set_party(struct rlock_view *view, struct rlock_party *party, const char *lock,
                      int64_t now_ms)
{
    bool is_held = view->seen == RLOCK_SEEN_EXCLUSIVE || view->seen == RLOCK_SEEN_FOREIGN;

    holder_info_parse_lock(lock, party);
    holder_info_set_times(party, now_ms, view->left_ms);
    if (is_held) {
        view->holders = party;
        view->n_holders = view->n_all = 1;
    } else {
        view->other = party;
    }
}

/* Orders holders by their slot; those without slots by the start of their lease. */
static int compare_holders(const void *one, const void *other)
{
    const struct rlock_party *a = one;
    const struct rlock_party *b = other;

    if (a->slot != b->slot)
        return a->slot < b->slot ? -1 : 1;
    if (a->since_ms != b->since_ms)
        return a->since_ms < b->since_ms ? -1 : 1;
    return strcmp(a->text, b->text);
}

/*
 * Sorts the holders, for a reader who looks at the lock again and again: the server's order, by the
 * ends of their leases, changes with each renewal.
 */
static void set_holders(struct rlock_view *view, struct rlock_party *holders, size_t n,
                        size_t n_all)
{
    view->holders = holders;
    view->n_holders = n;
    view->n_all = n_all;
    qsort(holders, n, sizeof *holders, compare_holders);
}

static enum rlock_status read_holders(struct rlock_view *view, struct rlock_party *holders,
                                      const struct resp_value *shown, int64_t n_all, int64_t now_ms,
                                      struct rlock_error *err)
{
    size_t n_holders = 0;
    size_t i;
    size_t n;

    for (i = 0; i + 1 < resp_array_count(shown) && n_holders < VIEW_HOLDERS_MAX; i += 2) {
        struct rlock_party *holder = &holders[n_holders++];
        const char *info = resp_string(resp_array_at(shown, i + 1), &n);

        if (info == NULL || !resp_is_int(resp_array_at(shown, i)))
            return reply_unexpected_script(err);
        holder_info_parse(info, holder);
        holder->left_ms = resp_int(resp_array_at(shown, i));
        holder_info_set_times(holder, now_ms, holder->left_ms);
    }
    if ((int64_t)n_holders > n_all)
        return reply_unexpected_script(err);
    set_holders(view, holders, n_holders, (size_t)n_all);
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

enum rlock_status view_parse(const struct resp_value *value, int64_t now_ms,
                             struct rlock_view *view, struct rlock_party *holders,
                             struct rlock_error *err)
{
    const char *lock;
    int64_t n_all;

    if (!is_view(value))
        return reply_unexpected_script(err);
    lock = text_of(value, VIEW_VALUE);
    n_all = resp_int(resp_array_at(value, VIEW_N_ALL));
    view->fence = strtoull(text_of(value, VIEW_FENCE), NULL, 10);
    view->waiting = resp_int(resp_array_at(value, VIEW_WAITING));
    view->wrong = text_of(value, VIEW_PROBLEMS);
    if (lock == NULL)
        return RLOCK_OK;
    set_value(view, lock, resp_int(resp_array_at(value, VIEW_LEFT_MS)));
    if (n_all >= 0)
        return read_holders(view, holders, resp_array_at(value, VIEW_HOLDERS), n_all, now_ms, err);
    set_party(view, holders, lock, now_ms);
    return RLOCK_OK;
}

void view_of_commands(const struct commands *commands, struct rlock_view *view,
                      struct rlock_party *holders)
{
    view->name = commands->name;
    view->fence = commands->fence;
    view->waiting = commands->waiting;
    view->wrong = commands->note;
    if (!commands->exists)
        return;
    set_value(view, commands->seen, commands->left_ms);
    if (view->seen != RLOCK_SEEN_SHARED && view->seen != RLOCK_SEEN_SLOTS)
        set_party(view, holders, commands->seen, commands->now_us / 1000);
}
