/* SPDX-License-Identifier: MIT */
/*
 * fuzz_environment: reads any lines as the environment that rlock inherits. The environment of the
 * command must not have a password, and must have each variable that rlock adds exactly once.
 */
#include "fuzz.h"
#include "session/environment.h"

#define VARIABLES_MAX 64

static size_t count(char *const *all, const char *name)
{
    size_t length = strlen(name);
    size_t n = 0;

    for (; *all != NULL; all++)
        n += strncmp(*all, name, length) == 0 && (*all)[length] == '=';
    return n;
}

static void make(char *const *inherited, bool keeps_secrets)
{
    static char entry[] = "RLOCK_URL=redis://h";
    char *const entries[] = {entry, NULL};
    struct rlock_grant grant = {.token = "0123456789abcdef0123456789abcdef", .fence = 7};
    char variables[ENVIRONMENT_GRANT_BYTES];
    struct environment environment;

    must(environment_make(&environment, inherited, "a\nb", entries, keeps_secrets));
    environment_put_grant(variables, inherited, &grant, true);
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
    size_t i;

    memcpy(before, inherited, sizeof before);
    environment_hide(inherited);
    for (i = 0; i < n; i++)
        must(inherited[i] == before[i] || strlen(inherited[i]) >= strlen("A="));
    environment_forget(inherited);
    for (i = 0; i < n; i++)
        if (inherited[i] != before[i])
            free(inherited[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = fuzz_text(data, n);
    char *inherited[VARIABLES_MAX + 1] = {NULL};
    char *rest = text;
    char *line;
    char **plain;
    struct parent parent;
    size_t n_inherited = 0;
    size_t i;

    while ((line = strsep(&rest, "\n")) != NULL && n_inherited < VARIABLES_MAX)
        inherited[n_inherited++] = line;
    parent = environment_parent(inherited);
    must(parent.n <= RLOCK_PARENTS_MAX);
    for (i = 0; i < parent.n; i++)
        must(parent.token[i][0] != '\0' && strchr(parent.token[i], ' ') == NULL);
    parent_fini(&parent);
    must(environment_value(inherited, "RLOCK_KEY") != NULL);
    (void)environment_says(inherited, "a");
    must(environment_says((char *[]){NULL}, "a") == PARENT_SAYS_NO);
    (void)environment_hides(inherited, "RLOCK_PASSWORD");
    make(inherited, false);
    make(inherited, true);
    plain = environment_plain(inherited);
    must(plain != NULL && count(plain, "RLOCK_PASSWORD") == 0 && count(plain, "RLOCK_TOKEN") == 0);
    free(plain);
    hide(inherited, n_inherited);
    free(text);
    return 0;
}
