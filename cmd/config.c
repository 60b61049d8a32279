/* SPDX-License-Identifier: MIT */
/* config: read a file of "name = value" lines. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLANKS " \t\r\n"

/* The text without the blanks around it, in place. */
static char *trim(char *text)
{
    size_t n;

    text += strspn(text, BLANKS);
    n = strlen(text);
    while (n > 0 && strchr(BLANKS, text[n - 1]) != NULL)
        n--;
    text[n] = '\0';
    return text;
}

static bool take_line(char *line, config_taker *take, void *context, char *why, size_t room)
{
    char *name = trim(line);
    char *equals;

    if (*name == '\0' || *name == '#')
        return true;
    equals = strchr(name, '=');
    if (equals == NULL) {
        snprintf(why, room, "not of the form name = value");
        return false;
    }
    *equals = '\0';
    return take(context, trim(name), trim(equals + 1), why, room);
}

/* fopen that takes no directory for a file. */
static FILE *open_file(const char *path)
{
    FILE *file = fopen(path, "re");
    struct stat is;

    if (file != NULL && fstat(fileno(file), &is) == 0 && S_ISDIR(is.st_mode)) {
        fclose(file);
        errno = EISDIR;
        return NULL;
    }
    return file;
}

enum config_result config_read(const char *path, config_taker *take, void *context, char *why,
                               size_t room)
{
    FILE *file = open_file(path);
    char *line = NULL;
    char complaint[256];
    size_t size = 0;
    bool good = true;
    int number = 0;
    int failed;

    if (file == NULL && (errno == ENOENT || errno == ENOTDIR))
        return CONFIG_ABSENT;
    if (file == NULL) {
        snprintf(why, room, "%s: %s", path, strerror(errno));
        return CONFIG_BAD;
    }
    while (good && getline(&line, &size, file) >= 0) {
        number++;
        good = take_line(line, take, context, complaint, sizeof complaint);
    }
    failed = errno;
    if (!good)
        snprintf(why, room, "%s:%d: %s", path, number, complaint);
    else if (ferror(file)) {
        good = false;
        snprintf(why, room, "%s: %s", path, strerror(failed));
    }
    if (line != NULL)
        explicit_bzero(line, size); /* a URL with a password may have stood in it */
    free(line);
    fclose(file);
    return good ? CONFIG_READ : CONFIG_BAD;
}

char *config_first_line(const char *path)
{
    FILE *file = open_file(path);
    char *line = NULL;
    size_t size = 0;
    int failed;

    if (file == NULL)
        return NULL;
    errno = 0;
    if (getline(&line, &size, file) < 0) {
        failed = errno;
        free(line);
        line = failed == 0 ? strdup("") : NULL;
        errno = failed;
    }
    fclose(file);
    if (line != NULL)
        line[strcspn(line, "\r\n")] = '\0';
    return line;
}
