/* SPDX-License-Identifier: MIT */
/* script: the Lua scripts as requests. */
#include "script.h"

#include "scripts.h" /* made from lib/lua by embed.awk */

static const char *const texts[] = {
    [SCRIPT_ACQUIRE] = script_acquire,
    [SCRIPT_RENEW] = script_renew,
    [SCRIPT_RELEASE] = script_release,
};

void script_request(struct request *request, enum script script, char *const key[SCRIPT_KEYS])
{
    size_t i;

    request->n = 0;
    request_add(request, "EVAL");
    request_add(request, texts[script]);
    request_add(request, "4");
    for (i = 0; i < SCRIPT_KEYS; i++)
        request_add(request, key[i]);
}
