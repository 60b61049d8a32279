/* SPDX-License-Identifier: MIT */
/* option_parser: fill the options from the command line, the environment and a file. */
#include "options/option_parser.h"

#include "base/err.h"
#include "options/config.h"
#include "options/units.h"
#include "wire/url.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where and when an option was given. */
struct said {
    enum source from;
    int turn;
};

/* What is known while the sources are read, the nearest first. */
struct reading {
    struct options *options;
    struct said said[OPTION_COUNT];
    enum source source; /* the one being read */
    int turn;
    char why[256];
};

static const struct option *row_of_letter(char letter)
{
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++)
        if (option_table[i].letter != '\0' && option_table[i].letter == letter)
            return &option_table[i];
    return NULL;
}

static const struct option *row_of_name(const char *name, size_t n)
{
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++)
        if (strlen(option_table[i].name) == n && strncmp(option_table[i].name, name, n) == 0)
            return &option_table[i];
    return NULL;
}

static bool complain(struct reading *reading, const struct option *row, const char *why,
                     const char *value)
{
    char *copy = strdup(value);
    char shown[100] = "";

    if (copy != NULL) {
        url_mask(copy); /* a URL may be meant for another option */
        err_escape(shown, sizeof shown, copy);
        explicit_bzero(copy, strlen(copy));
    }
    free(copy);
    snprintf(reading->why, sizeof reading->why, "%s: %s: \"%s\"", row->name, why, shown);
    return false;
}

static bool parse_choice(const struct option *row, const char *value, int64_t *chosen)
{
    const char *word = row->argument;
    size_t n = strlen(value);

    for (*chosen = 0; word != NULL && strchr(value, '|') == NULL; (*chosen)++) {
        if (strncmp(word, value, n) == 0 && (word[n] == '|' || word[n] == '\0'))
            return true;
        word = strchr(word, '|');
        word = word == NULL ? NULL : word + 1;
    }
    return false;
}

/* yes or no, in the words of the environment and of files; the command line says yes. */
static bool parse_switch(const char *value, bool *on)
{
    static const char *const words[] = {"no", "yes", "false", "true", "0", "1"};
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (value == NULL || strcmp(value, words[i]) == 0) {
            *on = value == NULL || i % 2 == 1;
            return true;
        }
    return false;
}

static bool complain_choice(struct reading *reading, const struct option *row, const char *value)
{
    char why[64];

    snprintf(why, sizeof why, "not one of %s", row->argument);
    return complain(reading, row, why, value);
}

static bool take_number(struct reading *reading, const struct option *row, const char *value)
{
    int64_t *at = (int64_t *)((char *)reading->options + row->offset);
    bool on;

    switch (row->kind) {
    case OPTION_DURATION:
    case OPTION_DURATION_OR_ZERO:
        if (!units_duration(value, at))
            return complain(reading, row, "not a duration such as 30, 0.5, 500ms, 5m, 2h or 1d",
                            value);
        if (*at == 0 && row->kind == OPTION_DURATION)
            return complain(reading, row, "must be more than zero", value);
        return true;
    case OPTION_STATUS:
        return units_number(value, 255, at) ||
               complain(reading, row, "not a number from 0 to 255", value);
    case OPTION_NUMBER:
        return (units_number(value, RLOCK_SLOTS_MAX, at) && *at > 0) ||
               complain(reading, row, "not a number from 1 to 1000", value);
    case OPTION_PID:
        return (units_number(value, INT_MAX, at) && *at > 0) ||
               complain(reading, row, "not a process ID", value);
    case OPTION_NUMBER_OR_ZERO:
        return units_number(value, RLOCK_REPLICAS_MAX, at) ||
               complain(reading, row, "not a number from 0 to 1000", value);
    case OPTION_CHOICE:
        return parse_choice(row, value, at) || complain_choice(reading, row, value);
    case OPTION_FLAG:
        if (!parse_switch(value, &on))
            return complain(reading, row, "neither yes nor no", value);
        *at = on;
        return true;
    case OPTION_TEXT:
    case OPTION_TEXTS:
    case OPTION_ASK:
        break;
    }
    return false;
}

static bool keep_text(struct options *options, const char *value, const char **kept)
{
    char **grown = realloc(options->texts, (options->n_texts + 1) * sizeof *grown);

    if (grown == NULL)
        return false;
    options->texts = grown;
    grown[options->n_texts] = strdup(value);
    *kept = grown[options->n_texts];
    if (*kept != NULL)
        options->n_texts++;
    return *kept != NULL;
}

/* Is the source being read the nearest so far? Of one source the last word counts. */
static bool is_nearest(struct reading *reading, const struct option *row)
{
    struct said *said = &reading->said[row - option_table];

    if (reading->source < said->from)
        return false;
    said->from = reading->source;
    said->turn = reading->turn++;
    return true;
}

/* What stands in the arguments can be read by everybody: keep a copy, and hide the password. */
static const char *out_of_sight(struct reading *reading, const char *url)
{
    const char *kept = url;

    if (reading->source == FROM_COMMAND_LINE && keep_text(reading->options, url, &kept))
        url_mask((char *)url);
    return kept;
}

/* What may be given again: an array, and its length behind it. The nearest source comes first. */
static bool take_another(struct reading *reading, const struct option *row, const char *value)
{
    const char ***texts = (const char ***)((char *)reading->options + row->offset);
    size_t *n = (size_t *)(texts + 1);
    const char **grown = realloc(*texts, (*n + 1) * sizeof *grown);

    if (grown == NULL)
        return complain(reading, row, "no memory", "");
    *texts = grown;
    grown[(*n)++] = value;
    return true;
}

/* The command line gives one at a time; one text for all has blanks between them. */
static bool take_others(struct reading *reading, const struct option *row, const char *value)
{
    char *words = strdup(value);
    bool good = words != NULL;
    size_t n = 0;
    const char *kept;
    char *saved;
    char *word;

    for (word = good ? strtok_r(words, " \t", &saved) : NULL; good && word != NULL;
         word = strtok_r(NULL, " \t", &saved), n++)
        good = keep_text(reading->options, word, &kept) && take_another(reading, row, kept);
    if (words != NULL)
        explicit_bzero(words, strlen(value)); /* a password may stand in it */
    free(words);
    if (good && n == 0)
        return complain(reading, row, "must not be empty", value);
    return good || complain(reading, row, "no memory", "");
}

static bool take(struct reading *reading, const struct option *row, const char *value)
{
    if (!is_nearest(reading, row))
        return true;
    if (row->kind == OPTION_ASK) {
        reading->options->asked = row->letter == 'h' ? ASKED_HELP : ASKED_VERSION;
        return true;
    }
    if (row->kind != OPTION_TEXT && row->kind != OPTION_TEXTS)
        return take_number(reading, row, value);
    if (*value == '\0' && row->offset != offsetof(struct options, label))
        return complain(reading, row, "must not be empty", value);
    if (row->kind == OPTION_TEXTS && reading->source != FROM_COMMAND_LINE)
        return take_others(reading, row, value);
    if (row->offset == offsetof(struct options, urls))
        value = out_of_sight(reading, value);
    if (row->kind == OPTION_TEXTS)
        return take_another(reading, row, value);
    *(const char **)((char *)reading->options + row->offset) = value;
    return true;
}

/* ---- a file ---- */

static bool take_from_file(void *context, char *name, const char *value, char *why, size_t room)
{
    struct reading *reading = context;
    const char *kept;
    bool good;
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++)
        if (option_table[i].is_everywhere && strcmp(option_table[i].name, name) == 0)
            break;
    if (i == OPTION_COUNT) {
        url_mask(name);
        snprintf(why, room, "unknown name \"%.60s\"", name);
        return false;
    }
    good = keep_text(reading->options, value, &kept) && take(reading, &option_table[i], kept);
    if (!good)
        snprintf(why, room, "%s", reading->why[0] == '\0' ? "no memory" : reading->why);
    return good;
}

/* $RLOCK_CONFIG, else the user's file, else the system's: the first that is there. */
static bool read_files(struct reading *reading)
{
    const char *named = getenv("RLOCK_CONFIG");
    const char *home = getenv("HOME");
    enum config_result result = CONFIG_ABSENT;
    char path[PATH_MAX];

    reading->source = FROM_FILE;
    if (named != NULL && *named != '\0') {
        result = config_read(named, take_from_file, reading, reading->why, sizeof reading->why);
        if (result == CONFIG_ABSENT)
            snprintf(reading->why, sizeof reading->why, "%.200s: no such file", named);
        return result == CONFIG_READ;
    }
    if (home != NULL && *home != '\0') {
        snprintf(path, sizeof path, "%s/.config/rlock/config", home);
        result = config_read(path, take_from_file, reading, reading->why, sizeof reading->why);
    }
    if (result == CONFIG_ABSENT)
        result = config_read("/etc/rlock.conf", take_from_file, reading, reading->why,
                             sizeof reading->why);
    return result != CONFIG_BAD;
}

/* ---- the environment ---- */

static bool read_environment(struct reading *reading)
{
    char variable[64];
    const char *value;
    char why[sizeof reading->why];
    size_t i;

    reading->source = FROM_ENVIRONMENT;
    for (i = 0; i < OPTION_COUNT; i++) {
        if (!option_table[i].is_everywhere)
            continue;
        option_variable(&option_table[i], variable);
        value = getenv(variable);
        if (value == NULL || *value == '\0' || take(reading, &option_table[i], value))
            continue;
        memcpy(why, reading->why, sizeof why);
        snprintf(reading->why, sizeof reading->why, "%s: %.180s", variable, why);
        return false;
    }
    return true;
}

/* ---- the command line ---- */

/* Is there such an option, and does the verb have it? */
static bool is_ours(const struct reading *reading, const struct option *row)
{
    return row != NULL && (row->verbs & IN(reading->options->verb)) != 0;
}

/* Only the name is told: a value that was meant for another option may be a password. */
static bool unknown(struct reading *reading, const char *name, size_t n)
{
    char shown[100];
    char cut[64];

    snprintf(cut, sizeof cut, "%.*s", (int)n, name);
    err_escape(shown, sizeof shown, cut);
    snprintf(reading->why, sizeof reading->why, "unknown option%s%s: %s",
             verb_table[reading->options->verb].name != NULL ? " of " : "",
             verb_table[reading->options->verb].name != NULL
                 ? verb_table[reading->options->verb].name
                 : "",
             shown);
    return false;
}

static bool lacks_argument(struct reading *reading, const struct option *row)
{
    snprintf(reading->why, sizeof reading->why, "--%s needs an argument: %s", row->name,
             row->argument);
    return false;
}

/*
 * A word that comes behind -k or --key is a key only if it can't be a slip: behind an unset
 * variable "rlock -k $JOB -- job" has the key "--", and -k=job has the key "=job". Neither is the
 * lock that its user means, so it would exclude nobody. With --key=KEY any key is possible.
 */
static bool is_slip(struct reading *reading, const struct option *row, const char *value,
                    bool is_attached)
{
    char shown[56];

    if (row->offset != offsetof(struct options, keys))
        return false;
    err_escape(shown, sizeof shown, value);
    if (*value == '-')
        snprintf(reading->why, sizeof reading->why,
                 "key: \"%.60s\" begins with \"-\", as options do (is a variable empty?); if it is "
                 "meant: --key=%.60s",
                 shown, shown);
    else if (*value == '=' && is_attached)
        snprintf(reading->why, sizeof reading->why,
                 "key: \"%.60s\" begins with \"=\", but -k takes KEY without one: -k %.60s; if it "
                 "is meant: -k %.60s",
                 shown, shown + 1, shown);
    else
        return false;
    return true;
}

/* --name, --name=value or --name value; `*argv` is left at the last word used. */
static bool take_long(struct reading *reading, char ***argv)
{
    char *name = **argv + 2;
    size_t n = strcspn(name, "=");
    const struct option *row = row_of_name(name, n);

    if (n == strlen("dump") && strncmp(name, "dump=", n + 1) == 0) {
        reading->options->asked = ASKED_DUMP;
        reading->options->dump = name + n + 1;
        return true;
    }
    if (!is_ours(reading, row) || (row->argument == NULL && name[n] == '='))
        return unknown(reading, **argv, n + 2);
    if (row->argument == NULL)
        return take(reading, row, NULL);
    if (name[n] == '=')
        return take(reading, row, name + n + 1);
    if ((*argv)[1] == NULL)
        return lacks_argument(reading, row);
    ++*argv;
    return !is_slip(reading, row, **argv, false) && take(reading, row, **argv);
}

/* -n, -nv, -t30 or -t 30; `*argv` is left at the last word used. */
static bool take_letters(struct reading *reading, char ***argv)
{
    char *at = **argv + 1;

    for (; *at != '\0'; at++) {
        const struct option *row = row_of_letter(*at);

        if (!is_ours(reading, row))
            return unknown(reading, (char[]){'-', *at}, 2);
        if (row->argument == NULL) {
            if (!take(reading, row, NULL))
                return false;
            continue;
        }
        if (at[1] != '\0')
            return !is_slip(reading, row, at + 1, true) && take(reading, row, at + 1);
        if ((*argv)[1] == NULL)
            return lacks_argument(reading, row);
        ++*argv;
        return !is_slip(reading, row, **argv, false) && take(reading, row, **argv);
    }
    return true;
}

static bool read_command_line(struct reading *reading, char **argv)
{
    reading->source = FROM_COMMAND_LINE;
    reading->options->verb = verb_named(*argv);
    argv += verb_table[reading->options->verb].name != NULL;
    for (; *argv != NULL; argv++) {
        if (strcmp(*argv, "--") == 0) {
            argv++;
            break;
        }
        if ((*argv)[0] != '-' || (*argv)[1] == '\0')
            break;
        if (!((*argv)[1] == '-' ? take_long : take_letters)(reading, &argv))
            return false;
        if (reading->options->asked != ASKED_RUN)
            return true;
    }
    reading->options->argv = argv;
    return true;
}

/* ---- all of them ---- */

static bool check(struct reading *reading)
{
    const struct options *options = reading->options;
    const struct verb_row *verb = &verb_table[options->verb];
    const char *why = NULL;

    if (verb->needs_key && options->n_keys == 0)
        why = "no key: name the lock with -k KEY";
    else if (verb->name != NULL)
        why = options->argv[0] != NULL && verb->words == NULL
                  ? "the verb takes no arguments behind its options"
                  : NULL;
    else if (options->command == NULL && options->argv[0] == NULL)
        why = "no command: say what to run behind the options, or with -c STRING";
    else if (options->command != NULL && options->argv[0] != NULL)
        why = "-c STRING is the whole command: no arguments may follow";
    if (why != NULL)
        snprintf(reading->why, sizeof reading->why, "%s", why);
    return why == NULL;
}

static const struct said *said_of(const struct reading *reading, const char *name)
{
    return &reading->said[row_of_name(name, strlen(name)) - option_table];
}

static bool is_later(const struct said *one, const struct said *other)
{
    return one->from > other->from || (one->from == other->from && one->turn > other->turn);
}

/* The last of -s, -x and --slots counts, of the nearest source. */
static enum rlock_mode mode_of(const struct reading *reading)
{
    const struct options *options = reading->options;
    const struct said *shared = said_of(reading, "shared");
    const struct said *exclusive = said_of(reading, "exclusive");
    const struct said *slots = said_of(reading, "slots");
    bool is_alone = options->exclusive != 0;

    if (options->slots > 0 && !(is_alone && is_later(exclusive, slots)) &&
        !(options->shared && is_later(shared, slots)))
        return RLOCK_SLOTS;
    if (options->shared && !(is_alone && is_later(exclusive, shared)))
        return RLOCK_SHARED;
    return RLOCK_EXCLUSIVE;
}

/* A file or a command: of the nearest source the last. */
static void choose_password(const struct reading *reading)
{
    struct options *options = reading->options;
    const struct said *file = said_of(reading, "password-file");
    const struct said *command = said_of(reading, "password-command");

    if (options->password_command != NULL && is_later(command, file))
        options->password_file = NULL;
    else if (options->password_file != NULL)
        options->password_command = NULL;
    options->password_from = options->password_command != NULL ? command->from : file->from;
}

/* What can't be meant together, wherever it was said. */
static bool check_mode(struct reading *reading)
{
    const struct options *options = reading->options;
    const char *why = NULL;

    if (options->verb != VERB_RUN && options->verb != VERB_ACQUIRE)
        return true;
    if (options->mode == RLOCK_SLOTS && options->n_keys > 1)
        why = "slots: possible with one key only";
    else if (options->once_ms > 0 && (options->n_keys > 1 || options->mode != RLOCK_EXCLUSIVE))
        why = "once: possible with one key only, and without --shared and --slots";
    else if (options->is_time && (options->mode != RLOCK_EXCLUSIVE || options->n_keys > 1 ||
                                  options->once_ms > 0 || options->queue == RLOCK_QUEUE_NEWEST))
        why =
            "protocol timestamp: possible with one key only, and without --shared, --slots, --once "
            "and --queue newest";
    else if (options->is_time && options->nested)
        why = "nested: not possible with --protocol timestamp, whose locks have no token";
    else if (options->is_time && options->verb == VERB_ACQUIRE)
        why = "protocol timestamp: not possible with acquire, as such a lock has no token";
    else if (options->on_lost == ON_LOST_PAUSE && options->bind_pid > 0)
        why =
            "on-lost pause: possible only for a command that rlock runs; with --bind-pid use kill "
            "or ignore";
    else if (options->min_hold_ms > RLOCK_TTL_MAX_MS || options->once_ms > RLOCK_TTL_MAX_MS)
        why = "min-hold, once: at most 30d";
    if (why != NULL)
        snprintf(reading->why, sizeof reading->why, "%s", why);
    return why == NULL;
}

enum rlock_status option_parser_read(struct options *options, char **argv, struct rlock_error *err)
{
    struct reading reading = {.options = options};
    enum rlock_status st = RLOCK_OK;

    *options = options_by_default;
    if (!read_command_line(&reading, argv + 1))
        st = RLOCK_E_USAGE;
    else if (options->asked != ASKED_RUN)
        return RLOCK_OK;
    else if (!check(&reading) || !read_environment(&reading))
        st = RLOCK_E_USAGE;
    else if (!read_files(&reading))
        st = RLOCK_E_CONFIG;
    options->url_from = said_of(&reading, "url")->from;
    choose_password(&reading);
    options->sentinel_password_file_from = said_of(&reading, "sentinel-password-file")->from;
    options->token_file_from = said_of(&reading, "token-file")->from;
    options->ttl_from = said_of(&reading, "ttl")->from;
    if (options->nonblock && is_later(said_of(&reading, "nonblock"), said_of(&reading, "wait")))
        options->wait_ms = 0;
    options->mode = mode_of(&reading);
    if (st == RLOCK_OK && !check_mode(&reading))
        st = RLOCK_E_USAGE;
    err->status = st;
    snprintf(err->text, sizeof err->text, "%s", reading.why);
    return st;
}
