/* SPDX-License-Identifier: MIT */
/* environment: the environment variables that rlock inherits, hides and gives to the command. */
#include "session/environment.h"

#include "options/variable.h"
#include "process/dumpable.h"
#include "wire/url.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

#define STRIPPED_BYTES 512
/* The tokens of all parent locks except that of the nearest one, which is in RLOCK_TOKEN. */
#define PARENT_TOKENS "RLOCK_PARENT_TOKENS"

const char *environment_value(char *const *inherited, const char *name)
{
    for (; *inherited != NULL; inherited++)
        if (variable_is_named(*inherited, name))
            return *inherited + strlen(name) + 1;
    return "";
}

struct parent environment_parent(char *const *inherited)
{
    const char *nearest = environment_value(inherited, "RLOCK_TOKEN");
    struct parent parent = {.n = 0};
    char *saved;
    char *word;

    if (*nearest == '\0' ||
        asprintf(&parent.text, "%s %s", nearest, environment_value(inherited, PARENT_TOKENS)) < 0)
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
enum parent_says environment_says(char *const *inherited, const char *key)
{
    const char *keys = environment_value(inherited, "RLOCK_KEY");
    const char *at;
    size_t n = strlen(key);

    if (*environment_value(inherited, "RLOCK_TOKEN") == '\0')
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
 * True if the variable holds a password. RLOCK_URL may have several URLs. In redis://NAME@host,
 * NAME is a user name for rlock. But VALKEY_URL and REDIS_URL belong to other programs, which may
 * take NAME as the password.
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

/* True if the value of the variable names a file or a command that has the password. */
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

/* An entry without "=", such as execve(2) also accepts, has no value to hide. */
static bool is_to_hide(char *entry)
{
    return strchr(entry, '=') != NULL && holds_secret(entry) && !names_place(entry);
}

void environment_hide(char **inherited)
{
    char *copy;

    for (; *inherited != NULL; inherited++) {
        if (!is_to_hide(*inherited) || (copy = strdup(*inherited)) == NULL)
            continue;
        dumpable_forbid();
        clear_value(*inherited);
        *inherited = copy; /* never freed: a caller of getenv(3) may use it */
    }
}

void environment_forget(char *const *inherited)
{
    for (; *inherited != NULL; inherited++)
        if (is_to_hide(*inherited))
            clear_value(*inherited);
}

bool environment_hides(char *const *inherited, const char *name)
{
    for (; *inherited != NULL; inherited++)
        if (variable_is_named(*inherited, name))
            return holds_secret(*inherited);
    return false;
}

char **environment_plain(char *const *inherited)
{
    char **plain;
    size_t n = 0;

    while (inherited[n] != NULL)
        n++;
    plain = calloc(n + 1, sizeof *plain);
    for (n = 0; plain != NULL && *inherited != NULL; inherited++)
        if (!holds_secret(*inherited) && !variable_is_given(*inherited))
            plain[n++] = *inherited;
    return plain;
}

bool environment_shed(void)
{
    char **plain = environment_plain(environ);

    if (plain != NULL) {
        environment_forget(environ);
        environ = plain;
    }
    return plain != NULL;
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

static bool add(struct environment *environment, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool add(struct environment *environment, const char *format, ...)
{
    char *entry;
    va_list args;
    int written;

    va_start(args, format);
    written = vasprintf(&entry, format, args);
    va_end(args);
    if (written < 0)
        return false;
    environment->ours[environment->n_ours++] = entry;
    environment->all[environment->n++] = entry;
    return true;
}

/*
 * Copy the variables that rlock doesn't set itself. `stripped` becomes a list of the names of those
 * that are left out, as they hold a password.
 */
static void copy_rest(struct environment *environment, char *const *entries, bool keeps_secrets,
                      char stripped[STRIPPED_BYTES])
{
    char *const *inherited = environment->inherited;

    for (; *inherited != NULL; inherited++) {
        size_t used = strlen(stripped);

        if (variable_is_given(*inherited))
            continue;
        if (variable_is_named(*inherited, ENVIRONMENT_STRIPPED)) {
            snprintf(stripped + used, STRIPPED_BYTES - used, "%s%s", used > 0 ? " " : "",
                     strchr(*inherited, '=') + 1);
            continue;
        }
        if ((keeps_secrets || !holds_secret(*inherited)) && is_set_by(*inherited, entries))
            continue;
        if (keeps_secrets || !holds_secret(*inherited)) {
            environment->all[environment->n++] = *inherited;
            continue;
        }
        snprintf(stripped + used, STRIPPED_BYTES - used, "%s%.*s", used > 0 ? " " : "",
                 (int)strcspn(*inherited, "="), *inherited);
    }
}

bool environment_make(struct environment *environment, char *const *inherited, const char *keys,
                      char *const *entries, bool keeps_secrets)
{
    char stripped[STRIPPED_BYTES] = "";
    size_t n = 0;

    while (inherited[n] != NULL)
        n++;
    *environment = (struct environment){
        .all = calloc(n + sizeof environment->ours / sizeof *environment->ours + 1,
                      sizeof *environment->all),
        .inherited = inherited};
    if (environment->all == NULL)
        return false;
    copy_rest(environment, entries, keeps_secrets, stripped);
    for (; *entries != NULL; entries++)
        if (!add(environment, "%s", *entries))
            return false;
    return add(environment, "RLOCK_KEY=%s", keys) &&
           (stripped[0] == '\0' || add(environment, "%s=%s", ENVIRONMENT_STRIPPED, stripped));
}

/* Where environment_put_grant() writes the next variable. */
struct place {
    char *text;
    size_t used;
};

static void put(struct place *place, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct place *place, const char *format, ...)
{
    size_t room = ENVIRONMENT_GRANT_BYTES - place->used;
    va_list args;
    int written;

    va_start(args, format);
    written = vsnprintf(place->text + place->used, room, format, args);
    va_end(args);
    if (written > 0 && (size_t)written < room)
        place->used += (size_t)written + 1;
}

/*
 * The command may run rlock again, which has to know the tokens of all locks under which it runs.
 */
static void put_parents(struct place *place, char *const *inherited, const char *token)
{
    char tokens[RLOCK_PARENTS_MAX * (RLOCK_TOKEN_BYTES + 1) + 1] = "";
    struct parent parent = environment_parent(inherited);
    size_t used = 0;
    size_t i;

    for (i = 0; i < parent.n && used + RLOCK_TOKEN_BYTES + 2 < sizeof tokens; i++)
        if (strcmp(parent.token[i], token) != 0 && strlen(parent.token[i]) == RLOCK_TOKEN_BYTES)
            used += (size_t)sprintf(tokens + used, "%s%s", used > 0 ? " " : "", parent.token[i]);
    parent_fini(&parent);
    if (used > 0)
        put(place, "%s=%s", PARENT_TOKENS, tokens);
}

void environment_put_grant(char text[ENVIRONMENT_GRANT_BYTES], char *const *inherited,
                           const struct rlock_grant *grant, bool has_slot)
{
    struct place place = {.text = text};

    put(&place, "RLOCK_TOKEN=%s", grant->token);
    put(&place, "RLOCK_FENCE=%" PRIu64, grant->fence);
    put(&place, "RLOCK_TTL_MS=%" PRId64, grant->timing.ttl_ms);
    if (has_slot)
        put(&place, "RLOCK_SLOT=%" PRId64, grant->slot);
    put_parents(&place, inherited, grant->token);
    text[place.used] = '\0';
}

void environment_add_grant(struct environment *environment, char text[ENVIRONMENT_GRANT_BYTES])
{
    for (; *text != '\0'; text += strlen(text) + 1)
        environment->all[environment->n++] = text;
}

void environment_fini(struct environment *environment)
{
    int i;

    for (i = 0; i < environment->n_ours; i++)
        free(environment->ours[i]);
    free(environment->all);
    *environment = (struct environment){.all = NULL};
}
