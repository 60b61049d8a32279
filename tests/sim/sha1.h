/* SPDX-License-Identifier: MIT */
/* sha1: the name by which EVALSHA calls a script. */
#ifndef SHA1_H
#define SHA1_H

#include "buffer.h"

#define SHA1_HEX 41

void sha1_hex(struct text text, char hex[SHA1_HEX]);

#endif
