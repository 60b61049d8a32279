/* SPDX-License-Identifier: MIT */
/* list: list all locks of the server. */
#include "cmd.h"

#include "base/clock.h"
#include "output/metrics.h"
#include "output/outbuf.h"
#include "output/show.h"
#include "output/table.h"
#include "session/session.h"

#include <stdlib.h>

struct listing {
    const struct options *options;
    enum list_format format;
    struct sorted_lines keys; /* the keys that inspect_each() inspects */
    struct sorted_lines rows; /* a line of output for each lock, sorted by the lock's key */
    struct outbuf row;        /* the line that add_lock() makes */
    struct metrics metrics;   /* with LIST_FORMAT_PROMETHEUS, instead of the rows */
};

/* --format wins over --json, which otherwise stands for --format json. */
static enum list_format format_of(const struct options *options)
{
    if (options_origin(options, "format")->from != FROM_DEFAULT)
        return (enum list_format)options->format;
    return options->json ? LIST_FORMAT_JSON : LIST_FORMAT_TEXT;
}

static void add_lock(struct listing *listing, const struct rlock_view *view)
{
    if (listing->format == LIST_FORMAT_PROMETHEUS) {
        metrics_lock(&listing->metrics, view);
        return;
    }
    outbuf_clear(&listing->row);
    (listing->format == LIST_FORMAT_JSON ? show_as_json : show_as_row)(&listing->row, view);
    sorted_lines_add(&listing->rows, view->key,
                     listing->row.has_failed ? NULL : outbuf_text(&listing->row));
}

/* ---- reading the locks ---- */

/*
 * True if rlock has to inspect the lock, too. In a quorum each member lists its own locks, but only
 * a majority knows a lock's state. The metrics need the waiters; the list has only their number.
 */
static bool is_to_inspect(const struct listing *listing, const struct rlock_view *view)
{
    return listing->options->n_urls > 1 ||
           (listing->format == LIST_FORMAT_PROMETHEUS && view->waiting != 0);
}

static void take_listed(void *context, const struct rlock_view *view)
{
    struct listing *listing = context;

    if (is_to_inspect(listing, view))
        sorted_lines_add(&listing->keys, view->key, "");
    else
        add_lock(listing, view);
}

/* Skips a lock that was released after it was listed. */
static void take_inspected(void *context, const struct rlock_view *view)
{
    if (view->seen != RLOCK_SEEN_FREE || *view->wrong != '\0')
        add_lock(context, view);
}

static void take_waiter(void *context, const struct rlock_party *waiter)
{
    struct listing *listing = context;

    metrics_waiter(&listing->metrics, waiter);
}

/* The history has the command's status; but after a lost lock rlock exits with 76. */
static void take_last_end(void *context, const char *key, const struct rlock_last_end *end)
{
    struct listing *listing = context;
    int status = end->is_lost ? exit_reason_status(REASON_LOST) : end->status;

    metrics_last_end(&listing->metrics, key, end->ended_ms, status, end->is_lost);
}

static enum rlock_status inspect_each(struct listing *listing, struct rlock *lock,
                                      struct rlock_error *err)
{
    struct rlock_visitor visitor = {
        .on_lock = take_inspected, .on_waiter = take_waiter, .context = listing};
    enum rlock_status st = RLOCK_OK;
    size_t i;

    sorted_lines_sort(&listing->keys);
    for (i = 0; st == RLOCK_OK && i < listing->keys.n; i++) {
        st = rlock_inspect(lock, listing->keys.line[i].key, deadline_never, &visitor, err);
        metrics_end(&listing->metrics);
    }
    return st;
}

/* ---- the locks as a table ---- */

#define KEY_COLUMNS_MIN 16 /* the column of keys is never cut below this width */

/* The columns of the table. show_as_row() writes all but the key. */
enum column { COLUMN_KEY, COLUMN_MODE, COLUMN_LEFT, COLUMN_WAITING, COLUMN_HELD, COLUMN_HOLDER };

/* A narrow terminal always shows the key and the time left. */
static const struct table empty_table = {
    .heading = {[COLUMN_KEY] = "KEY",
                [COLUMN_MODE] = "MODE",
                [COLUMN_LEFT] = "LEFT",
                [COLUMN_WAITING] = "WAITING",
                [COLUMN_HELD] = "HELD FOR",
                [COLUMN_HOLDER] = "HOLDER"},
    .width_min = {[COLUMN_MODE] = 9, [COLUMN_LEFT] = 8, [COLUMN_HOLDER] = TABLE_LAST_MIN},
    .first_min = KEY_COLUMNS_MIN,
    .to_drop = {COLUMN_HELD, COLUMN_WAITING, COLUMN_MODE, COLUMN_HOLDER, -1}};

static void put_table(struct listing *listing, struct outbuf *out)
{
    struct terminal terminal = {.is_terminal = false};
    struct table table = empty_table;
    size_t i;

    for (i = 0; i < listing->rows.n; i++) {
        show_key(&table.rows, listing->rows.line[i].key, SIZE_MAX);
        outbuf_add(&table.rows, "\t%s\n", listing->rows.line[i].text);
    }
    if (listing->options->output == NULL)
        terminal_read_state(&terminal);
    table_print(&table, &terminal, out);
    table_fini(&table);
}

/* ---- printing the locks ---- */

static void put_objects(struct listing *listing, struct outbuf *out)
{
    size_t i;

    for (i = 0; i < listing->rows.n; i++)
        outbuf_add(out, "%s", listing->rows.line[i].text);
}

static enum exit_reason print(struct listing *listing, const struct report *report)
{
    struct outbuf out = {.text = NULL};
    enum exit_reason reason;

    sorted_lines_sort(&listing->rows);
    switch (listing->format) {
    case LIST_FORMAT_TEXT:
        put_table(listing, &out);
        break;
    case LIST_FORMAT_JSON:
        put_objects(listing, &out);
        break;
    case LIST_FORMAT_PROMETHEUS:
        metrics_write(&listing->metrics, &out);
        break;
    }
    if (listing->rows.has_failed || listing->keys.has_failed)
        outbuf_fail(&out);
    reason = report_output(report, listing->options->output, &out);
    outbuf_fini(&out);
    return reason;
}

static enum exit_reason list(struct listing *listing, const struct session *session)
{
    bool is_for_metrics = listing->format == LIST_FORMAT_PROMETHEUS;
    struct rlock_visitor visitor = {.on_lock = take_listed,
                                    .on_last_end = is_for_metrics ? take_last_end : NULL,
                                    .context = listing};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st =
        rlock_list(session->lock, listing->options->argv[0], deadline_never, &visitor, &err);

    if (st == RLOCK_OK)
        st = inspect_each(listing, session->lock, &err);
    return st == RLOCK_OK ? print(listing, &session->report) : session_fault(session, &err);
}

int cmd_list(const struct options *options)
{
    struct listing listing = {.options = options, .format = format_of(options)};
    enum exit_reason reason;
    struct session session;

    session_init(&session, options);
    if (options->argv[0] != NULL && options->argv[1] != NULL)
        reason = report_fault(&session.report, REASON_USAGE, "only one pattern may be given", 0);
    else
        reason = session_open(&session, "rlock");
    if (reason == REASON_GRANTED)
        reason = list(&listing, &session);
    sorted_lines_fini(&listing.keys);
    sorted_lines_fini(&listing.rows);
    outbuf_fini(&listing.row);
    metrics_fini(&listing.metrics);
    session_close(&session);
    return exit_reason_status(reason);
}
