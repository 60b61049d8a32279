/* SPDX-License-Identifier: MIT */
/* suggest: finds the name in a list that the user probably meant by a mistyped word. */
#include "options/suggest.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define ABBREVIATION_MIN 3

static int lower(char c)
{
    return tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* cost[i][j]: the distance between the first i letters of `one` and the first j of `other`. */
size_t suggest_distance(const char *one, const char *other)
{
    size_t cost[SUGGEST_BYTES_MAX + 1][SUGGEST_BYTES_MAX + 1];
    size_t n = strlen(one);
    size_t m = strlen(other);
    size_t i;
    size_t j;

    if (n > SUGGEST_BYTES_MAX || m > SUGGEST_BYTES_MAX)
        return SUGGEST_BYTES_MAX + 1;
    for (i = 0; i <= n; i++)
        for (j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            cost[i][j] = cost[i - 1][j - 1] + (lower(one[i - 1]) != lower(other[j - 1]));
            cost[i][j] = least(cost[i][j], least(cost[i - 1][j], cost[i][j - 1]) + 1);
            if (i > 1 && j > 1 && lower(one[i - 1]) == lower(other[j - 2]) &&
                lower(one[i - 2]) == lower(other[j - 1]))
                cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    return cost[n][m];
}

/* The greatest distance at which a name is suggested for a word of n letters. */
static size_t near_enough(size_t n)
{
    if (n < 5)
        return n == 0 ? 0 : 1;
    return n < 9 ? 2 : 3;
}

void suggest_consider(struct suggestion *suggestion, const char *name)
{
    size_t n = strlen(suggestion->typed);
    size_t distance = suggest_distance(suggestion->typed, name);

    if (n >= ABBREVIATION_MIN && strncasecmp(suggestion->typed, name, n) == 0)
        distance = least(distance, 1);
    if (distance > near_enough(n) || (suggestion->best != NULL && distance >= suggestion->distance))
        return;
    suggestion->best = name;
    suggestion->distance = distance;
}
