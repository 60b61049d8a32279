/* SPDX-License-Identifier: MIT */
/* libssl_linked: what stands for libssl.c in the static program, which OpenSSL is linked into. */
#include "wire/libssl.h"

#define LIBSSL_SYMBOL(name) .name = name,

/* A static program can't load a library at run time, but it has nothing to load either. */
enum rlock_status libssl_load(struct libssl *libssl, struct rlock_error *err)
{
    static const struct libssl linked = {LIBSSL_FUNCTIONS(LIBSSL_SYMBOL)};

    (void)err;
    *libssl = linked;
    return RLOCK_OK;
}
