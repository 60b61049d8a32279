/* SPDX-License-Identifier: MIT */
/* test_server_info: fields of what INFO gives, and of what it should not. */
#include "server/server_info.h"
#include "tap.h"

static const char text[] = "# Server\r\nredis_version:7.0.15\r\nuptime:12\r\nup:3\r\nempty:\r\n"
                           "bad:1x\r\nminus:-4\r\nbig:99999999999999999999\r\n\r\n"
                           "odd:a\x1b[2J\r\nlast:9";

int main(void)
{
    char word[12];

    ok(server_info_text(text, "redis_version", word, sizeof word), "a field is found");
    is_str(word, "7.0.15", "with its value");
    ok(!server_info_text(text, "version", word, sizeof word), "a part of a name is none");
    is_str(word, "", "and has no value");
    ok(server_info_text(text, "empty", word, sizeof word) && *word == '\0', "a value may be empty");
    ok(server_info_text(text, "odd", word, sizeof word), "a value with other bytes");
    is_str(word, "a?[2J", "is made printable");
    ok(server_info_text(text, "big", word, sizeof word), "a long one");
    is_str(word, "99999999999", "is cut");
    ok(!server_info_text(NULL, "up", word, sizeof word), "nothing was told");
    is_int(server_info_number(text, "up", -1), 3, "a number, of a name that begins another");
    is_int(server_info_number(text, "last", -1), 9, "the last one, without an end of line");
    is_int(server_info_number(text, "bad", -1), -1, "no number");
    is_int(server_info_number(text, "minus", 7), 7, "none with a sign");
    is_int(server_info_number(text, "big", -1), -1, "none that is too large");
    is_int(server_info_number(text, "none", -1), -1, "none that isn't there");
    is_int(server_info_number(NULL, "up", -1), -1, "none where nothing was told");
    return done_testing();
}
