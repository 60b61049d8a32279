/* SPDX-License-Identifier: MIT */
/* redis: asks redis.lua, which has the keys of the simulated servers, in a real Lua 5.1. */
#include "redis.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lua_State *lua;

static void must(bool is_done)
{
    if (is_done)
        return;
    fprintf(stderr, "redis.lua: %s\n", lua_tostring(lua, -1));
    abort();
}

static int sha1_of(lua_State *state)
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned n_bytes;
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    size_t n;
    const char *text = luaL_checklstring(state, 1, &n);

    if (EVP_Digest(text, n, bytes, &n_bytes, EVP_sha1(), NULL) != 1)
        abort();
    for (unsigned i = 0; i < n_bytes; i++)
        sprintf(hex + (size_t)2 * i, "%02x", bytes[i]);
    lua_pushstring(state, hex);
    return 1;
}

/* Raises the error as redis.lua's refuse() does. */
static int refuse(lua_State *state, const char *text)
{
    lua_newtable(state);
    lua_pushstring(state, text);
    lua_setfield(state, -2, "err");
    return lua_error(state);
}

/*
 * checked(declared, refuses_lists, word...): returns the words of a script's command, with strings
 * for numbers. Refuses keys that aren't declared in KEYS, but the lists of waiters only if told so.
 */
static int checked(lua_State *state)
{
    int n = lua_gettop(state);
    int last = n;
    char number[32];

    for (int i = 3; i <= n; i++)
        if (lua_type(state, i) == LUA_TNUMBER) {
            snprintf(number, sizeof number, "%.17g", lua_tonumber(state, i));
            lua_pushstring(state, number);
            lua_replace(state, i);
        } else if (lua_type(state, i) != LUA_TSTRING) {
            return refuse(state, "ERR Lua redis lib command arguments must be strings or integers");
        }
    if (n > 4 && strcmp(lua_tostring(state, 3), "DEL") != 0 &&
        strcmp(lua_tostring(state, 3), "EXISTS") != 0)
        last = 4; /* the other commands of the scripts take one key */
    for (int i = 4; i <= last; i++) {
        lua_pushvalue(state, i);
        lua_rawget(state, 1);
        if (!lua_toboolean(state, -1)) {
            if (strstr(lua_tostring(state, i), ":rlock:wake:") == NULL) {
                fprintf(stderr, "not in its KEYS: a script uses %s\n", lua_tostring(state, i));
                abort();
            }
            if (lua_toboolean(state, 2))
                return refuse(state, "ERR script tried accessing undeclared key");
        }
        lua_pop(state, 1);
    }
    return n - 2;
}

bool redis_ask(const char *what, int server, int64_t now_us, const struct text *word, size_t n,
               struct buffer *out)
{
    struct text said;
    bool is_said;

    if (lua == NULL) {
        lua = luaL_newstate();
        luaL_openlibs(lua);
        lua_register(lua, "sha1_of", sha1_of);
        lua_register(lua, "checked", checked);
        must(luaL_dofile(lua, "tests/sim/redis.lua") == 0);
        lua_setfield(lua, LUA_REGISTRYINDEX, "ask");
    }
    lua_getfield(lua, LUA_REGISTRYINDEX, "ask");
    lua_pushstring(lua, what);
    lua_pushinteger(lua, server);
    lua_pushnumber(lua, (lua_Number)now_us);
    must(lua_checkstack(lua, (int)n + 1));
    for (size_t i = 0; i < n; i++)
        lua_pushlstring(lua, word[i].at, word[i].n);
    must(lua_pcall(lua, (int)n + 3, 1, 0) == 0);
    is_said = !lua_isnil(lua, -1);
    if (is_said && out != NULL) {
        said.at = lua_tolstring(lua, -1, &said.n);
        buffer_add(out, said.at, said.n);
    }
    lua_settop(lua, 0);
    return is_said;
}

void redis_bulk(struct buffer *reply, struct text text)
{
    buffer_add_format(reply, "$%zu\r\n", text.n);
    buffer_add(reply, text.at, text.n);
    buffer_add(reply, "\r\n", 2);
}
