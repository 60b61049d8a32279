/* SPDX-License-Identifier: MIT */
/* taken: says why a lock is not free: who holds it, or why it is taken without a holder. */
#include "output/taken.h"

#include "options/units.h"
#include "output/printable.h"
#include "output/wall_time.h"

#include <stdio.h>
#include <string.h>

#define FRESH_MS 1000 /* if the server's reply is older, the holder may have renewed since */
#define GRANT_MS 100  /* a last renewal this close to the grant is the grant itself */

static const struct {
    const char *mode;
    const char *role;
    const char *waits_for; /* what waiters wait for; NULL: for the party, which holds the lock */
} words[] = {
    [RLOCK_SEEN_FREE] = {"free", "holder", NULL},
    [RLOCK_SEEN_KEPT] = {"kept", "next", "the next in the queue"},
    [RLOCK_SEEN_EXCLUSIVE] = {"exclusive", "holder", NULL},
    [RLOCK_SEEN_SHARED] = {"shared", "holder", NULL},
    [RLOCK_SEEN_SLOTS] = {"slots", "holder", NULL},
    [RLOCK_SEEN_REST] = {"rest", "last_holder", "the end of --min-hold"},
    [RLOCK_SEEN_DONE] = {"done", "done_by", "the end of the --once mark"},
    [RLOCK_SEEN_FOREIGN] = {"foreign", "holder", NULL},
};

const char *taken_mode(enum rlock_seen seen)
{
    return words[seen].mode;
}

const char *taken_role(enum rlock_seen seen)
{
    return words[seen].role;
}

struct taken taken_of_obstacle(const struct rlock_obstacle *obstacle, int64_t now_ms)
{
    return (struct taken){.seen = obstacle->seen,
                          .party = &obstacle->holder,
                          .left_ms = obstacle->left_ms,
                          .age_ms = obstacle->seen_ms > 0 ? now_ms - obstacle->seen_ms : 0};
}

struct taken taken_of_view(const struct rlock_view *view)
{
    static const struct rlock_party nobody = {.text = "a holder that the server doesn't name",
                                              .slot = -1};
    const struct rlock_party *party = view->n_holders > 0 ? &view->holders[0] : view->other;

    return (struct taken){
        .seen = view->seen, .party = party != NULL ? party : &nobody, .left_ms = view->left_ms};
}

/* Write until when a person holds the lock: ", until 18:00:00"; "": a process holds it. */
static void put_until(char text[WALL_TIME_BYTES + 8], const struct taken *taken)
{
    char until[WALL_TIME_BYTES];

    text[0] = '\0';
    if (taken->party->hold_left_ms <= 0)
        return;
    wall_time_until(until, wall_time_now_ms() + taken->party->hold_left_ms - taken->age_ms);
    snprintf(text, WALL_TIME_BYTES + 8, ", until %s", until);
}

/*
 * Write for how long the key lasts (`left`, in words). But if rlock renews the key, write when it
 * was renewed last: "; renewed 4s ago", or "" if it wasn't yet or the server's reply is old.
 */
static void put_rest(char text[64], const struct taken *taken, const char *left)
{
    const struct rlock_party *holder = taken->party;
    char length[UNITS_TEXT_BYTES];

    text[0] = '\0';
    if (taken->left_ms < 0) {
        snprintf(text, 64, "; never expires");
    } else if (taken->seen == RLOCK_SEEN_REST || taken->seen == RLOCK_SEEN_DONE) {
        snprintf(text, 64, ", for another %s", left);
    } else if (taken->seen == RLOCK_SEEN_FOREIGN) {
        snprintf(text, 64, "; expires in %s", left);
    } else if (holder->renewed_ms >= 0 && taken->age_ms < FRESH_MS &&
               holder->renewed_ms + GRANT_MS < holder->for_ms) {
        units_text(length, holder->renewed_ms + taken->age_ms);
        snprintf(text, 64, "; renewed %s ago", length);
    }
}

void taken_text(char out[TAKEN_BYTES], const struct taken *taken)
{
    const struct rlock_party *party = taken->party;
    bool is_since_known = party->since_ms > 0;
    char since[UNITS_TEXT_BYTES];
    char left[UNITS_TEXT_BYTES];
    char until[WALL_TIME_BYTES + 8];
    char rest[64];

    units_text(since, party->for_ms + taken->age_ms);
    units_text(left, taken->left_ms - taken->age_ms);
    put_until(until, taken);
    put_rest(rest, taken, left);
    switch (taken->seen) {
    case RLOCK_SEEN_FREE:
        snprintf(out, TAKEN_BYTES,
                 "not granted by %s: these may have forgotten a holder, and their "
                 "grants count again in %s",
                 party->text, left);
        break;
    case RLOCK_SEEN_EXCLUSIVE:
    case RLOCK_SEEN_SHARED:
    case RLOCK_SEEN_SLOTS:
    case RLOCK_SEEN_FOREIGN:
        snprintf(out, TAKEN_BYTES, "held %s%s%sby %s%s%s", is_since_known ? "for " : "",
                 is_since_known ? since : "", is_since_known ? " " : "", party->text, until, rest);
        break;
    case RLOCK_SEEN_KEPT:
        snprintf(out, TAKEN_BYTES, "kept for the next waiter, %s", party->text);
        break;
    case RLOCK_SEEN_REST:
        snprintf(out, TAKEN_BYTES, "still taken by the --min-hold of %s, which ended %s ago%s",
                 party->text, since, rest);
        break;
    case RLOCK_SEEN_DONE:
        snprintf(out, TAKEN_BYTES, "marked as done %s ago by %s (--once)%s", since, party->text,
                 rest);
        break;
    }
}

void taken_row(char *out, size_t room, const struct taken *taken)
{
    const struct rlock_party *party = taken->party;
    const char *waits_for = words[taken->seen].waits_for;
    int64_t left_ms = party->hold_ms > 0 ? party->hold_left_ms : taken->left_ms;
    char holder[sizeof party->text * 4];
    char left[UNITS_TEXT_BYTES];

    printable_text(holder, sizeof holder, waits_for != NULL ? waits_for : party->text);
    units_text(left, left_ms - taken->age_ms + 999);
    snprintf(out, room, "%s%s%s%s", left_ms < 0 ? "never expires" : left,
             left_ms < 0 ? "" : " left", *holder != '\0' ? ", for " : "", holder);
}

void taken_add_facts(struct message *message, const struct taken *taken)
{
    const struct rlock_party *party = taken->party;
    bool is_held = strcmp(taken_role(taken->seen), "holder") == 0;

    if (taken->seen == RLOCK_SEEN_FREE)
        return;
    message_add(message, fact_text("mode", taken_mode(taken->seen)));
    if (taken->seen != RLOCK_SEEN_FOREIGN)
        message_add(message,
                    fact_party(taken_role(taken->seen), party, is_held ? "held_ms" : NULL));
    message_add(message, fact_number("left_ms", taken->left_ms));
}
