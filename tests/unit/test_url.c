/* SPDX-License-Identifier: MIT */
/* test_url: good URLs are read, bad ones are refused, and no text shows a password. */
#include "tap.h"
#include "wire/url.h"

#include <stdlib.h>
#include <strings.h>

#define SECRET "s3cret" /* a password that occurs in no other text of this file */

static const struct {
    const char *text, *host, *port, *user, *password, *shown;
    int db;
} tcp[] = {
    {"redis://h", "h", "6379", NULL, NULL, "h:6379", 0},
    {"redis://h/0/", "h", "6379", NULL, NULL, "h:6379", 0},
    {"redis://h:1/15/", "h", "1", NULL, NULL, "h:1", 15},
    {"redis://127.0.0.1:65535", "127.0.0.1", "65535", NULL, NULL, "127.0.0.1:65535", 0},
    {"redis://h:06379", "h", "6379", NULL, NULL, "h:6379", 0},
    {"redis://u:" SECRET "@[fe80::1%25eth0]:7", "fe80::1%eth0", "7", "u", SECRET,
     "[fe80::1%eth0]:7", 0},
    {"redis://u@h", "h", "6379", "u", NULL, "h:6379", 0},
    {"redis://u:@h", "h", "6379", "u", NULL, "h:6379", 0},
    {"redis://@h", "h", "6379", NULL, NULL, "h:6379", 0},
    {"redis://u:p@q@h", "h", "6379", "u", "p@q", "h:6379", 0},
    {"redis://u:p%40%3a%2F%25@h", "h", "6379", "u", "p@:/%", "h:6379", 0},
    {"redis://%75%3A:%01%fF@%68:2", "h", "2", "u:", "\x01\xff", "h:2", 0},
    {"redis://u:" SECRET "@h:7?db=2", "h", "7", "u", SECRET, "h:7", 2},
    {"valkey://u:" SECRET "@h:7/2", "h", "7", "u", SECRET, "h:7", 2},
    {"REDIS://H/1", "H", "6379", NULL, NULL, "H:6379", 1},
    {"VALKEYS://h?db=3", "h", "6379", NULL, NULL, "h:6379", 3},
    {"redis://h/1000000", "h", "6379", NULL, NULL, "h:6379", 1000000},
    {"rediss://u:" SECRET "@[::1]:7/2", "::1", "7", "u", SECRET, "[::1]:7", 2},
};

static const struct {
    const char *text, *path;
    int db;
} local[] = {
    {"unix:///a%20b%3Fc?db=3", "/a b?c", 3},
    {"unix:///", "/", 0},
    {"UNIX:///Run/a?db=1", "/Run/a", 1},
};

static const struct {
    const char *why, *texts[6];
} bad[] = {
    {"starts with none", {"", " redis://h", "http://u:" SECRET "@h"}},
    {"only --url and RLOCK_URL", {"local:"}},
    {"no host", {"redis://", "redis://u:" SECRET "@:1", "redis+sentinel://a,,b/main"}},
    {"port", {"redis://h:", "redis://h:0", "redis://h:65536", "redis://h:+1", "redis://[::1]1"}},
    {"port", {"redis://[::1]:"}},
    {"%2F", {"redis://u:" SECRET "/@h"}},
    {"%3F", {"redis://:" SECRET "?" SECRET "@h:1"}},
    {"%23", {"rediss://:#" SECRET "@h:1/2"}},
    {"[", {"redis://[::1"}},
    {"database", {"redis://h/1/2", "redis://h/1000001", "redis://u:" SECRET "@h/" SECRET}},
    {"database", {"redis://h?db=x", "redis+sentinel://a,b/main/x"}},
    {"follow", {"redis://h?DB=1", "redis://u:" SECRET "@h/1#" SECRET}},
    {"%", {"redis://h%4g", "redis://h%00", "unix:///a%00"}},
    {"%25", {"redis://u:" SECRET "%@h", "redis://u:%00" SECRET "@h"}},
    {"%25", {"redis+sentinel://:" SECRET "%z@a/main"}},
    {"service", {"redis+sentinel://", "redis+sentinel://u:" SECRET "@h//1"}},
    {"service", {"redis+sentinel://a,b?db=1"}},
    {"too many", {"redis+sentinel://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a/main"}},
    {"path", {"unix://u:" SECRET "@/a"}},
    {"?db=N", {"unix:///a?password=" SECRET}},
};

static bool same(const char *got, const char *wanted)
{
    return got == NULL || wanted == NULL ? got == wanted : strcmp(got, wanted) == 0;
}

static void test_sentinels(void)
{
    static const char *const shown[] = {"a:26379", "b:1", "[::1]:26379", "[::2]:2"};
    struct url url;

    need(url_parse(&url, "redis+sentinel://u:" SECRET "@a,b:1,[::1],[::2]:2/m%61in/3", NULL) ==
         RLOCK_OK);
    ok(url.kind == URL_SENTINEL && strcmp(url.service, "main") == 0 && url.db == 3 &&
       strcmp(url.user, "u") == 0 && strcmp(url.password, SECRET) == 0);
    is_int((int64_t)url.n_sentinels, 4, "the URL has all four Sentinels");
    for (size_t i = 0; i < url.n_sentinels; i++)
        ok(strcmp(url.sentinel[i].shown, shown[i]) == 0 && url.sentinel[i].password == NULL &&
               url.sentinel[i].user == NULL && url.sentinel[i].db == 0,
           shown[i]);
    url_fini(&url);
    need(url_parse(&url, "ValkeyS+Sentinel://a/main?db=2", NULL) == RLOCK_OK);
    ok(url.kind == URL_SENTINEL && url.is_tls && url.db == 2 && strcmp(url.service, "main") == 0);
    url_fini(&url);
    need(url_parse(&url, "redis+sentinel://a/main/3/", NULL) == RLOCK_OK);
    is_int(url.db, 3, "the database in front of the last slash is read");
    url_fini(&url);
}

static void test_good(void)
{
    struct rlock_error err = {.text = ""};
    struct url url;

    for (size_t i = 0; i < sizeof tcp / sizeof tcp[0]; i++) {
        if (!okf(url_parse(&url, tcp[i].text, &err) == RLOCK_OK, "%s is read", tcp[i].text))
            continue;
        okf(url.kind == URL_TCP && same(url.host, tcp[i].host) && same(url.port, tcp[i].port) &&
                same(url.user, tcp[i].user) && same(url.password, tcp[i].password) &&
                url.db == tcp[i].db && url.path == NULL &&
                url.is_tls == (strncasecmp(tcp[i].text, "rediss:", 7) == 0 ||
                               strncasecmp(tcp[i].text, "valkeys:", 8) == 0),
            "all parts of %s are read", tcp[i].text);
        is_str(url.shown, tcp[i].shown, "the text for messages is right, without the password");
        url_fini(&url);
    }
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        if (!okf(url_parse(&url, local[i].text, &err) == RLOCK_OK, "%s is read", local[i].text))
            continue;
        okf(url.kind == URL_UNIX && same(url.path, local[i].path) && url.db == local[i].db &&
                url.host == NULL && url.user == NULL && url.password == NULL,
            "all parts of %s are read", local[i].text);
        is_str(url.shown, local[i].path, "the text for messages is the path");
        url_fini(&url);
        url_fini(&url);
    }
}

static void test_cli_options(void)
{
    static const char *const wanted[][2] = {
        {"redis://h", "-h h -p 6379"},
        {"rediss://u:" SECRET "@[::1]:7/2", "-h ::1 -p 7 --tls -n 2"},
        {"unix:///run/redis.sock?db=3", "-s /run/redis.sock -n 3"},
        {"redis+sentinel://u:" SECRET "@h/main", ""}, /* only the Sentinels know the server */
        {"local:", ""},
    };
    char text[URL_CLI_BYTES];

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        url_cli_options(wanted[i][0], text);
        is_str(text, wanted[i][1], "redis-cli's options for a URL, without the password");
    }
}

static void test_bad(void)
{
    struct rlock_error err;
    struct url url;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (const char *const *text = bad[i].texts; *text != NULL; text++) {
            memset(&url, 0x55, sizeof url);
            err = (struct rlock_error){.text = ""};
            okf(url_parse(&url, *text, &err) == RLOCK_E_CONFIG && err.status == RLOCK_E_CONFIG &&
                    strstr(err.text, bad[i].why) != NULL,
                "the bad URL %s is refused: %s", *text, err.text);
            okf(strstr(err.text, SECRET) == NULL, "the error text has no password: %s", err.text);
            okf(url.db == 0x55555555, "the struct url is unchanged");
            okf(url_parse(&url, *text, NULL) == RLOCK_E_CONFIG,
                "a bad URL is refused without a struct rlock_error, too");
        }
}

/* What a message shows of a URL that is refused. */
static const struct {
    const char *text, *shown;
} refused[] = {
    {"localhost:6379", "localhost:6379"},
    {"redis://h,i", "redis://h,i"}, /* the Sentinels of one URL are several, servers never */
    {"redis://u:" SECRET, "redis://u:******"}, /* the host and the @ were forgotten */
    {"u:" SECRET "@h", "u:******@h"},
    {"redis://u:a b@h:x", "redis://u:***@h:*"},
    {"redis://u:" SECRET "@h/12/" SECRET, "redis://u:******@h/*********"},
    {"redis://[::1]:7x", "redis://[::1]:**"},
    {"redis://[::1", "redis://[:**"},
    {"redis://h?db=x1", "redis://h?db=**"},
    {"redis://h?password=" SECRET, "redis://h?***************"},
    {"redis+sentinel://a:1,b:x,c/main/x", "redis+sentinel://a:1,b:*,c/******"},
    {"unix://u:" SECRET "@/a", "unix://u:******@/*"},
    {"redis://u:@h:x", "redis://u:@h:*"},
    {"\x1b[2J", "\\x1b[2J"},
};

/* The URL that is suggested for a text that is refused. */
static const struct {
    const char *text, *meant; /* NULL: none is suggested */
} suggestions[] = {
    {"localhost:6379", "redis://localhost:6379"},
    {"u:" SECRET "@h:7", "redis://u:******@h:7"},
    {"redis:h", "redis://h"},
    {"rediss:/h/1", "rediss://h/1"},
    {"tcp://h:1", "redis://h:1"},
    {"tls://h:1", "rediss://h:1"},
    {"/run/redis.sock", "unix:///run/redis.sock"},
    {"unix:/x", "unix:///x"},
    {"UNIX:/x?db=2", "unix:///x?db=2"},
    {"local", "local:"},
    {"local://", "local:"},
    {"", NULL},
    {"redis://", NULL},
    {"http://h/path", NULL},
    {"redis+tcp://u:" SECRET "@h:7/1", "redis://u:******@h:7/1"},
    {"redis+ssl://h:7", "rediss://h:7"},
    {"redis-ssl://h", "rediss://h"},
    {"redis+unix:///run/a", "unix:///run/a"},
    {"redis-socket:///run/a", "unix:///run/a"},
    {"redis-sentinel://a,b:2/main/1", "redis+sentinel://a,b:2/main/1"},
    {"redis-sentinel://u:" SECRET "@a,b#main", "redis+sentinel://u:******@a,b/****"},
    {"redis-sentinel://a,b/2#main", "redis+sentinel://a,b/main/2"},
    {"rediss-sentinel://a#main", "rediss+sentinel://a/main"},
    {"redis-sentinel://#", NULL},
    {"a b", NULL},
    {"::1", NULL},
};

static void test_refused(void)
{
    char shown[URL_SHOWN_BYTES];
    char quoted[URL_SHOWN_BYTES + 20];
    struct rlock_error err;
    struct url url;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        url_parse(&url, refused[i].text, &err);
        snprintf(quoted, sizeof quoted, "bad URL: \"%s\": ", refused[i].shown);
        okf(strncmp(err.text, quoted, strlen(quoted)) == 0, "%s is shown as %s: %s",
            refused[i].text, refused[i].shown, err.text);
    }
    url_parse(&url, "redis://h,i", &err);
    is_str(err.text,
           "bad URL: \"redis://h,i\": a comma in the host: each server needs a URL of its own");
    for (size_t i = 0; i < sizeof suggestions / sizeof suggestions[0]; i++) {
        bool is_like = url_suggest(suggestions[i].text, shown);

        okf(is_like == (suggestions[i].meant != NULL) &&
                (!is_like || strcmp(shown, suggestions[i].meant) == 0),
            "for \"%s\" the suggestion is %s: %s", suggestions[i].text,
            suggestions[i].meant != NULL ? suggestions[i].meant : "nothing",
            is_like ? shown : "nothing");
    }
}

/* Words with what may be a password, as url_mask() leaves them. */
static const struct {
    const char *text, *masked;
} words[] = {
    {"", ""},
    {" \t", " \t"},
    {"redis://h", "redis://h"},
    {"redis://u:@h", "redis://u:@h"},
    {"redis://u:p#x@h", "redis://u:***@h"},
    {"redis://token@h", "redis://*****@h"},
    {"a@b\t redis://u:a@b@h  c", "*@b\t redis://u:***@h  c"},
    {"unix:///run/redis@1 redis://:pw@h", "unix:///run/redis@1 redis://:**@h"},
    {"UNIX:///run/redis@1", "UNIX:///run/redis@1"},
    {"unix://u:pw@h", "unix://u:**@h"},
};

static void test_words(void)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char *text = strdup(words[i].text);
        bool may = url_may_hold_password(text);

        url_mask(text);
        is_str(text, words[i].masked, "url_mask() overwrites what may be a password");
        okf(may == (strcmp(words[i].text, words[i].masked) != 0), "\"%s\" may have one: %d",
            words[i].text, may);
        free(text);
    }
}

/* Parses a URL of `start`, then n times the character c, then `end`. */
static enum rlock_status parse_long(struct url *url, const char *start, char c, size_t n,
                                    const char *end)
{
    char *text = malloc(strlen(start) + n + strlen(end) + 1);
    enum rlock_status st;

    if (text == NULL)
        return RLOCK_E_MEMORY;
    memcpy(text, start, strlen(start));
    memset(text + strlen(start), c, n);
    memcpy(text + strlen(start) + n, end, strlen(end) + 1);
    st = url_parse(url, text, NULL);
    free(text);
    return st;
}

static void test_limits(void)
{
    static const char *const odd[] = {"redis://a%0A%1b[2J%7f", "unix:///a%0A%1b[2J%7f"};
    struct url url;

    is_int(parse_long(&url, "unix:///", 'a', 107, ""), RLOCK_E_CONFIG);
    need(parse_long(&url, "unix:///", 'a', 106, "?db=1") == RLOCK_OK);
    is_int((int64_t)strlen(url.path), 107, "the whole path is kept");
    url_fini(&url);
    need(parse_long(&url, "redis://u:", 'p', 65536, "@h") == RLOCK_OK);
    is_int((int64_t)strlen(url.password), 65536, "the whole password is kept");
    url_fini(&url);
    need(parse_long(&url, "redis://", 'h', 65536, ":1") == RLOCK_OK);
    is_int((int64_t)strlen(url.host), 65536, "the whole host is kept");
    ok(strlen(url.shown) < sizeof url.shown, "the text for messages is cut");
    url_fini(&url);
    is_int(parse_long(&url, "redis://h:", '0', 65536, ""), RLOCK_E_CONFIG);
    for (size_t i = 0; i < 2; i++) {
        need(url_parse(&url, odd[i], NULL) == RLOCK_OK);
        ok(is_printable(url.shown), "the text for messages has no control characters");
        url_fini(&url);
    }
}

static void test_remove_password(void)
{
    static const struct {
        char url[40];
        const char *without;
    } rows[] = {
        {"redis://u:a-long-secret@h:1/2", "redis://u@h:1/2"},
        {"redis://:a-long-secret@h", "redis://h"},
        {"rediss://u@h", "rediss://u@h"},
        {"u:a-long-secret@h", "u:a-long-secret@h"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char url[sizeof rows[i].url];
        size_t end;

        memcpy(url, rows[i].url, sizeof url);
        url_remove_password(url);
        is_str(url, rows[i].without);
        for (end = strlen(url); end < sizeof url && url[end] == '\0';)
            end++;
        is_int((int64_t)end, sizeof url, "nothing of the password stays behind the URL");
    }
}

TESTS(test_good, test_sentinels, test_cli_options, test_bad, test_refused, test_words, test_limits,
      test_remove_password)
