/* SPDX-License-Identifier: MIT */
/* password_lookup: a process that looks a password up: in a file, or by a command. */
#ifndef PASSWORD_LOOKUP_H
#define PASSWORD_LOOKUP_H

#include <rlock_admin.h>
#include <sys/types.h>

/* Where the password is, as the first line. Strings are borrowed during the start. */
struct password_place {
    const char *name;    /* for messages: "password file" */
    const char *file;    /* NULL: it is what `command` prints */
    const char *command; /* for /bin/sh -c */
};

struct password_helper {
    pid_t pid; /* 0: there is none */
    int fd;    /* to it, and from it; close on exec */
};

/*
 * password_helper_start: fork it. `envp` is the environment of its command,
 * borrowed. Before there are threads: see the .c. 0, or an errno.
 */
int password_helper_start(struct password_helper *helper, const struct password_place *place,
                          char *const envp[]);

/* password_helper_source: for struct rlock_config; none where there is no helper. */
struct rlock_password_source password_helper_source(struct password_helper *helper);

/*
 * password_helper_detach: what the command says to its standard error is for nobody any more.
 * By the one process that goes on with it.
 */
void password_helper_detach(const struct password_helper *helper);

/* password_helper_stop: end it, and its command. For its parent, unless another goes on with it. */
void password_helper_stop(struct password_helper *helper);

/* password_helper_leave: another process goes on with it. */
void password_helper_leave(struct password_helper *helper);

#endif
