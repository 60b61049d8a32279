/* SPDX-License-Identifier: MIT */
/* token: the lock that a token stands for, on its server. */
#include "session/token.h"

#include "options/config.h"

#include <stdio.h>
#include <stdlib.h>

/* The nearest: a file from a configuration file is further away than the environment. */
static enum exit_reason read_token(struct token *token)
{
    const struct options *options = token->session.options;
    const char *inherited = getenv("RLOCK_TOKEN");
    const char *path = options->token_file;
    const char *failed = NULL;
    char why[256];

    if (path != NULL && (options->token_file_from > FROM_FILE || inherited == NULL)) {
        token->text = config_first_line(path, &failed);
        snprintf(why, sizeof why, "token file %.150s: %s", path, failed);
        if (token->text == NULL)
            return report_fault(&token->session.report, REASON_MISCONFIGURED, why, 0);
        token->session.token = token->text;
    } else {
        token->session.token = inherited;
    }
    if (token->session.token != NULL && token->session.token[0] != '\0')
        return REASON_GRANTED;
    if (token->text != NULL)
        snprintf(why, sizeof why, "no token: %.150s is empty", path);
    else
        snprintf(why, sizeof why, "%s",
                 inherited == NULL
                     ? "no token: it is in RLOCK_TOKEN, or in the file of --token-file"
                     : "RLOCK_TOKEN is empty: the acquire that was to fill it has failed, or "
                       "nobody looked at its status");
    return report_fault(&token->session.report, REASON_USAGE, why, 0);
}

enum exit_reason token_open(struct token *token, const struct options *options)
{
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st = RLOCK_OK;
    enum exit_reason reason;

    *token = (struct token){.text = NULL};
    session_init(&token->session, options);
    reason = read_token(token);
    if (reason != REASON_GRANTED)
        return reason;
    st = session_open(&token->session, NULL, &err);
    if (st == RLOCK_LOST)
        return token_not_yours(token, err.text);
    return st == RLOCK_OK ? REASON_GRANTED : session_give_up(&token->session, &err);
}

void token_close(struct token *token)
{
    session_close(&token->session);
    config_forget(token->text);
    token->text = NULL;
}

struct rlock_deadline token_until(const struct token *token)
{
    return (struct rlock_deadline){rlock_clock_ms() + token->session.options->connect_ms, -1};
}

enum exit_reason token_not_yours(const struct token *token, const char *why)
{
    return report_fault(&token->session.report, REASON_NOT_YOURS, why, 0);
}
