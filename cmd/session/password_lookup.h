/* SPDX-License-Identifier: MIT */
/* password_lookup: a helper process that reads the password from a file or a command's output. */
#ifndef PASSWORD_LOOKUP_H
#define PASSWORD_LOOKUP_H

#include <rlock_admin.h>
#include <sys/types.h>

/* Where the password is: the first line of a file, or of what a command prints. All borrowed. */
struct password_place {
    const char *name;    /* for messages: "password file" */
    const char *file;    /* NULL: the command prints it */
    const char *command; /* run by /bin/sh -c */
};

struct password_helper {
    pid_t pid; /* 0: not started */
    int fd;    /* a socket for requests and answers; close on exec */
};

/*
 * password_helper_start: fork the helper. To be called before there are threads. `envp` is the
 * environment of the command, borrowed. Returns 0, or an errno.
 */
int password_helper_start(struct password_helper *helper, const struct password_place *place,
                          char *const envp[]);

/* password_helper_source: the helper as a source for struct rlock_config; empty if not started. */
struct rlock_password_source password_helper_source(struct password_helper *helper);

/*
 * password_helper_detach: let the helper, and with it the command, close rlock's stderr, as a
 * process in the background uses the helper from now on.
 */
void password_helper_detach(const struct password_helper *helper);

/* password_helper_stop: end the helper and its command. To be called by its parent. */
void password_helper_stop(struct password_helper *helper);

/* password_helper_leave: only close our end: a forked process goes on to use the helper. */
void password_helper_leave(struct password_helper *helper);

#endif
