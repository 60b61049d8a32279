/* SPDX-License-Identifier: MIT */
/* scripts: begins requests that run a Lua script. */
#include "lock/scripts.h"

#include "scripts_embedded.h" /* generated from lib/lua by embed.awk */

#define SCRIPT(name)               \
    {                              \
        script_##name, sha1_##name \
    }

static const struct {
    const char *text;
    const char *sha1;
} scripts[] = {
    [SCRIPT_ACQUIRE] = SCRIPT(acquire),
    [SCRIPT_CONFIRM] = SCRIPT(confirm),
    [SCRIPT_RENEW] = SCRIPT(renew),
    [SCRIPT_RELEASE] = SCRIPT(release),
    [SCRIPT_TIMESTAMP_LOCK_ACQUIRE] = SCRIPT(timestamp_lock_acquire),
    [SCRIPT_TIMESTAMP_LOCK_RENEW] = SCRIPT(timestamp_lock_renew),
    [SCRIPT_TIMESTAMP_LOCK_RELEASE] = SCRIPT(timestamp_lock_release),
    [SCRIPT_INSPECT] = SCRIPT(inspect),
    [SCRIPT_LIST] = SCRIPT(list),
    [SCRIPT_BREAK] = SCRIPT(break),
    [SCRIPT_TIME] = SCRIPT(time),
    [SCRIPT_RIGHTS] = SCRIPT(rights),
};

void script_request(struct request *request, enum script script, size_t n_keys,
                    bool is_likely_known)
{
    request_begin(request, "EVALSHA");
    request_add(request, scripts[script].sha1);
    request_add_format(request, "%zu", n_keys);
    request->script = scripts[script].text;
    if (!is_likely_known)
        request_use_eval(request);
}
