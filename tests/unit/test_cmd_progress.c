/* SPDX-License-Identifier: MIT */
/* test_cmd_progress: the line and the messages that are shown while rlock waits. */
#include "output/progress.h"
#include "tap.h"

#include <string.h>
#include <unistd.h>

#define START_MS 1000000
#define HOLDER "backup.sh of root@db1, pid 4711 (label)"

static const struct report report = {
    .level = REPORT_NOTICE, .key = "job:nightly", .start_ms = START_MS};

/* The line that is shown 12 s after the start. The last reply came 7 s after the start. */
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
    /* the terminal is too narrow for the whole line, by one column, then by more */
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
        is_str(out, lines[i].wanted, "the line has the text of the table");
    }
}

/* Try every width of the terminal with the longest key, holder and numbers. */
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
        /* a line of more than 80 columns has the time, one of more than 120 also the place */
        if (is_good && room > 80)
            is_good = strstr(out, ": waiting ") != NULL;
        if (is_good && room > 120)
            is_good = strstr(out, ", place ") != NULL;
    }
    ok(is_good, "the line is printable, fits, and has the time and place");
}

/* Put what progress_show() writes to stderr into `text`. */
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

/* rlock reports trouble once when it has lasted for a second, and once when it is over. */
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
    is_str(text, "rlock: k: waiting 5s, server unreachable since 5s: h:1: refused",
           "the line names the trouble");
    progress_text(text, 40, &usual, &obstacle, now + 5000);
    is_str(text, "rlock: k: waiting 5s, server unreach...", "a narrow line is cut at its end");
    progress_init(&progress, &usual);
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "", "trouble of less than a second isn't reported");
    obstacle.trouble_ms = now - 5000;
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "rlock: k: server-unreachable: since 5s: h:1: refused; still trying\n",
           "trouble of 5 s is reported");
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "", "the same trouble is not reported again");
    obstacle.trouble.status = RLOCK_OK;
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "rlock: k: server-back: after 5s\n", "the end of the trouble is reported");
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "", "the end is not reported again");
    obstacle.trouble.status = RLOCK_E_REPLICAS;
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "rlock: k: too-few-replicas: since 5s: h:1: refused; still trying\n",
           "trouble of another kind has another event");
    progress_init(&progress, &quiet);
    told(text, sizeof text, &progress, &obstacle);
    is_str(text, "", "with --quiet trouble is not reported");
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
    is_str(text, "", "the message is not repeated at once");
    ok(progress.next_message_at_ms > rlock_clock_ms() + 55000 &&
           progress.next_message_at_ms <= rlock_clock_ms() + 60000,
       "the next message is due in a minute");
    told(text, sizeof text, &progress, NULL);
    is_str(text, "", "the end of the wait writes no message");
    progress.next_message_at_ms = rlock_clock_ms();
    told(text, sizeof text, &progress, &obstacle);
    ok(strstr(text, "\"event\":\"waiting\"") != NULL, "after a minute the message is repeated");
    is_int(progress_every_ms(&progress), 0, "messages need no call each second");
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
        ok(!is_shown(REPORT_NOTICE, false), "without a terminal nothing is shown");
        ok(!is_shown(REPORT_NOTICE, true), "with --json nothing is shown");
        ok(!is_shown(REPORT_FAILURE, false), "with --quiet nothing is shown");
        ok(is_shown(REPORT_STEP, false) && is_shown(REPORT_STEP, true),
           "with --verbose a message is written");
    }
    dup2(before, STDERR_FILENO);
    return done_testing();
}
