/* SPDX-License-Identifier: MIT */
/*
 * tree: the descendants of a process, to be signalled as one.
 *
 * /proc/PID/task/TID/children lists the children of one thread (proc(5)). A
 * kernel built without it makes us look at the parent of every process there
 * is. Works between fork and exec and without memory: raw directory entries
 * on the stack.
 */
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX 256 /* deeper ones are reached once those above them have ended */

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

/* Children that were found: so many of the first are passed over, and there is an end of room. */
struct found {
    pid_t *child;
    size_t room;
    size_t n;
    size_t passed_over;
};

static void add(struct found *found, pid_t child)
{
    if (found->passed_over > 0)
        found->passed_over--;
    else if (found->n < found->room)
        found->child[found->n++] = child;
}

/* Adds the children of one thread; false where the kernel has no such file. */
static bool add_children_of_thread(struct found *found, pid_t parent, pid_t thread)
{
    char path[64];
    char text[4096];
    pid_t pid = 0;
    ssize_t n;
    ssize_t i;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (found->n < found->room && (n = read(fd, text, sizeof text)) > 0)
        for (i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            if (pid > 0)
                add(found, pid);
            pid = 0;
        }
    close(fd);
    return true;
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

static pid_t parent_of(pid_t pid)
{
    char text[512];
    const char *behind = behind_name(pid, text, sizeof text);

    return *behind == '\0' ? 0 : (pid_t)strtol(behind + 1, NULL, 10);
}

char tree_state(pid_t thread)
{
    char text[512];

    return *behind_name(thread, text, sizeof text);
}

pid_t tree_tracer(pid_t thread)
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

static void add_by_search(struct found *found, pid_t parent)
{
    struct numbers all;
    pid_t pid;

    if (!numbers_open(&all, "/proc"))
        return;
    while (found->n < found->room && (pid = numbers_next(&all)) > 0)
        if (parent_of(pid) == parent)
            add(found, pid);
    close(all.fd);
}

size_t tree_children(pid_t parent, pid_t *child, size_t room)
{
    struct found found = {.child = child, .room = room};
    struct numbers threads;
    bool is_told = true;
    char path[64];
    pid_t thread;

    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    if (!numbers_open(&threads, path))
        return 0;
    while (is_told && (thread = numbers_next(&threads)) > 0)
        is_told = add_children_of_thread(&found, parent, thread);
    close(threads.fd);
    if (!is_told) {
        /* a thread that ended while we looked has no file either: the search is right then, too */
        found.n = 0;
        add_by_search(&found, parent);
    }
    return found.n;
}

static bool is_among(pid_t pid, const pid_t *list, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (list[i] == pid)
            return true;
    return false;
}

/* Children are listed before their parent is signalled: once it is dead they are elsewhere. */
static size_t signal_below(pid_t parent, int signo, const pid_t *spared, size_t n_spared, int depth)
{
    pid_t child[TREE_CHILDREN_MAX];
    size_t n = tree_children(parent, child, TREE_CHILDREN_MAX);
    size_t i;

    if (depth > 0)
        kill(parent, signo);
    for (i = 0; i < n && depth < DEPTH_MAX; i++)
        if (!is_among(child[i], spared, n_spared))
            signal_below(child[i], signo, NULL, 0, depth + 1);
    return n;
}

size_t tree_signal(pid_t root, int signo, const pid_t *spared, size_t n_spared)
{
    return signal_below(root, signo, spared, n_spared, 0);
}

/* How a walk goes: from the root to the leaves, or back. */
struct walk {
    bool upwards;
    tree_see *see;
    void *context;
};

static bool see_process(pid_t pid, const struct walk *walk, int depth);

/*
 * Those that one thread started; a search, where there is no list, finds what
 * all threads did.
 */
static bool see_children(pid_t parent, pid_t thread, const struct walk *walk, int depth)
{
    pid_t child[TREE_CHILDREN_MAX];
    struct found found = {.child = child, .room = TREE_CHILDREN_MAX};
    size_t seen = 0;
    size_t i;

    do {
        found.n = 0;
        found.passed_over = seen;
        if (!add_children_of_thread(&found, parent, thread) && thread == parent)
            add_by_search(&found, parent);
        if (found.n > 0 && depth == DEPTH_MAX)
            return false;
        for (i = 0; i < found.n; i++)
            if (!see_process(child[i], walk, depth + 1))
                return false;
        seen += found.n;
    } while (found.n == found.room);
    return true;
}

static void see_threads(pid_t pid, const struct walk *walk)
{
    struct numbers threads;
    char path[64];
    pid_t thread;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    if (!numbers_open(&threads, path))
        return;
    while ((thread = numbers_next(&threads)) > 0)
        walk->see(thread, walk->context);
    close(threads.fd);
}

static bool see_process(pid_t pid, const struct walk *walk, int depth)
{
    struct numbers threads;
    bool is_whole = true;
    char path[64];
    pid_t thread;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    if (!numbers_open(&threads, path)) {
        if (depth > 0)
            walk->see(pid, walk->context); /* it has ended, or we are shown nothing of it */
        return depth > 0;
    }
    while (is_whole && (thread = numbers_next(&threads)) > 0) {
        if (depth > 0 && !walk->upwards)
            walk->see(thread, walk->context);
        is_whole = see_children(pid, thread, walk, depth);
    }
    close(threads.fd);
    if (depth > 0 && walk->upwards)
        see_threads(pid, walk);
    return is_whole;
}

bool tree_each_thread(pid_t root, bool upwards, tree_see *see, void *context)
{
    return see_process(root, &(struct walk){upwards, see, context}, 0);
}
