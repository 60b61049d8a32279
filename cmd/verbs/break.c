/* SPDX-License-Identifier: MIT */
/* break: take a lock away from whoever holds it. */
#include "cmd.h"

#include "base/clock.h"
#include "base/err.h"
#include "output/terminal.h"
#include "session/session.h"

#include <rlock_admin.h>
#include <stdio.h>
#include <string.h>

#define HOLDERS_SHOWN 3

/*
 * The lock as it was when rlock asked the user. The server breaks the lock only if it still has the
 * same holders.
 */
struct target {
    enum rlock_seen seen;
    char name[128];                         /* identifies the key's value, for rlock_break() */
    char holders[HOLDERS_SHOWN * 264 + 32]; /* the holders as text for the user */
};

static void note_target(void *context, const struct rlock_view *view)
{
    struct target *target = context;
    size_t used = 0;
    size_t i;

    target->seen = view->seen;
    snprintf(target->name, sizeof target->name, "%s", view->name);
    snprintf(target->holders, sizeof target->holders, "nobody");
    for (i = 0; i < view->n_holders && i < HOLDERS_SHOWN; i++)
        used += (size_t)snprintf(target->holders + used, sizeof target->holders - used, "%s%s",
                                 i > 0 ? ", and " : "", view->holders[i].text);
    if (view->n_all > i)
        snprintf(target->holders + used, sizeof target->holders - used, ", and %zu more",
                 view->n_all - i);
}

/* Report the message, with the text `holders` appended to its reason. */
static void say(const struct session *session, struct message message, const char *holders)
{
    char why[sizeof(struct target)];

    snprintf(why, sizeof why, "%s%s", message.why, holders);
    message.why = why;
    report_say(&session->report, REPORT_NOTICE, message);
}

static bool may_break(const struct session *session, const struct target *target)
{
    char question[sizeof(struct target) + 256];
    char key[128];

    if (session->options->yes)
        return true;
    err_escape(key, sizeof key, session->report.key);
    snprintf(question, sizeof question, "rlock: %s: held by %s: break it?", key, target->holders);
    return terminal_ask(question);
}

/* Break the lock. REASON_GRANTED: the holders in `target` don't hold the lock any more. */
static enum exit_reason break_target(struct session *session, const struct target *target)
{
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st;

    st = rlock_break(session->lock, session->report.key, target->name, deadline_never, &err);
    if (st == RLOCK_OK) {
        say(session, (struct message){.what = "broken", .why = "it was held by "}, target->holders);
        return REASON_GRANTED;
    }
    if (st == RLOCK_GONE) {
        say(session,
            (struct message){.what = "free", .why = "its holder has released it meanwhile"}, "");
        return REASON_GRANTED;
    }
    if (st != RLOCK_BUSY)
        return session_fault(session, &err);
    say(session,
        (struct message){.what = exit_reason_row(REASON_BUSY)->name,
                         .why = "it was not broken: another holder has it by now"},
        "");
    return REASON_BUSY;
}

static enum exit_reason break_one(struct session *session)
{
    struct target target = {.seen = RLOCK_SEEN_FREE};
    struct rlock_visitor visitor = {.on_lock = note_target, .context = &target};
    struct rlock_error err = {.status = RLOCK_OK};
    enum exit_reason reason = session_open(session, "rlock");

    if (reason != REASON_GRANTED)
        return reason;
    if (rlock_inspect(session->lock, session->report.key, deadline_never, &visitor, &err) !=
        RLOCK_OK)
        return session_fault(session, &err);
    if (target.seen == RLOCK_SEEN_FREE || target.seen == RLOCK_SEEN_KEPT) {
        say(session, (struct message){.what = "free", .why = "nobody holds it"}, "");
        return REASON_GRANTED;
    }
    if (!may_break(session, &target)) {
        say(session,
            (struct message){.what = exit_reason_row(REASON_BUSY)->name,
                             .why = "the lock was not broken: it is held by "},
            target.holders);
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
