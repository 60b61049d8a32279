/* SPDX-License-Identifier: MIT */
/* test_server_info: fields are read from good and from malformed replies to INFO. */
#include "server/server_info.h"
#include "tap.h"

static const char text[] = "# Server\r\nredis_version:7.0.15\r\nuptime:12\r\nup:3\r\nempty:\r\n"
                           "bad:1x\r\nminus:-4\r\nbig:99999999999999999999\r\n\r\n"
                           "odd:a\x1b[2J\r\nlast:9";

int main(void)
{
    char word[12];

    ok(server_info_text(text, "redis_version", word, sizeof word));
    is_str(word, "7.0.15", "server_info_text() copies the value of the field");
    ok(!server_info_text(text, "version", word, sizeof word));
    is_str(word, "", "server_info_text() sets the value of a missing field to \"\"");
    ok(server_info_text(text, "empty", word, sizeof word) && *word == '\0');
    ok(server_info_text(text, "odd", word, sizeof word));
    is_str(word, "a?[2J", "server_info_text() replaces the control character by ?");
    ok(server_info_text(text, "big", word, sizeof word));
    is_str(word, "99999999999", "server_info_text() cuts the value to the size of the buffer");
    ok(!server_info_text(NULL, "up", word, sizeof word));
    is_int(server_info_number(text, "up", -1), 3);
    is_int(server_info_number(text, "last", -1), 9);
    is_int(server_info_number(text, "bad", -1), -1);
    is_int(server_info_number(text, "minus", 7), 7);
    is_int(server_info_number(text, "big", -1), -1);
    is_int(server_info_number(text, "none", -1), -1);
    is_int(server_info_number(NULL, "up", -1), -1, "server_info_number() returns `none` for NULL");
    return done_testing();
}
