/* SPDX-License-Identifier: MIT */
/* mistake: what the user probably meant by a command line that can't be carried out. */
#ifndef MISTAKE_H
#define MISTAKE_H

#include <stdbool.h>

/* The two parts of a message about a mistake. */
struct mistake {
    char why[200];  /* what is wrong */
    char hint[240]; /* what the user may have meant; "": no suggestion */
};

/* mistake_needs_no_quotes: can the user type the text, which isn't "", in a shell as it is? */
bool mistake_needs_no_quotes(const char *text);

/*
 * mistake_program_error: why execvp(3) couldn't execute the word, as an errno: ENOENT if no folder
 * of `path`, the value of PATH, has the program; 0: the file's type and rights allow it. `path`
 * NULL: PATH is unset.
 */
int mistake_program_error(const char *word, const char *path);

/*
 * mistake_no_key: explain a command line that has no key. `words` are the words after the options;
 * `may_be_verb` tells whether the user may have meant the first word as a verb. `path` is the value
 * of PATH; NULL: PATH is unset.
 */
struct mistake mistake_no_key(char *const *words, bool may_be_verb, const char *path);

/* mistake_unknown_verb: say that no verb has this name, and which one the user may have meant. */
struct mistake mistake_unknown_verb(const char *word);

/*
 * mistake_in_command: `word` is a command that can't be executed. Returns a hint if the word is a
 * verb's name, a command of the shell such as "cd", or a whole line for a shell; else `hint` is "".
 */
struct mistake mistake_in_command(const char *word);

#endif
