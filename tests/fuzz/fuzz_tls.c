/* SPDX-License-Identifier: MIT */
/*
 * fuzz_tls: a TLS handshake gets any bytes from the server, which then ends its stream if the first
 * byte of the input is odd.
 */
#include "fuzz.h"
#include "wire/tls.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static void talk(struct tls_context *tls, const uint8_t *data, size_t n)
{
    struct rlock_error err = {.text = ""};
    struct tls_connection *line = NULL;
    enum rlock_status st = RLOCK_PENDING;
    int ends[2];
    int steps;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0)
        exit(1);
    must(tls_connection_new(tls, &line, (const char *const[TLS_NAMES]){"h"}, ends[0], &err) ==
         RLOCK_OK);
    (void)!write(ends[1], data + 1, n - 1);
    if (data[0] & 1)
        shutdown(ends[1], SHUT_WR);
    for (steps = 0; st == RLOCK_PENDING && steps < 16; steps++)
        st = tls_handshake(line, &err);
    must(st != RLOCK_OK); /* without a valid certificate no handshake may succeed */
    must(st == RLOCK_PENDING || (err.status == st && err.text[0] != '\0'));
    must(st != RLOCK_PENDING || (tls_events(line) & POLLIN) != 0);
    tls_connection_free(line);
    close(ends[0]);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct rlock_config config = {.tls_ca = NULL};
    static struct tls_context *tls; /* made once, as loading the CAs is slow */

    if (tls == NULL && tls_context_new(&tls, &config, NULL) != RLOCK_OK)
        return 0; /* built without TLS */
    if (n > 0)
        talk(tls, data, n);
    return 0;
}
