/* SPDX-License-Identifier: MIT */
/* files: small files and environment variables that a test sets, and what a file has. */
#ifndef FILES_H
#define FILES_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes a file, as one of mode 0600 if it is new. */
static inline void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) != 0)
        abort();
}

/* Returns what a file has, without its NULs, until the next call; "": it can't be read. */
static inline const char *read_file(const char *path)
{
    static char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    size_t used = 0;

    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < n; i++)
        if (text[i] != '\0')
            text[used++] = text[i];
    text[used] = '\0';
    return text;
}

/* Sets an environment variable; NULL: unsets it. */
static inline void set_variable(const char *name, const char *value)
{
    if (value == NULL)
        unsetenv(name);
    else
        setenv(name, value, 1);
}

#endif
