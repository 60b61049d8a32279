/* free_ports: prints free TCP ports of 127.0.0.1, one a line. */
/*
 *     free_ports N
 *
 * The kernel chooses the ports. The program keeps all of them bound until it
 * ends, so that the kernel chooses none twice.
 */
/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
    for (int n = argc == 2 ? atoi(argv[1]) : 1; n > 0; n--) {
        struct sockaddr_in a = {.sin_family = AF_INET};
        socklen_t bytes = sizeof a;

        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = socket(AF_INET, SOCK_STREAM, 0); /* stays open until the program ends */
        if (fd < 0 || bind(fd, (struct sockaddr *)&a, bytes) < 0 ||
            getsockname(fd, (struct sockaddr *)&a, &bytes) < 0) {
            perror("free_ports");
            return 1;
        }
        printf("%d\n", ntohs(a.sin_port));
    }
    return 0;
}
