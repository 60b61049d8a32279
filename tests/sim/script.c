/* SPDX-License-Identifier: MIT */
/* script: runs the Lua scripts that clients send, in a real Lua 5.1, on a struct store. */
#include "script.h"

#include "commands.h"
#include "sha1.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 1100

static struct {
    lua_State *lua;
    struct {
        char sha1[SHA1_HEX];
        int function; /* in Lua's registry; LUA_NOREF: it does not compile */
        char *error;
    } script[SCRIPTS_MAX];
    int n;
    struct store *store;    /* the keys of the server on which the script runs */
    const struct text *key; /* KEYS */
    size_t n_keys;
    bool refuses_lists; /* of waiters, as they aren't in KEYS */
    int64_t now_us;
} scripts;

/* ---- turning replies of commands into Lua values ---- */

static void push_field(lua_State *lua, const char *name, struct text value)
{
    lua_newtable(lua);
    lua_pushlstring(lua, value.at, value.n);
    lua_setfield(lua, -2, name);
}

/* Pushes the reply that begins at `at` as a value; returns where the next one begins. */
static const char *push_reply(lua_State *lua, const char *at)
{
    const char *end = strstr(at, "\r\n");
    long n = strtol(at + 1, NULL, 10);
    long i;

    switch (*at) {
    case ':':
        lua_pushnumber(lua, (lua_Number)strtoll(at + 1, NULL, 10));
        return end + 2;
    case '+':
    case '-':
        push_field(lua, *at == '+' ? "ok" : "err", (struct text){at + 1, (size_t)(end - at - 1)});
        return end + 2;
    case '$':
        if (n < 0) {
            lua_pushboolean(lua, 0);
            return end + 2;
        }
        lua_pushlstring(lua, end + 2, (size_t)n);
        return end + 2 + n + 2;
    default: /* '*' */
        lua_createtable(lua, (int)n, 0);
        at = end + 2;
        for (i = 1; i <= n; i++) {
            at = push_reply(lua, at);
            lua_rawseti(lua, -2, (int)i);
        }
        return at;
    }
}

/* ---- turning Lua values into replies of scripts ---- */

static bool append_field(lua_State *lua, int at, const char *name, char sign, struct buffer *reply)
{
    size_t n;
    const char *text;

    lua_pushstring(lua, name);
    lua_rawget(lua, at);
    text = lua_type(lua, -1) == LUA_TSTRING ? lua_tolstring(lua, -1, &n) : NULL;
    if (text != NULL) {
        buffer_add(reply, &sign, 1);
        buffer_add(reply, text, n);
        buffer_add(reply, "\r\n", 2);
    }
    lua_pop(lua, 1);
    return text != NULL;
}

static void append_value(lua_State *lua, int at, struct buffer *reply);

/* Appends a Lua table as an array, up to the first nil, as Redis does. */
static void append_array(lua_State *lua, int at, struct buffer *reply)
{
    struct buffer elements = {.at = NULL};
    int n = 0;

    for (;;) {
        lua_rawgeti(lua, at, n + 1);
        if (lua_isnil(lua, -1))
            break;
        append_value(lua, lua_gettop(lua), &elements);
        lua_pop(lua, 1);
        n++;
    }
    lua_pop(lua, 1);
    buffer_add_format(reply, "*%d\r\n", n);
    buffer_add(reply, elements.at, elements.n);
    buffer_free(&elements);
}

static void append_value(lua_State *lua, int at, struct buffer *reply)
{
    struct text text;

    switch (lua_type(lua, at)) {
    case LUA_TSTRING:
        text.at = lua_tolstring(lua, at, &text.n);
        commands_bulk(reply, text);
        break;
    case LUA_TNUMBER:
        buffer_add_format(reply, ":%lld\r\n", (long long)lua_tonumber(lua, at));
        break;
    case LUA_TBOOLEAN:
        buffer_add_format(reply, "%s", lua_toboolean(lua, at) ? ":1\r\n" : "$-1\r\n");
        break;
    case LUA_TTABLE:
        if (!append_field(lua, at, "err", '-', reply) && !append_field(lua, at, "ok", '+', reply))
            append_array(lua, at, reply);
        break;
    default:
        buffer_add_format(reply, "$-1\r\n");
    }
}

/* ---- the functions in Lua's table `redis` ---- */

static bool append_time(const struct text *word, size_t n, struct buffer *reply)
{
    char text[32];

    if (!text_is_word(word[0], "TIME") || n != 1)
        return false;
    buffer_add_format(reply, "*2\r\n");
    snprintf(text, sizeof text, "%lld", (long long)(scripts.now_us / 1000000));
    commands_bulk(reply, text_of(text));
    snprintf(text, sizeof text, "%lld", (long long)(scripts.now_us % 1000000));
    commands_bulk(reply, text_of(text));
    return true;
}

/* ---- refusing keys that aren't in KEYS ---- */

static bool is_declared(struct text key)
{
    for (size_t i = 0; i < scripts.n_keys; i++)
        if (key.n == scripts.key[i].n && memcmp(key.at, scripts.key[i].at, key.n) == 0)
            return true;
    return false;
}

/* Returns whether the server refuses the key. Ends the program if no server should be asked. */
static bool is_refused(struct text key)
{
    if (is_declared(key))
        return false;
    if (memmem(key.at, key.n, ":rlock:wake:", strlen(":rlock:wake:")) != NULL)
        return scripts.refuses_lists;
    fprintf(stderr, "a script uses %.*s, which isn't in its KEYS\n", (int)key.n, key.at);
    abort();
}

/* DEL and EXISTS take several keys, the other commands of the scripts one. */
static bool uses_refused_key(const struct text *word, size_t n)
{
    size_t last = text_is_word(word[0], "DEL") || text_is_word(word[0], "EXISTS") ? n : 2;

    for (size_t i = 1; i < n && i < last; i++)
        if (is_refused(word[i]))
            return true;
    return false;
}

/* redis.call() and redis.pcall(): the arguments are the words of a command; pushes its reply. */
static void call(lua_State *lua)
{
    static const char refused[] = "-ERR script tried accessing undeclared key\r\n";
    static const char unknown[] = "-ERR Unknown Redis command called from script\r\n";
    static struct text word[WORDS_MAX];
    char number[WORDS_MAX > 64 ? 64 : WORDS_MAX][32];
    struct buffer reply = {.at = NULL};
    int n = lua_gettop(lua);

    for (int i = 0; i < n && i < WORDS_MAX; i++) {
        if (lua_type(lua, i + 1) == LUA_TNUMBER && i < 64) {
            snprintf(number[i], sizeof number[i], "%.17g", lua_tonumber(lua, i + 1));
            word[i] = text_of(number[i]);
        } else if (lua_type(lua, i + 1) == LUA_TSTRING) {
            word[i].at = lua_tolstring(lua, i + 1, &word[i].n);
        } else {
            push_field(lua, "err",
                       text_of("ERR Lua redis lib command arguments must be strings or integers"));
            return;
        }
    }
    if (!append_time(word, (size_t)n, &reply) && n > 0 && uses_refused_key(word, (size_t)n))
        buffer_add(&reply, refused, sizeof refused - 1);
    else if (reply.n == 0 && !commands_run(scripts.store, word, (size_t)n, &reply))
        buffer_add(&reply, unknown, sizeof unknown - 1);
    buffer_add(&reply, "", 1);
    push_reply(lua, reply.at);
    buffer_free(&reply);
}

static int redis_pcall(lua_State *lua)
{
    call(lua);
    return 1;
}

static int redis_call(lua_State *lua)
{
    call(lua);
    if (lua_istable(lua, -1)) {
        lua_getfield(lua, -1, "err");
        if (!lua_isnil(lua, -1)) {
            lua_pop(lua, 1);
            return lua_error(lua);
        }
        lua_pop(lua, 1);
    }
    return 1;
}

static int redis_sha1hex(lua_State *lua)
{
    char hex[SHA1_HEX];
    struct text text;

    text.at = luaL_checklstring(lua, 1, &text.n);
    sha1_hex(text, hex);
    lua_pushstring(lua, hex);
    return 1;
}

static int redis_acl_check_cmd(lua_State *lua)
{
    lua_pushboolean(lua, 1);
    return 1;
}

static int unknown_global(lua_State *lua)
{
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                      lua_tostring(lua, 2));
}

static int new_global(lua_State *lua)
{
    return luaL_error(lua, "Attempt to modify a readonly table");
}

/* As in Redis, a script that reads an undefined global variable, or sets a new one, fails. */
static void protect_globals(lua_State *lua)
{
    lua_newtable(lua);
    lua_pushcfunction(lua, unknown_global);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, new_global);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

static void open_lua(void)
{
    static const luaL_Reg functions[] = {{"call", redis_call},
                                         {"pcall", redis_pcall},
                                         {"sha1hex", redis_sha1hex},
                                         {"acl_check_cmd", redis_acl_check_cmd},
                                         {NULL, NULL}};

    scripts.lua = luaL_newstate();
    if (scripts.lua == NULL)
        abort();
    luaL_openlibs(scripts.lua);
    luaL_register(scripts.lua, "redis", functions);
    lua_newtable(scripts.lua);
    lua_setglobal(scripts.lua, "KEYS");
    lua_newtable(scripts.lua);
    lua_setglobal(scripts.lua, "ARGV");
    lua_settop(scripts.lua, 0);
    protect_globals(scripts.lua);
}

/* ---- compiling and running scripts ---- */

int script_number_of_sha1(struct text sha1)
{
    for (int i = 0; i < scripts.n; i++)
        if (text_is_word(sha1, scripts.script[i].sha1))
            return i;
    return -1;
}

int script_number(struct text source)
{
    char sha1[SHA1_HEX];
    int i;

    sha1_hex(source, sha1);
    i = script_number_of_sha1(text_of(sha1));
    if (i >= 0)
        return i;
    if (scripts.lua == NULL)
        open_lua();
    if (scripts.n == SCRIPTS_MAX)
        abort();
    i = scripts.n++;
    memcpy(scripts.script[i].sha1, sha1, sizeof sha1);
    if (luaL_loadbuffer(scripts.lua, source.at, source.n, "@user_script") == 0) {
        scripts.script[i].function = luaL_ref(scripts.lua, LUA_REGISTRYINDEX);
    } else {
        scripts.script[i].function = LUA_NOREF;
        scripts.script[i].error = strdup(lua_tostring(scripts.lua, -1));
        lua_pop(scripts.lua, 1);
    }
    return i;
}

static void set_words(const char *name, const struct text *word, size_t n)
{
    lua_State *lua = scripts.lua;

    lua_pushstring(lua, name);
    lua_createtable(lua, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushlstring(lua, word[i].at, word[i].n);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_rawset(lua, LUA_GLOBALSINDEX);
}

static void append_error(int script, struct buffer *reply)
{
    lua_State *lua = scripts.lua;
    const char *text = lua_tostring(lua, -1);

    if (lua_istable(lua, -1)) {
        lua_getfield(lua, -1, "err");
        text = lua_tostring(lua, -1);
        buffer_add_format(reply, "-%.300s", text);
    } else {
        buffer_add_format(reply, "-ERR %.300s", text != NULL ? text : "?");
    }
    buffer_add_format(reply, " script: %s, on @user_script:0.\r\n", scripts.script[script].sha1);
}

void script_refuse_lists(bool refuses)
{
    scripts.refuses_lists = refuses;
}

void script_run(int script, struct store *store, const struct text *word, size_t n, int64_t now_us,
                struct buffer *reply)
{
    size_t n_keys = n > 0 ? (size_t)strtoul(word[0].at, NULL, 10) : 0;

    if (scripts.script[script].function == LUA_NOREF) {
        buffer_add_format(reply, "-ERR Error compiling script (new function): %.300s\r\n",
                          scripts.script[script].error);
        return;
    }
    if (n == 0 || n_keys > n - 1) {
        buffer_add_format(reply, "-ERR Number of keys can't be greater than number of args\r\n");
        return;
    }
    scripts.store = store;
    scripts.now_us = now_us;
    scripts.key = word + 1;
    scripts.n_keys = n_keys;
    set_words("KEYS", word + 1, n_keys);
    set_words("ARGV", word + 1 + n_keys, n - 1 - n_keys);
    lua_rawgeti(scripts.lua, LUA_REGISTRYINDEX, scripts.script[script].function);
    if (lua_pcall(scripts.lua, 0, 1, 0) == 0)
        append_value(scripts.lua, lua_gettop(scripts.lua), reply);
    else
        append_error(script, reply);
    lua_settop(scripts.lua, 0);
}
