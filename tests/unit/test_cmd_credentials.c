/* SPDX-License-Identifier: MIT */
/* test_cmd_credentials: of several passwords the right one is used, and none stays readable. */
#include "files.h"
#include "session/credentials.h"
#include "tap.h"
#include "wire/url.h"

#include <unistd.h>

static const struct {
    const char *password; /* NULL: the URLs have none */
    const char *urls[7];
} urls[] = {
    {NULL, {"redis://h", "redis://u@h", "redis://u:@h", "redis://:@h", "redis://h:6379/1"}},
    {NULL, {"u:pw@h", "local:", "unix:///a:b@c", "redis://h/a:b@c", "redis://h?a:b@c", ""}},
    {"pw", {"redis://u:pw@h", "rediss://u:pw@h", "redis+sentinel://u:pw@h:1,i:2/s/0"}},
    {"pw", {"RLOCK_URL=redis://u:pw@h"}},
    {"p@w", {"redis://u:p@w@h"}},
    {"p%40w", {"redis://u:p%40w@[::1]:1"}},
};

static bool same(const char *got, const char *wanted)
{
    return got == NULL || wanted == NULL ? got == wanted : strcmp(got, wanted) == 0;
}

static void test_in_url(void)
{
    char password[64];

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
        for (const char *const *url = urls[i].urls; *url != NULL; url++) {
            size_t n = 0;
            const char *at = url_find_password((char *)(uintptr_t)*url, &n);

            snprintf(password, sizeof password, "%.*s", (int)n, at != NULL ? at : "");
            okf(same(at != NULL ? password : NULL, urls[i].password), "%s: password %s", *url,
                password);
        }
}

#define PLAIN "redis://u@h"
#define WITH "redis://u:in-url@h"
#define NEVER FROM_DEFAULT

/* Where URLs and passwords are set, and which URL and which password has to be used. */
static const struct {
    const char *url;
    enum source url_from;
    enum source file_from; /* NEVER: no --password-file */
    const char *rlock_password, *rediscli_auth, *redis_url;
    const char *wanted_url, *wanted; /* wanted NULL: only the URL has a password */
    const char *valkeycli_auth;
} rows[] = {
    {NULL, NEVER, NEVER, NULL, NULL, NULL, "redis://127.0.0.1:6379", NULL, NULL},
    {NULL, NEVER, NEVER, NULL, NULL, "", "redis://127.0.0.1:6379", NULL, NULL},
    {NULL, NEVER, NEVER, NULL, NULL, PLAIN, PLAIN, NULL, NULL},
    {NULL, NEVER, NEVER, NULL, NULL, WITH, WITH, NULL, NULL},
    {PLAIN, FROM_FILE, NEVER, NULL, NULL, WITH, PLAIN, NULL, NULL},
    /* one source has a password that is not in the URL */
    {PLAIN, FROM_COMMAND_LINE, NEVER, "in-env", NULL, NULL, PLAIN, "in-env", NULL},
    {PLAIN, FROM_COMMAND_LINE, NEVER, NULL, "in-auth", NULL, PLAIN, "in-auth", NULL},
    {PLAIN, FROM_COMMAND_LINE, NEVER, NULL, "redis", NULL, PLAIN, "valkey", "valkey"},
    {PLAIN, FROM_COMMAND_LINE, FROM_FILE, NULL, NULL, NULL, PLAIN, "in-file", NULL},
    {PLAIN, FROM_COMMAND_LINE, NEVER, "", "", NULL, PLAIN, NULL, NULL},
    /* several sources have a password: the one that outranks the others counts */
    {PLAIN, FROM_FILE, NEVER, "in-env", "in-auth", NULL, PLAIN, "in-env", NULL},
    {PLAIN, FROM_FILE, FROM_FILE, "in-env", "in-auth", NULL, PLAIN, "in-env", NULL},
    {PLAIN, FROM_FILE, FROM_ENVIRONMENT, "in-env", NULL, NULL, PLAIN, "in-file", NULL},
    {PLAIN, FROM_FILE, FROM_COMMAND_LINE, "in-env", NULL, NULL, PLAIN, "in-file", NULL},
    {PLAIN, FROM_FILE, FROM_FILE, NULL, "in-auth", NULL, PLAIN, "in-file", NULL},
    /* a URL with a password: only a source that outranks the URL replaces the password */
    {WITH, FROM_COMMAND_LINE, NEVER, "in-env", "in-auth", NULL, WITH, NULL, NULL},
    {WITH, FROM_ENVIRONMENT, NEVER, "in-env", NULL, NULL, WITH, NULL, NULL},
    {WITH, FROM_FILE, NEVER, "in-env", NULL, NULL, PLAIN, "in-env", NULL},
    {WITH, FROM_FILE, NEVER, NULL, "in-auth", NULL, WITH, NULL, NULL},
    {WITH, FROM_FILE, FROM_FILE, NULL, NULL, NULL, WITH, NULL, NULL},
    {WITH, FROM_FILE, FROM_ENVIRONMENT, NULL, NULL, NULL, PLAIN, "in-file", NULL},
    {WITH, FROM_ENVIRONMENT, FROM_COMMAND_LINE, NULL, NULL, NULL, PLAIN, "in-file", NULL},
    {WITH, FROM_COMMAND_LINE, FROM_COMMAND_LINE, NULL, NULL, NULL, WITH, NULL, NULL},
    {NULL, NEVER, NEVER, "in-env", NULL, WITH, PLAIN, "in-env", NULL},
    {NULL, NEVER, NEVER, NULL, "in-auth", WITH, WITH, NULL, NULL},
    {NULL, NEVER, FROM_FILE, NULL, NULL, WITH, PLAIN, "in-file", NULL},
};

static const char file[] = "/f"; /* the password file, which isn't read */
static struct credentials found;
static struct rlock_error err;

static enum rlock_status read_credentials(const struct options *options)
{
    err = (struct rlock_error){.text = ""};
    return credentials_read(&found, options, &config_wait_forever, &err);
}

/* Returns the password that rlock has found; "in-file": it will read the password file later. */
static const char *password_of_found(void)
{
    return found.place.file != NULL && same(found.place.file, file) ? "in-file" : found.password;
}

static void test_nearest(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *url = rows[i].url;
        struct options options = {.argv = &(char *){NULL},
                                  .urls = &url,
                                  .n_urls = url != NULL,
                                  .url_from = rows[i].url_from,
                                  .password_file = rows[i].file_from == NEVER ? NULL : file,
                                  .password_from = rows[i].file_from};

        set_variable("RLOCK_PASSWORD", rows[i].rlock_password);
        set_variable("REDISCLI_AUTH", rows[i].rediscli_auth);
        set_variable("VALKEYCLI_AUTH", rows[i].valkeycli_auth);
        set_variable("REDIS_URL", rows[i].redis_url);
        if (!okf(read_credentials(&options) == RLOCK_OK, "row %zu: %s", i, err.text))
            continue;
        okf(same(found.url[0], rows[i].wanted_url) && same(password_of_found(), rows[i].wanted),
            "row %zu: URL %s and password %s", i, found.url[0],
            password_of_found() != NULL ? password_of_found() : "none");
        credentials_fini(&found);
        ok(found.url == NULL && found.password == NULL);
    }
    set_variable("REDIS_URL", NULL);
}

/* Where a URL that belongs to other programs, too, comes from; VALKEY_URL outranks REDIS_URL. */
static const struct {
    const char *valkey_url, *redis_url, *stripped;
    const char *url, *variable; /* url NULL: refused, with `variable` as a part of the message */
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
    {PLAIN, NULL, "REDIS_URL", PLAIN, "VALKEY_URL", false},
    {NULL, NULL, "RLOCK_PASSWORD REDIS_URL", NULL, "a parent rlock removed", false},
    {NULL, PLAIN, "VALKEY_URL", NULL, "a parent rlock removed", false},
    {NULL, "local:", NULL, NULL, "only --url and RLOCK_URL", false},
    {NULL, "u:s3cret@h:7", NULL, NULL, "REDIS_URL: bad URL: \"u:******@h:7\": ", false},
    {NULL, "u:s3cret@h:7", NULL, NULL, "; did you mean redis://u:******@h:7?", false},
    {"u:s3cret@h:7", NULL, NULL, NULL, "VALKEY_URL: bad URL: \"u:******@h:7\": ", false},
};

static void test_others(void)
{
    struct options options = {.url_from = FROM_DEFAULT};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        enum rlock_status st;

        set_variable("VALKEY_URL", others[i].valkey_url);
        set_variable("REDIS_URL", others[i].redis_url);
        set_variable("RLOCK_STRIPPED", others[i].stripped);
        st = read_credentials(&options);
        if (others[i].url == NULL) {
            okf(st == RLOCK_E_CONFIG && strstr(err.text, others[i].variable) != NULL, "row %zu: %s",
                i, err.text);
        } else if (okf(st == RLOCK_OK, "row %zu: %s", i, err.text)) {
            okf(same(found.url[0], others[i].url) && same(found.url_variable, others[i].variable) &&
                    found.has_other_url == others[i].is_warned,
                "row %zu: the URL is %s", i, found.url[0]);
            credentials_fini(&found);
        }
    }
    set_variable("VALKEY_URL", NULL);
    set_variable("RLOCK_STRIPPED", NULL);
}

static void test_several(void)
{
    const char *several[] = {WITH, PLAIN, WITH};
    struct options options = {.urls = several, .n_urls = 3, .url_from = FROM_COMMAND_LINE};

    set_variable("RLOCK_PASSWORD", "in-env");
    ok(read_credentials(&options) == RLOCK_OK && found.n_urls == 3 && same(found.url[0], WITH) &&
       same(found.url[1], PLAIN) && same(found.password, "in-env"));
    credentials_fini(&found);
    options.url_from = FROM_FILE;
    ok(read_credentials(&options) == RLOCK_OK && same(found.url[0], PLAIN) &&
       same(found.url[2], PLAIN) && same(found.password, "in-env"));
    credentials_fini(&found);
}

static int pipes[2];
static int stop[2];

/* Takes a signal: 'E' ends rlock, 'S' stops it; when it continues, the writer ends the password. */
static bool take_signal(void *context)
{
    char byte;

    (void)context;
    if (read(stop[0], &byte, 1) != 1 || byte == 'E')
        return true;
    ok(write(pipes[1], "ret\n", 4) == 4 && close(pipes[1]) == 0);
    return false;
}

/*
 * The writer of a pipe may hang: a time, or a signal, ends the wait for it. A signal that stops
 * rlock doesn't, and loses nothing that was read before.
 */
static void test_pipe(void)
{
    char path[32];
    struct options options = {.password_file = path, .password_from = FROM_COMMAND_LINE};
    struct config_wait wait = {20, -1, take_signal, NULL};

    set_variable("RLOCK_PASSWORD", NULL);
    ok(pipe(pipes) == 0 && pipe(stop) == 0);
    snprintf(path, sizeof path, "/dev/fd/%d", pipes[0]);
    ok(credentials_read(&found, &options, &wait, &err) == RLOCK_E_CONFIG);
    ok(strstr(err.text, "in time; a longer --connect-timeout") != NULL, err.text);
    wait.ms = RLOCK_NEVER;
    wait.stop_fd = stop[0];
    is_int(write(stop[1], "E", 1), 1);
    is_int(credentials_read(&found, &options, &wait, &err), RLOCK_STOPPED);
    ok(write(pipes[1], "sec", 3) == 3 && write(stop[1], "S", 1) == 1);
    is_int(credentials_read(&found, &options, &wait, &err), RLOCK_OK);
    ok(found.password != NULL && same(found.password, "secret"));
    credentials_fini(&found);
}

int main(void)
{
    clearenv();
    RUN_ALL(test_in_url, test_nearest, test_others, test_several, test_pipe);
    return done_testing();
}
