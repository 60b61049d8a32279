/* SPDX-License-Identifier: MIT */
/* view: parses the state of a lock, as inspect.lua and list.lua return it. */
#ifndef VIEW_H
#define VIEW_H

#include "rlock_admin.h"
#include "wire/resp.h"

#define VIEW_HOLDERS_MAX 20 /* inspect.lua and list.lua return at most so many holders of a lock */
#define VIEW_LEFT_MAX_MS (INT64_C(1) << 53)

/*
 * view_parse: fill in all of `view` but `key` and `name`.
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

/* view_set_for_ms: compute for_ms, the time since since_ms; 0 if since_ms isn't known. */
void view_set_for_ms(struct rlock_party *party, int64_t now_ms);

#endif
