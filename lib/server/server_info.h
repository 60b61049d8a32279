/* SPDX-License-Identifier: MIT */
/* server_info: what a server tells of itself, field by field. */
#ifndef SERVER_INFO_H
#define SERVER_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both look for "NAME:VALUE" in the text that INFO gives; NULL: there is none. */

/* info_word: the value, printable and cut to `room`. False, and "": there is no such field. */
bool info_word(const char *info, const char *name, char *out, size_t room);

/* info_number: the same of digits; `none`: there is no such field, or no number in it. */
int64_t info_number(const char *info, const char *name, int64_t none);

#endif
