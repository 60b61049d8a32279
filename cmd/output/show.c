/* SPDX-License-Identifier: MIT */
/*
 * show: the state of a lock, and doctor's grades, as text for people or JSON for programs.
 *
 * Every user of the server can choose the bytes of a key and of its value. So text for people goes
 * through printable.c, and JSON through json.c, so that no byte acts on a terminal.
 */
#include "output/show.h"

#include "base/err.h"
#include "options/units.h"
#include "output/json.h"
#include "output/printable.h"
#include "output/report.h"
#include "output/taken.h"
#include "output/wall_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_COLUMNS 64  /* on a terminal a longer key is cut */
#define WRONG_BYTES 600 /* room for the names of helper keys whose values rlock didn't write */
#define PARTY_JSON (sizeof(struct rlock_party) * JSON_BYTES_EACH + 256)

static const struct {
    const char *words;
    enum colour colour;
    /* how the text names rlock_view.other; NULL: a lock in this state has no `other` */
    const char *other;
} states[] = {
    [RLOCK_SEEN_FREE] = {"free", COLOUR_GREEN, NULL},
    [RLOCK_SEEN_KEPT] = {"free, and kept for the first in the queue", COLOUR_YELLOW, "next"},
    [RLOCK_SEEN_EXCLUSIVE] = {"held", COLOUR_RED, NULL},
    [RLOCK_SEEN_SHARED] = {"held, shared", COLOUR_RED, NULL},
    [RLOCK_SEEN_SLOTS] = {"held, by slots", COLOUR_RED, NULL},
    [RLOCK_SEEN_REST] = {"still taken after its holder has ended (--min-hold)", COLOUR_YELLOW,
                         "was held"},
    [RLOCK_SEEN_DONE] = {"done, and not to be run again for now (--once)", COLOUR_YELLOW,
                         "done by"},
    [RLOCK_SEEN_FOREIGN] = {"held by another program", COLOUR_RED, NULL},
};

const struct grade grade_table[RLOCK_GRADE_UNSAFE + 1] = {
    [RLOCK_GRADE_GOOD] = {"good", COLOUR_GREEN},
    [RLOCK_GRADE_UNKNOWN] = {"unknown", COLOUR_YELLOW},
    [RLOCK_GRADE_WEAK] = {"weak", COLOUR_YELLOW},
    [RLOCK_GRADE_UNSAFE] = {"unsafe", COLOUR_RED},
};

static const char *wrong_of(const struct rlock_view *view)
{
    return view->wrong == NULL ? "" : view->wrong;
}

static void put_left(char text[UNITS_TEXT_BYTES], int64_t left_ms)
{
    if (left_ms < 0)
        snprintf(text, UNITS_TEXT_BYTES, "for ever");
    else
        units_text(text, left_ms);
}

void show_key(struct outbuf *out, const char *key, size_t columns)
{
    size_t room = strlen(key) * 4 + 16;
    char *escaped = malloc(room);
    char *text = malloc(room);

    if (escaped != NULL && text != NULL) {
        err_escape(escaped, room, key);
        printable_text(text, room, escaped);
        printable_fit(text, columns);
        outbuf_add(out, "%s", text);
    } else {
        outbuf_fail(out);
    }
    free(escaped);
    free(text);
}

/* The text about a holder or a waiter, escaped by printable_text(). */
struct party_text {
    char text[sizeof((struct rlock_party){0}.text) * 4];
};

static struct party_text text_of(const struct rlock_party *party)
{
    struct party_text shown;

    printable_text(shown.text, sizeof shown.text, party->text);
    return shown;
}

/* ---- a lock as text ---- */

static void add_details(struct outbuf *out, const struct rlock_party *party)
{
    char since[WALL_TIME_BYTES];
    char until[WALL_TIME_BYTES];
    char length[UNITS_TEXT_BYTES];

    if (party->slot >= 0)
        outbuf_add(out, "    slot     %" PRId64 "\n", party->slot);
    if (party->since_ms == 0)
        return;
    units_text(length, party->for_ms);
    wall_time_local(since, party->since_ms);
    outbuf_add(out, "    since    %s, for %s\n", since, length);
    if (party->hold_left_ms <= 0)
        return;
    units_text(length, party->hold_left_ms);
    wall_time_local(until, wall_time_now_ms() + party->hold_left_ms);
    outbuf_add(out, "    until    %s, in %s\n", until, length);
}

static void lock_as_text(struct shown *shown, const struct rlock_view *view)
{
    struct outbuf *out = &shown->lock;
    char left[UNITS_TEXT_BYTES];
    char wrong[WRONG_BYTES];
    size_t i;

    outbuf_add(out, "%s", terminal_colour(shown->terminal, COLOUR_STRONG));
    show_key(out, view->key, shown->terminal->is_terminal ? KEY_COLUMNS : SIZE_MAX);
    outbuf_add(out, "%s: %s%s%s\n", terminal_colour(shown->terminal, COLOUR_NONE),
               terminal_colour(shown->terminal, states[view->seen].colour),
               states[view->seen].words, terminal_colour(shown->terminal, COLOUR_NONE));
    for (i = 0; i < view->n_holders; i++) {
        outbuf_add(out, "    holder   %s\n", text_of(&view->holders[i]).text);
        add_details(out, &view->holders[i]);
    }
    if (view->other != NULL) {
        outbuf_add(out, "    %-8s %s\n", states[view->seen].other, text_of(view->other).text);
        add_details(out, view->other);
    }
    if (view->n_all > view->n_holders)
        outbuf_add(out, "    holders  %zu more\n", view->n_all - view->n_holders);
    if (view->seen != RLOCK_SEEN_FREE) {
        put_left(left, view->left_ms);
        outbuf_add(out, "    left     %s\n", left);
    }
    if (view->fence > 0)
        outbuf_add(out, "    fence    %" PRIu64 "\n", view->fence);
    if (*wrong_of(view) != '\0') {
        printable_key(wrong, sizeof wrong, wrong_of(view));
        outbuf_add(out, "    wrong    %s\n", wrong);
    }
    if (view->n_members > 1)
        outbuf_add(out, "    servers  %zu of %zu agree\n", view->n_alike, view->n_members);
}

static void waiter_as_text(struct shown *shown, const struct rlock_party *waiter)
{
    char length[UNITS_TEXT_BYTES];

    units_text(length, waiter->for_ms);
    outbuf_add(&shown->waiters, "    %7zu  %s, for %s\n", shown->n_waiters, text_of(waiter).text,
               length);
}

void show_as_row(struct outbuf *out, const struct rlock_view *view)
{
    const struct rlock_party *holder = view->n_holders > 0 ? &view->holders[0] : NULL;
    char left[UNITS_TEXT_BYTES];
    char held[UNITS_TEXT_BYTES] = "-";
    char until[WALL_TIME_BYTES];
    char waiting[32] = "-";
    char wrong[WRONG_BYTES];

    put_left(left, view->left_ms);
    if (holder != NULL && holder->since_ms > 0)
        units_text(held, holder->for_ms);
    if (view->waiting >= 0)
        snprintf(waiting, sizeof waiting, "%" PRId64, view->waiting);
    outbuf_add(out, "%s\t%s\t%s\t%s\t%s", taken_mode(view->seen), left, waiting, held,
               holder == NULL ? "-" : text_of(holder).text);
    if (holder != NULL && holder->hold_left_ms > 0) {
        wall_time_until(until, wall_time_now_ms() + holder->hold_left_ms);
        outbuf_add(out, ", until %s", until);
    }
    if (view->n_all > 1)
        outbuf_add(out, ", and %zu more", view->n_all - 1);
    if (*wrong_of(view) != '\0') {
        printable_key(wrong, sizeof wrong, wrong_of(view));
        outbuf_add(out, "; wrong: %s", wrong);
    }
}

/* ---- a lock as JSON ---- */

/* Append a holder or a waiter as an object. `for_name` is as for json_party(). */
static void party_as_json(struct outbuf *out, const struct rlock_party *party, const char *for_name)
{
    char text[PARTY_JSON];
    struct json json;

    json_begin(&json, text, sizeof text);
    json_party_members(&json, party, for_name);
    outbuf_add(out, "%s}", text);
}

/* Write a lock as an object, but without its final "}": the caller adds the waiters. */
static void lock_as_json(struct outbuf *out, const struct rlock_view *view)
{
    const char *value = view->value == NULL ? "" : view->value;
    size_t room = (strlen(view->key) + strlen(value) + strlen(wrong_of(view))) * JSON_BYTES_EACH +
                  PARTY_JSON + 512;
    char *text = malloc(room);
    struct json json;
    size_t i;

    if (text == NULL) {
        outbuf_fail(out);
        return;
    }
    json_begin(&json, text, room);
    json_string(&json, "key", view->key);
    json_string(&json, "mode", taken_mode(view->seen));
    if (view->seen != RLOCK_SEEN_FREE)
        json_number(&json, "left_ms", view->left_ms);
    if (view->fence > 0)
        json_unsigned(&json, "fence", view->fence);
    if (view->value != NULL)
        json_string(&json, "value", value);
    if (*wrong_of(view) != '\0')
        json_string(&json, "wrong", wrong_of(view));
    if (view->other != NULL)
        json_party(&json, taken_role(view->seen), view->other, NULL);
    if (view->n_members > 1) {
        json_number(&json, "members", (int64_t)view->n_members);
        json_number(&json, "alike", (int64_t)view->n_alike);
    }
    outbuf_add(out, "%s,\"holders\":[", text);
    free(text);
    for (i = 0; view->seen != RLOCK_SEEN_FOREIGN && i < view->n_holders; i++) {
        outbuf_add(out, "%s", i > 0 ? "," : "");
        party_as_json(out, &view->holders[i], "held_ms");
    }
    outbuf_add(out, "]");
}

void show_as_json(struct outbuf *out, const struct rlock_view *view)
{
    lock_as_json(out, view);
    if (view->waiting >= 0)
        outbuf_add(out, ",\"waiting\":%" PRId64, view->waiting);
    outbuf_add(out, "}\n");
}

/* ---- filling a struct shown, and printing it ---- */

void show_init(struct shown *shown, bool as_json, const struct terminal *terminal)
{
    *shown = (struct shown){.as_json = as_json, .terminal = terminal};
}

void show_clear(struct shown *shown)
{
    outbuf_clear(&shown->lock);
    outbuf_clear(&shown->waiters);
    outbuf_clear(&shown->identity);
    shown->n_waiters = 0;
}

void show_lock(void *context, const struct rlock_view *view)
{
    struct shown *shown = context;

    if (shown->as_json)
        lock_as_json(&shown->lock, view);
    else
        lock_as_text(shown, view);
    outbuf_add(&shown->identity, "%s %s\n", view->key, view->name);
}

void show_waiter(void *context, const struct rlock_party *waiter)
{
    struct shown *shown = context;

    shown->n_waiters++;
    if (shown->as_json) {
        outbuf_add(&shown->waiters, "%s", shown->n_waiters > 1 ? "," : "");
        party_as_json(&shown->waiters, waiter, "waited_ms");
    } else {
        waiter_as_text(shown, waiter);
    }
    outbuf_add(&shown->identity, "%s %" PRId64 "\n", waiter->text, waiter->since_ms);
}

void show_end(struct shown *shown, struct outbuf *out)
{
    outbuf_add(out, "%s", outbuf_text(&shown->lock));
    if (shown->as_json)
        outbuf_add(out, ",\"waiting\":%zu,\"waiters\":[%s]}\n", shown->n_waiters,
                   outbuf_text(&shown->waiters));
    else if (shown->n_waiters > 0)
        outbuf_add(out, "    waiting  %zu\n%s", shown->n_waiters, outbuf_text(&shown->waiters));
    if (shown->lock.has_failed || shown->waiters.has_failed)
        outbuf_fail(out);
    outbuf_clear(&shown->lock);
    outbuf_clear(&shown->waiters);
    shown->n_waiters = 0;
}

void show_fini(struct shown *shown)
{
    outbuf_fini(&shown->lock);
    outbuf_fini(&shown->waiters);
    outbuf_fini(&shown->identity);
}
