/* SPDX-License-Identifier: MIT */
/* token: the lock that a token stands for, on its server. */
#ifndef TOKEN_H
#define TOKEN_H

#include "session/session.h"

struct token {
    struct session session;
    char *text; /* the token, where it came from a file */
};

/* token_open: REASON_GRANTED; what else comes has been said. Close it in any case. */
enum exit_reason token_open(struct token *token, const struct options *options);
void token_close(struct token *token);

/* token_until: for how long to ask the server. */
struct rlock_deadline token_until(const struct token *token);

/* token_not_yours: say so, and why; how that is called. */
enum exit_reason token_not_yours(const struct token *token, const char *why);

#endif
