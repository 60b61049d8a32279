/* SPDX-License-Identifier: MIT */
/* suggest: finds the name in a list that the user probably meant by a mistyped word. */
#ifndef SUGGEST_H
#define SUGGEST_H

#include <stddef.h>

/* Longer words are not compared: the memory for a comparison grows with both lengths. */
#define SUGGEST_BYTES_MAX 40

/*
 * suggest_distance: how many letters must be inserted, deleted, replaced or swapped with their
 * neighbour to turn one word into the other; letters of either case are equal ("optimal string
 * alignment"). SUGGEST_BYTES_MAX + 1 if a word is longer than SUGGEST_BYTES_MAX.
 */
size_t suggest_distance(const char *one, const char *other);

/* A search for the nearest name. The caller initializes it with {.typed = WORD}. */
struct suggestion {
    const char *typed; /* the word that the user typed */
    const char *best;  /* the nearest name so far; NULL: no name is near enough */
    size_t distance;   /* suggest_distance() of `typed` and `best` */
};

/*
 * suggest_consider: compare the typed word with a name. The name is near enough if it differs in
 * one letter, in two if the word has 5 letters or more, in three if the word has 9 or more; or if
 * the word is an abbreviation: its first 3 letters or more. Of equally near names the first wins.
 */
void suggest_consider(struct suggestion *suggestion, const char *name);

#endif
