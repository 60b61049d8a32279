/* SPDX-License-Identifier: MIT */
/*
 * fuzz_url: parses any bytes as a URL. If the URL has a password, url_find_password() must find
 * the password. If url_parse() refuses the text, the URL that url_suggest() proposes instead must
 * have no control characters of ASCII.
 */
#include "fuzz.h"
#include "wire/url.h"

static bool is_host(const struct url *url)
{
    return url->host[0] != '\0' && atoi(url->port) >= 1 && atoi(url->port) <= 65535;
}

static bool is_place(const struct url *url)
{
    size_t i;

    if (url->kind == URL_UNIX)
        return url->path[0] == '/';
    for (i = 0; i < url->n_sentinels; i++)
        if (!is_host(&url->sentinel[i]))
            return false;
    return url->kind == URL_SENTINEL ? i > 0 && url->service[0] != '\0' : is_host(url);
}

/* Removes the password from the text, which must then still be a URL of the same server. */
static void remove_password(const char *text, struct url *url)
{
    char *masked = url_masked_copy(text);
    char *copy = fuzz_text((const uint8_t *)text, strlen(text));
    struct url other;

    must(masked != NULL && (strstr(text, "://") != NULL || strcmp(masked, text) == 0));
    url_remove_password(copy);
    must(url_parse(&other, copy, NULL) == RLOCK_OK && other.password == NULL);
    must(other.kind == url->kind && strcmp(other.shown, url->shown) == 0);
    must(url->kind != URL_TCP || (url_is_same(&other, url) && url_is_same(url, &other)));
    must(url_set_user(&other, "another", NULL) == RLOCK_OK && strcmp(other.user, "another") == 0);
    url_fini(&other);
    free(copy);
    free(masked);
}

/* Copies a URL. The copy must be of the same server. */
static void copy(const struct url *url)
{
    struct url copied;

    must(url_copy(&copied, url, NULL) == RLOCK_OK);
    must(copied.kind == url->kind && strcmp(copied.shown, url->shown) == 0);
    must(url->kind != URL_TCP || (url_is_same(&copied, url) && url_is_same(url, &copied)));
    must((copied.password == NULL) == (url->password == NULL));
    url_fini(&copied);
}

/* Reads the text as the host and as another name of a server, as a redirect may name them. */
static void redirect(const char *text)
{
    struct rlock_error err = {.text = ""};
    const char *port = strrchr(text, ':');
    struct url from;
    struct url to;

    must(url_parse(&from, "rediss://user:pw@node.example/1", NULL) == RLOCK_OK);
    if (url_at(&to, &from, text, "alias.example", port != NULL ? port + 1 : "1", &err) ==
        RLOCK_OK) {
        must(is_host(&to) && to.is_tls && to.db == 1 && strcmp(to.password, "pw") == 0);
        must(!url_is_same(&to, &from) || strcasecmp(text, from.host) == 0);
        copy(&to);
        url_fini(&to);
    } else {
        must(err.status == RLOCK_E_PROTOCOL && err.text[0] != '\0');
    }
    url_fini(&from);
}

/* Masks the passwords in the text. Only a text that may have one may change. */
static void mask(const char *text)
{
    char *masked = fuzz_text((const uint8_t *)text, strlen(text));

    url_mask(masked);
    must(strlen(masked) == strlen(text));
    must(url_may_hold_password(text) || strcmp(masked, text) == 0);
    free(masked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = fuzz_text(data, n);
    struct rlock_error err = {.text = ""};
    char meant[URL_SHOWN_BYTES];
    struct url url;
    size_t bytes;

    mask(text);
    redirect(text);
    if (url_parse(&url, text, &err) == RLOCK_OK) {
        must(is_place(&url));
        must(url.password == NULL || url_find_password(text, &bytes) != NULL);
        remove_password(text, &url);
        copy(&url);
        must(url.db >= 0 && memchr(url.shown, '\0', sizeof url.shown) != NULL);
        url_fini(&url);
    } else {
        must(err.status == RLOCK_E_CONFIG && strncmp(err.text, "bad URL: \"", 10) == 0);
        if (url_suggest(text, meant))
            for (size_t i = 0; meant[i] != '\0'; i++)
                must((unsigned char)meant[i] >= ' ' && meant[i] != 0x7f);
    }
    free(text);
    return 0;
}
