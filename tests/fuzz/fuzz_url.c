/* SPDX-License-Identifier: MIT */
/* fuzz_url: parses any bytes as a URL; if it has a password, url_find_password() must find it. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = fuzz_text(data, n);
    struct rlock_error err = {.text = ""};
    struct url url;
    size_t bytes;

    if (url_parse(&url, text, &err) == RLOCK_OK) {
        must(is_place(&url));
        must(url.password == NULL || url_find_password(text, &bytes) != NULL);
        must(url.db >= 0 && memchr(url.shown, '\0', sizeof url.shown) != NULL);
        url_fini(&url);
    } else {
        must(err.status == RLOCK_E_CONFIG && err.text[0] != '\0');
    }
    free(text);
    return 0;
}
