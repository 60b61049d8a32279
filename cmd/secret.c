/* SPDX-License-Identifier: MIT */
/* secret: the password inside a URL. */
#include "secret.h"

#include <string.h>

char *secret_in_url(char *url, size_t *bytes)
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

void secret_hide(char *url)
{
    size_t n;
    char *secret = secret_in_url(url, &n);

    if (secret != NULL)
        memset(secret, '*', n);
}
