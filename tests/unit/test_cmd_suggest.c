/* SPDX-License-Identifier: MIT */
/* test_cmd_suggest: the distance of two words, and the name that is nearest to a mistyped word. */
#include "options/suggest.h"
#include "tap.h"

static const struct {
    const char *one, *other;
    size_t distance;
} pairs[] = {
    {"", "", 0},
    {"", "ttl", 3},
    {"ttl", "ttl", 0},
    {"TTL", "ttl", 0},
    {"tll", "ttl", 1},  /* replaced */
    {"tl", "ttl", 1},   /* left out */
    {"tttl", "ttl", 1}, /* inserted */
    {"tlt", "ttl", 1},  /* swapped */
    {"ltt", "ttl", 2},  /* moved by two places */
    {"relase", "release", 1},
    {"nonblok", "nonblock", 1},
    {"kill-atfer", "kill-after", 1},
    {"wait", "break", 5},
    {"\xff", "\x7f", 1},
};

static const char *const names[] = {"ttl", "wait", "wait-all", "nonblock", "conflict-exit-code"};

static const struct {
    const char *meant; /* NULL: no name is near enough */
    const char *typed[5];
} words[] = {
    {"ttl", {"tll", "TTL", "tt"}},
    {NULL, {"lll", "t", "", "nbloc"}},
    {NULL, {"wa", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},
    {"wait", {"wiat", "wai", "wait-"}}, /* wait-all is as near, but the first of the names wins */
    {"wait-all", {"wait-al"}},
    {"nonblock", {"non", "onblok"}},
    {"conflict-exit-code", {"conflict", "conflictexitcod"}},
};

int main(void)
{
    static const char longest[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        okf(suggest_distance(pairs[i].one, pairs[i].other) == pairs[i].distance &&
                suggest_distance(pairs[i].other, pairs[i].one) == pairs[i].distance,
            "\"%s\" and \"%s\" differ by %zu", pairs[i].one, pairs[i].other, pairs[i].distance);
    }
    is_int((int64_t)strlen(longest), SUGGEST_BYTES_MAX);
    is_int((int64_t)suggest_distance(longest, ""), SUGGEST_BYTES_MAX);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (const char *const *typed = words[i].typed; *typed != NULL; typed++) {
            struct suggestion suggestion = {.typed = *typed};
            const char *meant = words[i].meant;

            for (size_t j = 0; j < sizeof names / sizeof names[0]; j++)
                suggest_consider(&suggestion, names[j]);
            okf(suggestion.best == meant || (suggestion.best != NULL && meant != NULL &&
                                             strcmp(suggestion.best, meant) == 0),
                "\"%s\" means %s: %s", *typed, meant != NULL ? meant : "none",
                suggestion.best != NULL ? suggestion.best : "none");
        }
    return done_testing();
}
