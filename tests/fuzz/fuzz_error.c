/* SPDX-License-Identifier: MIT */
/* fuzz_error: reads any text as an error reply, to a request that followed AUTH with a password. */
#include "fuzz.h"
#include "server/error_reply.h"

#define PASSWORD "s3cret-PW"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = fuzz_text(data, n);
    struct rlock_error err = {.text = ""};
    enum error_reply kind = (enum error_reply) - 1;
    enum rlock_status st;

    st = error_reply_read(text, n % 2 ? PASSWORD : NULL, &kind, &err);
    must(st == RLOCK_E_REFUSED || st == RLOCK_E_SERVER || st == RLOCK_E_UNSUPPORTED);
    must(kind >= ERROR_REPLY_FINAL && kind <= ERROR_REPLY_PARTLY_EXECUTED);
    must(err.status == st && err.text[0] != '\0');
    must(memchr(err.text, '\0', sizeof err.text) != NULL);
    must(n % 2 == 0 || strstr(err.text, PASSWORD) == NULL);
    must(error_reply_read(text, NULL, &kind, NULL) == st);
    free(text);
    return 0;
}
