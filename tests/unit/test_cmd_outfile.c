/* SPDX-License-Identifier: MIT */
/* test_cmd_outfile: which file gets the bytes, and what happens to that file. */
#include "output/outfile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static char top[] = "/tmp/rlock-outfile-XXXXXX"; /* a directory of this test alone */
static char path[PATH_MAX];

/* Sets `path` to the path NAME below `top`. */
static const char *below(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

/* Makes a file with this content and mode. */
static void make_file(const char *name, const char *content, mode_t mode)
{
    int fd;

    unlink(below(name));
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ok(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content) &&
           fchmod(fd, mode) == 0 && close(fd) == 0,
       "a file is made");
}

static void has_content(const char *name, const char *wanted, const char *what)
{
    char content[200] = "";
    int fd = open(below(name), O_RDONLY | O_CLOEXEC);

    (void)!read(fd, content, sizeof content - 1);
    close(fd);
    is_str(content, wanted, what);
}

static mode_t mode_of(const char *name)
{
    struct stat file = {.st_mode = 0};

    (void)!stat(below(name), &file);
    return file.st_mode & 07777;
}

static void test_replace(void)
{
    mode_t umask_before = umask(022);

    is_int(outfile_replace(below("new"), "a\n", 2), 0, "a file that is absent is created");
    has_content("new", "a\n", "the new file has the bytes");
    is_int(mode_of("new"), 0644, "the new file has the mode that the umask leaves");
    make_file("old", "a longer content\n", 0640);
    is_int(outfile_replace(below("old"), "b\n", 2), 0, "a file is replaced");
    has_content("old", "b\n", "the file has only the new bytes");
    is_int(mode_of("old"), 0640, "the file keeps its mode");
    is_int(outfile_append(below("old"), "c\n", 2), 0, "bytes are appended to a file");
    has_content("old", "b\nc\n", "the file has the old and the new bytes");
    is_int(outfile_replace(below("no/file"), "b\n", 2), ENOENT, "a missing folder is an error");
    umask(umask_before);
}

static void test_links(void)
{
    char target[3001];
    char rest[1501];
    size_t i;

    ok(mkdir(below("folder"), 0755) == 0 && symlink("folder", below("link")) == 0 &&
           symlink("../folder/file", below("folder/last")) == 0,
       "a link to a folder, and in it a link to a file");
    is_int(outfile_replace(below("link/last"), "a\n", 2), 0, "links in a path are followed");
    has_content("folder/file", "a\n", "the file behind the links has the bytes");

    for (i = 0; i + 1 < sizeof target; i += 2)
        memcpy(target + i, "./", 3);
    for (i = 0; i + 1 < sizeof rest; i += 2)
        memcpy(rest + i, "./", 3);
    ok(symlink(target, below("long")) == 0, "a link of 3,000 bytes");
    snprintf(path, sizeof path, "%s/long/%sfile", top, rest);
    is_int(outfile_replace(path, "a\n", 2), ENAMETOOLONG,
           "a link and the rest of the path that are too long together are an error");
    rest[1090] = '\0';
    snprintf(path, sizeof path, "%s/long/%sfile1", top, rest);
    is_int(outfile_replace(path, "a\n", 2), ENAMETOOLONG,
           "a link of 3,000 bytes and a rest of 1,095 bytes are too long by one byte");
    snprintf(path, sizeof path, "%s/long/%sfile", top, rest);
    is_int(outfile_replace(path, "a\n", 2), 0, "with a rest of 1,094 bytes the link is followed");
    is_int(outfile_replace(below("long/file"), "b\n", 2), 0, "a long link is followed");
    has_content("file", "b\n", "the file behind the long link has the bytes");
}

static void test_open(void)
{
    int failed = -2;
    int fd = outfile_open(below("log"), &failed);

    ok(fd >= 0 && failed == 0, "a log is opened");
    ok((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "the log's descriptor closes on exec");
    ok((fcntl(fd, F_GETFL) & O_APPEND) != 0, "the log is appended to");
    close(fd);
    is_int(outfile_open(below("no/log"), &failed), -1, "a log in a missing folder isn't opened");
    is_int(failed, ENOENT, "the error says that the folder is missing");
    is_int(outfile_open(below("folder"), &failed), -1, "a folder is no log");
    is_int(failed, EISDIR, "the error says that it is a folder");
}

/* A file that this process was started with as a descriptor is appended to, not replaced. */
static void test_inherited(void)
{
    char name[64];
    int fd;

    make_file("shared", "old\n", 0644);
    fd = open(below("shared"), O_WRONLY); /* without close-on-exec, as inherited descriptors are */
    ok(fd >= 0 && lseek(fd, 0, SEEK_END) == 4, "a file is open as a descriptor");
    is_int(outfile_replace(below("shared"), "new\n", 4), 0, "the file is written by its name");
    ok(write(fd, "more\n", 5) == 5, "the file is written by the descriptor");
    has_content("shared", "old\nnew\nmore\n", "neither overwrites what the other has written");
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    is_int(outfile_replace(name, "4\n", 2), 0, "the file is written by its name in /proc");
    ok(write(fd, "5\n", 2) == 2, "the file is written by the descriptor once more");
    has_content("shared", "old\nnew\nmore\n4\n5\n", "again neither overwrites the other");
    close(fd);
}

/*
 * The same, if the user may not open the file: then a descriptor is written to, if that overwrites
 * nothing. Root may open each file, so this test becomes another user for a while.
 */
static void test_not_permitted(void)
{
    int overwrites;
    int appends;
    int at_end;

    if (geteuid() == 0 && (chmod(top, 0777) != 0 || seteuid(NOBODY) != 0)) {
        skip("files that may not be opened", "this process can't become another user");
        return;
    }
    make_file("kept", "old\n", 0644);
    at_end = open(below("kept"), O_WRONLY);
    chmod(path, 0444);
    lseek(at_end, 0, SEEK_END);
    is_int(outfile_replace(below("kept"), "new\n", 4), 0,
           "a file that may not be opened is written by a descriptor at its end");
    has_content("kept", "old\nnew\n", "the bytes are appended");
    lseek(at_end, 0, SEEK_SET);
    is_int(outfile_replace(below("kept"), "no\n", 3), EACCES,
           "a descriptor that isn't at the end, and would overwrite, isn't used");
    has_content("kept", "old\nnew\n", "nothing is overwritten");
    close(at_end);

    make_file("kept", "old\n", 0644);
    appends = open(below("kept"), O_WRONLY | O_APPEND);
    overwrites = open(below("kept"), O_WRONLY);
    chmod(path, 0444);
    ok(appends >= 0 && overwrites > appends, "two descriptors of a file, one of which appends");
    is_int(outfile_replace(below("kept"), "new\n", 4), 0,
           "of two descriptors the one that appends is used");
    has_content("kept", "old\nnew\n", "the bytes are appended, and overwrite nothing");
    close(appends);
    close(overwrites);
    (void)!seteuid(getuid());
}

static void test_descriptors(void)
{
    char name[64];
    char got[8] = "";
    int ends[2];

    ok(pipe(ends) == 0, "a pipe is open");
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[1]);
    is_int(outfile_replace(name, "a\n", 2), 0, "a descriptor is written to by its name in /proc");
    ok(read(ends[0], got, 2) == 2 && strcmp(got, "a\n") == 0, "the pipe gets the bytes");
    close(ends[0]);
    is_int(outfile_append(name, "a\n", 2), EPIPE, "a pipe without a reader is an error");
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
    int waited_ms = 0;
    int status = -1;
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0 || (child = fork()) < 0)
        abort();
    if (child == 0) {
        filled = ends[1];
        _exit(outfile_offer(ends[1], "x", 1, 20) ? 1 : errno);
    }
    while (waitpid(child, &status, WNOHANG) == 0 && waited_ms++ < 5000)
        poll(NULL, 0, 1);
    if (waited_ms >= 5000) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    ok(WIFEXITED(status) && WEXITSTATUS(status) == EAGAIN,
       "a pipe that another process fills after poll(2) doesn't block the write");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    char command[PATH_MAX];

    if (!ok(mkdtemp(top) != NULL, "the test's directory is made"))
        return done_testing();
    RUN(test_replace());
    RUN(test_links());
    RUN(test_open());
    RUN(test_inherited());
    RUN(test_not_permitted());
    RUN(test_descriptors());
    RUN(test_filled_pipe());
    snprintf(command, sizeof command, "rm -rf %s", top);
    (void)!system(command);
    return done_testing();
}
