/* SPDX-License-Identifier: MIT */
/*
 * progress: who holds the lock that rlock waits for, as a line on the terminal or as messages.
 *
 * How the line is drawn: the cursor stays at the start of the row, so that characters that the user
 * types don't move it into the next row. While rlock writes the line, the terminal doesn't wrap at
 * its last column: the window may have become narrower since rlock asked for its width. Behind the
 * line rlock erases the rest of the screen: a terminal whose window becomes narrower may have moved
 * the end of the older line into the rows below. A terminal that knows no escape sequences (TERM is
 * "dumb" or empty) gets blanks instead.
 *
 * rlock writes the line to /dev/tty, which it opens non-blocking: a terminal that the user has
 * stopped (^S), or whose connection is dead, must not delay rlock when it is granted the lock.
 * rlock clears the line before it writes a message. Source of the rules for when to draw: OpenSSH's
 * progressmeter.c.
 */
#include "output/progress.h"

#include "options/units.h"
#include "output/printable.h"
#include "output/taken.h"
#include "output/terminal.h"
#include "output/wall_time.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW_EVERY_MS 1000 /* how often rlock draws the line again */
#define LOOK_EVERY_MS 2000 /* how often rlock looks if a message is due, with PROGRESS_MESSAGES */
#define COLUMNS_UNKNOWN 80
#define PATIENCE_BYTES (UNITS_TEXT_BYTES + 16)
#define TROUBLE_MS 1000 /* a shorter failure of the server, such as a restart, isn't reported */
#define KEY_BYTES 512
#define WORD_BYTES 256      /* room for one word about the holder, such as its host */
#define KEY_PART 3          /* a long key gets at least 1/KEY_PART of the line's columns */
#define KEY_COLUMNS_MIN 16  /* a long key gets at least 16 columns, also on a narrow terminal */
#define KEY_COLUMNS_LEAST 8 /* from FORM_SHORT on, a long key gets at least 8 columns */
#define SHORT_COLUMNS 40 /* on a narrower terminal, a line about trouble lacks the word "rlock" */

/* ---- making the texts of the line and of the messages ---- */

/* Write how long the lease, or a person's hold, still lasts: "18s left". */
static void describe_left(char *out, size_t room, const struct rlock_obstacle *obstacle,
                          int64_t now_ms)
{
    int64_t left_ms =
        obstacle->holder.hold_ms > 0 ? obstacle->holder.hold_left_ms : obstacle->left_ms;
    char left[UNITS_TEXT_BYTES];

    units_text(left, left_ms - (now_ms - obstacle->seen_ms) + 999);
    if (left_ms < 0)
        snprintf(out, room, "never expires");
    else
        snprintf(out, room, "%s left", left);
}

/*
 * The words for a failure of the server (`trouble` in struct rlock_obstacle): `what` is the event
 * of the message about the failure, and the line on the terminal has `words`. A status without a
 * row of its own has the words of the last row.
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

const char *progress_trouble_words(enum rlock_status status)
{
    return row_of(status)->words;
}

static void describe_trouble(char *out, size_t room, const struct rlock_obstacle *obstacle,
                             int64_t now_ms)
{
    char lasted[UNITS_TEXT_BYTES];

    units_text(lasted, now_ms - obstacle->trouble_ms);
    snprintf(out, room, "for %s: %s", lasted, obstacle->trouble.text);
}

/* Before any server has answered: write for how long rlock still tries to reach a server. */
static void describe_patience(char out[PATIENCE_BYTES], const struct rlock_obstacle *obstacle,
                              int64_t now_ms)
{
    char left[UNITS_TEXT_BYTES];

    units_text(left, obstacle->gives_up_ms - now_ms + 999);
    snprintf(out, PATIENCE_BYTES, "trying for %s", left);
}

void progress_trouble(char *out, size_t room, const struct rlock_obstacle *obstacle, int64_t now_ms)
{
    char trouble[sizeof obstacle->trouble.text + 64];
    char patience[PATIENCE_BYTES];

    describe_trouble(trouble, sizeof trouble, obstacle, now_ms);
    describe_patience(patience, obstacle, now_ms);
    if (obstacle->gives_up_ms != 0)
        snprintf(out, room, "%s, %s: %s", row_of(obstacle->trouble.status)->words, patience,
                 obstacle->trouble.text);
    else
        snprintf(out, room, "%s %s", row_of(obstacle->trouble.status)->words, trouble);
}

/* ---- fitting the line to the terminal ---- */

/*
 * The forms of the line, from the longest to the shortest; rlock draws the first form that fits the
 * terminal. Each form lacks one part that the form before it has. Only the last two forms lack the
 * place in the queue, and only the last one lacks the time of the wait.
 */
enum form {
    FORM_WHOLE,
    FORM_WITHOUT_PID,
    FORM_WITHOUT_LABEL,
    FORM_WITHOUT_HOST,
    FORM_WITHOUT_LEFT,
    FORM_WITHOUT_HOLDER,
    FORM_SHORT, /* "KEY: 3s, place 2" */
    FORM_WITHOUT_PLACE,
    FORM_KEY,
    FORMS
};

/*
 * How many columns the holder may take if another program has written the value of the lock's key.
 * rlock can't divide such a value into command, user, host and pid, so it cuts the value instead.
 */
static const size_t holder_columns[FORMS] = {[FORM_WHOLE] = PROGRESS_COLUMNS_MAX,
                                             [FORM_WITHOUT_PID] = 40,
                                             [FORM_WITHOUT_LABEL] = 30,
                                             [FORM_WITHOUT_HOST] = 20,
                                             [FORM_WITHOUT_LEFT] = 20};

static const char *or_else(const char *text, const char *otherwise)
{
    return *text != '\0' ? text : otherwise;
}

/* If `word` isn't "", append `before`, the word and `behind`. */
static void add_word(char *out, size_t room, const char *before, const char *word,
                     const char *behind)
{
    size_t used = strlen(out);
    char shown[WORD_BYTES];

    if (*word == '\0')
        return;
    printable_key(shown, sizeof shown, word);
    snprintf(out + used, room - used, "%s%s%s", before, shown, behind);
}

/* Returns what rlock waits for if the lock has no holder; NULL: the lock has a holder. */
static const char *nobody_holds(enum rlock_seen seen)
{
    if (seen == RLOCK_SEEN_KEPT)
        return "the next in the queue";
    if (seen == RLOCK_SEEN_REST)
        return "the end of --min-hold";
    return seen == RLOCK_SEEN_DONE ? "the end of the --once mark" : NULL;
}

/* Write the parts of the holder that the form has: "tar of backup@web1, pid 42 (nightly)". */
static void describe_holder(char *out, size_t room, const struct rlock_obstacle *obstacle,
                            enum form form)
{
    const struct rlock_party *holder = &obstacle->holder;
    bool is_rlock = *or_else(holder->command, or_else(holder->host, holder->pid)) != '\0';

    out[0] = '\0';
    if (form >= FORM_WITHOUT_HOLDER)
        return;
    if (nobody_holds(obstacle->seen) != NULL) {
        snprintf(out, room, "%s", nobody_holds(obstacle->seen));
        return;
    }
    if (!is_rlock) {
        printable_text(out, room, holder->text);
        printable_fit(out, holder_columns[form]);
        return;
    }
    if (holder->hold_ms == 0)
        add_word(out, room, "", or_else(holder->command, "a program"), " of ");
    add_word(out, room, "", or_else(holder->user, "?"), "");
    if (form < FORM_WITHOUT_HOST)
        add_word(out, room, holder->hold_ms == 0 ? "@" : " on ", or_else(holder->host, "?"), "");
    if (form < FORM_WITHOUT_PID)
        add_word(out, room, ", pid ", holder->pid, "");
    if (form < FORM_WITHOUT_LABEL)
        add_word(out, room, " (", holder->label, ")");
}

/* Write the part of the line that follows the key, in this form. */
static void describe_wait(char *out, size_t room, const struct report *report,
                          const struct rlock_obstacle *obstacle, int64_t now_ms, enum form form)
{
    char waited[UNITS_TEXT_BYTES];
    char holder[WORD_BYTES * 6];
    char left[UNITS_TEXT_BYTES + 16] = "";
    char place[32] = "";

    out[0] = '\0';
    if (form == FORM_KEY)
        return;
    units_text(waited, now_ms - report->start_ms);
    describe_holder(holder, sizeof holder, obstacle, form);
    if (form < FORM_WITHOUT_LEFT)
        describe_left(left, sizeof left, obstacle, now_ms);
    if (form < FORM_WITHOUT_PLACE && obstacle->place > 0)
        snprintf(place, sizeof place, ", place %lld", (long long)obstacle->place);
    snprintf(out, room, ": %s%s%s%s%s%s%s", form < FORM_SHORT ? "waiting " : "", waited,
             *holder ? " for " : "", holder, *left ? ", " : "", left, place);
}

static size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

static size_t most(size_t one, size_t other)
{
    return one > other ? one : other;
}

/*
 * Write the line in the first form that leaves the key enough columns: all columns of the key, or
 * for a long key the share that KEY_PART and KEY_COLUMNS_MIN give it. The key gets all columns that
 * the rest of the line leaves; the end of a longer key is cut off.
 */
static void wait_text(char *out, size_t room, size_t columns, const struct report *report,
                      const struct rlock_obstacle *obstacle, int64_t now_ms)
{
    char wait[PROGRESS_BYTES];
    char key[KEY_BYTES];
    const char *name = "rlock: ";
    size_t wanted;
    size_t others = 0;
    enum form form;

    printable_key(key, sizeof key, report->key);
    wanted = least(printable_columns(key), most(columns / KEY_PART, KEY_COLUMNS_MIN));
    for (form = FORM_WHOLE; form < FORMS; form++) {
        if (form >= FORM_SHORT) {
            wanted = least(wanted, KEY_COLUMNS_LEAST);
            name = "";
        }
        describe_wait(wait, sizeof wait, report, obstacle, now_ms, form);
        others = strlen(name) + printable_columns(wait);
        if (others + wanted <= columns)
            break;
    }
    printable_fit(key, columns > others ? columns - others : 0);
    snprintf(out, room, "%s%s%s", name, key, wait);
}

/* Write the line about a failure of the server (`trouble`), and cut off what doesn't fit. */
static void trouble_text(char *out, size_t room, size_t columns, const struct report *report,
                         const struct rlock_obstacle *obstacle, int64_t now_ms)
{
    char trouble[sizeof obstacle->trouble.text + 96];
    char shown[PROGRESS_BYTES];
    char key[KEY_BYTES];
    char waited[UNITS_TEXT_BYTES];
    bool is_short = columns < SHORT_COLUMNS;

    printable_key(key, sizeof key, report->key);
    printable_fit(key, most(columns / KEY_PART, KEY_COLUMNS_MIN));
    units_text(waited, now_ms - report->start_ms);
    progress_trouble(trouble, sizeof trouble, obstacle, now_ms);
    printable_text(shown, sizeof shown, trouble);
    if (obstacle->gives_up_ms != 0) /* `shown` says how long rlock tries, so leave out the wait */
        snprintf(out, room, "%s%s: %s", is_short ? "" : "rlock: ", key, shown);
    else
        snprintf(out, room, "%s%s: %s%s, %s", is_short ? "" : "rlock: ", key,
                 is_short ? "" : "waiting ", waited, shown);
    printable_fit(out, columns);
}

void progress_text(char *out, size_t room, size_t columns, const struct report *report,
                   const struct rlock_obstacle *obstacle, int64_t now_ms)
{
    (obstacle->trouble.status != RLOCK_OK ? trouble_text : wait_text)(out, room, columns, report,
                                                                      obstacle, now_ms);
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
    struct winsize size;
    size_t columns = COLUMNS_UNKNOWN;

    if (ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    return least(columns - 1, PROGRESS_COLUMNS_MAX);
}

/* Write the text over the row, and erase what was there. The cursor returns to the row's start. */
static void put(struct progress *progress, const char *text, size_t columns)
{
    char bytes[PROGRESS_BYTES + PROGRESS_COLUMNS_MAX + 32];
    size_t taken = printable_columns(text);
    size_t blanks = columns > taken ? columns - taken : 0;
    int n;

    if (terminal_knows_escapes())
        n = snprintf(bytes, sizeof bytes, "\r" TERMINAL_NO_WRAP "%s" TERMINAL_END "\r", text);
    else
        n = snprintf(bytes, sizeof bytes, "\r%s%*s\r", text, (int)blanks, "");
    report_draw(progress->terminal, bytes, (size_t)n);
}

/*
 * Draw the line, if it has changed; and once a second in any case: after a change of the window's
 * width the terminal may show only a part of it.
 */
static void draw(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    int64_t now_ms = rlock_clock_ms();
    size_t columns = columns_of(progress->terminal);
    char text[PROGRESS_BYTES];

    progress_text(text, sizeof text, columns, progress->report, obstacle, now_ms);
    if (now_ms < progress->next_draw_at_ms && strcmp(text, progress->shown) == 0)
        return;
    put(progress, text, columns);
    snprintf(progress->shown, sizeof progress->shown, "%s", text);
    progress->next_draw_at_ms = now_ms + DRAW_EVERY_MS;
}

/*
 * Clear the whole row, not only the drawn text: the terminal may have echoed a key such as ^C
 * behind it.
 */
static void clear(struct progress *progress)
{
    if (progress->terminal < 0)
        return;
    put(progress, "", columns_of(progress->terminal));
    close(progress->terminal);
    progress->terminal = -1;
    progress->next_draw_at_ms = 0;
}

/*
 * Returns how long a failure of the server has to last before a message reports the failure:
 * - After a server has answered for the first time (`gives_up_ms` is 0): TROUBLE_MS.
 * - Before: TROUBLE_MS or --connect-timeout, whichever is longer, as the server may just be slow,
 *   and if rlock gives up, its last message says why. With --verbose: 0.
 */
static int64_t quiet_ms(const struct progress *progress, const struct rlock_obstacle *obstacle)
{
    if (obstacle->gives_up_ms == 0 ||
        (progress->report->level != REPORT_STEP && progress->connect_ms < TROUBLE_MS))
        return TROUBLE_MS;
    return progress->report->level == REPORT_STEP ? 0 : progress->connect_ms;
}

/* Report a failure of the server once, when it has lasted for quiet_ms(); and once its end. */
static void report_trouble(struct progress *progress, const struct rlock_obstacle *obstacle)
{
    int64_t now_ms = rlock_clock_ms();
    char why[sizeof obstacle->trouble.text + 64];
    char patience[PATIENCE_BYTES];
    char took[UNITS_TEXT_BYTES];

    if (obstacle == NULL)
        return;
    if (progress->trouble_since_ms != 0 && obstacle->trouble.status == RLOCK_OK) {
        clear(progress);
        units_text(took, now_ms - progress->trouble_since_ms);
        snprintf(why, sizeof why, "after %s", took);
        report_say(progress->report, REPORT_NOTICE,
                   (struct message){
                       .what = EVENT_SERVER_BACK,
                       .why = why,
                       .facts = {fact_number("trouble_ms", now_ms - progress->trouble_since_ms)}});
        progress->trouble_since_ms = 0;
    } else if (progress->trouble_since_ms == 0 && obstacle->trouble.status != RLOCK_OK &&
               now_ms >= obstacle->trouble_ms + quiet_ms(progress, obstacle)) {
        clear(progress);
        if (now_ms < obstacle->trouble_ms + TROUBLE_MS)
            snprintf(why, sizeof why, "%s", obstacle->trouble.text);
        else
            describe_trouble(why, sizeof why, obstacle, now_ms);
        describe_patience(patience, obstacle, now_ms);
        report_say(progress->report, REPORT_NOTICE,
                   (struct message){
                       .what = row_of(obstacle->trouble.status)->what,
                       .why = why,
                       .hint = obstacle->gives_up_ms != 0 ? patience : "still trying",
                       .facts = {fact_time("trouble_since", wall_time_of(obstacle->trouble_ms))}});
        progress->trouble_since_ms = obstacle->trouble_ms;
    }
}

/* False if no failure and no holder is known: a server has just answered, and granted the lock. */
static bool is_known(const struct rlock_obstacle *obstacle)
{
    return obstacle->trouble.status != RLOCK_OK || obstacle->holder.text[0] != '\0';
}

/*
 * Draw the line; or clear it, when the wait is over or rlock is in the background. Opening /dev/tty
 * is safe here: a process in the foreground of the terminal on stderr has that terminal as
 * /dev/tty.
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

/*
 * Write how long rlock has waited, its place in the queue and why the lock is not free. The time of
 * a wait that has just begun is left out.
 */
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
 * How long rlock has waited when it writes the first message about the wait, and the time between
 * two messages. Without -v a log has no message about a wait of less than 10 s, and six messages an
 * hour about a long wait.
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
    int64_t waited_ms = rlock_clock_ms() - progress->report->start_ms;
    char words[sizeof obstacle->trouble.text + TAKEN_BYTES];
    char why[sizeof words + 100];
    struct taken taken = taken_of_obstacle(obstacle);

    if (obstacle->trouble.status != RLOCK_OK)
        progress_trouble(words, sizeof words, obstacle, rlock_clock_ms());
    else
        taken_text(words, &taken);
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
                                  .style = wants_line(report) ? PROGRESS_LINE : PROGRESS_MESSAGES,
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
    if (progress->style == PROGRESS_LINE)
        show_line(progress, obstacle);
    else
        show_message(progress, obstacle);
}

void progress_warn(struct progress *progress, const char *text)
{
    clear(progress);
    report_say(progress->report, REPORT_NOTICE,
               (struct message){.what = EVENT_WARNING, .why = text});
}

int64_t progress_every_ms(const struct progress *progress)
{
    return progress->style == PROGRESS_LINE ? DRAW_EVERY_MS : LOOK_EVERY_MS;
}
