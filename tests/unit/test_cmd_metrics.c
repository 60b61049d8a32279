/* SPDX-License-Identifier: MIT */
/* test_cmd_metrics: locks of each kind become samples; every label is valid for Prometheus. */
#include "output/metrics.h"
#include "tap.h"

static struct metrics metrics;

/* Adds a lock, and its waiters, which have waited for these times; a 0 ends the list. */
static void add(struct rlock_view view, const int64_t waited_ms[])
{
    metrics_lock(&metrics, &view);
    for (; *waited_ms != 0; waited_ms++)
        metrics_waiter(&metrics, &(struct rlock_party){.for_ms = *waited_ms});
    metrics_end(&metrics);
}

/* Adds a lock without waiters. */
#define ADD(...) add((struct rlock_view){__VA_ARGS__}, (const int64_t[]){0})

/* Is this sample, with the line of its TYPE, in the text? */
static void has(const char *text, const char *sample)
{
    okf(strstr(text, sample) != NULL, "the metrics have: %s", sample);
}

static void test_samples(void)
{
    struct rlock_party holders[] = {{.since_ms = 1, .for_ms = 1500},
                                    {.since_ms = 1, .for_ms = 61000}};
    struct rlock_party last = {.since_ms = 1700000000123};
    struct outbuf out = {.text = NULL};
    const char *text;

    add((struct rlock_view){.key = "slots",
                            .seen = RLOCK_SEEN_SLOTS,
                            .left_ms = 29994,
                            .holders = holders,
                            .n_holders = 2,
                            .n_all = 25},
        (const int64_t[]){700, 12050, 30, 0});
    ADD(.key = "done", .seen = RLOCK_SEEN_DONE, .left_ms = 5, .other = &last);
    ADD(.key = "rest", .seen = RLOCK_SEEN_REST, .left_ms = 5, .other = &last);
    ADD(.key = "wrong", .seen = RLOCK_SEEN_FREE, .wrong = "its fence");
    ADD(.key = "ever", .seen = RLOCK_SEEN_FOREIGN, .left_ms = -1, .n_all = 1);
    metrics_waiter(&metrics, &(struct rlock_party){.for_ms = 99000});
    metrics_write(&metrics, &out);
    text = outbuf_text(&out);
    has(text, "# TYPE rlock_lock_held gauge\n"
              "rlock_lock_held{key=\"done\"} 0\n"
              "rlock_lock_held{key=\"ever\"} 1\n"
              "rlock_lock_held{key=\"rest\"} 0\n"
              "rlock_lock_held{key=\"slots\"} 1\n"
              "rlock_lock_held{key=\"wrong\"} 0\n# HELP");
    has(text, "rlock_lock_holders{key=\"slots\"} 25\n");
    has(text, "# TYPE rlock_lock_held_seconds gauge\n"
              "rlock_lock_held_seconds{key=\"slots\"} 61.000\n# HELP");
    has(text, "# TYPE rlock_lock_left_seconds gauge\n"
              "rlock_lock_left_seconds{key=\"done\"} 0.005\n"
              "rlock_lock_left_seconds{key=\"ever\"} +Inf\n"
              "rlock_lock_left_seconds{key=\"rest\"} 0.005\n"
              "rlock_lock_left_seconds{key=\"slots\"} 29.994\n# HELP");
    has(text, "rlock_lock_waiters{key=\"rest\"} 0\nrlock_lock_waiters{key=\"slots\"} 3\n");
    has(text, "rlock_lock_longest_wait_seconds{key=\"slots\"} 12.050\n");
    has(text, "# TYPE rlock_lock_last_end_timestamp_seconds gauge\n"
              "rlock_lock_last_end_timestamp_seconds{key=\"done\"} 1700000000.123\n"
              "rlock_lock_last_end_timestamp_seconds{key=\"rest\"} 1700000000.123\n# HELP");
    has(text, "# TYPE rlock_lock_last_end_status gauge\n"
              "rlock_lock_last_end_status{key=\"done\"} 0\n# HELP");
    has(text, "# TYPE rlock_locks gauge\nrlock_locks 5\n");
    metrics_fini(&metrics);
    outbuf_fini(&out);
}

static void test_ends(void)
{
    struct rlock_party last = {.since_ms = 5000};
    struct outbuf out = {.text = NULL};
    const char *text;

    metrics_last_end(&metrics, "twice", 3000, 9, false);
    metrics_last_end(&metrics, "broken", 1700000000001, -1, false);
    metrics_last_end(&metrics, "twice", 4000, 0, false);
    metrics_last_end(&metrics, "twice", 2000, 7, false);
    metrics_last_end(&metrics, "rest", 5000, 3, false);
    metrics_last_end(&metrics, "older", 4999, 4, false);
    metrics_last_end(&metrics, "slow", 6000, 5, false);
    metrics_last_end(&metrics, "slow", 6002, 76, true);
    metrics_last_end(&metrics, "slow", 6001, 5, false);
    metrics_last_end(&metrics, "taken", 7000, 5, false);
    metrics_last_end(&metrics, "taken", 6999, 76, true);
    metrics_last_end(&metrics, "taken", 6998, 76, true);
    metrics_last_end(&metrics, "lost", 9002, 76, true);
    metrics_last_end(&metrics, "lost", 9001, 5, false);
    metrics_last_end(&metrics, "lost", 9000, 76, true);
    metrics_last_end(&metrics, "even", 8000, 76, true);
    metrics_last_end(&metrics, "even", 7999, 5, false);
    ADD(.key = "rest", .seen = RLOCK_SEEN_REST, .other = &last);
    ADD(.key = "older", .seen = RLOCK_SEEN_DONE, .other = &last);
    metrics_write(&metrics, &out);
    text = outbuf_text(&out);
    has(text, "rlock_lock_last_end_timestamp_seconds{key=\"broken\"} 1700000000.001\n"
              "rlock_lock_last_end_timestamp_seconds{key=\"even\"} 7.999\n"
              "rlock_lock_last_end_timestamp_seconds{key=\"lost\"} 9.002\n"
              "rlock_lock_last_end_timestamp_seconds{key=\"older\"} 5.000\n"
              "rlock_lock_last_end_timestamp_seconds{key=\"rest\"} 5.000\n"
              "rlock_lock_last_end_timestamp_seconds{key=\"slow\"} 6.001\n"
              "rlock_lock_last_end_timestamp_seconds{key=\"taken\"} 6.999\n"
              "rlock_lock_last_end_timestamp_seconds{key=\"twice\"} 4.000\n# HELP");
    has(text, "# TYPE rlock_lock_last_end_status gauge\n"
              "rlock_lock_last_end_status{key=\"even\"} 5\n"
              "rlock_lock_last_end_status{key=\"lost\"} 76\n"
              "rlock_lock_last_end_status{key=\"older\"} 0\n"
              "rlock_lock_last_end_status{key=\"rest\"} 3\n"
              "rlock_lock_last_end_status{key=\"slow\"} 5\n"
              "rlock_lock_last_end_status{key=\"taken\"} 76\n"
              "rlock_lock_last_end_status{key=\"twice\"} 0\n# HELP");
    has(text, "rlock_locks 2\n");
    metrics_fini(&metrics);
    outbuf_fini(&out);
}

static void test_labels(void)
{
    static const struct {
        const char *key;
        const char *label;
    } rows[] = {{"job:nightly", "job:nightly"}, {"a\"b", "a\\\"b"},
                {"a\\b", "a\\\\x5cb"},          {"a\nb", "a\\\\x0ab"},
                {"\xff\xc3", "\\\\xff\\\\xc3"}, {"Z\xc3\xbcrich", "Z\xc3\xbcrich"}};
    struct outbuf out = {.text = NULL};
    char sample[100];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int twice = 0; twice < 2; twice++)
            ADD(.key = rows[i].key, .seen = RLOCK_SEEN_EXCLUSIVE, .n_all = 1);
        metrics_write(&metrics, &out);
        snprintf(sample, sizeof sample, "gauge\nrlock_lock_held{key=\"%s\"} 1\n#", rows[i].label);
        has(outbuf_text(&out), sample);
        has(outbuf_text(&out), "rlock_locks 1\n");
        metrics_fini(&metrics);
        outbuf_clear(&out);
    }
    outbuf_fini(&out);
}

TESTS(test_samples, test_ends, test_labels)
