/* SPDX-License-Identifier: MIT */
/* resp: encodes requests and parses replies of Redis' protocol (RESP); only resp.c uses hiredis. */
#ifndef RESP_H
#define RESP_H

#include "base/err.h"

#include <stdbool.h>

#define REQUEST_WORDS (12 * RLOCK_KEYS_MAX + RLOCK_PARENTS_MAX + 16)
#define REQUEST_TEXT_BYTES (48 * RLOCK_KEYS_MAX + 512)

#define REQUEST_COMMANDS 32 /* most commands in one request */

/*
 * A command with its arguments, or several commands that are sent in one packet. request_begin()
 * begins a new request, also in a struct that was used before; there is nothing to free. The words
 * are borrowed until request_encode().
 */
struct request {
    int n;                       /* number of words; `word` is uninitialized from index n on */
    int n_commands;              /* how many commands the words are, and how many replies come */
    int first[REQUEST_COMMANDS]; /* the index of the first word of each command */
    const char *script;  /* source of the script that an EVALSHA calls; NULL: not an EVALSHA */
    uint64_t connection; /* the only connection that may be used, see request_bind(); 0: any */
    bool stays;          /* only the server that is asked now may answer, see request_stay() */
    size_t text_used;    /* bytes of `text` that are in use */
    const char *word[REQUEST_WORDS];
    char text[REQUEST_TEXT_BYTES]; /* contains the words that request_add_format() made */
};

void request_begin(struct request *request, const char *command);

/* request_begin_empty: as request_begin(), but request_add_command() adds the first command. */
void request_begin_empty(struct request *request);

/*
 * request_add_command: let a further command follow in the same packet. The server executes the
 * commands in their order, but commands of other clients may come between two of them.
 */
void request_add_command(struct request *request, const char *command);
void request_add(struct request *request, const char *word);

/* request_add_format: format a word, such as a number, and keep it in the request itself. */
void request_add_format(struct request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * request_bind: send the request only by this connection (member_connection()), because the server
 * remembers for each connection which keys it watches (WATCH). If the connection was closed, the
 * request fails.
 */
void request_bind(struct request *request, uint64_t connection);

/* request_stay: if the server redirects this request, fail instead of following the redirect. */
void request_stay(struct request *request);

/*
 * request_encode: encode a request and append it to `*out`, which is on the heap and grows. Before
 * the first request `*out` is NULL and `*out_bytes` 0. RLOCK_OK or RLOCK_E_MEMORY.
 */
enum rlock_status request_encode(const struct request *request, char **out, size_t *out_bytes,
                                 struct rlock_error *err);

/*
 * request_append: append `n` bytes of an encoded request to `*out`, as request_encode() does. Both
 * functions clear the old memory of `*out` before they free it, as it may contain a password or
 * tokens.
 */
enum rlock_status request_append(char **out, size_t *out_bytes, const char *encoded, size_t n,
                                 struct rlock_error *err);

/* resp_built_with: the text that rlock_built_with() returns. */
const char *resp_built_with(bool tls);

/*
 * request_use_eval: turn EVALSHA into EVAL, for a server whose cache lacks the script. Does nothing
 * to other commands. request_encoded_use_eval: the same for the bytes of an encoded EVALSHA, which
 * become those of an EVAL of `script`. Returns RLOCK_OK or RLOCK_E_MEMORY.
 */
void request_use_eval(struct request *request);
enum rlock_status request_encoded_use_eval(const char *script, char **bytes, size_t *n,
                                           struct rlock_error *err);

/* Collects bytes from a server and splits them into replies. */
struct resp_reader;

struct resp_reader *resp_reader_new(void); /* NULL: no memory */
void resp_reader_free(struct resp_reader *resp);

/* resp_reader_set_max_bytes: refuse replies that are longer than this; by default 64 KiB. */
void resp_reader_set_max_bytes(struct resp_reader *resp, size_t bytes);

/*
 * resp_reader_feed: add bytes that the server sent. resp_reader_next: set `*reply` to the next
 * whole reply, which the reader owns until the next call. Both return RLOCK_OK, RLOCK_E_PROTOCOL
 * (no RESP, or more than 64 elements or 4 levels, or too many bytes) or RLOCK_E_MEMORY; the second
 * also RLOCK_PENDING: the reply is not whole yet.
 */
struct resp_value;

enum rlock_status resp_reader_feed(struct resp_reader *resp, const char *bytes, size_t n,
                                   struct rlock_error *err);
enum rlock_status resp_reader_next(struct resp_reader *resp, const struct resp_value **reply,
                                   struct rlock_error *err);

/* resp_may_begin: may a reply of a Redis server begin with this byte? */
bool resp_may_begin(char byte);

/*
 * resp_reader_gather: make the next value of resp_reader_next() an array of the next `n` replies,
 * which belong to one request of `n` commands. With n = 1 the next value is the next reply itself.
 */
void resp_reader_gather(struct resp_reader *resp, size_t n);

/*
 * resp_reader_is_refused: call this after the server has closed the connection. Did the server
 * reply to several commands by one error, as one with too many clients does? Then sets `*reply` to
 * the error, which the reader owns.
 */
bool resp_reader_is_refused(struct resp_reader *resp, const struct resp_value **reply);

/* resp_reader_is_empty: did no byte come after the last reply that resp_reader_next() returned? */
bool resp_reader_is_empty(const struct resp_reader *resp);

/*
 * The functions below read a reply, or an element of an array. Each returns NULL, 0 or false if the
 * value has another type. Only resp_is_int(), resp_is_nil(), resp_int() and resp_string() allow
 * NULL, and treat it as another type. A returned text is valid for as long as the value is.
 */
const char *resp_error(const struct resp_value *reply);
bool resp_is_status(const struct resp_value *reply, const char *text);
bool resp_is_ok(const struct resp_value *reply);
bool resp_is_int(const struct resp_value *reply);
bool resp_is_nil(const struct resp_value *reply);
int64_t resp_int(const struct resp_value *reply);
const char *resp_string(const struct resp_value *reply, size_t *bytes);
size_t resp_array_count(const struct resp_value *reply);
const struct resp_value *resp_array_at(const struct resp_value *reply, size_t i);

#endif
