/* SPDX-License-Identifier: MIT */
/* fuzz_config: reads a configuration file of any bytes into the options. */
#include "fuzz.h"
#include "options/option_parser.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char *const argv[] = {(char *)"rlock", (char *)"-k", (char *)"K", (char *)"x", NULL};
    int fd = memfd_create("config", MFD_CLOEXEC);
    struct rlock_error err = {.text = ""};
    struct options options;
    enum rlock_status st;
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    must(fd >= 0 && fchmod(fd, 0600) == 0); /* rlock refuses a file that others may write */
    must(write(fd, data, n) == (ssize_t)n && clearenv() == 0);
    must(setenv("RLOCK_CONFIG", path, 1) == 0);
    st = option_parser_read(&options, (char **)argv, &err);
    must(st == RLOCK_OK || (st == RLOCK_E_CONFIG && strncmp(err.text, path, strlen(path)) == 0));
    must(st != RLOCK_OK || (options.ttl_ms > 0 && options.connect_ms > 0 && options.wait_ms >= -1));
    options_fini(&options);
    close(fd);
    return 0;
}
