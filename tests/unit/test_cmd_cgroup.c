/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_cgroup: where rlock makes the command's cgroup, and which cgroups it removes.
 *
 * A folder in /tmp stands for the mounted cgroup v2. The test defines the C library's functions
 * that need a kernel there: fopen() and open() read the test's own mountinfo and cgroup files,
 * mkdirat() makes the files that the kernel makes in a new cgroup, and unlinkat() removes a
 * directory with these files in it.
 */
#undef _FORTIFY_SOURCE /* with it, headers define some of the functions that this file defines */
#include "fds.h"
#include "files.h"
#include "supervise/cgroup.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/test_cgroup.XXXXXX";
static const char *mountinfo; /* the contents of /proc/self/mountinfo */
static const char *own;       /* the contents of /proc/self/cgroup */
static bool has_kill = true;  /* the kernel makes cgroup.kill, as Linux 5.14 does */
static bool is_busy;          /* a cgroup has members: the kernel doesn't remove it */

static const char *of_other; /* the contents of /proc/PID/cgroup; NULL: open() fails */
static int open_error;       /* with which errno */

static const char *const files[] = {"cgroup.procs", "cgroup.freeze", "cgroup.events",
                                    "cgroup.kill"};

#define N_FILES (sizeof files / sizeof files[0])

static int open_text(const char *text)
{
    int fd = memfd_create("cgroup", MFD_CLOEXEC);

    (void)!write(fd, text, strlen(text));
    lseek(fd, 0, SEEK_SET);
    return fd;
}

int open(const char *path, int flags, ...)
{
    const char *text = strcmp(path, "/proc/self/cgroup") == 0 ? own : of_other;

    if (strncmp(path, "/proc/", 6) != 0)
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
    errno = open_error;
    return text == NULL ? -1 : open_text(text);
}

FILE *fopen(const char *path, const char *mode)
{
    errno = ENOENT;
    return strcmp(path, "/proc/self/mountinfo") == 0 ? fdopen(open_text(mountinfo), mode) : NULL;
}

/* Returns text as printf(3) makes it. It is valid until the 16th next call. */
static const char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *text_of(const char *format, ...)
{
    static char text[16][600];
    static int next;
    char *at = text[next++ % 16];
    va_list args;

    va_start(args, format);
    vsnprintf(at, sizeof text[0], format, args);
    va_end(args);
    return at;
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    int made = (int)syscall(SYS_mkdirat, dir, path, mode);

    for (size_t i = 0; i < N_FILES - !has_kill && made == 0; i++)
        close(openat(dir, text_of("%s/%s", path, files[i]), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return made;
}

int unlinkat(int dir, const char *path, int flags)
{
    if (flags == AT_REMOVEDIR && is_busy) {
        errno = EBUSY;
        return -1;
    }
    for (size_t i = 0; i < N_FILES && flags == AT_REMOVEDIR; i++)
        syscall(SYS_unlinkat, dir, text_of("%s/%s", path, files[i]), 0);
    return (int)syscall(SYS_unlinkat, dir, path, flags);
}

/* Returns mountinfo whose cgroup v2 is mounted on `folder` with this root. */
static const char *mounted(const char *root)
{
    return text_of("22 1 0:1 / / rw - ext4 /dev/x rw\n"
                   "30 22 0:26 %s %s rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
                   "31 22 0:27 /wrong /wrong rw - tmpfs none rw\n",
                   root, folder);
}

static unsigned long pid_namespace(void)
{
    struct stat namespace;

    return stat("/proc/self/ns/pid", &namespace) == 0 ? (unsigned long)namespace.st_ino : 0;
}

/* The name of the nth cgroup of a process. */
static const char *name_of(int pid, int n)
{
    return text_of("rlock-%lu-%d-%d", pid_namespace(), pid, n);
}

/* Returns the first byte of a file in a cgroup in b; '\0': the file is empty, or there is none. */
static char first_byte(const char *name, const char *file)
{
    char byte = '\0';
    int fd = open(text_of("b/%s/%s", name, file), O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && read(fd, &byte, 1) != 1)
        byte = '\0';
    close(fd);
    return byte;
}

static bool is_there(const char *name)
{
    return access(text_of("b/%s", name), F_OK) == 0;
}

static void test_place(void)
{
    static const struct {
        const char *name;
        const char *root; /* of the mount; NULL: cgroup v2 isn't mounted */
        const char *own;
        int error;
        const char *parent; /* in the mount */
    } rows[] = {
        {"the parent is this process's cgroup", "/", "0::/a\n", 0, "/a"},
        {"the line of cgroup v2 is the one with number 0", "/", "3:cpu:/b\n0::/a\n", 0, "/a"},
        {"the last line need not end with a newline", "/", "0::/a", 0, "/a"},
        {"in a container the mount's root is left out of the path", "/x", "0::/x/a\n", 0, "/a"},
        {"a path outside of the mount's root is left as it is", "/x", "0::/a\n", 0, "/a"},
        {"nor is the beginning of a longer name cut off", "/x", "0::/xa\n", ENOENT, "/xa"},
        {"without a line of cgroup v2 there is no cgroup", "/", "3:cpu:/a\n", ENOSYS, NULL},
        {"without a mount of cgroup v2 there is no cgroup", NULL, "0::/a\n", ENOSYS, NULL},
        {"the parent's directory doesn't exist", "/", "0::/none\n", ENOENT, "/none"},
        {"the parent has no cgroup.procs", "/", "0::/\n", ENOENT, "/"},
    };
    struct cgroup cgroup;
    char path[400];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *parent = rows[i].parent != NULL ? rows[i].parent : "";
        const char *wanted = text_of("%s%s", parent[0] != '\0' ? folder : "", parent);

        mountinfo = rows[i].root != NULL ? mounted(rows[i].root) : "1 1 0:1 / / rw - ext4 x rw\n";
        own = rows[i].own;
        okf(cgroup_make(&cgroup, path, sizeof path) == rows[i].error && strcmp(path, wanted) == 0,
            "%s", rows[i].name);
        is_int(cgroup.procs_fd >= 0 && cgroup.parent_fd >= 0, rows[i].error == 0, rows[i].name);
        cgroup_remove(&cgroup);
    }
}

/* Puts n lines of cgroup v1 of 1 KiB each before `last`. The text stays until the next call. */
static const char *behind_lines(int n, const char *last)
{
    static char text[80 * 1024];
    size_t used = 0;

    for (int i = 0; i < n; i++)
        used += (size_t)sprintf(text + used, "%02d:cpu:/%01015d\n", i, 0);
    strcpy(text + used, last);
    return text;
}

/* A path that is cut would be that of another cgroup. */
static void test_long_lists(void)
{
    struct cgroup cgroup;
    char path[400];

    mountinfo = mounted("/");
    own = behind_lines(16, "0::/a\n");
    is_int(cgroup_make(&cgroup, path, sizeof path), 0, "16 lines of cgroup v1 come first");
    is_str(path, text_of("%s/a", folder));
    cgroup_remove(&cgroup);
    own = behind_lines(64, "0::/a\n");
    own += strlen(own) + 1 - 64 * 1024 - strlen("\n");
    is_int(cgroup_make(&cgroup, path, sizeof path), ENOSYS, "a text that may be cut isn't used");
    cgroup_remove(&cgroup);
}

static void test_use(void)
{
    struct cgroup cgroup;
    struct cgroup second;
    static char mount[600]; /* also for later tests */
    char path[400];
    char name[64];
    char next[64];

    snprintf(mount, sizeof mount, "%s", mounted("/"));
    mountinfo = mount;
    own = "0::/b\n";
    snprintf(name, sizeof name, "%s", name_of(getpid(), 0));
    snprintf(next, sizeof next, "%s", name_of(getpid(), 1));
    is_int(cgroup_make(&cgroup, path, sizeof path), 0, "a cgroup is made");
    is_str(cgroup.name, name, "a cgroup's name has the pid namespace, the pid and a number");
    is_int(cgroup_make(&second, path, sizeof path), 0, "a second cgroup is made");
    is_str(second.name, next, "a name that is taken isn't used again");
    is_int(cgroup_enter(cgroup.procs_fd), 0, "a process enters the cgroup");
    is_int(first_byte(name, "cgroup.procs"), '0');
    is_int(first_byte(name, "cgroup.kill"), '\0');
    cgroup_kill(&cgroup);
    is_int(first_byte(name, "cgroup.kill"), '1', "cgroup_kill() writes 1 to cgroup.kill");
    is_int(first_byte(next, "cgroup.kill"), '\0');
    ok(cgroup_freeze(&cgroup, true) && first_byte(name, "cgroup.freeze") == '1');
    ok(!cgroup_is_frozen(&cgroup), "without a word in cgroup.events the cgroup isn't frozen");
    write_file(text_of("b/%s/cgroup.events", name), "populated 1\nfrozen 0\n");
    ok(!cgroup_is_frozen(&cgroup), "frozen 0: a member may run");
    write_file(text_of("b/%s/cgroup.events", name), "populated 1\nfrozen 1\n");
    ok(cgroup_is_frozen(&cgroup) && cgroup_is_frozen(&cgroup));
    ok(cgroup_freeze(&cgroup, false), "cgroup_freeze() lets the members run");
    ok(!cgroup_freeze(&(struct cgroup)CGROUP_NONE, true), "cgroup_freeze() tells that it failed");
    is_int(cgroup_enter(-1), EBADF, "cgroup_enter() returns the errno of its write");
    cgroup_remove(&cgroup);
    ok(!is_there(name) && is_there(next));
    ok(cgroup.parent_fd == -1 && cgroup.procs_fd == -1 && cgroup.kill_fd == -1 &&
       cgroup.freeze_fd == -1 && cgroup.events_fd == -1 && cgroup.name[0] == '\0');
    cgroup_kill(&cgroup);
    cgroup_remove(&cgroup);
    cgroup_remove(&second);
    ok(!is_there(next), "the second directory is removed");
}

static void test_members(void)
{
    static const struct {
        const char *name;
        const char *text; /* of /proc/PID/cgroup; NULL: open() fails with this errno */
        int error;
        bool is_member;
    } rows[] = {
        {"a member", "0::/a/rlock-1-2-3\n", 0, true},
        {"a member on a machine with cgroup v1, too", "3:cpu:/\n0::/rlock-1-2-3\n", 0, true},
        {"a member of a cgroup that a member has made", "0::/rlock-1-2-3/rlock-1-9-0\n", 0, true},
        {"a process in the cgroup where rlock is", "0::/a\n", 0, false},
        {"a process in a cgroup whose name begins alike", "0::/a/rlock-1-2-30\n", 0, false},
        {"a process that has only a cgroup v1 of that name", "1:x:/rlock-1-2-3\n0::/\n", 0, false},
        {"a process without cgroup v2", "1:x:/rlock-1-2-3\n", 0, false},
        {"a process that has ended", NULL, ENOENT, true},
        {"a process that ends just now", NULL, ESRCH, true},
        {"a process that can't be read", NULL, EMFILE, false},
    };
    struct cgroup cgroup = CGROUP_NONE;

    snprintf(cgroup.name, sizeof cgroup.name, "rlock-1-2-3");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        of_other = rows[i].text;
        open_error = rows[i].error;
        okf(cgroup_has(&cgroup, 1) == rows[i].is_member, "%s", rows[i].name);
    }
}

static void test_old_kernel(void)
{
    struct cgroup cgroup;
    char path[400];

    has_kill = false;
    is_int(cgroup_make(&cgroup, path, sizeof path), ENOSYS);
    ok(!is_there(name_of(getpid(), 0)), "without cgroup.kill the new directory is removed again");
    is_int(cgroup.procs_fd, -1, "without cgroup.kill the descriptors are closed again");
    has_kill = true;
}

static int dead_pid(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    return (int)pid;
}

static void test_leftovers(void)
{
    enum {
        OF_DEAD,
        FROZEN_OF_DEAD,
        FROZEN_OF_LIVING,
        OF_LIVING,
        OF_OTHER_NAMESPACE,
        OF_OTHER_PROGRAM,
        N
    };
    char name[N][64];
    struct cgroup cgroup;
    char path[600];

    snprintf(name[OF_DEAD], 64, "%s", name_of(dead_pid(), 0));
    snprintf(name[FROZEN_OF_DEAD], 64, "%s", name_of(dead_pid(), 0));
    snprintf(name[FROZEN_OF_LIVING], 64, "%s", name_of(getppid(), 1));
    snprintf(name[OF_LIVING], 64, "%s", name_of(getppid(), 0));
    snprintf(name[OF_OTHER_NAMESPACE], 64, "rlock-%lu-%d-0", pid_namespace() + 1, dead_pid());
    snprintf(name[OF_OTHER_PROGRAM], 64, "other-%lu-%d-0", pid_namespace(), dead_pid());
    for (int i = 0; i < N; i++) {
        mkdirat(AT_FDCWD, text_of("b/%s", name[i]), 0700);
        if (i == FROZEN_OF_DEAD || i == FROZEN_OF_LIVING)
            write_file(text_of("b/%s/cgroup.events", name[i]), "populated 1\nfrozen 1\n");
    }
    is_busy = true;
    is_int(cgroup_make(&cgroup, path, sizeof path), 0, "a cgroup is made beside old ones");
    is_int(first_byte(name[FROZEN_OF_DEAD], "cgroup.kill"), '\0', "which kills nothing");
    cgroup_remove_old();
    is_int(first_byte(name[FROZEN_OF_DEAD], "cgroup.kill"), '1');
    is_int(first_byte(name[OF_DEAD], "cgroup.kill"), '\0');
    is_int(first_byte(name[FROZEN_OF_LIVING], "cgroup.kill"), '\0');
    is_busy = false;
    cgroup_remove_old();
    ok(!is_there(name[OF_DEAD]), "the directory of a dead rlock is removed");
    ok(is_there(name[OF_LIVING]), "the directory of a process that lives stays");
    ok(is_there(name[OF_OTHER_NAMESPACE]));
    ok(is_there(name[OF_OTHER_PROGRAM]), "the directory of another program stays");
    is_busy = true;
    cgroup_remove(&cgroup);
    ok(cgroup.parent_fd == -1, "a cgroup with members is left behind");
    is_busy = false;
    for (int i = 0; i < N; i++)
        unlinkat(AT_FDCWD, text_of("b/%s", name[i]), AT_REMOVEDIR);
    is_int(cgroup_make(&cgroup, path, sizeof path), 0, "a later cgroup is made");
    cgroup_remove(&cgroup);
}

int main(void)
{
    int fds;

    if (mkdtemp(folder) == NULL || chdir(folder) != 0 || mkdir("a", 0700) != 0 ||
        mkdir("b", 0700) != 0)
        return 1;
    write_file("a/cgroup.procs", "");
    write_file("b/cgroup.procs", "");
    fds = count_fds();
    RUN_ALL(test_place, test_long_lists, test_use, test_members, test_old_kernel, test_leftovers);
    is_int(count_fds(), fds, "each file that was opened is closed");
    return done_testing() | (system(text_of("rm -rf %s", folder)) != 0);
}
