/* SPDX-License-Identifier: MIT */
/* test_cmd_mistake: what the messages suggest for command lines that can't be carried out. */
#include "options/mistake.h"
#include "tap.h"

#include <errno.h>
#include <unistd.h>

#define SECRET "s3cret"
#define WORDS_MAX 8

static const struct {
    bool may_be_verb;
    const char *why;
    const char *hint;     /* a part of the hint; "": there is no hint */
    const char *lines[7]; /* each with words that are separated by blanks */
} no_key[] = {
    {true, "no key: name", "", {"", "job", "job -n", "job --", "j$b true", "sh -c true"}},
    {true, "no key: name", "", {"/bin/sh x", "redis://u:" SECRET "@h true"}},
    {true, "no key: name", "did you mean: rlock -k job -- true?", {"job true", "job -n -- true"}},
    {true, "no key: name", "did you mean: rlock -k job -- true ...?", {"job true x"}},
    {true, "no key: name", "did you mean: rlock -k job -c ...?", {"job -c true"}},
    {true, "no key: name", "did you mean: rlock -k /nowhere/job -- x?", {"/nowhere/job x"}},
    {true, "no such verb: relase", "did you mean release?", {"relase"}},
    {false, "no key: name", "", {"relase"}},
    {false, "no key: the options of rlock end", "rlock -k KEY -- relase", {"relase -k a"}},
    {true, "no such verb: frob", "", {"frob -k a", "frob --key=a"}},
    {true, "no key: name", "did you mean: rlock -k frob -- -k ...?", {"frob x -- -k a"}},
    {true, "no key: the options of rlock end", "rlock -k KEY -- sh", {"sh -k a"}},
    {true, "no key: name", "rlock -k job -- redis://u:******@h?", {"job redis://u:" SECRET "@h"}},
};

static const struct {
    const char *word;
    const char *hint; /* a part of the hint; "": there is no hint */
} commands[] = {
    {"", ""},
    {"backup.sh", ""},
    {"/bin/cd", ""},
    {"status", "status is a verb when it comes first: rlock status"},
    {"cd", "with -c: -c 'cd ...'"},
    {".", "with -c: -c '. ...'"},
    {"echo a | cat", "with -c: -c 'echo a | cat'"},
    {"a;b", "with -c: -c 'a;b'"},
};

static const struct {
    const char *word;
    const char *path;
    int error;
} programs[] = {
    {"sh", "/nowhere:/bin", 0},    {"sh", NULL, 0},
    {"sh", "/nowhere", ENOENT},    {"sh", "/nowhere:", 0}, /* the current directory is /bin */
    {"", "/bin", ENOENT},          {"./sh", "/nowhere", 0},
    {"/bin", "/bin", EACCES},      {"passwd", "/etc:/nowhere", EACCES},
    {"/etc/passwd", NULL, EACCES}, {"/nowhere/sh", "/bin", ENOENT},
};

static void split(const char *line, char *room, char *words[WORDS_MAX])
{
    char *rest = room;
    int n = 0;

    strcpy(room, line);
    memset(words, 0, WORDS_MAX * sizeof *words);
    while (*line != '\0' && n < WORDS_MAX - 1 && (words[n] = strsep(&rest, " ")) != NULL)
        n++;
}

int main(void)
{
    struct mistake mistake;
    char *words[WORDS_MAX];
    char room[200];

    for (size_t i = 0; i < sizeof no_key / sizeof no_key[0]; i++)
        for (const char *const *line = no_key[i].lines; *line != NULL; line++) {
            split(*line, room, words);
            mistake = mistake_no_key(words, no_key[i].may_be_verb, "/nowhere:/usr/bin:/bin");
            okf(strstr(mistake.why, no_key[i].why) == mistake.why &&
                    strstr(mistake.hint, no_key[i].hint) != NULL &&
                    (mistake.hint[0] == '\0') == (no_key[i].hint[0] == '\0'),
                "\"%s\": %s; %s", *line, mistake.why, mistake.hint);
            okf(strstr(mistake.why, SECRET) == NULL && strstr(mistake.hint, SECRET) == NULL,
                "the message has no password");
        }
    if (chdir("/bin") != 0)
        return 1;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        is_int(mistake_program_error(programs[i].word, programs[i].path), programs[i].error,
               programs[i].word);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        mistake = mistake_in_command(commands[i].word);
        okf(strstr(mistake.hint, commands[i].hint) != NULL &&
                (mistake.hint[0] == '\0') == (commands[i].hint[0] == '\0'),
            "the command \"%s\": %s", commands[i].word, mistake.hint);
    }
    return done_testing();
}
