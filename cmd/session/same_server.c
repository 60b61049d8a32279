/* SPDX-License-Identifier: MIT */
/* same_server: tells an rlock in the command which server the lock is on, without passwords. */
#include "session/same_server.h"

#include "session/environment.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Append a word to a heap text, after a blank. On failure the text becomes NULL. */
static void add_word(char **text, const char *word)
{
    char *longer = NULL;

    if (*text != NULL && asprintf(&longer, "%s%s%s", *text, **text != '\0' ? " " : "", word) < 0)
        longer = NULL;
    free(*text);
    *text = longer;
}

/* Write what names the server of a URL: its address and its database. */
static void name_server(char *out, size_t room, const char *text)
{
    struct url url;

    snprintf(out, room, "%s", OPTIONS_LOCAL_URL);
    if (strcmp(text, OPTIONS_LOCAL_URL) == 0 || url_parse(&url, text, NULL) != RLOCK_OK)
        return;
    snprintf(out, room, "%s/%d", url.shown, url.db);
    url_fini(&url);
}

static char *names_of(char *const *urls, size_t n)
{
    char *names = strdup("");
    char name[160];
    size_t i;

    for (i = 0; i < n; i++) {
        name_server(name, sizeof name, urls[i]);
        add_word(&names, name);
    }
    return names;
}

static int compare(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

char *same_server_names(char *const *urls, size_t n)
{
    char **sorted = malloc(n * sizeof *sorted);
    char *names;

    if (sorted == NULL)
        return NULL;
    memcpy(sorted, urls, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare);
    names = names_of(sorted, n);
    free(sorted);
    return names;
}

/* Count the words of `one`; `*n_missing` becomes how many of them are no words of `other`. */
static size_t count_words(const char *one, const char *other, size_t *n_missing)
{
    char *words = strdup(one);
    char *others = NULL;
    size_t n = 0;
    char *saved;
    char *word;

    *n_missing = 0;
    for (word = words != NULL ? strtok_r(words, " ", &saved) : NULL; word != NULL;
         word = strtok_r(NULL, " ", &saved), n++) {
        char padded[200];

        snprintf(padded, sizeof padded, " %s ", word);
        if (others == NULL && asprintf(&others, " %s ", other) < 0)
            others = NULL;
        *n_missing += others != NULL && strstr(others, padded) == NULL;
    }
    free(others);
    free(words);
    return n;
}

/* Do both texts name the same servers, in whatever order? */
static bool is_alike(const char *one, const char *other)
{
    size_t n_missing;
    size_t n = count_words(one, other, &n_missing);
    size_t n_extra;

    return count_words(other, one, &n_extra) == n && n_missing == 0 && n_extra == 0;
}

/* Is the inherited RLOCK_URL the one that a parent rlock has set? */
static bool is_from_parent(char *const *inherited)
{
    const char *parents = environment_value(inherited, PARENT_SERVER);
    char *words = strdup(environment_value(inherited, "RLOCK_URL"));
    char *urls[RLOCK_MEMBERS_MAX] = {NULL};
    size_t n = 0;
    char *saved;
    char *word;
    char *names;
    bool is;

    for (word = words != NULL ? strtok_r(words, " \t", &saved) : NULL;
         word != NULL && n < RLOCK_MEMBERS_MAX; word = strtok_r(NULL, " \t", &saved))
        urls[n++] = word;
    names = names_of(urls, n);
    is = n > 0 && names != NULL && is_alike(names, parents);
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

/* Add a variable that names a file, as an absolute path: the command may change its directory. */
static void add_path(struct same_server *same, const char *name, const char *path)
{
    char *whole = path != NULL ? realpath(path, NULL) : NULL;

    add(same, name, whole != NULL ? whole : path);
    free(whole);
}

static bool is_unset(char *const *inherited, const char *name)
{
    return *environment_value(inherited, name) == '\0';
}

void same_server_init(struct same_server *same, const struct options *options,
                      const struct credentials *credentials, char *const *inherited)
{
    *same = (struct same_server){.names = names_of(credentials->url, credentials->n_urls)};
    add(same, PARENT_SERVER, same->names);
    if (options->url_from != FROM_COMMAND_LINE ||
        !(is_unset(inherited, "RLOCK_URL") || environment_hides(inherited, "RLOCK_URL") ||
          is_from_parent(inherited)))
        return;
    add_urls(same, credentials);
    if (is_unset(inherited, "RLOCK_TLS_CA"))
        add_path(same, "RLOCK_TLS_CA", options->tls_ca);
    if (is_unset(inherited, "RLOCK_TLS_CERT"))
        add_path(same, "RLOCK_TLS_CERT", options->tls_cert);
    if (is_unset(inherited, "RLOCK_TLS_KEY"))
        add_path(same, "RLOCK_TLS_KEY", options->tls_key);
    if (is_unset(inherited, "RLOCK_TLS_NAME"))
        add(same, "RLOCK_TLS_NAME", options->tls_name);
    if (is_unset(inherited, "RLOCK_SENTINEL_USER"))
        add(same, "RLOCK_SENTINEL_USER", options->sentinel_user);
}

void same_server_fini(struct same_server *same)
{
    while (same->n > 0)
        free(same->entries[--same->n]);
    free(same->names);
    *same = (struct same_server){.names = NULL};
}

const char *same_server_differs(const struct same_server *same, char *const *inherited)
{
    const char *parents = environment_value(inherited, PARENT_SERVER);

    if (*environment_value(inherited, "RLOCK_TOKEN") == '\0' || *parents == '\0' ||
        same->names == NULL || is_alike(same->names, parents))
        return NULL;
    return parents;
}
