/* SPDX-License-Identifier: MIT */
/*
 * proctree: finds, signals and ends all descendants of a process.
 *
 * The main process reserves a tree or binds it, spares processes that aren't the command's, and
 * forks the guard. The guard calls proctree_term() once or more, proctree_look() while it waits,
 * and proctree_kill() until no process is left. If the guard fails, the main process sends KILL
 * itself, by its own copy of the tree.
 */
#ifndef PROCTREE_H
#define PROCTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup;
struct proctree_place;

/*
 * The tree of this process is all of its descendants; this process must be a subreaper, so that
 * orphans become its children. The tree of another process, by proctree_bind(), is its descendants
 * and then that process itself. The descendants are remembered until they end, or until
 * proctree_forget(). Only proctree.c writes the fields.
 */
struct proctree {
    /* the root */
    pid_t root;
    int root_fd; /* proctree_bind(): pidfd of the root; -1: this process is the root, or none yet */
    uint32_t root_started;       /* if the root is another process: when it started, in ticks */
    const struct cgroup *cgroup; /* the cgroup that all of the tree is in; NULL: it is in none */

    /* what is known of processes */
    struct proctree_place *place; /* an array indexed by pid */
    pid_t *list;     /* the pids that the last walk found, parents before their children */
    size_t room;     /* the length of `place` and of `list` */
    size_t n;        /* entries in the list */
    bool spares;     /* this walk spares what it finds */
    bool has_spared; /* proctree_spare() or _spare_children() has spared a process */
    bool is_full;    /* the last call had no room to note a process as spared */

    /* reading /proc */
    bool has_lists; /* the kernel has /proc/PID/task/TID/children */
    int children;   /* /proc/PID/task/TID/children of our main thread, open; -1: not open */
    long hertz;     /* ticks a second: the kernel gives start times in ticks */
    bool is_short;  /* the last call lacked a descriptor or memory to read a process */

    /* TERM and KILL */
    bool root_is_termed;  /* if the root is another process: it has got TERM */
    int64_t term_ms;      /* when TERM was sent for the first time; 0: not yet */
    int64_t kill_ms;      /* when KILL was sent for the first time; 0: not yet */
    int64_t kill_walk_ms; /* proctree_kill() does not walk the tree before this time */
    pid_t session;        /* the session that rlock was started in */
    pid_t refused;        /* the last process that the kernel refused our signal to; 0: none */
};

/*
 * proctree_reserve: reserve address space for as many processes as there can be; only pages that
 * are used take memory. Nothing is allocated later, and nothing is freed before this process ends.
 * Returns 0, or an errno.
 */
int proctree_reserve(struct proctree *tree);

/*
 * proctree_set_root: forget all processes that were found or spared, and make this process the root
 * of the tree. The call opens `children`; the caller must have closed an earlier descriptor there.
 */
void proctree_set_root(struct proctree *tree);

/*
 * proctree_bind: call proctree_reserve(), and make another process the root. Returns 0, or an errno
 * (then `tree` can't be used): ESRCH if the process has ended, EPERM if the caller may not signal
 * it, EACCES if /proc doesn't show it, so that its children can't be found.
 */
int proctree_bind(struct proctree *tree, pid_t root);

/*
 * For the tree of another process only. proctree_root_has_ended: never blocks.
 * proctree_signal_root: send a signal to the root, and not to its descendants. False: the kernel
 * refuses that, and `refused` is the root.
 */
bool proctree_root_has_ended(const struct proctree *tree);
bool proctree_signal_root(struct proctree *tree, int number);

/*
 * proctree_set_cgroup: all processes of the tree are in this control group, which is borrowed;
 * NULL: in none.
 */
void proctree_set_cgroup(struct proctree *tree, const struct cgroup *cgroup);

/*
 * proctree_spare: send no signal to the process `pid` and its descendants. Sets `is_short` if `pid`
 * could not be read. `pid` may be the caller, or a child, which the caller then must not reap.
 * proctree_spare_children: spare all descendants that the calling process has now; with `is_first`
 * false, those of spared children. Both drop the results of earlier walks. False: no room.
 */
bool proctree_spare(struct proctree *tree, pid_t pid);
bool proctree_spare_children(struct proctree *tree, bool is_first);

/*
 * proctree_term: send TERM, once, to each process of the tree that was there at the first call; not
 * to later ones, such as helpers that tidy up. Walks again until a walk finds no further process,
 * or would not be over before `deadline_ms`. Returns how many processes the last walk found. If
 * `is_short` is set, there may be more, and a bound root has got no TERM: call this again.
 */
size_t proctree_term(struct proctree *tree, int64_t deadline_ms);

/*
 * proctree_signal_child: send a signal to one child of the caller. If the kernel refuses that,
 * `refused` is the child.
 */
void proctree_signal_child(struct proctree *tree, pid_t child, int number);

/* proctree_signal: send a signal to each process of the tree. Returns how many there were. */
size_t proctree_signal(struct proctree *tree, int number);

/*
 * proctree_look: walk the tree. Returns how many processes it has; if `is_short` is set, there may
 * be more. In the tree of another process, a process that was found before still counts if it
 * can't be read now for lack of a descriptor or memory.
 */
size_t proctree_look(struct proctree *tree);

/*
 * proctree_forget: forget which processes were found. If the root is another process, a later walk
 * doesn't find those that are no longer its descendants.
 */
void proctree_forget(struct proctree *tree);

/*
 * proctree_kill: send KILL to each process of the tree, again and again, until none is left or
 * 20 ms are over. If the root is this process, reaps its children, and calls `reaped` for each
 * (NULL: no call). True: a process is left; `refused` is set if the kernel refuses our KILL.
 * proctree_kill_again_ms: when to call proctree_kill() again: in the first 2 s at once, later after
 * a pause.
 */
typedef void proctree_reaped(pid_t pid, int status, void *context);
bool proctree_kill(struct proctree *tree, proctree_reaped *reaped, void *context);
int64_t proctree_kill_again_ms(const struct proctree *tree);

/* proctree_state: the state of a thread, a letter as in proc(5); '\0': there is no such thread. */
char proctree_state(pid_t thread);

/*
 * proctree_flags: the PF_* flags of a process, from the kernel's include/linux/sched.h; 0: there is
 * no such process.
 */
#define PROCTREE_EXITING 0x00000004       /* PF_EXITING */
#define PROCTREE_KERNEL_THREAD 0x00200000 /* PF_KTHREAD */
unsigned proctree_flags(pid_t pid);

/* proctree_name: the name of the program that a process runs, as in ps(1); "": not known. */
void proctree_name(pid_t pid, char name[32]);

#endif
