/* SPDX-License-Identifier: MIT */
/* scripts: begins requests that run a Lua script, and finds the line where one failed. */
#include "lock/scripts.h"

#include "scripts_embedded.h" /* generated from lib/lua by embed.awk */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT(name)                                                                           \
    {                                                                                          \
        script_##name, sha1_##name, lines_##name, sizeof lines_##name / sizeof lines_##name[0] \
    }

static const struct {
    const char *text;
    const char *sha1;
    const struct script_line *line; /* where in lib/lua each line of the text stands */
    size_t n_lines;
} scripts[] = {
    [SCRIPT_ACQUIRE] = SCRIPT(acquire),
    [SCRIPT_CONFIRM] = SCRIPT(confirm),
    [SCRIPT_RENEW] = SCRIPT(renew),
    [SCRIPT_RELEASE] = SCRIPT(release),
    [SCRIPT_TIMESTAMP_LOCK_ACQUIRE] = SCRIPT(timestamp_lock_acquire),
    [SCRIPT_TIMESTAMP_LOCK_RENEW] = SCRIPT(timestamp_lock_renew),
    [SCRIPT_TIMESTAMP_LOCK_RELEASE] = SCRIPT(timestamp_lock_release),
    [SCRIPT_INSPECT] = SCRIPT(inspect),
    [SCRIPT_BREAK] = SCRIPT(break),
    [SCRIPT_HISTORY] = SCRIPT(history),
    [SCRIPT_RIGHTS] = SCRIPT(rights),
};

#define SCRIPTS (sizeof scripts / sizeof scripts[0])

void script_request(struct request *request, enum script script, size_t n_keys)
{
    request_begin(request, "EVALSHA");
    request_add(request, scripts[script].sha1);
    request_add_format(request, "%zu", n_keys);
    request->script = scripts[script].text;
}

/*
 * Returns the number LINE from "... script: SHA1, on @user_script:LINE." (Redis 7 and later), or
 * from "Error running script (call to f_SHA1): @user_script:LINE: ..."; 0: the error has no LINE.
 */
static unsigned long line_in(const char *error)
{
    static const char before[] = "@user_script:";
    const char *at = strstr(error, before);

    return at != NULL ? strtoul(at + sizeof before - 1, NULL, 10) : 0;
}

bool script_find_place(const char *error, char place[SCRIPT_PLACE_BYTES])
{
    unsigned long line = line_in(error);
    const struct script_line *found;
    size_t i = 0;

    while (i < SCRIPTS && strstr(error, scripts[i].sha1) == NULL)
        i++;
    if (i == SCRIPTS || line < 1 || line > scripts[i].n_lines)
        return false;
    found = &scripts[i].line[line - 1];
    snprintf(place, SCRIPT_PLACE_BYTES, "lib/lua/%s:%d", script_files[found->file], found->line);
    return true;
}
