/* SPDX-License-Identifier: MIT */
/* test_cmd_service_status: systemd is told that rlock waits, and when the wait has ended. */
#include "output/service_status.h"
#include "tap.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const struct report report = {.level = REPORT_NOTICE, .key = "job"};
static const struct rlock_obstacle obstacle = {.holder = {.text = "another program"}, .place = 1};

/* Listens at a path, or at an abstract name, which begins with @. */
static int listen_at(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(at.sun_path, name, strlen(name));
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    ok(bind(fd, (struct sockaddr *)&at,
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))) == 0);
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

static void is_told(int fd, const char *start, const char *name)
{
    char text[1024] = "";

    ok(recv(fd, text, sizeof text - 1, 0) > 0 && strncmp(text, start, strlen(start)) == 0 &&
           strstr(text, "\nEXTEND_TIMEOUT_USEC=90000000\n") != NULL,
       name);
}

static void test_at(const char *name)
{
    struct service_status status = {.is_waiting = false};
    int fd = listen_at(name);
    char c;

    service_status_show(&status, &report, NULL);
    ok(recv(fd, &c, 1, 0) < 0, "nothing is told before rlock waits");
    service_status_show(&status, &report, &obstacle);
    is_told(fd, "STATUS=rlock: job: waiting ", "a wait is told");
    service_status_show(&status, &report, NULL);
    is_told(fd, "STATUS=\n", "the end of the wait is told");
    close(fd);
}

int main(void)
{
    char dir[] = "/tmp/rlock-notify-XXXXXX";
    char path[64];
    char abstract[64];

    if (mkdtemp(dir) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/socket", dir);
    snprintf(abstract, sizeof abstract, "@%s", dir);
    RUN(test_at(path));
    RUN(test_at(abstract));
    unlink(path);
    rmdir(dir);
    return done_testing();
}
