/* SPDX-License-Identifier: MIT */
/*
 * libssl: loads OpenSSL when TLS is used, and looks its functions up.
 *
 * If the program were linked with OpenSSL, every start would take twice as long, also without TLS.
 * The version in the file name of the library comes from the headers that rlock was built with,
 * because another major version has other functions.
 */
#include "wire/libssl.h"

#include "base/err.h"

#include <dlfcn.h>

#define TEXT_OF(number) #number
#define SONAME(version) "libssl.so." TEXT_OF(version)
#define PACKAGE(version) "libssl" TEXT_OF(version)
#define NONE "TLS needs OpenSSL: %.200s; install it: in Debian " PACKAGE(OPENSSL_SHLIB_VERSION)
#define TOO_OLD "TLS needs a newer OpenSSL: %.200s"
#define LIBSSL_ROW(name) {#name, offsetof(struct libssl, name)},

/* clang-format off: the rows are made by one macro */
static const struct {
    char name[40]; /* an array: to a pointer the dynamic linker adds an address at each start */
    size_t offset;
} functions[] = {LIBSSL_FUNCTIONS(LIBSSL_ROW)};
/* clang-format on */

enum rlock_status libssl_load(struct libssl *libssl, struct rlock_error *err)
{
    void *handle = dlopen(SONAME(OPENSSL_SHLIB_VERSION), RTLD_NOW | RTLD_NODELETE);
    enum rlock_status st = RLOCK_OK;
    size_t i;

    if (handle == NULL)
        return err_set(err, RLOCK_E_CONFIG, 0, NONE, dlerror());
    for (i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void **slot = (void **)(void *)((char *)libssl + functions[i].offset);

        *slot = dlsym(handle, functions[i].name);
        if (*slot == NULL)
            st = err_set(err, RLOCK_E_CONFIG, 0, TOO_OLD, dlerror());
    }
    dlclose(handle);
    return st;
}
