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

    ok(server_info_text(text, "redis_version", word, sizeof word),
       "server_info_text() finds a field");
    is_str(word, "7.0.15", "it copies the value of the field");
    ok(!server_info_text(text, "version", word, sizeof word),
       "it does not find a field by a part of its name");
    is_str(word, "", "it sets the value of a missing field to \"\"");
    ok(server_info_text(text, "empty", word, sizeof word) && *word == '\0',
       "it finds a field with an empty value");
    ok(server_info_text(text, "odd", word, sizeof word),
       "it finds a field whose value has a control character");
    is_str(word, "a?[2J", "it replaces the control character by ?");
    ok(server_info_text(text, "big", word, sizeof word),
       "it finds a field whose value is longer than the buffer");
    is_str(word, "99999999999", "it cuts the value to the size of the buffer");
    ok(!server_info_text(NULL, "up", word, sizeof word), "it finds no field in NULL");
    is_int(server_info_number(text, "up", -1), 3,
           "server_info_number() reads a field whose name begins another name");
    is_int(server_info_number(text, "last", -1), 9,
           "it reads the last line, which has no line end");
    is_int(server_info_number(text, "bad", -1), -1,
           "it does not read a value with a letter as a number");
    is_int(server_info_number(text, "minus", 7), 7,
           "it does not read a negative value as a number");
    is_int(server_info_number(text, "big", -1), -1,
           "it does not read a value above INT64_MAX as a number");
    is_int(server_info_number(text, "none", -1), -1, "it returns `none` for a missing field");
    is_int(server_info_number(NULL, "up", -1), -1, "it returns `none` for NULL");
    return done_testing();
}
