/* SPDX-License-Identifier: MIT */
/* test_cmd_json: from any strings and numbers, json.c makes one valid JSON object. */
#include "output/json.h"
#include "tap.h"

static const struct {
    const char *value, *wanted;
} strings[] = {
    {"", ""},
    {"a b", "a b"},
    {"\"\\/", "\\\"\\\\/"},
    {"\b\t\n\f\r\x01\x1f\x7f", "\\u0008\\u0009\\u000a\\u000c\\u000d\\u0001\\u001f\\u007f"},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92"},
    {"\xff", "\\ufffd"},
    {"a\x80z", "a\\ufffdz"},
    {"\xc3", "\\ufffd"},
    {"\xc3\xc3\xa9", "\\ufffd\xc3\xa9"},
    {"\xc0\xaf", "\\ufffd\\ufffd"},            /* overlong */
    {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"}, /* a surrogate */
    {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},  /* U+10FFFF, the last character */
    {"\xe2\x82", "\\ufffd\\ufffd"},            /* cut off */
    {"\xe2\x82x", "\\ufffd\\ufffdx"},
    {"\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0",
     "\\u0080\\u009b\\u009f\xc2\xa0"}, /* control characters (C1) */
    {"\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf",
     "\\u202a\\u202e\xe2\x80\xaf"},                                /* direction overrides */
    {"\xe2\x81\xa6\xe2\x81\xa9", "\\u2066\\u2069"},                /* direction isolates */
    {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\u200e\\u200f\\u061c"}, /* direction marks */
    {"\xc2\xad\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8", "\\u00ad\\u200b\\ufeff\\u2028"},
    {"\xf3\xa0\x81\x81\xf3\xa0\x82\x80", "\\udb40\\udc41\xf3\xa0\x82\x80"}, /* U+E0041: a tag */
};

static void test_strings(void)
{
    char wanted[128];
    char text[512];
    struct json json;

    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        json_begin(&json, text, sizeof text);
        json_string(&json, "s", strings[i].value);
        json_end(&json);
        snprintf(wanted, sizeof wanted, "{\"s\":\"%s\"}\n", strings[i].wanted);
        is_str(text, wanted, "each string is escaped as the table says");
        is_int((int64_t)json.used, (int64_t)strlen(text), "`used` is the length of the text");
    }
}

static void test_members(void)
{
    char text[512];
    struct json json;

    json_begin(&json, text, sizeof text);
    json_end(&json);
    is_str(text, "{}\n", "an object without members is {}");
    json_begin(&json, text, sizeof text);
    json_string(&json, "a", "b");
    json_number(&json, "least", INT64_MIN);
    json_number(&json, "greatest", INT64_MAX);
    json_unsigned(&json, "more", UINT64_MAX);
    json_number(&json, "zero", 0);
    json_end(&json);
    is_str(text, "{\"a\":\"b\",\"least\":-9223372036854775808,\"greatest\":9223372036854775807,"
                 "\"more\":18446744073709551615,\"zero\":0}\n");
}

/* Whatever the size of the buffer, the object has as many members as fit, and each as a whole. */
static void test_rooms(void)
{
    static const char *const member[] = {"\"one\":\"a\\u0001\xe2\x82\xac\"", "\"two\":-12345",
                                         "\"three\":\"ab\\u0001\"", "\"four\":4"};
    struct json json;
    char wanted[256];
    char text[256];

    for (size_t room = 4; room < 100; room++) {
        char inside[200] = "";

        for (size_t i = 0; i < 4; i++)
            if (strlen(inside) + (inside[0] != '\0') + strlen(member[i]) + 4 <= room)
                sprintf(inside + strlen(inside), "%s%s", inside[0] != '\0' ? "," : "", member[i]);
        snprintf(wanted, sizeof wanted, "{%s}\n", inside);
        memset(text, 0x01, sizeof text);
        json_begin(&json, text, room);
        json_string(&json, "one", "a\x01\xe2\x82\xac");
        json_number(&json, "two", -12345);
        json_string(&json, "three", "ab\x01");
        json_unsigned(&json, "four", 4);
        json_end(&json);
        is_str(text, wanted);
        okf(json.used == strlen(text) && text[room] == 0x01, "a buffer of %zu bytes", room);
    }
}

/* JSON_BYTES_EACH is the room that any byte needs. */
static void test_room_for_any(void)
{
    char value[64];
    char text[sizeof value * JSON_BYTES_EACH + 16];
    struct json json;

    for (int byte = 1; byte < 256; byte++) {
        memset(value, byte, sizeof value - 1);
        value[sizeof value - 1] = '\0';
        json_begin(&json, text, sizeof text);
        json_string(&json, "s", value);
        json_end(&json);
        okf(strlen(text) >= sizeof value + 8, "byte %#x: %s", (unsigned)byte, text);
    }
}

TESTS(test_strings, test_members, test_rooms, test_room_for_any)
