/* SPDX-License-Identifier: MIT */
/* list: tell all locks of the server. */
#include "cmd.h"

#include "output/rows.h"
#include "output/show.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

static const struct rlock_deadline whenever = {RLOCK_NEVER, -1};

struct listing {
    const struct options *options;
    struct rows keys; /* where several servers are to be asked about each */
    struct rows rows;
    struct page row; /* the one being made */
};

static void add_row(void *context, const struct rlock_view *view)
{
    struct listing *listing = context;

    page_empty(&listing->row);
    (listing->options->json ? show_as_json : show_as_row)(&listing->row, view);
    listing->rows.has_failed = listing->rows.has_failed || listing->row.has_failed;
    rows_add(&listing->rows, view->key, page_text(&listing->row));
}

static void note_key(void *context, const struct rlock_view *view)
{
    struct listing *listing = context;

    rows_add(&listing->keys, view->key, "");
}

static void add_taken(void *context, const struct rlock_view *view)
{
    if (view->seen != RLOCK_SEEN_FREE || *view->wrong != '\0')
        add_row(context, view);
}

/* Of several servers each lists its own, and the majority tells how a lock is. */
static enum rlock_status look_at_each(struct listing *listing, struct rlock *lock,
                                      struct rlock_error *err)
{
    struct rlock_visitor visitor = {.lock = add_taken, .context = listing};
    enum rlock_status st = RLOCK_OK;
    size_t i;

    rows_sort(&listing->keys);
    listing->rows.has_failed = listing->keys.has_failed;
    for (i = 0; st == RLOCK_OK && i < listing->keys.n; i++)
        st = rlock_inspect(lock, listing->keys.row[i].key, whenever, &visitor, err);
    return st;
}

/* All keys as they are shown, in columns as wide as the widest. */
static void put_columns(struct listing *listing, struct page *page)
{
    const struct rows *rows = &listing->rows;
    struct terminal terminal;
    int width = 3;
    size_t i;

    terminal_look(&terminal);
    for (i = 0; i < rows->n; i++) {
        char *key = show_key(rows->row[i].key, &terminal);

        page->has_failed = page->has_failed || key == NULL;
        if (key == NULL)
            return;
        free(rows->row[i].key);
        rows->row[i].key = key;
        if ((int)strlen(key) > width)
            width = (int)strlen(key);
    }
    if (rows->n > 0)
        page_add(page, "%s%-*s  %s%s\n", terminal_colour(&terminal, COLOUR_STRONG), width, "KEY",
                 SHOW_HEADINGS, terminal_colour(&terminal, COLOUR_NONE));
    for (i = 0; i < rows->n; i++)
        page_add(page, "%-*s  %s\n", width, rows->row[i].key, rows->row[i].line);
}

static enum exit_reason print(struct listing *listing, const struct report *report)
{
    struct page page = {.text = NULL};
    bool good;
    size_t i;

    rows_sort(&listing->rows);
    if (!listing->options->json)
        put_columns(listing, &page);
    for (i = 0; listing->options->json && i < listing->rows.n; i++)
        page_add(&page, "%s", listing->rows.row[i].line);
    page.has_failed = page.has_failed || listing->rows.has_failed;
    good = page_write(&page);
    page_fini(&page);
    return good ? REASON_GRANTED : report_fault(report, REASON_SYSTEM, "standard output", 0);
}

int cmd_list(const struct options *options)
{
    struct listing listing = {.options = options};
    bool is_one = options->n_urls <= 1;
    struct rlock_visitor visitor = {.lock = is_one ? add_row : note_key, .context = &listing};
    struct rlock_error err = {.status = RLOCK_OK};
    enum exit_reason reason;
    struct session session;
    enum rlock_status st;

    session_init(&session, options);
    if (options->argv[0] != NULL && options->argv[1] != NULL) {
        reason = report_fault(&session.report, REASON_USAGE, "one pattern is possible", 0);
        return exit_reason_row(reason)->status;
    }
    st = session_open(&session, "rlock", &err);
    if (st == RLOCK_OK)
        st = rlock_list(session.lock, options->argv[0], whenever, &visitor, &err);
    if (st == RLOCK_OK && !is_one)
        st = look_at_each(&listing, session.lock, &err);
    if (st == RLOCK_OK)
        reason = print(&listing, &session.report);
    else
        reason = session_give_up(&session, &err);
    rows_fini(&listing.keys);
    rows_fini(&listing.rows);
    page_fini(&listing.row);
    session_close(&session);
    return reason == REASON_GRANTED ? 0 : exit_reason_row(reason)->status;
}
