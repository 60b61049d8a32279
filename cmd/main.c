/* SPDX-License-Identifier: MIT */
/* main: reads the command line, calls the verb, and returns the exit status. */
#include "cmd.h"
#include "options/help.h"
#include "options/option_parser.h"
#include "options/variable.h"
#include "output/printable.h"
#include "output/report.h"
#include "session/environment.h"

#include <fcntl.h>
#include <rlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

/*
 * If stdin, stdout or stderr are closed, the next files that rlock opens would get their numbers,
 * and the command would write its output to, say, rlock's socket. So open /dev/null under these
 * numbers, for reading only: a write fails, as to a closed descriptor.
 */
static void occupy_standard_descriptors(void)
{
    int fd;

    for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDONLY | O_CLOEXEC); /* the lowest free number: fd */
}

/* Report why option_parser_read() refused the options, and return the exit status. */
static int report_error(const struct options *options, const struct rlock_error *err)
{
    struct report report = report_begin(options, REPORT_NOTICE);
    enum exit_reason reason = exit_reason_of(err->status);
    const char *verb = verb_table[options->verb].name;
    char hint[sizeof options->hint];

    snprintf(hint, sizeof hint, "%s", options->hint);
    if (hint[0] == '\0' && reason == REASON_USAGE)
        snprintf(hint, sizeof hint, verb != NULL ? "see rlock help %s" : "see rlock --help", verb);
    report_event(&report, REPORT_FAILURE, event_of_reason(reason), err->text, hint);
    return exit_reason_status(reason);
}

#define ACTION(constant, function, ...) [constant] = function,

static int (*const actions[VERB_COUNT])(const struct options *) = {VERBS(ACTION)};

/* Print a table for the tests and the shells' completions: --dump. */
static int print_table(const struct options *options)
{
    struct report report = report_begin(options, REPORT_NOTICE);

    help_dump(stdout, options->dump);
    return exit_reason_status(report_printed(&report));
}

/*
 * Warn of environment variables that rlock doesn't read, such as RLOCK_TTTL: the user believes that
 * they have an effect.
 */
static void warn_of_variables(const struct options *options)
{
    struct report report = report_begin(options, REPORT_NOTICE);
    struct mistake mistake;
    char **entry;

    for (entry = environ; *entry != NULL && !options->quiet; entry++)
        if (!variable_check(*entry, &mistake))
            report_event(&report, REPORT_NOTICE, EVENT_WARNING, mistake.why, mistake.hint);
}

static int act(const struct options *options)
{
    /* what follows prints by stdio: at RLIMIT_FSIZE a write must fail; SIGXFSZ would end rlock */
    if (options->asked != ASKED_RUN || options->explain || verb_table[options->verb].is_offline)
        signal(SIGXFSZ, SIG_IGN);
    switch (options->asked) {
    case ASKED_HELP:
        return cmd_help(options);
    case ASKED_VERSION:
        return cmd_version(options);
    case ASKED_DUMP:
        return print_table(options);
    case ASKED_RUN:
        break;
    }
    if (!verb_table[options->verb].is_offline)
        warn_of_variables(options);
    return options->explain ? cmd_explain(options) : actions[options->verb](options);
}

int main(int argc, char **argv)
{
    struct rlock_error err = {.status = RLOCK_OK};
    struct options options;
    int status;

    (void)argc;
    occupy_standard_descriptors();
    environment_hide();
    printable_read_locale();
    if (option_parser_read(&options, argv, &err) != RLOCK_OK)
        status = report_error(&options, &err);
    else
        status = act(&options);
    options_fini(&options);
    return status;
}
