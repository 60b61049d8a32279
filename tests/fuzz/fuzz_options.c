/* SPDX-License-Identifier: MIT */
/*
 * fuzz_options: reads any lines as the arguments of rlock and as variables of the environment: a
 * line that begins with RLOCK_, REDIS_URL=, HOME= or XDG_CONFIG_HOME= is a variable, every other
 * line an argument. Without RLOCK_CONFIG, rlock looks for a configuration file of this machine.
 */
#include "fuzz.h"
#include "options/option_parser.h"
#include "options/suggest.h"

#define ARGUMENTS_MAX 32

static bool is_variable(const char *line)
{
    return strncmp(line, "RLOCK_", 6) == 0 || strncmp(line, "REDIS_URL=", 10) == 0 ||
           strncmp(line, "HOME=", 5) == 0 || strncmp(line, "XDG_CONFIG_HOME=", 16) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = fuzz_text(data, n);
    char *argv[ARGUMENTS_MAX + 2] = {(char *)"rlock"};
    char *variable[ARGUMENTS_MAX] = {NULL};
    struct rlock_error err = {.text = ""};
    struct options options;
    enum rlock_status st;
    char *rest = text;
    char *line;
    size_t n_variables = 0;
    size_t argc = 1;

    must(clearenv() == 0);
    while ((line = strsep(&rest, "\n")) != NULL && argc <= ARGUMENTS_MAX)
        if (!is_variable(line))
            argv[argc++] = line;
        else if (strchr(line, '=') != NULL && strncmp(line, "RLOCK_CONFIG", 12) != 0 &&
                 n_variables < ARGUMENTS_MAX)
            must(putenv(variable[n_variables++] = line) == 0);
    if (argc > 2)
        must(suggest_distance(argv[1], argv[2]) == suggest_distance(argv[2], argv[1]));
    st = option_parser_read(&options, argv, &err);
    must(st == RLOCK_OK || st == RLOCK_E_USAGE || st == RLOCK_E_CONFIG);
    must(st == RLOCK_OK || err.text[0] != '\0');
    must(memchr(err.text, '\0', sizeof err.text) != NULL);
    must(st != RLOCK_OK || (options.ttl_ms > 0 && options.connect_ms > 0 && options.wait_ms >= -1));
    options_fini(&options);
    clearenv(); /* the variables are in `text` */
    free(text);
    return 0;
}
