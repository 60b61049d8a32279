/* SPDX-License-Identifier: MIT */
/* test_cmd_progress: the line and the messages that are shown while rlock waits. */
#include "output/printable.h"
#include "output/progress.h"
#include "stderr.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_MS 1000000
static const struct report report = {
    .level = REPORT_NOTICE, .key = "job:nightly", .start_ms = START_MS};

#define BACKUP                                            \
    {                                                     \
        .text = "backup.sh of root@db1, pid 4711 (label)" \
    }

/* The line that is shown 12 s after the start. The last reply came 7 s after the start. */
static const struct {
    int64_t left_ms, place;
    size_t columns;
    struct rlock_party holder;
    const char *wanted;
} lines[] = {
    {23000, 0, 199, BACKUP,
     "rlock: job:nightly: waiting 12s, 18s left, for backup.sh of root@db1, pid 4711 (label)"},
    {-1, 1, 199, {.text = "x"}, "rlock: job:nightly: waiting 12s, place 1, never expires, for x"},
    {5000, 1, 199, {.text = "x"}, "rlock: job:nightly: waiting 12s, place 1, 0s left, for x"},
    {0, 1, 199, {.text = "x"}, "rlock: job:nightly: waiting 12s, place 1, 0s left, for x"},
    {5001, 1, 199, {.text = "x"}, "rlock: job:nightly: waiting 12s, place 1, 1s left, for x"},
    {3605000, 1, 199, {.text = "x"}, "rlock: job:nightly: waiting 12s, place 1, 1h00m left, for x"},
    {23000, 3, 199, {.text = ""}, "rlock: job:nightly: waiting 12s, place 3, 18s left"},
    {-1,
     1,
     199,
     {.text = "ann on build1", .hold_ms = 90000, .hold_left_ms = 65000},
     "rlock: job:nightly: waiting 12s, place 1, 1m00s left, for ann on build1"},
    {23000, 3, 96, BACKUP,
     "rlock: job:nightly: waiting 12s, place 3, 18s left, for backup.sh of root@db1, pid 4711 "
     "(label)"},
    {23000, 3, 93, BACKUP,
     "rlock: job:nightly: waiting 12s, place 3, 18s left, for backup.sh of root@db1, pid 4711 "
     "(l..."},
    {23000, 3, 60, BACKUP, "rlock: job:nightly: waiting 12s, place 3, 18s left, for b..."},
    {23000, 3, 59, BACKUP, "job:nightly: 12s, place 3, 18s left, for backup.sh of ro..."},
    {23000, 3, 30, BACKUP, "job:nig...: 12s, place 3, 1..."},
    {23000, 3, 20, BACKUP, "job...: 12s, plac..."},
    {23000, 3, 0, BACKUP, ""},
};

static void test_lines(void)
{
    char out[PROGRESS_BYTES];

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct rlock_obstacle obstacle = {.seen_ms = START_MS + 7000,
                                          .left_ms = lines[i].left_ms,
                                          .place = lines[i].place,
                                          .holder = lines[i].holder};

        progress_text(out, sizeof out, lines[i].columns, &report, &obstacle, START_MS + 12000);
        is_str(out, lines[i].wanted, "the line has the text of the table");
    }
}

/* A lock may stay taken although nobody holds it: then the line must name no holder. */
static void test_unheld(void)
{
    static const struct {
        enum rlock_seen seen;
        const char *wanted;
    } states[] = {{RLOCK_SEEN_KEPT, "the next in the queue"},
                  {RLOCK_SEEN_REST, "the end of --min-hold"},
                  {RLOCK_SEEN_DONE, "the end of the --once mark"}};
    char wanted[100];
    char out[PROGRESS_BYTES];

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct rlock_obstacle obstacle = {.seen = states[i].seen,
                                          .seen_ms = START_MS + 7000,
                                          .left_ms = 23000,
                                          .place = 3,
                                          .holder = BACKUP};

        snprintf(wanted, sizeof wanted,
                 "rlock: job:nightly: waiting 12s, place 3, 18s left, for %s", states[i].wanted);
        progress_text(out, sizeof out, 100, &report, &obstacle, START_MS + 12000);
        is_str(out, wanted, "the line says what the lock waits for, and names no holder");
    }
}

/* True if the line has the text, or the terminal has fewer than about `first` columns. */
static bool has_from(size_t columns, size_t first, const char *line, const char *text)
{
    return columns + 1 < first || strstr(line, text) != NULL;
}

/* Whatever characters the key has, a line of 29 columns has time and place, one of 19 the key. */
static void test_any_width(void)
{
    static const char *const keys[] = {
        "k",
        "job:nightly",
        "job:nightly:of:a:department:with:a:very:long:name:and:more:and:more",
        "\xe6\x97\xa5\xe6\x9c\xac:\xe6\x97\xa5\xe6\x9c\xac:\xe6\x97\xa5\xe6\x9c\xac:\xe6\x97\xa5",
        "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81:e\xcc\x81",
        "tab\tnew\nline\x1b[2J\xff"};
    struct rlock_obstacle obstacle = {.left_ms = 23000, .place = 12, .holder = BACKUP};
    char out[PROGRESS_BYTES];

    setenv("LC_ALL", "C.UTF-8", 1);
    printable_read_locale();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct report long_wait = {.level = REPORT_NOTICE, .key = keys[i], .start_ms = 0};
        bool is_good = true;

        for (size_t columns = 0; columns <= PROGRESS_COLUMNS_MAX; columns++) {
            progress_text(out, sizeof out, columns, &long_wait, &obstacle, 4350000);
            is_good = is_good && printable_columns(out) <= columns &&
                      strpbrk(out, "\t\n\x1b\xff") == NULL;
            is_good = is_good && has_from(columns, 30, out, "1h12m") &&
                      has_from(columns, 30, out, ", place 12") &&
                      has_from(columns, 20, out, (char[]){keys[i][0], '\0'});
        }
        okf(is_good,
            "the line fits each width, and has time, place and key as soon as they fit: %s",
            keys[i]);
    }
    setenv("LC_ALL", "C", 1);
    printable_read_locale();
}

/* With the longest key, holder and numbers progress_text() writes no byte beyond its buffer. */
static void test_any_room(void)
{
    static char key[2 * PROGRESS_BYTES];
    const struct report odd = {.level = REPORT_NOTICE, .key = key, .start_ms = 0};
    struct rlock_obstacle obstacle = {.seen_ms = 0, .left_ms = INT64_MAX / 4, .place = INT64_MAX};
    char out[PROGRESS_BYTES];
    bool is_good = true;

    memset(key, '\x1b', sizeof key - 1);
    memset(obstacle.holder.text, '\xff', sizeof obstacle.holder.text - 1);
    for (size_t room = 1; room <= sizeof out; room++) {
        memset(out, 0x01, sizeof out);
        progress_text(out, room, room, &odd, &obstacle, INT64_MAX / 8);
        is_good = is_good && memchr(out, '\0', room) != NULL && is_printable(out);
        for (size_t i = room; i < sizeof out; i++)
            is_good = is_good && out[i] == 0x01;
    }
    ok(is_good, "the line is printable, and stays within its buffer");
}

static struct progress progress;

static void begins(const char *text, const char *wanted)
{
    okf(strncmp(text, wanted, strlen(wanted)) == 0, "\"%s\" begins with \"%s\"", text, wanted);
}

/* Returns what progress_show() writes to stderr. */
static const char *shown(const struct rlock_obstacle *obstacle)
{
    stderr_catch();
    progress_show(&progress, obstacle);
    return stderr_caught();
}

static const char *shown_granted(void)
{
    stderr_catch();
    progress_say_granted(&progress, rlock_clock_ms(), 7);
    return stderr_caught();
}

/* A report that has waited so long. */
static struct report waited(enum report_level level, int64_t ms)
{
    return (struct report){.level = level, .key = "k", .start_ms = rlock_clock_ms() - ms};
}

static struct rlock_obstacle held(void)
{
    return (struct rlock_obstacle){.seen = RLOCK_SEEN_EXCLUSIVE,
                                   .holder = {.text = "x",
                                              .host = "h",
                                              .since_ms = 1000,
                                              .for_ms = 221000,
                                              .renewed_ms = 4000,
                                              .slot = -1},
                                   .seen_ms = rlock_clock_ms(),
                                   .left_ms = 26000,
                                   .place = 2};
}

/* rlock reports trouble once when it has lasted for a second, and once when it is over. */
static void test_trouble(void)
{
    const struct report usual = waited(REPORT_NOTICE, 0);
    const struct report quiet = waited(REPORT_FAILURE, 0);
    struct rlock_obstacle obstacle = held();
    char text[512];

    obstacle.trouble = (struct rlock_error){RLOCK_E_UNREACHABLE, .text = "h:1: refused"};
    obstacle.trouble_ms = usual.start_ms;
    progress_text(text, sizeof text, 100, &usual, &obstacle, usual.start_ms + 5000);
    is_str(text, "rlock: k: waiting 5s, server unreachable for 5s: h:1: refused");
    progress_text(text, sizeof text, 29, &usual, &obstacle, usual.start_ms + 5000);
    is_str(text, "k: 5s, server unreachable ...", "a narrow line is cut at its end");
    progress_init(&progress, &usual, 5000, 0);
    is_str(shown(&obstacle), "", "trouble of less than a second isn't reported");
    obstacle.trouble_ms -= 5000;
    is_str(shown(&obstacle), "rlock: k: server-unreachable: for 5s: h:1: refused; still trying\n");
    is_str(shown(&obstacle), "", "the same trouble is not reported again");
    obstacle.trouble.status = RLOCK_OK;
    is_str(shown(&obstacle), "rlock: k: server-back: after 5s\n");
    is_str(shown(&obstacle), "", "the end is not reported again");
    obstacle.trouble.status = RLOCK_E_REPLICAS;
    is_str(shown(&obstacle), "rlock: k: too-few-replicas: for 5s: h:1: refused; still trying\n");
    progress_init(&progress, &quiet, 5000, 0);
    is_str(shown(&obstacle), "", "with --quiet trouble is not reported");
}

/* With --warn-wait rlock warns once, when it has waited as long as the option says. */
static void test_long_wait(void)
{
    const struct report usual = waited(REPORT_NOTICE, 5000);
    const struct report quiet = waited(REPORT_FAILURE, 5000);
    struct rlock_obstacle obstacle = held();

    progress_init(&progress, &usual, 5000, 6000000);
    is_str(shown(&obstacle), "", "a wait shorter than --warn-wait isn't reported");
    progress_init(&progress, &usual, 5000, 5000);
    begins(shown(&obstacle), "rlock: k: waiting-long: for 5s, place 2: held for 3m41s by x");
    is_str(shown(&obstacle), "", "the same wait is not reported again");
    progress_init(&progress, &usual, 5000, 5000);
    obstacle.trouble = (struct rlock_error){RLOCK_E_UNREACHABLE, .text = "h:1: refused"};
    obstacle.trouble_ms = rlock_clock_ms() - 1000;
    begins(shown(&obstacle), "rlock: k: waiting-long: for 5s, place 2: server unreachable for 1s: "
                             "h:1: ref");
    progress_init(&progress, &quiet, 5000, 5000);
    is_str(shown(&obstacle), "", "with --quiet a long wait is not reported");
    ok(!progress.has_told, "with --quiet the grant is not reported either");
}

/* Trouble of less than a second doesn't hide a holder, nor does trouble at the end of a wait. */
static void test_trouble_begins(void)
{
    const struct report usual = waited(REPORT_NOTICE, 5000);
    struct rlock_obstacle obstacle = held();

    obstacle.trouble = (struct rlock_error){RLOCK_E_UNREACHABLE, .text = "h:1: no answer in time"};
    obstacle.trouble_ms = usual.start_ms;
    ok(!progress_is_trouble(&obstacle, usual.start_ms + 999), "a holder is in the way");
    ok(progress_is_trouble(&obstacle, usual.start_ms + 1000), "the server is in the way");
    obstacle.gives_up_ms = rlock_clock_ms();
    progress_init(&progress, &usual, 5000, 0);
    is_str(shown(&obstacle), "", "trouble isn't reported when the wait is over");
    obstacle.holder.text[0] = '\0';
    ok(progress_is_trouble(&obstacle, usual.start_ms + 1), "no holder is in the way");
}

/* Shows a wait again at once, and when the next message is due, in `period_ms`. */
static const char *shown_again(const struct rlock_obstacle *obstacle, int64_t period_ms)
{
    is_str(shown(obstacle), "", "the message is not repeated at once");
    ok(progress.next_message_at_ms > rlock_clock_ms() + period_ms - 5000 &&
       progress.next_message_at_ms <= rlock_clock_ms() + period_ms);
    is_str(shown(NULL), "", "the end of the wait writes no message");
    progress.next_message_at_ms = rlock_clock_ms();
    return shown(obstacle);
}

/* With -v rlock tells who holds the lock when the wait begins, and then each minute. */
static void test_steps(void)
{
    struct report steps = waited(REPORT_STEP, 0);
    struct rlock_obstacle obstacle = held();
    const char *text;

    progress_init(&progress, &steps, 5000, 0);
    ok(shown(&obstacle)[0] != '\0', "with -v rlock tells at once that it waits");
    steps.json = true;
    progress_init(&progress, &steps, 5000, 0);
    text = shown(&obstacle);
    begins(text, "{\"event\":\"waiting\",");
    ok(strstr(text, "\"why\":\"place 2: held for 3m41s by x; renewed 4s ago") != NULL, text);
    ok(strstr(text, "\"place\":2,\"mode\":\"exclusive\",\"holder\":{\"host\":\"h\",") != NULL,
       text);
    begins(shown_again(&obstacle, 60000), "{\"event\":\"waiting\",");
}

/* Without a terminal rlock reports a wait after 10 s, and then every 10 minutes; -q silences it. */
static void test_log(void)
{
    static const struct {
        enum report_level level;
        int64_t waited_ms;
        bool json;
        const char *wanted;
    } jobs[] = {{REPORT_NOTICE, 9000, false, ""},
                {REPORT_NOTICE, 0, true, ""},
                {REPORT_NOTICE, 10500, false,
                 "rlock: k: waiting: for 10s, place 2: held for 3m41s by x; renewed 4s ago\n"},
                {REPORT_FAILURE, 10500, false, ""}};
    struct report job;
    struct rlock_obstacle obstacle = held();

    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        job = waited(jobs[i].level, jobs[i].waited_ms);
        job.json = jobs[i].json;
        progress_init(&progress, &job, 5000, 0);
        is_str(shown(&obstacle), jobs[i].wanted);
    }
    job = waited(REPORT_NOTICE, 1872000);
    progress_init(&progress, &job, 5000, 0);
    is_str(shown_granted(), "", "a job that hasn't said that it waits doesn't say that it got it");
    ok(shown(&obstacle)[0] != '\0', "a job says that it waits");
    begins(shown_again(&obstacle, 600000), "rlock: k: waiting: for 31m12s, place 2: ");
    is_str(shown_granted(), "rlock: k: granted: after 31m12s\n");
}

TESTS(test_lines, test_unheld, test_any_width, test_any_room, test_steps, test_trouble,
      test_long_wait, test_trouble_begins, test_log)
