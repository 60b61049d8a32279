/* SPDX-License-Identifier: MIT */
/*
 * fuzz_config: reads a configuration file of any bytes into the options, and reads a password file
 * of the same bytes. The first byte of the input is an enum file_case.
 */
#include "base/secret.h"
#include "fuzz.h"
#include "options/config.h"
#include "options/option_parser.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum file_case {
    FILE_PLAIN,
    FILE_WRITABLE, /* the group may write the file */
    FILE_GROWING,  /* the file has more bytes than fstat(2) says */
    FILE_CASES
};

static enum file_case what;

int __real_fstat64(int fd, struct stat *is);

int __wrap_fstat64(int fd, struct stat *is);
int __wrap_fstat64(int fd, struct stat *is)
{
    int result = __real_fstat64(fd, is);

    if (what == FILE_GROWING)
        is->st_size /= 2;
    return result;
}

/* Writes the bytes to a file in memory, and returns its path. */
static const char *write_file(const uint8_t *bytes, size_t n)
{
    static char path[32];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("config", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    must(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
    must(fchmod(fd, what == FILE_WRITABLE ? 0660 : 0600) == 0);
    return path;
}

static void read_password(const char *path)
{
    const char *why = NULL;
    char *line = config_first_line(path, &config_wait_forever, &why);

    must((line == NULL) == (why != NULL));
    must(line == NULL || strpbrk(line, "\r\n") == NULL);
    secret_free(line);
    must(config_is_exposed(path) == (what == FILE_WRITABLE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char *const argv[] = {(char *)"rlock", (char *)"-k", (char *)"K", (char *)"x", NULL};
    struct rlock_error err = {.text = ""};
    struct options options;
    enum rlock_status st;
    const char *path;

    if (n == 0)
        return 0;
    what = (enum file_case)(data[0] % FILE_CASES);
    path = write_file(data + 1, n - 1);
    must(clearenv() == 0 && setenv("RLOCK_CONFIG", path, 1) == 0);
    st = option_parser_read(&options, (char **)argv, &err);
    must(st == RLOCK_OK || (st == RLOCK_E_CONFIG && strncmp(err.text, path, strlen(path)) == 0));
    must(st != RLOCK_OK || (options.ttl_ms > 0 && options.connect_ms > 0 && options.wait_ms >= -1));
    must(st != RLOCK_OK || what == FILE_PLAIN || (what == FILE_GROWING && n <= 2));
    options_fini(&options);
    read_password(path);
    return 0;
}
