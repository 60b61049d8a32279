/* SPDX-License-Identifier: MIT */
/* view: how a lock looks, from the reply of a script that only looks. */
#ifndef VIEW_H
#define VIEW_H

#include "rlock_admin.h"
#include "wire/resp.h"

#define VIEW_HOLDERS_MAX 20 /* shown of one lock, as in shared/view.lua */
#define VIEW_LEFT_MAX_MS (INT64_C(1) << 53)

/*
 * view_read: fill a view whose key and name are set; `holders` is room for it,
 * VIEW_HOLDERS_MAX of them. RLOCK_OK or RLOCK_E_PROTOCOL.
 */
enum rlock_status view_read(const struct resp_value *reply, int64_t now_ms, struct rlock_view *view,
                            struct rlock_party *holders, struct rlock_error *err);

/* view_set_length: for how long it is so, where it is told since when. */
void view_set_length(struct rlock_party *party, int64_t now_ms);

#endif
