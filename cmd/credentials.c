/* SPDX-License-Identifier: MIT */
/* credentials: which password goes with the server. */
#include "credentials.h"

#include "config.h"
#include "secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_URL "redis://127.0.0.1:6379"

static const char *first_set(const char *first, const char *second)
{
    return first != NULL && *first != '\0' ? first : second;
}

/* Where a password that is not in the URL comes from; NULL: nowhere. */
static enum source nearest_other(const struct options *options, const char **variable)
{
    const char *value = first_set(getenv("RLOCK_PASSWORD"), NULL);

    *variable = value;
    if (options->password_file != NULL &&
        (value == NULL || options->password_file_from >= FROM_ENVIRONMENT)) {
        *variable = NULL;
        return options->password_file_from;
    }
    if (value != NULL)
        return FROM_ENVIRONMENT;
    *variable =
        first_set(getenv("REDISCLI_AUTH"), NULL); /* meant for any server: the last resort */
    return FROM_DEFAULT;
}

static enum rlock_status no_memory(struct rlock_error *err)
{
    err->status = RLOCK_E_MEMORY;
    snprintf(err->text, sizeof err->text, "no memory");
    return RLOCK_E_MEMORY;
}

static enum rlock_status read_file(char **password, const char *path, struct rlock_error *err)
{
    *password = config_first_line(path);
    if (*password != NULL && **password != '\0')
        return RLOCK_OK;
    err->status = RLOCK_E_CONFIG;
    snprintf(err->text, sizeof err->text, "password file %.150s: %s", path,
             *password == NULL ? strerror(errno) : "its first line is empty");
    return RLOCK_E_CONFIG;
}

bool credentials_were_stripped(void)
{
    return getenv(CREDENTIALS_STRIPPED) != NULL;
}

/* A lock on the wrong server is no lock: no server is taken where another may be meant. */
static enum rlock_status check_url(const struct options *options, struct rlock_error *err)
{
    const char *stripped = getenv(CREDENTIALS_STRIPPED);
    const char *why = NULL;

    if (options->n_urls > 1)
        why = "several servers were named, and one is possible";
    else if (options->url_from == FROM_DEFAULT && stripped != NULL &&
             (strstr(stripped, "RLOCK_URL") != NULL ||
              (strstr(stripped, "REDIS_URL") != NULL && getenv("REDIS_URL") == NULL)))
        why = "an outer rlock took the server's URL out of the environment, for the password "
              "in it: use a configuration file, or --pass-credentials there";
    err->status = RLOCK_E_CONFIG;
    snprintf(err->text, sizeof err->text, "%s", why == NULL ? "" : why);
    return why == NULL ? RLOCK_OK : RLOCK_E_CONFIG;
}

static void clear(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

enum rlock_status credentials_read(struct credentials *credentials, const struct options *options,
                                   struct rlock_error *err)
{
    const char *url = first_set(options->url, first_set(getenv("REDIS_URL"), DEFAULT_URL));
    const char *variable;
    enum source other = nearest_other(options, &variable);
    enum rlock_status st = check_url(options, err);
    char *secret;
    size_t n;

    *credentials = (struct credentials){.url = strdup(url)};
    if (credentials->url == NULL)
        st = no_memory(err);
    if (st != RLOCK_OK) {
        credentials_fini(credentials);
        return st;
    }
    secret = secret_in_url(credentials->url, &n);
    if (secret != NULL && other <= options->url_from)
        return RLOCK_OK;
    if (variable != NULL)
        credentials->password = strdup(variable);
    else if (options->password_file != NULL)
        st = read_file(&credentials->password, options->password_file, err);
    if (variable != NULL && credentials->password == NULL)
        st = no_memory(err);
    if (st == RLOCK_OK && secret != NULL && credentials->password != NULL)
        memmove(secret - 1, secret + n, strlen(secret + n) + 1);
    if (st != RLOCK_OK)
        credentials_fini(credentials);
    return st;
}

void credentials_fini(struct credentials *credentials)
{
    clear(credentials->url);
    clear(credentials->password);
    *credentials = (struct credentials){.url = NULL};
}
