/* SPDX-License-Identifier: MIT */
/* cgroup: a control group (cgroup v2) for the command, which the kernel kills or freezes whole. */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* Begins as CGROUP_NONE. The guard inherits the descriptors; an exec closes them. */
struct cgroup {
    int parent_fd; /* directory of the cgroup that rlock was started in; -1: no cgroup */
    int procs_fd;  /* cgroup.procs of the new cgroup: a process that writes 0 here moves there */
    int kill_fd;   /* cgroup.kill of the new cgroup: the kernel kills all members on a write of 1 */
    int freeze_fd; /* cgroup.freeze of the new cgroup: the kernel freezes it on a write of 1 */
    int events_fd; /* cgroup.events of the new cgroup: "frozen 1" once no member runs any more */
    char name[48]; /* name of the new cgroup's directory in parent_fd; "": there is none */
};

#define CGROUP_NONE                                                                      \
    {                                                                                    \
        .parent_fd = -1, .procs_fd = -1, .kill_fd = -1, .freeze_fd = -1, .events_fd = -1 \
    }

/*
 * cgroup_make: make a cgroup below the one that the caller is in. Writes the parent's directory to
 * `path`, which has `room` bytes, or "" if there is none. Returns 0, or an errno: ENOSYS if cgroup
 * v2 isn't mounted, or the kernel has no cgroup.kill (older than Linux 5.14); EACCES if the
 * caller's cgroup isn't delegated to the caller's user.
 */
int cgroup_make(struct cgroup *cgroup, char *path, unsigned room);

/*
 * cgroup_remove_old: remove the cgroups, below the one that the caller is in, of rlocks that have
 * ended. Kills the frozen processes in them, as nobody else would ever let them run.
 */
void cgroup_remove_old(void);

/*
 * cgroup_enter: move the calling process into the cgroup; children that it starts from then on are
 * members, too. Returns 0, or an errno. Only calls write(2): safe between vfork and exec.
 */
int cgroup_enter(int procs_fd);

/* cgroup_kill: send KILL to all processes of the cgroup. Does nothing if no cgroup is used. */
void cgroup_kill(const struct cgroup *cgroup);

/*
 * cgroup_freeze: tell the kernel to freeze all processes of the cgroup, or with `freezes` false to
 * let them run. False: the kernel was not told. Doesn't block: when all processes have stopped,
 * cgroup_is_frozen() returns true. KILL ends a frozen process.
 */
bool cgroup_freeze(const struct cgroup *cgroup, bool freezes);
bool cgroup_is_frozen(const struct cgroup *cgroup);

/* cgroup_has: is the process in the cgroup, or has it ended? False also if that isn't known. */
bool cgroup_has(const struct cgroup *cgroup, pid_t pid);

/*
 * cgroup_remove: close the descriptors, and remove the cgroup's directory. As long as the cgroup
 * has a member, such as a daemon that the command left behind, the directory stays; a later
 * cgroup_remove_old() below the same parent removes it.
 */
void cgroup_remove(struct cgroup *cgroup);

#endif
