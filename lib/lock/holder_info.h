/* SPDX-License-Identifier: MIT */
/* holder_info: who holds a lock, as one line of words behind the token. */
#ifndef HOLDER_INFO_H
#define HOLDER_INFO_H

#include "rlock_admin.h"

#include <stdbool.h>

#define HOLDER_INFO_BYTES 1024

/*
 * holder_info_write: "host=web1 pid=42 user=backup command=tar label=nightly". Each
 * value is cut to 160 bytes, and bytes that could end a word or reach a
 * terminal are written %XX, so a holder info is printable ASCII without blanks in
 * its values. The script adds the moment, in server time.
 */
void holder_info_write(char card[HOLDER_INFO_BYTES], const struct rlock_holder *holder);

/* holder_info_is_ours: is a value "TOKEN v1 ...", as our scripts write it? */
bool holder_info_is_ours(const char *value);

/* holder_info_without_token: a value of any kind, from behind what could be a token of ours. */
const char *holder_info_without_token(const char *value);

/*
 * holder_info_list: of a value of ours, what its writer's list of servers is known by; "": it has
 * one.
 */
void holder_info_list(const char *value, char *out, size_t room);

/* holder_info_has: does a value of ours have this word? */
bool holder_info_has(const char *value, const char *name, const char *word);

/*
 * holder_info_read: who it is, from a value of ours, or from what is kept of a waiter; not
 * `for_ms`.
 */
void holder_info_read(const char *value, struct rlock_party *party);

/*
 * holder_info_holder: the same from the value in a lock's key, which may be anybody's.
 * Its text is for people: "tar of backup@web1, pid 42 (nightly)", or a foreign
 * client's value in quotes; printable ASCII, and never a token of ours.
 */
void holder_info_holder(const char *value, struct rlock_party *holder);

#endif
