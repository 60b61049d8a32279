/* SPDX-License-Identifier: MIT */
/*
 * watch: when to tell what is in the way of a lock, and to whom.
 *
 * Whoever stands deep in the line asks the server so seldom that a display
 * would stand still. Ticks need no request, and where nobody watches there
 * are none.
 */
#include "ops/watch.h"

static int64_t next_ms(const struct watch *watch)
{
    return watch->by.every_ms > 0 ? rlock_clock_ms() + watch->by.every_ms : RLOCK_NEVER;
}

void watch_see(struct watch *watch, const struct rlock_obstacle *obstacle)
{
    if (watch == NULL || watch->by.on_blocked == NULL)
        return;
    watch->obstacle = obstacle;
    watch->by.on_blocked(watch->by.context, obstacle);
    watch->next_ms = next_ms(watch);
}

void watch_asked(const struct watch *watch)
{
    if (watch != NULL && watch->hooks.on_sent != NULL)
        watch->hooks.on_sent(watch->hooks.context);
}

void watch_unreached(const struct watch *watch)
{
    if (watch != NULL && watch->hooks.on_unreachable != NULL)
        watch->hooks.on_unreachable(watch->hooks.context);
}

void watch_warn(struct watch *watch, const char *text)
{
    if (watch == NULL || watch->by.on_warning == NULL || watch->has_warned)
        return;
    watch->has_warned = true;
    watch->by.on_warning(watch->by.context, text);
}

void watch_tick(struct watch *watch)
{
    if (watch != NULL && watch->obstacle != NULL && rlock_clock_ms() >= watch->next_ms)
        watch_see(watch, watch->obstacle);
}

int64_t watch_wake_ms(const struct watch *watch, int64_t at_ms)
{
    if (watch == NULL || watch->obstacle == NULL || watch->next_ms > at_ms)
        return at_ms;
    return watch->next_ms;
}

static void on_sent(void *context)
{
    watch_asked(context);
}

static int64_t on_wait(void *context)
{
    watch_tick(context);
    return watch_wake_ms(context, RLOCK_NEVER);
}

static void on_warning(void *context, const char *text)
{
    watch_warn(context, text);
}

struct quorum_hooks watch_hooks(struct watch *watch)
{
    return (struct quorum_hooks){
        .on_sent = on_sent, .on_wait = on_wait, .on_warning = on_warning, .context = watch};
}
