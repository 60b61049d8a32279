/* SPDX-License-Identifier: MIT */
/*
 * proctree: finds, signals and ends all descendants of a process.
 *
 * A walk reads /proc/PID/task/TID/children (proc(5)), breadth first, with a list in memory: no
 * stack limits how deep or wide a tree is. On a kernel without these files it reads the parent of
 * every process of the machine instead. The list leaves out zombies.
 */
#include "supervise/proctree.h"

#include "process/fds.h"
#include "supervise/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rlock.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES_MAX (1U << 22) /* PID_MAX_LIMIT: Linux has no higher pid */
#define PLACES_MIN (1U << 15) /* one for each pid below 32768, Linux' default pid_max */
#define TERM_WALKS 100        /* how many walks proctree_term() makes at most */
#define REAPED_AT_ONCE 4096   /* how many zombies reap() reaps before KILL goes on */
#define MOMENT_NS 50000       /* the pause between two rounds of KILL */
#define MOMENT_EACH_NS 2000   /* added to the pause for each of our children, see give_way() */
#define WALK_PAUSES 4         /* the pause between two walks for KILL takes as long as 4 walks */
#define WALK_EVERY 32         /* one round of KILL out of 32 also walks the tree */
#define KILL_ROUND_MS 20      /* how long one call of proctree_kill() repeats KILL */
/*
 * For this time KILL is repeated without a pause, and then with one. A process that lives longer is
 * in uninterruptible sleep, or may not be signalled: KILL without a pause would only use up the
 * processor.
 */
#define KILL_FAST_MS 2000
#define KILL_PAUSE_MS 5           /* the pause while processes take long to end */
#define KILL_REFUSED_PAUSE_MS 100 /* the pause while the kernel refuses KILL to a process */

enum proctree_mark {
    MARK_NONE,
    MARK_TERMED, /* the process has got TERM */
    MARK_SPARED, /* the process must get no signal */
};

/* What we know of a process. If the array is shorter than pid_max, several pids share a place. */
struct proctree_place {
    pid_t pid;
    pid_t parent;
    uint32_t started; /* in ticks since boot; the lower 32 bits */
    enum proctree_mark mark : 8;
    bool is_listed : 1; /* the process is in the list */
    bool has_threads : 1;
};

/* ---- reading small files of /proc ---- */

/* Reads a directory of /proc, and returns the names that are pids one after the other. */
struct pids {
    int fd;
    long filled;
    long at;
    _Alignas(8) char entries[2048];
};

static bool pids_open(struct pids *pids, const char *path)
{
    pids->filled = pids->at = 0;
    pids->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return pids->fd >= 0;
}

static pid_t pids_next(struct pids *pids)
{
    for (;;) {
        struct dirent64 *entry;
        long number;

        if (pids->at >= pids->filled) {
            pids->filled = syscall(SYS_getdents64, pids->fd, pids->entries, sizeof pids->entries);
            pids->at = 0;
            if (pids->filled <= 0)
                return 0;
        }
        entry = (struct dirent64 *)(pids->entries + pids->at);
        pids->at += entry->d_reclen;
        number = strtol(entry->d_name, NULL, 10);
        if (number > 0)
            return (pid_t)number;
    }
}

/*
 * True if a file of /proc could not be opened or read just now because this process or the machine
 * has no descriptor or memory free. So the process may live nevertheless.
 */
static bool is_shortage(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
}

static void note_shortage(struct proctree *tree)
{
    if (is_shortage())
        tree->is_short = true;
}

/* Reads a small file of /proc as text. Returns its length; -1: the file can't be read. */
static ssize_t slurp(const char *path, char *text, size_t room)
{
    size_t used = 0;
    ssize_t n = 1;
    int fd;

    errno = 0; /* a caller may look at errno, see is_shortage() */
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while (n > 0 && used < room - 1) {
        n = read(fd, text + used, room - 1 - used);
        used += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    text[used] = '\0';
    return (ssize_t)used;
}

/*
 * Returns the fields of /proc/PID/stat after the program's name, which may contain blanks and
 * brackets; "": there is no such process.
 */
static const char *behind_name(pid_t pid, char *text, size_t room)
{
    char path[64];
    char *end;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (slurp(path, text, room) <= 0)
        return "";
    end = strrchr(text, ')');
    return end == NULL || strlen(end) < 4 ? "" : end + 2;
}

char proctree_state(pid_t thread)
{
    char text[512];

    return *behind_name(thread, text, sizeof text);
}

void proctree_name(pid_t pid, char name[32])
{
    char path[32];

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    if (slurp(path, name, 32) < 0)
        name[0] = '\0';
    name[strcspn(name, "\n")] = '\0';
}

unsigned proctree_flags(pid_t pid)
{
    char text[512];
    unsigned flags = 0;

    /* the state, then five fields, then the flags */
    (void)!sscanf(behind_name(pid, text, sizeof text), "%*c %*d %*d %*d %*d %*d %u", &flags);
    return flags;
}

/* ---- reading one process ---- */

struct process {
    pid_t pid;
    pid_t parent;
    uint32_t started;
    bool is_dead; /* a zombie, and no thread of it is left */
    bool has_threads;
};

/* Numbers of fields in proc_pid_stat(5); the state is the first field after the name. */
enum { STAT_STATE = 3, STAT_PARENT = 4, STAT_THREADS = 20, STAT_STARTED = 22 };

/* False: there is no such process, or it can't be read now, see is_shortage(). */
static bool process_read(struct process *process, pid_t pid)
{
    char text[512];
    const char *at = behind_name(pid, text, sizeof text);
    char state = *at;
    long threads = 0;
    int field;

    *process = (struct process){.pid = pid};
    if (state == '\0')
        return false;
    for (field = STAT_STATE; field < STAT_STARTED; at++)
        if (*at == '\0') {
            return false;
        } else if (*at == ' ') {
            field++;
            if (field == STAT_PARENT)
                process->parent = (pid_t)strtol(at + 1, NULL, 10);
            else if (field == STAT_THREADS)
                threads = strtol(at + 1, NULL, 10);
        }
    process->started = (uint32_t)strtoull(at, NULL, 10);
    process->is_dead = (state == 'Z' || state == 'X') && threads <= 1;
    process->has_threads = threads > 1;
    return true;
}

/* The start time that the kernel would give to a process that starts now. */
static uint32_t ticks_now(const struct proctree *tree)
{
    return (uint32_t)(rlock_clock_ms() * tree->hertz / 1000);
}

static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* ---- noting what we know of each process ---- */

static struct proctree_place *place_of(const struct proctree *tree, pid_t pid)
{
    return &tree->place[(size_t)pid & (tree->room - 1)];
}

static bool is_ours(const struct proctree *tree)
{
    return tree->root == getpid();
}

/*
 * Compares the start times, as another process may have the pid of a spared process that was
 * reaped. A process with that pid that can't be read counts as spared.
 */
static bool is_spared(const struct proctree *tree, pid_t pid)
{
    const struct proctree_place *place = place_of(tree, pid);
    struct process process;

    return place->mark == MARK_SPARED && place->pid == pid &&
           (!process_read(&process, pid) || process.started == place->started);
}

static bool is_listed(const struct proctree *tree, pid_t pid)
{
    const struct proctree_place *place = place_of(tree, pid);

    return place->pid == pid && place->is_listed;
}

/*
 * Lists a process, once. With `spares` marks the process as spared; else keeps its mark that it has
 * got TERM. If a listed or spared process has the same place, there is no room: sets `is_full`.
 */
static void list(struct proctree *tree, const struct process *process)
{
    struct proctree_place *place = place_of(tree, process->pid);
    enum proctree_mark mark = tree->spares ? MARK_SPARED : MARK_NONE;

    if (place->is_listed || (place->mark == MARK_SPARED && place->pid != process->pid)) {
        tree->is_full = tree->is_full || place->pid != process->pid;
        return;
    }
    if (mark == MARK_NONE && place->mark == MARK_TERMED && place->pid == process->pid)
        mark = MARK_TERMED; /* a later process with this pid started after TERM, and gets none */
    *place = (struct proctree_place){.pid = process->pid,
                                     .parent = process->parent,
                                     .started = process->started,
                                     .mark = mark,
                                     .is_listed = true,
                                     .has_threads = process->has_threads};
    tree->list[tree->n++] = process->pid;
}

/* ---- walking the tree ---- */

/* Reads a list of children, and returns their pids one after the other. */
struct children {
    int fd;
    pid_t parent;
    uint32_t read_ticks; /* when the last pid was read, or shortly before */
    ssize_t filled;
    ssize_t at;
    char text[4096];
};

/* Has the process that was found still this pid? If it was reaped, another may have the pid. */
static bool is_same_process(const struct proctree *tree, pid_t pid)
{
    struct process process;

    if (pid == tree->root && is_ours(tree))
        return true;
    return process_read(&process, pid) &&
           process.started ==
               (pid == tree->root ? tree->root_started : place_of(tree, pid)->started);
}

/* Returns 0 at the end of the list, or if the list can't be read or may be another process's. */
static pid_t children_next(struct children *children, struct proctree *tree)
{
    pid_t pid = 0;
    char c;

    for (;;) {
        if (children->at == children->filled) {
            children->at = 0;
            children->read_ticks = ticks_now(tree);
            children->filled = read(children->fd, children->text, sizeof children->text);
            if (children->filled == 0)
                return 0;
            if (children->filled < 0 || !is_same_process(tree, children->parent)) {
                note_shortage(tree);
                return 0;
            }
        }
        c = children->text[children->at++];
        if (c >= '0' && c <= '9')
            pid = pid * 10 + (c - '0');
        else if (pid > 0)
            return pid;
    }
}

/*
 * Is the process in the tree? We have read its pid in `children` or, if that is NULL, in /proc. If
 * the process started only after we read `children`, that pid was another's: so the process must
 * have the parent whose children we read, or be our orphan.
 */
static bool is_descendant(const struct proctree *tree, const struct process *process,
                          const struct children *children)
{
    if (children == NULL)
        return process->parent == tree->root || is_listed(tree, process->parent);
    return is_before(process->started, children->read_ticks) ||
           process->parent == children->parent || (is_ours(tree) && process->parent == tree->root);
}

static void find(struct proctree *tree, pid_t pid, const struct children *children)
{
    struct process process;

    if (is_listed(tree, pid) || (!tree->spares && is_spared(tree, pid)))
        return;
    if (!process_read(&process, pid))
        note_shortage(tree);
    else if (!process.is_dead && is_descendant(tree, &process, children))
        list(tree, &process);
}

static void find_children_of_thread(struct proctree *tree, pid_t parent, pid_t thread)
{
    struct children children = {.parent = parent};
    char path[64];
    pid_t pid;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)thread);
    children.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (children.fd < 0) {
        note_shortage(tree);
        return;
    }
    while ((pid = children_next(&children, tree)) > 0)
        find(tree, pid, &children);
    close(children.fd);
}

static void find_children(struct proctree *tree, pid_t pid)
{
    struct pids threads;
    char path[64];
    pid_t thread;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    if (!pids_open(&threads, path)) {
        note_shortage(tree);
        return;
    }
    while ((thread = pids_next(&threads)) > 0)
        find_children_of_thread(tree, pid, thread);
    if (threads.filled < 0)
        note_shortage(tree);
    close(threads.fd);
}

static void find_by_lists(struct proctree *tree)
{
    size_t at;
    pid_t pid;

    find_children(tree, tree->root);
    for (at = 0; at < tree->n; at++) {
        pid = tree->list[at];
        if (place_of(tree, pid)->has_threads)
            find_children(tree, pid);
        else
            find_children_of_thread(tree, pid, pid);
    }
}

/*
 * If the kernel has no lists of children: add each process of the machine whose parent is in our
 * list, and repeat that until a round adds no process.
 */
static void find_by_search(struct proctree *tree)
{
    struct pids all;
    size_t before;
    pid_t pid;

    do {
        before = tree->n;
        if (!pids_open(&all, "/proc")) {
            note_shortage(tree);
            return;
        }
        while ((pid = pids_next(&all)) > 0)
            find(tree, pid, NULL);
        close(all.fd);
    } while (tree->n > before);
}

void proctree_forget(struct proctree *tree)
{
    while (tree->n > 0)
        place_of(tree, tree->list[--tree->n])->is_listed = false;
}

/*
 * If the root is another process, its orphans become children of a process outside of the tree. So
 * processes that the last walk has listed are listed again as long as they live, or can't be read
 * for lack of a descriptor or memory. The same reading of a process is compared and listed: between
 * two readings another process could get the pid.
 */
static void begin_walk(struct proctree *tree)
{
    size_t n = is_ours(tree) ? 0 : tree->n;
    struct process process;
    size_t i;

    tree->is_short = false;
    proctree_forget(tree);
    for (i = 0; i < n; i++) {
        struct proctree_place *place = place_of(tree, tree->list[i]);

        if (process_read(&process, place->pid)) {
            if (!process.is_dead && process.started == place->started)
                list(tree, &process);
        } else if (is_shortage()) {
            tree->is_short = true;
            place->is_listed = true;
            tree->list[tree->n++] = place->pid;
        }
    }
}

static size_t count(const struct proctree *tree)
{
    return tree->n + (tree->root_fd >= 0 && !proctree_root_has_ended(tree));
}

size_t proctree_look(struct proctree *tree)
{
    begin_walk(tree);
    if (tree->has_lists)
        find_by_lists(tree);
    else
        find_by_search(tree);
    return count(tree);
}

/* ---- listing our own children ---- */

typedef void act_on_child(struct proctree *tree, pid_t pid, void *context);

/* Acts on each child as soon as its pid was read: a moment later it may have forked and exited. */
static void each_child(struct proctree *tree, act_on_child *act, void *context)
{
    struct children children = {.fd = tree->children, .parent = tree->root};
    struct process process;
    struct pids all;
    pid_t pid;

    if (tree->has_lists) {
        lseek(children.fd, 0, SEEK_SET);
        while ((pid = children_next(&children, tree)) > 0)
            act(tree, pid, context);
    } else if (pids_open(&all, "/proc")) {
        while ((pid = pids_next(&all)) > 0)
            if (process_read(&process, pid) && process.parent == tree->root)
                act(tree, pid, context);
        close(all.fd);
    }
}

/* ---- sending TERM and other signals to the tree ---- */

/* True if a write to cgroup.kill kills the tree: then it doesn't matter that kill(2) gave EPERM. */
static bool is_in_cgroup(const struct proctree *tree)
{
    return tree->cgroup != NULL && tree->cgroup->kill_fd >= 0;
}

/*
 * Beside some thousand processes that run because they got a signal, this process would seldom get
 * a processor, and could send KILL after the lease's end. So it takes the lowest real-time priority
 * while it sends signals, if it may (mostly as root). It keeps another policy than SCHED_OTHER, as
 * the tree's processes may have a real-time priority, too.
 */
static bool raise_priority(void)
{
    const struct sched_param lowest = {.sched_priority = 1};

    return sched_getscheduler(0) == SCHED_OTHER && sched_setscheduler(0, SCHED_FIFO, &lowest) == 0;
}

static void lower_priority(void)
{
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){.sched_priority = 0});
}

/*
 * Sends a signal to a process that a walk has found. False: the process has ended, or has another
 * parent now, and the next walk may find it. Its pid may be another process's by now: so we open a
 * pidfd, then compare start time and parent, and then send the signal by the pidfd. Our own
 * children keep their pids until we reap them, so kill(2) is safe.
 */
static bool signal_one(struct proctree *tree, pid_t pid, int number)
{
    const struct proctree_place *place = place_of(tree, pid);
    struct process process;
    int failed = 0;
    int fd = -1;

    if (!is_ours(tree) || place->parent != tree->root) {
        fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd < 0 && errno == ESRCH)
            return false;
        if (!process_read(&process, pid) || process.started != place->started ||
            (is_ours(tree) && process.parent != place->parent && process.parent != tree->root))
            failed = ESRCH;
    }
    /* no pidfd (no free descriptor, Linux before 5.3): kill(2), which may hit another process */
    if (!failed && (fd < 0 ? kill(pid, number)
                           : (int)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0)) != 0)
        failed = errno;
    fds_close(&fd);
    if (failed == EPERM && !is_in_cgroup(tree))
        tree->refused = pid;
    return failed != ESRCH;
}

void proctree_signal_child(struct proctree *tree, pid_t child, int number)
{
    if (kill(child, number) != 0 && errno == EPERM)
        tree->refused = child;
}

bool proctree_signal_root(struct proctree *tree, int number)
{
    if (syscall(SYS_pidfd_send_signal, tree->root_fd, number, NULL, 0) == 0 || errno != EPERM)
        return true;
    tree->refused = tree->root;
    return false;
}

size_t proctree_signal(struct proctree *tree, int number)
{
    size_t i;

    proctree_look(tree);
    for (i = 0; i < tree->n; i++)
        signal_one(tree, tree->list[i], number);
    if (tree->root_fd >= 0)
        proctree_signal_root(tree, number);
    return count(tree);
}

/*
 * Walks the tree, and sends TERM to each process that has not got it. True: a process got TERM, and
 * may have forked another one after the walk, so the caller calls this function again.
 */
static bool term_all(struct proctree *tree)
{
    uint32_t last = (uint32_t)(tree->term_ms * tree->hertz / 1000);
    bool was_any = false;
    size_t i;

    proctree_look(tree);
    for (i = 0; i < tree->n; i++) {
        struct proctree_place *place = place_of(tree, tree->list[i]);

        if (place->mark == MARK_TERMED || is_before(last, place->started))
            continue;
        if (signal_one(tree, place->pid, SIGTERM))
            place->mark = MARK_TERMED;
        was_any = true;
    }
    if (tree->root_fd >= 0 && !tree->root_is_termed && !tree->is_short) {
        proctree_signal_root(tree, SIGTERM);
        tree->root_is_termed = was_any = true;
    }
    return was_any;
}

size_t proctree_term(struct proctree *tree, int64_t deadline_ms)
{
    int64_t began_ms;
    int64_t now_ms = rlock_clock_ms();
    bool is_raised = raise_priority();
    int i = 0;

    if (tree->term_ms == 0)
        tree->term_ms = now_ms;
    do {
        began_ms = now_ms;
        if (!term_all(tree))
            break;
        now_ms = rlock_clock_ms();
    } while (++i < TERM_WALKS && now_ms < deadline_ms - (now_ms - began_ms));
    if (is_raised)
        lower_priority();
    return count(tree);
}

/* ---- sending KILL until no process is left ---- */

/*
 * A chain of processes that fork and exit may be faster than a walk. The chain's last process
 * becomes our child, and the chain ends if that process gets KILL between two forks. So we reap
 * first, and send KILL as soon as a pid is read, also to the group, at real-time priority. 64 such
 * chains on two busy processors end within 0.7 s.
 */
struct killing {
    proctree_reaped *reaped;
    void *context;
    bool is_any;       /* a child was found, or reaped: its orphans become our children */
    size_t n_children; /* how many children this round found, without spared ones */
};

static void note_end(const struct killing *killing, pid_t pid, int status)
{
    if (!WIFSTOPPED(status) && killing->reaped != NULL)
        killing->reaped(pid, status, killing->context);
}

/* Reaps zombies, because they make the list of our children longer to read. */
static void reap(struct killing *killing)
{
    int status;
    pid_t pid = 1;
    int i;

    for (i = 0; i < REAPED_AT_ONCE && pid > 0; i++) {
        pid = waitpid(-1, &status, WNOHANG | __WALL);
        if (pid > 0)
            note_end(killing, pid, status);
    }
    if (i > 1)
        killing->is_any = true;
}

/*
 * Kills a child, and its process group with it. Not the group in the session that rlock was started
 * in, where it may have processes from outside the tree. Every other session was begun inside the
 * tree, and so were all of its groups.
 */
static void end_child(struct proctree *tree, pid_t pid, void *context)
{
    struct killing *killing = context;
    int status;

    if (is_spared(tree, pid))
        return;
    killing->is_any = true;
    if (tree->has_spared && waitpid(pid, &status, WNOHANG | __WALL) == pid) {
        note_end(killing, pid, status);
        return;
    }
    killing->n_children++;
    if (kill(pid, SIGKILL) != 0 && errno == EPERM && !is_in_cgroup(tree))
        tree->refused = pid;
    else if (getsid(pid) != tree->session)
        kill(-pid, SIGKILL);
}

static void end_children(struct proctree *tree, struct killing *killing)
{
    if (!tree->has_spared)
        reap(killing);
    each_child(tree, end_child, killing);
}

/*
 * A process that got KILL needs a processor to end, and gets none while we run with real-time
 * priority. So we pause after each round of KILL to all our children. The more children got KILL,
 * the longer we take to send it and they take to end, so the pause grows with their number.
 */
static void give_way(size_t n_children)
{
    struct timespec pause = {.tv_nsec = MOMENT_NS + (long)n_children * MOMENT_EACH_NS};

    ppoll(NULL, 0, &pause, NULL);
}

/*
 * KILL to our children reaches the whole tree in the end, as orphans become our children. A walk
 * reaches the tree sooner, but uses the processor that the processes need to end. So after each
 * walk we make none for four times as long as it took.
 */
static bool kill_by_walk(struct proctree *tree)
{
    int64_t began_ms = rlock_clock_ms();
    int64_t now_ms;

    if (began_ms < tree->kill_walk_ms)
        return false;
    proctree_signal(tree, SIGKILL);
    now_ms = rlock_clock_ms();
    tree->kill_walk_ms = now_ms + WALK_PAUSES * (now_ms - began_ms);
    return tree->n > 0;
}

bool proctree_kill(struct proctree *tree, proctree_reaped *reaped, void *context)
{
    struct killing killing = {.reaped = reaped, .context = context};
    int64_t began_ms = rlock_clock_ms();
    unsigned round = 0;
    bool is_raised = raise_priority();

    if (tree->kill_ms == 0)
        tree->kill_ms = began_ms;
    tree->refused = 0; /* a process that refused TERM may have ended since */
    do {
        if (tree->cgroup != NULL)
            cgroup_kill(tree->cgroup);
        killing.is_any = false;
        killing.n_children = 0;
        if (is_ours(tree))
            end_children(tree, &killing);
        if (is_ours(tree) ? round % WALK_EVERY == 1 && kill_by_walk(tree)
                          : proctree_signal(tree, SIGKILL) > 0 || tree->is_short)
            killing.is_any = true;
        if (killing.is_any)
            give_way(killing.n_children);
        round++;
    } while (killing.is_any && rlock_clock_ms() < began_ms + KILL_ROUND_MS);
    if (is_raised)
        lower_priority();
    return killing.is_any;
}

int64_t proctree_kill_again_ms(const struct proctree *tree)
{
    int64_t now_ms = rlock_clock_ms();

    if (tree->kill_ms == 0 || now_ms < tree->kill_ms + KILL_FAST_MS)
        return now_ms;
    return now_ms + (tree->refused != 0 ? KILL_REFUSED_PAUSE_MS : KILL_PAUSE_MS);
}

/* ---- memory, root and spared processes of the tree ---- */

/*
 * Returns how many places the array needs for each pid to have one. PLACES_MAX would always be
 * enough, but takes 84 MB, which the kernel counts as used if it doesn't overcommit memory
 * (vm.overcommit_memory=2).
 */
static size_t places_needed(void)
{
    char text[32];
    size_t room = PLACES_MIN;

    if (slurp("/proc/sys/kernel/pid_max", text, sizeof text) <= 0)
        return PLACES_MAX;
    while (room < PLACES_MAX && room < strtoul(text, NULL, 10))
        room *= 2;
    return room;
}

int proctree_reserve(struct proctree *tree)
{
    size_t room = places_needed();
    size_t each = sizeof *tree->place + sizeof *tree->list;
    void *memory;

    do
        memory = mmap(NULL, room * each, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    while (memory == MAP_FAILED && (room /= 2) >= PLACES_MIN);
    if (memory == MAP_FAILED)
        return ENOMEM;
    *tree = (struct proctree){.place = memory,
                              .list = (pid_t *)((struct proctree_place *)memory + room),
                              .room = room,
                              .hertz = sysconf(_SC_CLK_TCK),
                              .session = getsid(0),
                              .root_fd = -1,
                              .children = -1};
    return 0;
}

void proctree_set_root(struct proctree *tree)
{
    madvise(tree->place, tree->room * sizeof *tree->place, MADV_DONTNEED); /* fills it with 0 */
    /* the caller is the main thread, so this is /proc/self/task/PID/children */
    tree->children = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    tree->has_lists = tree->children >= 0;
    tree->root = getpid();
    tree->has_spared = false;
    tree->term_ms = 0;
    tree->kill_walk_ms = 0;
    tree->kill_ms = 0;
    tree->refused = 0;
    tree->n = 0;
    tree->is_short = false;
}

bool proctree_root_has_ended(const struct proctree *tree)
{
    struct pollfd process = {.fd = tree->root_fd, .events = POLLIN};

    return poll(&process, 1, 0) > 0;
}

/* Notes when the root started. Returns 0, or an errno. */
static int note_root(struct proctree *tree)
{
    struct process process;
    int failed = 0;

    if (syscall(SYS_pidfd_send_signal, tree->root_fd, 0, NULL, 0) != 0)
        return errno;
    if (process_read(&process, tree->root))
        tree->root_started = process.started;
    else
        failed = is_shortage() ? errno : EACCES;
    /* if the root has ended, the start time may be that of another process with its pid */
    return proctree_root_has_ended(tree) ? ESRCH : failed;
}

int proctree_bind(struct proctree *tree, pid_t root)
{
    int failed = proctree_reserve(tree);

    if (failed)
        return failed;
    tree->root = root;
    tree->has_lists = access("/proc/thread-self/children", R_OK) == 0;
    tree->root_fd = (int)syscall(SYS_pidfd_open, root, 0);
    return tree->root_fd < 0 ? errno : note_root(tree);
}

void proctree_set_cgroup(struct proctree *tree, const struct cgroup *cgroup)
{
    tree->cgroup = cgroup;
}

static void begin_to_spare(struct proctree *tree)
{
    proctree_forget(tree);
    tree->spares = true;
    tree->is_full = false;
}

/* False: there was no room to mark a process. Empties the list, which has only spared ones. */
static bool end_to_spare(struct proctree *tree)
{
    tree->has_spared = tree->has_spared || tree->n > 0;
    tree->spares = false;
    proctree_forget(tree);
    return !tree->is_full;
}

bool proctree_spare(struct proctree *tree, pid_t pid)
{
    struct process process;

    begin_to_spare(tree);
    if (process_read(&process, pid))
        list(tree, &process);
    else
        note_shortage(tree);
    return end_to_spare(tree);
}

/* Spares a child: with `is_first` any, else only one that is spared already. */
static void spare(struct proctree *tree, pid_t pid, void *is_first)
{
    struct process process;

    if ((*(bool *)is_first || is_spared(tree, pid)) && process_read(&process, pid))
        list(tree, &process);
}

/*
 * The descendants of spared children are marked one by one: when a spared child ends, its orphans
 * become our children, and would otherwise be taken for orphans of the command's tree.
 */
bool proctree_spare_children(struct proctree *tree, bool is_first)
{
    size_t at;

    begin_to_spare(tree);
    each_child(tree, spare, &is_first);
    for (at = 0; at < tree->n && tree->has_lists; at++)
        find_children(tree, tree->list[at]);
    return end_to_spare(tree);
}
