/* SPDX-License-Identifier: MIT */
/* secret: overwrites passwords and tokens in memory before the memory is freed. */
#ifndef SECRET_H
#define SECRET_H

#include <stdlib.h>
#include <string.h>

/* secret_clear: overwrite the text. secret_free: overwrite and free the text. NULL is allowed. */
static inline void secret_clear(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
}

static inline void secret_free(char *secret)
{
    secret_clear(secret);
    free(secret);
}

#endif
