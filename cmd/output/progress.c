/* SPDX-License-Identifier: MIT */
/*
 * progress: who holds the lock that rlock waits for, as a line on the terminal or as messages.
 *
 * The cursor stays at the start of the row, so that what the user types doesn't move it into the
 * next row. A window that became narrower may have moved the end of the older line into rows below,
 * so rlock erases the rest of the screen, too. /dev/tty is opened non-blocking: a terminal that is
 * stopped (^S) or dead must not delay rlock after the grant. When to draw: as OpenSSH's
 * progressmeter.c.
 */
#include "output/progress.h"

#include "base/clock.h"
#include "options/units.h"
#include "output/printable.h"
#include "output/taken.h"
#include "output/terminal.h"
#include "output/wall_time.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TROUBLE_MS 1000 /* a shorter failure of the server, such as a restart, isn't reported */
#define KEY_BYTES 512
#define KEY_PART 3       /* a key is cut to no less than 1/KEY_PART of the line */
#define SHORT_COLUMNS 60 /* on a narrower terminal the line lacks "rlock" and "waiting" */

/* ---- making the texts of the line and of the messages ---- */

/*
 * For each failure of the server (rlock_obstacle.trouble): `what` is the event of the message, and
 * the line on the terminal has `words`. The last row also stands for any other status.
 */
static const struct trouble {
    enum rlock_status status;
    enum event what;
    const char *words;
} troubles[] = {
    {RLOCK_E_UNREACHABLE, .what = EVENT_SERVER_UNREACHABLE, "server unreachable"},
    {RLOCK_E_NO_QUORUM, .what = EVENT_NO_QUORUM, "too few servers"},
    {RLOCK_E_REPLICAS, .what = EVENT_TOO_FEW_REPLICAS, "too few replicas"},
    {RLOCK_E_SERVER, .what = EVENT_SERVER_UNABLE, "server not ready"},
};

static const struct trouble *row_of(enum rlock_status status)
{
    size_t i = 0;

    while (i + 1 < sizeof troubles / sizeof troubles[0] && troubles[i].status != status)
        i++;
    return &troubles[i];
}

bool progress_is_trouble(const struct rlock_obstacle *obstacle, int64_t now_ms)
{
    return obstacle->trouble.status != RLOCK_OK &&
           (obstacle->holder.text[0] == '\0' || now_ms >= obstacle->trouble_ms + TROUBLE_MS);
}

const char *progress_trouble_words(enum rlock_status status)
{
    return row_of(status)->words;
}

/* Write for how long rlock still tries, rounded up to whole seconds. */
static void put_time_left(char time[UNITS_TEXT_BYTES], const struct rlock_obstacle *obstacle,
                          int64_t now_ms)
{
    units_text(time, obstacle->gives_up_ms - now_ms + 999);
}

/* Write what fails, for how long and why: "server unreachable for 5s: WHY". */
static void describe_trouble(char out[PROGRESS_WHY_BYTES], const struct rlock_obstacle *obstacle,
                             int64_t now_ms)
{
    bool has_limit = obstacle->gives_up_ms != 0; /* no server has answered yet */
    char time[UNITS_TEXT_BYTES];

    if (has_limit)
        put_time_left(time, obstacle, now_ms);
    else
        units_text(time, now_ms - obstacle->trouble_ms);
    snprintf(out, PROGRESS_WHY_BYTES, "%s%s for %s: %s", row_of(obstacle->trouble.status)->words,
             has_limit ? ", trying" : "", time, obstacle->trouble.text);
}

void progress_why(char out[PROGRESS_WHY_BYTES], const struct rlock_obstacle *obstacle,
                  int64_t now_ms)
{
    struct taken taken = taken_of_obstacle(obstacle, now_ms);

    if (progress_is_trouble(obstacle, now_ms))
        describe_trouble(out, obstacle, now_ms);
    else if (obstacle->holder.text[0] == '\0')
        snprintf(out, PROGRESS_WHY_BYTES, "not granted in time");
    else
        taken_text(out, &taken);
}

/* ---- fitting the line to the terminal ---- */

/* Write "place 3, 18s left, for tar of backup@web1, pid 4711 (nightly)". */
static void describe_holder(char *out, size_t room, const struct rlock_obstacle *obstacle,
                            int64_t now_ms)
{
    struct taken taken = taken_of_obstacle(obstacle, now_ms);
    size_t n = 0;

    if (obstacle->place > 0)
        n = (size_t)snprintf(out, room, "place %lld, ", (long long)obstacle->place);
    taken_row(out + n, room - n, &taken);
}

/*
 * Write the part of the line after the key. Until a server has answered, the line tells for how
 * long rlock still tries, not for how long it has waited.
 */
static void describe_wait(char out[PROGRESS_BYTES], const struct report *report,
                          const struct rlock_obstacle *obstacle, bool is_short, int64_t now_ms)
{
    bool is_failing = obstacle->trouble.status != RLOCK_OK;
    char trouble[PROGRESS_WHY_BYTES];
    char begin[UNITS_TEXT_BYTES + 16] = "";
    char waited[UNITS_TEXT_BYTES];
    size_t n;

    units_text(waited, now_ms - report->start_ms);
    if (!is_failing || obstacle->gives_up_ms == 0)
        snprintf(begin, sizeof begin, "%s%s, ", is_short ? "" : "waiting ", waited);
    n = (size_t)snprintf(out, PROGRESS_BYTES, ": %s", begin);
    if (!is_failing) {
        describe_holder(out + n, PROGRESS_BYTES - n, obstacle, now_ms);
        return;
    }
    describe_trouble(trouble, obstacle, now_ms);
    printable_text(out + n, PROGRESS_BYTES - n, trouble);
}

void progress_text(char *out, size_t room, size_t columns, const struct report *report,
                   const struct rlock_obstacle *obstacle, int64_t now_ms)
{
    bool is_short = columns < SHORT_COLUMNS;
    const char *name = is_short ? "" : "rlock: ";
    char wait[PROGRESS_BYTES];
    char key[KEY_BYTES];
    size_t key_columns;
    size_t others;

    describe_wait(wait, report, obstacle, is_short, now_ms);
    others = strlen(name) + printable_columns(wait);
    printable_key(key, sizeof key, report->key);
    key_columns = columns > others ? columns - others : 0;
    printable_fit(key, key_columns > columns / KEY_PART ? key_columns : columns / KEY_PART);
    snprintf(out, room, "%s%s%s", name, key, wait);
    printable_fit(out, columns);
}

/* ---- drawing the line ---- */

static bool wants_line(const struct report *report)
{
    return report->level == REPORT_NOTICE && !report->json && isatty(STDERR_FILENO);
}

/*
 * Is this process in the terminal's foreground? A background job must not draw over the output of
 * the foreground job.
 */
static bool is_foreground(void)
{
    return tcgetpgrp(STDERR_FILENO) == getpgrp();
}

/*
 * Returns how many columns the line may take. The last column of the terminal stays empty, because
 * some terminals move the cursor to the next row after a character in the last column.
 */
static size_t columns_of(int terminal)
{
    size_t columns = terminal_width(terminal);

    return columns <= PROGRESS_COLUMNS_MAX ? columns - 1 : PROGRESS_COLUMNS_MAX;
}

/* Write the text over the row, and erase what was there. The cursor returns to the row's start. */
static void put(const struct progress *progress, const char *text, size_t columns)
{
    char bytes[PROGRESS_BYTES + PROGRESS_COLUMNS_MAX + 32];
    size_t taken = printable_columns(text);
    size_t blanks = columns > taken ? columns - taken : 0;
    int n;

    if (terminal_knows_escapes())
        n = snprintf(bytes, sizeof bytes, "\r" TERMINAL_NO_WRAP "%s" TERMINAL_END "\r", text);
    else
        n = snprintf(bytes, sizeof bytes, "\r%s%*s\r", text, (int)blanks, "");
    (void)!write(progress->terminal, bytes, (size_t)n); /* what ^S holds back is lost */
}

/* Draw also a text that has not changed: a window of another width may show only a part of it. */
static void draw(const struct progress *progress, const struct rlock_obstacle *obstacle)
{
    size_t columns = columns_of(progress->terminal);
    char text[PROGRESS_BYTES];

    progress_text(text, sizeof text, columns, progress->report, obstacle, rlock_clock_ms());
    put(progress, text, columns);
}

/* Clear the whole row, as the terminal may have echoed a key such as ^C after the drawn text. */
static void clear(struct progress *progress)
{
    if (progress->terminal < 0)
        return;
    put(progress, "", columns_of(progress->terminal));
    close(progress->terminal);
    progress->terminal = -1;
}

/*
 * Returns how long a failure of the server has to last before a message reports the failure:
 * - After a server has answered for the first time (`gives_up_ms` is 0): TROUBLE_MS.
 * - Before, with --verbose: 0.
 * - Before, else: TROUBLE_MS or --connect-timeout, whichever is longer, as the server may just be
 *   slow, and if rlock gives up, rlock's last message says why.
 */
static int64_t quiet_ms(const struct progress *progress, const struct rlock_obstacle *obstacle)
{
    if (obstacle->gives_up_ms == 0)
        return TROUBLE_MS;
    return progress->report->level == REPORT_STEP ? 0
                                                  : clock_later(progress->connect_ms, TROUBLE_MS);
}

static void say_server_back(const struct progress *progress, int64_t trouble_ms)
{
    char took[UNITS_TEXT_BYTES];
    char why[UNITS_TEXT_BYTES + 8];

    units_text(took, trouble_ms);
    snprintf(why, sizeof why, "after %s", took);
    report_say(progress->report, REPORT_NOTICE,
               (struct message){.what = EVENT_SERVER_BACK,
                                .why = why,
                                .facts = {fact_number("trouble_ms", trouble_ms)}});
}

static void say_trouble(const struct progress *progress, const struct rlock_obstacle *obstacle,
                        int64_t now_ms)
{
    char why[sizeof obstacle->trouble.text + 64];
    char hint[UNITS_TEXT_BYTES + 16] = "still trying";
    char time[UNITS_TEXT_BYTES];

    units_text(time, now_ms - obstacle->trouble_ms);
    if (now_ms < obstacle->trouble_ms + TROUBLE_MS)
        snprintf(why, sizeof why, "%s", obstacle->trouble.text);
    else
        snprintf(why, sizeof why, "for %s: %s", time, obstacle->trouble.text);
    if (obstacle->gives_up_ms != 0) {
        put_time_left(time, obstacle, now_ms);
        snprintf(hint, sizeof hint, "trying for %s", time);
    }
    report_say(progress->report, REPORT_NOTICE,
               (struct message){
                   .what = row_of(obstacle->trouble.status)->what,
                   .why = why,
                   .hint = hint,
                   .facts = {fact_time("trouble_since", wall_time_of(obstacle->trouble_ms))}});
}

/*
 * Report a failure of the server once, when it has lasted for quiet_ms(), and then its end. A
 * failure at which rlock gives up is not reported here: rlock's last message reports it.
 */
static void report_trouble(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    int64_t now_ms = rlock_clock_ms();
    bool is_reported = progress->trouble_since_ms != 0;

    if (obstacle == NULL)
        return;
    if (is_reported && obstacle->trouble.status == RLOCK_OK) {
        clear(progress);
        say_server_back(progress, now_ms - progress->trouble_since_ms);
        progress->trouble_since_ms = 0;
    } else if (!is_reported && obstacle->trouble.status != RLOCK_OK &&
               (obstacle->gives_up_ms == 0 || now_ms < obstacle->gives_up_ms) &&
               now_ms >= obstacle->trouble_ms + quiet_ms(progress, obstacle)) {
        clear(progress);
        say_trouble(progress, obstacle, now_ms);
        progress->trouble_since_ms = obstacle->trouble_ms;
    }
}

/* False if neither a failure nor a holder is known, as when a server has just granted the lock. */
static bool is_known(const struct rlock_obstacle *obstacle)
{
    return obstacle->trouble.status != RLOCK_OK || obstacle->holder.text[0] != '\0';
}

/*
 * Draw the line; or clear it, when the wait is over or rlock is in the background. /dev/tty is the
 * terminal on stderr here, because rlock is in the foreground of that terminal.
 */
static void show_line(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    if (obstacle == NULL || !is_foreground() || !is_known(obstacle)) {
        clear(progress);
        report_trouble(progress, obstacle);
        return;
    }
    report_trouble(progress, obstacle);
    if (progress->terminal < 0)
        progress->terminal = open("/dev/tty", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (progress->terminal >= 0)
        draw(progress, obstacle);
}

/* ---- writing messages, where there is no line ---- */

/* Write how long rlock has waited (if 1 s or more), its place in the queue, and then `words`. */
static void describe_progress(char *out, size_t room, const struct rlock_obstacle *obstacle,
                              int64_t waited_ms, const char *words)
{
    char waited[UNITS_TEXT_BYTES];
    char time[UNITS_TEXT_BYTES + 8] = "";
    char place[40] = "";
    bool has_time = waited_ms >= 1000;
    bool has_place = obstacle->place > 0;

    units_text(waited, waited_ms);
    if (has_time)
        snprintf(time, sizeof time, "for %s", waited);
    if (has_place)
        snprintf(place, sizeof place, "place %lld", (long long)obstacle->place);
    snprintf(out, room, "%s%s%s%s%s", time, has_time && has_place ? ", " : "", place,
             has_time || has_place ? ": " : "", words);
}

/*
 * The times from the start of rlock to the first message about the wait, and from one message to
 * the next. Without -v a log has no message about a wait of less than 10 s, and six an hour about a
 * long one.
 */
static const struct {
    int64_t first_ms;
    int64_t every_ms;
} pace_of[] = {[REPORT_NOTICE] = {10000, 600000}, [REPORT_STEP] = {0, 60000}};

/* Say for how long rlock waits, and who holds the lock or what trouble the servers have. */
static void say_waiting(const struct progress *progress, enum report_level level, enum event what,
                        const struct rlock_obstacle *obstacle)
{
    struct message message = {.what = what};
    int64_t now_ms = rlock_clock_ms();
    int64_t waited_ms = now_ms - progress->report->start_ms;
    char words[PROGRESS_WHY_BYTES];
    char why[sizeof words + 100];
    struct taken taken = taken_of_obstacle(obstacle, now_ms);

    progress_why(words, obstacle, now_ms);
    describe_progress(why, sizeof why, obstacle, waited_ms, words);
    message.why = why;
    message_add(&message, fact_number("waited_ms", waited_ms));
    if (obstacle->place > 0)
        message_add(&message, fact_number("place", obstacle->place));
    taken_add_facts(&message, &taken);
    report_say(progress->report, level, message);
}

static void show_message(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    enum report_level level = progress->report->level;
    int64_t now_ms = rlock_clock_ms();

    report_trouble(progress, obstacle);
    if (obstacle == NULL || now_ms < progress->next_message_at_ms ||
        obstacle->trouble.status != RLOCK_OK || !is_known(obstacle))
        return;
    say_waiting(progress, level, EVENT_WAITING, obstacle);
    progress->next_message_at_ms = now_ms + pace_of[level].every_ms;
    progress->has_told = true;
}

/* Warn once when rlock has waited for --warn-wait, also if a line on the terminal is drawn. */
static void warn_of_long_wait(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    int64_t waited_ms = rlock_clock_ms() - progress->report->start_ms;

    if (progress->warn_wait_ms == 0 || progress->has_warned || waited_ms < progress->warn_wait_ms ||
        !is_known(obstacle))
        return;
    clear(progress);
    say_waiting(progress, REPORT_NOTICE, EVENT_WAITING_LONG, obstacle);
    progress->has_warned = true;
    if (progress->report->level != REPORT_FAILURE)
        progress->has_told = true;
}

void progress_say_granted(const struct progress *progress, int64_t granted_ms, uint64_t fence)
{
    int64_t waited_ms = granted_ms - progress->report->start_ms;
    char why[UNITS_TEXT_BYTES + 8];
    char waited[UNITS_TEXT_BYTES];

    units_text(waited, waited_ms);
    snprintf(why, sizeof why, "after %s", waited);
    report_say(progress->report, progress->has_told ? progress->report->level : REPORT_STEP,
               (struct message){.what = EVENT_GRANTED,
                                .why = progress->has_told ? why : NULL,
                                .facts = {fact_number("waited_ms", waited_ms),
                                          fact_number("fence", (int64_t)fence)}});
}

/* ---- showing the line or a message, or a warning ---- */

void progress_init(struct progress *progress, const struct report *report, int64_t connect_ms,
                   int64_t warn_wait_ms)
{
    *progress = (struct progress){.report = report,
                                  .draws_line = wants_line(report),
                                  .connect_ms = connect_ms,
                                  .warn_wait_ms = warn_wait_ms,
                                  .terminal = -1,
                                  .next_message_at_ms = RLOCK_NEVER};
    if (report->level != REPORT_FAILURE)
        progress->next_message_at_ms = report->start_ms + pace_of[report->level].first_ms;
}

void progress_show(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    if (obstacle != NULL)
        warn_of_long_wait(progress, obstacle);
    if (progress->draws_line)
        show_line(progress, obstacle);
    else
        show_message(progress, obstacle);
}

void progress_warn(struct progress *progress, const char *text)
{
    clear(progress);
    report_event(progress->report, REPORT_NOTICE, EVENT_WARNING, text, NULL);
}
