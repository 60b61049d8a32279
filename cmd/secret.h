/* SPDX-License-Identifier: MIT */
/* secret: the password inside a URL. */
#ifndef SECRET_H
#define SECRET_H

#include <stddef.h>

/* secret_in_url: where it is, `*bytes` long; NULL if there is none. */
char *secret_in_url(char *url, size_t *bytes);

/* secret_hide: overwrite it in place, so that nobody reads it from the arguments. */
void secret_hide(char *url);

#endif
