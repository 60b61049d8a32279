/* SPDX-License-Identifier: MIT */
/* inspect: views of one lock, or of all locks of a server. */
#ifndef SURVEY_H
#define SURVEY_H

#include "quorum/quorum.h"

/* survey_inspect: rlock_inspect(). */
enum rlock_status survey_inspect(struct quorum *quorum, const char *key, struct rlock_until until,
                                 const struct rlock_visitor *visitor, struct rlock_error *err);

/*
 * survey_mode: standalone, sentinel or cluster; "": it doesn't say, as before
 * Redis 6. HELLO needs no right, and isn't counted as an error.
 */
enum rlock_status survey_mode(struct quorum *quorum, struct rlock_until until, char *mode,
                              size_t room, struct rlock_error *err);

/* survey_list: rlock_list(). */
enum rlock_status survey_list(struct quorum *quorum, const char *pattern, struct rlock_until until,
                              const struct rlock_visitor *visitor, struct rlock_error *err);

/* survey_break: rlock_break(). */
enum rlock_status survey_break(struct quorum *quorum, const char *key, const char *name,
                               struct rlock_until until, struct rlock_error *err);

#endif
