/* SPDX-License-Identifier: MIT */
/* same_server: tells an rlock in the command which server the lock is on, without passwords. */
#include "session/same_server.h"

#include "session/environment.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 300

/* Append a word to a heap text, after a blank. On failure the text becomes NULL. */
static void add_word(char **text, const char *word)
{
    char *longer = NULL;

    if (*text != NULL && asprintf(&longer, "%s%s%s", *text, **text != '\0' ? " " : "", word) < 0)
        longer = NULL;
    free(*text);
    *text = longer;
}

/*
 * Write a name for the server of a URL: address and database, or "local:". A service has the least
 * of its Sentinels' addresses in front, as other Sentinels may know another service by its name.
 */
static void name_server(char name[NAME_BYTES], const char *text)
{
    const char *sentinel = "";
    struct url url;
    size_t i;

    snprintf(name, NAME_BYTES, "%s", OPTIONS_LOCAL_URL);
    if (strcmp(text, OPTIONS_LOCAL_URL) == 0 || url_parse(&url, text, NULL) != RLOCK_OK)
        return;
    for (i = 0; i < url.n_sentinels; i++)
        if (i == 0 || strcmp(url.sentinel[i].shown, sentinel) < 0)
            sentinel = url.sentinel[i].shown;
    snprintf(name, NAME_BYTES, "%s%s%s/%d", sentinel, *sentinel != '\0' ? "/" : "", url.shown,
             url.db);
    url_fini(&url);
}

static int compare(const void *one, const void *other)
{
    return strcmp(one, other);
}

char *same_server_names(char *const *urls, size_t n)
{
    char name[RLOCK_MEMBERS_MAX][NAME_BYTES];
    char *names = strdup("");
    size_t i;

    if (n > RLOCK_MEMBERS_MAX) /* rlock_open() refuses so many servers */
        n = RLOCK_MEMBERS_MAX;
    for (i = 0; i < n; i++)
        name_server(name[i], urls[i]);
    qsort(name, n, sizeof name[0], compare);
    for (i = 0; i < n; i++)
        add_word(&names, name[i]);
    return names;
}

/* Is the inherited RLOCK_URL the one that a parent rlock has set? */
static bool is_from_parent(void)
{
    char *words = strdup(environment_value("RLOCK_URL"));
    char *urls[RLOCK_MEMBERS_MAX] = {NULL};
    size_t n = 0;
    char *saved;
    char *word;
    char *names;
    bool is;

    for (word = words != NULL ? strtok_r(words, " \t", &saved) : NULL;
         word != NULL && n < RLOCK_MEMBERS_MAX; word = strtok_r(NULL, " \t", &saved))
        urls[n++] = word;
    names = same_server_names(urls, n);
    is = n > 0 && names != NULL && strcmp(names, environment_value(PARENT_SERVER)) == 0;
    free(names);
    free(words);
    return is;
}

static void add(struct same_server *same, const char *name, const char *value)
{
    if (value != NULL && asprintf(&same->entries[same->n], "%s=%s", name, value) >= 0)
        same->n++;
}

/* Add RLOCK_URL: all URLs, without passwords. */
static void add_urls(struct same_server *same, const struct credentials *credentials)
{
    char *urls = strdup("");
    size_t i;

    for (i = 0; i < credentials->n_urls; i++) {
        char *url = strdup(credentials->url[i]);

        if (url != NULL)
            url_remove_password(url);
        add_word(&urls, url != NULL ? url : "");
        free(url);
    }
    add(same, "RLOCK_URL", urls);
    free(urls);
}

static bool is_unset(const char *name)
{
    return *environment_value(name) == '\0';
}

/* Add a variable, unless it is set. Of a file use the whole path: the command may change folder. */
static void add_option(struct same_server *same, const char *name, const char *value, bool is_file)
{
    char *whole = is_file && value != NULL ? realpath(value, NULL) : NULL;

    if (is_unset(name))
        add(same, name, whole != NULL ? whole : value);
    free(whole);
}

void same_server_init(struct same_server *same, const struct options *options,
                      const struct credentials *credentials)
{
    *same = (struct same_server){.names = same_server_names(credentials->url, credentials->n_urls)};
    add(same, PARENT_SERVER, same->names);
    if (options->url_from != FROM_COMMAND_LINE ||
        !(is_unset("RLOCK_URL") || environment_hides("RLOCK_URL") || is_from_parent()))
        return;
    add_urls(same, credentials);
    add_option(same, "RLOCK_TLS_CA", options->tls_ca, true);
    add_option(same, "RLOCK_TLS_CERT", options->tls_cert, true);
    add_option(same, "RLOCK_TLS_KEY", options->tls_key, true);
    add_option(same, "RLOCK_TLS_NAME", options->tls_name, false);
    add_option(same, "RLOCK_SENTINEL_USER", options->sentinel_user, false);
}

void same_server_fini(struct same_server *same)
{
    while (same->n > 0)
        free(same->entries[--same->n]);
    free(same->names);
    *same = (struct same_server){.names = NULL};
}

const char *same_server_differs(const struct same_server *same)
{
    const char *parents = environment_value(PARENT_SERVER);

    return environment_has_parent() && *parents != '\0' && same->names != NULL &&
                   strcmp(same->names, parents) != 0
               ? parents
               : NULL;
}
