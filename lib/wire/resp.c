/* SPDX-License-Identifier: MIT */
/*
 * resp: encodes requests and parses replies of Redis' protocol (RESP); only resp.c uses hiredis.
 *
 * The reader refuses a reply that is too large before it allocates memory for the reply. hiredis
 * allocates an array as soon as it has read the array's length, and a server can send any length.
 * So hiredis is made to call bounded_array() of this file to allocate arrays.
 */
#include "wire/resp.h"

#include "base/err.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (64 * 1024)
#define MAX_ELEMENTS 64
#define MAX_DEPTH 4
/* The length of the first two words of an encoded EVALSHA: the command and a SHA1. */
#define EVALSHA_BYTES (sizeof "$7\r\nEVALSHA\r\n$40\r\n" - 1 + 40 + 2)

/* The type of an array's length in the callback of hiredis, which version 1.0 changed. */
#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

struct resp_reader {
    redisReader *reader;
    redisReplyObjectFunctions bounded; /* the callbacks of hiredis, but with bounded_array() */
    void *(*build_array)(const redisReadTask *, element_count); /* what bounded_array() replaces */
    redisReply *reply;    /* the reply that resp_reader_next() returned last */
    redisReply *gathered; /* an array of `wanted` replies, not all of which have come; else NULL */
    size_t wanted;        /* how many replies become one value; 0 and 1: each is a value itself */
    size_t n_gathered;    /* how many replies are in `gathered` */
    size_t unread;        /* bytes received after the end of the last whole reply */
    size_t max_bytes;     /* largest `unread` that is accepted */
};

#define TEXT_OF(number) #number
#define VERSION(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

#define HIREDIS "hiredis " VERSION(HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH)

#ifdef RLOCK_STATIC
#define BUILD ", static"
#else
#define BUILD ""
#endif

const char *resp_built_with(bool tls)
{
    return tls ? HIREDIS ", TLS yes" BUILD : HIREDIS ", TLS no" BUILD;
}

void request_begin_empty(struct request *request)
{
    request->n = 0;
    request->n_commands = 0;
    request->script = NULL;
    request->connection = 0;
    request->stays = false;
    request->text_used = 0;
}

void request_bind(struct request *request, uint64_t connection)
{
    request->connection = connection;
}

void request_stay(struct request *request)
{
    request->stays = true;
}

void request_begin(struct request *request, const char *command)
{
    request_begin_empty(request);
    request_add_command(request, command);
}

void request_add_command(struct request *request, const char *command)
{
    if (request->n_commands < REQUEST_COMMANDS)
        request->first[request->n_commands++] = request->n;
    request_add(request, command);
}

void request_add(struct request *request, const char *word)
{
    if (request->n < REQUEST_WORDS)
        request->word[request->n++] = word;
}

void request_add_format(struct request *request, const char *format, ...)
{
    char *word = request->text + request->text_used;
    size_t room = sizeof request->text - request->text_used;
    va_list args;
    int written;

    va_start(args, format);
    written = vsnprintf(word, room, format, args);
    va_end(args);
    if (written >= 0 && (size_t)written < room) {
        request_add(request, word);
        request->text_used += (size_t)written + 1;
    }
}

/* Doesn't use realloc(3), which would leave a copy of the old bytes in freed memory. */
enum rlock_status request_append(char **out, size_t *out_bytes, const char *encoded, size_t n,
                                 struct rlock_error *err)
{
    char *whole = malloc(*out_bytes + n);

    if (whole == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    if (*out_bytes > 0) {
        memcpy(whole, *out, *out_bytes);
        explicit_bzero(*out, *out_bytes);
    }
    if (n > 0)
        memcpy(whole + *out_bytes, encoded, n);
    free(*out);
    *out = whole;
    *out_bytes += n;
    return RLOCK_OK;
}

static enum rlock_status encode_command(const struct request *request, int command, char **out,
                                        size_t *out_bytes, struct rlock_error *err)
{
    int first = request->first[command];
    int end = command + 1 < request->n_commands ? request->first[command + 1] : request->n;
    char *encoded = NULL;
    enum rlock_status st;
    long long n;

    n = redisFormatCommandArgv(&encoded, end - first, (const char **)&request->word[first], NULL);
    if (n < 0)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    st = request_append(out, out_bytes, encoded, (size_t)n, err);
    explicit_bzero(encoded, (size_t)n);
    redisFreeCommand(encoded);
    return st;
}

enum rlock_status request_encode(const struct request *request, char **out, size_t *out_bytes,
                                 struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    int i;

    for (i = 0; st == RLOCK_OK && i < request->n_commands; i++)
        st = encode_command(request, i, out, out_bytes, err);
    return st;
}

void request_use_eval(struct request *request)
{
    if (request->script == NULL)
        return;
    request->word[0] = "EVAL";
    request->word[1] = request->script;
    request->script = NULL;
}

enum rlock_status request_encoded_use_eval(const char *script, char **bytes, size_t *n,
                                           struct rlock_error *err)
{
    const char *count_end = memchr(*bytes, '\n', *n);
    size_t count_bytes = (size_t)(count_end + 1 - *bytes);
    size_t rest = count_bytes + EVALSHA_BYTES;
    char *whole;
    int head;

    whole = malloc(*n + strlen(script) + sizeof "$4\r\nEVAL\r\n$18446744073709551615\r\n\r\n");
    if (whole == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    head = sprintf(whole, "%.*s$4\r\nEVAL\r\n$%zu\r\n%s\r\n", (int)count_bytes, *bytes,
                   strlen(script), script);
    memcpy(whole + head, *bytes + rest, *n - rest);
    explicit_bzero(*bytes, *n); /* the request contains tokens */
    free(*bytes);
    *bytes = whole;
    *n = (size_t)head + *n - rest;
    return RLOCK_OK;
}

static void *bounded_array(const redisReadTask *task, element_count n)
{
    const struct resp_reader *resp = task->privdata;
    const redisReadTask *above;
    int depth = 1;

    for (above = task->parent; above != NULL; above = above->parent)
        depth++;
    if (n > MAX_ELEMENTS || depth > MAX_DEPTH)
        return NULL; /* hiredis then fails as if it had no memory */
    return resp->build_array(task, n);
}

struct resp_reader *resp_reader_new(void)
{
    struct resp_reader *resp = calloc(1, sizeof *resp);

    if (resp == NULL)
        return NULL;
    resp->max_bytes = MAX_BYTES;
    resp->reader = redisReaderCreate();
    if (resp->reader == NULL) {
        free(resp);
        return NULL;
    }
    resp->bounded = *resp->reader->fn;
    resp->build_array = resp->bounded.createArray;
    resp->bounded.createArray = bounded_array;
    resp->reader->fn = &resp->bounded;
    resp->reader->privdata = resp;
    return resp;
}

void resp_reader_free(struct resp_reader *resp)
{
    if (resp == NULL)
        return;
    freeReplyObject(resp->reply);
    freeReplyObject(resp->gathered);
    redisReaderFree(resp->reader);
    free(resp);
}

void resp_reader_set_max_bytes(struct resp_reader *resp, size_t bytes)
{
    resp->max_bytes = bytes;
}

enum rlock_status resp_reader_feed(struct resp_reader *resp, const char *bytes, size_t n,
                                   struct rlock_error *err)
{
    resp->unread += n;
    if (resp->unread > resp->max_bytes)
        return err_set(err, RLOCK_E_PROTOCOL, 0, "unexpected reply: longer than %zu bytes",
                       resp->max_bytes);
    if (redisReaderFeed(resp->reader, bytes, n) != REDIS_OK)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    return RLOCK_OK;
}

/* Parses the next reply; the caller frees it. RLOCK_PENDING: the reply is not whole yet. */
static enum rlock_status take_reply(struct resp_reader *resp, redisReply **reply,
                                    struct rlock_error *err)
{
    void *next = NULL;

    if (redisReaderGetReply(resp->reader, &next) != REDIS_OK)
        return err_set(err, RLOCK_E_PROTOCOL, 0,
                       "unexpected reply: not the protocol of Redis (%.80s)", resp->reader->errstr);
    if (next == NULL)
        return RLOCK_PENDING;
    resp->unread = resp->reader->len - resp->reader->pos;
    *reply = next;
    return RLOCK_OK;
}

void resp_reader_gather(struct resp_reader *resp, size_t n)
{
    resp->wanted = n;
}

/* Moves replies into resp->gathered. When all have come, the array becomes resp->reply. */
static enum rlock_status gather(struct resp_reader *resp, struct rlock_error *err)
{
    redisReadTask task = {.type = REDIS_REPLY_ARRAY, .elements = (int)resp->wanted};
    enum rlock_status st = RLOCK_OK;

    if (resp->gathered == NULL) {
        resp->gathered = resp->build_array(&task, (element_count)resp->wanted);
        resp->n_gathered = 0;
    }
    if (resp->gathered == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    while (st == RLOCK_OK && resp->n_gathered < resp->wanted) {
        st = take_reply(resp, &resp->gathered->element[resp->n_gathered], err);
        resp->n_gathered += st == RLOCK_OK;
    }
    if (st != RLOCK_OK)
        return st;
    resp->reply = resp->gathered;
    resp->gathered = NULL;
    resp->wanted = 1;
    return RLOCK_OK;
}

bool resp_reader_is_refused(struct resp_reader *resp, const struct resp_value **reply)
{
    if (resp->gathered == NULL || resp->n_gathered != 1 ||
        resp->gathered->element[0]->type != REDIS_REPLY_ERROR)
        return false;
    *reply = (const struct resp_value *)resp->gathered->element[0];
    return true;
}

enum rlock_status resp_reader_next(struct resp_reader *resp, const struct resp_value **reply,
                                   struct rlock_error *err)
{
    enum rlock_status st;

    freeReplyObject(resp->reply);
    resp->reply = NULL;
    st = resp->wanted > 1 ? gather(resp, err) : take_reply(resp, &resp->reply, err);
    if (st == RLOCK_OK)
        *reply = (const struct resp_value *)resp->reply;
    return st;
}

bool resp_may_begin(char byte)
{
    return byte != '\0' && strchr("+-:$*_,#!=(%~>|", byte) != NULL; /* the types of RESP 2 and 3 */
}

bool resp_reader_is_empty(const struct resp_reader *resp)
{
    return resp->unread == 0;
}

/* Each struct resp_value is a redisReply of hiredis; other files can't access its fields. */
static const redisReply *inside(const struct resp_value *reply)
{
    return (const redisReply *)reply;
}

const char *resp_error(const struct resp_value *reply)
{
    return inside(reply)->type == REDIS_REPLY_ERROR ? inside(reply)->str : NULL;
}

bool resp_is_status(const struct resp_value *reply, const char *text)
{
    return inside(reply)->type == REDIS_REPLY_STATUS && strcmp(inside(reply)->str, text) == 0;
}

bool resp_is_ok(const struct resp_value *reply)
{
    return resp_is_status(reply, "OK");
}

bool resp_is_int(const struct resp_value *reply)
{
    return reply != NULL && inside(reply)->type == REDIS_REPLY_INTEGER;
}

bool resp_is_nil(const struct resp_value *reply)
{
    return reply != NULL && inside(reply)->type == REDIS_REPLY_NIL;
}

int64_t resp_int(const struct resp_value *reply)
{
    return resp_is_int(reply) ? inside(reply)->integer : 0;
}

const char *resp_string(const struct resp_value *reply, size_t *bytes)
{
    if (reply == NULL || inside(reply)->type != REDIS_REPLY_STRING)
        return NULL;
    *bytes = inside(reply)->len;
    return inside(reply)->str;
}

size_t resp_array_count(const struct resp_value *reply)
{
    return inside(reply)->type == REDIS_REPLY_ARRAY ? inside(reply)->elements : 0;
}

const struct resp_value *resp_array_at(const struct resp_value *reply, size_t i)
{
    return i < resp_array_count(reply) ? (const struct resp_value *)inside(reply)->element[i]
                                       : NULL;
}
