/* SPDX-License-Identifier: MIT */
/* reason: for each enum rlock_reason a sentence for people, and advice on what they can do. */
#ifndef REASON_H
#define REASON_H

#include "rlock_admin.h"

#include <stdbool.h>

/*
 * reason_sentence: what has happened, such as "the server is a replica, which grants no locks".
 * NULL: the text of the error says it. rlock_reason_help() of rlock_admin.h tells what to do.
 */
const char *reason_sentence(enum rlock_reason reason);

/* reason_is_login: is a wrong, missing or needless password the reason? */
bool reason_is_login(enum rlock_reason reason);

/* reason_is_about_scripts: did the server refuse the request because it is a script? */
bool reason_is_about_scripts(enum rlock_reason reason);

#endif
