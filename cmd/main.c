/* SPDX-License-Identifier: MIT */
/* main: from the command line to an exit status. */
#include "cmd.h"
#include "options/help.h"
#include "options/option_parser.h"
#include "output/report.h"
#include "session/environment.h"

#include <fcntl.h>
#include <rlock_admin.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

/*
 * If rlock is started with stdin, stdout or stderr closed, the next descriptors that rlock opens
 * would get the numbers 0 to 2, and the command would write its output to, say, rlock's socket.
 * So rlock opens /dev/null under these numbers, for reading only: a write to it fails, as a write
 * to a closed descriptor does.
 */
static void occupy_standard_descriptors(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd > STDERR_FILENO)
        close(fd);
}

/*
 * Report why option_parser_read() refused the options, and return the exit status. Later faults go
 * by the report of struct session. No session exists yet, so this function makes a report of its
 * own.
 */
static int report_error(const struct options *options, const struct rlock_error *err)
{
    struct report report = {.level = REPORT_NOTICE,
                            .json = options->json != 0,
                            .key = options->n_keys > 0 ? options->keys[0] : NULL,
                            .start_ms = rlock_clock_ms()};
    enum exit_reason reason = exit_reason_of(err->status);

    report_say(&report, REPORT_FAILURE,
               (struct message){.what = exit_reason_row(reason)->name,
                                .why = err->text,
                                .hint = reason == REASON_USAGE ? "see rlock --help" : NULL});
    return exit_reason_status(reason);
}

static char *version_text(void)
{
    char *text;

    return asprintf(&text, "rlock %s (%s)\n", RLOCK_VERSION, rlock_built_with()) < 0 ? NULL : text;
}

/* The text that --help, --version or --dump prints. Heap; NULL: out of memory, or no such table. */
static char *asked_text(const struct options *options)
{
    switch (options->asked) {
    case ASKED_HELP:
        return help_text(options->verb);
    case ASKED_VERSION:
        return version_text();
    case ASKED_DUMP:
        return help_dump(options->dump);
    case ASKED_RUN:
        break;
    }
    return NULL;
}

static int print_asked(const struct options *options)
{
    char *text = asked_text(options);
    bool is_printed = text != NULL && report_text(text);

    free(text);
    return exit_reason_status(is_printed ? REASON_GRANTED : REASON_SYSTEM);
}

#define ACTION(constant, function, ...) [constant] = function,

static int (*const actions[VERB_COUNT])(const struct options *) = {VERBS(ACTION)};

int main(int argc, char **argv)
{
    struct rlock_error err = {.status = RLOCK_OK};
    struct options options;
    int status;

    (void)argc;
    occupy_standard_descriptors();
    environment_hide(environ);
    if (option_parser_read(&options, argv, &err) != RLOCK_OK)
        status = report_error(&options, &err);
    else if (options.asked != ASKED_RUN)
        status = print_asked(&options);
    else
        status = actions[options.verb](&options);
    options_fini(&options);
    return status;
}
