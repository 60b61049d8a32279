/* SPDX-License-Identifier: MIT */
/* break: take a lock away from whoever holds it. */
#include "cmd.h"

#include "base/clock.h"
#include "base/err.h"
#include "output/taken.h"
#include "output/terminal.h"
#include "session/session.h"

#include <rlock_admin.h>
#include <stdio.h>
#include <string.h>

#define HOLDERS_SHOWN 3
#define MORE_BYTES (HOLDERS_SHOWN * 264 + 32)

/* The lock as the user sees it. rlock_break() refuses if the lock has other holders by then. */
struct target {
    struct taken taken;       /* taken.party points to `party` below */
    struct rlock_party party; /* the first holder, or the party that taken_role() names */
    size_t n_others;          /* number of the other holders */
    char name[128];           /* tells rlock_break() which value of the key to remove */
    /* what the user reads about the lock: "held for 3m41s by ..." */
    char words[TAKEN_BYTES + MORE_BYTES];
};

static void note_target(void *context, const struct rlock_view *view)
{
    struct target *target = context;
    size_t used;
    size_t i;

    target->taken = taken_of_view(view);
    target->party = *target->taken.party;
    target->taken.party = &target->party;
    target->n_others = view->n_all > 0 ? view->n_all - 1 : 0;
    snprintf(target->name, sizeof target->name, "%s", view->name);
    taken_text(target->words, &target->taken);
    used = strlen(target->words);
    for (i = 1; i < view->n_holders && i < HOLDERS_SHOWN; i++)
        used += (size_t)snprintf(target->words + used, sizeof target->words - used, "; and by %s",
                                 view->holders[i].text);
    if (view->n_all > i)
        snprintf(target->words + used, sizeof target->words - used, "; and by %zu more",
                 view->n_all - i);
}

/* Report an event, with the text `before`, then target->words. */
static void say(const struct session *session, enum event what, const char *before,
                const struct target *target)
{
    struct message message = {.what = what};
    char why[sizeof target->words + 64];

    snprintf(why, sizeof why, "%s%s", before, target->words);
    message.why = why;
    taken_add_facts(&message, &target->taken);
    if (target->n_others > 0)
        message_add(&message, fact_number("others", (int64_t)target->n_others));
    report_say(&session->report, REPORT_NOTICE, message);
}

static bool may_break(const struct session *session, const struct target *target)
{
    static const char *const questions[] = {[RLOCK_SEEN_REST] = "free it",
                                            [RLOCK_SEEN_DONE] = "remove the mark",
                                            [RLOCK_SEEN_FOREIGN] = "break it"};
    const char *question = questions[target->taken.seen];
    char text[sizeof target->words + 256];
    char key[128];

    if (session->options->yes)
        return true;
    err_escape(key, sizeof key, session->report.key);
    snprintf(text, sizeof text, "rlock: %s: %s: %s?", key, target->words,
             question != NULL ? question : "break it");
    return terminal_ask(text);
}

/* Break the lock. REASON_GRANTED: the holders in `target` no longer hold the lock. */
static enum exit_reason break_target(struct session *session, const struct target *target)
{
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st;

    st = rlock_break(session->lock, session->report.key, target->name, deadline_never, &err);
    if (st == RLOCK_OK) {
        say(session, EVENT_BROKEN, "it was ", target);
        return REASON_GRANTED;
    }
    if (st == RLOCK_GONE) {
        report_event(&session->report, REPORT_NOTICE, EVENT_FREE,
                     "the lock has become free meanwhile", NULL);
        return REASON_GRANTED;
    }
    if (st != RLOCK_BUSY)
        return session_fault(session, &err);
    report_event(&session->report, REPORT_NOTICE, EVENT_BUSY,
                 "the lock was not broken: another holder has it by now", NULL);
    return REASON_BUSY;
}

static enum exit_reason break_one(struct session *session)
{
    struct target target = {.taken = {.seen = RLOCK_SEEN_FREE}};
    struct rlock_visitor visitor = {.on_lock = note_target, .context = &target};
    struct rlock_error err = {.status = RLOCK_OK};
    enum exit_reason reason = session_open(session, "rlock");

    if (reason != REASON_GRANTED)
        return reason;
    if (rlock_inspect(session->lock, session->report.key, deadline_never, &visitor, &err) !=
        RLOCK_OK)
        return session_fault(session, &err);
    if (target.taken.seen == RLOCK_SEEN_FREE) {
        report_event(&session->report, REPORT_NOTICE, EVENT_FREE, "nobody holds the lock", NULL);
        return REASON_GRANTED;
    }
    if (target.taken.seen == RLOCK_SEEN_KEPT) {
        say(session, EVENT_FREE, "nobody holds the lock; it is ", &target);
        return REASON_GRANTED;
    }
    if (!may_break(session, &target)) {
        say(session, EVENT_BUSY, "the lock was not broken: ", &target);
        return REASON_BUSY;
    }
    return break_target(session, &target);
}

int cmd_break(const struct options *options)
{
    struct session session;
    enum exit_reason reason;

    session_init(&session, options);
    if (!options->yes && !terminal_can_ask())
        reason = report_fault(
            &session.report, REASON_USAGE,
            "there is no terminal to ask on: give --yes to break the lock without a question", 0);
    else
        reason = break_one(&session);
    session_close(&session);
    return exit_reason_status(reason);
}
