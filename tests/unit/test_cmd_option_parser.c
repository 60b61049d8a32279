/* SPDX-License-Identifier: MIT */
/* test_cmd_option_parser: options from the command line, the environment and a file. */
#include "options/option_parser.h"
#include "tap.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "s3cret"
#define WORDS_MAX 32

static char folder[] = "/tmp/rlock-options.XXXXXX";
static char file[64];

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    if (out == NULL)
        return;
    fputs(text, out);
    fclose(out);
}

/* Parse a command line, given as one text whose words are separated by blanks. */
static enum rlock_status read_line(struct options *options, const char *line,
                                   struct rlock_error *err)
{
    static char words[512];
    static char *argv[WORDS_MAX];
    char *rest = words;
    int n = 0;

    snprintf(words, sizeof words, "%s", line);
    memset(argv, 0, sizeof argv);
    argv[n++] = (char *)"rlock";
    while (n < WORDS_MAX - 1 && (argv[n] = strsep(&rest, " ")) != NULL)
        n++;
    *err = (struct rlock_error){.text = ""};
    return option_parser_read(options, argv, err);
}

/* ---- tests of which source wins ---- */

/* For each kind of option: its value as written in each source, and the number parsed from that. */
static const struct source_words {
    const char *in_file, *in_environment, *in_line; /* NULL: the option has no argument */
    int64_t by_file, by_environment, by_line;
} words_of[] = {
    [OPTION_TEXT] = {"/f", "/e", "/c", 0, 0, 0},
    [OPTION_TEXTS] = {"redis://f", "redis://e", "redis://c", 0, 0, 0},
    [OPTION_DURATION] = {"3", "2s", "1000ms", 3000, 2000, 1000},
    [OPTION_DURATION_OR_ZERO] = {"3", "0", "1", 3000, 0, 1000},
    [OPTION_STAY] = {"3", "2s", "1000ms", 3000, 2000, 1000},
    [OPTION_STATUS] = {"3", "0", "255", 3, 0, 255},
    [OPTION_CHOICE] = {"pause", "kill", "ignore", ON_LOST_PAUSE, ON_LOST_KILL, ON_LOST_IGNORE},
    [OPTION_NUMBER] = {"3", "1", "1000", 3, 1, 1000},
    [OPTION_PID] = {"3", "1", "2147483647", 3, 1, 2147483647},
    [OPTION_NUMBER_OR_ZERO] = {"3", "0", "1000", 3, 0, 1000},
    [OPTION_FLAG] = {"yes", "no", NULL, 1, 0, 1},
};

/* words_of[OPTION_CHOICE] has the words of --on-lost. Other options of this kind have others: */
static const struct source_words queue_words = {
    "none", "newest", "none", RLOCK_QUEUE_NONE, RLOCK_QUEUE_NEWEST, RLOCK_QUEUE_NONE};

static const struct source_words protocol_words = {"timestamp", "token", "timestamp", 1, 0, 1};
static const struct source_words unit_words = {"ms", "s", "ms", 1, 0, 1};
static const struct source_words scripts_words = {
    "no", "yes", "auto", RLOCK_SCRIPTS_NO, RLOCK_SCRIPTS_YES, RLOCK_SCRIPTS_AUTO};

static const struct source_words *words_for(const struct option *option)
{
    if (strcmp(option->name, "queue") == 0)
        return &queue_words;
    if (strcmp(option->name, "protocol") == 0)
        return &protocol_words;
    if (strcmp(option->name, "timestamp-unit") == 0)
        return &unit_words;
    if (strcmp(option->name, "scripts") == 0)
        return &scripts_words;
    return &words_of[option->kind];
}

static bool has(const struct options *options, const struct option *option, int64_t number,
                const char *text)
{
    const char *at = (const char *)options + option->offset;

    if (option->kind == OPTION_TEXTS && (at = *(const char *const *)at) == NULL)
        return text == NULL;
    if (option->kind != OPTION_TEXT && option->kind != OPTION_TEXTS)
        return *(const int64_t *)at == number;
    return *(const char *const *)at == NULL
               ? text == NULL
               : text != NULL && strcmp(*(const char *const *)at, text) == 0;
}

/* A command line of the first verb that accepts the option, with `words` in it. */
static const char *line_of(const struct option *option, const char *words)
{
    static char line[128];
    int verb = 0;

    while ((option->verbs & IN(verb)) == 0)
        verb++;
    snprintf(line, sizeof line, "%s%s%s -k K%s", verb == VERB_RUN ? "" : verb_table[verb].name,
             verb == VERB_RUN || words[0] == '\0' ? "" : " ", words, verb == VERB_RUN ? " x" : "");
    return line[0] == ' ' ? line + 1 : line;
}

static void says_origin(const struct options *options, const char *name, const char *wanted)
{
    char text[256];

    options_name_origin(options, name, text, sizeof text);
    okf(strcmp(text, wanted) == 0, "the origin of %s is %s: %s", name, wanted, text);
}

static void test_precedence_of(const struct option *option)
{
    const struct source_words *words = words_for(option);
    const char *name = option->name;
    struct options options;
    struct rlock_error err;
    char variable[64];
    char given[64];
    char text[128];

    option_variable(option, variable);
    snprintf(text, sizeof text, "# comment\n\n  %s  =\t%s \n", name, words->in_file);
    write_file(file, text);
    setenv(variable, words->in_environment, 1);
    snprintf(given, sizeof given, "--%s%s%s", name, words->in_line != NULL ? "=" : "",
             words->in_line != NULL ? words->in_line : "");
    okf(read_line(&options, line_of(option, given), &err) == RLOCK_OK &&
            has(&options, option, words->by_line, words->in_line),
        "%s: the command line wins over the environment: %s", name, err.text);
    snprintf(text, sizeof text, "--%s", name);
    says_origin(&options, name, text);
    options_fini(&options);
    okf(read_line(&options, line_of(option, ""), &err) == RLOCK_OK &&
            has(&options, option, words->by_environment, words->in_environment),
        "%s: the environment wins over the file: %s", name, err.text);
    says_origin(&options, name, variable);
    options_fini(&options);
    setenv(variable, "", 1);
    okf(read_line(&options, line_of(option, ""), &err) == RLOCK_OK &&
            has(&options, option, words->by_file, words->in_file),
        "%s: an empty variable counts as unset, and the file wins over the default: %s", name,
        err.text);
    snprintf(text, sizeof text, "%s:3", file);
    says_origin(&options, name, text);
    options_fini(&options);
    unsetenv(variable);
    write_file(file, "");
    okf(read_line(&options, line_of(option, ""), &err) == RLOCK_OK &&
            memcmp((const char *)&options + option->offset,
                   (const char *)&options_by_default + option->offset, sizeof(int64_t)) == 0,
        "%s: without a source the default counts: %s", name, err.text);
    says_origin(&options, name, "the default");
    options_fini(&options);
}

/* Test an option that only the command line may set. */
static void test_command_line_only(const struct option *option)
{
    struct options options;
    struct rlock_error err;
    char variable[64];
    char text[128];

    option_variable(option, variable);
    setenv(variable, "no such value", 1);
    okf(read_line(&options, "-k K x", &err) == RLOCK_OK && strcmp(options.keys[0], "K") == 0,
        "%s is not read from the environment", option->name);
    options_fini(&options);
    unsetenv(variable);
    snprintf(text, sizeof text, "%s = K\n", option->name);
    write_file(file, text);
    okf(read_line(&options, "-k K x", &err) == RLOCK_E_CONFIG &&
            strstr(err.text, option->name) != NULL,
        "%s is refused in a file: %s", option->name, err.text);
    options_fini(&options);
    write_file(file, "");
}

static void test_precedence(void)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (!option_table[i].is_everywhere)
            test_command_line_only(&option_table[i]);
        else
            test_precedence_of(&option_table[i]);
}

/* ---- tests of the command line ---- */

static const struct {
    const char *line;
    const char *why; /* part of the error message; NULL: the line is accepted */
} lines[] = {
    {"-k K x", NULL},
    {"-kK x", NULL},
    {"--key=K x", NULL},
    {"--key K -- x", NULL},
    {"-k K -", NULL},
    {"-nvqkK x", NULL},
    {"-k K -t1 -w0 -E0 x -t 0 --nope", NULL},
    {"-k K -c exit", NULL},
    {"-k K -c exit --", NULL},
    {"-k K --url= x", "url: must not be empty"},
    {"-k K -u LOCAL: x", NULL},
    {"-k K -u VALKEY://h?db=1 x", NULL},
    {"-k K -k A x", NULL},
    {"-k A -k K --slots 2 x", "several keys: not possible with --slots, as slots are"},
    {"-k A -k K --once 5 x", "several keys: not possible with --once, as one exclusive lock"},
    {"-k K --once 5 -s x", "--shared: not possible with --once"},
    {"-k K --once 5 -s -x x", NULL},
    {"-k K --once 31d x", "once: at most 30d: \"31d\""},
    {"-k K --protocol timestamp -s x",
     "--shared: not possible with --protocol timestamp, as the key's value is only a time"},
    {"-k K --queue newest --protocol timestamp x",
     "--queue newest: not possible with --protocol timestamp"},
    {"-k K --nested --protocol timestamp x",
     "--nested: not possible with --protocol timestamp, as such a lock has no token"},
    {"-k K --scripts no -s x", "--shared: not possible with --scripts no, as this needs a script"},
    {"-k K -k L --scripts no x", "several keys: not possible with --scripts no"},
    {"-k K --scripts no --queue fifo x", "--queue: not possible with --scripts no"},
    {"-k K --scripts no --queue none x", NULL},
    {"history --scripts no", "the verb history: not possible with --scripts no"},
    {"break -k K --yes --history 9 --scripts no", "--history: not possible with --scripts no"},
    {"acquire -k K --bind-pid 1 --on-lost pause",
     "--on-lost pause: not possible with --bind-pid, as only a command that rlock starts"},
    {"hold -k K --for 1h -t 10", "--ttl: needs --renew, as without it"},
    {"hold -k K --for 1h --renew -t 10", NULL},
    {"-k K --protocol=timestamp --timestamp-unit=ms x", NULL},
    {"-k K --min-hold 31d x", "min-hold: at most 30d: \"31d\""},
    {"-k K --slots 0 x", "slots: not a number from 1 to 1000"},
    {"-k K --slots 1001 x", "slots: not a number from 1 to 1000"},
    {"-k K --replicas 1001 x", "replicas: not a number from 0 to 1000"},
    {"-k K --replicas -1 x", "replicas: not a number from 0 to 1000"},
    {"-k K --label= x", NULL},
    {"", "no key"},
    {"x", "no key"},
    {"-- -k K x", "no key"},
    {"-k", "--key needs an argument"},
    {"-k K", "no command"},
    {"-k K --", "no command"},
    {"-k K -c exit x", "no arguments may follow"},
    {"-k K --ttl", "--ttl needs an argument"},
    {"-k K -t", "--ttl needs an argument"},
    {"-k K --tt=5 x", "unknown option: --tt"},
    {"-k K --TTL=5 x", "unknown option: --TTL"},
    {"-k K --ttlx x", "unknown option: --ttlx"},
    {"-k K --nonblock=yes x", "unknown option: --nonblock"},
    {"-k K --spots 3 x", "unknown option: --spots"},
    {"-k K -nz x", "unknown option: -"},
    {"-k K -\x1b[2J x", "unknown option: -\\x1b"},
    {"-k K ---key x", "unknown option: ---key"},
    {"-k K -t 0 x", "ttl: must be more than zero"},
    {"-k K -t -5 x", "ttl: not a duration"},
    {"-k K -t 5x x", "ttl: not a duration"},
    {"-k K -t 99999999999999999999 x", "ttl: not a duration"},
    {"-k K --max-hold 0 x", "max-hold: must be more than zero"},
    {"-k K --connect-timeout 0 x", "connect-timeout: must be more than zero"},
    {"-k K --kill-after 0 x", NULL},
    {"-k K -E 256 x", "conflict-exit-code: not a number from 0 to 255"},
    {"-k K -E -1 x", "conflict-exit-code: not a number from 0 to 255"},
    {"-k K --on-lost freeze x", "on-lost: not one of kill|pause|ignore"},
    {"-k K --on-lost kil x", "on-lost: not one of kill|pause|ignore"},
    {"-k K --on-lost kill| x", "on-lost: not one of kill|pause|ignore"},
    {"-k K --on-lost kill|pause x", "on-lost: not one of kill|pause|ignore"},
    {"-k -- x", "key: \"--\" begins with \"-\""},
    {"-nk -- x", "key: \"--\" begins with \"-\""},
    {"-k-n x", "key: \"-n\" begins with \"-\""},
    {"--key -- x", "; if you mean this key: --key=--"},
    {"-k=a x", "key: \"=a\" begins with \"=\""},
    {"-k K -k=\x1b x", "; if you mean the first key: -k =\\x1b"},
    {"release -k --token-file f", "key: \"--token-file\" begins with \"-\""},
    {"--key=K x", NULL},
    {"acquire -k K", NULL},
    {"acquire -k K --bind-pid 1", NULL},
    {"acquire -k K x", "given twice, by -k and behind the verb"},
    {"acquire", "no key"},
    {"acquire K", NULL},
    {"-qv acquire K -t 5", NULL},
    {"-t 5 acquire -- K", NULL},
    {"acquire K L", "only one key may be given as a word"},
    {"acquire K --", NULL},
    {"-t 5 status", "unknown option of status: -t"},
    {"relase -k K", "no such verb: relase"},
    {"K x", "no key"},
    {"-e -k K --nb --nonblocking --timeout 3 x", NULL},
    {"-k K --close x", "unknown option: --close"},
    {"help frobnicate", "no such verb: frobnicate"},
    {"help status list", "only one verb may be given"},
    {"version x", "the verb takes no arguments but options"},
    {"hold -k K", "for: say for how long"},
    {"hold -k K --for 999ms", "for: must be from 1s to 30d"},
    {"hold -k K --for 1s", NULL},
    {"hold -k K --for 30d", NULL},
    {"hold -k K --for 31d", "for: must be from 1s to 30d"},
    {"acquire -k K --bind-pid 0", "bind-pid: not a process ID"},
    {"acquire -k K --bind-pid 2147483648", "bind-pid: not a process ID"},
    {"acquire -k K --bind-pid $$", "bind-pid: not a process ID"},
    {"acquire -k K --once 5", "unknown option of acquire: --once"},
    {"acquire -k K --token-file f", "unknown option of acquire: --token-file"},
    {"acquire -k K -k L --slots 2", "several keys: not possible with --slots"},
    {"acquire -k K --bind-pid 1 --on-lost pause", "on-lost pause: "},
    {"renew -k K -t 5 --token-file f", NULL},
    {"renew -k K -n", "unknown option of renew: -n"},
    {"release -k K --quiet-if-gone", NULL},
    {"release -k K -t 5", "unknown option of release: -t"},
    {"release", "no key"},
    {"-k K --bind-pid 1 x", "unknown option: --bind-pid"},
    {"-k K --token-file f x", "unknown option: --token-file"},
    {"--uri=redis://u:" SECRET "@h -k K x", "unknown option: --uri"},
    {"-xredis://u:" SECRET "@h -k K x", "unknown option: -"},
    {"-k K --nonblock=" SECRET " x", "unknown option: --nonblock"},
};

static void test_lines(void)
{
    struct options options;
    struct rlock_error err;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        enum rlock_status st = read_line(&options, lines[i].line, &err);

        if (lines[i].why == NULL)
            okf(st == RLOCK_OK && strcmp(options.keys[0], "K") == 0, "the line is accepted: %s",
                lines[i].line);
        else
            okf(st == RLOCK_E_USAGE && err.status == st && strstr(err.text, lines[i].why) != NULL,
                "the line is refused: %s: %s", lines[i].line, err.text);
        okf(strstr(err.text, SECRET) == NULL && is_printable(err.text),
            "the message has no password and is printable: %s", err.text);
        options_fini(&options);
    }
}

static void test_command(void)
{
    struct options options;
    struct rlock_error err;

    is_int(read_line(&options, "-k K -n -w 4 -w 5 -u redis://a -u redis://b -- -t 5 --", &err),
           RLOCK_OK, "the line is accepted");
    is_int(options.wait_ms, 5000, "if -n and several -w are given, the last one counts");
    is_int((int)options.n_urls, 2, "both URLs are kept");
    is_int(options.url_from, FROM_COMMAND_LINE, "the source of the URLs is the command line");
    ok(strcmp(options.argv[0], "-t") == 0 && strcmp(options.argv[1], "5") == 0 &&
       strcmp(options.argv[2], "--") == 0 && options.argv[3] == NULL);
    is_int(options.ttl_ms, options_by_default.ttl_ms, "words behind -- are no options");
    options_fini(&options);
    is_int(read_line(&options, "-k K sh -c x", &err), RLOCK_OK);
    ok(options.command == NULL && strcmp(options.argv[1], "-c") == 0);
    options_fini(&options);
    is_int(read_line(&options, "--nope --help", &err), RLOCK_E_USAGE);
    options_fini(&options);
    is_int(read_line(&options, "-t 0 -h", &err), RLOCK_E_USAGE);
    options_fini(&options);
    ok(read_line(&options, "-V --nope", &err) == RLOCK_OK && options.asked == ASKED_VERSION);
    options_fini(&options);
    ok(read_line(&options, "--help", &err) == RLOCK_OK && options.asked == ASKED_HELP);
    options_fini(&options);
    setenv("RLOCK_WAIT", "7", 1);
    ok(read_line(&options, "-n -k K x", &err) == RLOCK_OK && options.wait_ms == 0);
    options_fini(&options);
    ok(read_line(&options, "-k K x", &err) == RLOCK_OK && options.wait_ms == 7000);
    options_fini(&options);
    unsetenv("RLOCK_WAIT");
}

/* Which verb a command line has, and which words are left for it. */
static const struct {
    const char *line;
    enum verb verb;
    const char *words; /* each word with a blank behind it */
} verbs[] = {
    {"list", VERB_LIST, ""},
    {"list a", VERB_LIST, "a "},
    {"-q list a", VERB_LIST, "a "},
    {"list a --json b", VERB_LIST, "a b "},
    {"-u local: list -q a -- -q", VERB_LIST, "a -q "},
    {"-ulocal: list", VERB_LIST, ""},
    {"--url=local: --json list list", VERB_LIST, "list "},
    {"-k K list", VERB_RUN, "list "},
    {"-nkK list -q", VERB_RUN, "list -q "},
    {"--key=K -- list", VERB_RUN, "list "},
    {"-k list status", VERB_RUN, "status "},
    {"--tls-ca list status", VERB_STATUS, ""}, /* "list" is the argument of --tls-ca */
    {"version", VERB_VERSION, ""},
};

static void test_verbs(void)
{
    struct options options;
    struct rlock_error err;

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        char words[64] = "";
        size_t used = 0;
        size_t j;

        is_int(read_line(&options, verbs[i].line, &err), RLOCK_OK, "the line is accepted");
        for (j = 0; options.argv != NULL && options.argv[j] != NULL; j++)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s ", options.argv[j]);
        okf(options.verb == verbs[i].verb && strcmp(words, verbs[i].words) == 0,
            "the verb and the words of \"%s\"", verbs[i].line);
        options_fini(&options);
    }
    ok(read_line(&options, "-q help status", &err) == RLOCK_E_USAGE &&
       strstr(err.text, "unknown option of help: -q") != NULL);
    options_fini(&options);
    ok(read_line(&options, "help status", &err) == RLOCK_OK && options.asked == ASKED_HELP &&
       options.about == VERB_STATUS);
    options_fini(&options);
    ok(read_line(&options, "-h status", &err) == RLOCK_OK && options.asked == ASKED_HELP &&
       options.about == VERB_STATUS);
    options_fini(&options);
}

static const struct {
    const char *urls;
    bool are_several;
} url_lists[] = {
    {"redis://a:1,redis://b:2,redis://c:3", true},
    {"redis://a,redis://b,redis://c", true},
    {"redis://u:p@a:1,redis://u:p@b:1", true},
    {"redis://a/0,redis://b/0", true},
    {"redis://a;redis://b", true},
    {"redis://a:1,b:2,c:3", true},
    {"redis://a,b", true},
    {"a,b,c", true},
    {"redis+sentinel://a,b/x,redis+sentinel://c/x", true},
    {"redis+sentinel://a,b", false}, /* several Sentinels: the service is missing */
    {"redis://u:p,w@h:x", false},    /* the password has a comma, and the port is wrong */
    {"unix:/tmp/a,b", false},        /* a path may have commas */
    {"sentinel://a,b/x", false},     /* the scheme is mistyped */
    {"redis+sentinel:/a,b/x", false},
    {"redis://h/0;", false},
    {"redis://h/0,1", false},
    {"h:1", false},
};

/* The message about URLs with commas between them says how to name several servers. */
static void test_several_urls(void)
{
    const char *in_variable = "separate the URLs of several servers by spaces";
    const char *in_line = "give each of several servers a -u of its own";
    struct options options;
    struct rlock_error err;
    char line[200];
    bool is_told;

    for (size_t i = 0; i < sizeof url_lists / sizeof url_lists[0]; i++) {
        setenv("RLOCK_URL", url_lists[i].urls, 1);
        is_told = read_line(&options, "-k K x", &err) == RLOCK_E_CONFIG &&
                  strcmp(options.hint, in_variable) == 0;
        okf(is_told == url_lists[i].are_several, "RLOCK_URL=%s: hint: %s", url_lists[i].urls,
            options.hint);
        options_fini(&options);
        snprintf(line, sizeof line, "-k K -u %s x", url_lists[i].urls);
        is_told =
            read_line(&options, line, &err) == RLOCK_E_CONFIG && strcmp(options.hint, in_line) == 0;
        okf(is_told == url_lists[i].are_several, "-u %s: hint: %s", url_lists[i].urls,
            options.hint);
        options_fini(&options);
    }
}

/* The message about a bad URL names the URL, its source and a URL that the user may have meant. */
static void test_urls(void)
{
    struct options options;
    struct rlock_error err;

    ok(read_line(&options, "-k K -u h:1 x", &err) == RLOCK_E_CONFIG &&
       strncmp(err.text, "--url: bad URL: \"h:1\": ", 22) == 0 &&
       strcmp(options.hint, "did you mean redis://h:1?") == 0);
    options_fini(&options);
    setenv("RLOCK_URL", "redis://h h:1", 1);
    ok(read_line(&options, "-k K x", &err) == RLOCK_E_CONFIG &&
       strncmp(err.text, "RLOCK_URL: bad URL: \"h:1\": ", 26) == 0 &&
       strcmp(options.hint, "did you mean redis://h:1?") == 0);
    options_fini(&options);
    ok(read_line(&options, "-k K -u redis://h x", &err) == RLOCK_OK);
    options_fini(&options);
    setenv("RLOCK_URL", " \tredis://h:7\r\n", 1);
    ok(read_line(&options, "-k K x", &err) == RLOCK_OK && options.n_urls == 1 &&
       strcmp(options.urls[0], "redis://h:7") == 0);
    options_fini(&options);
    test_several_urls();
    unsetenv("RLOCK_URL");
    ok(read_line(&options, "-k K -u Local: x", &err) == RLOCK_OK &&
       strcmp(options.urls[0], "local:") == 0);
    options_fini(&options);
    write_file(file, "nonblok = yes\n");
    ok(read_line(&options, "-k K x", &err) == RLOCK_E_CONFIG &&
       strcmp(options.hint, "did you mean nonblock?") == 0);
    options_fini(&options);
    write_file(file, "");
}

/* Every user can read the arguments of a process, so passwords of URLs are overwritten there. */
static void test_hiding(void)
{
    char words[][40] = {"rlock",
                        "-k",
                        "a://u:pw@key",
                        "-c",
                        "b://u:pw@h",
                        "-uredis://u:p@w@h",
                        "--url=redis://:long@h/1"};
    char *argv[sizeof words / sizeof words[0] + 1] = {NULL};
    struct options options;
    struct rlock_error err;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        argv[i] = words[i];
    is_int(option_parser_read(&options, argv, &err), RLOCK_OK, "a line with passwords is accepted");
    is_str(options.urls[1], "redis://:long@h/1", "the parser keeps the password");
    is_str(words[5], "-uredis://u:***@h", "the argument of -u has no password any more");
    is_str(words[6], "--url=redis://:****@h/1", "the argument of --url has no password any more");
    is_str(words[2], "a://u:pw@key", "a key that looks like a URL is not changed");
    is_str(words[4], "b://u:pw@h", "a shell command that looks like a URL is not changed");
    options_fini(&options);
}

/* ---- tests of the environment and files ---- */

static void test_environment(void)
{
    static const char *const bad[][2] = {{"RLOCK_TTL", "5 s"},
                                         {"RLOCK_TTL", "0"},
                                         {"RLOCK_CONFLICT_EXIT_CODE", "999"},
                                         {"RLOCK_ON_LOST", "freeze"},
                                         {"RLOCK_NONBLOCK", "maybe"},
                                         {"RLOCK_JSON", "2"}};
    static const char *const yes[] = {"yes", "true", "1"};
    static const char *const no[] = {"no", "false", "0"};
    struct options options;
    struct rlock_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv(bad[i][0], bad[i][1], 1);
        okf(read_line(&options, "-k K x", &err) == RLOCK_E_USAGE &&
                strncmp(err.text, bad[i][0], strlen(bad[i][0])) == 0,
            "%s=%s: %s", bad[i][0], bad[i][1], err.text);
        options_fini(&options);
        unsetenv(bad[i][0]);
    }
    for (size_t i = 0; i < 3; i++) {
        setenv("RLOCK_NONBLOCK", yes[i], 1);
        setenv("RLOCK_WAIT_ALL", no[i], 1);
        okf(read_line(&options, "-k K x", &err) == RLOCK_OK && options.wait_ms == 0 &&
                options.wait_all == 0,
            "RLOCK_NONBLOCK=%s sets -n, RLOCK_WAIT_ALL=%s doesn't set --wait-all", yes[i], no[i]);
        options_fini(&options);
    }
    setenv("RLOCK_NONBLOCK", "no", 1);
    write_file(file, "wait = 3\nnonblock = yes\n");
    ok(read_line(&options, "-k K x", &err) == RLOCK_OK && options.wait_ms == 3000);
    options_fini(&options);
    write_file(file, "");
    unsetenv("RLOCK_NONBLOCK");
    unsetenv("RLOCK_WAIT_ALL");
}

static const struct {
    const char *text;
    const char *why; /* the line number and part of the message; NULL: the file is accepted */
} files[] = {
    {"", NULL},
    {"ttl=5", NULL},
    {"ttl = 5\r\n\r\n", NULL},
    {"\t \n# ttl = x\n   # url\nttl = 5\n", NULL},
    {"url = redis://h?db=1\n", NULL},
    {"ttl = 5\nttl = 6\nwait-all = yes\n", NULL},
    {"ttl\n", ":1: not of the form"},
    {"\nttl 5\n", ":2: not of the form"},
    {"= 5\n", ":1: unknown name"},
    {"ttl = 5\n\n\nspots = 3\n", ":4: unknown name \"spots\""},
    {"TTL = 5\n", ":1: unknown name"},
    {"rlock_ttl = 5\n", ":1: unknown name"},
    {"ttl =\n", ":1: ttl: not a duration"},
    {"ttl = 5 # seconds\n", ":1: ttl: not a duration"},
    {"url = redis://h\nttl = \"5\"\n", ":2: ttl: not a duration"},
    {"url =\n", ":1: url: must not be empty"},
    {"ttl = 5\nurl = redis://h unix:/x\n", ":2: bad URL: \"unix:/x\": "},
    {"url = redis://u:" SECRET "@h/x\n", ":1: bad URL: \"redis://u:******@h/*\": "},
    {"tll = 5\n", ":1: unknown name \"tll\""},
    {"redis://u:" SECRET "@h\n", ":1: not of the form"},
    {"url redis://u:" SECRET "@h/0?a=b\n", ":1: unknown name"},
    {"redis://u:" SECRET "@h?a = b\n", ":1: unknown name"},
    {"password = " SECRET "\n", ":1: unknown name \"password\""},
    {"\x1b[2J\x07 = x\n", ":1: unknown name"},
};

static void test_files(void)
{
    struct options options;
    struct rlock_error err;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        enum rlock_status st;

        write_file(file, files[i].text);
        st = read_line(&options, "-k K x", &err);
        if (files[i].why == NULL)
            okf(st == RLOCK_OK, "the file is accepted: \"%s\": %s", files[i].text, err.text);
        else
            okf(st == RLOCK_E_CONFIG && strncmp(err.text, file, strlen(file)) == 0 &&
                    strstr(err.text, files[i].why) != NULL,
                "the file is refused: \"%s\": %s", files[i].text, err.text);
        okf(strstr(err.text, SECRET) == NULL, "the message has no password: %s", err.text);
        options_fini(&options);
    }
    write_file(file, "");
}

static void test_places(void)
{
    struct options options;
    struct rlock_error err;
    char path[128];
    char text[128];

    snprintf(path, sizeof path, "%s/.config", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/.config/rlock", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/.config/rlock/config", folder);
    write_file(path, "ttl = 9\nttl = 8\n");
    setenv("HOME", folder, 1);
    write_file(file, "ttl = 7\n");
    ok(read_line(&options, "-k K x", &err) == RLOCK_OK && options.ttl_ms == 7000);
    options_fini(&options);
    setenv("RLOCK_CONFIG", "", 1);
    ok(read_line(&options, "-k K x", &err) == RLOCK_OK && options.ttl_ms == 8000);
    options_fini(&options);
    setenv("RLOCK_CONFIG", "/nowhere/at/all", 1);
    ok(read_line(&options, "-k K x", &err) == RLOCK_E_CONFIG &&
       strstr(err.text, "/nowhere/at/all") != NULL);
    options_fini(&options);
    setenv("RLOCK_CONFIG", folder, 1);
    is_int(read_line(&options, "-k K x", &err), RLOCK_E_CONFIG);
    options_fini(&options);
    setenv("RLOCK_CONFIG", "/dev/null", 1);
    ok(read_line(&options, "-k K x", &err) == RLOCK_OK && options.ttl_ms == 30000);
    options_fini(&options);
    setenv("HOME", "/nowhere/at/all", 1);
    unsetenv("RLOCK_CONFIG");
    if (access("/etc/rlock.conf", F_OK) != 0)
        ok(read_line(&options, "-k K x", &err) == RLOCK_OK && options.ttl_ms == 30000);
    options_fini(&options);
    setenv("XDG_CONFIG_HOME", ".config", 1);
    setenv("HOME", folder, 1);
    ok(read_line(&options, "-k K x", &err) == RLOCK_OK && options.ttl_ms == 8000);
    options_fini(&options);
    snprintf(text, sizeof text, "%s/.config", folder);
    setenv("XDG_CONFIG_HOME", text, 1);
    setenv("HOME", "/nowhere/at/all", 1);
    ok(read_line(&options, "-k K x", &err) == RLOCK_OK && options.ttl_ms == 8000);
    options_fini(&options);
    unsetenv("XDG_CONFIG_HOME");
    unlink(path);
    snprintf(path, sizeof path, "%s/.config/rlock", folder);
    rmdir(path);
    snprintf(path, sizeof path, "%s/.config", folder);
    rmdir(path);
}

/* If -k weren't allowed for a verb that needs a key, nobody could give the verb its key. */
static void test_keys_of_verbs(void)
{
    unsigned accepted = 0;

    for (int i = 0; i < OPTION_COUNT; i++)
        if (option_table[i].letter == 'k')
            accepted = option_table[i].verbs;
    for (int i = 0; i < VERB_COUNT; i++)
        if (verb_table[i].needs_key || verb_table[i].takes_one_key)
            okf((accepted & IN(i)) != 0, "%s needs a key, so it accepts -k (IN_KEYED in options.c)",
                verb_table[i].name != NULL ? verb_table[i].name : "run");
}

/* Many short keys, so that a byte too few for each is more than malloc(3) rounds up. */
static void test_keys(void)
{
    const char *key[64];
    struct options options = {.keys = key, .n_keys = 2};
    char *text;

    key[0] = "job";
    key[1] = "other";
    text = options_keys(&options, ' ');
    is_str(text, "job other", "all keys as one text");
    free(text);
    for (size_t i = 0; i < 64; i++)
        key[i] = "k";
    options.n_keys = 64;
    text = options_keys(&options, '\n');
    ok(text != NULL && strlen(text) == 127 && malloc_usable_size(text) >= 128);
    free(text);
}

int main(void)
{
    if (!ok(mkdtemp(folder) != NULL && clearenv() == 0, "the test can make a folder"))
        return done_testing();
    snprintf(file, sizeof file, "%s/rlock.conf", folder);
    write_file(file, "");
    setenv("RLOCK_CONFIG", file, 1);
    RUN_ALL(test_precedence, test_lines, test_command, test_verbs, test_urls, test_hiding,
            test_environment, test_files, test_places, test_keys_of_verbs);
    unlink(file);
    rmdir(folder);
    RUN(test_keys());
    return done_testing();
}
