/* SPDX-License-Identifier: MIT */
/*
 * fuzz_config: reads a configuration file of any bytes into the options, and reads a password file
 * of the same bytes. The first byte of the input is an enum file_case.
 */
#include "base/clock.h"
#include "base/secret.h"
#include "file.h"
#include "fuzz.h"
#include "options/config.h"
#include "options/option_parser.h"

static void read_password(const char *path)
{
    const char *why = NULL;
    char *line = config_first_line(path, deadline_never, &why);

    must((line == NULL) == (why != NULL));
    must(line == NULL || strpbrk(line, "\r\n") == NULL);
    secret_free(line);
    (void)config_is_exposed(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char *const argv[] = {(char *)"rlock", (char *)"-k", (char *)"K", (char *)"x", NULL};
    struct rlock_error err = {.text = ""};
    struct options options;
    enum rlock_status st;
    enum file_case what;
    const char *path;

    if (n == 0)
        return 0;
    what = (enum file_case)(data[0] % FILE_CASES);
    file_set(what, data + 1, n - 1);
    path = what == FILE_FIFO ? FILE_FIFO_PATH : FILE_PATH;
    must(clearenv() == 0 && setenv("RLOCK_CONFIG", path, 1) == 0);
    st = option_parser_read(&options, (char **)argv, &err);
    must(st == RLOCK_OK || (st == RLOCK_E_CONFIG && strncmp(err.text, path, strlen(path)) == 0));
    must(st != RLOCK_OK || (options.ttl_ms > 0 && options.connect_ms > 0 && options.wait_ms >= -1));
    must(st != RLOCK_OK || (what != FILE_WRITABLE && what != FILE_FOREIGN));
    options_fini(&options);
    read_password(path);
    return 0;
}
