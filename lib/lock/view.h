/* SPDX-License-Identifier: MIT */
/* view: how a lock looks, from the reply of a script that changes nothing. */
#ifndef VIEW_H
#define VIEW_H

#include "rlock_admin.h"
#include "wire/resp.h"

#define VIEW_HOLDERS_MAX 20 /* of one lock; inspect.lua and list.lua are told to send no more */
#define VIEW_LEFT_MAX_MS (INT64_C(1) << 53)

/*
 * view_parse: fill in all of a view but its key and its name.
 *
 *   value    what view() of shared/view.lua returns; the view borrows from it
 *   now_ms   the server's clock, ms since 1970
 *   holders  room for VIEW_HOLDERS_MAX of them, which the view borrows
 *
 * Returns  RLOCK_OK or RLOCK_E_PROTOCOL.
 */
enum rlock_status view_parse(const struct resp_value *value, int64_t now_ms,
                             struct rlock_view *view, struct rlock_party *holders,
                             struct rlock_error *err);

/* view_set_for_ms: for how long it is so by now, where `since_ms` is known. */
void view_set_for_ms(struct rlock_party *party, int64_t now_ms);

#endif
