/* SPDX-License-Identifier: MIT */
/* test_cmd_json: from any strings and numbers, json.c makes one valid JSON object. */
#include "output/json.h"
#include "tap.h"

#include <stdlib.h>

/* ---- a parser for one flat object, as strict as RFC 8259 and RFC 3629 ---- */

/* The length of the UTF-8 character at `at`; 0: malformed, or JSON wants it escaped. */
static size_t character(const unsigned char *at)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : 4;
    unsigned code = n == 1 ? at[0] : at[0] & (0x7fu >> n);

    if (at[0] < ' ' || at[0] == '"' || at[0] == '\\' || (n == 4 && at[0] >> 3 != 30))
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? 0 : n;
}

static const char *string(const char *at)
{
    size_t n;

    if (*at++ != '"')
        return NULL;
    while (*at != '"') {
        if (*at != '\\')
            n = character((const unsigned char *)at);
        else if (at[1] == 'u')
            n = strspn(at + 2, "0123456789abcdefABCDEF") >= 4 ? 6 : 0;
        else
            n = at[1] != '\0' && strchr("\"\\/bfnrt", at[1]) != NULL ? 2 : 0;
        if (n == 0)
            return NULL;
        at += n;
    }
    return at + 1;
}

static const char *number(const char *at)
{
    size_t n;

    at += *at == '-';
    n = strspn(at, "0123456789");
    return n == 0 || (n > 1 && at[0] == '0') ? NULL : at + n;
}

/* The number of members of the object; -1: the text is no valid object. */
static int members(const char *at)
{
    int n = 0;

    if (*at++ != '{')
        return -1;
    while (*at != '}') {
        if (n > 0 && *at++ != ',')
            return -1;
        at = string(at);
        if (at == NULL || *at++ != ':')
            return -1;
        at = *at == '"' ? string(at) : number(at);
        if (at == NULL)
            return -1;
        n++;
    }
    return strcmp(at, "}\n") == 0 ? n : -1;
}

/* ---- the tests ---- */

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
    {"\xc0\xaf", "\\ufffd\\ufffd"},                       /* overlong */
    {"\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd"},            /* overlong */
    {"\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* overlong */
    {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},            /* a surrogate */
    {"\xed\x9f\xbf\xee\x80\x80",
     "\xed\x9f\xbf\xee\x80\x80"},                         /* the characters beside the surrogates */
    {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},             /* U+10FFFF, the last character */
    {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* U+110000 */
    {"\xf8\x88\x80\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"}, /* five bytes */
    {"\xe2\x82", "\\ufffd\\ufffd"},                                  /* cut off */
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
        is_int(members(text), 1, "the object is valid and has one member");
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
    is_int(members(text), 5, "the object is valid and has five members");
}

/* Whatever the size of the buffer, the object is valid, and has only whole members. */
static void test_rooms(void)
{
    static const char value[] = "a\"\\\x01\xff\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92z";
    bool is_good = true;
    char text[256];
    int most = 0;

    for (size_t room = 4; room < 200; room++) {
        struct json json;
        int n;

        memset(text, 0x01, sizeof text);
        json_begin(&json, text, room);
        json_string(&json, "one", value);
        json_number(&json, "two", -12345);
        json_string(&json, "three", value);
        json_unsigned(&json, "four", 4);
        json_end(&json);
        n = members(text);
        is_good = is_good && n >= 0 && strlen(text) == json.used && json.used < room;
        for (size_t i = room; i < sizeof text; i++)
            is_good = is_good && text[i] == 0x01;
        if (!is_good)
            printf("# room %zu: %s\n", room, text);
        most = n > most ? n : most;
    }
    ok(is_good, "a member that doesn't fit is left out as a whole");
    is_int(most, 4, "a large buffer has all members");
}

/* A string of which only the beginning would fit is left out, and not cut. */
static void test_cut(void)
{
    bool is_good = true;
    char text[64];

    for (size_t room = 4; room < sizeof text; room++) {
        struct json json;

        json_begin(&json, text, room);
        json_string(&json, "s", "ab\x01");
        json_end(&json);
        is_good = is_good && strcmp(text, room < 18 ? "{}\n" : "{\"s\":\"ab\\u0001\"}\n") == 0;
    }
    ok(is_good, "a string is written as a whole or not at all");
}

static void test_any_bytes(void)
{
    unsigned seed = 1;
    bool is_good = true;
    char value[64];
    char text[64 * JSON_BYTES_EACH + 16];

    for (int round = 0; round < 20000; round++) {
        size_t n = (size_t)rand_r(&seed) % (sizeof value - 1);
        struct json json;

        for (size_t i = 0; i < n; i++) /* bytes that often form UTF-8 sequences */
            value[i] = "\x80\x9f\xa0\xbf\xc3\xe0\xe2\xed\xf0\xf4\xff\x01\"\\az"[rand_r(&seed) % 16];
        value[n] = '\0';
        json_begin(&json, text, sizeof text);
        json_string(&json, value, value);
        json_end(&json);
        is_good = is_good && members(text) >= 0;
        json_begin(&json, text, sizeof text);
        json_string(&json, "s", value);
        json_end(&json);
        is_good = is_good && members(text) == 1;
    }
    ok(is_good, "any bytes give valid JSON of at most JSON_BYTES_EACH a byte");
}

TESTS(test_strings, test_members, test_rooms, test_cut, test_any_bytes)
