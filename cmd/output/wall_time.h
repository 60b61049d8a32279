/* SPDX-License-Identifier: MIT */
/* wall_time: the time of day, as text for people and for programs. */
#ifndef WALL_TIME_H
#define WALL_TIME_H

#include <stdint.h>

#define WALL_TIME_BYTES 40

/* wall_time_now_ms: the time of day, in ms since 1970. */
int64_t wall_time_now_ms(void);

/* wall_time_of: the time of day, in ms since 1970, at which rlock_clock_ms() was `clock_ms`. */
int64_t wall_time_of(int64_t clock_ms);

/*
 * wall_time_local: write a time in ms since 1970 for people, as RFC 3339 in local time:
 * "2026-11-21T02:15:03+01:00". wall_time_clock: the same, but only the time of day: "02:15:03".
 */
void wall_time_local(char text[WALL_TIME_BYTES], int64_t unix_ms);
void wall_time_clock(char text[WALL_TIME_BYTES], int64_t unix_ms);

/* wall_time_until: for people, in local time: "18:00:00" for today, else "2026-11-24 18:00". */
void wall_time_until(char text[WALL_TIME_BYTES], int64_t unix_ms);

/* wall_time_utc: for programs, as RFC 3339 in UTC: "2026-11-21T01:15:03.123Z". */
void wall_time_utc(char text[WALL_TIME_BYTES], int64_t unix_ms);

#endif
