/* SPDX-License-Identifier: MIT */
/* test_cmd_option_parser: options from the command line, the environment and a file. */
#include "files.h"
#include "options/option_parser.h"
#include "tap.h"

#include <sys/stat.h>

#define SECRET "s3cret"
#define WORDS_MAX 32

static char folder[] = "/tmp/rlock-options.XXXXXX";
static char file[64];

static struct options options;
static struct rlock_error err;

/* Parses a command line, given as one text whose words are separated by blanks. */
static enum rlock_status parse(const char *line)
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
    err = (struct rlock_error){.text = ""};
    options_fini(&options);
    return option_parser_read(&options, argv, &err);
}

/* The linker replaces strdup() by this function. */
static bool is_out_of_memory;
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    return is_out_of_memory ? NULL : __real_strdup(text);
}

static bool refuses(const char *line, enum rlock_status status, const char *words)
{
    return parse(line) == status && strstr(err.text, words) != NULL;
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
    [OPTION_NUMBER] = {"3", "2", "1", 3, 2, 1},
    [OPTION_FLAG] = {"yes", "no", NULL, 1, 0, 1},
};

/* Of the words to choose from, the file has the second, the environment the first. */
static const struct source_words *words_for(const struct option *option)
{
    static struct source_words chosen;
    static char words[64];
    char *second = words;
    char *last;

    if (option->kind != OPTION_CHOICE)
        return &words_of[option->kind];
    snprintf(words, sizeof words, "%s", option->argument);
    strsep(&second, "|");
    chosen = (struct source_words){second, words, second, 1, 0, 1};
    last = strchr(second, '|');
    if (last != NULL) {
        *last = '\0';
        chosen.in_line = last + 1;
        chosen.by_line = 2;
    }
    return &chosen;
}

static bool has(const struct option *option, int64_t number, const char *text)
{
    const char *at = (const char *)&options + option->offset;

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

static void says_origin(const char *name, const char *wanted)
{
    char text[256];

    options_name_origin(&options, name, text, sizeof text);
    okf(strcmp(text, wanted) == 0, "the origin of %s is %s: %s", name, wanted, text);
}

static void test_precedence_of(const struct option *option)
{
    const struct source_words *words = words_for(option);
    const char *name = option->name;
    char variable[64], given[64], text[128];

    option_variable(option, variable);
    snprintf(text, sizeof text, "# comment\n\n  %s  =\t%s \n", name, words->in_file);
    write_file(file, text);
    setenv(variable, words->in_environment, 1);
    snprintf(given, sizeof given, "--%s%s%s", name, words->in_line != NULL ? "=" : "",
             words->in_line != NULL ? words->in_line : "");
    okf(parse(line_of(option, given)) == RLOCK_OK && has(option, words->by_line, words->in_line),
        "%s: the command line wins over the environment: %s", name, err.text);
    snprintf(text, sizeof text, "--%s", name);
    says_origin(name, text);
    okf(parse(line_of(option, "")) == RLOCK_OK &&
            has(option, words->by_environment, words->in_environment),
        "%s: the environment wins over the file: %s", name, err.text);
    says_origin(name, variable);
    setenv(variable, "", 1);
    okf(parse(line_of(option, "")) == RLOCK_OK && has(option, words->by_file, words->in_file),
        "%s: an empty variable counts as unset, and the file wins over the default: %s", name,
        err.text);
    snprintf(text, sizeof text, "%s:3", file);
    says_origin(name, text);
    unsetenv(variable);
    write_file(file, "");
    okf(parse(line_of(option, "")) == RLOCK_OK &&
            memcmp((const char *)&options + option->offset,
                   (const char *)&options_by_default + option->offset, sizeof(int64_t)) == 0,
        "%s: without a source the default counts: %s", name, err.text);
    says_origin(name, "the default");
}

static void test_command_line_only(const struct option *option)
{
    char variable[64], text[128];

    option_variable(option, variable);
    setenv(variable, "no such value", 1);
    okf(parse("-k K x") == RLOCK_OK && strcmp(options.keys[0], "K") == 0,
        "%s is not read from the environment", option->name);
    unsetenv(variable);
    snprintf(text, sizeof text, "%s = K\n", option->name);
    write_file(file, text);
    okf(refuses("-k K x", RLOCK_E_CONFIG, option->name), "%s is refused in a file: %s",
        option->name, err.text);
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

/* ---- tests of the range of each number and duration ---- */

static void takes(const struct option *option, int64_t number, bool is_good)
{
    char given[64];

    snprintf(given, sizeof given, "--%s=%lld%s", option->name, (long long)number,
             option->kind == OPTION_DURATION ? "ms" : "");
    okf((parse(line_of(option, given)) == RLOCK_OK) == is_good, "%s: %s: %s", given,
        is_good ? "accepted" : "refused", err.text);
    okf(is_good ? has(option, number, NULL) : strstr(err.text, "not a ") != NULL,
        "%s: the value or the message: %s", given, err.text);
}

static void test_ranges(void)
{
    static const struct {
        const char *line;
        const char *why;
    } messages_of[] = {
        {"-k K -t 999ms x", "ttl: not a duration (30, 0.5, 500ms, 5m, 1h30m, 1d) from 1s to 30d: "},
        {"-k K --once 31d x", ", 1d) from 1ms to 30d: \"31d\""},
        {"-k K -w 1x x", ", 1d) from 0s to 36500d: \"1x\""},
        {"-k K --slots 0 x", "slots: not a number from 1 to 1000: \"0\""},
        {"-k K -E 256 x", "conflict-exit-code: not a number from 0 to 255: \"256\""},
    };
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &option_table[i];

        if (option->kind != OPTION_DURATION && option->kind != OPTION_NUMBER)
            continue;
        takes(option, option->least, true);
        takes(option, option->least - 1, false);
        takes(option, option->most, true);
        takes(option, option->most + 1, false);
    }
    for (i = 0; i < sizeof messages_of / sizeof messages_of[0]; i++)
        okf(refuses(messages_of[i].line, RLOCK_E_USAGE, messages_of[i].why), "%s: %s",
            messages_of[i].line, err.text);
}

/* ---- tests of the command line ---- */

/* Lines that are refused with a part of the error message, or accepted. */
static const struct {
    const char *why; /* NULL: the lines are accepted */
    const char *lines[8];
} messages[] = {
    {NULL, {"-kK x", "--key=K x", "--key K -- x", "-k K -", "-nvqkK x"}},
    {NULL, {"-k K -t1 -w0 -E0 x -t 0 --nope", "-k K -c exit", "-k K -c exit --", "-k K -k A x"}},
    {NULL, {"-k K --once 5 -s -x x", "-k K --scripts no --queue none x"}},
    {NULL, {"-k K --protocol=timestamp --timestamp-unit=ms --queue none x"}},
    {NULL, {"-k K --kill-after 0 x", "acquire K", "-qv acquire K -t 5", "-t 5 acquire -- K"}},
    {NULL, {"acquire K --", "-e -k K --nb --nonblocking --timeout 3 x", "hold -k K --for 1s"}},
    {NULL, {"hold -k K --for 30d --renew -t 10", "renew -k K -t 5 --token-file f"}},
    {NULL, {"release -k K --quiet-if-gone", "-k K --report - x", "-k K --label=--x -c-x"}},
    {"url: must not be empty", {"-k K --url= x"}},
    {"several keys: not possible with --slots, as slots are", {"-k A -k K --slots 2 x"}},
    {"several keys: not possible with --once, as one exclusive lock", {"-k A -k K --once 5 x"}},
    {"--shared: not possible with --once", {"-k K --once 5 -s x"}},
    {"--shared: not possible with --protocol timestamp, as the key's value is only a time",
     {"-k K --protocol timestamp -s x"}},
    {"--queue: not possible with --protocol timestamp",
     {"-k K --queue newest --protocol timestamp x", "-k K --queue fifo --protocol timestamp x"}},
    {"--nested: not possible with --protocol timestamp, as such a lock has no token",
     {"-k K --nested --protocol timestamp x"}},
    {"--shared: not possible with --scripts no, as this needs a script",
     {"-k K --scripts no -s x"}},
    {"several keys: not possible with --scripts no", {"-k K -k L --scripts no x"}},
    {"--queue: not possible with --scripts no", {"-k K --scripts no --queue fifo x"}},
    {"the verb history: not possible with --scripts no", {"history --scripts no"}},
    {"--history: not possible with --scripts no", {"break -k K --yes --history 9 --scripts no"}},
    {"--on-lost pause: not possible with --bind-pid, as only a command that rlock starts",
     {"acquire -k K --bind-pid 1 --on-lost pause"}},
    {"--ttl: needs --renew, as without it", {"hold -k K --for 1h -t 10"}},
    {"--log: needs --renew, as without it", {"hold -k K --for 1h --log x"}},
    {"a private server (local:): needs --renew, as", {"hold -k K --for 1h -u local:"}},
    {"no key", {"", "x", "-- -k K x", "acquire", "K x", "release", "--explain x"}},
    {"--key needs an argument", {"-k"}},
    {"no command", {"-k K", "-k K --"}},
    {"no arguments may follow", {"-k K -c exit x"}},
    {"--ttl needs an argument", {"-k K --ttl", "-k K -t"}},
    {"unknown option: -",
     {"-k K --tt=5 x", "-k K --TTL=5 x", "-k K -nz x", "-xredis://u:" SECRET "@h -k K x",
      "-k K --close x", "-k K --bind-pid 1 x", "-k K --token-file f x"}},
    {"unknown option of ",
     {"-t 5 status", "status --explain", "acquire -k K --once 5", "acquire -k K --token-file f",
      "renew -k K -n"}},
    {"unknown option: --ttlx", {"-k K --ttlx x"}},
    {"unknown option: -\\x1b", {"-k K -\x1b[2J x"}},
    {"ttl: not a duration", {"-k K -t-5 x", "-k K -t 5x x", "-k K -t 99999999999999999999 x"}},
    {"on-lost: not one of kill|pause|ignore",
     {"-k K --on-lost kil x", "-k K --on-lost kill| x", "-k K --on-lost kill|pause x"}},
    {"key: \"--\" begins with \"-\"", {"-k -- x", "-nk -- x"}},
    {"; if you mean this value: --key=--", {"--key -- x"}},
    {"key: \"=a\" begins with \"=\"", {"-k=a x"}},
    {"; if you mean this value: --key==\\x1b", {"-k K -k=\x1b x"}},
    {"key: \"=a\" begins with \"=\", but -k takes KEY without one: -k a; if",
     {"-k=a x", "-qk=a x"}},
    {"key: \"**@h\" begins with \"=\"", {"-k=u@h x"}},
    {"ttl: \"=5\" begins with \"=\", but -t takes DURATION without one: -t 5", {"-k K -t=5 x"}},
    {"key: \"--token-file\" begins with \"-\"", {"release -k --token-file f"}},
    {"key: \"-uredis://u:******@h\" begins with", {"-k -uredis://u:" SECRET "@h x"}},
    {"label: \"-n\" begins with \"-\"", {"-k K --label -n x"}},
    {"conflict-exit-code: not a number from 0 to 255: \"-", {"-k K -E -n x", "-k K -E -1 x"}},
    {"command: \"--\" begins with \"-\"", {"-k K -c -- x"}},
    {"given twice, by -k and behind the verb", {"acquire -k K x"}},
    {"only one key may be given as a word", {"acquire K L"}},
    {"no such verb: relase", {"relase -k K"}},
    {"no such verb: frobnicate", {"help frobnicate"}},
    {"only one verb may be given", {"help status list"}},
    {"the verb takes no arguments but options", {"version x"}},
    {"--for: say for how long", {"hold -k K"}},
    {"bind-pid: not a number from 1", {"acquire -k K --bind-pid $$"}},
    {"unknown option of release: -t", {"release -k K -t 5"}},
    {"unknown option: --uri", {"--uri=redis://u:" SECRET "@h -k K x"}},
    {"unknown option: --nonblock", {"-k K --nonblock=" SECRET " x"}},
};

static void test_lines(void)
{
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        const char *const *line = messages[i].lines;
        const char *why = messages[i].why;

        for (; *line != NULL; line++) {
            enum rlock_status st = parse(*line);

            okf(why == NULL ? st == RLOCK_OK && strcmp(options.keys[0], "K") == 0
                            : st == RLOCK_E_USAGE && err.status == st && strstr(err.text, why),
                "%s: %s", *line, err.text);
            okf(strstr(err.text, SECRET) == NULL && is_printable(err.text),
                "the message has no password and is printable: %s", err.text);
        }
    }
}

/* No option swallows the next option, behind an empty variable, or prints that one's password. */
static void test_empty_variables(void)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *row = &option_table[i];
        char line[200];
        char why[200];
        enum verb verb = VERB_RUN;

        while ((row->verbs & IN(verb)) == 0)
            verb++;
        if (row->argument == NULL)
            continue;
        snprintf(line, sizeof line, "%s%s--%s --url=redis://:" SECRET "@h -k K",
                 verb == VERB_RUN ? "" : verb_table[verb].name, verb == VERB_RUN ? "" : " ",
                 row->name);
        snprintf(why, sizeof why,
                 row->kind == OPTION_TEXT || row->kind == OPTION_TEXTS
                     ? "%s: \"--url=redis://:******@h\" begins with \"-\", as options do"
                     : "%s: not ",
                 row->name);
        okf(parse(line) == RLOCK_E_USAGE && strncmp(err.text, why, strlen(why)) == 0 &&
                strstr(err.text, "redis://:******@h") != NULL && strstr(err.text, SECRET) == NULL &&
                strstr(strchr(why, '"') != NULL ? err.text : options.hint, "is a variable empty?"),
            "%s: %s; %s", line, err.text, options.hint);
    }
}

static bool asks(const char *line, int asked)
{
    return parse(line) == RLOCK_OK && (int)options.asked == asked;
}

static void test_command(void)
{
    ok(parse("-k K -n -w 4 -w 5 -u redis://a -u redis://b -- -t 5 --") == RLOCK_OK &&
       options.wait_ms == 5000 && options.n_urls == 2 && options.url_from == FROM_COMMAND_LINE);
    ok(options.ttl_ms == options_by_default.ttl_ms && strcmp(options.argv[0], "-t") == 0 &&
       strcmp(options.argv[2], "--") == 0 && options.argv[3] == NULL);
    ok(parse("-k K sh -c x") == RLOCK_OK && options.command == NULL &&
       strcmp(options.argv[1], "-c") == 0);
    ok(asks("-V --nope", ASKED_VERSION) && asks("--help", ASKED_HELP));
    ok(parse("--nope --help") == RLOCK_E_USAGE && parse("-t 0 -h") == RLOCK_E_USAGE);
    set_variable("RLOCK_CONFIG", "/nowhere/at/all");
    setenv("RLOCK_TTL", "bad", 1);
    ok(asks("-n -h --bad", ASKED_HELP) && asks("-n --version --bad", ASKED_VERSION));
    unsetenv("RLOCK_TTL");
    set_variable("RLOCK_CONFIG", file);
    setenv("RLOCK_WAIT", "7", 1);
    ok(parse("-n -k K x") == RLOCK_OK && options.wait_ms == 0);
    ok(parse("-k K x") == RLOCK_OK && options.wait_ms == 7000);
    unsetenv("RLOCK_WAIT");
    setenv("RLOCK_PASSWORD_FILE", "f", 1);
    ok(parse("-k K --password-command c x") == RLOCK_OK && options.password_file == NULL &&
       strcmp(options.password_command, "c") == 0 && options.password_from == FROM_COMMAND_LINE);
    unsetenv("RLOCK_PASSWORD_FILE");
}

/* Which verb a command line has, and which words are left for it. */
static const struct {
    const char *line;
    enum verb verb;
    const char *words; /* each word with a blank behind it */
} verbs[] = {
    {"-q list a", VERB_LIST, "a "},
    {"list a --json b", VERB_LIST, "a b "},
    {"-u local: list -q a -- -q", VERB_LIST, "a -q "},
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
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        char words[64] = "";
        size_t used = 0;
        size_t j;

        is_int(parse(verbs[i].line), RLOCK_OK, "the line is accepted");
        for (j = 0; options.argv != NULL && options.argv[j] != NULL; j++)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s ", options.argv[j]);
        okf(options.verb == verbs[i].verb && strcmp(words, verbs[i].words) == 0,
            "the verb and the words of \"%s\"", verbs[i].line);
    }
    ok(refuses("-q help status", RLOCK_E_USAGE, "unknown option of help: -q"));
    ok(asks("help status", ASKED_HELP) && options.about == VERB_STATUS);
    ok(asks("-h status", ASKED_HELP) && options.about == VERB_STATUS);
}

static const struct {
    const char *urls;
    bool are_several;
} url_lists[] = {
    {"redis://a:1,redis://b:2,redis://c:3", true},
    {"redis://a;redis://b", true},
    {"redis://a,b", true},
    {"redis+sentinel://a,b/x,redis+sentinel://c/x", true},
    {"redis+sentinel://a,b", false}, /* several Sentinels: the service is missing */
    {"redis://u:p,w@h:x", false},    /* the password has a comma, and the port is wrong */
    {"unix:/tmp/a,b", false},        /* a path may have commas */
    {"sentinel://a,b/x", false},     /* the scheme is mistyped */
    {"redis://h/0,1", false},
};

/* The message about URLs with commas between them says how to name several servers. */
static void test_several_urls(void)
{
    const char *in_variable = "separate the URLs of several servers by spaces";
    const char *in_line = "give each of several servers a -u of its own";
    char line[200];
    bool is_told;

    for (size_t i = 0; i < sizeof url_lists / sizeof url_lists[0]; i++) {
        setenv("RLOCK_URL", url_lists[i].urls, 1);
        is_told = parse("-k K x") == RLOCK_E_CONFIG && strcmp(options.hint, in_variable) == 0;
        okf(is_told == url_lists[i].are_several, "RLOCK_URL=%s: hint: %s", url_lists[i].urls,
            options.hint);
        snprintf(line, sizeof line, "-k K -u %s x", url_lists[i].urls);
        is_told = parse(line) == RLOCK_E_CONFIG && strcmp(options.hint, in_line) == 0;
        okf(is_told == url_lists[i].are_several, "-u %s: hint: %s", url_lists[i].urls,
            options.hint);
    }
}

/* The message about a bad URL names the URL, its source and a URL that the user may have meant. */
static void test_urls(void)
{
    ok(parse("-k K -u h:1 x") == RLOCK_E_CONFIG &&
       strncmp(err.text, "--url: bad URL: \"h:1\": ", 22) == 0 &&
       strcmp(options.hint, "did you mean redis://h:1?") == 0);
    setenv("RLOCK_URL", "redis://h h:1", 1);
    ok(parse("-k K x") == RLOCK_E_CONFIG &&
       strncmp(err.text, "RLOCK_URL: bad URL: \"h:1\": ", 26) == 0 &&
       strcmp(options.hint, "did you mean redis://h:1?") == 0);
    ok(parse("-k K -u redis://h x") == RLOCK_OK);
    setenv("RLOCK_URL", " \tredis://h:7\r\n", 1);
    ok(parse("-k K x") == RLOCK_OK && options.n_urls == 1 &&
       strcmp(options.urls[0], "redis://h:7") == 0);
    test_several_urls();
    unsetenv("RLOCK_URL");
    ok(parse("-k K -u Local: x") == RLOCK_OK && strcmp(options.urls[0], "local:") == 0);
    write_file(file, "nonblok = yes\n");
    ok(parse("-k K x") == RLOCK_E_CONFIG && strcmp(options.hint, "did you mean nonblock?") == 0);
    ok(parse("-k K --waitt 3 x") == RLOCK_E_USAGE && strstr(options.hint, "--wait") != NULL);
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

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        argv[i] = words[i];
    options_fini(&options);
    is_int(option_parser_read(&options, argv, &err), RLOCK_OK, "a line with passwords is accepted");
    is_str(options.urls[1], "redis://:long@h/1", "the parser keeps the password");
    is_str(words[5], "-uredis://u:***@h", "the argument of -u has no password any more");
    is_str(words[6], "--url=redis://:****@h/1", "the argument of --url has no password any more");
    is_str(words[2], "a://u:pw@key", "a key that looks like a URL is not changed");
    is_str(words[4], "b://u:pw@h", "a shell command that looks like a URL is not changed");
    is_out_of_memory = true;
    ok(refuses("-k K -u redis://:pw@h x", RLOCK_E_MEMORY, "no memory"));
    setenv("RLOCK_URL", "redis://:pw@h", 1);
    ok(refuses("-k K x", RLOCK_E_MEMORY, "RLOCK_URL: no memory"));
    unsetenv("RLOCK_URL");
    write_file(getenv("RLOCK_CONFIG"), "ttl = 5\n");
    ok(refuses("-k K x", RLOCK_E_MEMORY, "no memory"));
    write_file(getenv("RLOCK_CONFIG"), "");
    is_out_of_memory = false;
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

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv(bad[i][0], bad[i][1], 1);
        okf(parse("-k K x") == RLOCK_E_USAGE &&
                strncmp(err.text, bad[i][0], strlen(bad[i][0])) == 0,
            "%s=%s: %s", bad[i][0], bad[i][1], err.text);
        unsetenv(bad[i][0]);
    }
    for (size_t i = 0; i < 3; i++) {
        setenv("RLOCK_NONBLOCK", yes[i], 1);
        setenv("RLOCK_WAIT_ALL", no[i], 1);
        okf(parse("-k K x") == RLOCK_OK && options.wait_ms == 0 && options.wait_all == 0,
            "RLOCK_NONBLOCK=%s sets -n, RLOCK_WAIT_ALL=%s doesn't set --wait-all", yes[i], no[i]);
    }
    setenv("RLOCK_NONBLOCK", "no", 1);
    write_file(file, "wait = 3\nnonblock = yes\n");
    ok(parse("-k K x") == RLOCK_OK && options.wait_ms == 3000);
    write_file(file, "");
    unsetenv("RLOCK_NONBLOCK");
    unsetenv("RLOCK_WAIT_ALL");
}

/* What is set for another verb excludes nothing. */
static void test_verbs_of_settings(void)
{
    static const char *const lines[] = {"status -k K -k L --scripts no", "list --scripts no",
                                        "renew -k K --scripts no", "release -k K --scripts no",
                                        "-k K --on-lost pause x"};

    setenv("RLOCK_HISTORY", "9", 1);
    setenv("RLOCK_BIND_PID", "7", 1);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        okf(parse(lines[i]) == RLOCK_OK, "%s: %s", lines[i], err.text);
    unsetenv("RLOCK_HISTORY");
    unsetenv("RLOCK_BIND_PID");
    setenv("RLOCK_PROTOCOL", "timestamp", 1);
    ok(refuses("hold -k K --for 1h", RLOCK_E_USAGE,
               "hold: not possible with --protocol timestamp"));
    unsetenv("RLOCK_PROTOCOL");
}

static const struct {
    const char *why; /* the line number and part of the message; NULL: the files are accepted */
    const char *texts[5];
} files[] = {
    {NULL, {"", "ttl=5", "ttl = 5\r\n\r\n", "\t \n# ttl = x\n   # url\nttl = 5\n"}},
    {NULL, {"url = redis://h?db=1\n", "ttl = 5\nttl = 6\nwait-all = yes\n"}},
    {":2: not of the form", {"\nttl 5\n"}},
    {":1: unknown name", {"= 5\n", "rlock_ttl = 5\n", "url redis://u:" SECRET "@h/0?a=b\n"}},
    {":1: unknown name", {"redis://u:" SECRET "@h?a = b\n", "\x1b[2J\x07 = x\n"}},
    {":4: unknown name \"spots\"", {"ttl = 5\n\n\nspots = 3\n"}},
    {":1: ttl: not a duration", {"ttl =\n", "ttl = 5 # seconds\n"}},
    {":2: ttl: not a duration", {"url = redis://h\nttl = \"5\"\n"}},
    {":1: url: must not be empty", {"url =\n"}},
    {":2: bad URL: \"unix:/x\": ", {"ttl = 5\nurl = redis://h unix:/x\n"}},
    {":1: bad URL: \"redis://u:******@h/*\": ", {"url = redis://u:" SECRET "@h/x\n"}},
    {":1: not of the form", {"redis://u:" SECRET "@h\n"}},
    {":1: unknown name \"password\"", {"password = " SECRET "\n"}},
};

static void test_files(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (const char *const *text = files[i].texts; *text != NULL; text++) {
            enum rlock_status st;

            write_file(file, *text);
            st = parse("-k K x");
            if (files[i].why == NULL)
                okf(st == RLOCK_OK, "the file is accepted: \"%s\": %s", *text, err.text);
            else
                okf(st == RLOCK_E_CONFIG && strncmp(err.text, file, strlen(file)) == 0 &&
                        strstr(err.text, files[i].why) != NULL,
                    "the file is refused: \"%s\": %s", *text, err.text);
            okf(strstr(err.text, SECRET) == NULL, "the message has no password: %s", err.text);
        }
    write_file(file, "");
}

static void test_places(void)
{
    char base[128], sub[160], path[200];
    const struct {
        const char *config, *home, *xdg;
        int64_t ttl_ms; /* by the file that is read; 30000: the default; 0: the file is refused */
    } places[] = {
        {file, folder, NULL, 7000},
        {"", folder, NULL, 8000},
        {"/nowhere/at/all", folder, NULL, 0},
        {folder, folder, NULL, 0},
        {"/dev/null", folder, NULL, 30000},
        {NULL, "/nowhere", NULL, access("/etc/rlock.conf", F_OK) != 0 ? 30000 : -1},
        {NULL, folder, ".config", 8000}, /* a relative path doesn't count */
        {NULL, "/nowhere", base, 8000},
    };

    snprintf(base, sizeof base, "%s/.config", folder);
    snprintf(sub, sizeof sub, "%s/rlock", base);
    snprintf(path, sizeof path, "%s/config", sub);
    ok(mkdir(base, 0700) == 0 && mkdir(sub, 0700) == 0);
    write_file(path, "ttl = 9\nttl = 8\n");
    write_file(file, "ttl = 7\n");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *config = places[i].config;

        set_variable("RLOCK_CONFIG", config);
        set_variable("HOME", places[i].home);
        set_variable("XDG_CONFIG_HOME", places[i].xdg);
        if (places[i].ttl_ms == 0)
            okf(refuses("-k K x", RLOCK_E_CONFIG, config), "%s: %s", config, err.text);
        else if (places[i].ttl_ms > 0)
            okf(parse("-k K x") == RLOCK_OK && options.ttl_ms == places[i].ttl_ms, "place %zu", i);
    }
    unsetenv("XDG_CONFIG_HOME");
    ok(unlink(path) == 0 && rmdir(sub) == 0 && rmdir(base) == 0);
}

static void test_keys(void)
{
    const struct options some = {.keys = (const char *[]){"job", "other"}, .n_keys = 2};
    char *text = options_keys(&some, ' '); /* a byte too few is found with FLAVOUR=asan */

    is_str(text, "job other", "all keys as one text");
    free(text);
}

int main(void)
{
    if (!ok(mkdtemp(folder) != NULL && clearenv() == 0, "the test can make a folder"))
        return done_testing();
    snprintf(file, sizeof file, "%s/rlock.conf", folder);
    write_file(file, "");
    setenv("RLOCK_CONFIG", file, 1);
    RUN_ALL(test_precedence, test_ranges, test_lines, test_empty_variables, test_command,
            test_verbs, test_urls, test_hiding, test_environment, test_verbs_of_settings,
            test_files, test_places);
    unlink(file);
    rmdir(folder);
    RUN(test_keys());
    return done_testing();
}
