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

/* Appends the children of one thread; false where the kernel has no such file. */
static bool add_children_of_thread(pid_t parent, pid_t thread, pid_t *child, size_t room, size_t *n)
{
    char path[64];
    char text[4096];
    char *at = text;
    char *end;
    long pid;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)thread);
    if (slurp(path, text, sizeof text) < 0)
        return false;
    while (*n < room && (pid = strtol(at, &end, 10)) > 0 && *end == ' ') {
        child[(*n)++] = (pid_t)pid;
        at = end + 1;
    }
    return true;
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    char text[512];
    char *after_name;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (slurp(path, text, sizeof text) <= 0)
        return 0;
    after_name = strrchr(text, ')'); /* the name itself may hold anything */
    return after_name == NULL || strlen(after_name) < 4 ? 0
                                                        : (pid_t)strtol(after_name + 4, NULL, 10);
}

static size_t children_by_search(pid_t parent, pid_t *child, size_t room)
{
    struct numbers all;
    size_t n = 0;
    pid_t pid;

    if (!numbers_open(&all, "/proc"))
        return 0;
    while (n < room && (pid = numbers_next(&all)) > 0)
        if (parent_of(pid) == parent)
            child[n++] = pid;
    close(all.fd);
    return n;
}

size_t tree_children(pid_t parent, pid_t *child, size_t room)
{
    struct numbers threads;
    bool is_told = true;
    char path[64];
    size_t n = 0;
    pid_t thread;

    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    if (!numbers_open(&threads, path))
        return 0;
    while (is_told && (thread = numbers_next(&threads)) > 0)
        is_told = add_children_of_thread(parent, thread, child, room, &n);
    close(threads.fd);
    /* a thread that ended while we looked has no file either: the search is right then, too */
    return is_told ? n : children_by_search(parent, child, room);
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
