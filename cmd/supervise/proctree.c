/* SPDX-License-Identifier: MIT */
/*
 * proctree: the descendants of a process: found, signalled and ended.
 *
 * /proc/PID/task/TID/children lists the children of one thread (proc(5)). A kernel built without
 * it makes us look at the parent of every process there is.
 *
 * A walk goes level by level with a list, so that neither the depth of a tree nor the number of
 * children is limited by a stack. Zombies fill no list.
 *
 * A number that was read from a list may be another process's by the time it is used:
 *
 * 1. We read that C is a child of P.
 * 2. C ends, and P reaps it.
 * 3. A process that has nothing to do with us gets the number of C.
 * 4. We signal that number.
 *
 * So a signal goes through a pidfd, and only if the process that has the number *after* the pidfd
 * was opened is the one that was listed: it started before the list was read, or its parent is
 * P or we. Whoever has a number has it from its start to its end, so one that started before the
 * list was read is the one that was listed. Only our own children are signalled by number: it is
 * theirs until we reap them.
 *
 * What forks and ends again and again, faster than a walk, is caught by its head. We are the
 * subreaper, so when a process ends, the one it started becomes our child: the list of our own
 * children has the living head of each such chain. A fork that meets a KILL is not done, as fork(2)
 * looks for signals under the lock that they are sent under. So a chain ends when its head is hit
 * once between two forks. What makes that likely:
 *
 * - The dead are reaped first, so that the list is short; it is read from a descriptor that stays
 *   open, and each process in it gets KILL as soon as it was read. A look at 64 heads is some
 *   100 us, and heads that wait for a processor meanwhile can't get away.
 * - Who has got KILL already doesn't get it again.
 * - A head with a session of its own gets KILL with its process group: that is one step for the
 *   kernel, and a head that was just forked gets KILL while it is still in its parent's group.
 * - We run with real-time priority where we may, and else sleep only while all that are known
 *   have got KILL and need the processor to end.
 *
 * Measured on two processors with a load of 20: 64 heads of clone(CLONE_VM) with setsid(2) end
 * within 0.7 s, mostly 0.1 s; before, by walks 5 ms apart, after 1 to 6 s, or not at all.
 * ptrace(2) with TRACEFORK and RLIMIT_NPROC have to hit the head between two forks as well, and
 * gain nothing over KILL. A cgroup has no such race, but a process is seldom allowed one, and to
 * begin one for each command costs each start.
 */
#include "supervise/proctree.h"

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

#define PLACES_MAX (1U << 22) /* no Linux has more processes (PID_MAX_LIMIT) */
#define PLACES_MIN (1U << 15)
#define TERM_WALKS 100 /* until a walk finds nobody new, that is */
#define REAPED_AT_ONCE 4096
#define MOMENT_NS 50000
#define WALK_EVERY 32 /* looks at our own children, then one at the whole tree */
#define WALK_MASK 0x07ffffffU
#define LIST_BYTES 4096 /* of a list of children, read at once */

/* Of each process number; where there is little memory several numbers share one. */
struct proctree_place {
    pid_t pid;
    pid_t parent;
    uint32_t started;   /* in ticks of the system's clock; the lower bits */
    unsigned walk : 27; /* that found it last */
    unsigned is_spared : 1;
    unsigned is_kin : 1; /* is spared as it was below a child of ours that is */
    unsigned is_termed : 1;
    unsigned is_killed : 1; /* a child of ours that has got KILL */
    unsigned has_threads : 1;
};

/* ---- small files of /proc ---- */

/* The numbers among the names in a directory, one after the other. */
struct numbers {
    int fd;
    long filled;
    long at;
    _Alignas(8) char entries[2048];
};

static bool numbers_open(struct numbers *numbers, const char *path)
{
    numbers->filled = numbers->at = 0;
    numbers->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return numbers->fd >= 0;
}

static pid_t numbers_next(struct numbers *numbers)
{
    for (;;) {
        struct dirent64 *entry;
        long number;

        if (numbers->at >= numbers->filled) {
            numbers->filled =
                syscall(SYS_getdents64, numbers->fd, numbers->entries, sizeof numbers->entries);
            numbers->at = 0;
            if (numbers->filled <= 0)
                return 0;
        }
        entry = (struct dirent64 *)(numbers->entries + numbers->at);
        numbers->at += entry->d_reclen;
        number = strtol(entry->d_name, NULL, 10);
        if (number > 0)
            return (pid_t)number;
    }
}

/* A small file of /proc as text; -1 if it isn't there. */
static ssize_t slurp(const char *path, char *text, size_t room)
{
    size_t used = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

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

/* What comes behind the name in /proc/PID/stat, which itself may hold anything. */
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

    /* %*c: the state, which the flags are the sixth field behind */
    (void)!sscanf(behind_name(pid, text, sizeof text), "%*c %*d %*d %*d %*d %*d %u", &flags);
    return flags;
}

pid_t proctree_tracer(pid_t thread)
{
    static const char name[] = "\nTracerPid:";
    char path[64];
    char text[2048];
    const char *found;

    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    if (slurp(path, text, sizeof text) <= 0 || (found = strstr(text, name)) == NULL)
        return 0;
    return (pid_t)strtol(found + sizeof name - 1, NULL, 10);
}

/* ---- one process ---- */

struct process {
    pid_t pid;
    pid_t parent;
    uint32_t started;
    bool is_dead; /* a zombie, of which no thread is left */
    bool has_threads;
};

/* The fields of proc_pid_stat(5), of which the third is the first behind the name. */
enum { STAT_STATE = 3, STAT_PARENT = 4, STAT_THREADS = 20, STAT_STARTED = 22 };

/* False: there is none of this number. */
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

/* The time that a process is said to have started at, if it starts now. */
static uint32_t ticks_now(const struct proctree *tree)
{
    return (uint32_t)(rlock_clock_ms() * tree->hertz / 1000);
}

static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* ---- what is known of each ---- */

static struct proctree_place *place_of(const struct proctree *tree, pid_t pid)
{
    return &tree->place[(size_t)pid & (tree->room - 1)];
}

static bool is_ours(const struct proctree *tree)
{
    return tree->root == getpid();
}

/* A child of ours that is to be left alone keeps its number, as we don't reap it. */
static bool is_spared(const struct proctree *tree, pid_t pid)
{
    const struct proctree_place *place = place_of(tree, pid);
    struct process process;

    if (!place->is_spared || place->pid != pid)
        return false;
    if (is_ours(tree) && !place->is_kin)
        return true;
    return !process_read(&process, pid) || process.started == place->started;
}

static bool was_found(const struct proctree *tree, pid_t pid)
{
    const struct proctree_place *place = place_of(tree, pid);

    return place->pid == pid && place->walk == tree->walk;
}

/* A process that was found; what is known of it stays. False: there is no room. */
static bool note(struct proctree *tree, const struct process *process)
{
    struct proctree_place *place = place_of(tree, process->pid);
    bool is_same = place->pid == process->pid && place->started == process->started;

    if (place->pid != process->pid && (place->is_spared || place->walk == tree->walk))
        return false;
    if (tree->n == tree->room)
        return false;
    place->pid = process->pid;
    place->parent = process->parent;
    place->started = process->started;
    place->walk = tree->walk & WALK_MASK;
    place->is_spared = false;
    place->is_termed = place->is_termed && is_same;
    place->is_killed = place->is_killed && is_same;
    place->has_threads = process->has_threads;
    tree->list[tree->n++] = process->pid;
    return true;
}

static bool note_spared(struct proctree *tree, const struct process *process, bool is_kin)
{
    struct proctree_place *place = place_of(tree, process->pid);

    if (tree->n == tree->room || (place->is_spared && place->pid != process->pid))
        return false;
    *place = (struct proctree_place){.pid = process->pid,
                                     .parent = process->parent,
                                     .started = process->started,
                                     .is_spared = true,
                                     .is_kin = is_kin,
                                     .has_threads = process->has_threads};
    tree->list[tree->n++] = process->pid;
    tree->has_spared = true;
    return true;
}

/* ---- a walk ---- */

struct walk {
    struct proctree *tree;
    bool finds_all; /* zombies, too, and the children of each thread for certain */
    bool spares;    /* who is found is left alone from now on */
    bool is_whole;
    proctree_see *see; /* NULL: no thread is shown */
    void *context;
};

/*
 * Is the process that has a number now the one that was listed, at `listed`, as a child of
 * `parent`? One that started in the same tick must still be there, below it or below us.
 */
static bool was_listed(const struct proctree *tree, const struct process *process, pid_t parent,
                       uint32_t listed)
{
    return is_before(process->started, listed) || process->parent == parent ||
           (is_ours(tree) && process->parent == tree->root);
}

static void find(struct walk *walk, pid_t pid, pid_t parent, uint32_t listed)
{
    struct process process;

    if (was_found(walk->tree, pid) || is_spared(walk->tree, pid))
        return;
    if (!process_read(&process, pid)) {
        /* where /proc hides the processes of others (hidepid), this one may be there and run */
        if (walk->finds_all && (kill(pid, 0) == 0 || errno == EPERM))
            walk->is_whole = false;
        return;
    }
    if (process.is_dead && !walk->finds_all)
        return;
    if (!was_listed(walk->tree, &process, parent, listed))
        return;
    if (walk->spares ? !note_spared(walk->tree, &process, true) : !note(walk->tree, &process))
        walk->is_whole = false;
}

/* False: it was reaped since it was found, and its number may be another's. */
static bool is_still(const struct proctree *tree, pid_t pid)
{
    struct process process;

    if (pid == tree->root && is_ours(tree))
        return true;
    return process_read(&process, pid) &&
           process.started ==
               (pid == tree->root ? tree->root_started : place_of(tree, pid)->started);
}

static void find_children_of_thread(struct walk *walk, pid_t parent, pid_t thread)
{
    char path[64];
    char text[LIST_BYTES];
    pid_t pid = 0;
    uint32_t listed;
    ssize_t n;
    ssize_t i;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    while (listed = ticks_now(walk->tree), (n = read(fd, text, sizeof text)) > 0) {
        if (!is_still(walk->tree, parent))
            break;
        for (i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            if (pid > 0)
                find(walk, pid, parent, listed);
            pid = 0;
        }
    }
    close(fd);
}

/* Shows each thread before its children are looked for, if they are. */
static void each_thread(struct walk *walk, pid_t pid, bool finds)
{
    bool is_shown = walk->see != NULL && pid != walk->tree->root;
    struct numbers threads;
    char path[64];
    pid_t thread;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    if (!numbers_open(&threads, path)) {
        if (is_shown)
            walk->see(pid, walk->context); /* it has ended, or we are shown nothing of it */
        else if (pid == walk->tree->root)
            walk->is_whole = false;
        return;
    }
    while ((thread = numbers_next(&threads)) > 0) {
        if (is_shown)
            walk->see(thread, walk->context);
        if (finds)
            find_children_of_thread(walk, pid, thread);
    }
    close(threads.fd);
}

static void find_by_lists(struct walk *walk)
{
    struct proctree *tree = walk->tree;
    size_t at;
    pid_t pid;

    each_thread(walk, tree->root, true);
    for (at = 0; at < tree->n; at++) {
        pid = tree->list[at];
        if (place_of(tree, pid)->has_threads) {
            each_thread(walk, pid, true);
            continue;
        }
        if (walk->see != NULL)
            walk->see(pid, walk->context);
        find_children_of_thread(walk, pid, pid);
    }
}

/* Where the kernel has no lists: all whose parent was found, until nobody is added. */
static void find_by_search(struct walk *walk)
{
    struct proctree *tree = walk->tree;
    struct process process;
    struct numbers all;
    size_t before;
    pid_t pid;

    do {
        before = tree->n;
        if (!numbers_open(&all, "/proc")) {
            walk->is_whole = false;
            return;
        }
        while ((pid = numbers_next(&all)) > 0) {
            if (was_found(tree, pid) || is_spared(tree, pid) || !process_read(&process, pid))
                continue;
            if (process.parent != tree->root && !was_found(tree, process.parent))
                continue;
            if (process.is_dead && !walk->finds_all)
                continue;
            if (!note(tree, &process))
                walk->is_whole = false;
            else if (walk->see != NULL)
                each_thread(walk, pid, false);
        }
        close(all.fd);
    } while (tree->n > before);
}

/* Nobody tells us of the orphans of somebody else: who was found stays as long as it lives. */
static void begin(struct proctree *tree)
{
    size_t n = tree->n;
    struct process process;
    size_t i;

    tree->walk = (tree->walk + 1) & WALK_MASK;
    tree->walk += tree->walk == 0;
    tree->n = 0;
    for (i = 0; i < n && !is_ours(tree); i++)
        if (is_still(tree, tree->list[i]) && process_read(&process, tree->list[i]) &&
            !process.is_dead)
            note(tree, &process);
}

static void go(struct walk *walk)
{
    begin(walk->tree);
    if (walk->tree->has_lists)
        find_by_lists(walk);
    else
        find_by_search(walk);
}

size_t proctree_look(struct proctree *tree)
{
    go(&(struct walk){.tree = tree});
    return tree->n;
}

bool proctree_each_thread(struct proctree *tree, bool upwards, proctree_see *see, void *context)
{
    struct walk walk = {.tree = tree, .finds_all = true, .is_whole = true, .context = context};
    size_t at;

    walk.see = upwards ? NULL : see;
    go(&walk);
    walk.see = see;
    for (at = upwards ? tree->n : 0; at > 0; at--)
        each_thread(&walk, tree->list[at - 1], false);
    return walk.is_whole;
}

/* ---- our own children ---- */

typedef void act_on_child(struct proctree *tree, pid_t pid, void *context);

/* Each as soon as it was read: what forks and ends doesn't wait for us. */
static void each_child(struct proctree *tree, act_on_child *act, void *context)
{
    struct process process;
    struct numbers all;
    char text[LIST_BYTES];
    pid_t pid = 0;
    ssize_t n;
    ssize_t i;

    if (!tree->has_lists) {
        if (!numbers_open(&all, "/proc"))
            return;
        while ((pid = numbers_next(&all)) > 0)
            if (process_read(&process, pid) && process.parent == getpid())
                act(tree, pid, context);
        close(all.fd);
        return;
    }
    lseek(tree->children, 0, SEEK_SET);
    while ((n = read(tree->children, text, sizeof text)) > 0)
        for (i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            if (pid > 0)
                act(tree, pid, context);
            pid = 0;
        }
}

/* ---- signals ---- */

/* Its processes are killed by the kernel, whoever they run as. */
static bool is_in_cgroup(const struct proctree *tree)
{
    return tree->cgroup != NULL && tree->cgroup->kill_fd >= 0;
}

/* One that was found. False: it isn't there any more, or has moved, and may be found elsewhere. */
static bool signal_one(struct proctree *tree, pid_t pid, int number)
{
    const struct proctree_place *place = place_of(tree, pid);
    struct process process;
    int failed = 0;
    int fd;

    if (is_ours(tree) && place->parent == tree->root) {
        failed = kill(pid, number) == 0 ? 0 : errno;
    } else {
        fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd < 0 && errno == ESRCH)
            return false;
        if (!process_read(&process, pid) || process.started != place->started ||
            (is_ours(tree) && process.parent != place->parent && process.parent != tree->root))
            failed = ESRCH;
        else if (fd < 0) /* no descriptor, or a kernel before 5.3: it was there a moment ago */
            failed = kill(pid, number) == 0 ? 0 : errno;
        else
            failed = syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0 ? 0 : errno;
        if (fd >= 0)
            close(fd);
    }
    if (failed == EPERM && !is_in_cgroup(tree))
        tree->refused = pid;
    return failed != ESRCH;
}

size_t proctree_signal(struct proctree *tree, int number)
{
    size_t i;

    proctree_look(tree);
    for (i = 0; i < tree->n; i++)
        signal_one(tree, tree->list[i], number);
    return tree->n;
}

/* True: there was somebody to be told, so that others may have been missed. */
static bool term_all(struct proctree *tree)
{
    uint32_t last = (uint32_t)(tree->term_ms * tree->hertz / 1000);
    bool was_any = false;
    size_t i;

    proctree_look(tree);
    for (i = 0; i < tree->n; i++) {
        struct proctree_place *place = place_of(tree, tree->list[i]);

        if (place->is_termed || is_before(last, place->started))
            continue;
        place->is_termed = signal_one(tree, tree->list[i], SIGTERM);
        was_any = true;
    }
    return was_any;
}

size_t proctree_term(struct proctree *tree)
{
    int i;

    if (tree->term_ms == 0)
        tree->term_ms = rlock_clock_ms();
    for (i = 0; i < TERM_WALKS && term_all(tree); i++)
        continue;
    return tree->n;
}

/* ---- KILL ---- */

struct killing {
    proctree_reaped *reaped;
    void *context;
    bool
        is_any; /* child was there; one that has just ended counts, as those it leaves come to us */
    bool is_new; /* one of them had got no KILL before */
};

static void note_end(struct proctree *tree, const struct killing *killing, pid_t pid, int status)
{
    struct proctree_place *place = place_of(tree, pid);

    if (WIFSTOPPED(status))
        return;
    if (place->pid == pid)
        place->is_killed = false; /* the number may be another's from now on */
    if (killing->reaped != NULL)
        killing->reaped(pid, status, killing->context);
}

/* Those that have ended make the list of the living longer to read. */
static void reap(struct proctree *tree, struct killing *killing)
{
    int status;
    pid_t pid = 1;
    int i;

    for (i = 0; i < REAPED_AT_ONCE && pid > 0; i++) {
        pid = waitpid(-1, &status, WNOHANG | __WALL);
        if (pid > 0)
            note_end(tree, killing, pid, status);
    }
    if (i > 1)
        killing->is_any = true;
}

/*
 * A group that a child of ours leads, in a session that was begun below us, has nobody in it who
 * isn't from below us: others could have joined only in the session that rlock was started in.
 */
static void end_child(struct proctree *tree, pid_t pid, void *context)
{
    struct proctree_place *place = place_of(tree, pid);
    struct killing *killing = context;
    int status;

    if (is_spared(tree, pid))
        return;
    killing->is_any = true;
    if (place->pid != pid || !place->is_killed) {
        if (kill(pid, SIGKILL) != 0 && errno == EPERM && !is_in_cgroup(tree)) {
            tree->refused = pid;
            return;
        }
        if (getsid(pid) != tree->session)
            kill(-pid, SIGKILL);
        killing->is_new = true;
        if (!place->is_spared && (place->pid == pid || place->walk != tree->walk)) {
            *place = (struct proctree_place){.pid = pid, .is_killed = true};
        }
    }
    if (tree->has_spared && waitpid(pid, &status, WNOHANG | __WALL) == pid)
        note_end(tree, killing, pid, status);
}

static void end_children(struct proctree *tree, struct killing *killing)
{
    if (!tree->has_spared)
        reap(tree, killing);
    each_child(tree, end_child, killing);
}

bool proctree_kill(struct proctree *tree, int64_t deadline_ms, proctree_reaped *reaped,
                   void *context)
{
    const struct timespec moment = {.tv_nsec = MOMENT_NS};
    const struct sched_param lowest = {.sched_priority = 1};
    struct killing killing = {.reaped = reaped, .context = context};
    unsigned round = 0;
    /* who has a real-time priority already keeps it: ours could be lower than that of the tree */
    bool is_real_time =
        sched_getscheduler(0) == SCHED_OTHER && sched_setscheduler(0, SCHED_FIFO, &lowest) == 0;

    tree->refused = 0; /* whoever couldn't be sent TERM may have ended since */
    do {
        if (tree->cgroup != NULL)
            cgroup_kill(tree->cgroup);
        killing.is_any = killing.is_new = false;
        if (is_ours(tree))
            end_children(tree, &killing);
        if ((!is_ours(tree) || round % WALK_EVERY == 1) && proctree_signal(tree, SIGKILL) > 0)
            killing.is_any = true;
        if (killing.is_any && !killing.is_new)
            ppoll(NULL, 0, &moment, NULL); /* those that have got KILL need a processor to end */
        round++;
    } while (killing.is_any && rlock_clock_ms() < deadline_ms);
    if (is_real_time)
        sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){.sched_priority = 0});
    return killing.is_any;
}

/* ---- from the beginning ---- */

int proctree_reserve(struct proctree *tree)
{
    size_t room = PLACES_MAX;
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
                              .children = -1};
    return 0;
}

void proctree_set_root(struct proctree *tree, pid_t root)
{
    struct process process;
    char path[64];

    if (tree->walk != 0 || tree->has_spared)
        madvise(tree->place, tree->room * sizeof *tree->place, MADV_DONTNEED);
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    tree->children = open(path, O_RDONLY | O_CLOEXEC);
    tree->has_lists = tree->children >= 0;
    if (root != getpid() && tree->has_lists) {
        close(tree->children);
        tree->children = -1;
    }
    tree->root = root;
    tree->has_spared = false;
    tree->term_ms = 0;
    tree->refused = 0;
    tree->n = 0;
    if (root != getpid())
        tree->root_started = process_read(&process, root) ? process.started : 0;
}

void proctree_free(struct proctree *tree)
{
    if (tree->place == NULL)
        return;
    munmap(tree->place, tree->room * (sizeof *tree->place + sizeof *tree->list));
    if (tree->children >= 0)
        close(tree->children);
    tree->children = -1;
    tree->place = NULL;
}

bool proctree_spare(struct proctree *tree, pid_t child)
{
    struct process process;
    bool has_room = !process_read(&process, child) || note_spared(tree, &process, false);

    tree->n = 0; /* it isn't one of the tree */
    return has_room;
}

struct sparing {
    bool is_first;
    bool is_whole;
};

static void spare(struct proctree *tree, pid_t pid, void *context)
{
    struct sparing *sparing = context;
    struct process process;

    if (!sparing->is_first && !is_spared(tree, pid))
        return;
    if (process_read(&process, pid) &&
        !note_spared(tree, &process, place_of(tree, pid)->is_spared && place_of(tree, pid)->is_kin))
        sparing->is_whole = false;
}

/*
 * What is below them is noted by itself: when one of them ends, the processes that it leaves
 * behind become children of ours as those of the command's tree do.
 */
bool proctree_spare_children(struct proctree *tree, bool is_first)
{
    struct sparing sparing = {is_first, true};
    struct walk walk = {.tree = tree, .spares = true, .is_whole = true};
    size_t at;

    tree->n = 0;
    each_child(tree, spare, &sparing);
    for (at = 0; at < tree->n && tree->has_lists; at++)
        each_thread(&walk, tree->list[at], true);
    tree->n = 0;
    return sparing.is_whole && walk.is_whole;
}
