/* SPDX-License-Identifier: MIT */
/* fuzz_info: reads any text as a reply to INFO. */
#include "base/clock.h"
#include "fuzz.h"
#include "server/server_info.h"
#include <rlock.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const fields[] = {"run_id", "uptime_in_seconds", "role", "maxmemory", "x"};
    char *text = fuzz_text(data, n);
    struct server_identity identity;
    int64_t number;
    char value[24];

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        must(server_info_text(text, fields[i], value, sizeof value) || value[0] == '\0');
        must(memchr(value, '\0', sizeof value) != NULL);
        for (size_t at = 0; value[at] != '\0'; at++)
            must((unsigned char)value[at] >= ' ' && value[at] != 0x7f);
        number = server_info_number(text, fields[i], -7);
        must(number >= 0 || number == -7);
    }
    server_identity_read(&identity, text);
    must(memchr(identity.run_id, '\0', sizeof identity.run_id) != NULL);
    must(identity.started_ms <= rlock_clock_ms());
    free(text);
    return 0;
}
