/* SPDX-License-Identifier: MIT */
/* test_cmd_units: parsing durations and numbers, and printing durations. */
#include "options/units.h"
#include "tap.h"

#define DAY INT64_C(86400000)

static const struct {
    const char *text;
    int64_t ms;
} good[] = {
    {"0", 0},
    {"0.0d", 0},
    {"30", 30000},
    {"0.5", 500},
    {"500ms", 500},
    {"5m", 300000},
    {"2h", 7200000},
    {"1d", DAY},
    {"1.25m", 75000},
    /* rounded up: rounded down to 0, a short --wait would mean not to wait at all */
    {"0.0001", 1},
    {"0.5ms", 1},
    {"1.000000001s", 1001},
    {"0.999999999d", DAY},
    {"0.0000000001s", 1},
    {"1.00000000000000000000001s", 1001},
    {"36499.5d", 36499 * DAY + DAY / 2},
    {"3153600000000ms", 36500 * DAY},
    {"000000000000000000000000000000001", 1000},
    {"1min", 60000},
    {"1min30sec", 90000},
    {"1d2h3m4s5ms", DAY + 2 * 3600000 + 3 * 60000 + 4005},
    {"1m90s", 150000},
    {"1m0.5s", 60500},
    {"36499d24h", 36500 * DAY},
};

/* "213503982335d" is a little more than 2^64 ms. */
static const char *const bad[][7] = {
    {"", "s", ".5", "5.", "1..5", "-1"},
    {" 1", "1 ", "1S", "1se", "1m30", "30m1h"},
    {"1m1m", "1m2min", "1.5h30m", "1hm", "1h30x", "36500d1ms"},
    {"36499d24h0.001s", "36500d99999999999999999999ms", "0x10", "1,5", "876001h", "213503982335d"},
    {"3153600000001ms", "9223372036854775808", "18446744073709551617s"},
};

static const struct {
    const char *text;
    int64_t most;
    int64_t value; /* -1: the text is refused */
} numbers[] = {
    {"0", 255, 0},    {"255", 255, 255},
    {"256", 255, -1}, {"", 255, -1},
    {"-0", 255, -1},  {"+1", 255, -1},
    {" 1", 255, -1},  {"1 ", 255, -1},
    {"1x", 255, -1},  {"99999999999999999999999999999", 255, -1},
    {"0", 0, 0},      {"1", 0, -1},
};

static const struct {
    void (*print)(char text[UNITS_TEXT_BYTES], int64_t ms);
    int64_t ms;
    const char *text;
} texts[] = {
    {units_text, INT64_MIN, "0s"},
    {units_text, -1, "0s"},
    {units_text, 0, "0s"},
    {units_text, 1000, "1s"},
    {units_text, 60000, "1m00s"},
    {units_text, 185000, "3m05s"},
    {units_text, 3599999, "59m59s"},
    {units_text, 3600000, "1h00m"},
    {units_text, 3720000, "1h02m"},
    {units_text, DAY - 1, "23h59m"},
    {units_text, DAY, "1d00h"},
    {units_text, UNITS_DURATION_MAX_MS, "36500d00h"},
    {units_text, INT64_MAX, "106751991167d07h"},
    {units_exact, 0, "0s"},
    {units_exact, 1001, "1001ms"},
    {units_exact, DAY + 1000, "86401s"},
    {units_exact, 30 * DAY, "30d"},
    {units_tenths, 0, "0.0s"},
    {units_tenths, 299, "0.2s"},
    {units_tenths, 59999, "59.9s"},
    {units_tenths, 60000, "1m00s"},
    {units_tenths, -1, "0s"},
};

int main(void)
{
    char text[UNITS_TEXT_BYTES];
    int64_t value;
    bool is_good;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        value = -7;
        is_good = units_duration(good[i].text, &value) && value == good[i].ms;
        okf(is_good, "\"%s\" is parsed as %lld ms (got %lld)", good[i].text, (long long)good[i].ms,
            (long long)value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (size_t j = 0; j < 7 && bad[i][j] != NULL; j++) {
            value = -7;
            okf(!units_duration(bad[i][j], &value) && value == -7,
                "\"%s\" is refused as a duration", bad[i][j]);
        }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        value = -1;
        okf(units_number(numbers[i].text, numbers[i].most, &value) == (numbers[i].value >= 0) &&
                value == numbers[i].value,
            "units_number() with the limit %lld parses or refuses \"%s\"",
            (long long)numbers[i].most, numbers[i].text);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        texts[i].print(text, texts[i].ms);
        is_str(text, texts[i].text, "a duration is printed as the table says");
    }
    return done_testing();
}
