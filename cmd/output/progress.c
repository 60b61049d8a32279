/* SPDX-License-Identifier: MIT */
/*
 * progress: whom rlock waits for, as a line on the terminal or a message a minute.
 *
 * The line is drawn by carriage returns and blanks alone, so it needs nothing
 * of the terminal; the cursor stays at its start, where what is typed doesn't
 * push it into the next row. It is drawn through a descriptor of our own that
 * never blocks: a terminal that is stopped, or at the end of a dead connection,
 * must not keep us from our turn. Nothing else is said while the line is there:
 * the wait is over first, and the line with it. Source: OpenSSH's progressmeter.c,
 * for when to draw at all.
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
#define SAY_EVERY_MS 60000
#define COLUMNS_UNKNOWN 80
#define TROUBLE_MS 1000 /* what lasts less is not told, as when a server is restarted */
#define KEY_PART 3      /* of the line, the part that the key may have */
#define KEY_BYTES_MIN 16
#define KEY_BYTES_MAX 256
#define HOLDER_BYTES_MIN 12 /* a name cut to less tells nothing */

/* ---- what is shown ---- */

/* ", 18s left, place 3" */
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

/* What to call a trouble: as the name of a message, and to people. The last is for all others. */
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

static const struct trouble *find_trouble(const struct rlock_obstacle *obstacle)
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
    snprintf(out, room, "%s %s", find_trouble(obstacle)->words, since);
}

static size_t clamp(size_t n, size_t least, size_t most)
{
    if (n < least)
        return least;
    return n < most ? n : most;
}

/* The line while there is trouble: cut at its end, where the reason is. */
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

/* ---- the line ---- */

static bool wants_line(const struct report *report)
{
    return report->level == REPORT_NOTICE && !report->json && isatty(STDERR_FILENO);
}

/* The terminal is ours to write on as long as its user waits for us. */
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

/* Write over what may stand there, and go back to the start. */
static void put(struct progress *progress, const char *text, int width, int columns)
{
    char bytes[PROGRESS_BYTES + 8];
    int n;

    if (columns < progress->columns) /* it may reach into the last column, and is cut there now */
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

/* The whole row, since a key such as ^C leaves its sign there. */
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

/* Trouble that lasts is told once when it has begun, and once when it is over. */
static void tell_trouble(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    int64_t now_ms = rlock_clock_ms();
    char why[sizeof obstacle->trouble.text + 64];
    char took[UNITS_TEXT_BYTES];

    if (obstacle == NULL)
        return;
    if (progress->trouble_ms != 0 && obstacle->trouble.status == RLOCK_OK) {
        clear(progress);
        units_text(took, now_ms - progress->trouble_ms);
        snprintf(why, sizeof why, "after %s", took);
        report_say(progress->report, REPORT_NOTICE,
                   (struct message){.what = "server-back", .why = why});
        progress->trouble_ms = 0;
    } else if (progress->trouble_ms == 0 && obstacle->trouble.status != RLOCK_OK &&
               now_ms >= obstacle->trouble_ms + TROUBLE_MS) {
        clear(progress);
        describe_trouble(why, sizeof why, obstacle, now_ms);
        report_say(progress->report, REPORT_NOTICE,
                   (struct message){
                       .what = find_trouble(obstacle)->what, .why = why, .hint = "still waiting"});
        progress->trouble_ms = obstacle->trouble_ms;
    }
}

/* In the foreground, standard error is the controlling terminal, by whatever name. */
static void show_line(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    if (obstacle == NULL || !is_foreground()) {
        clear(progress);
        tell_trouble(progress, obstacle);
        return;
    }
    tell_trouble(progress, obstacle);
    if (progress->terminal < 0)
        progress->terminal = open("/dev/tty", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (progress->terminal >= 0)
        draw(progress, obstacle);
}

/* ---- the messages ---- */

static void show_message(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    int64_t now_ms = rlock_clock_ms();
    char rest[96];
    char why[400];

    tell_trouble(progress, obstacle);
    if (obstacle == NULL || now_ms < progress->say_ms || obstacle->trouble.status != RLOCK_OK)
        return;
    describe_rest(rest, sizeof rest, obstacle, now_ms);
    snprintf(why, sizeof why, "for %s%s", obstacle->holder, rest);
    report_say(progress->report, REPORT_STEP, (struct message){.what = "waiting", .why = why});
    progress->say_ms = now_ms + SAY_EVERY_MS;
}

/* ---- what the caller sees of it ---- */

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
        tell_trouble(progress, obstacle);
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
