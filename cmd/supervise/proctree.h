/* SPDX-License-Identifier: MIT */
/* proctree: the descendants of a process: found, signalled and ended. */
#ifndef PROCTREE_H
#define PROCTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup;
struct proctree_place;

/*
 * When a tree gets TERM (or is frozen), and when KILL. On rlock_clock_ms(); RLOCK_NEVER: not by
 * time.
 */
struct deadlines {
    int64_t term_ms;
    int64_t kill_ms;
};

/*
 * What is known of the descendants of one process, the root. Where the root is this process, it
 * has to be a subreaper (PR_SET_CHILD_SUBREAPER): who loses its parent becomes our child then.
 * Where the root is somebody else, whoever was seen once is remembered until it ends.
 */
struct proctree {
    pid_t root;
    struct proctree_place *place; /* by process number */
    pid_t *list; /* those that the last walk found, parents before their children */
    size_t room; /* of both */
    size_t n;
    unsigned walk;         /* which one this is */
    uint32_t root_started; /* where the root is somebody else */
    bool has_spared;
    bool has_lists;              /* the kernel has, of the children of a thread */
    int children;                /* the list of our own children, kept open; -1: it isn't needed */
    pid_t session;               /* that rlock was started in */
    long hertz;                  /* of the clock that start times are counted on */
    int64_t term_ms;             /* when TERM was sent; 0: not yet */
    const struct cgroup *cgroup; /* that all of the tree is in; NULL: of none is it known */
    pid_t refused;               /* one that we may not signal; 0: none */
};

/*
 * proctree_reserve: memory for as many processes as there can be, of which only what is used is
 * ever taken: from then on nothing is allocated. 0, or an errno.
 */
int proctree_reserve(struct proctree *tree);

/*
 * proctree_set_root: forget all that was found and spared; from now on the tree is that of `root`.
 * Where that is this process a descriptor is opened; the caller has closed an earlier one. Where it
 * is somebody else, the caller makes sure afterwards that its number is still its own.
 */
void proctree_set_root(struct proctree *tree, pid_t root);

/* proctree_free: give back the memory, and the descriptor. */
void proctree_free(struct proctree *tree);

/*
 * proctree_spare: leave alone a child of this process, and what is below it; it must not be reaped
 * as long as that is wanted. proctree_spare_children: all that this process has now, and each
 * process below them; a later call spares the new descendants of those that were spared before. The
 * results of earlier walks are dropped. False: no room.
 */
bool proctree_spare(struct proctree *tree, pid_t child);
bool proctree_spare_children(struct proctree *tree, bool is_first);

/*
 * proctree_term: TERM, once, to each process that was there when this was first asked for. What is
 * started afterwards, such as by a process that tidies up for its TERM, gets none. How many are
 * there.
 */
size_t proctree_term(struct proctree *tree);

/* proctree_signal: any signal, once, to each process that is there. How many there were. */
size_t proctree_signal(struct proctree *tree, int number);

/* proctree_look: find who is there. How many. */
size_t proctree_look(struct proctree *tree);

/*
 * proctree_kill: KILL to all, again and again until nothing is left or it is `deadline_ms`. Reaps
 * the children of this process, if that is the root, and tells of each. True: something is left. It
 * is `refused` where we may not signal it.
 */
typedef void proctree_reaped(pid_t pid, int status, void *context);
bool proctree_kill(struct proctree *tree, int64_t deadline_ms, proctree_reaped *reaped,
                   void *context);

/*
 * proctree_each_thread: show each thread of each descendant of the root. It comes before its
 * children are looked for; upwards, after all below its process were shown. False: not all could be
 * reached, as there is no /proc, or no room.
 */
typedef void proctree_see(pid_t thread, void *context);
bool proctree_each_thread(struct proctree *tree, bool upwards, proctree_see *see, void *context);

/*
 * proctree_state: of a thread, as proc(5) has it: R, S, D, T, t, Z and so on; '\0': there is none.
 */
char proctree_state(pid_t thread);

/*
 * proctree_flags: of a process, the PF_ ones of the kernel's include/linux/sched.h; 0: there is
 * none of this number.
 */
#define PROCTREE_EXITING 0x00000004       /* PF_EXITING */
#define PROCTREE_KERNEL_THREAD 0x00200000 /* PF_KTHREAD */
unsigned proctree_flags(pid_t pid);

/* proctree_name: the name of the program that a process runs, as in ps(1); "": not known. */
void proctree_name(pid_t pid, char name[32]);

/* proctree_tracer: the thread that traces this one, as a debugger does; 0: none. */
pid_t proctree_tracer(pid_t thread);

#endif
