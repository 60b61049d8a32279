/* SPDX-License-Identifier: MIT */
/* secret: passwords in memory and in URLs, kept from those who may look there. */
#ifndef SECRET_H
#define SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* secret_in_url: where it is, `*bytes` long; NULL if there is none. */
char *secret_in_url(char *url, size_t *bytes);

/* secret_hide: overwrite those of all URLs in a text in place, so that nobody reads them there. */
void secret_hide(char *text);

/* secret_shown: a word as it can be told, where it may be a URL; heap; NULL: no memory. */
char *secret_shown(const char *word);

/*
 * secret_may_stand_in: would secret_hide() hide anything? It takes more for a password than
 * secret_in_url(), as the URLs of others have other forms: ":pw#x@h", "token@h".
 */
bool secret_may_stand_in(const char *text);

/*
 * secret_is_known: from true to false, which nest, this process has a password
 * in its memory. Meanwhile there are no core files of it, and no other process
 * of the same user may look into it (PR_SET_DUMPABLE).
 */
void secret_is_known(bool is_known);

/* secret_is_forgotten: it has none any more, whatever it was forked with. */
void secret_is_forgotten(void);

#endif
