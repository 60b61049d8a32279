/* SPDX-License-Identifier: MIT */
/*
 * guarded: uses a file that a lock protects, and counts other processes that use it at the same
 * time.
 *
 *     guarded MS x:FILE|s:FILE...     use FILE alone (x) or with others (s), for MS
 *     guarded show FILE               print three numbers: how often a process used FILE alone, the
 *                                     most processes that used FILE at the same time, and how many
 *                                     overlaps guarded has counted
 *
 * guarded never waits. If another process uses FILE although one of the two must be alone, guarded
 * counts an overlap; an addition is lost if two that are alone add 1. With TURN_NOTE it prints that
 * and RLOCK_FENCE.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The content of FILE, which all processes map. */
struct guarded {
    volatile long turns;  /* how often the file was used alone */
    atomic_long inside;   /* how many processes use the file now */
    atomic_long most;     /* the greatest value of `inside` so far */
    atomic_long overlaps; /* how often a process used the file though another had to be alone */
};

struct place {
    int fd;
    int alone;  /* x: no other process may use the file */
    long turns; /* the value of guarded->turns when this process began */
    struct guarded *guarded;
};

static void die(const char *what)
{
    perror(what);
    exit(99);
}

static struct place open_place(const char *path)
{
    struct place place = {.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)};

    if (place.fd < 0 || ftruncate(place.fd, sizeof *place.guarded) != 0)
        die(path);
    place.guarded =
        mmap(NULL, sizeof *place.guarded, PROT_READ | PROT_WRITE, MAP_SHARED, place.fd, 0);
    if (place.guarded == MAP_FAILED)
        die(path);
    return place;
}

static void enter(struct place *place)
{
    long most = atomic_load(&place->guarded->most);
    long now;

    if (flock(place->fd, (place->alone ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0)
        atomic_fetch_add(&place->guarded->overlaps, 1);
    now = atomic_fetch_add(&place->guarded->inside, 1) + 1;
    while (now > most && !atomic_compare_exchange_weak(&place->guarded->most, &most, now))
        continue;
    place->turns = place->guarded->turns;
}

static void leave(const struct place *place)
{
    if (place->alone)
        place->guarded->turns = place->turns + 1;
    atomic_fetch_sub(&place->guarded->inside, 1);
    close(place->fd);
}

static void show(const char *path)
{
    struct place place = open_place(path);

    printf("%ld %ld %ld\n", place.guarded->turns, atomic_load(&place.guarded->most),
           atomic_load(&place.guarded->overlaps));
}

int main(int argc, char **argv)
{
    struct place places[8];
    const char *note = getenv("TURN_NOTE");
    const char *fence = getenv("RLOCK_FENCE");
    int n = argc - 2;
    long ms;

    if (n < 1 || n > 8)
        return 99;
    if (strcmp(argv[1], "show") == 0) {
        show(argv[2]);
        return 0;
    }
    for (int i = 0; i < n; i++) {
        places[i] = open_place(argv[i + 2] + 2);
        places[i].alone = argv[i + 2][0] == 'x';
        enter(&places[i]);
    }
    ms = atol(argv[1]);
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    if (note != NULL)
        printf("%s %s\n", note, fence == NULL ? "-" : fence);
    fflush(stdout);
    for (int i = 0; i < n; i++)
        leave(&places[i]);
    return 0;
}
