/* SPDX-License-Identifier: MIT */
/* server_info: what a server tells of itself, field by field. */
#include "server/server_info.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool info_word(const char *info, const char *name, char *out, size_t room)
{
    size_t n = strlen(name);

    out[0] = '\0';
    while (info != NULL) {
        if (strncmp(info, name, n) == 0 && info[n] == ':') {
            snprintf(out, room, "%.*s", (int)strcspn(info + n + 1, "\r\n"), info + n + 1);
            err_make_printable(out);
            return true;
        }
        info = strchr(info, '\n');
        if (info != NULL)
            info++;
    }
    return false;
}

int64_t info_number(const char *info, const char *name, int64_t none)
{
    char text[32];
    int64_t number;
    char *end;

    if (!info_word(info, name, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return none;
    errno = 0;
    number = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0 ? number : none;
}
