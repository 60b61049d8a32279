/* SPDX-License-Identifier: MIT */
/* units: parse durations and numbers, and print durations. */
#ifndef UNITS_H
#define UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* A hundred years. */
#define UNITS_DURATION_MAX_MS (INT64_C(100) * 365 * 86400 * 1000)

/*
 * units_duration: parse "30", "0.5", "500ms", "30s", "5m", "2h" or "1d" to milliseconds, rounded
 * up. False: it is no duration, or longer than UNITS_DURATION_MAX_MS.
 */
bool units_duration(const char *text, int64_t *ms);

/* units_number: parse decimal digits. False: there is anything else, or more than `most`. */
bool units_number(const char *text, int64_t most, int64_t *value);

#define UNITS_TEXT_BYTES 32

/* units_text: print "12s", "3m05s", "1h02m" or "3d04h": the two largest units, rounded down. */
void units_text(char text[UNITS_TEXT_BYTES], int64_t ms);

#endif
