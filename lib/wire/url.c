/* SPDX-License-Identifier: MIT */
/* url: parses, compares and copies the URL of a server, and masks passwords in URLs. */
#include "wire/url.h"

#include "base/err.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define REDIS_PORT 6379
#define SENTINEL_PORT 26379
#define DB_MAX 1000000 /* no server has so many databases; larger numbers may not fit an int */

static enum rlock_status bad(struct rlock_error *err, const char *why)
{
    return err_set(err, RLOCK_E_CONFIG, 0, "bad URL: %s", why);
}

static int hex_value(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at;

    if (c >= 'A' && c <= 'F')
        c = (char)(c - 'A' + 'a');
    at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

/* Copies [text, end) and decodes each %XX. Fails at a broken %XX, and at %00. */
static enum rlock_status decode(char **out, const char *text, const char *end,
                                struct rlock_error *err)
{
    char *copy = malloc((size_t)(end - text) + 1);
    char *at = copy;

    if (copy == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    while (text < end) {
        int high;
        int low;

        if (*text != '%') {
            *at++ = *text++;
            continue;
        }
        high = end - text > 2 ? hex_value(text[1]) : -1;
        low = end - text > 2 ? hex_value(text[2]) : -1;
        if (high < 0 || low < 0 || high + low == 0) {
            explicit_bzero(copy, (size_t)(at - copy)); /* the text may be a password */
            free(copy);
            return bad(err, "a % that isn't followed by two hex digits");
        }
        *at++ = (char)(high * 16 + low);
        text += 3;
    }
    *at = '\0';
    *out = copy;
    return RLOCK_OK;
}

/* Reads a decimal number from 0 to `most`. False if [text, end) has any byte that is no digit. */
static bool parse_number(const char *text, const char *end, long most, long *value)
{
    long n = 0;

    if (text == end)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        n = n * 10 + (*text - '0');
        if (n > most)
            return false;
    }
    *value = n;
    return true;
}

static enum rlock_status parse_db(struct url *url, const char *text, struct rlock_error *err)
{
    long db;

    if (!parse_number(text, text + strlen(text), DB_MAX, &db))
        return bad(err, "the database isn't a number");
    url->db = (int)db;
    return RLOCK_OK;
}

/* Reads "user[:password]", which ends at the '@' in front of the host. */
static enum rlock_status parse_login(struct url *url, const char *text, const char *end,
                                     struct rlock_error *err)
{
    const char *colon = memchr(text, ':', (size_t)(end - text));
    const char *user_end = colon == NULL ? end : colon;
    enum rlock_status st = RLOCK_OK;

    if (user_end > text)
        st = decode(&url->user, text, user_end, err);
    if (st == RLOCK_OK && colon != NULL && colon + 1 < end)
        st = decode(&url->password, colon + 1, end, err);
    return st;
}

static void set_shown(struct url *url)
{
    snprintf(url->shown, sizeof url->shown, strchr(url->host, ':') ? "[%s]:%s" : "%s:%s", url->host,
             url->port);
    err_make_printable(url->shown);
}

/* Reads "host[:port]", or an IPv6 address as "[host][:port]". */
static enum rlock_status parse_host(struct url *url, const char *text, const char *end, long port,
                                    struct rlock_error *err)
{
    const char *host_end = end;
    const char *colon;
    enum rlock_status st;

    if (text < end && *text == '[') {
        host_end = memchr(text, ']', (size_t)(end - text));
        if (host_end == NULL)
            return bad(err, "a [ without its ]");
        colon = host_end + 1 < end ? host_end + 1 : NULL;
        text++;
    } else {
        colon = memchr(text, ':', (size_t)(end - text));
        if (colon != NULL)
            host_end = colon;
    }
    if (colon != NULL &&
        (*colon != ':' || !parse_number(colon + 1, end, 65535, &port) || port == 0))
        return bad(err, "the port isn't a number from 1 to 65535");
    if (host_end == text)
        return bad(err, "no host");
    snprintf(url->port, sizeof url->port, "%hu", (unsigned short)port);
    st = decode(&url->host, text, host_end, err);
    if (st == RLOCK_OK)
        set_shown(url);
    return st;
}

static enum rlock_status parse_tcp(struct url *url, const char *text, struct rlock_error *err)
{
    const char *end = text + strcspn(text, "/?#");
    const char *at = memrchr(text, '@', (size_t)(end - text));
    enum rlock_status st = RLOCK_OK;

    url->kind = URL_TCP;
    if (end[0] == '?' || end[0] == '#' || strpbrk(end, "?#") != NULL)
        return bad(err, "nothing may follow the database");
    if (at != NULL)
        st = parse_login(url, text, at, err);
    if (st == RLOCK_OK)
        st = parse_host(url, at == NULL ? text : at + 1, end, REDIS_PORT, err);
    if (st == RLOCK_OK && end[0] == '/' && end[1] != '\0')
        st = parse_db(url, end + 1, err);
    return st;
}

/* Reads "host[:port][,host[:port]...]". */
static enum rlock_status parse_sentinels(struct url *url, const char *text, const char *end,
                                         struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    url->sentinel = calloc(URL_SENTINELS_MAX, sizeof *url->sentinel);
    if (url->sentinel == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    while (st == RLOCK_OK) {
        const char *comma = memchr(text, ',', (size_t)(end - text));

        if (url->n_sentinels == URL_SENTINELS_MAX)
            return bad(err, "too many Sentinels");
        url->sentinel[url->n_sentinels].is_tls = url->is_tls;
        st = parse_host(&url->sentinel[url->n_sentinels++], text, comma == NULL ? end : comma,
                        SENTINEL_PORT, err);
        if (comma == NULL)
            break;
        text = comma + 1;
    }
    return st;
}

static enum rlock_status parse_sentinel(struct url *url, const char *text, struct rlock_error *err)
{
    const char *end = text + strcspn(text, "/?#");
    const char *at = memrchr(text, '@', (size_t)(end - text));
    const char *service_end = *end == '/' ? end + 1 + strcspn(end + 1, "/?#") : end;
    enum rlock_status st = RLOCK_OK;

    url->kind = URL_SENTINEL;
    if (strpbrk(end, "?#") != NULL)
        return bad(err, "nothing may follow the database");
    if (service_end <= end + 1)
        return bad(err, "the service that the Sentinels watch is missing");
    if (at != NULL)
        st = parse_login(url, text, at, err);
    if (st == RLOCK_OK)
        st = parse_sentinels(url, at == NULL ? text : at + 1, end, err);
    if (st == RLOCK_OK)
        st = decode(&url->service, end + 1, service_end, err);
    if (st == RLOCK_OK && service_end[0] == '/' && service_end[1] != '\0')
        st = parse_db(url, service_end + 1, err);
    if (st == RLOCK_OK)
        snprintf(url->shown, sizeof url->shown, "%s", url->service);
    return st;
}

static enum rlock_status parse_unix(struct url *url, const char *text, struct rlock_error *err)
{
    const char *end = text + strcspn(text, "?");
    enum rlock_status st;

    url->kind = URL_UNIX;
    if (text[0] != '/')
        return bad(err, "the path of a socket starts with /");
    st = decode(&url->path, text, end, err);
    if (st != RLOCK_OK)
        return st;
    if (strlen(url->path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return bad(err, "the path is too long for a socket");
    snprintf(url->shown, sizeof url->shown, "%s", url->path);
    if (*end == '\0')
        return RLOCK_OK;
    if (strncmp(end, "?db=", 4) != 0)
        return bad(err, "only ?db=N may follow the path");
    return parse_db(url, end + 4, err);
}

enum rlock_status url_parse(struct url *url, const char *text, struct rlock_error *err)
{
    static const struct {
        const char *scheme;
        enum rlock_status (*parse)(struct url *, const char *, struct rlock_error *);
        bool is_tls;
    } schemes[] = {{"redis://", parse_tcp, false},
                   {"rediss://", parse_tcp, true},
                   {"redis+sentinel://", parse_sentinel, false},
                   {"rediss+sentinel://", parse_sentinel, true},
                   {"unix://", parse_unix, false}};
    struct url parsed = {.kind = URL_TCP};
    enum rlock_status st;
    size_t i;

    for (i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncmp(text, schemes[i].scheme, strlen(schemes[i].scheme)) == 0)
            break;
    if (i == sizeof schemes / sizeof schemes[0])
        return bad(err, "it starts with none of redis://, rediss://, redis+sentinel://, "
                        "rediss+sentinel://, unix://, local:");
    parsed.is_tls = schemes[i].is_tls;
    st = schemes[i].parse(&parsed, text + strlen(schemes[i].scheme), err);
    err_make_printable(parsed.shown);
    if (st == RLOCK_OK)
        *url = parsed;
    else
        url_fini(&parsed);
    return st;
}

/* Returns a copy, or NULL for NULL. Sets `*has_memory` to false if there is no memory. */
static char *copy_of(const char *text, bool *has_memory)
{
    char *copy = text == NULL ? NULL : strdup(text);

    *has_memory = *has_memory && (copy != NULL || text == NULL);
    return copy;
}

enum rlock_status url_copy(struct url *url, const struct url *from, struct rlock_error *err)
{
    struct url made = *from;
    bool has_memory = true;

    made.host = copy_of(from->host, &has_memory);
    made.alias = copy_of(from->alias, &has_memory);
    made.given_host = copy_of(from->given_host, &has_memory);
    made.path = copy_of(from->path, &has_memory);
    made.user = copy_of(from->user, &has_memory);
    made.password = copy_of(from->password, &has_memory);
    made.service = NULL;
    made.sentinel = NULL;
    made.n_sentinels = 0;
    if (!has_memory) {
        url_fini(&made);
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    }
    *url = made;
    return RLOCK_OK;
}

bool url_is_number(const char *host)
{
    unsigned char number[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, number) == 1 || inet_pton(AF_INET6, host, number) == 1;
}

enum rlock_status url_at(struct url *url, const struct url *like, const char *host,
                         const char *alias, const char *port, struct rlock_error *err)
{
    struct url there = {.kind = URL_TCP, .db = like->db, .is_tls = like->is_tls};
    enum rlock_status st;
    long n;

    if (*host == '\0' || !parse_number(port, port + strlen(port), 65535, &n) || n == 0)
        return err_set(err, RLOCK_E_PROTOCOL, 0, "reply: names no server");
    there.host = strdup(host);
    if (alias != NULL && *alias != '\0' && strcasecmp(alias, host) != 0)
        there.alias = (char *)alias;
    there.given_host = like->given_host != NULL ? like->given_host : like->host;
    there.user = like->user;
    there.password = like->password;
    if (there.host == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    snprintf(there.port, sizeof there.port, "%hu", (unsigned short)n);
    set_shown(&there);
    st = url_copy(url, &there, err);
    free(there.host);
    return st;
}

static bool is_called(const struct url *url, const char *name)
{
    return strcasecmp(url->host, name) == 0 ||
           (url->alias != NULL && strcasecmp(url->alias, name) == 0);
}

/* The nodes of a Cluster may share one host name, so if both URLs have an alias, it must match. */
bool url_is_same(const struct url *a, const struct url *b)
{
    if (a->kind != URL_TCP || b->kind != URL_TCP || a->host == NULL || b->host == NULL ||
        strcmp(a->port, b->port) != 0)
        return false;
    if (a->alias == NULL)
        return is_called(b, a->host);
    return is_called(a, b->host) && (b->alias == NULL || is_called(a, b->alias));
}

void url_move(struct url *url, struct url *from)
{
    *url = *from;
    *from = (struct url){.kind = URL_TCP};
}

enum rlock_status url_set_user(struct url *url, const char *user, struct rlock_error *err)
{
    char *copy = strdup(user);

    if (copy == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    free(url->user);
    url->user = copy;
    return RLOCK_OK;
}

void url_clear_password(struct url *url)
{
    if (url->password != NULL)
        explicit_bzero(url->password, strlen(url->password));
}

void url_fini(struct url *url)
{
    size_t i;

    for (i = 0; i < url->n_sentinels; i++)
        url_fini(&url->sentinel[i]);
    free(url->sentinel);
    free(url->service);
    url_clear_password(url);
    free(url->password);
    free(url->user);
    free(url->host);
    free(url->alias);
    free(url->given_host);
    free(url->path);
    *url = (struct url){.kind = URL_TCP};
}

/* ---- passwords in text ---- */

char *url_find_password(char *url, size_t *bytes)
{
    char *start = strstr(url, "://");
    char *at;
    char *colon;

    if (start == NULL)
        return NULL;
    start += strlen("://");
    at = memrchr(start, '@', strcspn(start, "/?#"));
    colon = at == NULL ? NULL : memchr(start, ':', (size_t)(at - start));
    if (colon == NULL || colon + 1 == at)
        return NULL;
    *bytes = (size_t)(at - colon) - 1;
    return colon + 1;
}

/*
 * Finds what may be a password in a word, which may be a URL of any program: the text from the
 * first colon (after "://", if there is one) to the last '@', or all text before the '@' if there
 * is no colon.
 */
static char *find_any_password(char *word, size_t n, size_t *bytes)
{
    char *start = memmem(word, n, "://", 3);
    char *at = memrchr(word, '@', n);
    char *colon;

    if (at == NULL || (start != NULL && start - word >= 4 && memcmp(start - 4, "unix", 4) == 0))
        return NULL; /* '@' is an ordinary character in the path of a socket */
    start = start != NULL && start < at ? start + 3 : word;
    colon = memchr(start, ':', (size_t)(at - start));
    start = colon != NULL ? colon + 1 : start;
    *bytes = (size_t)(at - start);
    return *bytes > 0 ? start : NULL;
}

void url_mask(char *text)
{
    size_t word;
    size_t n;

    for (text += strspn(text, " \t"); *text != '\0'; text += word, text += strspn(text, " \t")) {
        char *secret;

        word = strcspn(text, " \t");
        secret = find_any_password(text, word, &n);
        if (secret != NULL)
            memset(secret, '*', n);
    }
}

char *url_masked_copy(const char *word)
{
    char *shown = strdup(word);

    if (shown != NULL && strstr(shown, "://") != NULL)
        url_mask(shown);
    return shown;
}

bool url_may_hold_password(const char *text)
{
    size_t word;
    size_t n;

    for (text += strspn(text, " \t"); *text != '\0'; text += word, text += strspn(text, " \t")) {
        word = strcspn(text, " \t");
        if (find_any_password((char *)text, word, &n) != NULL)
            return true;
    }
    return false;
}
