/* SPDX-License-Identifier: MIT */
/* test_cmd_holds: tokens of holds are stored, found and removed; files of others are refused. */
#include "fds.h"
#include "session/holds.h"
#include "tap.h"
#include "user_entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"

static char top[] = "/tmp/rlock-holds-XXXXXX"; /* a directory of this test alone */
static char dir[64];                           /* RLOCK_HOLD_DIR */

static const char *const one_key[] = {"job"};
static const char *const two_keys[] = {"job", "other"};

static const struct hold a_hold = {.token = TOKEN, .until_ms = 1700000000123, .has_renewer = true};

/* Opens the holds of these keys on this server. `err` may be NULL. */
static enum rlock_status open_holds(struct holds *holds, const char *server,
                                    const char *const *keys, size_t n, bool creates,
                                    struct rlock_error *err)
{
    return holds_open(holds, strdup(server), keys, n, creates, err);
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

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    ok(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "a file is written");
    close(fd);
}

/* Opens the holds of "job" on "s". Returns whether its file was read, or the fault. */
static enum rlock_status read_one(struct hold *hold, struct rlock_error *err)
{
    struct holds holds;
    enum rlock_status st = open_holds(&holds, "s", one_key, 1, false, err);

    *hold = holds.hold[0];
    st = st == RLOCK_OK && holds.n == 0 ? RLOCK_GONE : st;
    holds_fini(&holds);
    return st;
}

static void test_no_directory(void)
{
    struct holds holds;
    struct rlock_error err = {.status = RLOCK_OK};

    ok(open_holds(&holds, "s", one_key, 1, false, &err) == RLOCK_OK);
    is_int(holds.dir, -1, "no directory is open");
    is_int((int64_t)holds.n, 0, "no key has a file");
    is_str(holds.hold[0].token, "", "the key has no token");
    ok(access(dir, F_OK) != 0, "reading doesn't create the directory");
    holds_remove(&holds, TOKEN);
    holds_fini(&holds);
    holds_fini(&holds); /* a second call changes nothing */
    ok(holds_open(&holds, NULL, one_key, 1, false, &err) == RLOCK_E_MEMORY);
    holds_fini(&holds);
}

static void test_write_and_read(void)
{
    struct holds holds;
    struct stat is;
    struct hold got;
    char path[400] = "";
    mode_t mask = umask(0);
    int fds = count_fds();

    ok(open_holds(&holds, "s", one_key, 1, true, NULL) == RLOCK_OK, "the directory is created");
    is_int(stat(dir, &is) == 0 ? is.st_mode & 07777 : 0, 0700);
    is_int(holds_write(&holds, &a_hold), 0, "the hold is stored");
    is_str(holds.hold[0].token, TOKEN, "the struct has the stored token");
    holds_fini(&holds);
    is_int(only_file(path), 1, "the directory has one file, and no file that was left over");
    is_int(stat(path, &is) == 0 ? is.st_mode & 07777 : 0, 0600, "the file has the mode 0600");
    umask(mask);
    ok(read_one(&got, NULL) == RLOCK_OK, "the file is found");
    is_str(got.token, TOKEN, "the token is read");
    is_int(got.until_ms, 1700000000123, "the end of the hold is read");
    ok(got.has_renewer, "the file says that a process renews the hold");
    is_int(count_fds(), fds, "no descriptor is left open");
}

static void test_keys_and_servers(void)
{
    struct hold second = {.token = OTHER, .until_ms = 1};
    struct holds holds;

    ok(open_holds(&holds, "t", one_key, 1, false, NULL) == RLOCK_OK && holds.n == 0);
    holds_fini(&holds);
    ok(open_holds(&holds, "s", (const char *const[]){two_keys[1], two_keys[0]}, 2, false, NULL) ==
           RLOCK_OK &&
       holds.n == 1);
    is_str(holds.hold[1].token, TOKEN, "the second key has the token");
    holds_fini(&holds);
    ok(open_holds(&holds, "s", two_keys, 2, true, NULL) == RLOCK_OK && holds.n == 1);
    is_str(holds.hold[1].token, "", "the other key has no token");
    is_int(holds_write(&holds, &second), 0, "a hold of both keys is stored");
    holds_fini(&holds);
    ok(open_holds(&holds, "s", two_keys, 2, false, NULL) == RLOCK_OK && holds.n == 2);
    is_str(holds.hold[0].token, OTHER, "the new file replaces the older one");
    ok(!holds.hold[1].has_renewer, "the file says that no process renews the hold");
    holds_remove(&holds, TOKEN);
    holds_fini(&holds);
    ok(open_holds(&holds, "s", two_keys, 2, false, NULL) == RLOCK_OK && holds.n == 2);
    holds_remove(&holds, OTHER);
    holds_fini(&holds);
    ok(open_holds(&holds, "s", two_keys, 2, false, NULL) == RLOCK_OK && holds.n == 0);
    holds_fini(&holds);
}

/* Key and server are hashed with the NUL between them, so "ab" on "c" isn't "b" on "ca". */
static void test_names(void)
{
    static const char *const ab[] = {"ab"};
    static const char *const b[] = {"b"};
    struct holds holds;

    ok(open_holds(&holds, "c", ab, 1, true, NULL) == RLOCK_OK && holds_write(&holds, &a_hold) == 0);
    holds_fini(&holds);
    ok(open_holds(&holds, "ca", b, 1, false, NULL) == RLOCK_OK && holds.n == 0);
    holds_fini(&holds);
    ok(open_holds(&holds, "c", ab, 1, false, NULL) == RLOCK_OK && holds.n == 1);
    holds_remove(&holds, TOKEN);
    holds_fini(&holds);
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
    struct rlock_error err;
    struct holds holds;
    struct hold got;
    char path[400] = "";

    ok(open_holds(&holds, "s", one_key, 1, true, NULL) == RLOCK_OK &&
       holds_write(&holds, &a_hold) == 0 && only_file(path) == 1);
    holds_fini(&holds);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        err = (struct rlock_error){.status = RLOCK_OK};
        write_text(path, texts[i].text);
        is_int(read_one(&got, &err), texts[i].wanted, texts[i].why);
        okf((texts[i].wanted == RLOCK_OK) == (err.text[0] == '\0'),
            "only a file that can't be used has an error: %s", err.text);
        ok(strstr(err.text, TOKEN) == NULL, "the error doesn't have the token");
    }
    unlink(path);
    ok(symlink("/etc/passwd", path) == 0 && read_one(&got, &err) == RLOCK_E_CONFIG);
    unlink(path);
    ok(mkfifo(path, 0600) == 0 && read_one(&got, &err) == RLOCK_E_CONFIG);
    unlink(path);
    ok(mkdir(path, 0700) == 0 && read_one(&got, &err) == RLOCK_E_CONFIG, "a directory is refused");
    ok(open_holds(&holds, "s", two_keys + 1, 1, true, NULL) == RLOCK_OK, "another key is usable");
    holds.keys = one_key;
    ok(holds_write(&holds, &a_hold) != 0, "a file that can't be replaced is an error");
    holds_fini(&holds);
    rmdir(path);
    is_int(only_file(path), 0, "a failed write leaves no file");
}

static void test_directory_of_others(void)
{
    struct rlock_error err = {.status = RLOCK_OK};
    struct holds holds;

    chmod(dir, 0755);
    ok(open_holds(&holds, "s", one_key, 1, true, &err) == RLOCK_E_CONFIG);
    ok(strstr(err.text, "set RLOCK_HOLD_DIR") != NULL, "the error says how to choose another one");
    holds_fini(&holds);
    chmod(dir, 0700);
    setenv("RLOCK_HOLD_DIR", "relative/path", 1);
    ok(open_holds(&holds, "s", one_key, 1, true, &err) == RLOCK_E_CONFIG);
    holds_fini(&holds);
    setenv("RLOCK_HOLD_DIR", dir, 1);
}

/* Without RLOCK_HOLD_DIR the files are in the user's home. */
static void test_default_directory(void)
{
    static const char *const made[] = {"/.local/state/rlock/holds", "/.local/state/rlock",
                                       "/.local/state", "/.local", ""};
    struct rlock_error err = {.status = RLOCK_OK};
    struct holds holds;
    char path[200];

    setenv("RLOCK_HOLD_DIR", "", 1);
    ok(open_holds(&holds, "s", one_key, 1, false, &err) == RLOCK_OK && holds.n == 0);
    holds_fini(&holds);
    is_int(open_holds(&holds, "s", one_key, 1, true, &err), RLOCK_E_CONFIG);
    is_str(err.text,
           "the token of a hold: this user has no home; set RLOCK_HOLD_DIR to keep tokens in "
           "another directory");
    holds_fini(&holds);
    snprintf(path, sizeof path, "%s/home", top);
    ok(mkdir(path, 0700) == 0, "the user has a home");
    entry = (struct passwd){.pw_uid = 1000, .pw_dir = path};
    found = &entry;
    err.text[0] = '\0';
    ok(open_holds(&holds, "s", one_key, 1, false, &err) == RLOCK_OK && holds.dir == -1);
    holds_fini(&holds);
    snprintf(path, sizeof path, "%s/home/.local", top);
    ok(access(path, F_OK) != 0, "reading doesn't create it");
    snprintf(path, sizeof path, "%s/home", top);
    ok(open_holds(&holds, "s", one_key, 1, true, &err) == RLOCK_OK &&
       holds_write(&holds, &a_hold) == 0);
    holds_fini(&holds);
    ok(open_holds(&holds, "s", one_key, 1, false, &err) == RLOCK_OK && holds.n == 1);
    holds_remove(&holds, TOKEN);
    holds_fini(&holds);
    snprintf(path, sizeof path, "%s/home/.local/state/rlock/holds", top);
    rmdir(path);
    snprintf(path, sizeof path, "%s/home", top);
    ok(open_holds(&holds, "s", one_key, 1, false, &err) == RLOCK_OK && holds.dir == -1);
    holds_fini(&holds);
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        snprintf(path, sizeof path, "%s/home%s", top, made[i]);
        rmdir(path);
    }
    ok(access(path, F_OK) != 0, "no file of the hold is left");
    setenv("RLOCK_HOLD_DIR", dir, 1);
}

int main(void)
{
    if (!ok(mkdtemp(top) != NULL, "a directory for this test is created"))
        return done_testing();
    snprintf(dir, sizeof dir, "%s/holds", top);
    setenv("RLOCK_HOLD_DIR", dir, 1);
    RUN_ALL(test_no_directory, test_write_and_read, test_keys_and_servers, test_names,
            test_contents, test_directory_of_others, test_default_directory);
    ok(rmdir(dir) == 0 && rmdir(top) == 0, "no file is left");
    return done_testing();
}
