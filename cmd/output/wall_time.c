/* SPDX-License-Identifier: MIT */
/* wall_time: the time of day, as text for people and for programs. */
#include "output/wall_time.h"

#include <rlock.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int64_t wall_time_now_ms(void)
{
    struct timespec now;

    timespec_get(&now, TIME_UTC);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t wall_time_of(int64_t clock_ms)
{
    return wall_time_now_ms() - (rlock_clock_ms() - clock_ms);
}

/*
 * Write a time as strftime(3) does, in the local zone, or in UTC if `is_utc`. Returns the length of
 * the text, which is 0 if the C library can't convert the time.
 */
static size_t format(char text[WALL_TIME_BYTES], int64_t unix_ms, const char *pattern, bool is_utc)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;
    size_t n = 0;

    if ((is_utc ? gmtime_r : localtime_r)(&seconds, &parts) != NULL)
        n = strftime(text, WALL_TIME_BYTES, pattern, &parts);
    text[n] = '\0';
    return n;
}

void wall_time_local(char text[WALL_TIME_BYTES], int64_t unix_ms)
{
    size_t n = format(text, unix_ms, "%FT%H:%M:%S%z", false);

    if (n > 0) /* strftime writes +hhmm, RFC 3339 wants +hh:mm */
        memcpy(text + n - 2, (char[]){':', text[n - 2], text[n - 1], '\0'}, 4);
}

void wall_time_clock(char text[WALL_TIME_BYTES], int64_t unix_ms)
{
    format(text, unix_ms, "%H:%M:%S", false);
}

void wall_time_until(char text[WALL_TIME_BYTES], int64_t unix_ms)
{
    char today[WALL_TIME_BYTES];

    format(today, wall_time_now_ms(), "%F", false);
    format(text, unix_ms, "%F", false);
    format(text, unix_ms, strcmp(text, today) == 0 ? "%H:%M:%S" : "%F %H:%M", false);
}

void wall_time_utc(char text[WALL_TIME_BYTES], int64_t unix_ms)
{
    size_t n = format(text, unix_ms, "%FT%H:%M:%S", true);

    if (n > 0)
        snprintf(text + n, WALL_TIME_BYTES - n, ".%03dZ", (int)(unix_ms % 1000));
}
