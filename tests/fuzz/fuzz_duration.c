/* SPDX-License-Identifier: MIT */
/*
 * fuzz_duration: parses any bytes as a duration and as a number. Printing a duration may round it
 * down, but by less than the smallest unit that is printed.
 */
#include "fuzz.h"
#include "options/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = fuzz_text(data, n);
    char printed[UNITS_TEXT_BYTES];
    int64_t value = -1;
    int64_t again;

    if (units_duration(text, &value)) {
        must(value >= 0 && value <= UNITS_DURATION_MAX_MS);
        units_tenths(printed, value);
        must(units_duration(printed, &again) && again <= value);
        units_text(printed, value);
        must(units_duration(printed, &again) && again <= value);
        must(value - again < (value < 3600000 ? 1000 : value < 86400000 ? 60000 : 3600000));
    }
    must(!units_number(text, 255, &value) || (value >= 0 && value <= 255));
    free(text);
    return 0;
}
