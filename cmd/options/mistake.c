/* SPDX-License-Identifier: MIT */
/* mistake: what the user probably meant by a command line that can't be carried out. */
#include "options/mistake.h"

#include "options/verb.h"
#include "wire/url.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORD_BYTES 64

bool mistake_needs_no_quotes(const char *text)
{
    return *text != '\0' && text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                              "0123456789_./:@%+=,-")] == '\0';
}

/* Why this user may not execute the file, as an errno; 0: its type and rights allow it. */
static int file_error(const char *file)
{
    struct stat status;

    if (faccessat(AT_FDCWD, file, X_OK, AT_EACCESS) != 0 || stat(file, &status) != 0)
        return errno;
    return S_ISREG(status.st_mode) ? 0 : EACCES;
}

int mistake_program_error(const char *word, const char *path)
{
    char file[PATH_MAX];
    char usual[100];
    int failed = ENOENT;
    int error;
    size_t n;

    if (strchr(word, '/') != NULL)
        return file_error(word);
    if (path == NULL && confstr(_CS_PATH, usual, sizeof usual) > 0)
        path = usual;
    for (; path != NULL && *word != '\0'; path = path[n] == ':' ? path + n + 1 : NULL) {
        n = strcspn(path, ":"); /* 0: the current directory */
        snprintf(file, sizeof file, "%.*s%s%s", (int)n, path, n > 0 ? "/" : "", word);
        error = file_error(file);
        if (error == 0)
            return 0;
        if (error == EACCES)
            failed = EACCES;
    }
    return failed;
}

static bool has_key_option(char *const *words)
{
    for (; *words != NULL && strcmp(*words, "--") != 0; words++)
        if (strncmp(*words, "-k", 2) == 0 || strcmp(*words, "--key") == 0 ||
            strncmp(*words, "--key=", strlen("--key=")) == 0)
            return true;
    return false;
}

/*
 * Finds the command's first word in the words behind the one that was meant as the key: "true" in
 * "rlock job true" and "rlock job -t 5 -- true". NULL: there is no command.
 */
static char *const *command_behind(char *const *words)
{
    char *const *at;

    for (at = words; *at != NULL; at++)
        if (strcmp(*at, "--") == 0)
            return at[1] == NULL ? NULL : at + 1;
    return *words == NULL || **words == '-' ? NULL : words;
}

static void suggest_key(struct mistake *mistake, char *const *words, const char *path)
{
    char *const *command = command_behind(words + 1);
    char key[WORD_BYTES];
    char program[WORD_BYTES];

    url_show(key, WORD_BYTES, words[0]);
    if (!mistake_needs_no_quotes(key) || mistake_program_error(words[0], path) == 0)
        return;
    if (words[1] != NULL && strcmp(words[1], "-c") == 0)
        snprintf(mistake->hint, sizeof mistake->hint, "did you mean: rlock -k %s -c ...?", key);
    if (command == NULL)
        return;
    url_show(program, WORD_BYTES, command[0]);
    snprintf(mistake->hint, sizeof mistake->hint, "did you mean: rlock -k %s -- %s%s?", key,
             program, command[1] == NULL ? "" : " ...");
}

struct mistake mistake_unknown_verb(const char *word)
{
    const char *meant = verb_meant(word);
    struct mistake mistake = {.hint = ""};
    char shown[WORD_BYTES];

    url_show(shown, WORD_BYTES, word);
    snprintf(mistake.why, sizeof mistake.why, "no such verb: %s", shown);
    if (strcmp(word, "run") == 0 || strcmp(word, "exec") == 0)
        snprintf(mistake.hint, sizeof mistake.hint,
                 "a command needs no verb: rlock -k KEY -- COMMAND");
    else if (meant != NULL)
        snprintf(mistake.hint, sizeof mistake.hint, "did you mean %s?", meant);
    return mistake;
}

struct mistake mistake_no_key(char *const *words, bool may_be_verb, const char *path)
{
    struct mistake mistake = {.why = "no key: name the lock with -k KEY"};
    char shown[WORD_BYTES];

    if (words[0] == NULL)
        return mistake;
    may_be_verb = may_be_verb && strchr(words[0], '/') == NULL;
    if (may_be_verb && verb_meant(words[0]) != NULL)
        return mistake_unknown_verb(words[0]);
    if (has_key_option(words + 1) && may_be_verb && mistake_program_error(words[0], path) != 0)
        return mistake_unknown_verb(words[0]);
    if (has_key_option(words + 1)) {
        url_show(shown, WORD_BYTES, words[0]);
        snprintf(mistake.why, sizeof mistake.why,
                 "no key: the options of rlock end where the command begins, at %s", shown);
        snprintf(mistake.hint, sizeof mistake.hint, "did you mean: rlock -k KEY -- %s ...?", shown);
        return mistake;
    }
    suggest_key(&mistake, words, path);
    return mistake;
}

struct mistake mistake_in_command(const char *word)
{
    static const char *const of_shell[] = {".",     "alias",  "case",   "cd",   "eval",  "exec",
                                           "exit",  "export", "for",    "if",   "local", "read",
                                           "set",   "shift",  "source", "trap", "type",  "ulimit",
                                           "umask", "unset",  "until",  "wait", "while"};
    struct mistake mistake = {.hint = ""};
    char shown[WORD_BYTES];
    size_t i;

    url_show(shown, WORD_BYTES, word);
    if (verb_named(word) != VERB_RUN)
        snprintf(mistake.hint, sizeof mistake.hint,
                 "%s is a verb when it comes first: rlock %s ...", shown, shown);
    else if (strpbrk(word, " \t\n|&;<>$`") != NULL)
        snprintf(mistake.hint, sizeof mistake.hint,
                 "if the word is a line for a shell, give it to rlock with -c: -c '%s'", shown);
    for (i = 0; i < sizeof of_shell / sizeof of_shell[0]; i++)
        if (strcmp(word, of_shell[i]) == 0)
            snprintf(mistake.hint, sizeof mistake.hint,
                     "%s is a command of the shell: give the whole line to rlock with -c: -c '%s "
                     "...'",
                     shown, shown);
    return mistake;
}
