/* SPDX-License-Identifier: MIT */
/*
 * clockshim: gives a server a wall clock of its own, as a server on another machine has.
 *
 * usage: LD_PRELOAD=clockshim.so CLOCKSHIM_BOOTED=US redis-server ...
 *        LD_PRELOAD=clockshim.so CLOCKSHIM=FILE redis-server ...
 *
 * With CLOCKSHIM_BOOTED the clock shows CLOCK_BOOTTIME and US microseconds more: setting this
 * machine's clock doesn't set it. With CLOCKSHIM a test sets it while the server runs:
 *
 * FILE holds an int64_t, the microseconds to add to each reading of CLOCK_REALTIME. It is mapped,
 * so a new number counts at once. With CLOCKSHIM_STILL=1 the clock shows that number, and stands
 * still.
 *
 * Why not libfaketime: Debian's redis-server uses jemalloc, under which libfaketime calls itself
 * without end.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t nothing;
static const volatile int64_t *added_us = &nothing;
static int is_still;      /* CLOCKSHIM_STILL=1: the clock shows *added_us, and not the real time */
static int64_t booted_us; /* 0: the clock follows CLOCK_REALTIME */

__attribute__((constructor)) static void choose(void)
{
    const char *booted = getenv("CLOCKSHIM_BOOTED");
    const char *path = getenv("CLOCKSHIM");
    void *map;
    int fd;

    /* not by strtoll(3), for which a newer C library has a name that older ones lack */
    for (; booted != NULL && *booted != '\0'; booted++)
        booted_us = booted_us * 10 + (*booted - '0');
    if (booted_us != 0) {
        added_us = &booted_us;
        return;
    }
    fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    map = mmap(NULL, sizeof *added_us, PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED)
        added_us = map;
    is_still = map != MAP_FAILED && getenv("CLOCKSHIM_STILL") != NULL;
    close(fd);
}

static void add(struct timespec *t)
{
    int64_t us = *added_us;

    if (is_still)
        *t = (struct timespec){.tv_sec = 0};
    t->tv_sec += (time_t)(us / 1000000);
    t->tv_nsec += (long)(us % 1000000 * 1000);
    if (t->tv_nsec < 0) {
        t->tv_nsec += 1000000000;
        t->tv_sec--;
    }
    if (t->tv_nsec >= 1000000000) {
        t->tv_nsec -= 1000000000;
        t->tv_sec++;
    }
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    clockid_t base = is_wall && booted_us != 0 ? CLOCK_BOOTTIME : clock;
    int result = (int)syscall(SYS_clock_gettime, base, t);

    if (result == 0 && is_wall)
        add(t);
    return result;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

/*
 * Valkey 9 reads the wall clock once a millisecond, and in between counts the processor's ticks, if
 * /proc/cpuinfo says that their rate is constant. So it can't read that file.
 */
FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    return strcmp(path, "/proc/cpuinfo") == 0 ? NULL : fopen(path, mode);
}

time_t time(time_t *seconds)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds != NULL)
        *seconds = now.tv_sec;
    return now.tv_sec;
}
