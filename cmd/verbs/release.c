/* SPDX-License-Identifier: MIT */
/* release: release a lock by its token. */
#include "cmd.h"

#include "session/session.h"

static enum exit_reason not_yours(const struct session *session, const char *why)
{
    return report_fault(&session->report, REASON_NOT_YOURS, why, 0);
}

/* Report what the server has said: that the token doesn't hold all of the keys. */
static enum exit_reason say_not_held(const struct session *session, enum rlock_status st)
{
    char over[HOLD_OVER_BYTES];
    bool is_hold = session->holds.n > 0;

    if (st == RLOCK_GONE && session->options->quiet_if_gone)
        return REASON_GRANTED;
    if (is_hold)
        session_hold_over_text(over, &session->holds.hold[0]);
    if (is_hold)
        return not_yours(session, over);
    return not_yours(session,
                     st == RLOCK_GONE
                         ? "the lock is gone: it was released before, or its lease has ended"
                         : "the lock is held by another owner");
}

static enum exit_reason release(struct session *session)
{
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st =
        rlock_release(session->lock, session_deadline(session), RLOCK_ENDS_FREE, 0, &err);

    if (st != RLOCK_OK && st != RLOCK_GONE && st != RLOCK_LOST)
        return session_fault(session, &err);
    session_end_hold(session);
    if (st != RLOCK_OK)
        return say_not_held(session, st);
    report_say(&session->report, REPORT_STEP, (struct message){.what = EVENT_RELEASED});
    return REASON_GRANTED;
}

int cmd_release(const struct options *options)
{
    return session_with_token(options, release);
}
