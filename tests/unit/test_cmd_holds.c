/* SPDX-License-Identifier: MIT */
/* test_cmd_holds: tokens of holds are stored, found and removed; files of others are refused. */
#include "fds.h"
#include "files.h"
#include "session/holds.h"
#include "tap.h"
#include "user_entry.h"

#include <dirent.h>
#include <sys/stat.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"

static char top[] = "/tmp/rlock-holds-XXXXXX"; /* a directory of this test alone */
static char dir[64];                           /* RLOCK_HOLD_DIR */

static const char *const one_key[] = {"job"};
static const char *const two_keys[] = {"job", "other"};

static const struct hold a_hold = {.token = TOKEN, .until_ms = 1700000000123, .has_renewer = true};

static struct holds holds = {.dir = -1};
static struct rlock_error err;

/* Opens the holds of these keys on this server, to read or also to write. */
static enum rlock_status open_holds(const char *server, const char *const *keys, size_t n,
                                    bool creates)
{
    holds_fini(&holds);
    err = (struct rlock_error){.status = RLOCK_OK};
    return holds_open(&holds, strdup(server), keys, n, creates, &err);
}

/* Returns whether so many of the keys have a file. */
static bool has(const char *server, const char *const *keys, size_t n, size_t n_files)
{
    return open_holds(server, keys, n, false) == RLOCK_OK && holds.n == n_files;
}

static bool stores(const char *server, const char *const *key)
{
    return open_holds(server, key, 1, true) == RLOCK_OK && holds_write(&holds, &a_hold) == 0;
}

/* Writes the path of the only file in the directory. Returns how many files there are. */
static int only_file(char path[400])
{
    DIR *stream = opendir(dir);
    struct dirent *file;
    int n = 0;

    while (stream != NULL && (file = readdir(stream)) != NULL)
        if (file->d_name[0] != '.') {
            snprintf(path, 400, "%s/%s", dir, file->d_name);
            n++;
        }
    if (stream != NULL)
        closedir(stream);
    return n;
}

static void test_no_directory(void)
{
    ok(has("s", one_key, 1, 0) && holds.dir == -1);
    is_str(holds.hold[0].token, "", "the key has no token");
    ok(access(dir, F_OK) != 0, "reading doesn't create the directory");
    holds_remove(&holds, TOKEN);
    holds_fini(&holds);
    holds_fini(&holds); /* a second call changes nothing */
    ok(holds_open(&holds, NULL, one_key, 1, false, &err) == RLOCK_E_MEMORY);
}

static void test_write_and_read(void)
{
    struct stat is;
    char path[400] = "";
    mode_t mask = umask(0);
    int fds = count_fds();

    ok(stores("s", one_key), "the directory is created, and the hold is stored");
    is_int(stat(dir, &is) == 0 ? is.st_mode & 07777 : 0, 0700);
    is_str(holds.hold[0].token, TOKEN, "the struct has the stored token");
    is_int(only_file(path), 1, "the directory has one file, and no file that was left over");
    is_int(stat(path, &is) == 0 ? is.st_mode & 07777 : 0, 0600, "the file has the mode 0600");
    umask(mask);
    ok(has("s", one_key, 1, 1) && holds.hold[0].has_renewer);
    is_str(holds.hold[0].token, TOKEN, "the token is read");
    is_int(holds.hold[0].until_ms, 1700000000123, "the end of the hold is read");
    holds_fini(&holds);
    is_int(count_fds(), fds, "no descriptor is left open");
}

static void test_keys_and_servers(void)
{
    static const char *const reversed[] = {"other", "job"};
    static const char *const ab[] = {"ab"};
    static const char *const b[] = {"b"};
    struct hold second = {.token = OTHER, .until_ms = 1};

    ok(has("t", one_key, 1, 0), "another server has no such hold");
    ok(has("s", reversed, 2, 1));
    is_str(holds.hold[1].token, TOKEN, "the second key has the token");
    ok(open_holds("s", two_keys, 2, true) == RLOCK_OK && holds.n == 1);
    is_str(holds.hold[1].token, "", "the other key has no token");
    is_int(holds_write(&holds, &second), 0, "a hold of both keys is stored");
    ok(has("s", two_keys, 2, 2));
    is_str(holds.hold[0].token, OTHER, "the new file replaces the older one");
    ok(!holds.hold[1].has_renewer, "the file says that no process renews the hold");
    holds_remove(&holds, TOKEN);
    ok(has("s", two_keys, 2, 2), "a hold with another token isn't removed");
    holds_remove(&holds, OTHER);
    ok(has("s", two_keys, 2, 0), "the hold is removed");
    ok(stores("c", ab) && has("ca", b, 1, 0), "\"ab\" on \"c\" isn't \"b\" on \"ca\"");
    ok(has("c", ab, 1, 1));
    holds_remove(&holds, TOKEN);
}

static const struct {
    const char *text;
    enum rlock_status wanted;
    const char *why;
} texts[] = {
    {TOKEN " 1 0\n", RLOCK_OK, "a file without the second line"},
    {TOKEN " 1 0", RLOCK_OK, "a file without a newline"},
    {"", RLOCK_E_CONFIG, "an empty file"},
    {TOKEN "\n", RLOCK_E_CONFIG, "a file with a token and no times"},
    {TOKEN " 1\n", RLOCK_E_CONFIG, "a file without the last number"},
    {"TOKEN 1 0\n", RLOCK_E_CONFIG, "a file whose first word is no token"},
};

static void test_contents(void)
{
    char path[400] = "";

    ok(stores("s", one_key) && only_file(path) == 1);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_file(path, texts[i].text);
        is_int(open_holds("s", one_key, 1, false), texts[i].wanted, texts[i].why);
        okf(strstr(err.text, texts[i].wanted == RLOCK_OK ? "" : path) != NULL &&
                (texts[i].wanted == RLOCK_OK) == (err.text[0] == '\0'),
            "only a file that can't be used has an error, with its path: %s", err.text);
        ok(strstr(err.text, TOKEN) == NULL, "the error doesn't have the token");
    }
    for (int i = 0; i < 3; i++) {
        remove(path);
        ok((i == 0   ? symlink("/etc/passwd", path)
            : i == 1 ? mkfifo(path, 0600)
                     : mkdir(path, 0700)) == 0);
        is_int(open_holds("s", one_key, 1, false), RLOCK_E_CONFIG, "only a file is read");
    }
    ok(open_holds("s", two_keys + 1, 1, true) == RLOCK_OK, "another key is usable");
    holds.keys = one_key;
    ok(holds_write(&holds, &a_hold) != 0, "a file that can't be replaced is an error");
    rmdir(path);
    is_int(only_file(path), 0, "a failed write leaves no file");
}

static void test_directory_of_others(void)
{
    chmod(dir, 0755);
    is_int(open_holds("s", one_key, 1, true), RLOCK_E_CONFIG);
    ok(strstr(err.text, "set RLOCK_HOLD_DIR") != NULL, "the error says how to choose another one");
    chmod(dir, 0700);
    setenv("RLOCK_HOLD_DIR", "relative/path", 1);
    is_int(open_holds("s", one_key, 1, true), RLOCK_E_CONFIG);
}

/* Without RLOCK_HOLD_DIR the files are in the user's home. */
static void test_default_directory(void)
{
    char home[100];
    char path[200];

    setenv("RLOCK_HOLD_DIR", "", 1);
    ok(has("s", one_key, 1, 0), "a user without a home has no hold");
    is_int(open_holds("s", one_key, 1, true), RLOCK_E_CONFIG);
    is_str(err.text, "the token of a hold: this user has no home; set RLOCK_HOLD_DIR to keep "
                     "tokens in another directory");
    snprintf(home, sizeof home, "%s/home", top);
    ok(mkdir(home, 0700) == 0, "the user has a home");
    entry = (struct passwd){.pw_uid = 1000, .pw_dir = home};
    found = &entry;
    ok(has("s", one_key, 1, 0) && holds.dir == -1);
    ok(rmdir(home) == 0 && mkdir(home, 0700) == 0, "reading creates nothing");
    ok(stores("s", one_key) && has("s", one_key, 1, 1));
    snprintf(path, sizeof path, "%s/.local/state/rlock/holds", home);
    ok(access(path, F_OK) == 0, "the hold is in the usual directory");
    holds_remove(&holds, TOKEN);
    ok(rmdir(path) == 0 && has("s", one_key, 1, 0) && holds.dir == -1);
    snprintf(path, sizeof path, "rm -r %s", home);
    ok(system(path) == 0);
}

int main(void)
{
    if (!ok(mkdtemp(top) != NULL, "a directory for this test is created"))
        return done_testing();
    snprintf(dir, sizeof dir, "%s/holds", top);
    setenv("RLOCK_HOLD_DIR", dir, 1);
    RUN_ALL(test_no_directory, test_write_and_read, test_keys_and_servers, test_contents,
            test_directory_of_others, test_default_directory);
    holds_fini(&holds);
    ok(rmdir(dir) == 0 && rmdir(top) == 0, "no file is left");
    return done_testing();
}
