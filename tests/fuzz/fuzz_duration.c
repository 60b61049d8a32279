/* SPDX-License-Identifier: MIT */
/* fuzz_duration: parses any bytes as a duration and as a number. */
#include "fuzz.h"
#include "options/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = fuzz_text(data, n);
    int64_t value = -1;

    must(!units_duration(text, &value) || (value >= 0 && value <= UNITS_DURATION_MAX_MS));
    must(!units_number(text, 255, &value) || (value >= 0 && value <= 255));
    free(text);
    return 0;
}
