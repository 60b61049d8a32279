/* SPDX-License-Identifier: MIT */
/* test_cmd_progress: the line that is shown while rlock waits, and when there is none. */
#include "output/progress.h"
#include "tap.h"

#include <string.h>
#include <unistd.h>

#define START_MS 1000000
#define HOLDER "backup.sh of root@db1, pid 4711 (label)"

static const struct report report = {
    .level = REPORT_NOTICE, .key = "job:nightly", .start_ms = START_MS};

/* 5 s after a look that came 7 s after the start. */
static const struct {
    int64_t left_ms, place;
    size_t room;
    const char *holder, *wanted;
} lines[] = {
    {23000, 3, 200, HOLDER, "rlock: job:nightly: waiting 12s for " HOLDER ", 18s left, place 3"},
    {23000, 0, 200, HOLDER, "rlock: job:nightly: waiting 12s for " HOLDER ", 18s left"},
    {-1, 1, 200, "x", "rlock: job:nightly: waiting 12s for x, never expires, place 1"},
    {5000, 1, 200, "x", "rlock: job:nightly: waiting 12s for x, 0s left, place 1"},
    {0, 1, 200, "x", "rlock: job:nightly: waiting 12s for x, 0s left, place 1"},
    {5001, 1, 200, "x", "rlock: job:nightly: waiting 12s for x, 1s left, place 1"},
    {3605000, 1, 200, "x", "rlock: job:nightly: waiting 12s for x, 1h00m left, place 1"},
    /* the first byte that has no room */
    {23000, 3, 95, HOLDER, "rlock: job:nightly: waiting 12s for " HOLDER ", 18s left, place 3"},
    {23000, 3, 94, HOLDER,
     "rlock: job:nightly: waiting 12s for backup.sh of root@db1, pid 4711 (la..., 18s left, place "
     "3"},
    {23000, 3, 80, HOLDER,
     "rlock: job:nightly: waiting 12s for backup.sh of root@db1..., 18s left, place 3"},
    {23000, 3, 68, HOLDER, "rlock: job:nightly: waiting 12s for backup.sh..., 18s left, place 3"},
    {23000, 3, 67, HOLDER, "rlock: job:nightly: waiting 12s, 18s left, place 3"},
    {23000, 3, 30, HOLDER, "rlock: job:nigh...: waiting 1"},
    {23000, 3, 1, HOLDER, ""},
};

static void test_lines(void)
{
    char out[PROGRESS_BYTES];
    size_t i;

    for (i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct rlock_obstacle obstacle = {
            .seen_ms = START_MS + 7000, .left_ms = lines[i].left_ms, .place = lines[i].place};

        snprintf(obstacle.holder, sizeof obstacle.holder, "%s", lines[i].holder);
        progress_text(out, lines[i].room, &report, &obstacle, START_MS + 12000);
        is_str(out, lines[i].wanted, "the line");
    }
}

/* Whatever is in it, in however narrow or wide a terminal. */
static void test_any_width(void)
{
    static char key[70000];
    const struct report odd = {.level = REPORT_NOTICE, .key = key, .start_ms = 0};
    struct rlock_obstacle obstacle = {.seen_ms = 0, .left_ms = INT64_MAX / 4, .place = INT64_MAX};
    char out[PROGRESS_BYTES];
    bool is_good = true;
    size_t room;
    size_t i;

    memset(key, '\x1b', sizeof key - 1);
    memset(obstacle.holder, 'h', sizeof obstacle.holder - 1);
    for (room = 1; room <= sizeof out; room++) {
        memset(out, 0x01, sizeof out);
        progress_text(out, room, &odd, &obstacle, INT64_MAX / 8);
        is_good = is_good && memchr(out, '\0', room) != NULL && is_printable(out);
        for (i = room; i < sizeof out; i++)
            is_good = is_good && out[i] == 0x01;
        /* what comes of the longest text is as wide as may be, but for a key that is cut */
        if (is_good && room > 80)
            is_good = strstr(out, ": waiting ") != NULL;
        if (is_good && room > 120)
            is_good = strstr(out, ", place ") != NULL;
    }
    ok(is_good, "printable, within the width, and with what counts");
}

/* What one look, or the end of the wait, makes it write to stderr. */
static void told(char *text, size_t room, struct progress *progress,
                 const struct rlock_obstacle *obstacle)
{
    int before = dup(STDERR_FILENO);
    int ends[2];
    ssize_t n = 0;

    if (pipe(ends) == 0) {
        dup2(ends[1], STDERR_FILENO);
        progress_show(progress, obstacle);
        dup2(before, STDERR_FILENO);
        close(ends[1]);
        n = read(ends[0], text, room - 1);
        close(ends[0]);
    }
    close(before);
    text[n > 0 ? n : 0] = '\0';
}

static bool is_shown(enum report_level level, bool json)
{
    const struct report wanted = {
        .level = level, .json = json, .key = "k", .start_ms = rlock_clock_ms()};
    struct rlock_obstacle obstacle = {
        .holder = "x", .seen_ms = rlock_clock_ms(), .left_ms = 3600000, .place = 2};
    struct progress progress;
    char text[512];

    progress_init(&progress, &wanted);
    told(text, sizeof text, &progress, &obstacle);
    return text[0] != '\0';
}

/* Trouble is told once when it has lasted for a second, and once when it is over. */
static void test_trouble(void)
{
    int64_t now = rlock_clock_ms();
    const struct report quiet = {.level = REPORT_FAILURE, .key = "k", .start_ms = now};
    const struct report usual = {.level = REPORT_NOTICE, .key = "k", .start_ms = now};
    struct rlock_obstacle obstacle = {.holder = "x",
                                      .seen_ms = now,
                                      .left_ms = 3600000,
                                      .place = 2,
                                      .trouble = {RLOCK_E_UNREACHABLE, .text = "h:1: refused"},
                                      .trouble_ms = now};
    struct progress progress;
    char text[512];

    progress_text(text, sizeof text, &usual, &obstacle, now + 5000);
    is_str(text, "rlock: k: waiting 5s, server unreachable since 5s: h:1: refused", "the line");
    progress_text(text, 40, &usual, &obstacle, now + 5000);
    is_str(text, "rlock: k: waiting 5s, server unreach...", "where it is cut");
    progress_init(&progress, &usual);
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "", "what may pass at once isn't told");
    obstacle.trouble_ms = now - 5000;
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "rlock: k: server-unreachable: since 5s: h:1: refused; still trying\n", "else");
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "", "but once");
    obstacle.trouble.status = RLOCK_OK;
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "rlock: k: server-back: after 5s\n", "and its end");
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "", "once");
    obstacle.trouble.status = RLOCK_E_REPLICAS;
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "rlock: k: too-few-replicas: since 5s: h:1: refused; still trying\n", "others");
    progress_init(&progress, &quiet);
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "", "who wants it quiet hears nothing of it");
}

static void test_messages(void)
{
    const struct report steps = {
        .level = REPORT_STEP, .json = true, .key = "k", .start_ms = rlock_clock_ms()};
    struct rlock_obstacle obstacle = {
        .holder = "x", .seen_ms = rlock_clock_ms(), .left_ms = 3600000, .place = 2};
    struct progress progress;
    char text[512];

    progress_init(&progress, &steps);
    told(text, sizeof text, &progress, &obstacle);
    ok(strstr(text, "{\"event\":\"waiting\",\"key\":\"k\",\"why\":\"for x, 1h00m left, place 2\","
                    "\"elapsed_ms\":") == text ||
           strstr(text, "\"why\":\"for x, 59m59s left, place 2\"") != NULL,
       text);
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "", "it isn't said again");
    ok(progress.next_message_at_ms > rlock_clock_ms() + 55000 &&
           progress.next_message_at_ms <= rlock_clock_ms() + 60000,
       "before a minute has passed");
    told(text, sizeof text, &progress, NULL);
    is_str(text, "", "nor at the end");
    progress.next_message_at_ms = rlock_clock_ms();
    told(text, sizeof text, &progress, &obstacle);
    ok(strstr(text, "\"event\":\"waiting\"") != NULL, "but then");
    is_int(progress_every_ms(&progress), 0, "it takes no ticks");
}

int main(void)
{
    int before = dup(STDERR_FILENO);
    int ends[2];

    test_lines();
    test_any_width();
    test_messages();
    test_trouble();
    if (pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0) {
        ok(!is_shown(REPORT_NOTICE, false), "without a terminal there is no line");
        ok(!is_shown(REPORT_NOTICE, true), "as JSON there is none");
        ok(!is_shown(REPORT_FAILURE, false), "nor for who wants it quiet");
        ok(is_shown(REPORT_STEP, false) && is_shown(REPORT_STEP, true), "steps are told");
    }
    dup2(before, STDERR_FILENO);
    return done_testing();
}
