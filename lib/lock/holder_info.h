/* SPDX-License-Identifier: MIT */
/* holder_info: writes and parses the text that tells who a holder or waiter is. */
#ifndef HOLDER_INFO_H
#define HOLDER_INFO_H

#include "rlock_admin.h"

#include <stdbool.h>

#define HOLDER_INFO_BYTES 1024

/*
 * holder_info_write: write words such as "host=web1 pid=42 user=backup command=tar label=nightly",
 * each value cut to at most 160 bytes, with %XX for blanks, '%' and bytes other than printable
 * ASCII. If `history`, the number of entries to keep, isn't 0, history=N comes first, and tells the
 * scripts to write the history. The scripts add further words: since=, ttl=, mode=, ...
 */
void holder_info_write(char info[HOLDER_INFO_BYTES], const struct rlock_holder *holder,
                       int64_t history);

/* ---- the value of a lock's key: any bytes, as other programs may write it ---- */

/* holder_info_is_rlock: did rlock write this value, by RLOCK_PROTOCOL_TOKEN: "TOKEN v1 ..."? */
bool holder_info_is_rlock(const char *lock);

/*
 * holder_info_without_token: the part of the value that may be shown. Skips a token at its start:
 * whoever reads a token could release the lock with it.
 */
const char *holder_info_without_token(const char *lock);

/*
 * holder_info_parse_lock: parse who holds the lock with this value. holder->text is for people:
 * "tar of backup@web1, pid 42 (nightly)", or the value of another program in quotes. This text is
 * printable UTF-8, and never contains a token.
 */
void holder_info_parse_lock(const char *lock, struct rlock_party *holder);

/*
 * holder_info_seen: the state of a lock whose key has this value. For a lock with several holders,
 * the scripts return as value a token of zeros and the info of one of the holders: the state is
 * RLOCK_SEEN_SLOTS or RLOCK_SEEN_SHARED.
 */
enum rlock_seen holder_info_seen(const char *lock);

/* ---- text of rlock: a lock's value, or an entry in the keys of its waiters or holders ---- */

/*
 * holder_info_parse: fill in all of `party` but what holder_info_set_times() computes, and
 * `left_ms`.
 */
void holder_info_parse(const char *info, struct rlock_party *party);

/* holder_info_put_user: write who a party is, without its command: "root@vm, pid 123: LABEL". */
void holder_info_put_user(char *out, size_t room, const struct rlock_party *party);

/*
 * holder_info_set_times: compute `for_ms`, `renewed_ms` and `hold_left_ms` of a party.
 *
 *   now_ms   the server's time, ms since 1970
 *   left_ms  until the party's lease ends; below 0: it never ends, or the party is a waiter
 */
void holder_info_set_times(struct rlock_party *party, int64_t now_ms, int64_t left_ms);

/*
 * holder_info_word: copy the value of the word `name`, with each %XX decoded; "" if the text has no
 * such word. holder_info_number: return the value of the word `name` if it is a number from 0 to
 * 2^53, else `otherwise`.
 */
void holder_info_word(const char *info, const char *name, char *out, size_t room);
int64_t holder_info_number(const char *info, const char *name, int64_t otherwise);

/* holder_info_has: does the text contain the word NAME=VALUE? */
bool holder_info_has(const char *info, const char *name, const char *value);

/*
 * holder_info_members_hash: copy HASH from the word members=HASH, a hash of the addresses of all
 * servers of the holder's or waiter's quorum; "": the holder or waiter uses a single server.
 */
void holder_info_members_hash(const char *info, char *hash, size_t room);

#endif
