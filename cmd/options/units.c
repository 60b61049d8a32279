/* SPDX-License-Identifier: MIT */
/* units: parse durations and numbers, and print durations. */
#include "options/units.h"

#include <stdio.h>
#include <string.h>

#define BILLION INT64_C(1000000000)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool unit_ms(const char *text, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    size_t i;

    for (i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(text, units[i].name) == 0) {
            *ms = units[i].ms;
            return true;
        }
    return false;
}

bool units_duration(const char *text, int64_t *ms)
{
    int64_t whole = 0;
    int64_t billionths = 0;
    int64_t place = BILLION / 10;
    int64_t unit;
    const char *start = text;

    for (; is_digit(*text); text++) {
        whole = whole * 10 + (*text - '0');
        if (whole > UNITS_DURATION_MAX_MS)
            return false;
    }
    if (text == start)
        return false;
    if (*text == '.') {
        if (!is_digit(*++text))
            return false;
        for (; is_digit(*text); text++, place /= 10)
            /* behind the point, the tenth digit and all after it only round up */
            billionths += place > 0 ? (*text - '0') * place : *text > '0';
    }
    if (!unit_ms(text, &unit) || whole > UNITS_DURATION_MAX_MS / unit)
        return false;
    whole = whole * unit + (billionths * unit + BILLION - 1) / BILLION;
    if (whole > UNITS_DURATION_MAX_MS)
        return false;
    *ms = whole;
    return true;
}

bool units_number(const char *text, int64_t most, int64_t *value)
{
    int64_t n = 0;

    if (*text == '\0')
        return false;
    for (; is_digit(*text); text++) {
        n = n * 10 + (*text - '0');
        if (n > most)
            return false;
    }
    if (*text != '\0')
        return false;
    *value = n;
    return true;
}

void units_text(char text[UNITS_TEXT_BYTES], int64_t ms)
{
    long long s = ms > 0 ? ms / 1000 : 0;

    if (s < 60)
        snprintf(text, UNITS_TEXT_BYTES, "%llds", s);
    else if (s < 3600)
        snprintf(text, UNITS_TEXT_BYTES, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(text, UNITS_TEXT_BYTES, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(text, UNITS_TEXT_BYTES, "%lldd%02lldh", s / 86400, s / 3600 % 24);
}
