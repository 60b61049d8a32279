/* SPDX-License-Identifier: MIT */
/* test_cmd_credentials: of several passwords the right one is used, and none stays readable. */
#include "session/credentials.h"
#include "tap.h"
#include "wire/url.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *url, *password; /* password NULL: the URL has none */
} urls[] = {
    {"redis://h", NULL},
    {"redis://u@h", NULL},
    {"redis://u:@h", NULL},
    {"redis://:@h", NULL},
    {"redis://h:6379/1", NULL},
    {"redis://[::1]:6379", NULL},
    {"u:pw@h", NULL},
    {"local:", NULL},
    {"unix:///a:b@c", NULL},
    {"redis://h/a:b@c", NULL},
    {"redis://h?a:b@c", NULL},
    {"", NULL},
    {"redis://u:pw@h", "pw"},
    {"redis://:pw@h:1/2", "pw"},
    {"redis://u:p:w@h", "p:w"},
    {"redis://u:p@w@h", "p@w"},
    {"redis://u:p%40w@[::1]:1", "p%40w"},
    {"rediss://u:pw@h", "pw"},
    {"redis+sentinel://u:pw@h:1,i:2/s/0", "pw"},
    {"--url=redis://u:pw@h", "pw"},
    {"RLOCK_URL=redis://u:pw@h", "pw"},
};

static void test_in_url(void)
{
    char url[64];

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        size_t n = 0;
        const char *found;

        snprintf(url, sizeof url, "%s", urls[i].url);
        found = url_find_password(url, &n);
        if (urls[i].password == NULL)
            okf(found == NULL, "url_find_password() finds no password in %s", url);
        else
            okf(found != NULL && n == strlen(urls[i].password) &&
                    strncmp(found, urls[i].password, n) == 0,
                "url_find_password() finds the password in %s", url);
    }
}

#define PLAIN "redis://u@h"
#define WITH "redis://u:in-url@h"
#define NEVER FROM_DEFAULT
#define PATIENCE_MS 20000 /* how long to wait before the test fails */

/* Where URLs and passwords are set, and which URL and which password has to be used. */
static const struct {
    const char *url;
    enum source url_from;
    enum source file_from; /* NEVER: no --password-file */
    const char *rlock_password, *rediscli_auth, *redis_url;
    const char *wanted_url, *wanted; /* wanted NULL: only the URL has a password */
} rows[] = {
    {NULL, NEVER, NEVER, NULL, NULL, NULL, "redis://127.0.0.1:6379", NULL},
    {NULL, NEVER, NEVER, NULL, NULL, "", "redis://127.0.0.1:6379", NULL},
    {NULL, NEVER, NEVER, NULL, NULL, PLAIN, PLAIN, NULL},
    {NULL, NEVER, NEVER, NULL, NULL, WITH, WITH, NULL},
    {PLAIN, FROM_FILE, NEVER, NULL, NULL, WITH, PLAIN, NULL},
    /* one source has a password that is not in the URL */
    {PLAIN, FROM_COMMAND_LINE, NEVER, "in-env", NULL, NULL, PLAIN, "in-env"},
    {PLAIN, FROM_COMMAND_LINE, NEVER, NULL, "in-auth", NULL, PLAIN, "in-auth"},
    {PLAIN, FROM_COMMAND_LINE, FROM_FILE, NULL, NULL, NULL, PLAIN, "in-file"},
    {PLAIN, FROM_COMMAND_LINE, NEVER, "", "", NULL, PLAIN, NULL},
    /* several sources have a password: the one that outranks the others counts */
    {PLAIN, FROM_FILE, NEVER, "in-env", "in-auth", NULL, PLAIN, "in-env"},
    {PLAIN, FROM_FILE, FROM_FILE, "in-env", "in-auth", NULL, PLAIN, "in-env"},
    {PLAIN, FROM_FILE, FROM_ENVIRONMENT, "in-env", NULL, NULL, PLAIN, "in-file"},
    {PLAIN, FROM_FILE, FROM_COMMAND_LINE, "in-env", NULL, NULL, PLAIN, "in-file"},
    {PLAIN, FROM_FILE, FROM_FILE, NULL, "in-auth", NULL, PLAIN, "in-file"},
    /* a URL with a password: only a source that outranks the URL replaces the password */
    {WITH, FROM_COMMAND_LINE, NEVER, "in-env", "in-auth", NULL, WITH, NULL},
    {WITH, FROM_ENVIRONMENT, NEVER, "in-env", NULL, NULL, WITH, NULL},
    {WITH, FROM_FILE, NEVER, "in-env", NULL, NULL, PLAIN, "in-env"},
    {WITH, FROM_FILE, NEVER, NULL, "in-auth", NULL, WITH, NULL},
    {WITH, FROM_FILE, FROM_FILE, NULL, NULL, NULL, WITH, NULL},
    {WITH, FROM_FILE, FROM_ENVIRONMENT, NULL, NULL, NULL, PLAIN, "in-file"},
    {WITH, FROM_ENVIRONMENT, FROM_COMMAND_LINE, NULL, NULL, NULL, PLAIN, "in-file"},
    {WITH, FROM_COMMAND_LINE, FROM_COMMAND_LINE, NULL, NULL, NULL, WITH, NULL},
    {NULL, NEVER, NEVER, "in-env", NULL, WITH, PLAIN, "in-env"},
    {NULL, NEVER, NEVER, NULL, "in-auth", WITH, WITH, NULL},
    {NULL, NEVER, FROM_FILE, NULL, NULL, WITH, PLAIN, "in-file"},
};

static char file[] = "/tmp/rlock-password.XXXXXX";

static void write_file(const char *text)
{
    FILE *out = fopen(file, "w");

    if (out == NULL)
        return;
    fputs(text, out);
    fclose(out);
}

static void set(const char *name, const char *value)
{
    if (value == NULL)
        unsetenv(name);
    else
        setenv(name, value, 1);
}

static bool same(const char *got, const char *wanted)
{
    return got == NULL || wanted == NULL ? got == wanted : strcmp(got, wanted) == 0;
}

/* Returns the password that rlock has found; "in-file": it will read the password file later. */
static const char *password_of(const struct credentials *found)
{
    return same(found->place.file, file) && found->place.file != NULL ? "in-file" : found->password;
}

static void test_nearest(void)
{
    char *argv[] = {(char *)"rlock", NULL};
    struct credentials found;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *url = rows[i].url;
        struct options options = {
            .urls = &url, .n_urls = url != NULL, .url_from = rows[i].url_from};
        struct rlock_error err = {.text = ""};

        options.argv = argv + 1;
        options.password_file = rows[i].file_from == NEVER ? NULL : file;
        options.password_from = rows[i].file_from;
        set("RLOCK_PASSWORD", rows[i].rlock_password);
        set("REDISCLI_AUTH", rows[i].rediscli_auth);
        set("REDIS_URL", rows[i].redis_url);
        if (!okf(credentials_read(&found, &options, &err) == RLOCK_OK, "row %zu: %s", i, err.text))
            continue;
        okf(same(found.url[0], rows[i].wanted_url) && same(password_of(&found), rows[i].wanted),
            "the source that outranks the others gives URL %s and password %s", found.url[0],
            password_of(&found) != NULL ? password_of(&found) : "none");
        credentials_fini(&found);
        ok(found.url == NULL && found.password == NULL);
    }
    set("RLOCK_PASSWORD", NULL);
    set("REDISCLI_AUTH", NULL);
    set("REDIS_URL", NULL);
}

static void test_valkey(void)
{
    const char *one[] = {PLAIN};
    struct options options = {.urls = one, .n_urls = 1, .url_from = FROM_COMMAND_LINE};
    struct credentials found;
    struct rlock_error err;

    set("REDISCLI_AUTH", "redis");
    set("VALKEYCLI_AUTH", "valkey");
    ok(credentials_read(&found, &options, &err) == RLOCK_OK && same(found.password, "valkey"));
    credentials_fini(&found);
    set("VALKEYCLI_AUTH", NULL);
    set("REDISCLI_AUTH", NULL);
}

static void test_redis_url(void)
{
    struct options options = {.url_from = FROM_DEFAULT};
    struct credentials found;
    struct rlock_error err = {.text = ""};

    set("REDIS_URL", "u:s3cret@h:7");
    okf(credentials_read(&found, &options, &err) == RLOCK_E_CONFIG &&
            strncmp(err.text, "REDIS_URL: bad URL: \"u:******@h:7\": ", 36) == 0 &&
            strstr(err.text, "; did you mean redis://u:******@h:7?") != NULL,
        "a bad REDIS_URL is named without its password: %s", err.text);
    set("REDIS_URL", "local:");
    okf(credentials_read(&found, &options, &err) == RLOCK_E_CONFIG &&
            strstr(err.text, "only --url and RLOCK_URL") != NULL,
        "REDIS_URL names servers for other programs, too, and so no private server: %s", err.text);
    set("REDIS_URL", NULL);
}

/* Where a URL that belongs to other programs, too, comes from; VALKEY_URL outranks REDIS_URL. */
static const struct {
    const char *valkey_url, *redis_url, *stripped;
    const char *url, *variable; /* url NULL: refused, as a parent rlock removed the URL */
    bool is_warned;
} others[] = {
    {NULL, NULL, NULL, "redis://127.0.0.1:6379", NULL, false},
    {NULL, PLAIN "\n", NULL, PLAIN, "REDIS_URL", false},
    {" " WITH "\r\n", NULL, NULL, WITH, "VALKEY_URL", false},
    {"valkey://h", "", NULL, "valkey://h", "VALKEY_URL", false},
    {"\n", PLAIN, NULL, PLAIN, "REDIS_URL", false},
    {"", " ", NULL, "redis://127.0.0.1:6379", NULL, false},
    {PLAIN, PLAIN "\n", NULL, PLAIN, "VALKEY_URL", false},
    {PLAIN, "redis://other", NULL, PLAIN, "VALKEY_URL", true},
    {NULL, PLAIN, "REDIS_URL", PLAIN, "REDIS_URL", false},
    {NULL, NULL, "RLOCK_PASSWORD REDIS_URL", NULL, NULL, false},
    {NULL, PLAIN, "VALKEY_URL", NULL, NULL, false},
    {PLAIN, NULL, "REDIS_URL", PLAIN, "VALKEY_URL", false},
};

static void test_others(void)
{
    struct options options = {.url_from = FROM_DEFAULT};
    struct credentials found;
    struct rlock_error err;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        enum rlock_status wanted = others[i].url != NULL ? RLOCK_OK : RLOCK_E_CONFIG;

        err = (struct rlock_error){.text = ""};
        set("VALKEY_URL", others[i].valkey_url);
        set("REDIS_URL", others[i].redis_url);
        set("RLOCK_STRIPPED", others[i].stripped);
        if (!okf(credentials_read(&found, &options, &err) == wanted, "row %zu: %s", i, err.text) ||
            wanted != RLOCK_OK)
            continue;
        okf(same(found.url[0], others[i].url) && same(found.url_variable, others[i].variable) &&
                found.has_other_url == others[i].is_warned,
            "row %zu: the URL is %s", i, found.url[0]);
        credentials_fini(&found);
    }
    set("VALKEY_URL", "u:s3cret@h:7");
    okf(credentials_read(&found, &options, &err) == RLOCK_E_CONFIG &&
            strncmp(err.text, "VALKEY_URL: bad URL: \"u:******@h:7\": ", 37) == 0,
        "a bad VALKEY_URL is named without its password: %s", err.text);
    set("VALKEY_URL", NULL);
    set("REDIS_URL", NULL);
    set("RLOCK_STRIPPED", NULL);
}

static void test_several(void)
{
    const char *several[] = {WITH, PLAIN, WITH};
    struct options options = {.urls = several, .n_urls = 3, .url_from = FROM_COMMAND_LINE};
    struct credentials found;
    struct rlock_error err;

    set("RLOCK_PASSWORD", "in-env");
    ok(credentials_read(&found, &options, &err) == RLOCK_OK && found.n_urls == 3 &&
       same(found.url[0], WITH) && same(found.url[1], PLAIN) && same(found.password, "in-env"));
    credentials_fini(&found);
    options.url_from = FROM_FILE;
    ok(credentials_read(&found, &options, &err) == RLOCK_OK && same(found.url[0], PLAIN) &&
       same(found.url[2], PLAIN) && same(found.password, "in-env"));
    credentials_fini(&found);
    set("RLOCK_PASSWORD", NULL);
}

/* Starts a password helper, asks it for a password by the library's calls, and stops it. */
static enum rlock_status look_up(const struct password_place *place, int patience_ms, char *found,
                                 struct rlock_error *err)
{
    struct password_helper helper;
    struct rlock_password_source source;
    enum rlock_status st = RLOCK_TIMEOUT;
    struct pollfd answer = {.events = POLLIN};

    if (password_helper_start(&helper, place) != 0)
        return RLOCK_E_SYSTEM;
    source = password_helper_source(&helper);
    answer.fd = source.ask(source.context, rlock_clock_ms() + patience_ms, err);
    if (poll(&answer, 1, 20000) > 0)
        st = source.take(source.context, found, RLOCK_PASSWORD_MAX + 1, err);
    password_helper_stop(&helper);
    return st;
}

static void test_file(void)
{
    static const struct {
        const char *text, *wanted; /* wanted NULL: the file is refused */
    } texts[] = {
        {"pw", "pw"},         {"pw\n", "pw"}, {"pw\r\n", "pw"}, {"pw\nother\n", "pw"},
        {" p w \n", " p w "}, {"", NULL},     {"\n", NULL},     {"\r\npw\n", NULL},
    };
    struct password_place place = {.name = "password file", .file = file};
    char found[RLOCK_PASSWORD_MAX + 1];
    struct rlock_error err;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_file(texts[i].text);
        if (texts[i].wanted != NULL) {
            okf(look_up(&place, PATIENCE_MS, found, &err) == RLOCK_OK &&
                    same(found, texts[i].wanted),
                "the password is the first line of \"%s\"", texts[i].text);
        } else {
            okf(look_up(&place, PATIENCE_MS, found, &err) == RLOCK_E_CONFIG &&
                    err.reason == RLOCK_REASON_PASSWORD_LOOKUP && strstr(err.text, file) != NULL,
                "a file with an empty first line is refused: \"%s\"", texts[i].text);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        place.file = i == 0 ? "/nowhere/at/all" : "/tmp";
        okf(look_up(&place, PATIENCE_MS, found, &err) == RLOCK_E_CONFIG &&
                strstr(err.text, place.file) != NULL,
            "a file that can't be read is an error: %s", err.text);
    }
}

static void test_command(void)
{
    static const struct {
        const char *command, *wanted, *why; /* wanted NULL: refused with the message `why` */
    } rows_of[] = {
        {"echo pw", "pw", NULL},
        {"printf pw", "pw", NULL},
        {"printf 'p w\\r\\nother\\n'", "p w", NULL},
        {"sleep 3 & echo pw", "pw", NULL}, /* sleep keeps the pipe open */
        {"echo pw; echo other; head -c 300000 /dev/zero", "pw", NULL},
        {"head -c 16384 /dev/zero | tr '\\0' x", "", NULL},
        {"head -c 16385 /dev/zero | tr '\\0' x", NULL, "longer than a password"},
        {":", NULL, "the first line is empty"},
        {"echo; echo pw", NULL, "the first line is empty"},
        {"echo pw; exit 3", NULL, "the command ended with status 3"},
        {"echo pw; kill -9 $$", NULL, "the command was ended by signal 9"},
        {"echo pw; sleep 100", NULL, "did not end within"},
        {"nowhere/at/all 2>/dev/null", NULL, "the command ended with status 127"},
    };
    struct password_place place = {.name = "password command"};
    char found[RLOCK_PASSWORD_MAX + 1];
    struct rlock_error err;

    for (size_t i = 0; i < sizeof rows_of / sizeof rows_of[0]; i++) {
        bool is_slow = rows_of[i].why != NULL && strstr(rows_of[i].why, "within") != NULL;
        enum rlock_status st;

        place.command = rows_of[i].command;
        st = look_up(&place, is_slow ? 300 : PATIENCE_MS, found, &err);
        if (rows_of[i].wanted != NULL)
            okf(st == RLOCK_OK &&
                    (rows_of[i].wanted[0] == '\0' ? strlen(found) == RLOCK_PASSWORD_MAX
                                                  : same(found, rows_of[i].wanted)),
                "the password is the first line that the command prints: %s", rows_of[i].command);
        else
            okf(st == RLOCK_E_CONFIG && err.reason == RLOCK_REASON_PASSWORD_LOOKUP &&
                    strstr(err.text, rows_of[i].why) != NULL,
                "the command gives no password: %s: %s", rows_of[i].command, err.text);
    }
}

int main(void)
{
    int fd = mkstemp(file);

    if (!ok(fd >= 0 && clearenv() == 0, "the test can make a file for a password"))
        return done_testing();
    close(fd);
    write_file("in-file\n");
    RUN_ALL(test_in_url, test_nearest, test_valkey, test_redis_url, test_others, test_several,
            test_file, test_command);
    unlink(file);
    return done_testing();
}
