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
 * No descriptor of ours may become the command's stdin, stdout or stderr. What
 * is written to a closed one fails, and isn't taken for told.
 */
static void occupy_standard_descriptors(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd > STDERR_FILENO)
        close(fd);
}

static int complain(const struct options *options, const struct rlock_error *err)
{
    struct report report = {.level = REPORT_NOTICE,
                            .json = options->json != 0,
                            .key = options->n_keys > 0 ? options->keys[0] : NULL,
                            .start_ms = rlock_clock_ms()};
    enum exit_reason reason = exit_reason_of(err->status);
    bool is_usage = reason == REASON_USAGE;

    report_say(&report, REPORT_FAILURE,
               (struct message){.what = exit_reason_row(reason)->name,
                                .why = err->text,
                                .hint = is_usage ? "see rlock --help" : NULL});
    return exit_reason_row(reason)->status;
}

static int answer(const struct options *options)
{
    char version[160];
    bool good = false;

    snprintf(version, sizeof version, "rlock %s (%s)\n", RLOCK_VERSION, rlock_built_with());
    switch (options->asked) {
    case ASKED_HELP:
        good = help_options(options->verb);
        break;
    case ASKED_VERSION:
        good = report_text(version);
        break;
    case ASKED_DUMP:
        good = help_dump(options->dump);
        break;
    case ASKED_RUN:
        break;
    }
    return good ? EXIT_SUCCESS : exit_reason_row(REASON_SYSTEM)->status;
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
        status = complain(&options, &err);
    else if (options.asked != ASKED_RUN)
        status = answer(&options);
    else
        status = actions[options.verb](&options);
    options_fini(&options);
    return status;
}
