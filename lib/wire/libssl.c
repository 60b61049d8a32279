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
#define LIBSSL_ROW(name) {#name, offsetof(struct libssl, name)},

/*
 * A note in the program's file says that it loads OpenSSL at run time: package tools that read such
 * notes add OpenSSL to the recommended packages. The form of the note is that of
 * https://systemd.io/ELF_DLOPEN_METADATA/: owner "FDO", type 0x407c0c0a, JSON.
 */
#define DLOPEN_NOTE                                                                          \
    "[{\"feature\":\"tls\",\"description\":\"rediss:// URLs\",\"priority\":\"recommended\"," \
    "\"soname\":[\"" SONAME(OPENSSL_SHLIB_VERSION) "\"]}]"

__attribute__((used, section(".note.dlopen"), aligned(4))) static const struct {
    uint32_t owner_size;
    uint32_t text_size;
    uint32_t type;
    char owner[4];
    char text[sizeof DLOPEN_NOTE];
} dlopen_note = {4, sizeof DLOPEN_NOTE, 0x407c0c0a, "FDO", DLOPEN_NOTE};

/* clang-format off: the rows are made by one macro */
static const struct {
    char name[40]; /* no pointer, to which the dynamic linker would add an address at each start */
    size_t offset;
} functions[] = {LIBSSL_FUNCTIONS(LIBSSL_ROW)};
/* clang-format on */

enum rlock_status libssl_load(struct libssl *libssl, struct rlock_error *err)
{
    void *handle = dlopen(SONAME(OPENSSL_SHLIB_VERSION), RTLD_NOW | RTLD_NODELETE);
    enum rlock_status st = RLOCK_OK;
    size_t i;

    if (handle == NULL)
        return err_set(err, RLOCK_E_CONFIG, 0, "TLS needs OpenSSL: %.200s", dlerror());
    for (i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void **slot = (void **)(void *)((char *)libssl + functions[i].offset);

        *slot = dlsym(handle, functions[i].name);
        if (*slot == NULL)
            st = err_set(err, RLOCK_E_CONFIG, 0, "TLS needs OpenSSL: %.200s", dlerror());
    }
    dlclose(handle);
    return st;
}
