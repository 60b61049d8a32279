/* SPDX-License-Identifier: MIT */
/* card: who holds a lock, as one line of words behind the token. */
#ifndef CARD_H
#define CARD_H

#include "rlock.h"

#define CARD_BYTES 1024

/*
 * card_write: "host=web1 pid=42 user=backup command=tar label=nightly". Each
 * value is cut to 160 bytes, and bytes that could end a word or reach a
 * terminal are written %XX, so a card is printable ASCII without blanks in
 * its values. The script adds the moment, in server time.
 */
void card_write(char card[CARD_BYTES], const struct rlock_holder *holder);

/*
 * card_describe: who holds a lock, for people, from the value in its key:
 * "tar of backup@web1, pid 42 (nightly)", or a foreign client's value in
 * quotes. Printable ASCII, and never a token of ours.
 */
void card_describe(char *out, size_t room, const char *value);

/* card_since: since when, in server time (ms since 1970), from the same value; 0: not told. */
int64_t card_since(const char *value);

#endif
