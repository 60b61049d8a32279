/* SPDX-License-Identifier: MIT */
/*
 * user: the entry of the effective user in the user database.
 *
 * rlock reads /etc/passwd itself first. getpwuid(3), which asks the name service switch, takes 0.1
 * ms: as long as everything else that rlock does before it asks for the lock. fgetpwent(3) would
 * take more page faults, for the buffers of stdio, which a run needs for nothing else.
 */
#include "process/user.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 4096 /* an entry with a longer line is left to getpwuid(3) */

struct reader {
    int fd;
    ssize_t filled;
    ssize_t at;
    char bytes[1024];
};

/* The next byte of the file; -1: its end, or an error, and then each further call returns -1. */
static int next_byte(struct reader *reader)
{
    if (reader->filled < 0)
        return -1;
    if (reader->at == reader->filled) {
        reader->filled = read(reader->fd, reader->bytes, sizeof reader->bytes);
        reader->at = 0;
        if (reader->filled <= 0)
            return -1;
    }
    return (unsigned char)reader->bytes[reader->at++];
}

/*
 * Reads a line without its newline. A line that is too long becomes "". False: no line is left, or
 * a read failed within the line.
 */
static bool next_line(struct reader *reader, char line[LINE_BYTES])
{
    size_t length = 0;
    int byte;

    while ((byte = next_byte(reader)) >= 0 && byte != '\n')
        if (length++ < LINE_BYTES - 1)
            line[length - 1] = (char)byte;
    line[length < LINE_BYTES ? length : 0] = '\0';
    return byte >= 0 || (length > 0 && reader->filled == 0);
}

/* False: the text is no number. */
static bool parse_id(unsigned long *id, const char *text)
{
    char *end;

    *id = strtoul(text, &end, 10);
    return end != text && *end == '\0';
}

/*
 * Parses "NAME:PASSWORD:UID:GID:GECOS:HOME:SHELL" behind blanks. The entry points into the line,
 * whose colons become ends of texts. As in fgetpwent(3), GECOS, HOME and SHELL may be missing, and
 * are "" then, and SHELL may have colons. False: the line is a comment ("#..."), is meant for NIS
 * ("+..." and "-..."), or is not the entry of the user `uid`.
 */
static bool parse(struct passwd *entry, char *line, uid_t uid)
{
    enum { NAME, PASSWORD, UID, GID, GECOS, HOME, SHELL, FIELDS };
    char *field[FIELDS];
    unsigned long number;
    unsigned long group;
    size_t i;

    line += strspn(line, " \t");
    if (*line == '#' || *line == '+' || *line == '-')
        return false;
    for (i = 0; i < FIELDS; i++) {
        field[i] = line;
        line += strcspn(line, ":");
        if (*line == ':' && i < SHELL)
            *line++ = '\0';
    }
    if (*field[NAME] == '\0' || !parse_id(&number, field[UID]) || number != uid ||
        !parse_id(&group, field[GID]))
        return false;
    *entry = (struct passwd){.pw_name = field[NAME],
                             .pw_passwd = field[PASSWORD],
                             .pw_uid = uid,
                             .pw_gid = (gid_t)group,
                             .pw_gecos = field[GECOS],
                             .pw_dir = field[HOME],
                             .pw_shell = field[SHELL]};
    return true;
}

/* Looks for the user in /etc/passwd. */
static bool find(struct passwd *entry, char line[LINE_BYTES], uid_t uid)
{
    struct reader reader = {.fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC)};
    bool is_found = false;

    if (reader.fd < 0)
        return false;
    while (!is_found && next_line(&reader, line))
        is_found = parse(entry, line, uid);
    close(reader.fd);
    return is_found;
}

const struct passwd *user_entry(void)
{
    static char line[LINE_BYTES];
    static struct passwd from_file;
    static const struct passwd *entry;
    static bool was_read;

    if (was_read)
        return entry;
    was_read = true;
    if (find(&from_file, line, geteuid()))
        entry = &from_file;
#ifndef RLOCK_STATIC /* in the static program getpwuid(3) would load glibc's plug-ins */
    if (entry == NULL)
        entry = getpwuid(geteuid());
#endif
    return entry;
}
