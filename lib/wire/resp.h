/* SPDX-License-Identifier: MIT */
/* resp: Redis' protocol: requests to bytes and bytes to replies, bounded. Only it uses hiredis. */
#ifndef RESP_H
#define RESP_H

#include "base/err.h"

#include <stdbool.h>

#define REQUEST_WORDS (9 * RLOCK_KEYS_MAX + RLOCK_PARENTS_MAX + 16)
#define REQUEST_TEXT_BYTES (48 * RLOCK_KEYS_MAX + 512)

/*
 * One command with its arguments; request_begin() makes it empty. The words are borrowed until it
 * is encoded. It has no fini, and may be begun again.
 */
struct request {
    int n;              /* words; the rest of the arrays is not initialized */
    const char *script; /* source of the script that an EVALSHA calls; NULL: no EVALSHA */
    size_t text_used;
    const char *word[REQUEST_WORDS];
    size_t bytes[REQUEST_WORDS];
    char text[REQUEST_TEXT_BYTES]; /* the words of request_add_format() */
};

void request_begin(struct request *request, const char *command);
void request_add(struct request *request, const char *word);

/* request_add_format: a word that the request itself keeps, such as a number. */
void request_add_format(struct request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* request_encode: append a request to `*out`, which grows. RLOCK_OK or RLOCK_E_MEMORY. */
enum rlock_status request_encode(const struct request *request, char **out, size_t *out_bytes,
                                 struct rlock_error *err);

/*
 * request_append: the same with a request that is encoded already, of `n` bytes. The old `*out` is
 * cleared before it is freed, as it may contain a password or tokens.
 */
enum rlock_status request_append(char **out, size_t *out_bytes, const char *encoded, size_t n,
                                 struct rlock_error *err);

/* resp_built_with: rlock_built_with(). */
const char *resp_built_with(bool tls);

/*
 * request_use_eval: EVALSHA becomes EVAL, which also a server without the script in its cache can
 * execute. request_encoded_use_eval: the same of a request that is encoded already.
 */
void request_use_eval(struct request *request);
enum rlock_status request_encoded_use_eval(const char *script, char **bytes, size_t *n,
                                           struct rlock_error *err);

/* Bytes from a server, until they are whole replies. */
struct resp_reader;

struct resp_reader *resp_reader_new(void); /* NULL: no memory */
void resp_reader_free(struct resp_reader *resp);

/* resp_reader_set_max_bytes: the longest reply that is allowed; 64 KiB by default. */
void resp_reader_set_max_bytes(struct resp_reader *resp, size_t bytes);

/*
 * resp_reader_feed: more bytes from the server. resp_reader_next: the next whole reply, in
 * `*reply`, which the reader of replies owns until the next call.
 *
 * Return RLOCK_OK, RLOCK_PENDING (not whole yet), RLOCK_E_PROTOCOL (not Redis,
 * or beyond a bound: bytes, 64 elements, 4 levels) or RLOCK_E_MEMORY.
 */
struct resp_value;

enum rlock_status resp_reader_feed(struct resp_reader *resp, const char *bytes, size_t n,
                                   struct rlock_error *err);
enum rlock_status resp_reader_next(struct resp_reader *resp, const struct resp_value **reply,
                                   struct rlock_error *err);

/* resp_reader_is_empty: are there no bytes behind the reply that was read last? */
bool resp_reader_is_empty(const struct resp_reader *resp);

/*
 * A reply, or an element of an array. Each function gives NULL, 0 or false where the value is of
 * another type; NULL is allowed but by resp_error(), resp_is_ok() and resp_array_count(). Texts
 * are borrowed for as long as the value.
 */
const char *resp_error(const struct resp_value *reply);
bool resp_is_ok(const struct resp_value *reply);
bool resp_is_int(const struct resp_value *reply);
bool resp_is_nil(const struct resp_value *reply);
int64_t resp_int(const struct resp_value *reply);
const char *resp_string(const struct resp_value *reply, size_t *bytes);
size_t resp_array_count(const struct resp_value *reply);
const struct resp_value *resp_array_at(const struct resp_value *reply, size_t i);

#endif
