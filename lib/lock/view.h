/* SPDX-License-Identifier: MIT */
/* view: parses the state of a lock, as inspect.lua returns it. */
#ifndef VIEW_H
#define VIEW_H

#include "rlock_admin.h"
#include "wire/resp.h"

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
 * The other functions fill in parts of a view, for a caller that has read the lock without scripts.
 * The view borrows their arguments.
 *
 * view_set_value: sets the state of the lock from the beginning of its value, and its `left_ms`
 * from the reply to PTTL.
 * view_set_party: for a lock that is neither shared nor has slots, after view_set_value(): parses
 * into `party` the holder, or the waiter or last holder whom the value of a lock without a holder
 * names.
 * view_set_holders: sorts and sets the holders of a shared lock or slots. `n_all` is the number of
 * all holders, also of those that aren't among the `n` in `holders`.
 */
void view_set_value(struct rlock_view *view, const char *lock, int64_t left_ms);
void view_set_party(struct rlock_view *view, struct rlock_party *party, const char *lock,
                    int64_t now_ms);
void view_set_holders(struct rlock_view *view, struct rlock_party *holders, size_t n, size_t n_all);

#endif
