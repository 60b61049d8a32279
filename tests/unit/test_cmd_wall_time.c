/* SPDX-License-Identifier: MIT */
/* test_cmd_wall_time: times are local with their offset for people, and UTC for programs. */
#include "output/wall_time.h"
#include "tap.h"

#include <rlock.h>
#include <stdlib.h>
#include <time.h>

#define AT_MS INT64_C(1795271709123) /* 2026-11-21, 14:35:09.123 UTC */

static const struct {
    const char *zone, *wanted, *clock;
} zones[] = {
    {"UTC0", "2026-11-21T14:35:09+00:00", "14:35:09"},
    {"CET-1", "2026-11-21T15:35:09+01:00", "15:35:09"},
    {"NST3:30", "2026-11-21T11:05:09-03:30", "11:05:09"},
    {"LINT-14", "2026-11-22T04:35:09+14:00", "04:35:09"},
};

int main(void)
{
    char text[WALL_TIME_BYTES];
    char clock[WALL_TIME_BYTES];
    int64_t now_ms;

    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        setenv("TZ", zones[i].zone, 1);
        tzset();
        wall_time_local(text, AT_MS);
        is_str(text, zones[i].wanted, "a time for people is local, with its offset from UTC");
        wall_time_clock(text, AT_MS);
        is_str(text, zones[i].clock, "a time of day for people is local");
        wall_time_utc(text, AT_MS);
        is_str(text, "2026-11-21T14:35:09.123Z", "a time for programs is UTC, with milliseconds");
    }
    wall_time_utc(text, 0);
    is_str(text, "1970-01-01T00:00:00.000Z", "the time 0 is the begin of 1970");
    wall_time_utc(text, INT64_C(4102444800000));
    is_str(text, "2100-01-01T00:00:00.000Z", "a time after 2038 is written");
    wall_time_utc(text, INT64_MAX);
    ok(strlen(text) < sizeof text);
    wall_time_local(text, INT64_MAX);
    ok(strlen(text) < sizeof text);
    wall_time_until(text, AT_MS);
    is_str(text, "2026-11-22 04:35", "a time of another day has its date");
    wall_time_until(text, INT64_MAX);
    ok(strlen(text) < sizeof text);
    now_ms = wall_time_now_ms();
    wall_time_clock(clock, now_ms);
    wall_time_until(text, now_ms);
    is_str(text, clock, "a time of this day has no date");
    ok(now_ms / 1000 <= time(NULL) && now_ms / 1000 > time(NULL) - 60);
    ok(llabs(wall_time_of(rlock_clock_ms() - 5000) - (now_ms - 5000)) < 1000);
    return done_testing();
}
