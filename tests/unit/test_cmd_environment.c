/* SPDX-License-Identifier: MIT */
/* test_cmd_environment: the command gets rlock's variables, and no variable with a password. */
#include "session/environment.h"
#include "tap.h"

#include <stdlib.h>

extern char **environ;

static const struct rlock_grant grant = {
    .token = "0123456789abcdef0123456789abcdef", .fence = UINT64_MAX, .timing = {.ttl_ms = 30000}};

/* Variables that rlock inherits, and whether rlock passes them on to its command. */
static const struct {
    bool stays, stays_if_passed; /* without and with --pass-credentials */
    const char *entries[6];
} rows[] = {
    {true, true, {"PATH=/bin", "HOME=", "=odd", "odd", "REDISCLI_AUTHOR=me"}},
    {true, true, {"RLOCK_SENTINEL_USER=u", "VALKEY_URL=valkey://h", "RLOCK_URL=redis://h"}},
    {true, true, {"MY_URL=redis://:pw@h", "RLOCK_URLS=redis://:pw@h", "RLOCK_TTL=5"}},
    {true, true, {"RLOCK_LABEL=a=b", "RLOCK_KEYS=x"}},
    {false, true, {"RLOCK_PASSWORD=pw", "RLOCK_PASSWORD=", "RLOCK_PASSWORD_FILE=/f"}},
    {false, true, {"RLOCK_PASSWORD_OLD=pw", "REDISCLI_AUTH=pw", "VALKEYCLI_AUTH=pw"}},
    {false, true, {"RLOCK_SENTINEL_PASSWORD=pw", "RLOCK_SENTINEL_PASSWORD_FILE=/f"}},
    {false, true, {"RLOCK_PASSWORD_COMMAND=pass show redis", "REDIS_URL=redis://u:p#w@h"}},
    {false, true, {"REDIS_URL=token@h", "VALKEY_URL=valkey://token@h"}},
    {false, true, {"RLOCK_URL=redis://u:pw@h/3"}},
    {false, false, {"RLOCK_KEY=outer", "RLOCK_TOKEN=outer", "RLOCK_FENCE=1", "RLOCK_TTL_MS=1"}},
    {false, false, {"RLOCK_SLOT=1", "RLOCK_PARENT_TOKENS=x"}},
};

#define ROWS (sizeof rows / sizeof rows[0])

static struct environment environment;

/* Returns the entry that begins with the first `n` bytes of `start`; NULL: none. */
static const char *starting(const char *start, size_t n)
{
    const char *found = NULL;

    for (size_t i = 0; environment.all[i] != NULL; i++)
        if (strncmp(environment.all[i], start, n) == 0)
            found = found == NULL ? environment.all[i] : "several entries";
    return found;
}

static const char *entry_of(const char *name)
{
    return starting(name, strlen(name));
}

static char *const no_entries[] = {NULL};

static bool make(const char *const *inherited, bool keeps_secrets, int64_t slot)
{
    struct rlock_grant slotted = grant;
    static char variables[ENVIRONMENT_GRANT_BYTES];

    environment_fini(&environment);
    environ = (char **)inherited;
    if (!environment_make(&environment, "a=b\nc", no_entries, keeps_secrets))
        return false;
    slotted.slot = slot;
    environment_put_grant(variables, &slotted);
    environment_add_grant(&environment, variables);
    return true;
}

static void test_passed(bool keeps_secrets)
{
    const char *inherited[ROWS * 5 + 1] = {NULL};
    const char *const *entry;
    size_t n = 0;

    for (size_t i = 0; i < ROWS; i++)
        for (entry = rows[i].entries; *entry != NULL; entry++)
            inherited[n++] = *entry;
    need(make(inherited, keeps_secrets, -1), "environment_make() succeeds");
    for (size_t i = 0; i < ROWS; i++)
        for (entry = rows[i].entries; *entry != NULL; entry++)
            is_str(starting(*entry, strlen(*entry) + 1),
                   (keeps_secrets ? rows[i].stays_if_passed : rows[i].stays) ? *entry : NULL,
                   keeps_secrets ? "with --pass-credentials" : "without --pass-credentials");
    is_str(entry_of("RLOCK_KEY="), "RLOCK_KEY=a=b\nc", "the keys, one on each line");
    is_str(entry_of("RLOCK_TOKEN="), "RLOCK_TOKEN=0123456789abcdef0123456789abcdef");
    is_str(entry_of("RLOCK_FENCE="), "RLOCK_FENCE=18446744073709551615");
    is_str(entry_of("RLOCK_TTL_MS="), "RLOCK_TTL_MS=30000");
    is_str(entry_of(ENVIRONMENT_STRIPPED),
           keeps_secrets ? NULL
                         : ENVIRONMENT_STRIPPED
               "=RLOCK_PASSWORD RLOCK_PASSWORD RLOCK_PASSWORD_FILE RLOCK_PASSWORD_OLD "
               "REDISCLI_AUTH VALKEYCLI_AUTH RLOCK_SENTINEL_PASSWORD RLOCK_SENTINEL_PASSWORD_FILE "
               "RLOCK_PASSWORD_COMMAND REDIS_URL REDIS_URL VALKEY_URL RLOCK_URL");
}

static void test_nested(void)
{
    static const char *const inherited[] = {ENVIRONMENT_STRIPPED "=RLOCK_URL", "REDISCLI_AUTH=pw",
                                            NULL};
    static const char *const none[] = {NULL};
    static char long_name[5000] = "RLOCK_PASSWORD_";
    const char *const many[] = {long_name, "REDISCLI_AUTH=pw", NULL};

    if (make(inherited, false, -1))
        is_str(entry_of(ENVIRONMENT_STRIPPED), ENVIRONMENT_STRIPPED "=RLOCK_URL REDISCLI_AUTH");
    ok(make(none, false, -1) && environment.all[4] == NULL);
    memset(long_name + 15, 'X', sizeof long_name - 19);
    memcpy(long_name + sizeof long_name - 4, "=pw", 4);
    ok(make(many, false, -1) && entry_of(ENVIRONMENT_STRIPPED "=RLOCK_PASSWORD_XX") != NULL &&
       entry_of("RLOCK_PASSWORD") == NULL);
}

/* RLOCK_PARENT_TOKENS has the token of each rlock above this one once, the nearest one's first. */
static void test_parent(void)
{
    static const char *const inherited[] = {
        "RLOCK_PARENT_TOKENS=11111111111111111111111111111111 half "
        "0123456789abcdef0123456789abcdef",
        "RLOCK_TOKEN=22222222222222222222222222222222", NULL};
    struct parent parent;

    environ = (char **)inherited;
    parent = environment_parent();

    is_int((int64_t)parent.n, 4);
    is_str(parent.token[0], "22222222222222222222222222222222");
    parent_fini(&parent);
    ok(make(inherited, false, 0));
    is_str(entry_of("RLOCK_PARENT_TOKENS="),
           "RLOCK_PARENT_TOKENS=22222222222222222222222222222222 11111111111111111111111111111111",
           "the command gets each word that can be a token, except the token of its own lock");
    is_str(entry_of("RLOCK_SLOT="), "RLOCK_SLOT=0");
    environ = (char **)&inherited[2];
    parent = environment_parent();
    is_int((int64_t)parent.n, 0, "an empty environment has no parent lock");
    parent_fini(&parent);
}

/* environment_put_grant() has room for the tokens of all parents that rlock takes into account. */
static void test_most_parents(void)
{
    char nearest[] = "RLOCK_TOKEN=00000000000000000000000000000000";
    char others[32 + RLOCK_PARENTS_MAX * (RLOCK_TOKEN_BYTES + 1)] = "RLOCK_PARENT_TOKENS=";
    const char *inherited[] = {nearest, others, NULL};
    int i;

    for (i = 1; i < RLOCK_PARENTS_MAX; i++)
        sprintf(others + strlen(others), "%s%032d", i > 1 ? " " : "", i);
    need(make(inherited, false, 0) &&
         entry_of("RLOCK_PARENT_TOKENS=00000000000000000000000000000000 ") != NULL);
    is_int((int64_t)strlen(entry_of("RLOCK_PARENT_TOKENS=")),
           (int64_t)strlen("RLOCK_PARENT_TOKENS=") + RLOCK_PARENTS_MAX * (RLOCK_TOKEN_BYTES + 1) -
               1);
}

/* execve(2) takes any strings as an environment, so an entry may lack the equals sign. */
static void test_hidden(void)
{
    char password[] = "RLOCK_PASSWORD=pw";
    char without_value[] = "RLOCK_PASSWORD";
    char url[] = "REDIS_URL=redis://u:p@h";
    char valkey_url[] = "VALKEY_URL=valkey://:p@h";
    char *inherited[] = {without_value, password, url, valkey_url, NULL};

    environ = inherited;
    environment_hide();
    is_str(password, "RLOCK_PASSWORD=**", "asterisks replace the password that rlock inherited");
    is_str(url, "REDIS_URL=redis://u:*@h", "asterisks replace the password in a URL");
    is_str(valkey_url, "VALKEY_URL=valkey://:*@h", "... and in the URL of VALKEY_URL");
    is_str(inherited[1], "RLOCK_PASSWORD=pw", "rlock itself still finds the password");
    ok(inherited[0] == without_value && strcmp(without_value, "RLOCK_PASSWORD") == 0);
    environment_forget();
    is_str(inherited[1], "RLOCK_PASSWORD=**", "asterisks replace the copy of the password, too");
    free(inherited[1]);
    free(inherited[2]);
    free(inherited[3]);
}

int main(void)
{
    RUN(test_passed(false));
    RUN(test_passed(true));
    RUN_ALL(test_nested, test_parent, test_most_parents, test_hidden);
    environment_fini(&environment);
    environment_fini(&environment);
    return done_testing();
}
