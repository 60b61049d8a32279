/* SPDX-License-Identifier: MIT */
/* libssl_linked: libssl.h for the static program, which is linked with OpenSSL. */
#include "wire/libssl.h"

#define LIBSSL_SYMBOL(name) .name = name,

/* A static program can't load a library at run time. OpenSSL is a part of this program already. */
enum rlock_status libssl_load(struct libssl *libssl, struct rlock_error *err)
{
    static const struct libssl linked = {LIBSSL_FUNCTIONS(LIBSSL_SYMBOL)};

    (void)err;
    *libssl = linked;
    return RLOCK_OK;
}
