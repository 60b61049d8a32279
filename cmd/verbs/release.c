/* SPDX-License-Identifier: MIT */
/* release: give a lock back by its token. */
#include "cmd.h"

#include "session/token.h"

static enum exit_reason release(const struct token *token)
{
    const struct options *options = token->session.options;
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st =
        rlock_release(token->session.lock, token_until(token), RLOCK_ENDS_FREE, 0, &err);

    if (st == RLOCK_GONE && options->quiet_if_gone)
        return REASON_GRANTED;
    if (st == RLOCK_GONE)
        return token_not_yours(token, "it is gone: it was released before, or its ttl is over");
    if (st == RLOCK_LOST)
        return token_not_yours(token, "it is held by another");
    if (st != RLOCK_OK)
        return session_give_up(&token->session, &err);
    report_say(&token->session.report, REPORT_STEP, (struct message){.what = "released"});
    return REASON_GRANTED;
}

int cmd_release(const struct options *options)
{
    struct token token;
    enum exit_reason reason = token_open(&token, options);

    if (reason == REASON_GRANTED)
        reason = release(&token);
    token_close(&token);
    return session_status(&token.session, reason);
}
