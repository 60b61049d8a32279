/* SPDX-License-Identifier: MIT */
/*
 * cgroup: a control group for the command, by the files of cgroup v2 (cgroups(7)).
 *
 * Processes that fork and exit faster than proctree.c reads /proc can escape its KILL. None escapes
 * a write to cgroup.kill or cgroup.freeze, as the kernel acts on all members under one lock.
 */
#include "supervise/cgroup.h"

#include "process/fds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "rlock-"
#define NAMES_MAX 100    /* how many names make_directory() tries */
#define TEXT_BYTES 65536 /* /proc/PID/cgroup has up to a dozen paths of cgroup v1, and one of v2 */

/*
 * Finds the mount of cgroup v2 in /proc/self/mountinfo, proc(5), which has lines of the form
 * "ID PARENT DEVICE ROOT MOUNTPOINT ... - cgroup2 ...". The kernel writes a blank in a path as
 * \040, which is not decoded here, so cgroup_make() fails to open such a path.
 */
static bool find_mount(char *root, char *point, size_t room)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    char format[64];

    if (mounts == NULL)
        return false;
    snprintf(format, sizeof format, "%%*s %%*s %%*s %%%zus %%%zus", room - 1, room - 1);
    while (!found && getline(&line, &size, mounts) > 0)
        found = strstr(line, " - cgroup2 ") != NULL && sscanf(line, format, root, point) == 2;
    free(line);
    fclose(mounts);
    return found;
}

/*
 * Reads a file /proc/PID/cgroup. Returns the path in cgroup v2, from the line "0::PATH". NULL:
 * errno tells why the file can't be read; errno 0: it has no such line, or is too long.
 */
static char *read_path(const char *file, char text[TEXT_BYTES])
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_BYTES - 1);
    int failed = n < 0 ? errno : 0;
    char *path;

    fds_close(&fd);
    errno = failed;
    if (n <= 0 || n == TEXT_BYTES - 1) /* a path that was cut could be another cgroup's */
        return NULL;
    text[n] = '\0';
    path = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (path == NULL)
        return NULL;
    path = strchr(path, ':') + 2;
    path[strcspn(path, "\n")] = '\0';
    return path;
}

/* Does a name in a path end before this character? Else the name goes on. */
static bool ends_name(char c)
{
    return c == '/' || c == '\0';
}

static bool find_parent(char *path, size_t room)
{
    char root[1024];
    char point[1024];
    char text[TEXT_BYTES];
    const char *own = read_path("/proc/self/cgroup", text);
    size_t n;

    if (own == NULL || !find_mount(root, point, sizeof point))
        return false;
    /* in a container, the mount point may be the cgroup `root`: cut `root` off the path */
    n = strlen(root);
    if (strcmp(root, "/") != 0 && strncmp(own, root, n) == 0 && ends_name(own[n]))
        own += n;
    return snprintf(path, room, "%s%s", point, own) < (int)room;
}

/*
 * The number of the pid namespace that this process is in, pid_namespaces(7). Processes of several
 * containers may share a cgroup, and each container counts its pids for itself. 0: not known.
 */
static unsigned long pid_namespace(void)
{
    struct stat namespace;

    return stat("/proc/self/ns/pid", &namespace) == 0 ? (unsigned long)namespace.st_ino : 0;
}

/*
 * Writes one byte to a file of a cgroup. False: the write failed. If the cgroup was removed,
 * returns true: a cgroup without members has no process to kill, freeze or let run.
 */
static bool write_byte(int fd, const char *byte)
{
    return write(fd, byte, 1) == 1 || errno == ENODEV;
}

/* Opens a file of the cgroup `name` below `parent_fd`. */
static int open_file(int parent_fd, const char *name, const char *file, int flags)
{
    char path[NAME_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", name, file);
    return openat(parent_fd, path, flags | O_CLOEXEC);
}

static bool reads_frozen(int events_fd)
{
    char text[128];
    ssize_t n = pread(events_fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return strstr(text, "frozen 1") != NULL;
}

/*
 * Kills the members of a cgroup whose rlock has ended, if they are frozen: main process and guard
 * were killed while the command was paused, and nobody is left to let the command run.
 */
static void kill_if_frozen(int parent_fd, const char *name)
{
    int events_fd = open_file(parent_fd, name, "cgroup.events", O_RDONLY);
    int kill_fd = open_file(parent_fd, name, "cgroup.kill", O_WRONLY);

    if (events_fd >= 0 && kill_fd >= 0 && reads_frozen(events_fd))
        write_byte(kill_fd, "1");
    fds_close(&events_fd);
    fds_close(&kill_fd);
}

/*
 * The kernel refuses to remove the directory of a cgroup with members, but not an empty one, which
 * a living rlock may have made for a command that will start. So this function removes a directory
 * only if its name has our pid namespace, and a pid that no process has.
 */
void cgroup_remove_old(void)
{
    char path[PATH_MAX];
    DIR *parent = find_parent(path, sizeof path) ? opendir(path) : NULL;
    unsigned long ours = pid_namespace();
    const struct dirent *entry;
    unsigned long namespace;
    int pid;

    if (parent == NULL)
        return;
    while ((entry = readdir(parent)) != NULL)
        if (sscanf(entry->d_name, PREFIX "%lu-%d-", &namespace, &pid) == 2 && ours != 0 &&
            namespace == ours && pid > 0 && kill(pid, 0) != 0 && errno == ESRCH) {
            kill_if_frozen(dirfd(parent), entry->d_name);
            unlinkat(dirfd(parent), entry->d_name, AT_REMOVEDIR);
        }
    closedir(parent);
}

/*
 * Makes a directory "rlock-PIDNAMESPACE-PID-N" with the first N that is free. Why N: an earlier
 * rlock with our pid may have left a directory, with processes of its command, which KILL to our
 * command's cgroup must not reach.
 */
static int make_directory(struct cgroup *cgroup)
{
    unsigned n;

    for (n = 0; n < NAMES_MAX; n++) {
        snprintf(cgroup->name, sizeof cgroup->name, PREFIX "%lu-%d-%u", pid_namespace(),
                 (int)getpid(), n);
        if (mkdirat(cgroup->parent_fd, cgroup->name, 0755) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    cgroup->name[0] = '\0'; /* cgroup_remove() has no directory to remove */
    return errno;
}

static int open_files(struct cgroup *cgroup)
{
    const struct {
        int *fd;
        const char *name;
        int flags;
    } files[] = {{&cgroup->procs_fd, "cgroup.procs", O_WRONLY},
                 {&cgroup->freeze_fd, "cgroup.freeze", O_WRONLY},
                 {&cgroup->events_fd, "cgroup.events", O_RDONLY},
                 {&cgroup->kill_fd, "cgroup.kill", O_WRONLY}};
    size_t i;

    for (i = 0; i < sizeof files / sizeof files[0]; i++) {
        *files[i].fd = open_file(cgroup->parent_fd, cgroup->name, files[i].name, files[i].flags);
        if (*files[i].fd < 0)
            return errno == ENOENT ? ENOSYS : errno;
    }
    return 0;
}

int cgroup_make(struct cgroup *cgroup, char *path, unsigned room)
{
    int failed = 0;

    *cgroup = (struct cgroup)CGROUP_NONE;
    path[0] = '\0';
    if (!find_parent(path, room))
        return ENOSYS;
    cgroup->parent_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (cgroup->parent_fd < 0)
        return errno;
    /* cgroups(7): to move a process out of the parent, one needs write access to this file */
    if (faccessat(cgroup->parent_fd, "cgroup.procs", W_OK, AT_EACCESS) != 0)
        failed = errno;
    else
        failed = make_directory(cgroup);
    if (failed == 0)
        failed = open_files(cgroup);
    if (failed != 0)
        cgroup_remove(cgroup);
    return failed;
}

int cgroup_enter(int procs_fd)
{
    return write(procs_fd, "0", 1) == 1 ? 0 : errno;
}

void cgroup_kill(const struct cgroup *cgroup)
{
    if (cgroup->kill_fd >= 0)
        write_byte(cgroup->kill_fd, "1");
}

bool cgroup_freeze(const struct cgroup *cgroup, bool freezes)
{
    return write_byte(cgroup->freeze_fd, freezes ? "1" : "0");
}

bool cgroup_is_frozen(const struct cgroup *cgroup)
{
    return reads_frozen(cgroup->events_fd);
}

/*
 * Looks only for the name of the command's cgroup: the path before that name in /proc/PID/cgroup
 * depends on the reader's cgroup namespace. The command, such as another rlock with --cgroup, may
 * have made cgroups below its own, which are frozen, too.
 */
bool cgroup_has(const struct cgroup *cgroup, pid_t pid)
{
    char file[64];
    char text[TEXT_BYTES];
    const char *path;
    const char *at;

    snprintf(file, sizeof file, "/proc/%d/cgroup", (int)pid);
    path = read_path(file, text);
    if (path == NULL)
        return errno == ENOENT || errno == ESRCH;
    at = strstr(path, cgroup->name);
    return at != NULL && ends_name(at[strlen(cgroup->name)]);
}

void cgroup_remove(struct cgroup *cgroup)
{
    fds_close(&cgroup->procs_fd);
    fds_close(&cgroup->kill_fd);
    fds_close(&cgroup->freeze_fd);
    fds_close(&cgroup->events_fd);
    if (cgroup->parent_fd >= 0 && cgroup->name[0] != '\0')
        unlinkat(cgroup->parent_fd, cgroup->name, AT_REMOVEDIR);
    fds_close(&cgroup->parent_fd);
    cgroup->name[0] = '\0';
}
