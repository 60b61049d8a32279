/* SPDX-License-Identifier: MIT */
/* url: parses, compares and copies the URL of a server, and masks passwords in URLs. */
#include "wire/url.h"

#include "base/err.h"
#include "base/secret.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define REDIS_PORT 6379
#define SENTINEL_PORT 26379
#define DB_MAX 1000000 /* no server has more databases; a larger number may not fit an int */

#define ODD_PASSWORD                                                                   \
    "write / ? # % @ in a password as %2F %3F %23 %25 %40, or use --password-file or " \
    "RLOCK_PASSWORD"

/* Sets why a URL is refused; url_parse() adds the URL itself. */
static enum rlock_status bad(struct rlock_error *err, const char *why)
{
    return err_set(err, RLOCK_E_CONFIG, 0, "%s", why);
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

/* Reads a decimal number. False: [text, end) is no number from 0 to `most`. */
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

static enum rlock_status parse_db(struct url *url, const char *text, const char *end,
                                  struct rlock_error *err)
{
    long db;

    if (!parse_number(text, end, DB_MAX, &db))
        return bad(err, "the database isn't a number");
    url->db = (int)db;
    return RLOCK_OK;
}

/* Reads what follows the host or service: nothing, "/", "/N", "/N/", "?db=N" or "/?db=N". */
static enum rlock_status parse_end(struct url *url, const char *text, struct rlock_error *err)
{
    const char *query = text + strcspn(text, "?#");

    if (*text == '/')
        text++;
    if (*query == '\0')
        return *text == '\0' ? RLOCK_OK : parse_db(url, text, query - (query[-1] == '/'), err);
    if (query > text || strncmp(query, "?db=", strlen("?db=")) != 0)
        return bad(err, "only the number of the database may follow the address: /N or ?db=N");
    query += strlen("?db=");
    return parse_db(url, query, query + strlen(query), err);
}

/*
 * Reads "[user[:password]@]host[:port]" up to the '@', and sets `*host` to the host's start. `end`
 * is the first of "/?#": an '@' after `end` shows that the password has one of these signs.
 */
static enum rlock_status parse_login(struct url *url, const char *text, const char *end,
                                     const char **host, struct rlock_error *err)
{
    const char *at = memrchr(text, '@', (size_t)(end - text));
    const char *colon = at == NULL ? NULL : memchr(text, ':', (size_t)(at - text));
    const char *user_end = colon == NULL ? at : colon;
    enum rlock_status st = RLOCK_OK;

    *host = at == NULL ? text : at + 1;
    if (strchr(end, '@') != NULL)
        return bad(err, ODD_PASSWORD);
    if (at != NULL && user_end > text)
        st = decode(&url->user, text, user_end, err);
    if (st == RLOCK_OK && colon != NULL && colon + 1 < at)
        st = decode(&url->password, colon + 1, at, err);
    return st == RLOCK_E_CONFIG ? bad(err, ODD_PASSWORD) : st;
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

    if (memchr(text, ',', (size_t)(end - text)) != NULL)
        return bad(err, "a comma in the host: each server needs a URL of its own");
    if (text < end && *text == '[') {
        host_end = memchr(text, ']', (size_t)(end - text));
        if (host_end == NULL)
            return bad(err, "the host begins with [, and no ] ends it");
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
    const char *host;
    enum rlock_status st = parse_login(url, text, end, &host, err);

    url->kind = URL_TCP;
    if (st == RLOCK_OK)
        st = parse_host(url, host, end, REDIS_PORT, err);
    return st == RLOCK_OK ? parse_end(url, end, err) : st;
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
    const char *service_end = *end == '/' ? end + 1 + strcspn(end + 1, "/?#") : end;
    const char *host;
    enum rlock_status st = parse_login(url, text, end, &host, err);

    url->kind = URL_SENTINEL;
    if (st == RLOCK_OK && service_end <= end + 1)
        st = bad(err, "the service that the Sentinels watch is missing");
    if (st == RLOCK_OK)
        st = parse_sentinels(url, host, end, err);
    if (st == RLOCK_OK)
        st = decode(&url->service, end + 1, service_end, err);
    if (st == RLOCK_OK)
        st = parse_end(url, service_end, err);
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
    return parse_db(url, end + 4, end + strlen(end), err);
}

static void mask(char *text, const char *end)
{
    memset(text, '*', (size_t)(end - text));
}

/*
 * Overwrites [text, end) with asterisks, unless it is a number, such as a port or database:
 * anything else may be a password. Returns whether the text was overwritten.
 */
static bool mask_unless_number(char *text, const char *end)
{
    bool is_number = strspn(text, "0123456789") >= (size_t)(end - text);

    if (!is_number)
        mask(text, end);
    return !is_number;
}

/*
 * Overwrites each port that is no number in "host[:port][,host[:port]...]". Returns whether a port
 * was overwritten.
 */
static bool mask_ports(char *text, const char *end)
{
    bool has_masked = false;

    while (text < end) {
        char *part_end = memchr(text, ',', (size_t)(end - text));
        char *bracket = *text == '[' ? memchr(text, ']', (size_t)(end - text)) : NULL;
        char *colon;

        if (part_end == NULL)
            part_end = (char *)end;
        text = bracket != NULL && bracket < part_end ? bracket : text;
        colon = memchr(text, ':', (size_t)(part_end - text));
        if (colon != NULL)
            has_masked |= mask_unless_number(colon + 1, part_end);
        text = part_end + 1;
    }
    return has_masked;
}

/*
 * Finds what may be a password in a URL of any program, even a mistyped one: from the first colon
 * (after "://", if there is one) to the last '@'; without a colon, all text before the '@'. The
 * length `*bytes` may be 0. NULL: there is no '@'.
 */
static char *find_password(char *text, size_t n, size_t *bytes)
{
    char *start = memmem(text, n, "://", 3);
    char *at = memrchr(text, '@', n);
    char *colon;

    if (at == NULL)
        return NULL;
    start = start != NULL && start < at ? start + 3 : text;
    colon = memchr(start, ':', (size_t)(at - start));
    start = colon != NULL ? colon + 1 : start;
    *bytes = (size_t)(at - start);
    return start;
}

/*
 * Overwrites what may be a password in a URL with a mistake, where a password may also follow the
 * '@'. So after the '@' only these parts stay: the host; the port and the database, if they are
 * numbers. The path stays if there is no '@', and no port was overwritten.
 */
static void mask_refused(char *text)
{
    size_t n = 0;
    char *found = find_password(text, strlen(text), &n);
    char *host = strstr(text, "://");
    char *end;

    host = found != NULL ? found + n + 1 : host != NULL ? host + 3 : text;
    if (found != NULL)
        mask(found, found + n);
    end = host + strcspn(host, "/?#");
    if ((mask_ports(host, end) || found != NULL) && *end == '/')
        mask_unless_number(end + 1, end + strcspn(end, "?#"));
    end += strcspn(end, "?#");
    if (strncmp(end, "?db=", strlen("?db=")) == 0)
        mask_unless_number(end + strlen("?db="), end + strlen(end));
    else if (*end != '\0')
        mask(end + 1, end + strlen(end));
}

/* Writes to `out` the start of a text, escaped for a terminal; `hide` masks its passwords. */
static void show_masked(char *out, size_t room, const char *text, void (*hide)(char *text))
{
    char *copy = strdup(text);

    out[0] = '\0';
    if (copy == NULL)
        return;
    hide(copy);
    err_escape(out, room, copy);
    secret_free(copy);
}

static enum rlock_status parse(struct url *url, const char *text, struct rlock_error *err)
{
    static const struct {
        const char *scheme;
        enum rlock_status (*parse)(struct url *, const char *, struct rlock_error *);
        bool is_tls;
    } schemes[] = {{"redis://", parse_tcp, false},
                   {"rediss://", parse_tcp, true},
                   {"valkey://", parse_tcp, false},
                   {"valkeys://", parse_tcp, true},
                   {"redis+sentinel://", parse_sentinel, false},
                   {"rediss+sentinel://", parse_sentinel, true},
                   {"valkey+sentinel://", parse_sentinel, false},
                   {"valkeys+sentinel://", parse_sentinel, true},
                   {"unix://", parse_unix, false}};
    size_t i;

    for (i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t n = strlen(schemes[i].scheme);

        if (strncasecmp(text, schemes[i].scheme, n) != 0)
            continue;
        url->is_tls = schemes[i].is_tls;
        return schemes[i].parse(url, text + n, err);
    }
    if (strcasecmp(text, "local:") == 0)
        return bad(err, "only --url and RLOCK_URL can ask for a private server");
    return bad(err, "it starts with none of redis://, rediss://, valkey://, valkeys://, "
                    "redis+sentinel://, unix://, local:");
}

enum rlock_status url_parse(struct url *url, const char *text, struct rlock_error *err)
{
    struct url parsed = {.kind = URL_TCP};
    struct rlock_error why = {.status = RLOCK_OK};
    char shown[URL_SHOWN_BYTES];

    if (parse(&parsed, text, &why) == RLOCK_OK) {
        err_make_printable(parsed.shown);
        *url = parsed;
        return RLOCK_OK;
    }
    url_fini(&parsed);
    if (why.status != RLOCK_E_CONFIG)
        return err_set(err, why.status, 0, "%s", why.text);
    show_masked(shown, URL_SHOWN_BYTES, text, mask_refused);
    return err_set(err, RLOCK_E_CONFIG, 0, "bad URL: \"%s\": %s", shown, why.text);
}

/*
 * Guesses which URL the user meant by a text that url_parse() has refused: replaces or adds the
 * scheme. The result is on the heap, and may be no valid URL, either. NULL: no memory.
 */
static char *complete(const char *text)
{
    static const struct {
        const char *start; /* how the text begins, in upper or lower case */
        const char *scheme;
    } starts[] = {{"rediss:", "rediss://"},
                  {"redis:", "redis://"},
                  {"valkeys:", "valkeys://"},
                  {"valkey:", "valkey://"},
                  {"tcp:", "redis://"},
                  {"tls:", "rediss://"},
                  {"ssl:", "rediss://"},
                  {"http:", "redis://"},
                  {"https:", "rediss://"},
                  {"redis+tcp:", "redis://"},
                  {"redis+cluster:", "redis://"},
                  {"rediss+cluster:", "rediss://"},
                  {"redis+tls:", "rediss://"},
                  {"redis+ssl:", "rediss://"},
                  {"redis-ssl:", "rediss://"},
                  {"redis-sentinel:", "redis+sentinel://"},
                  {"rediss-sentinel:", "rediss+sentinel://"},
                  {"redis+unix:", "unix:///"},
                  {"redis+socket:", "unix:///"},
                  {"redis-socket:", "unix:///"},
                  {"unix:", "unix:///"},
                  {"/", "unix:///"}};
    const char *service = strrchr(text, '#');
    const char *scheme = "redis://";
    char *made;
    size_t i;

    for (i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (strncasecmp(text, starts[i].start, strlen(starts[i].start)) == 0) {
            text += strlen(starts[i].start);
            scheme = starts[i].scheme;
            break;
        }
    text += strspn(text, "/");
    if (service != NULL && strstr(scheme, "+sentinel") != NULL) { /* HOSTS[/N]#SERVICE */
        int n = (int)strcspn(text, "/#");

        return asprintf(&made, "%s%.*s/%s%.*s", scheme, n, text, service + 1,
                        (int)(service - text) - n, text + n) < 0
                   ? NULL
                   : made;
    }
    return asprintf(&made, "%s%s", scheme, text) < 0 ? NULL : made;
}

bool url_suggest(const char *text, char shown[URL_SHOWN_BYTES])
{
    struct url url;
    char *made;
    bool is_good;

    if (strcasecmp(text, "local") == 0 || strncasecmp(text, "local:/", strlen("local:/")) == 0) {
        snprintf(shown, URL_SHOWN_BYTES, "local:");
        return true;
    }
    made = complete(text);
    is_good = made != NULL && text[strcspn(text, " \t\r\n")] == '\0' && strcmp(made, text) != 0 &&
              url_parse(&url, made, NULL) == RLOCK_OK;
    if (is_good) {
        url_fini(&url);
        show_masked(shown, URL_SHOWN_BYTES, made, mask_refused);
    }
    secret_free(made);
    return is_good;
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
        return err_set(err, RLOCK_E_PROTOCOL, 0,
                       "unexpected reply: no host and port, where it should name a server");
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

/*
 * The nodes of a Cluster may share one host name. So if both URLs have an alias, equal hosts are
 * not enough: the aliases must match, too.
 */
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
    secret_clear(url->password);
}

void url_fini(struct url *url)
{
    size_t i;

    for (i = 0; i < url->n_sentinels; i++)
        url_fini(&url->sentinel[i]);
    free(url->sentinel);
    free(url->service);
    secret_free(url->password);
    free(url->user);
    free(url->host);
    free(url->alias);
    free(url->given_host);
    free(url->path);
    *url = (struct url){.kind = URL_TCP};
}

/* ---- finding and masking passwords in text ---- */

char *url_find_password(char *url, size_t *bytes)
{
    char *start = strstr(url, "://");
    char *found;

    if (start == NULL)
        return NULL;
    found = find_password(start, 3 + strcspn(start + 3, "/?#"), bytes);
    return found != NULL && found[-1] == ':' && *bytes > 0 ? found : NULL;
}

void url_remove_password(char *url)
{
    size_t n;
    char *password = url_find_password(url, &n);
    char *colon;
    const char *rest;

    if (password == NULL)
        return;
    colon = password - 1;
    rest = password + n + (colon[-1] == '/'); /* without a user, the "@" goes, too */
    n = strlen(rest);
    memmove(colon, rest, n);
    explicit_bzero(colon + n, (size_t)(rest - colon)); /* the password's end may still be there */
}

/*
 * Returns what may be a password in the next word that has one, and moves `*text` past that word.
 * NULL: no word has one. In the path of a Unix socket '@' is an ordinary character.
 */
static char *next_password(char **text, size_t *bytes)
{
    char *found = NULL;

    for (*bytes = 0; *bytes == 0 && **text != '\0'; *text += strspn(*text, " \t")) {
        size_t word = strcspn(*text, " \t");
        const char *colon = memmem(*text, word, "://", 3);

        found = find_password(*text, word, bytes);
        if (colon != NULL && colon - *text >= 4 && strncasecmp(colon - 4, "unix:///", 8) == 0)
            *bytes = 0;
        *text += word;
    }
    return *bytes > 0 ? found : NULL;
}

void url_mask(char *text)
{
    char *found;
    size_t n;

    while ((found = next_password(&text, &n)) != NULL)
        mask(found, found + n);
}

bool url_may_hold_password(const char *text)
{
    char *rest = (char *)text;
    size_t n;

    return next_password(&rest, &n) != NULL;
}

void url_cli_options(const char *text, char options[URL_CLI_BYTES])
{
    struct url url;
    size_t used;

    options[0] = '\0';
    if (url_parse(&url, text, NULL) != RLOCK_OK)
        return;
    if (url.kind == URL_UNIX)
        snprintf(options, URL_CLI_BYTES, "-s %.120s", url.path);
    else if (url.kind == URL_TCP)
        snprintf(options, URL_CLI_BYTES, "-h %.120s -p %s%s", url.host, url.port,
                 url.is_tls ? " --tls" : "");
    used = strlen(options);
    if (used > 0 && url.db != 0)
        snprintf(options + used, URL_CLI_BYTES - used, " -n %d", url.db);
    url_fini(&url);
}

void url_show(char *out, size_t room, const char *word)
{
    show_masked(out, room, word, url_mask);
}

char *url_masked_copy(const char *word)
{
    char *shown = strdup(word);

    if (shown != NULL && strstr(shown, "://") != NULL)
        url_mask(shown);
    return shown;
}
