/* SPDX-License-Identifier: MIT */
/* resp: requests to bytes and bytes to replies, bounded (the only user of hiredis). */
#ifndef RESP_H
#define RESP_H

#include "rlock.h"

#include <stdbool.h>

#define REQUEST_WORDS (9 * RLOCK_KEYS_MAX + RLOCK_PARENTS_MAX + 16)
#define REQUEST_MADE (48 * RLOCK_KEYS_MAX + 512)

/* One command; the words are borrowed until it is encoded. Begins with request_begin(). */
struct request {
    int n;              /* of words; only they are defined */
    const char *script; /* what an EVALSHA stands for; NULL: it is none */
    size_t made_used;
    const char *word[REQUEST_WORDS];
    size_t bytes[REQUEST_WORDS];
    char made[REQUEST_MADE]; /* words that are made for it */
};

void request_begin(struct request *request, const char *command);
void request_add(struct request *request, const char *word);

/* request_add_format: a short word that is made here, such as a number. */
void request_add_format(struct request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* resp_encode: append a request to `*out`, which grows. RLOCK_OK or RLOCK_E_MEMORY. */
enum rlock_status resp_encode(const struct request *request, char **out, size_t *out_bytes,
                              struct rlock_error *err);

/* resp_built_with: rlock_built_with(). */
const char *resp_built_with(bool tls);

/*
 * request_use_eval: EVALSHA becomes EVAL, which any server understands.
 * resp_use_eval: the same of a request that is encoded already.
 */
void request_use_eval(struct request *request);
enum rlock_status resp_use_eval(const char *script, char **bytes, size_t *n,
                                struct rlock_error *err);

/* A reader of replies. */
struct resp;

struct resp *resp_new(void); /* NULL: no memory */
void resp_free(struct resp *resp);

/* resp_allow: replies may have so many bytes; 64 KiB without it. */
void resp_allow(struct resp *resp, size_t bytes);

/*
 * resp_feed: more bytes from the server. resp_next: the next whole reply, in
 * `*reply`, which the reader of replies owns until the next call.
 *
 * Return RLOCK_OK, RLOCK_PENDING (not whole yet), RLOCK_E_PROTOCOL (not Redis,
 * or beyond a bound: bytes, 64 elements, 4 levels) or RLOCK_E_MEMORY.
 */
struct reply;

enum rlock_status resp_feed(struct resp *resp, const char *bytes, size_t n,
                            struct rlock_error *err);
enum rlock_status resp_next(struct resp *resp, const struct reply **reply, struct rlock_error *err);

/* resp_empty: has every byte that was fed been part of a reply? */
bool resp_empty(const struct resp *resp);

/* What a reply is. Asking for what it is not gives NULL, 0 or false. */
const char *reply_error(const struct reply *reply);
bool reply_is_ok(const struct reply *reply);
bool reply_is_int(const struct reply *reply);
bool reply_is_nil(const struct reply *reply);
int64_t reply_int(const struct reply *reply);
const char *reply_text(const struct reply *reply, size_t *bytes);
size_t reply_count(const struct reply *reply);
const struct reply *reply_at(const struct reply *reply, size_t i);

#endif
