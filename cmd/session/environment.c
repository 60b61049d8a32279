/* SPDX-License-Identifier: MIT */
/* environment: the environment variables that rlock inherits, hides and passes to the command. */
#include "session/environment.h"

#include "options/variable.h"
#include "process/dumpable.h"
#include "wire/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

#define STRIPPED ENVIRONMENT_STRIPPED "="
#define OURS_MAX 7 /* how many variables rlock sets, beside the `entries` of environment_make() */
/* The tokens of all parent locks except the nearest, whose token is in RLOCK_TOKEN. */
#define PARENT_TOKENS "RLOCK_PARENT_TOKENS"

const char *environment_value(const char *name)
{
    const char *value = getenv(name);

    return value != NULL ? value : "";
}

bool environment_has_parent(void)
{
    return *environment_value("RLOCK_TOKEN") != '\0';
}

struct parent environment_parent(void)
{
    struct parent parent = {.n = 0};
    char *saved;
    char *word;

    if (!environment_has_parent() ||
        asprintf(&parent.text, "%s %s", environment_value("RLOCK_TOKEN"),
                 environment_value(PARENT_TOKENS)) < 0)
        parent.text = NULL;
    word = parent.text == NULL ? NULL : strtok_r(parent.text, " ", &saved);
    for (; word != NULL && parent.n < RLOCK_PARENTS_MAX; word = strtok_r(NULL, " ", &saved))
        parent.token[parent.n++] = word;
    return parent;
}

void parent_fini(struct parent *parent)
{
    free(parent->text);
    *parent = (struct parent){.n = 0};
}

/* RLOCK_KEY has each key on a line of its own. */
enum parent_says environment_says(const char *key)
{
    const char *keys = environment_value("RLOCK_KEY");
    const char *at;
    size_t n = strlen(key);

    if (!environment_has_parent())
        return PARENT_SAYS_NO;
    if (*keys == '\0')
        return PARENT_SAYS_TOKEN;
    for (at = keys; (at = strstr(at, key)) != NULL; at++)
        if ((at == keys || at[-1] == '\n') && (at[n] == '\0' || at[n] == '\n'))
            return PARENT_SAYS_YES;
    return PARENT_SAYS_NO;
}

/* True if the value of the variable is a password, or names a file or command that has one. */
static bool is_password(const char *entry)
{
    return variable_is_named(entry, "REDISCLI_AUTH") ||
           variable_is_named(entry, "VALKEYCLI_AUTH") ||
           strncmp(entry, "RLOCK_PASSWORD", strlen("RLOCK_PASSWORD")) == 0 ||
           strncmp(entry, "RLOCK_SENTINEL_PASSWORD", strlen("RLOCK_SENTINEL_PASSWORD")) == 0;
}

static bool is_others_url(const char *entry)
{
    return variable_is_named(entry, "VALKEY_URL") || variable_is_named(entry, "REDIS_URL");
}

static bool is_url(const char *entry)
{
    return variable_is_named(entry, "RLOCK_URL") || is_others_url(entry);
}

/*
 * True if the variable has a password, or names a place that has one. RLOCK_URL may have several
 * URLs. In redis://NAME@host, NAME is a user name for rlock. But VALKEY_URL and REDIS_URL belong to
 * other programs, for which NAME may be the password.
 */
static bool holds_secret(char *entry)
{
    char *url = entry;
    size_t n;

    if (is_password(entry))
        return true;
    if (is_others_url(entry))
        return url_may_hold_password(strchr(entry, '=') + 1);
    for (; is_url(entry) && (url = strstr(url, "://")) != NULL; url++)
        if (url_find_password(url, &n) != NULL)
            return true;
    return false;
}

static bool names_place(const char *entry)
{
    return variable_is_named(entry, "RLOCK_PASSWORD_FILE") ||
           variable_is_named(entry, "RLOCK_PASSWORD_COMMAND") ||
           variable_is_named(entry, "RLOCK_SENTINEL_PASSWORD_FILE");
}

static void clear_value(char *entry)
{
    char *value = strchr(entry, '=') + 1;

    if (is_url(entry))
        url_mask(value);
    else
        memset(value, '*', strlen(value));
}

/* execve(2) also accepts an entry without "=", which has no value to hide. */
static bool is_to_hide(char *entry)
{
    return strchr(entry, '=') != NULL && holds_secret(entry) && !names_place(entry);
}

void environment_hide(void)
{
    char **each;
    char *copy;

    for (each = environ; *each != NULL; each++) {
        if (!is_to_hide(*each) || (copy = strdup(*each)) == NULL)
            continue;
        dumpable_forbid();
        clear_value(*each);
        *each = copy; /* never freed: a caller of getenv(3) may use it */
    }
}

void environment_forget(void)
{
    char **each;

    for (each = environ; *each != NULL; each++)
        if (is_to_hide(*each))
            clear_value(*each);
}

bool environment_hides(const char *name)
{
    char **each = environ;

    while (*each != NULL && !variable_is_named(*each, name))
        each++;
    return *each != NULL && holds_secret(*each);
}

static size_t count(char *const *entries)
{
    size_t n = 0;

    while (entries[n] != NULL)
        n++;
    return n;
}

bool environment_shed(void)
{
    char **plain = calloc(count(environ) + 1, sizeof *plain);
    char **each;
    size_t n = 0;

    if (plain == NULL)
        return false;
    for (each = environ; *each != NULL; each++)
        if (!holds_secret(*each) && !variable_is_given(*each))
            plain[n++] = *each;
    environment_forget();
    environ = plain;
    return true;
}

/* Does one of the `entries` set the variable that `entry` sets? */
static bool is_set_by(const char *entry, char *const *entries)
{
    size_t n = strcspn(entry, "=") + 1;

    for (; *entries != NULL; entries++)
        if (strncmp(*entries, entry, n) == 0)
            return true;
    return false;
}

/* Add names of variables to ENVIRONMENT_STRIPPED. */
static void strip(struct environment *environment, const char *names, size_t n)
{
    size_t used = strlen(environment->stripped);

    snprintf(environment->stripped + used, sizeof environment->stripped - used, "%s%.*s",
             used > strlen(STRIPPED) ? " " : "", (int)n, names);
}

/* Copy the variables that the command inherits from rlock. */
static void copy_rest(struct environment *environment, char *const *entries, bool keeps_secrets)
{
    char **each;

    for (each = environ; *each != NULL; each++) {
        if (variable_is_given(*each))
            continue;
        if (variable_is_named(*each, ENVIRONMENT_STRIPPED))
            strip(environment, *each + strlen(STRIPPED), strlen(*each + strlen(STRIPPED)));
        else if (!keeps_secrets && holds_secret(*each))
            strip(environment, *each, strcspn(*each, "="));
        else if (!is_set_by(*each, entries))
            environment->all[environment->n++] = *each;
    }
}

bool environment_make(struct environment *environment, const char *keys, char *const *entries,
                      bool keeps_secrets)
{
    *environment = (struct environment){
        .all = calloc(count(environ) + count(entries) + OURS_MAX + 1, sizeof(char *)),
        .stripped = STRIPPED};
    if (environment->all == NULL)
        return false;
    if (asprintf(&environment->keys, "RLOCK_KEY=%s", keys) < 0) {
        environment->keys = NULL;
        return false;
    }
    copy_rest(environment, entries, keeps_secrets);
    for (; *entries != NULL; entries++)
        environment->all[environment->n++] = *entries;
    environment->all[environment->n++] = environment->keys;
    if (strlen(environment->stripped) > strlen(STRIPPED))
        environment->all[environment->n++] = environment->stripped;
    return true;
}

/*
 * Writes RLOCK_PARENT_TOKENS: an rlock in the command needs the tokens of all locks under which it
 * runs. Returns how many bytes were written, with the NUL; 0: no variable.
 */
static int put_parents(char *text, const char *token)
{
    struct parent parent = environment_parent();
    int used = 0;
    size_t i;

    for (i = 0; i < parent.n; i++)
        if (strcmp(parent.token[i], token) != 0 && strlen(parent.token[i]) == RLOCK_TOKEN_BYTES)
            used +=
                sprintf(text + used, "%s%s", used > 0 ? " " : PARENT_TOKENS "=", parent.token[i]);
    parent_fini(&parent);
    return used > 0 ? used + 1 : 0;
}

void environment_put_grant(char text[ENVIRONMENT_GRANT_BYTES], const struct rlock_grant *grant)
{
    text += sprintf(text, "RLOCK_TOKEN=%s", grant->token) + 1;
    text += sprintf(text, "RLOCK_FENCE=%" PRIu64, grant->fence) + 1;
    text += sprintf(text, "RLOCK_TTL_MS=%" PRId64, grant->timing.ttl_ms) + 1;
    if (grant->slot >= 0)
        text += sprintf(text, "RLOCK_SLOT=%" PRId64, grant->slot) + 1;
    text += put_parents(text, grant->token);
    *text = '\0';
}

void environment_add_grant(struct environment *environment, char text[ENVIRONMENT_GRANT_BYTES])
{
    for (; *text != '\0'; text += strlen(text) + 1)
        environment->all[environment->n++] = text;
}

void environment_fini(struct environment *environment)
{
    free(environment->keys);
    free(environment->all);
    *environment = (struct environment){.all = NULL};
}
