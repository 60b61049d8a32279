/* SPDX-License-Identifier: MIT */
/* list: list all locks of the server. */
#include "cmd.h"

#include "base/clock.h"
#include "output/outbuf.h"
#include "output/show.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

struct listing {
    const struct options *options;
    struct sorted_lines keys; /* with a quorum: each key that at least one member has listed */
    struct sorted_lines rows; /* a line of output for each lock, sorted by the lock's key */
    struct outbuf row;        /* the line that show_as_row() or show_as_json() writes */
};

static void add_row(void *context, const struct rlock_view *view)
{
    struct listing *listing = context;

    outbuf_clear(&listing->row);
    (listing->options->json ? show_as_json : show_as_row)(&listing->row, view);
    sorted_lines_add(&listing->rows, view->key,
                     listing->row.has_failed ? NULL : outbuf_text(&listing->row));
}

static void add_key(void *context, const struct rlock_view *view)
{
    struct listing *listing = context;

    sorted_lines_add(&listing->keys, view->key, "");
}

static void add_taken(void *context, const struct rlock_view *view)
{
    if (view->seen != RLOCK_SEEN_FREE || *view->wrong != '\0')
        add_row(context, view);
}

/*
 * In a quorum each member has listed its own locks. Ask all members for each lock again, as only a
 * majority knows the lock's state.
 */
static enum rlock_status inspect_each(struct listing *listing, struct rlock *lock,
                                      struct rlock_error *err)
{
    struct rlock_visitor visitor = {.on_lock = add_taken, .context = listing};
    enum rlock_status st = RLOCK_OK;
    size_t i;

    sorted_lines_sort(&listing->keys);
    for (i = 0; st == RLOCK_OK && i < listing->keys.n; i++)
        st = rlock_inspect(lock, listing->keys.line[i].key, deadline_never, &visitor, err);
    return st;
}

/* Make the table. Its first column is as wide as the longest key. */
static void put_table(struct listing *listing, struct outbuf *out)
{
    struct sorted_lines *rows = &listing->rows;
    struct terminal terminal;
    int width = 3;
    size_t i;

    terminal_read_state(&terminal);
    for (i = 0; i < rows->n; i++) {
        char *key = show_key(rows->line[i].key, &terminal);

        if (key == NULL) {
            outbuf_fail(out);
            return;
        }
        sorted_lines_set_key(rows, i, key);
        if ((int)strlen(key) > width)
            width = (int)strlen(key);
    }
    if (rows->n > 0)
        outbuf_add(out, "%s%-*s  %s%s\n", terminal_colour(&terminal, COLOUR_STRONG), width, "KEY",
                   SHOW_HEADINGS, terminal_colour(&terminal, COLOUR_NONE));
    for (i = 0; i < rows->n; i++)
        outbuf_add(out, "%-*s  %s\n", width, rows->line[i].key, rows->line[i].text);
}

static enum exit_reason print(struct listing *listing, const struct report *report)
{
    struct outbuf out = {.text = NULL};
    enum exit_reason reason;
    size_t i;

    sorted_lines_sort(&listing->rows);
    if (!listing->options->json)
        put_table(listing, &out);
    for (i = 0; listing->options->json && i < listing->rows.n; i++)
        outbuf_add(&out, "%s", listing->rows.line[i].text);
    if (listing->rows.has_failed || listing->keys.has_failed)
        outbuf_fail(&out);
    reason = report_output(report, &out);
    outbuf_fini(&out);
    return reason;
}

static enum exit_reason list(struct listing *listing, const struct session *session)
{
    const struct options *options = listing->options;
    bool is_one = options->n_urls <= 1;
    struct rlock_visitor visitor = {.on_lock = is_one ? add_row : add_key, .context = listing};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st =
        rlock_list(session->lock, options->argv[0], deadline_never, &visitor, &err);

    if (st == RLOCK_OK && !is_one)
        st = inspect_each(listing, session->lock, &err);
    return st == RLOCK_OK ? print(listing, &session->report) : session_fault(session, &err);
}

int cmd_list(const struct options *options)
{
    struct listing listing = {.options = options};
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
    session_close(&session);
    return exit_reason_status(reason);
}
