/* SPDX-License-Identifier: MIT */
/* secret: passwords in memory and in URLs, kept from those who may look there. */
#include "process/secret.h"

#include <string.h>
#include <sys/prctl.h>

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

/*
 * What stands before the last '@' of a word, and means a password to somebody,
 * also where the URL is none that we would take: behind a colon, or all of it.
 */
static char *find_hidden(char *word, size_t n, size_t *bytes)
{
    char *start = memmem(word, n, "://", 3);
    char *at = memrchr(word, '@', n);
    char *colon;

    if (at == NULL || (start != NULL && start - word >= 4 && memcmp(start - 4, "unix", 4) == 0))
        return NULL; /* in the path of a socket it means nothing */
    start = start != NULL && start < at ? start + 3 : word;
    colon = memchr(start, ':', (size_t)(at - start));
    start = colon != NULL ? colon + 1 : start;
    *bytes = (size_t)(at - start);
    return *bytes > 0 ? start : NULL;
}

void secret_hide(char *text)
{
    size_t word;
    size_t n;

    for (text += strspn(text, " \t"); *text != '\0'; text += word, text += strspn(text, " \t")) {
        char *secret;

        word = strcspn(text, " \t");
        secret = find_hidden(text, word, &n);
        if (secret != NULL)
            memset(secret, '*', n);
    }
}

char *secret_shown(const char *word)
{
    char *shown = strdup(word);

    if (shown != NULL && strstr(shown, "://") != NULL)
        secret_hide(shown);
    return shown;
}

bool secret_may_stand_in(const char *text)
{
    size_t word;
    size_t n;

    for (text += strspn(text, " \t"); *text != '\0'; text += word, text += strspn(text, " \t")) {
        word = strcspn(text, " \t");
        if (find_hidden((char *)text, word, &n) != NULL)
            return true;
    }
    return false;
}

/* ---- who may look into our memory ---- */

static int known;                /* how many passwords we know; used by one thread at a time */
static bool was_dumpable = true; /* before we knew any */

void secret_is_known(bool is_known)
{
    if (is_known && known++ == 0) {
        was_dumpable = prctl(PR_GET_DUMPABLE) == 1;
        prctl(PR_SET_DUMPABLE, 0);
    } else if (!is_known && --known == 0 && was_dumpable) {
        prctl(PR_SET_DUMPABLE, 1);
    }
}

void secret_is_forgotten(void)
{
    if (known > 0 && was_dumpable)
        prctl(PR_SET_DUMPABLE, 1);
    known = 0;
}
