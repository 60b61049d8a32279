/* SPDX-License-Identifier: MIT */
/* option_parser: fill the options from the command line, the environment and a file. */
#include "options/option_parser.h"

#include "base/err.h"
#include "options/combination.h"
#include "options/config.h"
#include "options/mistake.h"
#include "options/suggest.h"
#include "options/units.h"
#include "wire/url.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * The state of option_parser_read(), which reads the command line first, then the environment, then
 * the file. If an earlier source has set an option, a later source doesn't change it.
 */
struct parser {
    struct options *options;
    enum source source; /* the source that is being read */
    int line;           /* the number of the line that is being read in the file */
    int n_values;       /* how many values the parser has read; the `order` of the next value */
    bool has_dashes; /* "--" stands before the first word, so the word is a command, not a verb */
    char why[320];   /* the error message; "": none */
    enum rlock_status failed; /* the status that goes with `why` */
};

static bool complain(struct parser *parser, const struct option *row, const char *why,
                     const char *value)
{
    char shown[100];

    url_show(shown, sizeof shown, value); /* a value may be a URL with a password */
    snprintf(parser->why, sizeof parser->why, "%s: %s: \"%s\"", row->name, why, shown);
    return false;
}

static bool complain_memory(struct parser *parser)
{
    snprintf(parser->why, sizeof parser->why, "no memory");
    parser->failed = RLOCK_E_MEMORY;
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
 * Parse the value of a flag. In the environment and in files it is a word for no or yes. On the
 * command line a flag has no value (NULL), and means yes.
 */
static bool parse_flag(const char *value, int64_t *is_on)
{
    static const char *const words[] = {"no", "yes", "false", "true", "0", "1"};
    size_t i;

    *is_on = value == NULL;
    for (i = 0; value != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(value, words[i]) == 0) {
            *is_on = i % 2;
            return true;
        }
    return value == NULL;
}

/* Complain about a value that isn't of the option's kind, or not within the option's range. */
static bool complain_value(struct parser *parser, const struct option *row, const char *value)
{
    char least[UNITS_TEXT_BYTES];
    char most[UNITS_TEXT_BYTES];
    char why[128];

    units_exact(least, row->least);
    units_exact(most, row->most);
    if (row->kind == OPTION_DURATION)
        snprintf(why, sizeof why, "not a duration (30, 0.5, 500ms, 5m, 1h30m, 1d) from %s to %s",
                 least, most);
    else if (row->kind == OPTION_NUMBER)
        snprintf(why, sizeof why, "not a number from %" PRId64 " to %" PRId64, row->least,
                 row->most);
    else
        snprintf(why, sizeof why, "not one of %s",
                 row->argument != NULL ? row->argument : "yes|no");
    return complain(parser, row, why, value);
}

static bool take_number(struct parser *parser, const struct option *row, const char *value)
{
    int64_t *at = (int64_t *)((char *)parser->options + row->offset);
    bool is_good;

    if (row->kind == OPTION_DURATION)
        is_good = units_duration(value, at) && *at >= row->least && *at <= row->most;
    else if (row->kind == OPTION_NUMBER)
        is_good = units_number(value, row->most, at) && *at >= row->least;
    else if (row->kind == OPTION_CHOICE)
        is_good = parse_choice(row, value, at);
    else
        is_good = parse_flag(value, at);
    return is_good || complain_value(parser, row, value);
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
 * Returns false if a source of higher rank (see enum source) has set the option already. Else notes
 * where the new value comes from, and returns true, also for a second value from one source.
 */
static bool overrides(struct parser *parser, const struct option *row)
{
    struct origin *origin = &parser->options->origins[row - option_table];

    if (parser->source < origin->from)
        return false;
    origin->from = parser->source;
    origin->order = parser->n_values++;
    origin->line = parser->line;
    return true;
}

/*
 * Every user can read the arguments of a process (ps(1)). So copy the URL, and overwrite the
 * password in the argument. Returns the copy; NULL: no memory.
 */
static const char *copy_and_mask(struct parser *parser, const char *url)
{
    const char *kept;

    if (!keep_text(parser->options, url, &kept))
        return NULL;
    url_mask((char *)url);
    return kept;
}

/*
 * Was this text, which is no URL, meant as several URLs? Yes if a "://" follows a comma or
 * semicolon. Without one, only if the separator stands in the host: not before an @ (a password may
 * have commas), not in the path, and not with Sentinels, whose hosts are a list with commas.
 */
static bool means_several_urls(const char *text)
{
    const char *comma = strpbrk(text, ",;");
    const char *scheme_end = strstr(text, "://");
    const char *host = scheme_end != NULL ? scheme_end + strlen("://") : text;

    if (comma == NULL)
        return false;
    return strstr(comma, "://") != NULL ||
           (strchr(comma, '@') == NULL && strcasestr(text, "sentinel") == NULL &&
            comma < host + strcspn(host, "/?"));
}

/*
 * Check a URL at once, while the parser knows the line or the variable that the URL comes from: the
 * message about a bad URL names that place.
 */
static bool check_url(struct parser *parser, const char *text)
{
    struct rlock_error err = {.status = RLOCK_OK};
    char *hint = parser->options->hint;
    char meant[URL_SHOWN_BYTES];
    struct url url;

    if (strcmp(text, OPTIONS_LOCAL_URL) == 0)
        return true;
    if (url_parse(&url, text, &err) == RLOCK_OK) {
        url_fini(&url);
        return true;
    }
    snprintf(parser->why, sizeof parser->why, "%s%.240s",
             parser->source == FROM_COMMAND_LINE ? "--url: " : "", err.text);
    parser->failed = err.status;
    if (means_several_urls(text))
        snprintf(hint, sizeof parser->options->hint, "%s",
                 parser->source == FROM_COMMAND_LINE
                     ? "give each of several servers a -u of its own"
                     : "separate the URLs of several servers by spaces");
    else if (url_suggest(text, meant))
        snprintf(hint, sizeof parser->options->hint, "did you mean %s?", meant);
    return false;
}

/* Append a value to the option's array, whose length is the next field of struct options. */
static bool append_text(struct parser *parser, const struct option *row, const char *value)
{
    const char ***texts = (const char ***)((char *)parser->options + row->offset);
    size_t *n = (size_t *)(texts + 1);
    const char **grown;

    if (row->offset == offsetof(struct options, urls)) {
        value = strcasecmp(value, OPTIONS_LOCAL_URL) == 0 ? OPTIONS_LOCAL_URL : value;
        if (!check_url(parser, value))
            return false;
    }
    grown = realloc(*texts, (*n + 1) * sizeof *grown);
    if (grown == NULL)
        return complain_memory(parser);
    *texts = grown;
    grown[(*n)++] = value;
    return true;
}

/*
 * Append all values of an option that may be repeated. The environment and files give them as one
 * text, separated by blanks; a variable that was set from a file often ends with a newline.
 */
static bool append_words(struct parser *parser, const struct option *row, const char *value)
{
    char *words = strdup(value);
    bool good = words != NULL;
    size_t n = 0;
    const char *kept;
    char *saved;
    char *word;

    for (word = good ? strtok_r(words, OPTIONS_BLANKS, &saved) : NULL; good && word != NULL;
         word = strtok_r(NULL, OPTIONS_BLANKS, &saved), n++)
        good = keep_text(parser->options, word, &kept) && append_text(parser, row, kept);
    if (words != NULL)
        explicit_bzero(words, strlen(value)); /* the copy may contain a URL with a password */
    free(words);
    if (good && n == 0)
        return complain(parser, row, "must not be empty", value);
    if (!good && parser->why[0] == '\0')
        complain_memory(parser);
    return good;
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
    if (row->offset == offsetof(struct options, urls)) {
        value = copy_and_mask(parser, value);
        if (value == NULL)
            return complain_memory(parser);
    }
    if (row->kind == OPTION_TEXTS)
        return append_text(parser, row, value);
    *(const char **)((char *)parser->options + row->offset) = value;
    return true;
}

static bool accepts(enum verb verb, const struct option *row)
{
    return (row->verbs & IN(verb)) != 0;
}

/* Hint at the option whose name is most like `typed`, of those that can be set in this source. */
static void suggest_like(struct parser *parser, const char *typed)
{
    struct suggestion suggestion = {.typed = typed};
    bool is_line = parser->source == FROM_COMMAND_LINE;
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++)
        if (is_line ? accepts(parser->options->verb, &option_table[i])
                    : option_table[i].is_everywhere)
            suggest_consider(&suggestion, option_table[i].name);
    if (suggestion.best != NULL)
        snprintf(parser->options->hint, sizeof parser->options->hint, "did you mean %s%s?",
                 is_line ? "--" : "", suggestion.best);
}

/* ---- reading the configuration file ---- */

/* The configuration file can't set `name`: hint at the reason, or at the option that was meant. */
static void suggest_name(struct parser *parser, const char *name)
{
    /* not NULL: the command line accepts this name, for an option of rlock or of flock(1) */
    const struct option *row = option_of_name(name, strlen(name));

    if (row != NULL && !row->is_everywhere)
        snprintf(parser->options->hint, sizeof parser->options->hint,
                 "--%s can be given on the command line only", row->name);
    else
        suggest_like(parser, row != NULL ? row->name : name);
}

static bool take_from_file(void *context, int line, char *name, const char *value, char *why,
                           size_t room)
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
        suggest_name(parser, name);
        return false;
    }
    parser->line = line;
    good = keep_text(parser->options, value, &kept) && take(parser, &option_table[i], kept);
    if (!good && parser->why[0] == '\0')
        complain_memory(parser);
    if (!good)
        snprintf(why, room, "%s", parser->why);
    return good;
}

static enum config_result read_file(struct parser *parser, const char *path)
{
    enum config_result result =
        config_read(path, take_from_file, parser, parser->why, sizeof parser->why);

    if (result != CONFIG_READ || keep_text(parser->options, path, &parser->options->file))
        return result;
    complain_memory(parser);
    return CONFIG_BAD;
}

/*
 * Read one file: $RLOCK_CONFIG if it is set; else the user's file, which is in $XDG_CONFIG_HOME or
 * in ~/.config (XDG Base Directory Specification); or the system's file if the user has none.
 */
static bool read_files(struct parser *parser)
{
    const char *named = getenv("RLOCK_CONFIG");
    const char *folder = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    enum config_result result = CONFIG_ABSENT;
    char path[PATH_MAX];

    parser->source = FROM_FILE;
    if (named != NULL && *named != '\0') {
        result = read_file(parser, named);
        if (result == CONFIG_ABSENT)
            snprintf(parser->why, sizeof parser->why, "%.200s: no such file", named);
        return result == CONFIG_READ;
    }
    path[0] = '\0';
    if (folder != NULL && *folder == '/') /* the specification says: ignore a relative path */
        snprintf(path, sizeof path, "%s/rlock/config", folder);
    else if (home != NULL && *home != '\0')
        snprintf(path, sizeof path, "%s/.config/rlock/config", home);
    if (path[0] != '\0')
        result = read_file(parser, path);
    if (result == CONFIG_ABSENT)
        result = read_file(parser, "/etc/rlock.conf");
    return result != CONFIG_BAD;
}

/* ---- reading the environment ---- */

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
        snprintf(parser->why, sizeof parser->why, "%.50s: %.200s", variable, why);
        return false;
    }
    return true;
}

/* ---- reading the command line ---- */

/* The ways to write an option's argument on the command line. */
enum form {
    FORM_NONE,          /* the option has no argument */
    FORM_NEXT_WORD,     /* -k KEY, --key KEY */
    FORM_ATTACHED,      /* -kKEY */
    FORM_BEHIND_EQUALS, /* --key=KEY */
};

/* One option on the command line. */
struct given {
    const struct option *row; /* NULL: no such option exists */
    char name[64];            /* as the user wrote it, such as "--ttl" or "-t"; may be cut */
    char *value;              /* the argument; NULL: none is given */
    enum form form;
};

/* The position of the parser on the command line. */
struct place {
    char **argv;
    /* the letters of the word *argv that are still unread: "v" of -nv; NULL: none was read yet */
    char *letters;
};

/* True if the word at this position is an option. "--" and "-" are no options. */
static bool is_at_option(const struct place *at)
{
    const char *word = *at->argv;

    return at->letters != NULL ||
           (word != NULL && word[0] == '-' && word[1] != '\0' && strcmp(word, "--") != 0);
}

static struct given read_long(struct place *at)
{
    char *word = *at->argv++;
    size_t n = strcspn(word, "=");
    struct given given = {.row = option_of_name(word + 2, n - 2)};

    snprintf(given.name, sizeof given.name, "%.*s", (int)n, word);
    if (word[n] == '=') {
        given.value = word + n + 1;
        given.form = FORM_BEHIND_EQUALS;
    }
    return given;
}

/* Read one letter of a word such as -n, -nv or -t30. */
static struct given read_letter(struct place *at)
{
    char *letter = at->letters != NULL ? at->letters : *at->argv + 1;
    struct given given = {.row = option_of_letter(*letter), .name = {'-', *letter}};

    at->letters = letter + 1;
    if (given.row != NULL && given.row->argument != NULL && letter[1] != '\0') {
        given.value = letter + 1;
        given.form = FORM_ATTACHED;
    }
    if (given.value != NULL || letter[1] == '\0') {
        at->letters = NULL;
        at->argv++;
    }
    return given;
}

/* Read the option at this position, with its argument, and move the position past both. */
static struct given read_option(struct place *at)
{
    bool is_long = at->letters == NULL && (*at->argv)[1] == '-';
    struct given given = is_long ? read_long(at) : read_letter(at);

    if (given.row != NULL && given.row->argument != NULL && given.form == FORM_NONE &&
        *at->argv != NULL) {
        given.value = *at->argv++;
        given.form = FORM_NEXT_WORD;
    }
    return given;
}

static bool is_key(const struct option *row)
{
    return row->offset == offsetof(struct options, keys);
}

/*
 * Returns the place of the verb, which may follow options, as in "rlock -u URL status". NULL: there
 * is no verb, or an unknown option comes first. A word after a key or "--" is a command, even if it
 * is a verb's name: in "rlock -k job status" the user runs a program "status" under the lock "job".
 */
static char **find_verb(char **argv)
{
    struct place at = {.argv = argv};

    while (is_at_option(&at)) {
        struct given given = read_option(&at);

        if (given.row == NULL || is_key(given.row))
            return NULL;
    }
    return verb_named(*at.argv) == VERB_RUN ? NULL : at.argv;
}

/*
 * Set the hint about an unknown option: why rlock lacks this option of flock(1), or which option of
 * the verb was probably meant.
 */
static void suggest_option(struct parser *parser, const char *name)
{
    const char *why_not = option_why_not(name);

    if (why_not != NULL)
        snprintf(parser->options->hint, sizeof parser->options->hint, "%s", why_not);
    else if (name[1] == '-')
        suggest_like(parser, name + 2);
}

/* Report an unknown option by its name. Its value may be a password, so the message lacks it. */
static bool complain_unknown(struct parser *parser, const char *name)
{
    const char *verb = verb_table[parser->options->verb].name;
    char shown[100];

    err_escape(shown, sizeof shown, name);
    snprintf(parser->why, sizeof parser->why, "unknown option%s%s: %s", verb != NULL ? " of " : "",
             verb != NULL ? verb : "", shown);
    suggest_option(parser, name);
    return false;
}

/*
 * Refuse a value that the user probably didn't mean: if the variable in "rlock --report $FILE
 * --url=URL" is empty, the value would be "--url=URL", and with "-k=job" the key would be "=job".
 * --name=VALUE accepts any text.
 */
static bool is_likely_mistake(struct parser *parser, const struct given *given)
{
    const struct option *row = given->row;
    bool is_text = row->kind == OPTION_TEXT || row->kind == OPTION_TEXTS;
    const char *value = given->value;
    const char *empty = "is a variable empty?";
    char shown[56];
    size_t n;

    if (row->argument == NULL)
        return false;
    url_show(shown, sizeof shown, value);
    if (given->form == FORM_NEXT_WORD && value[0] == '-' && value[1] != '\0') {
        if (!is_text) { /* no number, duration or choice begins with "-" */
            snprintf(parser->options->hint, sizeof parser->options->hint, "%s", empty);
            return !complain_value(parser, row, value);
        }
        snprintf(parser->why, sizeof parser->why,
                 "%s: \"%s\" begins with \"-\", as options do (%s)", row->name, shown, empty);
    } else if (given->form == FORM_ATTACHED && value[0] == '=') {
        snprintf(parser->why, sizeof parser->why,
                 "%s: \"%s\" begins with \"=\", but %.2s takes %.20s without one: %.2s %s",
                 row->name, shown, given->name, row->argument, given->name, shown + 1);
    } else {
        return false;
    }
    n = strlen(parser->why);
    if (is_text)
        snprintf(parser->why + n, sizeof parser->why - n, "; if you mean this value: --%s=%s",
                 row->name, shown);
    return true;
}

static bool take_given(struct parser *parser, const struct given *given)
{
    const struct option *row = given->row;

    if (strcmp(given->name, "--dump") == 0 && given->form == FORM_BEHIND_EQUALS) {
        parser->options->asked = ASKED_DUMP;
        parser->options->dump = given->value;
        return true;
    }
    if (row == NULL || !accepts(parser->options->verb, row) ||
        (row->argument == NULL && given->value != NULL))
        return complain_unknown(parser, given->name);
    if (row->argument != NULL && given->value == NULL) {
        snprintf(parser->why, sizeof parser->why, "--%s needs an argument: %s", row->name,
                 row->argument);
        return false;
    }
    return !is_likely_mistake(parser, given) && take(parser, row, given->value);
}

/* Read options up to the first word that is no option, or up to --help, --version or --dump. */
static bool read_options(struct parser *parser, struct place *at)
{
    while (is_at_option(at) && parser->options->asked == ASKED_RUN) {
        struct given given = read_option(at);

        if (!take_given(parser, &given))
            return false;
    }
    return true;
}

/*
 * Read the command line. Without a verb, rlock's options end at the first word that is no option:
 * the command, which has options of its own. With a verb, words may stand before, between and after
 * the options, and "--" ends the options. The parser moves these words to the start of `argv`, over
 * words that it has read.
 */
static bool read_command_line(struct parser *parser, char **argv)
{
    struct options *options = parser->options;
    char **verb = find_verb(argv);
    struct place at = {.argv = argv};
    char **words = argv;

    parser->source = FROM_COMMAND_LINE;
    options->verb = options->about = verb_named(verb != NULL ? *verb : NULL);
    options->argv = argv;
    for (;;) {
        if (!read_options(parser, &at))
            return false;
        if (options->asked != ASKED_RUN)
            return true;
        if (*at.argv == NULL)
            break;
        if (strcmp(*at.argv, "--") == 0) {
            parser->has_dashes = true;
            at.argv++;
            break;
        }
        if (options->verb == VERB_RUN)
            break;
        if (at.argv != verb)
            *words++ = *at.argv;
        at.argv++;
    }
    if (options->verb == VERB_RUN)
        options->argv = at.argv;
    else
        while ((*words++ = *at.argv++) != NULL)
            continue;
    return true;
}

/* ---- options that must be given, and options that exclude each other ---- */

static bool refuse(struct parser *parser, const char *why, const char *hint)
{
    snprintf(parser->why, sizeof parser->why, "%s", why);
    snprintf(parser->options->hint, sizeof parser->options->hint, "%s", hint);
    return false;
}

/* In "rlock status job" the word "job" is a key: add it to the keys, as -k would. */
static bool take_key_word(struct parser *parser)
{
    struct options *options = parser->options;
    const char *word = options->argv[0];

    if (word == NULL)
        return true;
    if (options->argv[1] != NULL)
        return refuse(parser, "only one key may be given as a word",
                      "for several locks: -k KEY -k KEY");
    if (options->n_keys > 0)
        return complain(parser, option_of_letter('k'), "given twice, by -k and behind the verb",
                        word);
    return take(parser, option_of_letter('k'), word);
}

/*
 * Check the words behind the verb by what the verb takes: a key, which is added to `keys`; for help
 * the name of a verb, which is stored in `about`; or none. A command and patterns aren't checked.
 */
static bool check_words(struct parser *parser)
{
    struct options *options = parser->options;
    const char *const word = options->argv[0];
    struct mistake mistake;

    switch (verb_table[options->verb].words) {
    case VERB_WORDS_KEY:
    case VERB_WORDS_MAYBE_KEY:
        return take_key_word(parser);
    case VERB_WORDS_VERB:
        options->asked = ASKED_HELP;
        options->about = verb_named(word);
        if (word != NULL && options->about == VERB_RUN) {
            mistake = mistake_unknown_verb(word);
            return refuse(parser, mistake.why, mistake.hint);
        }
        return word == NULL || options->argv[1] == NULL ||
               refuse(parser, "only one verb may be given", "");
    case VERB_WORDS_NONE:
        return word == NULL || refuse(parser, "the verb takes no arguments but options", "");
    case VERB_WORDS_COMMAND:
    case VERB_WORDS_PATTERN:
        break;
    }
    return true;
}

static bool check(struct parser *parser)
{
    const struct options *options = parser->options;
    const struct verb_row *verb = &verb_table[options->verb];
    struct mistake mistake;

    if (!check_words(parser))
        return false;
    if (verb->needs_key && options->n_keys == 0) {
        mistake = mistake_no_key(options->argv, !parser->has_dashes, getenv("PATH"));
        return refuse(parser, mistake.why, mistake.hint);
    }
    if (verb->takes_one_key && options->n_keys > 1)
        return refuse(parser, "only one key may be given", "");
    if (options->verb == VERB_HOLD && options->hold_ms == 0)
        return refuse(parser, "--for: say for how long to hold the lock, as with --for 2h", "");
    if (verb->words != VERB_WORDS_COMMAND)
        return true;
    if (options->command == NULL && options->argv[0] == NULL && !options->explain)
        return refuse(parser, "no command: say what to run behind the options, or with -c STRING",
                      "");
    return options->command == NULL || options->argv[0] == NULL ||
           refuse(parser, "-c STRING is the whole command: no arguments may follow", "");
}

/*
 * Returns the rank of an option; -1: the option was not given. Of options that exclude each other,
 * rlock obeys the one of the highest rank: by its source (see enum source), then the later one.
 */
static int64_t rank_of(const struct options *options, const char *name, bool is_given)
{
    const struct origin *origin = options_origin(options, name);

    return is_given ? ((int64_t)origin->from << 32) + origin->order : -1;
}

static enum rlock_mode mode_of(const struct options *options)
{
    int64_t shared = rank_of(options, "shared", options->shared != 0);
    int64_t exclusive = rank_of(options, "exclusive", options->exclusive != 0);
    int64_t slots = rank_of(options, "slots", options->slots > 0);

    if (slots > shared && slots > exclusive)
        return RLOCK_SLOTS;
    return shared > exclusive ? RLOCK_SHARED : RLOCK_EXCLUSIVE;
}

static enum rlock_protocol protocol_of(const struct options *options)
{
    if (options->key_value == KEY_VALUE_TOKEN)
        return RLOCK_PROTOCOL_TOKEN;
    return options->timestamp_unit == TIMESTAMP_MS ? RLOCK_PROTOCOL_TIME_MS : RLOCK_PROTOCOL_TIME_S;
}

/* Keep --password-file or --password-command, whichever ranks higher, and make the other NULL. */
static void choose_password(struct options *options)
{
    bool is_command = rank_of(options, "password-command", options->password_command != NULL) >
                      rank_of(options, "password-file", options->password_file != NULL);

    *(is_command ? &options->password_file : &options->password_command) = NULL;
    options->password_from =
        options_origin(options, is_command ? "password-command" : "password-file")->from;
}

/*
 * True if --json stands anywhere before "--", or RLOCK_JSON is on. Only for the message about a bad
 * option: the parser stops at that option, and --json may follow.
 */
static bool asks_for_json(char **argv)
{
    const char *variable = getenv("RLOCK_JSON");
    int64_t is_on = 0;

    if (variable != NULL)
        parse_flag(variable, &is_on);
    for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
        is_on = is_on || strcmp(*argv, "--json") == 0;
    return is_on != 0;
}

enum rlock_status option_parser_read(struct options *options, char **argv, struct rlock_error *err)
{
    struct parser parser = {.options = options, .failed = RLOCK_E_USAGE};
    enum rlock_status st = RLOCK_OK;

    *options = options_by_default;
    if (!read_command_line(&parser, argv + 1) || (options->asked == ASKED_RUN && !check(&parser)))
        st = parser.failed;
    else if (options->asked != ASKED_RUN || verb_table[options->verb].is_offline)
        return RLOCK_OK;
    else if (!read_environment(&parser))
        st = parser.failed;
    else if (!read_files(&parser))
        st = parser.failed == RLOCK_E_MEMORY ? RLOCK_E_MEMORY : RLOCK_E_CONFIG;
    options->url_from = options_origin(options, "url")->from;
    choose_password(options);
    if (rank_of(options, "nonblock", options->nonblock != 0) > rank_of(options, "wait", true))
        options->wait_ms = 0;
    options->needs_queue = options->queue != RLOCK_QUEUE_NONE &&
                           options_origin(options, "queue")->from != FROM_DEFAULT;
    options->mode = mode_of(options);
    options->protocol = protocol_of(options);
    options->needs_cgroup = options->cgroup || options->on_lost == ON_LOST_PAUSE;
    if (st == RLOCK_OK && !combination_check(options, parser.why, sizeof parser.why))
        st = RLOCK_E_USAGE;
    if (st != RLOCK_OK && asks_for_json(argv))
        options->json = 1;
    err->status = st;
    snprintf(err->text, sizeof err->text, "%s", parser.why);
    return st;
}
