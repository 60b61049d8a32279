/* SPDX-License-Identifier: MIT */
/* test_resp: replies are read in any pieces, and never take more memory than their bounds allow. */
#include "tap.h"
#include "wire/resp.h"

#include <stdlib.h>
#include <sys/resource.h>

#define BOUND (64 * 1024)

/* Sanitizers allocate memory of their own, so their builds do not check the size of the process. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

/* Contains the replies of the tests, also those that are longer than the bound. */
static char big[BOUND + 4096];

/* Whole replies, with their lengths, as one of them contains a NUL byte. */
#define BYTES(text)           \
    {                         \
        text, sizeof text - 1 \
    }

static const struct {
    const char *text;
    size_t n;
} whole[] = {
    BYTES("+OK\r\n"),
    BYTES("+\r\n"),
    BYTES("-ERR no\r\n"),
    BYTES(":0\r\n"),
    BYTES(":9223372036854775807\r\n"),
    BYTES(":-9223372036854775808\r\n"),
    BYTES("$-1\r\n"),
    BYTES("$0\r\n\r\n"),
    BYTES("$5\r\nhello\r\n"),
    BYTES("$4\r\n\r\n\r\n\r\n"),
    BYTES("*-1\r\n"),
    BYTES("*0\r\n"),
    BYTES("*3\r\n:1\r\n:1700000000000\r\n$16\r\n1700000000000000\r\n"),
    BYTES("*4\r\n:0\r\n:1\r\n:-1\r\n$2\r\n\0x\r\n"),
    BYTES("*1\r\n*1\r\n*1\r\n*2\r\n$1\r\na\r\n+b\r\n"),
};

static struct resp_reader *resp;
static const struct resp_value *reply; /* the last that was read */

/* Makes a reader anew. */
static void begin(void)
{
    resp_reader_free(resp);
    resp = resp_reader_new();
    if (resp == NULL)
        abort();
}

static bool reads(void)
{
    return resp_reader_next(resp, &reply, NULL) == RLOCK_OK;
}

/* Feeds `n` bytes: a first piece, then pieces of `piece` bytes. Returns the last status. */
static enum rlock_status feed(const char *bytes, size_t n, size_t first, size_t piece)
{
    enum rlock_status st = RLOCK_PENDING;
    size_t at = 0;
    size_t each = first;

    while (at < n && st == RLOCK_PENDING) {
        each = each < n - at ? each : n - at;
        st = resp_reader_feed(resp, bytes + at, each, NULL);
        if (st == RLOCK_OK)
            st = resp_reader_next(resp, &reply, NULL);
        at += each;
        each = piece;
    }
    return at == n || st != RLOCK_OK ? st : RLOCK_E_USAGE;
}

static void test_gather(void)
{
    static const char two[] = "+OK\r\n-ERR no\r\n:3\r\n";

    begin();
    for (size_t first = 1; first < sizeof two - 1; first++) {
        resp_reader_gather(resp, 3);
        is_int(feed(two, sizeof two - 1, first, 1), RLOCK_OK);
        ok(resp_array_count(reply) == 3 && resp_is_ok(resp_array_at(reply, 0)) &&
           resp_error(resp_array_at(reply, 1)) != NULL && resp_int(resp_array_at(reply, 2)) == 3);
    }
    (void)!resp_reader_feed(resp, two, sizeof two - 1, NULL);
    ok(reads() && resp_is_ok(reply));
    ok(!resp_reader_is_refused(resp, &reply), "a reader that gathers nothing has no refusal");
}

static void test_refused(void)
{
    static const char refusal[] = "-ERR max number of clients reached\r\n";

    begin();
    resp_reader_gather(resp, 2);
    is_int(feed(refusal, sizeof refusal - 1, sizeof refusal - 1, 1), RLOCK_PENDING);
    ok(resp_reader_is_refused(resp, &reply) && resp_error(reply) != NULL);
    (void)!resp_reader_feed(resp, ":1\r\n", 4, NULL);
    ok(reads() && resp_array_count(reply) == 2);
}

static void test_contents(void)
{
    size_t n = 77;

    begin();
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        (void)!resp_reader_feed(resp, whole[i].text, whole[i].n, NULL);
    ok(reads() && resp_is_ok(reply) && !resp_reader_is_empty(resp));
    ok(reads() && !resp_is_ok(reply));
    ok(reads() && !resp_is_ok(reply));
    is_str(resp_error(reply), "ERR no", "resp_error() returns the text of an error reply");
    ok(reads() && resp_is_int(reply));
    ok(reads() && resp_int(reply) == INT64_MAX);
    ok(reads() && resp_int(reply) == INT64_MIN);
    ok(reads() && resp_string(reply, &n) == NULL && n == 77);
    ok(!resp_is_ok(reply) && !resp_is_int(reply) && resp_int(reply) == 0 &&
       resp_error(reply) == NULL && resp_array_count(reply) == 0 &&
       resp_array_at(reply, 0) == NULL);
    ok(reads() && resp_string(reply, &n) != NULL && n == 0);
    ok(reads() && resp_array_count(reply) == 0, "hello");
    is_str(resp_string(reply, &n), "hello", "resp_string() returns the bytes of a string");
    ok(reads() && resp_string(reply, &n) != NULL && n == 4);
    ok(reads() && resp_array_count(reply) == 0);
    ok(reads() && resp_array_count(reply) == 0);
    ok(reads() && resp_array_count(reply) == 3 &&
       resp_int(resp_array_at(reply, 1)) == 1700000000000 && resp_array_at(reply, 3) == NULL);
    ok(!resp_is_int(NULL) && resp_int(NULL) == 0 && resp_string(NULL, &n) == NULL);
    ok(reads() && resp_string(resp_array_at(reply, 3), &n) != NULL && n == 2 &&
       resp_string(resp_array_at(reply, 3), &n)[1] == 'x');
    ok(reads() &&
       resp_array_count(resp_array_at(resp_array_at(resp_array_at(reply, 0), 0), 0)) == 2);
    ok(resp_reader_next(resp, &reply, NULL) == RLOCK_PENDING && resp_reader_is_empty(resp));
}

static enum rlock_status read_once(const char *bytes, size_t n, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_PENDING;

    begin();
    for (size_t at = 0; at < n && st == RLOCK_PENDING; at += 4096) {
        st = resp_reader_feed(resp, bytes + at, n - at < 4096 ? n - at : 4096, err);
        if (st == RLOCK_OK)
            st = resp_reader_next(resp, &reply, err);
    }
    return st;
}

/* Writes `head`, then `n` times `each`, then `tail` to `big`. Returns the number of bytes. */
static size_t build(const char *head, size_t n, const char *each, const char *tail)
{
    size_t used = (size_t)snprintf(big, sizeof big, "%s", head);

    for (; n > 0 && used + strlen(each) + strlen(tail) < sizeof big; n--)
        used += (size_t)snprintf(big + used, sizeof big - used, "%s", each);
    return used + (size_t)snprintf(big + used, sizeof big - used, "%s", tail);
}

static void test_bounds(void)
{
    char head[32];
    size_t n = BOUND - strlen("$65526\r\n\r\n");

    snprintf(head, sizeof head, "$%zu\r\n", n);
    is_int(read_once(big, build(head, n, "x", "\r\n"), NULL), RLOCK_OK);
    snprintf(head, sizeof head, "$%zu\r\n", n + 1);
    is_int(read_once(big, build(head, n + 1, "x", "\r\n"), NULL), RLOCK_E_PROTOCOL);
    is_int(read_once(big, build("+", BOUND, "x", ""), NULL), RLOCK_E_PROTOCOL);
    is_int(read_once(big, build("*64\r\n", 64, ":1\r\n", ""), NULL), RLOCK_OK);
    is_int(read_once(big, build("*65\r\n", 65, ":1\r\n", ""), NULL), RLOCK_E_PROTOCOL);
    is_int(read_once(big, build("", 4, "*1\r\n", ":1\r\n"), NULL), RLOCK_OK);
    is_int(read_once(big, build("", 5, "*1\r\n", ":1\r\n"), NULL), RLOCK_E_PROTOCOL);
    is_int(read_once(big, build("", 100, "*1\r\n", ":1\r\n"), NULL), RLOCK_E_PROTOCOL);
    is_int(read_once(big, build("", 3, "*64\r\n", ""), NULL), RLOCK_PENDING);
}

/* Malformed replies. Each must be refused, even if it is not whole yet. */
static const char *const hostile[] = {
    "$-2\r\n",
    "$99999999999999999999999\r\n",
    "*1000000000\r\n",
    "*4294967297\r\n:1\r\n",
    ":\r\n",
    ":9223372036854775808\r\n",
    ":1 \r\n",
    "HTTP/1.1 400 Bad Request\r\n",
    "\x16\x03\x01\x02",
    "*2\r\n:1\r\nx\r\n",
};

static void test_hostile(void)
{
    struct rlock_error err;
    enum rlock_status st;
    struct rusage before;
    struct rusage after;
    int round;
    size_t n;

    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        err.text[0] = '\0';
        st = read_once(hostile[i], strlen(hostile[i]), &err);
        okf(st == RLOCK_E_PROTOCOL && err.status == st &&
                strncmp(err.text, "unexpected reply: ", 18) == 0 && is_printable(err.text),
            "refused: %s", hostile[i]);
    }
    is_int(read_once(big, build("$9223372036854775807\r\n", BOUND, "x", ""), NULL),
           RLOCK_E_PROTOCOL, "a string of INT64_MAX bytes is refused after 64 KiB");
    n = build("$1000000000\r\n", BOUND, "x", "");
    for (round = 0; round < 500 && read_once(big, n, NULL) == RLOCK_E_PROTOCOL; round++)
        if (round == 9)
            getrusage(RUSAGE_SELF, &before);
    getrusage(RUSAGE_SELF, &after);
    is_int(round, 500, "500 strings of 1 GB each are refused");
    if (!is_sanitized)
        ok(after.ru_maxrss - before.ru_maxrss < 1024, "the process has grown by less than 1 MiB");
}

static void test_requests(void)
{
    struct request request = {.n = 0};
    char *bytes = NULL;
    size_t n = 0;

    request_begin(&request, "GET");
    request_add(&request, "");
    is_int(request_encode(&request, &bytes, &n, NULL), RLOCK_OK);
    request_begin(&request, "a\r\nb");
    is_int(request_encode(&request, &bytes, &n, NULL), RLOCK_OK);
    ok(n == 33 && memcmp(bytes, "*2\r\n$3\r\nGET\r\n$0\r\n\r\n*1\r\n$4\r\na\r\nb\r\n", n) == 0);
    free(bytes);
}

static void test_scripts(void)
{
    static const char digest[] = "0123456789abcdef0123456789abcdef01234567";
    static const char spelled[] = "*4\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n$1\r\nk\r\n";
    struct request request;
    char *bytes = NULL;
    char *again = NULL;
    size_t n = 0;
    size_t n_again = 0;

    request_begin(&request, "EVALSHA");
    request.script = "return 1";
    request_add(&request, digest);
    request_add(&request, "1");
    request_add(&request, "k");
    is_int(request_encode(&request, &bytes, &n, NULL), RLOCK_OK, "an EVALSHA is encoded");
    is_int(request_encoded_use_eval(request.script, &bytes, &n, NULL), RLOCK_OK);
    ok(n == sizeof spelled - 1 && memcmp(bytes, spelled, n) == 0);
    request_use_eval(&request);
    is_int(request_encode(&request, &again, &n_again, NULL), RLOCK_OK);
    ok(n_again == n && memcmp(again, spelled, n) == 0);
    free(bytes);
    free(again);
}

int main(void)
{
    RUN_ALL(test_contents, test_gather, test_refused, test_bounds, test_hostile, test_requests,
            test_scripts);
    ok(strncmp(resp_built_with(true), "hiredis ", 8) == 0 &&
       strstr(resp_built_with(true), "TLS yes") != NULL &&
       strstr(resp_built_with(false), "TLS no") != NULL);
    resp_reader_free(resp);
    return done_testing();
}
