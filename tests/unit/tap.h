/* SPDX-License-Identifier: MIT */
/*
 * tap: functions for unit tests that print their results in the Test Anything Protocol.
 *
 *     static void test_port(void)
 *     {
 *         ok(url.port == 6379, "the port has a default");
 *         is_int(url.port, 6379, "the port has a default");
 *         is_str(url.host, "localhost");
 *     }
 *     ...
 *     TESTS(test_port, test_host)
 *
 * or, in a main() that does more:
 *
 *     RUN_ALL(test_port, test_host);
 *     RUN(test_family(AF_INET));
 *     RUN_AS("a row of a table", test_row(i));
 *     return done_testing();
 *
 * Each RUN is one result, and each test of RUN_ALL. An assertion that fails prints its file, its
 * line and its text as a comment; without a text, what it asserts. What main() asserts outside of
 * RUN is one result, `main`.
 *
 * ok(), okf() and the macros is_...() return true if the assertion holds, so that a test can skip
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

#define RUN(call) RUN_AS(#call, call)
#define RUN_AS(name, call) (tap_begin(name), (void)(call), tap_end())
#define RUN_ALL(...) tap_run_all(#__VA_ARGS__, (void (*const[])(void)){__VA_ARGS__})

#define TESTS(...)             \
    int main(void)             \
    {                          \
        RUN_ALL(__VA_ARGS__);  \
        return done_testing(); \
    }

/* In a function of type void: what follows in it makes sense only if this holds. */
#define need(...)             \
    do {                      \
        if (!ok(__VA_ARGS__)) \
            return;           \
    } while (0)
#define ok(...) TAP_THIRD(__VA_ARGS__, TAP_OK, TAP_OK_UNNAMED, )(__VA_ARGS__)
#define okf(passed, ...) tap_ok(__FILE__, __LINE__, passed, __VA_ARGS__)
#define is_int(...) TAP_FOURTH(__VA_ARGS__, TAP_INT, TAP_INT_UNNAMED, )(__VA_ARGS__)
#define is_str(...) TAP_FOURTH(__VA_ARGS__, TAP_STR, TAP_STR_UNNAMED, )(__VA_ARGS__)

/* The macro to call, which stands behind as many arguments as there may be. */
#define TAP_THIRD(a, b, third, ...) third
#define TAP_FOURTH(a, b, c, fourth, ...) fourth
#define TAP_OK(passed, name) tap_ok(__FILE__, __LINE__, passed, "%s", name)
#define TAP_OK_UNNAMED(passed) TAP_OK(passed, #passed)
#define TAP_INT(got, wanted, name) tap_is_int(__FILE__, __LINE__, got, wanted, name)
#define TAP_INT_UNNAMED(got, wanted) TAP_INT(got, wanted, #got)
#define TAP_STR(got, wanted, name) tap_is_str(__FILE__, __LINE__, got, wanted, name)
#define TAP_STR_UNNAMED(got, wanted) TAP_STR(got, wanted, #got)

/* A test: a RUN, or main() outside of all RUNs. */
struct tap_test {
    char name[200];
    int n_asserted;
    bool has_failed;
    char skipped[200]; /* why a part of the test can't run here */
};

static struct tap_test tap_main = {.name = "main"};
static struct tap_test tap_run;
static struct tap_test *tap_now = &tap_main;
static int tap_n_tests;
static int tap_n_failed;

/* Prints a result. Control characters and # have a meaning in the protocol, and become ?. */
static inline void tap_result(const char *result, const struct tap_test *test)
{
    const char *c;

    printf("%s %d - ", result, ++tap_n_tests);
    for (c = test->name; *c != '\0'; c++)
        putchar(*c < ' ' || *c == '#' || *c == 0x7f ? '?' : *c);
    printf("%s%s\n", test->skipped[0] != '\0' ? " # SKIP " : "", test->skipped);
    fflush(stdout); /* a crash of the test would lose what is still in the buffer */
}

static inline void tap_begin(const char *name)
{
    tap_run = (struct tap_test){.n_asserted = 0};
    snprintf(tap_run.name, sizeof tap_run.name, "%s", name);
    tap_now = &tap_run;
    printf("# begins: %s\n", name); /* run_tests.sh prints it only if the program crashes */
    fflush(stdout);
}

/* Counts the failure of the current test. The first one prints the result. */
static inline void tap_fail(void)
{
    if (!tap_now->has_failed) {
        tap_now->skipped[0] = '\0';
        tap_result("not ok", tap_now);
        tap_n_failed++;
    }
    tap_now->has_failed = true;
}

static inline void tap_end(void)
{
    if (tap_now->n_asserted == 0 && tap_now->skipped[0] == '\0') {
        tap_fail();
        printf("# the test asserts nothing\n");
    }
    if (!tap_now->has_failed)
        tap_result("ok", tap_now);
    tap_now = &tap_main;
}

/* Runs the tests, whose names are `names`, with commas in between. */
static inline void tap_run_all(const char *names, void (*const tests[])(void))
{
    char name[100];

    for (; *names != '\0'; names += strcspn(names, ","), names += strspn(names, ", ")) {
        snprintf(name, sizeof name, "%.*s()", (int)strcspn(names, ","), names);
        RUN_AS(name, (*tests++)());
    }
}

static inline bool tap_ok(const char *file, int line, bool passed, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static inline bool tap_ok(const char *file, int line, bool passed, const char *format, ...)
{
    va_list args;

    tap_now->n_asserted++;
    if (passed)
        return true;
    tap_fail();
    printf("# %s:%d: ", file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    return false;
}

/* Reports what can't run here. If nothing of the test fails, it counts as skipped. */
static inline void skip(const char *name, const char *reason)
{
    snprintf(tap_now->skipped, sizeof tap_now->skipped, "%s: %s", name, reason);
}

static inline bool tap_is_int(const char *file, int line, int64_t got, int64_t wanted,
                              const char *name)
{
    return tap_ok(file, line, got == wanted, "%s\n#    got: %lld\n# wanted: %lld", name,
                  (long long)got, (long long)wanted);
}

static inline bool tap_is_str(const char *file, int line, const char *got, const char *wanted,
                              const char *name)
{
    bool is_same = got == NULL || wanted == NULL ? got == wanted : strcmp(got, wanted) == 0;

    return tap_ok(file, line, is_same, "%s\n#    got: %s\n# wanted: %s", name,
                  got != NULL ? got : "(null)", wanted != NULL ? wanted : "(null)");
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
    if (tap_main.n_asserted > 0 || tap_main.skipped[0] != '\0')
        tap_end();
    printf("1..%d\n", tap_n_tests);
    return tap_n_failed == 0 && tap_n_tests > 0 ? 0 : 1;
}

#endif
