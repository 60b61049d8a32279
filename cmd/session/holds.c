/* SPDX-License-Identifier: MIT */
/*
 * holds: the files that keep the tokens of a person's holds, one for each key and server.
 *
 * The files are not in XDG_RUNTIME_DIR, which the system removes when the user logs out: a hold
 * outlives the login. A file's name is a hash of the server's name and the key. The first line is
 * "TOKEN UNTIL_MS HAS_RENEWER", the second line tells people which lock the file belongs to. If two
 * locks had the same hash, the server would refuse the token of one lock for the other lock.
 */
#include "session/holds.h"

#include "base/err.h"
#include "base/hash.h"
#include "output/outfile.h"
#include "process/fds.h"
#include "session/environment.h"
#include "session/private_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 32
#define FILE_BYTES 512

static const struct private_dir_words words = {
    "the token of a hold", "set RLOCK_HOLD_DIR to keep tokens in another directory"};

static enum rlock_status open_dir(bool creates, int *fd, struct rlock_error *err)
{
    const char *path = environment_value("RLOCK_HOLD_DIR");
    enum rlock_status st;

    if (*path != '\0')
        return private_dir_open(path, creates, &words, fd, err);
    st = private_dir_open_home("holds", creates, &words, fd, err);
    if (st == RLOCK_PENDING && creates)
        return err_set(err, RLOCK_E_CONFIG, 0, "%s: this user has no home; %s", words.what,
                       words.otherwise);
    return st == RLOCK_PENDING ? RLOCK_GONE : st;
}

/* ---- reading and writing one file ---- */

static void name_file(char name[NAME_BYTES], const char *server, const char *key)
{
    snprintf(name, NAME_BYTES, "%016" PRIx64, hash_add(hash_add(HASH_START, server), key));
}

static enum rlock_status bad_file(struct rlock_error *err, int dir, const char *name,
                                  const char *why)
{
    char path[PATH_MAX];

    private_dir_path(dir, path, sizeof path);
    return err_set(err, RLOCK_E_CONFIG, 0, "%s: file %.300s/%s: %s", words.what, path, name, why);
}

/* Returns RLOCK_OK, RLOCK_GONE (there is no such file), or RLOCK_E_CONFIG. */
static enum rlock_status read_file(int dir, const char *name, struct hold *hold,
                                   struct rlock_error *err)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char text[FILE_BYTES];
    int has_renewer = 0;
    ssize_t n = -1;
    int failed;

    if (fd >= 0)
        n = read(fd, text, sizeof text - 1);
    failed = errno;
    fds_close(&fd);
    if (n < 0)
        return failed == ENOENT ? RLOCK_GONE : bad_file(err, dir, name, strerror(failed));
    text[n] = '\0';
    if (sscanf(text, "%32[0-9a-f] %" SCNd64 " %d", hold->token, &hold->until_ms, &has_renewer) < 3)
        return bad_file(err, dir, name,
                        "has no token: remove it; to free the lock: rlock break -k KEY");
    hold->has_renewer = has_renewer != 0;
    explicit_bzero(text, sizeof text);
    return RLOCK_OK;
}

/* Write a new file, and then rename it: if the disk is full, the older file stays as it is. */
static int write_file(const struct holds *holds, const char *key, const struct hold *hold)
{
    char name[NAME_BYTES];
    char new_name[NAME_BYTES + 24];
    char shown[FILE_BYTES / 4];
    char text[FILE_BYTES];
    int failed = 0;
    int fd;

    name_file(name, holds->server, key);
    snprintf(new_name, sizeof new_name, "%s.%d", name, (int)getpid());
    err_escape(shown, sizeof shown, key);
    snprintf(text, sizeof text, "%s %" PRId64 " %d\n%s on %.200s\n", hold->token, hold->until_ms,
             hold->has_renewer, shown, holds->server);
    fd = openat(holds->dir, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fchmod(fd, 0600) != 0 || !outfile_write(fd, text, strlen(text), -1))
        failed = errno;
    explicit_bzero(text, sizeof text);
    if (fd >= 0 && close(fd) != 0 && failed == 0)
        failed = errno;
    if (failed == 0 && renameat(holds->dir, new_name, holds->dir, name) != 0)
        failed = errno;
    if (failed != 0)
        unlinkat(holds->dir, new_name, 0);
    return failed;
}

/* ---- opening, writing and removing the files of several keys ---- */

enum rlock_status holds_open(struct holds *holds, char *server, const char *const *keys,
                             size_t n_keys, bool creates, struct rlock_error *err)
{
    char name[NAME_BYTES];
    enum rlock_status st;
    size_t i;

    *holds = (struct holds){.dir = -1, .server = server, .keys = keys, .n_keys = n_keys};
    if (server == NULL)
        return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
    st = open_dir(creates, &holds->dir, err);
    for (i = 0; st == RLOCK_OK && i < n_keys; i++) {
        name_file(name, server, keys[i]);
        st = read_file(holds->dir, name, &holds->hold[i], err);
        holds->n += st == RLOCK_OK;
        if (st == RLOCK_GONE)
            st = RLOCK_OK;
    }
    return st == RLOCK_GONE ? RLOCK_OK : st;
}

int holds_write(struct holds *holds, const struct hold *hold)
{
    int failed = 0;
    size_t i;

    for (i = 0; failed == 0 && i < holds->n_keys; i++) {
        failed = write_file(holds, holds->keys[i], hold);
        if (failed == 0)
            holds->hold[i] = *hold;
    }
    return failed;
}

void holds_remove(const struct holds *holds, const char *token)
{
    struct hold hold;
    char name[NAME_BYTES];
    size_t i;

    for (i = 0; holds->dir >= 0 && i < holds->n_keys; i++) {
        name_file(name, holds->server, holds->keys[i]);
        if (read_file(holds->dir, name, &hold, NULL) == RLOCK_OK && strcmp(hold.token, token) == 0)
            unlinkat(holds->dir, name, 0);
    }
}

void holds_fini(struct holds *holds)
{
    fds_close(&holds->dir);
    free(holds->server);
    explicit_bzero(holds->hold, sizeof holds->hold);
    *holds = (struct holds){.dir = -1};
}
