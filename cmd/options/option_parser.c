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

/*
 * Which source gave an option its value, and when: of two values from the same source, the one that
 * was read later has the greater `order`.
 */
struct origin {
    enum source from;
    int order;
};

/*
 * The state of option_parser_read(), which reads the command line first, then the environment, then
 * the file. If an earlier source has set an option, a later source doesn't change it.
 */
struct parser {
    struct options *options;
    struct origin origins[OPTION_COUNT];
    enum source source; /* the source that is being read */
    int n_values;       /* how many values were read so far; the next value's `order` */
    char why[256];      /* the error message; "": none */
};

static const struct option *option_of_letter(char letter)
{
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++)
        if (option_table[i].letter != '\0' && option_table[i].letter == letter)
            return &option_table[i];
    return NULL;
}

static const struct option *option_of_name(const char *name, size_t n)
{
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++)
        if (strlen(option_table[i].name) == n && strncmp(option_table[i].name, name, n) == 0)
            return &option_table[i];
    return NULL;
}

static bool complain(struct parser *parser, const struct option *row, const char *why,
                     const char *value)
{
    char *copy = strdup(value);
    char shown[100] = "";

    if (copy != NULL) {
        /* the value may be a URL with a password, given to a wrong option by mistake */
        url_mask(copy);
        err_escape(shown, sizeof shown, copy);
        explicit_bzero(copy, strlen(copy));
    }
    free(copy);
    snprintf(parser->why, sizeof parser->why, "%s: %s: \"%s\"", row->name, why, shown);
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

/*
 * Parse the value of a flag. In the environment and in files it is a word for yes or no. On the
 * command line a flag has no value (NULL), and means yes.
 */
static bool parse_flag(const char *value, bool *is_on)
{
    static const struct {
        const char *word;
        bool is_on;
    } words[] = {{"yes", true},    {"no", false}, {"true", true},
                 {"false", false}, {"1", true},   {"0", false}};
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (value != NULL && strcmp(value, words[i].word) == 0) {
            *is_on = words[i].is_on;
            return true;
        }
    *is_on = value == NULL;
    return value == NULL;
}

static bool complain_choice(struct parser *parser, const struct option *row, const char *value)
{
    char why[64];

    snprintf(why, sizeof why, "not one of %s", row->argument);
    return complain(parser, row, why, value);
}

static bool take_number(struct parser *parser, const struct option *row, const char *value)
{
    int64_t *at = (int64_t *)((char *)parser->options + row->offset);
    bool on;

    switch (row->kind) {
    case OPTION_DURATION:
    case OPTION_DURATION_OR_ZERO:
        if (!units_duration(value, at))
            return complain(parser, row, "not a duration such as 30, 0.5, 500ms, 5m, 2h or 1d",
                            value);
        if (*at == 0 && row->kind == OPTION_DURATION)
            return complain(parser, row, "must be more than zero", value);
        return true;
    case OPTION_STATUS:
        return units_number(value, 255, at) ||
               complain(parser, row, "not a number from 0 to 255", value);
    case OPTION_NUMBER:
        return (units_number(value, RLOCK_SLOTS_MAX, at) && *at > 0) ||
               complain(parser, row, "not a number from 1 to 1000", value);
    case OPTION_PID:
        return (units_number(value, INT_MAX, at) && *at > 0) ||
               complain(parser, row, "not a process ID", value);
    case OPTION_NUMBER_OR_ZERO:
        return units_number(value, RLOCK_REPLICAS_MAX, at) ||
               complain(parser, row, "not a number from 0 to 1000", value);
    case OPTION_CHOICE:
        return parse_choice(row, value, at) || complain_choice(parser, row, value);
    case OPTION_FLAG:
        if (!parse_flag(value, &on))
            return complain(parser, row, "neither yes nor no", value);
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

/*
 * May the source that is being read set this option? Yes, unless a greater source (enum source) has
 * set it; a second value from the same source replaces the first. If the answer is yes, record the
 * source as the origin of the option's value.
 */
static bool overrides(struct parser *parser, const struct option *row)
{
    struct origin *origin = &parser->origins[row - option_table];

    if (parser->source < origin->from)
        return false;
    origin->from = parser->source;
    origin->order = parser->n_values++;
    return true;
}

/*
 * Every user can read the arguments of a process (ps(1)). So copy the URL, and overwrite the
 * password in the argument. Returns the copy; or `url` itself, if it isn't from the command line.
 */
static const char *copy_and_mask(struct parser *parser, const char *url)
{
    const char *kept = url;

    if (parser->source == FROM_COMMAND_LINE && keep_text(parser->options, url, &kept))
        url_mask((char *)url);
    return kept;
}

/* Append a value to the option's array, whose length is the next field of struct options. */
static bool append_text(struct parser *parser, const struct option *row, const char *value)
{
    const char ***texts = (const char ***)((char *)parser->options + row->offset);
    size_t *n = (size_t *)(texts + 1);
    const char **grown = realloc(*texts, (*n + 1) * sizeof *grown);

    if (grown == NULL)
        return complain(parser, row, "no memory", "");
    *texts = grown;
    grown[(*n)++] = value;
    return true;
}

/*
 * Append all values of an option that may be repeated. The environment and files give them as one
 * text, separated by blanks.
 */
static bool append_words(struct parser *parser, const struct option *row, const char *value)
{
    char *words = strdup(value);
    bool good = words != NULL;
    size_t n = 0;
    const char *kept;
    char *saved;
    char *word;

    for (word = good ? strtok_r(words, " \t", &saved) : NULL; good && word != NULL;
         word = strtok_r(NULL, " \t", &saved), n++)
        good = keep_text(parser->options, word, &kept) && append_text(parser, row, kept);
    if (words != NULL)
        explicit_bzero(words, strlen(value)); /* the copy may contain a URL with a password */
    free(words);
    if (good && n == 0)
        return complain(parser, row, "must not be empty", value);
    return good || complain(parser, row, "no memory", "");
}

static bool take(struct parser *parser, const struct option *row, const char *value)
{
    if (!overrides(parser, row))
        return true;
    if (row->kind == OPTION_ASK) {
        parser->options->asked = row->letter == 'h' ? ASKED_HELP : ASKED_VERSION;
        return true;
    }
    if (row->kind != OPTION_TEXT && row->kind != OPTION_TEXTS)
        return take_number(parser, row, value);
    if (*value == '\0' && row->offset != offsetof(struct options, label))
        return complain(parser, row, "must not be empty", value);
    if (row->kind == OPTION_TEXTS && parser->source != FROM_COMMAND_LINE)
        return append_words(parser, row, value);
    if (row->offset == offsetof(struct options, urls))
        value = copy_and_mask(parser, value);
    if (row->kind == OPTION_TEXTS)
        return append_text(parser, row, value);
    *(const char **)((char *)parser->options + row->offset) = value;
    return true;
}

/* ---- the configuration file ---- */

static bool take_from_file(void *context, char *name, const char *value, char *why, size_t room)
{
    struct parser *parser = context;
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
    good = keep_text(parser->options, value, &kept) && take(parser, &option_table[i], kept);
    if (!good)
        snprintf(why, room, "%s", parser->why[0] == '\0' ? "no memory" : parser->why);
    return good;
}

/*
 * Read one file: $RLOCK_CONFIG if it is set; else the user's file, or the system's file if the user
 * has none.
 */
static bool read_files(struct parser *parser)
{
    const char *named = getenv("RLOCK_CONFIG");
    const char *home = getenv("HOME");
    enum config_result result = CONFIG_ABSENT;
    char path[PATH_MAX];

    parser->source = FROM_FILE;
    if (named != NULL && *named != '\0') {
        result = config_read(named, take_from_file, parser, parser->why, sizeof parser->why);
        if (result == CONFIG_ABSENT)
            snprintf(parser->why, sizeof parser->why, "%.200s: no such file", named);
        return result == CONFIG_READ;
    }
    if (home != NULL && *home != '\0') {
        snprintf(path, sizeof path, "%s/.config/rlock/config", home);
        result = config_read(path, take_from_file, parser, parser->why, sizeof parser->why);
    }
    if (result == CONFIG_ABSENT)
        result =
            config_read("/etc/rlock.conf", take_from_file, parser, parser->why, sizeof parser->why);
    return result != CONFIG_BAD;
}

/* ---- the environment ---- */

static bool read_environment(struct parser *parser)
{
    char variable[64];
    const char *value;
    char why[sizeof parser->why];
    size_t i;

    parser->source = FROM_ENVIRONMENT;
    for (i = 0; i < OPTION_COUNT; i++) {
        if (!option_table[i].is_everywhere)
            continue;
        option_variable(&option_table[i], variable);
        value = getenv(variable);
        if (value == NULL || *value == '\0' || take(parser, &option_table[i], value))
            continue;
        memcpy(why, parser->why, sizeof why);
        snprintf(parser->why, sizeof parser->why, "%s: %.180s", variable, why);
        return false;
    }
    return true;
}

/* ---- the command line ---- */

/* Does this option exist, and does the verb accept it? */
static bool belongs_to_verb(const struct parser *parser, const struct option *row)
{
    return row != NULL && (row->verbs & IN(parser->options->verb)) != 0;
}

/*
 * Report an unknown option by its name only. In --name=value the value is left out of the message,
 * as it may be a password that was meant for another option.
 */
static bool complain_unknown(struct parser *parser, const char *name, size_t n)
{
    char shown[100];
    char cut[64];

    snprintf(cut, sizeof cut, "%.*s", (int)n, name);
    err_escape(shown, sizeof shown, cut);
    snprintf(parser->why, sizeof parser->why, "unknown option%s%s: %s",
             verb_table[parser->options->verb].name != NULL ? " of " : "",
             verb_table[parser->options->verb].name != NULL ? verb_table[parser->options->verb].name
                                                            : "",
             shown);
    return false;
}

static bool complain_no_argument(struct parser *parser, const struct option *row)
{
    snprintf(parser->why, sizeof parser->why, "--%s needs an argument: %s", row->name,
             row->argument);
    return false;
}

/*
 * Refuse a key that the user probably didn't mean: if the variable in "rlock -k $JOB -- job" is
 * unset, the key would be "--"; and with "-k=job" the key would be "=job". No other program would
 * use such a key, so the lock would exclude nobody. --key=KEY accepts any key.
 */
static bool is_likely_mistake(struct parser *parser, const struct option *row, const char *value,
                              bool is_attached)
{
    char shown[56];

    if (row->offset != offsetof(struct options, keys))
        return false;
    err_escape(shown, sizeof shown, value);
    if (*value == '-')
        snprintf(parser->why, sizeof parser->why,
                 "key: \"%.60s\" begins with \"-\", as options do (is a variable empty?); if it is "
                 "meant: --key=%.60s",
                 shown, shown);
    else if (*value == '=' && is_attached)
        snprintf(parser->why, sizeof parser->why,
                 "key: \"%.60s\" begins with \"=\", but -k takes KEY without one: -k %.60s; if it "
                 "is meant: -k %.60s",
                 shown, shown + 1, shown);
    else
        return false;
    return true;
}

/*
 * Read --name, --name=value or --name value, and advance `*argv` to the last word that belongs to
 * the option.
 */
static bool take_long(struct parser *parser, char ***argv)
{
    char *name = **argv + 2;
    size_t n = strcspn(name, "=");
    const struct option *row = option_of_name(name, n);

    if (n == strlen("dump") && strncmp(name, "dump=", n + 1) == 0) {
        parser->options->asked = ASKED_DUMP;
        parser->options->dump = name + n + 1;
        return true;
    }
    if (!belongs_to_verb(parser, row) || (row->argument == NULL && name[n] == '='))
        return complain_unknown(parser, **argv, n + 2);
    if (row->argument == NULL)
        return take(parser, row, NULL);
    if (name[n] == '=')
        return take(parser, row, name + n + 1);
    if ((*argv)[1] == NULL)
        return complain_no_argument(parser, row);
    ++*argv;
    return !is_likely_mistake(parser, row, **argv, false) && take(parser, row, **argv);
}

/*
 * Read letters such as -n, -nv, -t30 or -t 30, and advance `*argv` to the last word that belongs to
 * them.
 */
static bool take_letters(struct parser *parser, char ***argv)
{
    char *at = **argv + 1;

    for (; *at != '\0'; at++) {
        const struct option *row = option_of_letter(*at);

        if (!belongs_to_verb(parser, row))
            return complain_unknown(parser, (char[]){'-', *at}, 2);
        if (row->argument == NULL) {
            if (!take(parser, row, NULL))
                return false;
            continue;
        }
        if (at[1] != '\0')
            return !is_likely_mistake(parser, row, at + 1, true) && take(parser, row, at + 1);
        if ((*argv)[1] == NULL)
            return complain_no_argument(parser, row);
        ++*argv;
        return !is_likely_mistake(parser, row, **argv, false) && take(parser, row, **argv);
    }
    return true;
}

static bool read_command_line(struct parser *parser, char **argv)
{
    parser->source = FROM_COMMAND_LINE;
    parser->options->verb = verb_named(*argv);
    argv += verb_table[parser->options->verb].name != NULL;
    for (; *argv != NULL; argv++) {
        if (strcmp(*argv, "--") == 0) {
            argv++;
            break;
        }
        if ((*argv)[0] != '-' || (*argv)[1] == '\0')
            break;
        if (!((*argv)[1] == '-' ? take_long : take_letters)(parser, &argv))
            return false;
        if (parser->options->asked != ASKED_RUN)
            return true;
    }
    parser->options->argv = argv;
    return true;
}

/* ---- options that must be given, and options that exclude each other ---- */

static bool check(struct parser *parser)
{
    const struct options *options = parser->options;
    const struct verb_row *verb = &verb_table[options->verb];
    const char *why = NULL;

    if (verb->needs_key && options->n_keys == 0)
        why = "no key: name the lock with -k KEY";
    else if (verb->takes_one_key && options->n_keys > 1)
        why = "only one key may be given";
    else if (verb->name != NULL)
        why = options->argv[0] != NULL && verb->words == NULL
                  ? "the verb takes no arguments behind its options"
                  : NULL;
    else if (options->command == NULL && options->argv[0] == NULL)
        why = "no command: say what to run behind the options, or with -c STRING";
    else if (options->command != NULL && options->argv[0] != NULL)
        why = "-c STRING is the whole command: no arguments may follow";
    if (why != NULL)
        snprintf(parser->why, sizeof parser->why, "%s", why);
    return why == NULL;
}

static const struct origin *origin_of(const struct parser *parser, const char *name)
{
    return &parser->origins[option_of_name(name, strlen(name)) - option_table];
}

static bool is_later(const struct origin *one, const struct origin *other)
{
    return one->from > other->from || (one->from == other->from && one->order > other->order);
}

/*
 * If several of --shared, --exclusive and --slots are given, only one has an effect: the option
 * that the greatest source (enum source) has set; if one source has set several, the last of them.
 */
static enum rlock_mode mode_of(const struct parser *parser)
{
    const struct options *options = parser->options;
    const struct origin *shared = origin_of(parser, "shared");
    const struct origin *exclusive = origin_of(parser, "exclusive");
    const struct origin *slots = origin_of(parser, "slots");
    bool is_exclusive = options->exclusive != 0;

    if (options->slots > 0 && !(is_exclusive && is_later(exclusive, slots)) &&
        !(options->shared && is_later(shared, slots)))
        return RLOCK_SLOTS;
    if (options->shared && !(is_exclusive && is_later(exclusive, shared)))
        return RLOCK_SHARED;
    return RLOCK_EXCLUSIVE;
}

static enum rlock_protocol protocol_of(const struct options *options)
{
    if (options->key_value == KEY_VALUE_TOKEN)
        return RLOCK_PROTOCOL_TOKEN;
    return options->timestamp_unit == TIMESTAMP_MS ? RLOCK_PROTOCOL_TIME_MS : RLOCK_PROTOCOL_TIME_S;
}

/*
 * If both --password-file and --password-command are given, keep only one: the option that the
 * greater source (enum source) has set; if one source has set both, the later option. The field of
 * the other option becomes NULL.
 */
static void choose_password(const struct parser *parser)
{
    struct options *options = parser->options;
    const struct origin *file = origin_of(parser, "password-file");
    const struct origin *command = origin_of(parser, "password-command");

    if (options->password_command != NULL && is_later(command, file))
        options->password_file = NULL;
    else if (options->password_file != NULL)
        options->password_command = NULL;
    options->password_from = options->password_command != NULL ? command->from : file->from;
}

/* Refuse options that exclude each other, whichever sources they come from. */
static bool check_mode(struct parser *parser)
{
    const struct options *options = parser->options;
    const char *why = NULL;

    if (options->verb != VERB_RUN && options->verb != VERB_ACQUIRE)
        return true;
    if (options->mode == RLOCK_SLOTS && options->n_keys > 1)
        why = "slots: possible with one key only";
    else if (options->once_ms > 0 && (options->n_keys > 1 || options->mode != RLOCK_EXCLUSIVE))
        why = "once: possible with one key only, and without --shared and --slots";
    else if (options->protocol != RLOCK_PROTOCOL_TOKEN &&
             (options->mode != RLOCK_EXCLUSIVE || options->n_keys > 1 || options->once_ms > 0 ||
              options->queue == RLOCK_QUEUE_NEWEST))
        why =
            "protocol timestamp: possible with one key only, and without --shared, --slots, --once "
            "and --queue newest";
    else if (options->protocol != RLOCK_PROTOCOL_TOKEN && options->nested)
        why = "nested: not possible with --protocol timestamp, whose locks have no token";
    else if (options->protocol != RLOCK_PROTOCOL_TOKEN && options->verb == VERB_ACQUIRE)
        why = "protocol timestamp: not possible with acquire, as such a lock has no token";
    else if (options->on_lost == ON_LOST_PAUSE && options->bind_pid > 0)
        why =
            "on-lost pause: possible only for a command that rlock runs; with --bind-pid use kill "
            "or ignore";
    else if (options->min_hold_ms > RLOCK_TTL_MAX_MS || options->once_ms > RLOCK_TTL_MAX_MS)
        why = "min-hold, once: at most 30d";
    if (why != NULL)
        snprintf(parser->why, sizeof parser->why, "%s", why);
    return why == NULL;
}

enum rlock_status option_parser_read(struct options *options, char **argv, struct rlock_error *err)
{
    struct parser parser = {.options = options};
    enum rlock_status st = RLOCK_OK;

    *options = options_by_default;
    if (!read_command_line(&parser, argv + 1))
        st = RLOCK_E_USAGE;
    else if (options->asked != ASKED_RUN)
        return RLOCK_OK;
    else if (!check(&parser) || !read_environment(&parser))
        st = RLOCK_E_USAGE;
    else if (!read_files(&parser))
        st = RLOCK_E_CONFIG;
    options->url_from = origin_of(&parser, "url")->from;
    choose_password(&parser);
    options->sentinel_password_file_from = origin_of(&parser, "sentinel-password-file")->from;
    options->token_file_from = origin_of(&parser, "token-file")->from;
    options->ttl_from = origin_of(&parser, "ttl")->from;
    if (options->nonblock && is_later(origin_of(&parser, "nonblock"), origin_of(&parser, "wait")))
        options->wait_ms = 0;
    options->mode = mode_of(&parser);
    options->protocol = protocol_of(options);
    if (st == RLOCK_OK && !check_mode(&parser))
        st = RLOCK_E_USAGE;
    err->status = st;
    snprintf(err->text, sizeof err->text, "%s", parser.why);
    return st;
}
