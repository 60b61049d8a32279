/* SPDX-License-Identifier: MIT */
/* cgroup: a control group (cgroup v2) for the command, which the kernel kills as a whole. */
#ifndef CGROUP_H
#define CGROUP_H

/* Begins as CGROUP_NONE. The descriptors are inherited by the guard, and closed at an exec. */
struct cgroup {
    int parent_fd; /* the directory of the cgroup that rlock was started in; -1: none is used */
    int procs_fd;  /* its cgroup.procs: a process that writes 0 there moves into it */
    int kill_fd;   /* its cgroup.kill: whoever is in it gets KILL when 1 is written there */
    char name[32]; /* of its directory, in that of the parent */
};

#define CGROUP_NONE                                    \
    {                                                  \
        .parent_fd = -1, .procs_fd = -1, .kill_fd = -1 \
    }

/*
 * cgroup_make: a new cgroup below the one that the caller is in. 0, or an errno: ENOSYS where
 * cgroup v2 isn't mounted, or its kernel has no cgroup.kill (Linux 5.14 is the first that has it);
 * EACCES where the caller's own cgroup isn't delegated to its user. `path` is out: the directory
 * that it was tried in, or "".
 */
int cgroup_make(struct cgroup *cgroup, char *path, unsigned room);

/*
 * cgroup_enter: move the calling process into it, on which what it starts is there as well. 0, or
 * an errno. One write(2): may be called between vfork and exec.
 */
int cgroup_enter(int procs_fd);

/* cgroup_kill: KILL to all that is in it; without effect where there is no cgroup. */
void cgroup_kill(const struct cgroup *cgroup);

/*
 * cgroup_remove: close it, and remove its directory unless something lives in it, such as a daemon
 * that the command left behind: then the directory stays, and a later cgroup_make() of the same
 * parent removes it.
 */
void cgroup_remove(struct cgroup *cgroup);

#endif
