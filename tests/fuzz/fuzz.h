/* SPDX-License-Identifier: MIT */
/*
 * fuzz: what the fuzz targets share.
 *
 * Each fuzz_NAME.c has an entry point for libFuzzer (`make fuzz`, with clang). Linked with replay.c
 * instead, by any compiler, it runs over the files of corpus/NAME (`make check-unit`).
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Aborts the program if the function under test didn't do what it promises. */
#define must(promise)    \
    ((promise) ? (void)0 \
               : (fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #promise), abort()))

/*
 * Returns the input as a string, which the caller frees. The memory of the string has exactly the
 * size of the input and a NUL, so that AddressSanitizer finds reads behind its end.
 */
static inline char *fuzz_text(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);

    if (text == NULL)
        exit(1);
    memcpy(text, data, n);
    text[n] = '\0';
    return text;
}

#endif
