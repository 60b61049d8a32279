/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_service_status: systemd is told that rlock waits, and when the wait has ended, at an
 * abstract name. tests/cli/systemd.bats has a socket with a path.
 */
#include "output/service_status.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const struct report report = {.level = REPORT_NOTICE, .key = "job"};
static const struct rlock_obstacle obstacle = {.holder = {.text = "another program"}, .place = 1};

/* The kernel chooses the name. */
static int listen_here(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t size = sizeof at.sun_family;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    ok(bind(fd, (struct sockaddr *)&at, size) == 0);
    size = sizeof at;
    ok(getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    at.sun_path[0] = '@';
    setenv("NOTIFY_SOCKET", at.sun_path, 1);
    return fd;
}

static void is_told(int fd, const char *start, const char *name)
{
    char text[1024] = "";

    ok(recv(fd, text, sizeof text - 1, 0) > 0 && strncmp(text, start, strlen(start)) == 0 &&
           strstr(text, "\nEXTEND_TIMEOUT_USEC=90000000\n") != NULL,
       name);
}

static void test_abstract_name(void)
{
    struct service_status status = {.is_waiting = false};
    int fd = listen_here();
    char c;

    service_status_show(&status, &report, NULL);
    ok(recv(fd, &c, 1, 0) < 0, "nothing is told before rlock waits");
    service_status_show(&status, &report, &obstacle);
    is_told(fd, "STATUS=rlock: job: waiting ", "a wait is told");
    service_status_show(&status, &report, NULL);
    is_told(fd, "STATUS=\n", "the end of the wait is told");
    close(fd);
}

TESTS(test_abstract_name)
