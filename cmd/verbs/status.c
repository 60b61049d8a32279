/* SPDX-License-Identifier: MIT */
/* status: tell who holds a lock, and who waits for it. */
#include "cmd.h"

#include "output/outbuf.h"
#include "output/show.h"
#include "session/session.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WATCH_MS 1000

struct looking {
    struct session session;
    struct terminal terminal;
    struct shown shown;
    struct outbuf page;
    bool wants_free; /* locks that are free are told, too */
    bool is_free;    /* the last one is */
    bool any_taken;  /* one of all is not */
};

static const struct rlock_deadline whenever = {RLOCK_NEVER, -1};

static void see_lock(void *context, const struct rlock_view *view)
{
    struct looking *looking = context;

    looking->is_free = view->seen == RLOCK_SEEN_FREE;
    looking->any_taken = looking->any_taken || !looking->is_free;
    if (looking->wants_free || !looking->is_free)
        show_lock(&looking->shown, view);
}

static void see_waiter(void *context, const struct rlock_party *waiter)
{
    struct looking *looking = context;

    if (looking->wants_free || !looking->is_free)
        show_waiter(&looking->shown, waiter);
}

static enum rlock_status look_at(struct looking *looking, const char *key, struct rlock_error *err)
{
    struct rlock_visitor visitor = {
        .on_lock = see_lock, .on_waiter = see_waiter, .context = looking};
    enum rlock_status st;

    looking->session.report.key = key;
    st = rlock_inspect(looking->session.lock, key, whenever, &visitor, err);
    if (st == RLOCK_OK && (looking->wants_free || !looking->is_free))
        show_end(&looking->shown, &looking->page);
    return st;
}

static void note_key(void *rows, const struct rlock_view *view)
{
    sorted_lines_add(rows, view->key, "");
}

/* Without a key: all that are there. */
static enum rlock_status look_at_all(struct looking *looking, struct rlock_error *err)
{
    struct sorted_lines rows = {.line = NULL};
    struct rlock_visitor visitor = {.on_lock = note_key, .context = &rows};
    enum rlock_status st = rlock_list(looking->session.lock, NULL, whenever, &visitor, err);
    size_t i;

    sorted_lines_sort(&rows);
    looking->page.has_failed = looking->page.has_failed || rows.has_failed;
    for (i = 0; st == RLOCK_OK && i < rows.n; i++)
        st = look_at(looking, rows.line[i].key, err);
    if (st == RLOCK_OK)
        looking->session.report.key = NULL;
    sorted_lines_fini(&rows);
    return st;
}

static enum rlock_status look(struct looking *looking, struct rlock_error *err)
{
    const struct options *options = looking->session.options;
    enum rlock_status st = RLOCK_OK;
    size_t i;

    looking->any_taken = false;
    outbuf_clear(&looking->page);
    outbuf_clear(&looking->shown.lock);
    outbuf_clear(&looking->shown.waiters);
    outbuf_clear(&looking->shown.identity);
    looking->shown.n_waiters = 0;
    if (options->n_keys == 0)
        return look_at_all(looking, err);
    for (i = 0; st == RLOCK_OK && i < options->n_keys; i++)
        st = look_at(looking, options->keys[i], err);
    return st;
}

static enum exit_reason no_output(const struct looking *looking)
{
    return report_fault(&looking->session.report, REASON_SYSTEM,
                        "standard output: it can't be written", 0);
}

/* ---- once ---- */

static enum exit_reason tell_once(struct looking *looking)
{
    struct rlock_error err = {.status = RLOCK_OK};

    if (look(looking, &err) != RLOCK_OK)
        return session_fault(&looking->session, &err);
    if (!outbuf_write(&looking->page))
        return no_output(looking);
    return looking->any_taken ? REASON_BUSY : REASON_GRANTED;
}

/* ---- again and again ---- */

/* As much of the page as there is room for, over what was there before. */
static bool redraw(struct looking *looking)
{
    struct outbuf screen = {.text = NULL};
    const char *line = outbuf_text(&looking->page);
    int lines = looking->terminal.lines - 1;
    bool good;

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
    good = !looking->page.has_failed && outbuf_write(&screen);
    outbuf_fini(&screen);
    return good;
}

/* True as long as somebody can see it. */
static bool pause_watching(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};

    poll(&output, 1, WATCH_MS);
    return (output.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0;
}

static bool tell_change(struct looking *looking, struct outbuf *before)
{
    const char *now = outbuf_text(&looking->shown.identity);

    if (looking->terminal.can_draw && !looking->session.options->json) {
        terminal_read_state(&looking->terminal);
        return redraw(looking);
    }
    if (before->used > 0 && strcmp(outbuf_text(before) + 1, now) == 0)
        return true;
    outbuf_clear(before);
    outbuf_add(before, ".%s", now); /* also nothing is something that was told */
    return outbuf_write(&looking->page);
}

/* A server that goes away while it is watched is said once, and waited for. */
static enum exit_reason watch(struct looking *looking)
{
    struct outbuf before = {.text = NULL};
    enum exit_reason reason = REASON_GRANTED;
    struct rlock_error err = {.status = RLOCK_OK};
    bool has_told = false;
    bool is_away = false;

    do {
        enum rlock_status st = look(looking, &err);

        if (st == RLOCK_OK) {
            is_away = false;
            has_told = true;
            if (!tell_change(looking, &before))
                reason = no_output(looking);
        } else if (!has_told || exit_reason_of(st) != REASON_UNREACHABLE) {
            reason = session_fault(&looking->session, &err);
        } else if (!is_away) {
            session_fault(&looking->session, &err);
            is_away = true;
        }
    } while (reason == REASON_GRANTED && pause_watching());
    outbuf_fini(&before);
    return reason != REASON_GRANTED || !looking->any_taken ? reason : REASON_BUSY;
}

int cmd_status(const struct options *options)
{
    struct looking looking = {.wants_free = options->n_keys > 0};
    enum exit_reason reason;

    session_init(&looking.session, options);
    terminal_read_state(&looking.terminal);
    looking.shown.as_json = options->json != 0;
    looking.shown.terminal = &looking.terminal;
    reason = session_open(&looking.session, "rlock");
    if (reason == REASON_GRANTED)
        reason = options->watch ? watch(&looking) : tell_once(&looking);
    show_fini(&looking.shown);
    outbuf_fini(&looking.page);
    session_close(&looking.session);
    return exit_reason_status(reason);
}
