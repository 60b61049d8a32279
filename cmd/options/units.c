/* SPDX-License-Identifier: MIT */
/* units: parse durations and numbers, and print durations. */
#include "options/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BILLION INT64_C(1000000000)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Set `*ms` to the length of the unit at the start of the text. Returns the unit's end, or NULL. */
static const char *read_unit(const char *text, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"", 1000},   {"ms", 1},      {"s", 1000},    {"sec", 1000},
                 {"m", 60000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}};
    size_t n = 0;
    size_t i;

    while (text[n] >= 'a' && text[n] <= 'z')
        n++;
    for (i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strlen(units[i].name) == n && strncmp(text, units[i].name, n) == 0) {
            *ms = units[i].ms;
            return text + n;
        }
    return NULL;
}

/* A part of a duration, such as the "30s" of "1m30s". */
struct part {
    int64_t ms;
    int64_t unit_ms;
    bool is_whole; /* the number has no decimal point */
    bool has_unit; /* the text names the unit; false: the number is one of seconds */
};

/* Read one part, rounded up to a whole ms. Returns the end of the part; NULL: a fault. */
static const char *read_part(const char *text, struct part *part)
{
    int64_t whole = 0;
    int64_t billionths = 0;
    int64_t place = BILLION / 10;
    const char *start = text;

    for (; is_digit(*text); text++) {
        whole = whole * 10 + (*text - '0');
        if (whole > UNITS_DURATION_MAX_MS)
            return NULL;
    }
    if (text == start)
        return NULL;
    part->is_whole = *text != '.';
    if (*text == '.') {
        if (!is_digit(*++text))
            return NULL;
        for (; is_digit(*text); text++, place /= 10)
            /* from the tenth decimal place on, a digit other than 0 only rounds up */
            billionths += place > 0 ? (*text - '0') * place : *text > '0';
    }
    start = text;
    text = read_unit(text, &part->unit_ms);
    if (text == NULL || whole > UNITS_DURATION_MAX_MS / part->unit_ms)
        return NULL;
    part->has_unit = text > start;
    part->ms = whole * part->unit_ms + (billionths * part->unit_ms + BILLION - 1) / BILLION;
    return text;
}

bool units_duration(const char *text, int64_t *ms)
{
    struct part part;
    int64_t smaller_than = INT64_MAX; /* length of the unit of the part before, in ms */
    int64_t sum = 0;

    do {
        text = read_part(text, &part);
        if (text == NULL || part.unit_ms >= smaller_than)
            return false;
        /* of several parts each needs a unit, and only the last may have a decimal point */
        if ((*text != '\0' && !part.is_whole) ||
            (!part.has_unit && (*text != '\0' || smaller_than != INT64_MAX)))
            return false;
        sum += part.ms;
        smaller_than = part.unit_ms;
    } while (*text != '\0' && sum <= UNITS_DURATION_MAX_MS);
    if (sum > UNITS_DURATION_MAX_MS)
        return false;
    *ms = sum;
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

void units_exact(char text[UNITS_TEXT_BYTES], int64_t ms)
{
    if (ms % 1000 != 0)
        snprintf(text, UNITS_TEXT_BYTES, "%" PRId64 "ms", ms);
    else if (ms == 0 || ms % 86400000 != 0)
        snprintf(text, UNITS_TEXT_BYTES, "%" PRId64 "s", ms / 1000);
    else
        snprintf(text, UNITS_TEXT_BYTES, "%" PRId64 "d", ms / 86400000);
}

void units_tenths(char text[UNITS_TEXT_BYTES], int64_t ms)
{
    if (ms >= 0 && ms < 60000)
        snprintf(text, UNITS_TEXT_BYTES, "%d.%ds", (int)(ms / 1000), (int)(ms % 1000 / 100));
    else
        units_text(text, ms);
}
