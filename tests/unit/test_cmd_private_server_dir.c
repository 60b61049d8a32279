/* SPDX-License-Identifier: MIT */
/* test_cmd_private_server_dir: all processes of a user choose the same directory for the server. */
#include "fds.h"
#include "session/private_server_dir.h"
#include "tap.h"
#include "user_entry.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OTHER_UID 12345
#define EARLIER "01234567-89ab-cdef-0123-456789abcdef" /* as the ID of an earlier boot */
#define MONTH_S (30 * 24 * 3600)

static char top[] = "/tmp/rlock-serverdir-XXXXXX"; /* a directory of this test alone */
static struct rlock_error err;

/* A path below `top`; the result is valid until the next call. */
static const char *below(const char *name)
{
    static char path[200];

    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

/* True if the descriptor is that of the path below `top`. Closes the descriptor. */
static bool is_at(int fd, const char *name)
{
    int there = open(below(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is = private_server_dir_has(there, ".", fd);

    if (there >= 0)
        close(there);
    if (fd >= 0)
        close(fd);
    return is;
}

/* Makes the directory of an earlier boot, `age_s` old, with the files of a server. */
static void make_earlier(long age_s)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}, {.tv_sec = time(NULL) - age_s}};
    int fd;

    mkdir(below("home/.local/state/rlock/" EARLIER), 0700);
    fd = open(below("home/.local/state/rlock/" EARLIER), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(private_server_dir_open_file(fd, PRIVATE_SERVER_USERS));
    close(private_server_dir_open_file(fd, PRIVATE_SERVER_START));
    ok(futimens(fd, times) == 0, "a directory of an earlier boot is made");
    close(fd);
}

static bool earlier_exists(void)
{
    return access(below("home/.local/state/rlock/" EARLIER), F_OK) == 0;
}

/* The path below `top` of this boot's directory. */
static const char *of_this_boot(void)
{
    static char name[100] = "home/.local/state/rlock/";
    size_t n = strlen("home/.local/state/rlock/");
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    name[n] = '\0';
    if (fd >= 0 && read(fd, name + n, 36) == 36)
        name[n + 36] = '\0';
    close(fd);
    return name;
}

static void test_in_home(void)
{
    struct stat is;
    int fds = count_fds();
    int fd = -1;

    ok(mkdir(below("home"), 0700) == 0, "the user has a home");
    entry = (struct passwd){.pw_uid = OTHER_UID, .pw_dir = strdup(below("home"))};
    found = &entry;
    is_int(private_server_dir_open(&fd, &err), RLOCK_OK, "the directory in the home is created");
    ok(is_at(fd, of_this_boot()), "its name has the ID of this boot");
    is_int(stat(below(of_this_boot()), &is) == 0 ? is.st_mode & 07777 : 0, 0700,
           "it has the mode 0700");
    make_earlier(2 * MONTH_S);
    ok(private_server_dir_open(&fd, &err) == RLOCK_OK && is_at(fd, of_this_boot()),
       "the directory is opened");
    ok(earlier_exists(), "nobody looks for unused directories while that of this boot exists");
    rmdir(below(of_this_boot()));
    ok(private_server_dir_open(&fd, &err) == RLOCK_OK && is_at(fd, of_this_boot()),
       "the directory is created again");
    ok(!earlier_exists(), "that of an earlier boot is removed after a month");
    rmdir(below(of_this_boot()));
    make_earlier(MONTH_S / 2);
    mkdir(below("home/.local/state/rlock/other"), 0700);
    utimensat(AT_FDCWD, below("home/.local/state/rlock/other"),
              (const struct timespec[]){{0, 0}, {0, 0}}, 0);
    ok(private_server_dir_open(&fd, &err) == RLOCK_OK && is_at(fd, of_this_boot()),
       "the directory is created once more");
    ok(earlier_exists(), "a directory that was used in the last month stays");
    ok(rmdir(below("home/.local/state/rlock/other")) == 0,
       "so does one whose name isn't that of a boot");
    chmod(below(of_this_boot()), 0755);
    is_int(private_server_dir_open(&fd, &err), RLOCK_E_CONFIG,
           "a directory that others can read is refused");
    ok(strstr(err.text, "local: ~/.local/state/rlock/") == err.text,
       "the error names the directory");
    chmod(below(of_this_boot()), 0700);
    chmod(below("home/.local"), 0777);
    is_int(private_server_dir_open(&fd, &err), RLOCK_E_CONFIG,
           "a home that can't be used is an error: another directory is not tried");
    chmod(below("home/.local"), 0700);
    is_int(count_fds(), fds, "no descriptor is left open");
    rmdir(below(of_this_boot()));
    unlink(below("home/.local/state/rlock/" EARLIER "/" PRIVATE_SERVER_USERS));
    unlink(below("home/.local/state/rlock/" EARLIER "/" PRIVATE_SERVER_START));
    rmdir(below("home/.local/state/rlock/" EARLIER));
    rmdir(below("home/.local/state/rlock"));
    rmdir(below("home/.local/state"));
    rmdir(below("home/.local"));
    ok(rmdir(below("home")) == 0, "no other file was made");
    free(entry.pw_dir);
}

static void test_by_environment(void)
{
    mode_t mask = umask(0);
    int fd = -1;

    setenv("RLOCK_LOCAL_DIR", below("chosen"), 1);
    ok(private_server_dir_open(&fd, &err) == RLOCK_OK && is_at(fd, "chosen"),
       "RLOCK_LOCAL_DIR names the directory");
    is_int(umask(mask), 0, "the umask is as it was");
    rmdir(below("chosen"));
    setenv("RLOCK_LOCAL_DIR", "", 1);
}

static void test_files(void)
{
    struct stat is;
    mode_t mask;
    int dir;
    int fd;
    int other;

    mkdir(below("files"), 0700);
    dir = open(below("files"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mask = umask(0);
    fd = private_server_dir_open_file(dir, "one");
    is_int(umask(mask), 0, "the umask is as it was");
    is_int(fstat(fd, &is) == 0 ? is.st_mode & 07777 : 0, 0600, "a file has the mode 0600");
    ok((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "its descriptor closes on exec");
    ok(private_server_dir_has(dir, "one", fd), "the directory has the file");
    ok(!private_server_dir_has(dir, "two", fd), "it has no file of another name");
    other = private_server_dir_open_file(dir, "two");
    ok(!private_server_dir_has(dir, "two", fd), "that is another file");
    unlinkat(dir, "one", 0);
    ok(!private_server_dir_has(dir, "one", fd), "a removed file isn't there");
    ok(!private_server_dir_has(dir, "two", -1), "nor is one that isn't open");
    ok(symlinkat("two", dir, "one") == 0 && private_server_dir_open_file(dir, "one") < 0,
       "a symbolic link is refused");
    unlinkat(dir, "one", 0);
    unlinkat(dir, "two", 0);
    close(fd);
    close(other);
    close(dir);
    rmdir(below("files"));
}

int main(void)
{
    bool is_root = geteuid() == 0;

    if (!ok(mkdtemp(top) != NULL, "a directory for this test is created"))
        return done_testing();
    unsetenv("RLOCK_LOCAL_DIR");
    /* root uses /run/rlock: as another user this process uses the directory in a home */
    if (is_root && !ok(chown(top, OTHER_UID, OTHER_UID) == 0 && setegid(OTHER_UID) == 0 &&
                           seteuid(OTHER_UID) == 0,
                       "this process is another user"))
        return done_testing();
    RUN(test_in_home());
    RUN(test_by_environment());
    RUN(test_files());
    ok(!is_root || (seteuid(0) == 0 && setegid(0) == 0), "this process is root again");
    ok(rmdir(top) == 0, "no file is left");
    return done_testing();
}
