/* SPDX-License-Identifier: MIT */
/* release: release a lock by its token. */
#include "cmd.h"

#include "session/session.h"

static enum exit_reason not_yours(const struct session *session, const char *why)
{
    return report_fault(&session->report, REASON_NOT_YOURS, why, 0);
}

static enum exit_reason release(const struct session *session)
{
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st =
        rlock_release(session->lock, session_deadline(session), RLOCK_ENDS_FREE, 0, &err);

    if (st == RLOCK_GONE && session->options->quiet_if_gone)
        return REASON_GRANTED;
    if (st == RLOCK_GONE)
        return not_yours(session,
                         "the lock is gone: it was released before, or its lease has ended");
    if (st == RLOCK_LOST)
        return not_yours(session, "the lock is held by another owner");
    if (st != RLOCK_OK)
        return session_fault(session, &err);
    report_say(&session->report, REPORT_STEP, (struct message){.what = "released"});
    return REASON_GRANTED;
}

int cmd_release(const struct options *options)
{
    return session_with_token(options, release);
}
