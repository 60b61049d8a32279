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

void wall_time_local(char text[WALL_TIME_BYTES], int64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    char zone[8] = "";
    struct tm here;
    size_t n;

    text[0] = '\0';
    if (localtime_r(&seconds, &here) == NULL)
        return;
    n = strftime(text, WALL_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &here);
    strftime(zone, sizeof zone, "%z", &here); /* strftime writes +hhmm, RFC 3339 wants +hh:mm */
    snprintf(text + n, WALL_TIME_BYTES - n, "%.3s:%.2s", zone, strlen(zone) > 3 ? zone + 3 : "00");
}

void wall_time_clock(char text[WALL_TIME_BYTES], int64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm here;

    text[0] = '\0';
    if (localtime_r(&seconds, &here) != NULL)
        strftime(text, WALL_TIME_BYTES, "%H:%M:%S", &here);
}

void wall_time_until(char text[WALL_TIME_BYTES], int64_t unix_ms)
{
    time_t now_s = (time_t)(wall_time_now_ms() / 1000);
    time_t then_s = (time_t)(unix_ms / 1000);
    struct tm now;
    struct tm then;

    text[0] = '\0';
    if (localtime_r(&now_s, &now) == NULL || localtime_r(&then_s, &then) == NULL)
        return;
    strftime(text, WALL_TIME_BYTES,
             now.tm_year == then.tm_year && now.tm_yday == then.tm_yday ? "%H:%M:%S"
                                                                        : "%Y-%m-%d %H:%M",
             &then);
}

void wall_time_utc(char text[WALL_TIME_BYTES], int64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm utc;
    size_t n;

    text[0] = '\0';
    if (gmtime_r(&seconds, &utc) == NULL)
        return;
    n = strftime(text, WALL_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + n, WALL_TIME_BYTES - n, ".%03dZ", (int)(unix_ms % 1000));
}
