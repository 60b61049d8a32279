/* SPDX-License-Identifier: MIT */
/* identity: which server it is that answers, and since when it runs. */
#include "server/identity.h"

#include "rlock.h"
#include "server/server_info.h"

#define UPTIME_MAX (INT64_C(1) << 40)

void identity_read(struct identity *identity, const char *info)
{
    int64_t uptime = info_number(info, "uptime_in_seconds", 0);

    /* it is in whole seconds, of which the first may not have been one */
    identity->born_ms = rlock_clock_ms();
    if (uptime > 0 && uptime < UPTIME_MAX)
        identity->born_ms -= (uptime - 1) * 1000;
    info_word(info, "run_id", identity->run_id, sizeof identity->run_id);
}
