/* SPDX-License-Identifier: MIT */
/* units: parse durations and numbers, and print durations. */
#ifndef UNITS_H
#define UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* The longest duration that an option accepts: a hundred years. */
#define UNITS_DURATION_MAX_MS (INT64_C(100) * 365 * 86400 * 1000)

/*
 * units_duration: convert "30" and "0.5" (seconds), "500ms", "30s", "30sec", "5m", "5min", "2h" or
 * "1d" to milliseconds, rounded up. Several parts with units, from the greatest unit to the
 * smallest, are added: "1h30m". Returns false if the text is no duration, or is longer than
 * UNITS_DURATION_MAX_MS.
 */
bool units_duration(const char *text, int64_t *ms);

/*
 * units_number: convert decimal digits. Returns false if the text has any other character, is
 * empty, or is a number greater than `most`.
 */
bool units_number(const char *text, int64_t most, int64_t *value);

#define UNITS_TEXT_BYTES 32

/*
 * units_text: write a duration as its two largest units, rounded down: "12s", "3m05s", "1h02m" or
 * "3d04h". A negative duration is "0s".
 */
void units_text(char text[UNITS_TEXT_BYTES], int64_t ms);

/* units_exact: write a duration in one unit, without rounding: "1ms", "30s" or "30d". */
void units_exact(char text[UNITS_TEXT_BYTES], int64_t ms);

/* units_tenths: write a duration below a minute as "12.3s", and any other as units_text() does. */
void units_tenths(char text[UNITS_TEXT_BYTES], int64_t ms);

#endif
