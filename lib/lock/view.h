/* SPDX-License-Identifier: MIT */
/* view: the state of a lock, as inspect.lua returns it, or as commands have read it. */
#ifndef VIEW_H
#define VIEW_H

#include "lock/commands.h"
#include "rlock_admin.h"

#define VIEW_HOLDERS_MAX 20 /* the most holders of one lock that inspect.lua returns */
#define VIEW_LEFT_MAX_MS (INT64_C(1) << 53)

/*
 * view_parse: fill in what the reply says about a lock. Before the call the caller sets `key`,
 * `name`, `n_members` and `n_alike` of `view`, and all other fields to 0, as those of a free lock.
 *
 *   value    the reply of view() in shared/view.lua; the view borrows strings from it
 *   now_ms   the server's time, ms since 1970
 *   holders  room for VIEW_HOLDERS_MAX holders; the view borrows it
 *
 * Returns  RLOCK_OK or RLOCK_E_PROTOCOL.
 */
enum rlock_status view_parse(const struct resp_value *value, int64_t now_ms,
                             struct rlock_view *view, struct rlock_party *holders,
                             struct rlock_error *err);

/*
 * view_of_commands: fill in what `commands` has read, as view_parse() does, and borrow `commands`.
 * The view of a shared lock or slots has no holders, as commands don't read their list.
 */
void view_of_commands(const struct commands *commands, struct rlock_view *view,
                      struct rlock_party *holders);

#endif
