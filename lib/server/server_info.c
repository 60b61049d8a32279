/* SPDX-License-Identifier: MIT */
/* server_info: reads fields of a reply to INFO, such as the server's run_id and uptime. */
#include "server/server_info.h"

#include "base/err.h"
#include "rlock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UPTIME_MAX_S \
    (INT64_C(1) << 40) /* a larger number can't be an uptime, and might overflow as milliseconds */

bool server_info_text(const char *info, const char *name, char *out, size_t room)
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

int64_t server_info_number(const char *info, const char *name, int64_t none)
{
    char text[32];
    int64_t number;
    char *end;

    if (!server_info_text(info, name, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return none;
    errno = 0;
    number = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0 ? number : none;
}

void server_identity_read(struct server_identity *identity, const char *info)
{
    int64_t uptime_s = server_info_number(info, "uptime_in_seconds", 0);

    server_info_text(info, "run_id", identity->run_id, sizeof identity->run_id);
    identity->started_ms = rlock_clock_ms();
    /* INFO tells the uptime in whole seconds, which may be rounded up: one second less is never
     * more than the true uptime */
    if (uptime_s > 0 && uptime_s < UPTIME_MAX_S)
        identity->started_ms -= (uptime_s - 1) * 1000;
}
