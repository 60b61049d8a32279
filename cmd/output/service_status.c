/* SPDX-License-Identifier: MIT */
/*
 * service_status: tells the service manager (systemd) that rlock waits for the lock.
 *
 * systemd ends a service with Type=notify that isn't ready after TimeoutStartSec. So rlock asks for
 * more time while it waits, and once more when the wait is over, for the command: the command
 * reports that the service is ready, not rlock. Source: sd_notify(3): a datagram with a line for
 * each VARIABLE=VALUE.
 */
#include "output/service_status.h"

#include "output/progress.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define STATUS_COLUMNS 200
#define MORE_TIME_S 90 /* the default of systemd's TimeoutStartSec */

/* Send a datagram to NOTIFY_SOCKET: a path, or an abstract name that begins with @. */
static void notify(const char *text)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = name == NULL ? 0 : strlen(name);
    int fd;

    if (n < 2 || n >= sizeof address.sun_path || (*name != '/' && *name != '@'))
        return;
    memcpy(address.sun_path, name, n);
    if (*name == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    (void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    close(fd);
}

void service_status_show(struct service_status *status, const struct report *report,
                         const struct rlock_obstacle *obstacle)
{
    char waiting[PROGRESS_BYTES] = "";
    char text[PROGRESS_BYTES + 64];

    if (getenv("NOTIFY_SOCKET") == NULL || (obstacle == NULL && !status->is_waiting))
        return;
    status->is_waiting = obstacle != NULL;
    if (obstacle != NULL)
        progress_text(waiting, sizeof waiting, STATUS_COLUMNS, report, obstacle, rlock_clock_ms());
    snprintf(text, sizeof text, "STATUS=%s\nEXTEND_TIMEOUT_USEC=%d000000\n", waiting, MORE_TIME_S);
    notify(text);
}
