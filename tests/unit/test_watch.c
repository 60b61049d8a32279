/* SPDX-License-Identifier: MIT */
/* test_watch: when a watcher is told what is in the way. */
#include "ops/watch.h"
#include "tap.h"

#define FAR_MS 1000000

static void count(void *context, const struct rlock_obstacle *obstacle)
{
    int *counts = context;

    counts[obstacle == NULL]++;
}

static void test_nobody(void)
{
    const struct rlock_obstacle obstacle = {.left_ms = 1};
    struct watch watch = {.by = {.on_blocked = NULL, .every_ms = 1}};

    watch_see(NULL, &obstacle);
    watch_tick(NULL);
    is_int(watch_wake_ms(NULL, 7), 7, "without a watch the time to wake is as it was");
    watch_see(&watch, &obstacle);
    watch_tick(&watch);
    is_int(watch_wake_ms(&watch, RLOCK_NEVER), RLOCK_NEVER, "nor do we wake for nobody");
}

static void test_ticks(void)
{
    const struct rlock_obstacle obstacle = {.left_ms = 1};
    int counts[2] = {0, 0};
    struct watch watch = {.by = {.on_blocked = count, .context = counts, .every_ms = FAR_MS}};
    int64_t now = rlock_clock_ms();

    watch_tick(&watch);
    is_int(counts[0], 0, "before the first look there is nothing to tell");
    is_int(watch_wake_ms(&watch, RLOCK_NEVER), RLOCK_NEVER, "and no reason to wake");
    watch_see(&watch, &obstacle);
    watch_tick(&watch);
    is_int(counts[0], 1, "a look is told at once, and not again before it is time");
    ok(watch_wake_ms(&watch, RLOCK_NEVER) >= now + FAR_MS &&
           watch_wake_ms(&watch, RLOCK_NEVER) < now + 2 * FAR_MS,
       "it is time so long after the look");
    is_int(watch_wake_ms(&watch, 7), 7, "an earlier moment stays");
    watch.next_ms = now;
    watch_tick(&watch);
    is_int(counts[0], 2, "then it is told again");
    ok(watch.next_ms >= now + FAR_MS, "once");
    watch_see(&watch, NULL);
    watch.next_ms = now;
    watch_tick(&watch);
    ok(counts[0] == 2 && counts[1] == 1, "after the end nothing is told");
    is_int(watch_wake_ms(&watch, RLOCK_NEVER), RLOCK_NEVER, "and nothing woken for");
}

static void test_looks_only(void)
{
    const struct rlock_obstacle obstacle = {.left_ms = 1};
    int counts[2] = {0, 0};
    struct watch watch = {.by = {.on_blocked = count, .context = counts}};

    watch_see(&watch, &obstacle);
    watch_tick(&watch);
    is_int(counts[0], 1, "who wants to be told of looks only is");
    is_int(watch_wake_ms(&watch, RLOCK_NEVER), RLOCK_NEVER, "and costs no waking");
}

int main(void)
{
    test_nobody();
    test_ticks();
    test_looks_only();
    return done_testing();
}
