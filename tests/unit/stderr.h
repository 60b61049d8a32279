/* SPDX-License-Identifier: MIT */
/* stderr: catches what a function writes to stderr, which is a pipe meanwhile. */
#ifndef STDERR_H
#define STDERR_H

#include <stdlib.h>
#include <unistd.h>

static struct {
    int before;
    int ends[2];
    char text[8192];
} stderr_now;

static inline void stderr_catch(void)
{
    stderr_now.before = dup(STDERR_FILENO);
    if (pipe(stderr_now.ends) != 0 || dup2(stderr_now.ends[1], STDERR_FILENO) < 0)
        abort();
    close(stderr_now.ends[1]);
}

/* Returns what was written since stderr_catch(), at most what a pipe holds, until the next call. */
static inline const char *stderr_caught(void)
{
    ssize_t n;

    dup2(stderr_now.before, STDERR_FILENO);
    close(stderr_now.before);
    n = read(stderr_now.ends[0], stderr_now.text, sizeof stderr_now.text - 1);
    close(stderr_now.ends[0]);
    stderr_now.text[n > 0 ? n : 0] = '\0';
    return stderr_now.text;
}

#endif
