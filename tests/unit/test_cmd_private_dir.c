/* SPDX-License-Identifier: MIT */
/* test_cmd_private_dir: a directory is opened only if no other user can change it. */
#include "session/private_dir.h"
#include "tap.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static char top[] = "/tmp/rlock-private-XXXXXX"; /* a directory of this test alone */
static char path[PATH_MAX];
static const struct private_dir_words words = {"local", "set RLOCK_LOCAL_DIR"};

/* Sets `path` to the path NAME below `top`. */
static const char *below(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

/* Opens the directory and closes it. Returns the result; `err` gets the fault. */
static enum rlock_status open_path(const char *name, bool creates, struct rlock_error *err)
{
    int fd = -1;
    enum rlock_status st;

    *err = (struct rlock_error){.status = RLOCK_OK};
    st = private_dir_open_path(name, creates, &words, &fd, err);
    okf((st == RLOCK_OK) == (fd >= 0), "a descriptor is open only on success: %s", err->text);
    okf(fd < 0 || (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "the descriptor closes on exec");
    if (fd >= 0)
        close(fd);
    return st;
}

static void test_create(void)
{
    struct rlock_error err;
    struct stat is;
    mode_t mask;

    is_int(open_path(below("new"), false, &err), RLOCK_E_CONFIG, "a missing directory is an error");
    ok(access(path, F_OK) != 0, "without `creates` the directory isn't created");
    mask = umask(0);
    is_int(open_path(below("new"), true, &err), RLOCK_OK, "a missing directory is created");
    umask(mask);
    is_int(stat(path, &is) == 0 ? is.st_mode & 07777 : 0, 0700,
           "the new directory has the mode 0700");
    is_int(open_path(below("new"), true, &err), RLOCK_OK, "an existing directory is opened");
    is_int(open_path(below("new/"), false, &err), RLOCK_OK, "slashes at the end change nothing");
    mask = umask(0777);
    is_int(open_path(below("masked"), true, &err), RLOCK_OK,
           "a directory is created also if the umask forbids all rights");
    umask(mask);
    is_int(stat(path, &is) == 0 ? is.st_mode & 07777 : 0, 0700,
           "the directory made under that umask has the mode 0700");
    is_int(open_path(below("none/new"), true, &err), RLOCK_E_CONFIG,
           "only the last directory of the path is created");
    rmdir(below("masked"));
}

static void test_paths(void)
{
    static const char *const bad[] = {"", "relative", "relative/new", "/", "///"};
    char longest[PATH_MAX + 2];
    struct rlock_error err;
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        is_int(open_path(bad[i], true, &err), RLOCK_E_CONFIG,
               "a path that isn't the absolute path of a directory is refused");
        ok(strstr(err.text, "local: ") == err.text,
           "the error begins with what needs the directory");
    }
    memset(longest, 'a', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    is_int(open_path(longest, true, &err), RLOCK_E_CONFIG, "a path that is too long is refused");
}

static void test_others(void)
{
    struct rlock_error err;
    char target[PATH_MAX];
    int fd;

    below("new");
    chmod(path, 0750);
    is_int(open_path(path, false, &err), RLOCK_E_CONFIG,
           "a directory that others can read is refused");
    ok(strstr(err.text, "mode 750") != NULL && strstr(err.text, "; set RLOCK_LOCAL_DIR") != NULL,
       "the error says which mode it has, and how to choose another directory");
    chmod(path, 0700);
    snprintf(target, sizeof target, "%s", path);
    ok(symlink(target, below("link")) == 0 && open_path(path, true, &err) == RLOCK_E_CONFIG,
       "a symbolic link to a private directory is refused");
    unlink(path);
    fd = open(below("file"), O_WRONLY | O_CREAT, 0600);
    close(fd);
    is_int(open_path(path, true, &err), RLOCK_E_CONFIG, "a file is refused");
    is_int(open_path(below("file/new"), true, &err), RLOCK_E_CONFIG,
           "a path through a file is refused");
    unlink(below("file"));
}

static void test_directory_above(void)
{
    struct rlock_error err;

    mkdir(below("above"), 0700);
    chmod(path, 0777);
    is_int(open_path(below("above/new"), true, &err), RLOCK_E_CONFIG,
           "a directory in one that everybody can change is refused");
    ok(access(path, F_OK) != 0, "no directory is created in one that everybody can change");
    chmod(below("above"), 01777);
    is_int(open_path(below("above/new"), true, &err), RLOCK_OK,
           "a directory is created in one with the sticky bit, as /tmp has");
    rmdir(path);
    rmdir(below("above"));
}

static void test_ours_alone(void)
{
    struct stat is = {.st_mode = S_IFDIR | 0700, .st_uid = geteuid()};

    ok(private_dir_is_ours_alone(&is), "a directory of this user with the mode 0700 is ours alone");
    is.st_mode = S_IFDIR | 0701;
    ok(!private_dir_is_ours_alone(&is), "a directory that others may enter isn't ours alone");
    is.st_mode = S_IFREG | 0700;
    ok(!private_dir_is_ours_alone(&is), "a file isn't ours alone");
    is.st_mode = S_IFDIR | 0700;
    is.st_uid = geteuid() + 1;
    ok(!private_dir_is_ours_alone(&is), "the directory of another user isn't ours alone");
}

int main(void)
{
    if (!ok(mkdtemp(top) != NULL, "a directory for this test is created"))
        return done_testing();
    test_create();
    test_paths();
    test_others();
    test_directory_above();
    test_ours_alone();
    rmdir(below("new"));
    ok(rmdir(top) == 0, "no file is left");
    return done_testing();
}
