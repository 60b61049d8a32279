/* SPDX-License-Identifier: MIT */
/* holder_info: who holds a lock, or waits for it, as words behind the token. */
#ifndef HOLDER_INFO_H
#define HOLDER_INFO_H

#include "rlock_admin.h"

#include <stdbool.h>

#define HOLDER_INFO_BYTES 1024

/*
 * holder_info_write: "host=web1 pid=42 user=backup command=tar label=nightly". Each value is cut to
 * 160 bytes, and bytes that could end a word or reach a terminal are written %XX, so all of it is
 * printable ASCII. The scripts put words of their own beside these: the moment, the mode, the slot.
 */
void holder_info_write(char info[HOLDER_INFO_BYTES], const struct rlock_holder *holder);

/* ---- what stands in the key of a lock: any bytes, as other programs write there, too ---- */

/* holder_info_is_rlock: did an rlock write it? Then it is "TOKEN v1 ...". */
bool holder_info_is_rlock(const char *lock);

/*
 * holder_info_without_token: where that begins which may be shown. What looks like the token of an
 * rlock is left out: whoever reads a token could release the lock with it.
 */
const char *holder_info_without_token(const char *lock);

/*
 * holder_info_parse_lock: who holds it. The text is for people: "tar of backup@web1, pid 42
 * (nightly)", or another program's value in quotes; printable ASCII, and never a token of an rlock.
 */
void holder_info_parse_lock(const char *lock, struct rlock_party *holder);

/* ---- what an rlock wrote: such a value, or what the server keeps of a waiter or a holder ---- */

/* holder_info_parse: who it is; all but `for_ms` and `left_ms`. */
void holder_info_parse(const char *info, struct rlock_party *party);

/* holder_info_has: does it have the word NAME=VALUE? */
bool holder_info_has(const char *info, const char *name, const char *value);

/* holder_info_members_hash: of the list of servers that its writer asks; "": it is one server. */
void holder_info_members_hash(const char *info, char *hash, size_t room);

#endif
