/* SPDX-License-Identifier: MIT */
/* units: durations and small numbers, from text and as text. */
#ifndef UNITS_H
#define UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define UNITS_DURATION_MAX_MS (INT64_C(100) * 365 * 86400 * 1000)

/*
 * units_duration: "30", "0.5", "500ms", "30s", "5m", "2h", "1d" to
 * milliseconds, rounded up. False: not that, or over a hundred years.
 */
bool units_duration(const char *text, int64_t *ms);

/* units_number: decimal digits and nothing else, at most `most`. */
bool units_number(const char *text, int64_t most, int64_t *value);

#define UNITS_TEXT_BYTES 32

/* units_text: "12s", "3m05s", "1h02m", "3d04h": the two largest units, rounded down. */
void units_text(char text[UNITS_TEXT_BYTES], int64_t ms);

#endif
