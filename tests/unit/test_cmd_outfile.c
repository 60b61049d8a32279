/* SPDX-License-Identifier: MIT */
/* test_cmd_outfile: which file gets the bytes, and what happens to that file. */
#include "child.h"
#include "files.h"
#include "output/outfile.h"
#include "tap.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>

#define NOBODY 65534

static char top[] = "/tmp/rlock-outfile-XXXXXX"; /* a directory of this test alone */
static char path[PATH_MAX];

static const char *below(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

static void make_file(const char *name, const char *content, mode_t mode)
{
    unlink(below(name));
    write_file(path, content);
    ok(chmod(path, mode) == 0);
}

static void has_content(const char *name, const char *wanted, const char *what)
{
    is_str(read_file(below(name)), wanted, what);
}

static struct stat stat_of(const char *name)
{
    struct stat file = {.st_mode = 0};

    (void)!stat(below(name), &file);
    return file;
}

static int n_writes;
ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);

ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    n_writes++;
    return __real_write(fd, bytes, n);
}

static void test_replace(void)
{
    static char line[100000];
    mode_t umask_before = umask(022);
    struct stat before;

    is_int(outfile_put(below("new"), OUTFILE_REPLACES, "a\n", 2), 0,
           "a file that is absent is created");
    has_content("new", "a\n", "the new file has the bytes");
    is_int(stat_of("new").st_mode & 07777, 0644, "the new file has the mode that the umask leaves");
    make_file("old", "a longer content\n", 0640);
    (void)!chown(path, NOBODY, NOBODY); /* only root may */
    before = stat_of("old");
    is_int(outfile_put(below("old"), OUTFILE_REPLACES, "b\n", 2), 0, "a file is replaced");
    has_content("old", "b\n", "the file has only the new bytes");
    is_int(stat_of("old").st_mode & 07777, 0640, "the file keeps its mode");
    ok(stat_of("old").st_uid == before.st_uid && stat_of("old").st_gid == before.st_gid,
       "the file keeps its owner and its group");
    is_int(outfile_put(below("old"), OUTFILE_APPENDS, "c\n", 2), 0, "bytes are appended to a file");
    has_content("old", "b\nc\n", "the file has the old and the new bytes");
    n_writes = 0;
    is_int(outfile_put(below("old"), OUTFILE_APPENDS, line, sizeof line), 0);
    is_int(n_writes, 1, "a long line is appended by one write(2), so that it stays whole");
    is_int(outfile_put(below("no/file"), OUTFILE_REPLACES, "b\n", 2), ENOENT,
           "a missing folder is an error");
    umask(umask_before);
}

static void test_links(void)
{
    make_file("target", "old\n", 0644);
    ok(symlink("target", below("link")) == 0 && symlink("none", below("dangling")) == 0 &&
       symlink(".", below("folder-link")) == 0);
    is_int(outfile_put(below("link"), OUTFILE_REPLACES, "a\n", 2), ELOOP, "a link isn't replaced");
    is_int(outfile_put(below("link"), OUTFILE_APPENDS, "a\n", 2), ELOOP,
           "a link isn't appended to");
    is_int(outfile_put(below("dangling"), OUTFILE_APPENDS, "a\n", 2), ELOOP,
           "nor is one that leads nowhere");
    has_content("target", "old\n", "the file behind the link is as it was");
    ok(access(below("none"), F_OK) != 0, "no file is created behind a link");
    is_int(outfile_put(below("folder-link/target"), OUTFILE_REPLACES, "b\n", 2), 0,
           "a folder may be a link");
    has_content("target", "b\n", "the file in that folder is replaced");
}

/* If the folder can't be written, a file that the user may write is written over where asked. */
static void test_overwrite(void)
{
    if (geteuid() == 0 && (chmod(top, 0777) != 0 || setegid(NOBODY) != 0 || seteuid(NOBODY) != 0)) {
        skip("folders that may not be written", "this process can't become another user");
        return;
    }
    make_file("mine", "a longer content\n", 0644);
    make_file("kept", "old\n", 0444);
    (void)!seteuid(getuid());
    (void)!chmod(top, 0555);
    (void)!seteuid(NOBODY);
    is_int(outfile_put(below("mine"), OUTFILE_REPLACES, "new\n", 4), EACCES,
           "a file that can't be replaced");
    has_content("mine", "a longer content\n", "the file is as it was");
    is_int(outfile_put(below("mine"), OUTFILE_OVERWRITES, "new\n", 4), 0, "a file is written over");
    has_content("mine", "new\n", "the file has only the new bytes");
    is_int(outfile_put(below("kept"), OUTFILE_OVERWRITES, "new\n", 4), EACCES,
           "a file that may not be written");
    has_content("kept", "old\n", "the file is as it was");
    (void)!seteuid(getuid());
    (void)!setegid(getgid());
    (void)!chmod(top, 0700);
}

/* A path that names an inherited descriptor: without close-on-exec, as inherited ones are. */
static void test_descriptors(void)
{
    char name[64];
    char got[8] = "";
    int ends[2];
    int fd;

    make_file("shared", "old\n", 0644);
    fd = open(below("shared"), O_WRONLY);
    ok(fd >= 0 && lseek(fd, 0, SEEK_END) == 4, "a file is open as a descriptor");
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    is_int(outfile_put(name, OUTFILE_REPLACES, "new\n", 4), 0,
           "the file is written by the descriptor's name");
    ok(write(fd, "more\n", 5) == 5, "the file is written by the descriptor");
    has_content("shared", "old\nnew\nmore\n", "neither overwrites what the other has written");
    ok(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0, "the descriptor is now one of rlock's own");
    is_int(outfile_put(name, OUTFILE_REPLACES, "a\n", 2), EBADF,
           "a descriptor of rlock's own can't be named");
    close(fd);
    is_int(outfile_put("/dev/fd/x", OUTFILE_REPLACES, "a\n", 2), ENOENT, "a number must follow");
    is_int(outfile_put("/dev/fd/10000000", OUTFILE_REPLACES, "a\n", 2), ENOENT,
           "of at most seven digits");

    ok(pipe(ends) == 0, "a pipe is open");
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[1]);
    is_int(outfile_put(name, OUTFILE_REPLACES, "a\n", 2), 0,
           "a descriptor is written to by its name in /proc");
    ok(read(ends[0], got, 2) == 2 && strcmp(got, "a\n") == 0, "the pipe gets the bytes");
    close(ends[0]);
    is_int(outfile_put(name, OUTFILE_APPENDS, "a\n", 2), EPIPE,
           "a pipe without a reader is an error");
    close(ends[1]);
}

/*
 * A process fills the pipe after poll(2) has reported room, as a command may do that has the pipe
 * as its stderr. __wrap_poll() is that process. A child writes, as a write that blocks never ends.
 */
static int filled = -1; /* the pipe to fill; -1: none */

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    int ready = __real_poll(fds, n, timeout_ms);
    int flags = fcntl(filled, F_GETFL);
    char page[PIPE_BUF] = "";

    if (filled < 0 || n == 0)
        return ready;
    fcntl(filled, F_SETFL, flags | O_NONBLOCK);
    while (write(filled, page, sizeof page) > 0)
        continue;
    fcntl(filled, F_SETFL, flags);
    return ready;
}

static void test_filled_pipe(void)
{
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0 || (child = fork()) < 0)
        abort();
    if (child == 0) {
        if (!outfile_write(ends[1], "x", 1, 0))
            _exit(2); /* there is room, although the time is over */
        filled = ends[1];
        alarm(20); /* ends a write that blocks */
        _exit(outfile_write(ends[1], "x", 1, 20) ? 1 : errno);
    }
    is_int(child_status(child), EAGAIN);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    char command[PATH_MAX];

    if (!ok(mkdtemp(top) != NULL, "the test's directory is made"))
        return done_testing();
    RUN_ALL(test_replace, test_links, test_overwrite, test_descriptors, test_filled_pipe);
    snprintf(command, sizeof command, "rm -rf %s", top);
    (void)!system(command);
    return done_testing();
}
