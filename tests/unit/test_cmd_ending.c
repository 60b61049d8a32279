/* SPDX-License-Identifier: MIT */
/* test_cmd_ending: a message tells when a command got TERM and KILL, and when it had ended. */
#include "supervise/ending.h"
#include "tap.h"

#include <rlock.h>

static bool has(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

int main(void)
{
    int64_t now = rlock_clock_ms();
    const struct ending none = {0, 0, 0};
    const struct ending all = {now - 3000, now - 2000, now - 1000};
    const struct ending killed = {0, now, 0};
    struct message message = {.what = EVENT_ENDED};
    char text[ENDING_BYTES];

    ending_text(text, &none);
    is_str(text, "", "without TERM, KILL and an end the text is empty");
    ending_text(text, &all);
    ok(strncmp(text, "TERM at 20", 10) == 0 && has(text, ", KILL at ") && has(text, ", ended at "));
    ok(strrchr(text, 'T') < strstr(text, "KILL"));
    ending_text(text, &killed);
    ok(strncmp(text, "KILL at 20", 10) == 0 && !has(text, "TERM") && !has(text, "ended"));
    ending_add_facts(&message, &killed);
    is_str(message.facts[0].name, "kill_at");
    ok(message.facts[1].kind == FACT_NONE, "TERM and the end get no member if there was none");
    return done_testing();
}
