/* SPDX-License-Identifier: MIT */
/* fuzz_url: an address of any bytes; a password in it is also found by who hides passwords. */
#include "fuzz.h"
#include "secret.h"
#include "url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = fuzz_text(data, n);
    struct rlock_error err = {.text = ""};
    struct url url;
    size_t bytes;

    if (url_parse(&url, text, &err) == RLOCK_OK) {
        must(url.kind == URL_UNIX ? url.path[0] == '/' : url.host[0] != '\0');
        must(url.kind == URL_UNIX || (atoi(url.port) >= 1 && atoi(url.port) <= 65535));
        must(url.password == NULL || secret_in_url(text, &bytes) != NULL);
        must(url.db >= 0 && memchr(url.shown, '\0', sizeof url.shown) != NULL);
        url_fini(&url);
    } else {
        must(err.status == RLOCK_E_CONFIG && err.text[0] != '\0');
    }
    free(text);
    return 0;
}
