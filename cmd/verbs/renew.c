/* SPDX-License-Identifier: MIT */
/* renew: renew a lock by its token. */
#include "cmd.h"

#include "session/token.h"

#include <stdio.h>

static enum exit_reason renew(const struct token *token)
{
    const struct options *options = token->session.options;
    struct rlock_error err = {.status = RLOCK_OK};
    int64_t expires_ms = 0;
    int64_t left_ms;
    char why[64];
    enum rlock_status st =
        rlock_renew(token->session.lock, options->ttl_from == FROM_DEFAULT ? 0 : options->ttl_ms,
                    token_until(token), &expires_ms, &err);

    if (st == RLOCK_LOST || st == RLOCK_RELEASED)
        return token_not_yours(token, err.text);
    if (st != RLOCK_OK)
        return session_give_up(&token->session, &err);
    left_ms = expires_ms - rlock_clock_ms();
    snprintf(why, sizeof why, "for %lld.%01d s", (long long)(left_ms / 1000),
             (int)(left_ms % 1000 / 100));
    report_say(&token->session.report, REPORT_STEP,
               (struct message){.what = "renewed", .why = why});
    return REASON_GRANTED;
}

int cmd_renew(const struct options *options)
{
    struct token token;
    enum exit_reason reason = token_open(&token, options);

    if (reason == REASON_GRANTED)
        reason = renew(&token);
    token_close(&token);
    return session_status(&token.session, reason);
}
