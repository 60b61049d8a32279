/* SPDX-License-Identifier: MIT */
/* test_scripts: requests that run scripts, and the place that a script's error names. */
#include "lock/scripts.h"
#include "tap.h"

#include <stdio.h>

#define LAST_SCRIPT SCRIPT_RIGHTS

static const char *digest_of(enum script script)
{
    static struct request request;

    script_request(&request, script, 0);
    return request.word[1];
}

static void test_digests(void)
{
    char digest[LAST_SCRIPT + 1][41];

    for (int i = 0; i <= LAST_SCRIPT; i++) {
        const char *sha1 = digest_of((enum script)i);

        okf(strlen(sha1) == 40 && strspn(sha1, "0123456789abcdef") == 40,
            "script %d has a digest of 40 hexadecimal digits", i);
        snprintf(digest[i], sizeof digest[i], "%s", sha1);
        for (int j = 0; j < i; j++)
            if (strcmp(digest[i], digest[j]) == 0)
                okf(false, "scripts %d and %d have different digests", i, j);
    }
}

/*
 * Returns the file in which a script has failed, as script_find_place() reads it from a server's
 * error: the text `before`, then the digest of the script, then the text `behind`. "none": the
 * error names no place.
 */
static const char *file_of(enum script script, const char *before, const char *behind)
{
    static char place[SCRIPT_PLACE_BYTES];
    char error[300];

    snprintf(error, sizeof error, "%s%s%s", before, digest_of(script), behind);
    if (!script_find_place(error, place))
        return "none";
    place[strcspn(place, ":")] = '\0';
    return place;
}

static void test_places(void)
{
    static const char redis_6[] = "ERR Error running script (call to f_";
    static const char redis_7[] = "WRONGTYPE Operation against a key script: ";
    char place[SCRIPT_PLACE_BYTES] = "unchanged";

    /* line 1 of release.lua is its own; line 2 of confirm.lua is in a file that it includes */
    is_str(file_of(SCRIPT_RELEASE, redis_7, ", on @user_script:1."), "lib/lua/release.lua");
    is_str(file_of(SCRIPT_RELEASE, redis_6, "): @user_script:1: @user_script: 1: -OOM"),
           "lib/lua/release.lua", "an error of Redis 6.0 names the file");
    is_str(file_of(SCRIPT_CONFIRM, redis_7, ", on @user_script:2."), "lib/lua/shared/clock.lua");
    is_str(file_of(SCRIPT_RELEASE, redis_7, ", on @user_script:999."), "none");
    is_str(file_of(SCRIPT_RELEASE, redis_7, ", on @user_script:0."), "none");
    is_str(file_of(SCRIPT_RELEASE, redis_7, ", on line 1"), "none");
    ok(!script_find_place("ERR script: 0123456789abcdef0123456789abcdef01234567, on "
                          "@user_script:1.",
                          place) &&
       strcmp(place, "unchanged") == 0);
}

TESTS(test_digests, test_places)
