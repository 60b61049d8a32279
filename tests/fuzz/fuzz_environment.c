/* SPDX-License-Identifier: MIT */
/*
 * fuzz_environment: reads any lines as the environment that rlock inherits. The environment of the
 * command must not have a password, and must have each variable that rlock adds exactly once.
 */
#include "fuzz.h"
#include "session/environment.h"

extern char **environ;

#define VARIABLES_MAX 64

static size_t count(char *const *all, const char *name)
{
    size_t length = strlen(name);
    size_t n = 0;

    for (; *all != NULL; all++)
        n += strncmp(*all, name, length) == 0 && (*all)[length] == '=';
    return n;
}

static void make(bool keeps_secrets)
{
    static char entry[] = "RLOCK_URL=redis://h";
    char *const entries[] = {entry, NULL};
    struct rlock_grant grant = {.token = "0123456789abcdef0123456789abcdef", .fence = 7};
    char variables[ENVIRONMENT_GRANT_BYTES];
    struct environment environment;

    must(environment_make(&environment, "a\nb", entries, keeps_secrets));
    environment_put_grant(variables, &grant);
    environment_add_grant(&environment, variables);
    must(count(environment.all, "RLOCK_KEY") == 1 && count(environment.all, "RLOCK_URL") == 1);
    must(count(environment.all, "RLOCK_TOKEN") == 1 && count(environment.all, "RLOCK_FENCE") == 1);
    must(keeps_secrets || count(environment.all, "RLOCK_PASSWORD") == 0);
    environment_fini(&environment);
}

/* Hides the passwords in the lines, as rlock does when it starts, then overwrites the copies. */
static void hide(char **inherited, size_t n)
{
    char *before[VARIABLES_MAX + 1];

    memcpy(before, inherited, sizeof before);
    environment_hide();
    for (size_t i = 0; i < n; i++)
        must(inherited[i] == before[i] || strlen(inherited[i]) >= strlen("A="));
    environment_forget();
    for (size_t i = 0; i < n; i++) {
        if (inherited[i] != before[i])
            free(inherited[i]);
        inherited[i] = before[i];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = realloc(fuzz_text(data, n), n + 2); /* glibc's getenv(3) reads two bytes of "" */
    char *inherited[VARIABLES_MAX + 1] = {NULL};
    char *rest = text;
    char *line;
    char **before = environ;
    struct parent parent;
    size_t n_inherited = 0;

    while ((line = strsep(&rest, "\n")) != NULL && n_inherited < VARIABLES_MAX)
        inherited[n_inherited++] = line;
    environ = inherited;
    parent = environment_parent();
    must(parent.n <= RLOCK_PARENTS_MAX);
    for (size_t i = 0; i < parent.n; i++)
        must(parent.token[i][0] != '\0' && strchr(parent.token[i], ' ') == NULL);
    parent_fini(&parent);
    must(environment_value("RLOCK_KEY") != NULL);
    (void)environment_says("a");
    (void)environment_hides("RLOCK_PASSWORD");
    make(false);
    make(true);
    hide(inherited, n_inherited);
    must(environment_shed());
    must(count(environ, "RLOCK_PASSWORD") == 0 && count(environ, "RLOCK_TOKEN") == 0);
    free(environ);
    environ = before;
    free(text);
    return 0;
}
