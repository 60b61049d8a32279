/* SPDX-License-Identifier: MIT */
/* secret: overwrites passwords and tokens in memory before that is given back. */
#ifndef SECRET_H
#define SECRET_H

#include <stdlib.h>
#include <string.h>

/* secret_clear: overwrite the text; NULL is allowed. secret_free: free it, too. */
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
