/* SPDX-License-Identifier: MIT */
/*
 * tap: functions for unit tests that print their results in the Test Anything Protocol.
 *
 *     ok(url.port == 6379, "the port has a default");
 *     is_int(url.port, 6379, "the port has a default");
 *     is_str(url.host, "localhost", "the host has a default");
 *     return done_testing();
 *
 * ok(), okf() and the functions is_...() return true if the test passed, so that a test can skip
 * steps after a failure. Each test program has one source file, so this header may define the
 * counters.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int tap_n_tests;
static int tap_n_failed;

static inline bool ok(bool passed, const char *name)
{
    tap_n_tests++;
    tap_n_failed += !passed;
    printf("%sok %d - %s\n", passed ? "" : "not ", tap_n_tests, name);
    fflush(stdout); /* a crash of the test would lose what is still in the buffer */
    return passed;
}

/*
 * Like ok(), but the name is formatted as by printf(3). Control characters and # have a meaning in
 * the protocol: okf() replaces them by ?.
 */
static inline bool okf(bool passed, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline bool okf(bool passed, const char *format, ...)
{
    char name[200];
    va_list args;
    size_t i;

    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    for (i = 0; name[i] != '\0'; i++)
        if (name[i] < ' ' || name[i] == '#' || name[i] == 0x7f)
            name[i] = '?';
    return ok(passed, name);
}

/*
 * Reports a test that can't run here. The test counts as passed, and the results name the reason.
 */
static inline void skip(const char *name, const char *reason)
{
    tap_n_tests++;
    printf("ok %d - %s # SKIP %s\n", tap_n_tests, name, reason);
    fflush(stdout);
}

static inline bool is_int(int64_t got, int64_t wanted, const char *name)
{
    if (ok(got == wanted, name))
        return true;
    printf("#    got: %lld\n# wanted: %lld\n", (long long)got, (long long)wanted);
    return false;
}

static inline bool is_str(const char *got, const char *wanted, const char *name)
{
    if (got == NULL || wanted == NULL) {
        if (ok(got == wanted, name))
            return true;
    } else if (ok(strcmp(got, wanted) == 0, name)) {
        return true;
    }
    printf("#    got: %s\n# wanted: %s\n", got != NULL ? got : "(null)",
           wanted != NULL ? wanted : "(null)");
    return false;
}

/* True if the text has no control character. */
static inline bool is_printable(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

/* Prints the plan. Returns the exit status for main(): 0 if tests were run and all passed. */
static inline int done_testing(void)
{
    printf("1..%d\n", tap_n_tests);
    return tap_n_failed == 0 && tap_n_tests > 0 ? 0 : 1;
}

#endif
