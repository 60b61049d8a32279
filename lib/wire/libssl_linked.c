/* SPDX-License-Identifier: MIT */
/* libssl_linked: libssl.h for the static program, which is linked with OpenSSL. */
#include "wire/libssl.h"

/*
 * A program that is linked with OpenSSL calls OPENSSL_cpuid_setup() before main(). That function
 * executes up to eight CPUID. On a virtual machine each CPUID calls the hypervisor, and takes 1 to
 * 10 us. So the linker (--wrap in the Makefile) turns the call into one of the function __wrap_...,
 * which does nothing. libssl_load() calls OpenSSL's own function, by its name __real_....
 */
void __wrap_OPENSSL_cpuid_setup(void);
void __real_OPENSSL_cpuid_setup(void);

void __wrap_OPENSSL_cpuid_setup(void)
{
}

#define LIBSSL_SYMBOL(name) .name = name,

/* A static program can't load a library at run time. OpenSSL is a part of this program already. */
enum rlock_status libssl_load(struct libssl *libssl, struct rlock_error *err)
{
    static const struct libssl linked = {LIBSSL_FUNCTIONS(LIBSSL_SYMBOL)};

    (void)err;
    __real_OPENSSL_cpuid_setup();
    *libssl = linked;
    return RLOCK_OK;
}
