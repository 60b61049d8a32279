/* SPDX-License-Identifier: MIT */
/* history: show who held a lock, for how long, and how each hold ended. */
#include "cmd.h"

#include "base/clock.h"
#include "options/units.h"
#include "output/bar.h"
#include "output/json.h"
#include "output/outbuf.h"
#include "output/printable.h"
#include "output/show.h"
#include "output/table.h"
#include "output/wall_time.h"
#include "session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define END_BYTES 500

/* The columns of the table. */
enum column {
    COLUMN_KEY,
    COLUMN_GRANTED,
    COLUMN_WAITED,
    COLUMN_HELD,
    COLUMN_BAR,
    COLUMN_END,
    COLUMN_HOLDER
};

struct history {
    const struct options *options;
    struct sorted_lines keys; /* the locks to show */
    struct table table;
    struct outbuf out; /* the objects of --json, or the whole table at the end */
};

/* ---- the holds as a table ---- */

static void put_length(char text[UNITS_TEXT_BYTES], int64_t ms)
{
    if (ms < 0)
        snprintf(text, UNITS_TEXT_BYTES, "?");
    else
        units_tenths(text, ms);
}

/* Writes how the hold ended, by what the holder has sent with its release. */
static void put_own_end(char *text, size_t room, const struct rlock_hold *hold)
{
    if (hold->status < 0)
        snprintf(text, room, "released");
    else if (strcmp(hold->reason, "exited") == 0)
        snprintf(text, room, "status %d", hold->status);
    else if (strcmp(hold->reason, "signal") == 0)
        snprintf(text, room, "status %d, signal %d", hold->status, hold->status - 128);
    else if (strcmp(hold->reason, "done") == 0)
        snprintf(text, room, "status %d, marked as done", hold->status);
    else
        snprintf(text, room, "status %d, %s", hold->status, hold->reason);
}

static void put_end(char text[END_BYTES], const struct rlock_hold *hold)
{
    char own[80];
    char by[WALL_TIME_BYTES];
    size_t used;

    put_own_end(own, sizeof own, hold);
    switch (hold->end) {
    case RLOCK_HOLD_NOW:
        snprintf(text, END_BYTES, "held now");
        break;
    case RLOCK_HOLD_ENDED:
        snprintf(text, END_BYTES, "%s", own);
        break;
    case RLOCK_HOLD_RELEASED:
        snprintf(text, END_BYTES, "released by %s", hold->by.text);
        break;
    case RLOCK_HOLD_BROKEN:
        snprintf(text, END_BYTES, "broken by %s", hold->by.text);
        break;
    case RLOCK_HOLD_LOST:
        snprintf(text, END_BYTES, "lost before its end: %s", own);
        break;
    case RLOCK_HOLD_VANISHED:
        wall_time_until(by, hold->ended_ms);
        snprintf(text, END_BYTES, "gone by %s", by);
        break;
    }
    used = strlen(text);
    if (hold->n_alike < hold->n_members)
        snprintf(text + used, END_BYTES - used, ", on %zu of %zu servers", hold->n_alike,
                 hold->n_members);
}

static void add_row(struct history *history, const struct rlock_hold *hold)
{
    char granted[WALL_TIME_BYTES] = "?";
    char waited[UNITS_TEXT_BYTES];
    char held[UNITS_TEXT_BYTES];
    struct outbuf *rows = &history->table.rows;
    char end[END_BYTES];
    char shown_end[END_BYTES * 4];
    char holder[sizeof hold->holder.text * 4] = "?";

    if (hold->holder.since_ms > 0) {
        wall_time_local(granted, hold->holder.since_ms);
        printable_text(holder, sizeof holder, hold->holder.text);
    }
    put_length(waited, hold->waited_ms);
    put_length(held, hold->held_ms);
    put_end(end, hold);
    printable_text(shown_end, sizeof shown_end, end);
    show_key(rows, hold->key, SIZE_MAX);
    outbuf_add(rows, "\t%.19s\t%s\t%s\t%" PRId64 " %" PRId64 "\t%s\t%s\n", granted, waited, held,
               hold->waited_ms, hold->held_ms, shown_end, holder);
}

/* ---- the holds as JSON ---- */

static void add_json(struct history *history, const struct rlock_hold *hold)
{
    static const char *const ends[] = {
        [RLOCK_HOLD_NOW] = "held",          [RLOCK_HOLD_ENDED] = "ended",
        [RLOCK_HOLD_RELEASED] = "released", [RLOCK_HOLD_BROKEN] = "broken",
        [RLOCK_HOLD_LOST] = "lost",         [RLOCK_HOLD_VANISHED] = "vanished",
    };
    size_t room = (strlen(hold->key) + 2 * sizeof hold->holder) * JSON_BYTES_EACH + 1000;
    char *text = malloc(room);
    struct json json;

    if (text == NULL) {
        outbuf_fail(&history->out);
        return;
    }
    json_begin(&json, text, room);
    json_string(&json, "key", hold->key);
    json_string(&json, "end", ends[hold->end]);
    if (hold->holder.since_ms > 0)
        json_time(&json, "granted", hold->holder.since_ms);
    if (hold->waited_ms >= 0)
        json_number(&json, "waited_ms", hold->waited_ms);
    if (hold->end == RLOCK_HOLD_VANISHED) {
        json_time(&json, "after", hold->alive_ms);
        json_time(&json, "before", hold->ended_ms);
    } else if (hold->ended_ms > 0) {
        json_time(&json, "ended", hold->ended_ms);
    }
    if (hold->held_ms >= 0)
        json_number(&json, "held_ms", hold->held_ms);
    if (hold->status >= 0) {
        json_number(&json, "status", hold->status);
        json_string(&json, "reason", hold->reason);
    }
    if (hold->renewals >= 0)
        json_number(&json, "renewals", hold->renewals);
    if (hold->fence > 0)
        json_unsigned(&json, "fence", hold->fence);
    if (hold->holder.since_ms > 0)
        json_party(&json, "holder", &hold->holder, NULL);
    if (hold->by.text[0] != '\0')
        json_party(&json, "by", &hold->by, NULL);
    if (hold->n_members > 1) {
        json_number(&json, "members", (int64_t)hold->n_members);
        json_number(&json, "alike", (int64_t)hold->n_alike);
    }
    json_end(&json);
    outbuf_add(&history->out, "%s", text);
    free(text);
}

/* ---- carrying out the verb ---- */

static void see_hold(void *context, const struct rlock_hold *hold)
{
    struct history *history = context;

    if (history->options->json)
        add_json(history, hold);
    else
        add_row(history, hold);
}

static void see_key(void *context, const char *key)
{
    struct history *history = context;

    sorted_lines_add(&history->keys, key, "");
}

/* Finds the locks to show: those of -k, or all that have a history and match the pattern. */
static enum rlock_status find_locks(struct history *history, struct rlock *lock,
                                    const struct rlock_history_visitor *visitor,
                                    struct rlock_error *err)
{
    const struct options *options = history->options;
    enum rlock_status st = RLOCK_OK;
    size_t i;

    for (i = 0; i < options->n_keys; i++)
        see_key(history, options->keys[i]);
    if (options->n_keys == 0)
        st = rlock_history_keys(lock, options->argv[0], deadline_never, visitor, err);
    sorted_lines_sort(&history->keys);
    return st;
}

static enum exit_reason print(struct history *history, const struct session *session)
{
    struct terminal terminal;

    terminal_read_state(&terminal);
    table_print(&history->table, &terminal, &history->out); /* with --json the table has no row */
    if (history->keys.has_failed)
        outbuf_fail(&history->out);
    return report_output(&session->report, NULL, &history->out);
}

static enum exit_reason show(struct history *history, struct session *session)
{
    const struct rlock_history_visitor visitor = {
        .on_hold = see_hold, .on_key = see_key, .context = history};
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st = find_locks(history, session->lock, &visitor, &err);
    size_t i;

    for (i = 0; st == RLOCK_OK && i < history->keys.n; i++) {
        report_set_key(&session->report, history->keys.line[i].key);
        st = rlock_history(session->lock, history->keys.line[i].key, history->options->since_ms,
                           deadline_never, &visitor, &err);
    }
    return st == RLOCK_OK ? print(history, session) : session_fault(session, &err);
}

int cmd_history(const struct options *options)
{
    struct history history = {
        .options = options,
        .table = {.heading = {[COLUMN_KEY] = "KEY",
                              [COLUMN_GRANTED] = "GRANTED",
                              [COLUMN_WAITED] = "WAITED",
                              [COLUMN_HELD] = "HELD",
                              [COLUMN_BAR] = bar_heading(),
                              [COLUMN_END] = "END",
                              [COLUMN_HOLDER] = "HOLDER"},
                  .bars = COLUMN_BAR,
                  .to_drop = {COLUMN_WAITED, COLUMN_BAR, COLUMN_HOLDER, COLUMN_HELD, -1}}};
    struct session session;
    enum exit_reason reason;

    session_init(&session, options);
    if (options->argv[0] != NULL && (options->argv[1] != NULL || options->n_keys > 0))
        reason = report_fault(&session.report, REASON_USAGE,
                              "give one pattern, or locks by -k, not both", 0);
    else
        reason = session_open(&session, "rlock");
    if (reason == REASON_GRANTED)
        reason = show(&history, &session);
    sorted_lines_fini(&history.keys);
    table_fini(&history.table);
    outbuf_fini(&history.out);
    session_close(&session);
    return exit_reason_status(reason);
}
