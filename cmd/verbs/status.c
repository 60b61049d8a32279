/* SPDX-License-Identifier: MIT */
/* status: show who holds a lock, and who waits for it. */
#include "cmd.h"

#include "base/clock.h"
#include "output/outbuf.h"
#include "output/show.h"
#include "session/session.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WATCH_MS 1000 /* time between two readings of the lock with --watch */

struct status {
    struct session session;
    struct terminal terminal;
    struct shown shown;
    struct outbuf out;
    bool shows_free;   /* show free locks as well, because the user named the locks by -k */
    bool is_shown;     /* the last lock that was read is to be shown */
    bool is_any_taken; /* a lock that the last show() has read is taken */
};

static void see_lock(void *context, const struct rlock_view *view)
{
    struct status *status = context;
    bool is_taken = view->seen != RLOCK_SEEN_FREE;

    status->is_any_taken = status->is_any_taken || is_taken;
    status->is_shown = status->shows_free || is_taken;
    if (status->is_shown)
        show_lock(&status->shown, view);
}

static void see_waiter(void *context, const struct rlock_party *waiter)
{
    struct status *status = context;

    if (status->is_shown)
        show_waiter(&status->shown, waiter);
}

static enum rlock_status show_one(struct status *status, const char *key, struct rlock_error *err)
{
    struct rlock_visitor visitor = {
        .on_lock = see_lock, .on_waiter = see_waiter, .context = status};
    enum rlock_status st;

    report_set_key(&status->session.report, key);
    st = rlock_inspect(status->session.lock, key, deadline_never, &visitor, err);
    if (st == RLOCK_OK && status->is_shown)
        show_end(&status->shown, &status->out);
    return st;
}

static void note_key(void *rows, const struct rlock_view *view)
{
    sorted_lines_add(rows, view->key, "");
}

/* Without -k: show all locks of the server that aren't free, sorted by key. */
static enum rlock_status show_all(struct status *status, struct rlock_error *err)
{
    struct sorted_lines rows = {.line = NULL};
    struct rlock_visitor visitor = {.on_lock = note_key, .context = &rows};
    enum rlock_status st = rlock_list(status->session.lock, NULL, deadline_never, &visitor, err);
    size_t i;

    sorted_lines_sort(&rows);
    if (rows.has_failed)
        outbuf_fail(&status->out);
    for (i = 0; st == RLOCK_OK && i < rows.n; i++)
        st = show_one(status, rows.line[i].key, err);
    if (st == RLOCK_OK)
        report_set_key(&status->session.report, NULL);
    sorted_lines_fini(&rows);
    return st;
}

static enum rlock_status show(struct status *status, struct rlock_error *err)
{
    const struct options *options = status->session.options;
    enum rlock_status st = RLOCK_OK;
    size_t i;

    status->is_any_taken = false;
    outbuf_clear(&status->out);
    show_clear(&status->shown);
    if (options->n_keys == 0)
        return show_all(status, err);
    for (i = 0; st == RLOCK_OK && i < options->n_keys; i++)
        st = show_one(status, options->keys[i], err);
    return st;
}

/* ---- without --watch ---- */

static enum exit_reason print_once(struct status *status)
{
    struct rlock_error err = {.status = RLOCK_OK};
    enum exit_reason reason;

    if (show(status, &err) != RLOCK_OK)
        return session_fault(&status->session, &err);
    reason = report_output(&status->session.report, NULL, &status->out);
    return reason == REASON_GRANTED && status->is_any_taken ? REASON_BUSY : reason;
}

/* ---- with --watch ---- */

/* Draw the text over the text before, cut to the number of lines of the screen. */
static enum exit_reason redraw(const struct status *status)
{
    struct outbuf screen = {.text = NULL};
    const char *line = outbuf_text(&status->out);
    int lines = status->terminal.lines - 1;
    enum exit_reason reason;

    outbuf_add(&screen, TERMINAL_TOP);
    for (; *line != '\0' && lines > 0; lines--) {
        size_t n = strcspn(line, "\n");

        if (lines == 1 && line[n] == '\n' && line[n + 1] != '\0')
            outbuf_add(&screen, "..." TERMINAL_LINE_END);
        else
            outbuf_add(&screen, "%.*s" TERMINAL_LINE_END, (int)n, line);
        line += n + (line[n] == '\n');
    }
    outbuf_add(&screen, TERMINAL_END);
    if (status->out.has_failed)
        outbuf_fail(&screen);
    reason = report_output(&status->session.report, NULL, &screen);
    outbuf_fini(&screen);
    return reason;
}

/* Wait until the next reading is due. Returns false if the reader of stdout has closed the pipe. */
static bool pause_watching(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};

    poll(&output, 1, WATCH_MS);
    return (output.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0;
}

static enum exit_reason print_change(struct status *status, struct outbuf *before)
{
    const char *now = outbuf_text(&status->shown.identity);

    if (status->terminal.can_draw && !status->session.options->json) {
        terminal_read_state(&status->terminal);
        return redraw(status);
    }
    if (before->used > 0 && strcmp(outbuf_text(before) + 1, now) == 0)
        return REASON_GRANTED;
    outbuf_clear(before);
    outbuf_add(before, ".%s", now); /* "." marks that a text was printed, also if `now` is empty */
    return report_output(&status->session.report, NULL, &status->out);
}

/* Show the locks each second. Report once if the server becomes unreachable, and go on trying. */
static enum exit_reason watch(struct status *status)
{
    struct outbuf before = {.text = NULL};
    enum exit_reason reason = REASON_GRANTED;
    struct rlock_error err = {.status = RLOCK_OK};
    bool has_printed = false;
    bool is_unreachable = false;

    do {
        enum rlock_status st = show(status, &err);

        if (st == RLOCK_OK) {
            is_unreachable = false;
            has_printed = true;
            reason = print_change(status, &before);
        } else if (!has_printed || exit_reason_of(st) != REASON_UNREACHABLE) {
            reason = session_fault(&status->session, &err);
        } else if (!is_unreachable) {
            session_fault(&status->session, &err);
            is_unreachable = true;
        }
    } while (reason == REASON_GRANTED && pause_watching());
    outbuf_fini(&before);
    return reason != REASON_GRANTED || !status->is_any_taken ? reason : REASON_BUSY;
}

int cmd_status(const struct options *options)
{
    struct status status = {.shows_free = options->n_keys > 0};
    enum exit_reason reason;

    show_init(&status.shown, options->json != 0, &status.terminal);
    session_init(&status.session, options);
    terminal_read_state(&status.terminal);
    reason = session_open(&status.session, "rlock");
    if (reason == REASON_GRANTED)
        reason = options->watch ? watch(&status) : print_once(&status);
    show_fini(&status.shown);
    outbuf_fini(&status.out);
    session_close(&status.session);
    return exit_reason_status(reason);
}
