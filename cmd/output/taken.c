/* SPDX-License-Identifier: MIT */
/* taken: says why a lock is not free: who holds it, or why it is taken without a holder. */
#include "output/taken.h"

#include "options/units.h"
#include "output/wall_time.h"

#include <stdio.h>
#include <string.h>

#define FRESH_MS 1000 /* if the server's reply is older, the holder may have renewed since */
#define GRANT_MS 100  /* a last renewal this close to the grant is the grant itself */

static const struct {
    const char *mode;
    const char *role;
} words[] = {
    [RLOCK_SEEN_FREE] = {"free", "holder"},           [RLOCK_SEEN_KEPT] = {"kept", "next"},
    [RLOCK_SEEN_EXCLUSIVE] = {"exclusive", "holder"}, [RLOCK_SEEN_SHARED] = {"shared", "holder"},
    [RLOCK_SEEN_SLOTS] = {"slots", "holder"},         [RLOCK_SEEN_REST] = {"rest", "last_holder"},
    [RLOCK_SEEN_DONE] = {"done", "done_by"},          [RLOCK_SEEN_FOREIGN] = {"foreign", "holder"},
};

const char *taken_mode(enum rlock_seen seen)
{
    return words[seen].mode;
}

const char *taken_role(enum rlock_seen seen)
{
    return words[seen].role;
}

struct taken taken_of_obstacle(const struct rlock_obstacle *obstacle)
{
    return (struct taken){.seen = obstacle->seen,
                          .party = &obstacle->holder,
                          .left_ms = obstacle->left_ms,
                          .age_ms =
                              obstacle->seen_ms > 0 ? rlock_clock_ms() - obstacle->seen_ms : 0};
}

struct taken taken_of_view(const struct rlock_view *view)
{
    static const struct rlock_party nobody = {.text = "a holder that the server doesn't name",
                                              .slot = -1};
    const struct rlock_party *party = view->n_holders > 0 ? &view->holders[0] : view->other;

    return (struct taken){
        .seen = view->seen, .party = party != NULL ? party : &nobody, .left_ms = view->left_ms};
}

/* Write ", for another 42s", or that the key never expires. */
static void put_left(char text[64], const struct taken *taken)
{
    char left[UNITS_TEXT_BYTES];

    units_text(left, taken->left_ms - taken->age_ms);
    if (taken->left_ms < 0)
        snprintf(text, 64, "; never expires");
    else
        snprintf(text, 64, ", for another %s", left);
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
 * Write when the holder has renewed its lease last: "; renewed 4s ago". The text doesn't say when
 * the lease ends, because the holder will renew the lease before its end. But another program may
 * never renew its lock. So for the key of another program the text tells when the key expires, and
 * for a key without an expiry that it never does.
 */
static void put_renewed(char text[64], const struct taken *taken)
{
    const struct rlock_party *holder = taken->party;
    char length[UNITS_TEXT_BYTES];

    text[0] = '\0';
    if (taken->left_ms < 0) {
        snprintf(text, 64, "; never expires");
    } else if (taken->seen == RLOCK_SEEN_FOREIGN) {
        units_text(length, taken->left_ms - taken->age_ms);
        snprintf(text, 64, "; expires in %s", length);
    } else if (holder->renewed_ms >= 0 && taken->age_ms < FRESH_MS &&
               holder->renewed_ms + GRANT_MS < holder->for_ms) {
        units_text(length, holder->renewed_ms + taken->age_ms);
        snprintf(text, 64, "; renewed %s ago", length);
    }
}

void taken_text(char out[TAKEN_BYTES], const struct taken *taken)
{
    const struct rlock_party *party = taken->party;
    char since[UNITS_TEXT_BYTES];
    char held[UNITS_TEXT_BYTES + 8] = "";
    char left[UNITS_TEXT_BYTES];
    char until[WALL_TIME_BYTES + 8];
    char rest[64];

    units_text(since, party->for_ms + taken->age_ms);
    if (party->since_ms > 0)
        snprintf(held, sizeof held, "for %s ", since);
    switch (taken->seen) {
    case RLOCK_SEEN_FREE:
        units_text(left, taken->left_ms - taken->age_ms);
        snprintf(out, TAKEN_BYTES,
                 "not granted by %s: these may have forgotten a holder, and their "
                 "grants count again in %s",
                 party->text, left);
        break;
    case RLOCK_SEEN_EXCLUSIVE:
    case RLOCK_SEEN_SHARED:
    case RLOCK_SEEN_SLOTS:
    case RLOCK_SEEN_FOREIGN:
        put_until(until, taken);
        put_renewed(rest, taken);
        snprintf(out, TAKEN_BYTES, "held %sby %s%s%s", held, party->text, until, rest);
        break;
    case RLOCK_SEEN_KEPT:
        snprintf(out, TAKEN_BYTES, "kept for the next waiter, %s", party->text);
        break;
    case RLOCK_SEEN_REST:
        put_left(rest, taken);
        snprintf(out, TAKEN_BYTES, "still taken by the --min-hold of %s, which ended %s ago%s",
                 party->text, since, rest);
        break;
    case RLOCK_SEEN_DONE:
        put_left(rest, taken);
        snprintf(out, TAKEN_BYTES, "marked as done %s ago by %s (--once)%s", since, party->text,
                 rest);
        break;
    }
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
