/* SPDX-License-Identifier: MIT */
/* test_cmd_variable: which environment variables rlock knows, and what a mistyped name means. */
#include "options/options.h"
#include "options/variable.h"
#include "tap.h"

static const struct {
    const char *entry;
    const char *why;  /* a part of the message */
    const char *hint; /* the whole hint; "": none */
} entries[] = {
    {"RLOCK_TTTL=3", "RLOCK_TTTL is set, but rlock knows no such variable",
     "did you mean RLOCK_TTL?"},
    {"RLOCK_TTL_M=3", "RLOCK_TTL_M is set", "did you mean RLOCK_TTL_MS?"},
    {"RLOCK_TIMEOUT=3", "RLOCK_TIMEOUT is set", "did you mean RLOCK_WAIT?"},
    {"RLOCK_WAITALL=1", "RLOCK_WAITALL is set", "did you mean RLOCK_WAIT_ALL?"},
    {"RLOCK_PASWORD=x", "RLOCK_PASWORD is set", "did you mean RLOCK_PASSWORD?"},
    {"RLOCK_HOST=h", "RLOCK_HOST is set", ""},
    {"RLOCK_=x", "RLOCK_ is set", ""},
    {"RLOCK_ttl=3", "RLOCK_ttl is set", "did you mean RLOCK_TTL?"},
    {"RLOCK_LABEL=x", "RLOCK_LABEL has no effect: --label can be given on the command line only",
     ""},
    {"RLOCK_\x1b[2J=x", "RLOCK_\\x1b[2J is set", ""},
    {"RLOCK_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX=x",
     "is set", ""},
};

/* Variables that are known, or not rlock's. */
static const char *const good[] = {"PATH=/bin",        "RLOCK=1",     "RLOCK_",
                                   "RLOCK_TTTL",       "RLOCK_TTTL=", "RLOCK_TEST_STRICT=1",
                                   "RLOCK_VERSION=1.2"};

int main(void)
{
    struct mistake mistake;
    char name[64];
    char entry[80];

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        okf(variable_check(good[i], &mistake), "%s: no warning", good[i]);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        okf(!variable_check(entries[i].entry, &mistake) &&
                strstr(mistake.why, entries[i].why) != NULL &&
                strcmp(mistake.hint, entries[i].hint) == 0 && is_printable(mistake.why),
            "%s: %s; %s", entries[i].entry, mistake.why, mistake.hint);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (!option_table[i].is_everywhere)
            continue;
        option_variable(&option_table[i], name);
        snprintf(entry, sizeof entry, "%s=1", name);
        okf(variable_check(entry, &mistake), "%s is known", name);
        okf(!variable_is_given(entry), "rlock passes %s on to its command as the user set it",
            name);
    }
    for (size_t i = 0; i < VARIABLE_COUNT; i++) {
        snprintf(entry, sizeof entry, "%s=1", variable_table[i].name);
        okf(variable_check(entry, &mistake), "%s is known", variable_table[i].name);
        okf(variable_is_given(entry) == variable_table[i].is_given,
            "variable_is_given() knows whether rlock sets %s for its command",
            variable_table[i].name);
    }
    return done_testing();
}
