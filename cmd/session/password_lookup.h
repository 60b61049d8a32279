/* SPDX-License-Identifier: MIT */
/* password_lookup: a helper process that reads the password from a file or a command's output. */
#ifndef PASSWORD_LOOKUP_H
#define PASSWORD_LOOKUP_H

#include <rlock_admin.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Where the password is: in the first line of a file, or of a command's output. All strings are
 * borrowed.
 */
struct password_place {
    const char *name;    /* for messages: "password file" */
    const char *file;    /* name of the file; NULL: the command prints the password */
    const char *command; /* the helper runs it by /bin/sh -c */
};

struct password_helper {
    pid_t pid;       /* 0: the helper was not started */
    int fd;          /* a socket for requests and answers; close on exec */
    bool is_exposed; /* a password was found in a file that others may read */
};

/*
 * password_helper_start: fork the helper, before there is a thread; do nothing if the place has no
 * name. From now on rlock and the helper are not dumpable. Returns 0, or an errno.
 */
int password_helper_start(struct password_helper *helper, const struct password_place *place);

/*
 * password_helper_source: the functions by which the library asks the helper for a password, for
 * struct rlock_config. All NULL if the helper wasn't started.
 */
struct rlock_password_source password_helper_source(struct password_helper *helper);

/* password_helper_stop: end the helper and its command. Only the helper's parent may call it. */
void password_helper_stop(struct password_helper *helper);

/*
 * password_helper_leave: leave the helper to a forked process, which has a copy of the descriptor,
 * and goes on in the background. From now on the helper and its commands write no messages.
 */
void password_helper_leave(struct password_helper *helper);

#endif
