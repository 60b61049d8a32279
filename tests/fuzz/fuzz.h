/* SPDX-License-Identifier: MIT */
/*
 * fuzz: what the fuzzers share.
 *
 * Each fuzz_NAME.c is an entry point for libFuzzer (`make fuzz`). Linked with replay.c instead, by
 * any compiler, it runs over what was found before, in corpus/NAME (`make fuzz-replay`).
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A promise of the function under test. */
#define must(promise) ((promise) ? (void)0 : abort())

/* The input as a string of its own size, so that reading behind it is seen. */
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
