/* SPDX-License-Identifier: MIT */
/*
 * mutant_switch: reads which mutant is active, and records which mutants a test reaches.
 *
 * The file /tmp/mutant has the number of the active mutant; without the file no mutant is active.
 * Each test has its own file of reached mutants, one byte for each, which all processes of the test
 * map: so the record is complete even if KILL ends a process. bats tests and mutants.py give each
 * test a name in RLOCK_TEST_MARK.
 *
 * The simulator replaces open(2), read(2) and close(2) by its own functions, so this file makes
 * these system calls by syscall(2).
 */
#include "base/mutant_switch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MUTANTS_MAX 65536

static unsigned char not_recorded[MUTANTS_MAX];

unsigned char *mutant_reached = not_recorded;
unsigned mutant_chosen;

static void read_chosen(void)
{
    char digits[16] = "";
    long fd = syscall(SYS_openat, AT_FDCWD, "/tmp/mutant", O_RDONLY);

    if (fd < 0)
        return;
    if (syscall(SYS_read, fd, digits, sizeof digits - 1) > 0)
        mutant_chosen = (unsigned)atoi(digits);
    syscall(SYS_close, fd);
}

static void map_reached(void)
{
    const char *mark = getenv("RLOCK_TEST_MARK");
    char path[200];
    void *map;
    long fd;

    snprintf(path, sizeof path, "/tmp/reached.%s", mark != NULL ? mark : "");
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT, 0666);
    if (fd < 0)
        return;
    fchmod((int)fd, 0666); /* processes of other users record, too */
    if (ftruncate((int)fd, MUTANTS_MAX) == 0) {
        map = mmap(NULL, MUTANTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
        if (map != MAP_FAILED)
            mutant_reached = map;
    }
    syscall(SYS_close, fd);
}

__attribute__((constructor)) static void start(void)
{
    read_chosen();
    if (mutant_chosen == 0)
        map_reached();
}
