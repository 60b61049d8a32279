/* SPDX-License-Identifier: MIT */
/* script: the Lua scripts as requests. */
#include "script.h"

#include "scripts.h" /* made from lib/lua by embed.awk */

static const char *const texts[] = {
    [SCRIPT_ACQUIRE] = script_acquire,
    [SCRIPT_RENEW] = script_renew,
    [SCRIPT_RELEASE] = script_release,
    [SCRIPT_STAMP_ACQUIRE] = script_stamp_acquire,
    [SCRIPT_STAMP_RENEW] = script_stamp_renew,
    [SCRIPT_STAMP_RELEASE] = script_stamp_release,
    [SCRIPT_INSPECT] = script_inspect,
    [SCRIPT_LIST] = script_list,
    [SCRIPT_BREAK] = script_break,
    [SCRIPT_TIME] = script_time,
    [SCRIPT_RIGHTS] = script_rights,
};

void script_request(struct request *request, enum script script, size_t n_keys)
{
    request_begin(request, "EVAL");
    request_add(request, texts[script]);
    request_add_format(request, "%zu", n_keys);
}
