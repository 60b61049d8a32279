/* SPDX-License-Identifier: MIT */
/*
 * progress: who holds the lock that rlock waits for, as a line on the terminal or as messages.
 *
 * How the line is drawn: only with carriage returns and blanks, which every terminal knows. The
 * cursor stays at the start of the line, so that characters that the user types don't move it into
 * the next row. rlock writes the line to /dev/tty, which it opens non-blocking: a terminal that the
 * user has stopped (^S), or whose connection is dead, must not delay rlock when it is granted the
 * lock. rlock clears the line before it writes a message. Source of the rules for when to draw:
 * OpenSSH's progressmeter.c.
 */
#include "output/progress.h"

#include "base/err.h"
#include "options/units.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW_EVERY_MS 1000
#define MESSAGE_EVERY_MS 60000
#define COLUMNS_UNKNOWN 80
#define TROUBLE_MS 1000 /* a failure of the server that is shorter isn't reported: a restart, say */
#define KEY_PART 3      /* a key that doesn't fit is cut to 1/KEY_PART of the line */
#define KEY_BYTES_MIN 16
#define KEY_BYTES_MAX 256
#define HOLDER_BYTES_MIN 12 /* with less room than this, the line doesn't name the holder */

/* ---- the texts of the line and of the messages ---- */

/* Write how long the lease still lasts, and rlock's place in the queue: ", 18s left, place 3". */
static void describe_rest(char *out, size_t room, const struct rlock_obstacle *obstacle,
                          int64_t now_ms)
{
    int64_t left_ms = obstacle->left_ms - (now_ms - obstacle->seen_ms);
    char left[UNITS_TEXT_BYTES];
    char place[32] = "";

    units_text(left, left_ms + 999);
    if (obstacle->place > 0)
        snprintf(place, sizeof place, ", place %lld", (long long)obstacle->place);
    if (obstacle->left_ms < 0)
        snprintf(out, room, ", never expires%s", place);
    else
        snprintf(out, room, ", %s left%s", left, place);
}

/*
 * How a failure of the server (`trouble` in struct rlock_obstacle) is named: `what` is the event of
 * its message, `words` stand in the line on the terminal. The last row is also for all statuses
 * that have no row.
 */
static const struct trouble {
    enum rlock_status status;
    const char *what;
    const char *words;
} troubles[] = {
    {RLOCK_E_UNREACHABLE, .what = "server-unreachable", "server unreachable"},
    {RLOCK_E_NO_QUORUM, .what = "no-quorum", "too few servers"},
    {RLOCK_E_REPLICAS, .what = "too-few-replicas", "too few replicas"},
    {RLOCK_E_SERVER, .what = "server-unable", "server can't serve"},
};

static const struct trouble *row_of(const struct rlock_obstacle *obstacle)
{
    size_t i = 0;

    while (i + 1 < sizeof troubles / sizeof troubles[0] &&
           troubles[i].status != obstacle->trouble.status)
        i++;
    return &troubles[i];
}

static void describe_trouble(char *out, size_t room, const struct rlock_obstacle *obstacle,
                             int64_t now_ms)
{
    char since[UNITS_TEXT_BYTES];

    units_text(since, now_ms - obstacle->trouble_ms);
    snprintf(out, room, "since %s: %s", since, obstacle->trouble.text);
}

void progress_trouble(char *out, size_t room, const struct rlock_obstacle *obstacle, int64_t now_ms)
{
    char since[sizeof obstacle->trouble.text + 64];

    describe_trouble(since, sizeof since, obstacle, now_ms);
    snprintf(out, room, "%s %s", row_of(obstacle)->words, since);
}

static size_t clamp(size_t n, size_t least, size_t most)
{
    if (n < least)
        return least;
    return n < most ? n : most;
}

/* Write the line for an obstacle with `trouble`. If the line doesn't fit, cut its end. */
static void trouble_text(char *out, size_t room, const struct report *report,
                         const struct rlock_obstacle *obstacle, int64_t now_ms)
{
    char trouble[sizeof obstacle->trouble.text + 96];
    char line[PROGRESS_BYTES + KEY_BYTES_MAX];
    char key[KEY_BYTES_MAX] = "";
    char waited[UNITS_TEXT_BYTES];

    err_escape(key, clamp(room / KEY_PART, KEY_BYTES_MIN, sizeof key), report->key);
    units_text(waited, now_ms - report->start_ms);
    progress_trouble(trouble, sizeof trouble, obstacle, now_ms);
    snprintf(line, sizeof line, "rlock: %s: waiting %s, %s", key, waited, trouble);
    snprintf(out, room, "%s", line);
    if (strlen(line) >= room && room > 4)
        memcpy(out + room - 4, "...", 4);
}

void progress_text(char *out, size_t room, const struct report *report,
                   const struct rlock_obstacle *obstacle, int64_t now_ms)
{
    size_t holder_bytes = strlen(obstacle->holder);
    char holder[sizeof obstacle->holder + 16] = "";
    char key[KEY_BYTES_MAX] = "";
    char waited[UNITS_TEXT_BYTES];
    char rest[96];
    char line[PROGRESS_BYTES + KEY_BYTES_MAX];
    size_t fixed;
    size_t used;

    if (obstacle->trouble.status != RLOCK_OK) {
        trouble_text(out, room, report, obstacle, now_ms);
        return;
    }
    err_escape(key, sizeof key, report->key);
    units_text(waited, now_ms - report->start_ms);
    describe_rest(rest, sizeof rest, obstacle, now_ms);
    fixed = strlen("rlock: : waiting  for ") + strlen(waited) + strlen(rest);
    if (fixed + strlen(key) + holder_bytes >= room)
        err_escape(key, clamp(room / KEY_PART, KEY_BYTES_MIN, sizeof key), report->key);
    used = fixed + strlen(key);
    if (used + holder_bytes < room)
        snprintf(holder, sizeof holder, " for %s", obstacle->holder);
    else if (used + HOLDER_BYTES_MIN < room)
        snprintf(holder, sizeof holder, " for %.*s...", (int)(room - used - 4), obstacle->holder);
    snprintf(line, sizeof line, "rlock: %s: waiting %s%s%s", key, waited, holder, rest);
    snprintf(out, room, "%s", line);
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

static int columns_of(int terminal)
{
    struct winsize size;

    if (ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS_UNKNOWN;
    return size.ws_col < PROGRESS_BYTES ? size.ws_col : PROGRESS_BYTES;
}

/*
 * Write the text, and blanks over the rest of the text that was drawn last, whose length is
 * `width`. The cursor returns to the start of the row.
 */
static void put(struct progress *progress, const char *text, int width, int columns)
{
    char bytes[PROGRESS_BYTES + 8];
    int n;

    if (columns < progress->columns) /* the window shrank: a longer line would wrap */
        width = columns;
    n = snprintf(bytes, sizeof bytes, "\r%-*s\r", width, text);
    report_draw(progress->terminal, bytes, (size_t)n);
    progress->columns = columns;
}

static void draw(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    int columns = columns_of(progress->terminal);
    char text[PROGRESS_BYTES];

    progress_text(text, (size_t)columns, progress->report, obstacle, rlock_clock_ms());
    if (columns == progress->columns && strcmp(text, progress->shown) == 0)
        return;
    put(progress, text, (int)strlen(progress->shown), columns);
    snprintf(progress->shown, sizeof progress->shown, "%s", text);
}

/*
 * Clear the whole row, not only the drawn text: the terminal may have echoed a key such as ^C
 * behind it.
 */
static void clear(struct progress *progress)
{
    int columns;

    if (progress->terminal < 0)
        return;
    columns = columns_of(progress->terminal);
    put(progress, "", columns - 1, columns);
    close(progress->terminal);
    progress->terminal = -1;
    progress->columns = 0;
    progress->shown[0] = '\0';
}

/* Report a failure of the server once, when it has lasted for TROUBLE_MS; and once its end. */
static void report_trouble(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    int64_t now_ms = rlock_clock_ms();
    char why[sizeof obstacle->trouble.text + 64];
    char took[UNITS_TEXT_BYTES];

    if (obstacle == NULL)
        return;
    if (progress->trouble_since_ms != 0 && obstacle->trouble.status == RLOCK_OK) {
        clear(progress);
        units_text(took, now_ms - progress->trouble_since_ms);
        snprintf(why, sizeof why, "after %s", took);
        report_say(progress->report, REPORT_NOTICE,
                   (struct message){.what = "server-back", .why = why});
        progress->trouble_since_ms = 0;
    } else if (progress->trouble_since_ms == 0 && obstacle->trouble.status != RLOCK_OK &&
               now_ms >= obstacle->trouble_ms + TROUBLE_MS) {
        clear(progress);
        describe_trouble(why, sizeof why, obstacle, now_ms);
        report_say(
            progress->report, REPORT_NOTICE,
            (struct message){.what = row_of(obstacle)->what, .why = why, .hint = "still trying"});
        progress->trouble_since_ms = obstacle->trouble_ms;
    }
}

/*
 * Draw the line; or clear it, when the wait is over or rlock is in the background. Opening /dev/tty
 * is safe here: a process in the foreground of the terminal on stderr has that terminal as
 * /dev/tty.
 */
static void show_line(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    if (obstacle == NULL || !is_foreground()) {
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

/* ---- the messages of --verbose, one a minute ---- */

static void show_message(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    int64_t now_ms = rlock_clock_ms();
    char rest[96];
    char why[400];

    report_trouble(progress, obstacle);
    if (obstacle == NULL || now_ms < progress->next_message_at_ms ||
        obstacle->trouble.status != RLOCK_OK)
        return;
    describe_rest(rest, sizeof rest, obstacle, now_ms);
    snprintf(why, sizeof why, "for %s%s", obstacle->holder, rest);
    report_say(progress->report, REPORT_STEP, (struct message){.what = "waiting", .why = why});
    progress->next_message_at_ms = now_ms + MESSAGE_EVERY_MS;
}

/* ---- functions of progress.h ---- */

static enum progress_style style_of(const struct report *report)
{
    if (report->level == REPORT_STEP)
        return PROGRESS_MESSAGES;
    return wants_line(report) ? PROGRESS_LINE : PROGRESS_TROUBLE;
}

void progress_init(struct progress *progress, const struct report *report)
{
    *progress = (struct progress){.report = report, .style = style_of(report), .terminal = -1};
}

void progress_show(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    switch (progress->style) {
    case PROGRESS_TROUBLE:
        report_trouble(progress, obstacle);
        break;
    case PROGRESS_LINE:
        show_line(progress, obstacle);
        break;
    case PROGRESS_MESSAGES:
        show_message(progress, obstacle);
        break;
    }
}

void progress_warn(struct progress *progress, const char *text)
{
    clear(progress);
    report_say(progress->report, REPORT_NOTICE, (struct message){.what = "warning", .why = text});
}

int64_t progress_every_ms(const struct progress *progress)
{
    return progress->style == PROGRESS_LINE ? DRAW_EVERY_MS : 0;
}
