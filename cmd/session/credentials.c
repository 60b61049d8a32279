/* SPDX-License-Identifier: MIT */
/* credentials: find the URLs and the passwords of the servers in all places where they may be. */
#include "session/credentials.h"

#include "base/err.h"
#include "base/secret.h"
#include "options/config.h"
#include "session/environment.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_URL "redis://127.0.0.1:6379"

static bool has_place(const struct options *options)
{
    return options->password_file != NULL || options->password_command != NULL;
}

/* Returns the name of an environment variable if it has a value, else NULL. */
static const char *if_set(const char *variable)
{
    return *environment_value(variable) != '\0' ? variable : NULL;
}

/*
 * Returns the source that outranks all others which set a password beside the URLs. `*variable`
 * becomes the name of the environment variable that holds this password; NULL: a file or a command
 * has the password, or no source sets one.
 */
static enum source source_beside_urls(const struct options *options, const char **variable)
{
    *variable = if_set("RLOCK_PASSWORD");
    if (has_place(options) && (*variable == NULL || options->password_from >= FROM_ENVIRONMENT)) {
        *variable = NULL;
        return options->password_from;
    }
    if (*variable != NULL)
        return FROM_ENVIRONMENT;
    /* VALKEYCLI_AUTH and REDISCLI_AUTH come last, because their passwords may be for another
     * server. If both are set, VALKEYCLI_AUTH counts, as in valkey-cli. */
    *variable = if_set("VALKEYCLI_AUTH") != NULL ? "VALKEYCLI_AUTH" : if_set("REDISCLI_AUTH");
    return FROM_DEFAULT;
}

static enum rlock_status no_memory(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
}

/*
 * Read a password from a pipe now, as a pipe can be read only once. The password helper reads all
 * other files, once for each connection.
 */
static enum rlock_status read_pipe(char **password, const char *what, const char *path,
                                   const struct config_wait *wait, struct rlock_error *err)
{
    const char *why = NULL;
    char *line = config_first_line(path, wait, &why);

    if (line == NULL && why == NULL)
        return RLOCK_STOPPED;
    if (line != NULL && *line == '\0')
        why = "the first line is empty";
    *password = why == NULL ? strdup(line) : NULL;
    secret_free(line);
    if (*password != NULL)
        return RLOCK_OK;
    if (why == NULL)
        return no_memory(err);
    return err_set(err, RLOCK_E_CONFIG, 0, "%s %.150s: %s", what, path, why);
}

static enum rlock_status use_file(struct password_place *place, char **password, const char *what,
                                  const char *path, const struct config_wait *wait,
                                  struct rlock_error *err)
{
    if (config_names_descriptor(path))
        return read_pipe(password, what, path, wait, err);
    *place = (struct password_place){.name = what, .file = path};
    return RLOCK_OK;
}

bool credentials_were_stripped(void)
{
    return getenv(ENVIRONMENT_STRIPPED) != NULL;
}

static bool is_stripped(const char *stripped, const char *variable)
{
    return strstr(stripped, variable) != NULL && getenv(variable) == NULL;
}

/*
 * Fail if a parent rlock has removed the URL from the environment. The default server, or REDIS_URL
 * in place of a removed VALKEY_URL, may be the wrong server, on which a lock would exclude nobody.
 */
static enum rlock_status check_url(const struct options *options, struct rlock_error *err)
{
    const char *stripped = getenv(ENVIRONMENT_STRIPPED);

    if (options->url_from == FROM_DEFAULT && stripped != NULL &&
        (strstr(stripped, "RLOCK_URL") != NULL || is_stripped(stripped, "VALKEY_URL") ||
         (is_stripped(stripped, "REDIS_URL") && getenv("VALKEY_URL") == NULL)))
        return err_set(
            err, RLOCK_E_CONFIG, 0,
            "a parent rlock removed the server's URL, which has a password, from the "
            "environment: use a configuration file, or give the parent rlock --pass-credentials");
    return RLOCK_OK;
}

/* Check a URL of VALKEY_URL or REDIS_URL; option_parser_read() has checked all other URLs. */
static enum rlock_status check_others_url(const char *variable, const char *text,
                                          struct rlock_error *err)
{
    struct rlock_error why = {.status = RLOCK_OK};
    char meant[URL_SHOWN_BYTES];
    struct url url;
    bool is_like;

    if (url_parse(&url, text, &why) == RLOCK_OK) {
        url_fini(&url);
        return RLOCK_OK;
    }
    is_like = url_suggest(text, meant);
    return err_set(err, why.status, 0, "%s: %.240s%s%.80s%s", variable, why.text,
                   is_like ? "; did you mean " : "", is_like ? meant : "", is_like ? "?" : "");
}

/* Finds the value of a variable without the blanks and line ends around it; `*n` is its length. */
static const char *find_value(const char *variable, size_t *n)
{
    const char *value = environment_value(variable);

    value += strspn(value, OPTIONS_BLANKS);
    *n = strlen(value);
    while (*n > 0 && strchr(OPTIONS_BLANKS, value[*n - 1]) != NULL)
        --*n;
    return value;
}

/* Copies the URL if no option names one: that of VALKEY_URL, of REDIS_URL, or the default. */
static enum rlock_status copy_others_url(struct credentials *credentials, struct rlock_error *err)
{
    size_t valkey_bytes;
    size_t redis_bytes;
    const char *valkey_url = find_value("VALKEY_URL", &valkey_bytes);
    const char *redis_url = find_value("REDIS_URL", &redis_bytes);
    char **url = credentials->url;

    if (valkey_bytes > 0) {
        credentials->url_variable = "VALKEY_URL";
        credentials->has_other_url =
            redis_bytes > 0 &&
            (redis_bytes != valkey_bytes || strncmp(valkey_url, redis_url, valkey_bytes) != 0);
        *url = strndup(valkey_url, valkey_bytes);
    } else if (redis_bytes > 0) {
        credentials->url_variable = "REDIS_URL";
        *url = strndup(redis_url, redis_bytes);
    } else {
        *url = strdup(DEFAULT_URL);
    }
    if (*url == NULL)
        return no_memory(err);
    credentials->n_urls = 1;
    return check_others_url(credentials->url_variable, *url, err);
}

static enum rlock_status copy_urls(struct credentials *credentials, const struct options *options,
                                   struct rlock_error *err)
{
    size_t n = options->n_urls > 0 ? options->n_urls : 1;

    credentials->url = calloc(n, sizeof *credentials->url);
    if (credentials->url == NULL)
        return no_memory(err);
    if (options->n_urls == 0)
        return copy_others_url(credentials, err);
    for (; credentials->n_urls < n; credentials->n_urls++) {
        credentials->url[credentials->n_urls] = strdup(options->urls[credentials->n_urls]);
        if (credentials->url[credentials->n_urls] == NULL)
            return no_memory(err);
    }
    return RLOCK_OK;
}

static enum rlock_status find_password(struct credentials *credentials,
                                       const struct options *options, const char *variable,
                                       const struct config_wait *wait, struct rlock_error *err)
{
    if (variable == NULL && options->password_file != NULL)
        return use_file(&credentials->place, &credentials->password, "password file",
                        options->password_file, wait, err);
    if (variable == NULL && options->password_command != NULL)
        credentials->place = (struct password_place){.name = "password command",
                                                     .command = options->password_command};
    credentials->password_variable = variable;
    credentials->password = variable == NULL ? NULL : strdup(getenv(variable));
    return variable != NULL && credentials->password == NULL ? no_memory(err) : RLOCK_OK;
}

/* VALKEYCLI_AUTH and REDISCLI_AUTH are not used for Sentinels: they are for the servers. */
static enum rlock_status find_sentinel_password(struct credentials *credentials,
                                                const struct options *options,
                                                const struct config_wait *wait,
                                                struct rlock_error *err)
{
    const char *value = environment_value("RLOCK_SENTINEL_PASSWORD");

    if (options->sentinel_password_file != NULL &&
        (*value == '\0' ||
         options_origin(options, "sentinel-password-file")->from >= FROM_ENVIRONMENT))
        return use_file(&credentials->sentinel_place, &credentials->sentinel_password,
                        "sentinel password file", options->sentinel_password_file, wait, err);
    if (*value == '\0')
        return RLOCK_OK;
    credentials->sentinel_password = strdup(value);
    return credentials->sentinel_password == NULL ? no_memory(err) : RLOCK_OK;
}

/* True if the server is found by Sentinels, which may want a password of their own. */
static bool has_sentinel_url(const struct credentials *credentials)
{
    size_t i;

    for (i = 0; i < credentials->n_urls; i++)
        if (strcasestr(credentials->url[i], "+sentinel://") != NULL)
            return true;
    return false;
}

size_t credentials_in_urls(const struct credentials *credentials)
{
    size_t found = 0;
    size_t i;
    size_t n;

    for (i = 0; i < credentials->n_urls; i++)
        found += url_find_password(credentials->url[i], &n) != NULL;
    return found;
}

enum rlock_status credentials_read(struct credentials *credentials, const struct options *options,
                                   const struct config_wait *wait, struct rlock_error *err)
{
    const char *variable;
    enum source other = source_beside_urls(options, &variable);
    enum rlock_status st = check_url(options, err);
    bool has_other;
    size_t i;

    *credentials = (struct credentials){.url = NULL};
    if (st == RLOCK_OK)
        st = copy_urls(credentials, options, err);
    if (st == RLOCK_OK &&
        (credentials_in_urls(credentials) < credentials->n_urls || other > options->url_from))
        st = find_password(credentials, options, variable, wait, err);
    if (st == RLOCK_OK && has_sentinel_url(credentials))
        st = find_sentinel_password(credentials, options, wait, err);
    has_other = credentials->password != NULL || credentials->place.name != NULL;
    for (i = 0; has_other && other > options->url_from && i < credentials->n_urls; i++)
        url_remove_password(credentials->url[i]);
    if (st != RLOCK_OK)
        credentials_fini(credentials);
    return st;
}

void credentials_fini(struct credentials *credentials)
{
    size_t i;

    for (i = 0; i < credentials->n_urls; i++)
        secret_free(credentials->url[i]);
    free(credentials->url);
    secret_free(credentials->password);
    secret_free(credentials->sentinel_password);
    *credentials = (struct credentials){.url = NULL};
}
