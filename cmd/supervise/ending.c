/* SPDX-License-Identifier: MIT */
/* ending: when a command got TERM and KILL, and when it had ended, for messages. */
#include "supervise/ending.h"

#include "output/wall_time.h"

#include <stdio.h>
#include <string.h>

void ending_text(char out[ENDING_BYTES], const struct ending *ending)
{
    const struct {
        const char *words;
        int64_t at_ms;
    } steps[] = {{"TERM", ending->term_ms}, {"KILL", ending->kill_ms}, {"ended", ending->ended_ms}};
    char text[WALL_TIME_BYTES];
    size_t used = 0;
    size_t i;

    out[0] = '\0';
    for (i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i].at_ms == 0)
            continue;
        /* only the first time is written with its date */
        (used == 0 ? wall_time_local : wall_time_clock)(text, wall_time_of(steps[i].at_ms));
        used += (size_t)snprintf(out + used, ENDING_BYTES - used, "%s%s at %s",
                                 used > 0 ? ", " : "", steps[i].words, text);
    }
}

static struct fact fact_at(const char *name, int64_t at_ms)
{
    return fact_time(name, at_ms != 0 ? wall_time_of(at_ms) : 0);
}

void ending_add_facts(struct message *message, const struct ending *ending)
{
    message_add(message, fact_at("term_at", ending->term_ms));
    message_add(message, fact_at("kill_at", ending->kill_ms));
    message_add(message, fact_at("ended_at", ending->ended_ms));
}
