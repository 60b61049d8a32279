/* SPDX-License-Identifier: MIT */
/* holder_info: writes and parses the text that tells who a holder or waiter is. */
#ifndef HOLDER_INFO_H
#define HOLDER_INFO_H

#include "rlock_admin.h"

#include <stdbool.h>

#define HOLDER_INFO_BYTES 1024

/*
 * holder_info_write: write words such as "host=web1 pid=42 user=backup command=tar label=nightly".
 * Cuts each value to fewer than 160 bytes. Writes blanks, '%' and bytes that aren't printable ASCII
 * as %XX.
 * The scripts add further words: since=, ttl=, mode=, slot=.
 */
void holder_info_write(char info[HOLDER_INFO_BYTES], const struct rlock_holder *holder);

/* ---- the value of a lock's key: any bytes, as other programs may write it ---- */

/* holder_info_is_rlock: did rlock write this value? Then it is "TOKEN v1 ...". */
bool holder_info_is_rlock(const char *lock);

/*
 * holder_info_without_token: the part of the value that may be shown. Skips a token at its start:
 * whoever reads a token could release the lock with it.
 */
const char *holder_info_without_token(const char *lock);

/*
 * holder_info_parse_lock: parse who holds the lock with this value. holder->text is for people:
 * "tar of backup@web1, pid 42 (nightly)", or the value of another program in quotes. It is
 * printable ASCII, and never contains a token.
 */
void holder_info_parse_lock(const char *lock, struct rlock_party *holder);

/* ---- text of rlock: a lock's value, or an entry in the keys of its waiters or holders ---- */

/* holder_info_parse: fill in all of `party` but `for_ms` and `left_ms`. */
void holder_info_parse(const char *info, struct rlock_party *party);

/* holder_info_has: does the text contain the word NAME=VALUE? */
bool holder_info_has(const char *info, const char *name, const char *value);

/*
 * holder_info_members_hash: copy HASH from the word members=HASH, a hash of the addresses of all
 * servers of the holder's or waiter's quorum; "": it uses a single server.
 */
void holder_info_members_hash(const char *info, char *hash, size_t room);

#endif
