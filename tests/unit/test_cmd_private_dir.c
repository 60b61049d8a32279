/* SPDX-License-Identifier: MIT */
/* test_cmd_private_dir: a directory is opened only if no other user can change it. */
#include "base/err.h"
#include "fds.h"
#include "session/private_dir.h"
#include "tap.h"
#include "user_entry.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/rlock-private-XXXXXX"; /* a directory of this test alone */
static char path[PATH_MAX];
static struct rlock_error err;
static const struct private_dir_words words = {"local", "set RLOCK_LOCAL_DIR"};

static const char *below(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

/* Opens the directory and closes it. Returns the result; `err` gets the fault. */
static enum rlock_status open_path(const char *name, bool creates)
{
    int fd = -1;
    enum rlock_status st;

    err = (struct rlock_error){.status = RLOCK_OK};
    st = private_dir_open(name, creates, &words, &fd, &err);
    okf((st == RLOCK_OK) == (fd >= 0), "a descriptor is open only on success: %s", err.text);
    okf(fd < 0 || (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "the descriptor closes on exec");
    if (fd >= 0)
        close(fd);
    return st;
}

static void test_create(void)
{
    struct stat is;
    mode_t mask;

    is_int(open_path(below("new"), false), RLOCK_GONE, "a missing directory is told");
    ok(access(path, F_OK) != 0, "without `creates` the directory isn't created");
    mask = umask(0);
    is_int(open_path(below("new"), true), RLOCK_OK, "a missing directory is created");
    umask(mask);
    is_int(stat(path, &is) == 0 ? is.st_mode & 07777 : 0, 0700);
    is_int(open_path(below("new"), true), RLOCK_OK, "an existing directory is opened");
    is_int(open_path(below("new/"), false), RLOCK_OK, "slashes at the end change nothing");
    mask = umask(0777);
    is_int(open_path(below("masked"), true), RLOCK_OK);
    umask(mask);
    is_int(stat(path, &is) == 0 ? is.st_mode & 07777 : 0, 0700);
    is_int(open_path(below("none/new"), true), RLOCK_E_CONFIG);
    rmdir(below("masked"));
}

static void test_paths(void)
{
    static const char *const bad[] = {"", "relative", "relative/new", "/", "///"};
    char longest[PATH_MAX + 2];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        is_int(open_path(bad[i], true), RLOCK_E_CONFIG);
        ok(strstr(err.text, "local: ") == err.text);
    }
    memset(longest, 'a', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    is_int(open_path(longest, true), RLOCK_E_CONFIG, "a path that is too long is refused");
}

static void test_others(void)
{
    char target[PATH_MAX];
    int fd;

    below("new");
    chmod(path, 0750);
    is_int(open_path(path, false), RLOCK_E_CONFIG);
    ok(strstr(err.text, "mode 750") != NULL && strstr(err.text, "; set RLOCK_LOCAL_DIR") != NULL);
    chmod(path, 0700);
    snprintf(target, sizeof target, "%s", path);
    ok(symlink(target, below("link")) == 0 && open_path(path, true) == RLOCK_E_CONFIG);
    unlink(path);
    fd = open(below("file"), O_WRONLY | O_CREAT, 0600);
    close(fd);
    is_int(open_path(path, true), RLOCK_E_CONFIG, "a file is refused");
    is_int(open_path(below("file/new"), true), RLOCK_E_CONFIG);
    unlink(below("file"));
}

static void test_directory_above(void)
{
    mkdir(below("above"), 0700);
    chmod(path, 0777);
    is_int(open_path(below("above/new"), true), RLOCK_E_CONFIG);
    ok(access(path, F_OK) != 0, "no directory is created in one that everybody can change");
    chmod(below("above"), 01777);
    is_int(open_path(below("above/new"), true), RLOCK_OK);
    rmdir(path);
    rmdir(below("above"));
}

/* ---- directories below the user's home ---- */

#define OTHER_UID 12345

/* Opens the directory in the home, and closes it. */
static enum rlock_status open_state(bool creates)
{
    int fds = count_fds();
    int fd = -1;
    enum rlock_status st;

    err = (struct rlock_error){.status = RLOCK_OK};
    st = private_dir_open_home("NAME", creates, &words, &fd, &err);
    if (st == RLOCK_OK)
        close(fd);
    is_int(count_fds(), fds, "no other descriptor is left open");
    return st;
}

static void test_no_home(void)
{
    static const char *const none[] = {NULL, "", "home", "/", "/nonexistent"};
    found = NULL;
    is_int(open_state(true), RLOCK_PENDING, "a user without an entry has no home");
    found = &entry;
    entry.pw_uid = 1000;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        entry.pw_dir = (char *)none[i];
        is_int(open_state(true), RLOCK_PENDING, "an entry may name no home");
    }
    entry.pw_dir = strdup(below("home"));
    is_int(open_state(true), RLOCK_E_CONFIG, "a user's home that doesn't exist is an error");
    entry.pw_uid = 999;
    is_int(open_state(true), RLOCK_PENDING, "a system account may have no home");
}

static void test_home(void)
{
    struct stat is;

    ok(mkdir(below("home"), 0755) == 0, "a home is made");
    is_int(open_state(false), RLOCK_GONE, "its directory doesn't exist");
    ok(access(below("home/.local"), F_OK) != 0, "without `creates` nothing is created");
    ok(mkdir(below("home/.local"), 0755) == 0, "the first directory of the path exists");
    is_int(open_state(false), RLOCK_GONE, "the second doesn't");
    is_int(open_state(true), RLOCK_OK, "the directories are created");
    is_int(stat(below("home/.local/state/rlock/NAME"), &is) == 0 ? is.st_mode & 07777 : 0, 0700);
    is_int(open_state(false), RLOCK_OK, "the directories are opened");
    chmod(below("home/.local"), 0777);
    is_int(open_state(false), RLOCK_E_CONFIG);
    ok(strstr(err.text, "/home/.local/state/rlock/NAME: others can change /") != NULL &&
       strstr(err.text, "/home/.local/, which is above it; ") != NULL);
    chmod(below("home/.local"), 0755);
}

/* Gives a file to a user, as root, and then is the other user. */
static bool give(const char *name, uid_t uid, gid_t gid)
{
    return seteuid(0) == 0 && chown(below(name), uid, gid) == 0 && seteuid(OTHER_UID) == 0;
}

/* Runs as another user whose home is the same. Only root can. */
static void test_home_of_others(void)
{
    struct stat is;

    if (geteuid() != 0) {
        skip("the home of another user", "needs root");
        return;
    }
    need(chmod(top, 0755) == 0 && setegid(OTHER_UID) == 0 && seteuid(OTHER_UID) == 0);
    entry.pw_uid = 999;
    is_int(open_state(true), RLOCK_PENDING, "a system account doesn't use another's home");
    entry.pw_uid = OTHER_UID;
    is_int(open_state(true), RLOCK_E_CONFIG, "for a user another's home is an error");
    ok(strstr(err.text, "belongs to another user") != NULL, "the error says so");
    ok(give("home", OTHER_UID, OTHER_UID));
    is_int(open_state(true), RLOCK_E_CONFIG);
    ok(give("home/.local/state/rlock", OTHER_UID, OTHER_UID) &&
       give("home/.local/state/rlock/NAME", OTHER_UID, OTHER_UID) && seteuid(0) == 0 &&
       chmod(below("home/.local/state"), 0775) == 0 && seteuid(OTHER_UID) == 0);
    is_int(open_state(true), RLOCK_OK, "it is used");
    ok(give("home/.local/state", 0, 1));
    is_int(open_state(true), RLOCK_E_CONFIG, "it is refused");
    ok(give("home/.local/state", OTHER_UID, OTHER_UID));
    is_int(open_state(true), RLOCK_OK, "it is used");
    ok(seteuid(0) == 0 && setegid(0) == 0, "this process is root again");
    is_int(stat(below("home/.local/state"), &is) == 0 ? is.st_mode & 07777 : 0, 0775);
}

int main(void)
{
    if (!ok(mkdtemp(top) != NULL, "a directory for this test is created"))
        return done_testing();
    RUN_ALL(test_create, test_paths, test_others, test_directory_above, test_no_home, test_home,
            test_home_of_others);
    free(entry.pw_dir);
    snprintf(path, sizeof path, "rm -r %s", top);
    ok(system(path) == 0);
    return done_testing();
}
